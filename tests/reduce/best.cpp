// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The k nearest by Manhattan distances of floats, which GPUs have a kernel for: values and places must be those of the reference, bit for bit.
#include <rigel/detail/execution.hpp>
#include <rigel/neighbors.hpp>

#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>

#include <algorithm>

namespace {

using namespace reduced;
namespace metric = rigel::metric;

struct Case {
  int m, n, k, count;
  int steps;  // numbers are so many different ones, so that scores tie
  bool special = false, self = false, by_columns = false;
};

constexpr Case cases[] = {{.m = 130, .n = 1000, .k = 13, .count = 10, .steps = 1 << 20},
                          {.m = 1, .n = 300, .k = 8, .count = 1, .steps = 1 << 20},
                          {.m = 140, .n = 700, .k = 16, .count = 32, .steps = 100, .special = true},
                          {.m = 257, .n = 257, .k = 64, .count = 5, .steps = 2, .self = true},
                          {.m = 5, .n = 7, .k = 3, .count = 10, .steps = 4},
                          {.m = 20, .n = 2000, .k = 128, .count = 32, .steps = 3},
                          {.m = 33, .n = 520, .k = 24, .count = 7, .steps = 1 << 20, .by_columns = true},
                          {.m = 9, .n = 4000, .k = 1, .count = 20, .steps = 50, .special = true}};

template <class Layout, class Exec>
void check(const Exec& exec, const Case& c, const std::string& name) {
  support::Random random(static_cast<std::uint64_t>(c.m));
  const auto points = [&](int rows) {
    const Kokkos::View<float**, Layout, typename Exec::memory_space> to("points", rows, c.k);
    Values numbers(static_cast<std::size_t>(rows * c.k));
    for (double& x : numbers) x = static_cast<float>(random.integer(0, c.steps - 1)) / 7.f;
    if (c.special)
      for (std::size_t i = 0; i < numbers.size(); i += static_cast<std::size_t>(3 * c.k))
        numbers[i] = i % 2 == 0 ? infinity : not_a_number;
    support::fill(to, numbers);
    return to;
  };
  const auto x = points(c.m), z = c.self ? x : points(c.n);
  const auto result = [&](const std::string& kernel) {
    const auto indices = support::matrix<std::int64_t, Exec>(c.m, c.count);
    const auto distances = support::matrix<double, Exec>(c.m, c.count);
    rigel::nearest(exec, x, z, metric::manhattan{}, c.count, indices, distances, {.exclude_self = c.self, .kernel = kernel});
    exec.fence();
    return Results{support::values(distances), support::values(indices)};
  };
  const Results expected = result("reference"), actual = result(name);
  CHECK(actual.indices == expected.indices);
  CHECK(std::ranges::equal(actual.values, expected.values, [](double a, double b) { return a == b || (a != a && b != b); }));
}

TEST_CASE_TEMPLATE("nearest by Manhattan distances has the reference's bits", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  std::vector<std::string> names{""};
  if constexpr (rigel::detail::space_of<Exec> == rigel::Space::cuda)
    if (!rigel::kernels({.name = "cuda.best", .operation = "reduce"}).empty()) names.push_back("cuda.best");
  for (const std::string& name : names)
    for (const Case& c : cases) {
      CAPTURE(name);
      CAPTURE(c.m);
      CAPTURE(c.n);
      if (c.by_columns)
        check<Kokkos::LayoutLeft>(exec, c, name);
      else
        check<Kokkos::LayoutRight>(exec, c, name);
    }
}

TEST_CASE("nearest by Manhattan distances: what the kernel declines") {
  using Exec = Kokkos::DefaultExecutionSpace;
  if (rigel::detail::space_of<Exec> != rigel::Space::cuda ||
      rigel::kernels({.name = "cuda.best", .operation = "reduce"}).empty())
    return;
  const Exec exec;
  const auto refused = [&](int k, int count) {
    const auto x = support::matrix<float, Exec>(4, k);
    const auto indices = support::matrix<int, Exec>(4, count);
    return support::caught(
        [&] { rigel::nearest(exec, x, x, metric::manhattan{}, count, indices, rigel::no_output, {.kernel = "cuda.best"}); });
  };
  CHECK(refused(128, 32).code == rigel::Code::ok);
  CHECK(refused(129, 32).lacks({"takes K from 1 to 128"}) == "");
  CHECK(refused(128, 33).lacks({"finds the 32 smallest at most"}) == "");
}

}  // namespace
