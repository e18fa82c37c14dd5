// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// closure() of small graphs in one launch, compared bit for bit with the elimination by contractions of the reference, which
// test_closure.cpp compares with SciPy and with the textbook.
#include "../support/error.hpp"
#include "../support/layouts.hpp"
#include "../support/random.hpp"
#include "../support/spaces.hpp"

#include <rigel/closure.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Right = Kokkos::LayoutRight;
using Left = Kokkos::LayoutLeft;
using support::Random;

// The most reliable paths, by a functor that no library knows.
struct MostReliable {
  using element = float;
  using accumulator = float;
  static constexpr bool idempotent = true;
  KOKKOS_FUNCTION static constexpr float identity() { return 0; }
  KOKKOS_FUNCTION static constexpr float one() { return 1; }
  KOKKOS_FUNCTION static float multiply(float a, float b) { return a * b; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x > y ? x : y; }
};

// Shortest paths of integers with a special infinity, which does not absorb.
struct Penalised {
  using element = std::int32_t;
  using accumulator = std::int32_t;
  static constexpr bool idempotent = true;
  KOKKOS_FUNCTION static constexpr std::int32_t identity() { return 100000; }
  KOKKOS_FUNCTION static constexpr bool is_no_path(std::int32_t x) { return x > 90000; }
  KOKKOS_FUNCTION static constexpr std::int32_t one() { return 0; }
  KOKKOS_FUNCTION static std::int32_t multiply(std::int32_t a, std::int32_t b) { return a + b; }
  KOKKOS_FUNCTION static std::int32_t add(std::int32_t x, std::int32_t y) { return x < y ? x : y; }
};

// Shortest paths in which no path stays so, whatever follows it, NaN included.
struct CarefulPlus {
  using element = float;
  using accumulator = float;
  static constexpr bool idempotent = true;
  KOKKOS_FUNCTION static constexpr float identity() { return std::numeric_limits<float>::infinity(); }
  KOKKOS_FUNCTION static constexpr float annihilator() { return identity(); }
  KOKKOS_FUNCTION static constexpr float one() { return 0; }
  KOKKOS_FUNCTION static float multiply(float a, float b) { return a == identity() || b == identity() ? identity() : a + b; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x != x || x < y ? x : y; }
};

// The same bits, or both NaN.
template <class T>
bool same(T x, T y) {
  using Bytes = std::array<std::byte, sizeof(T)>;
  return std::bit_cast<Bytes>(x) == std::bit_cast<Bytes>(y) || (x != x && y != y);
}

struct Shape {
  std::int64_t n, block, batches;
  rigel::Batch order = rigel::Batch::first;
};

// Closes random graphs both ways and returns the number of elements that differ; `draw` gives the weight of an arc.
template <class Exec, class Layout, class S, class Draw>
std::int64_t differences(const S& s, const Shape& shape, const Draw& draw) {
  using T = typename S::element;
  const auto [n, block, batches, order] = shape;
  const bool first = order == rigel::Batch::first;
  const Kokkos::View<T***, Layout, typename Exec::memory_space> d("d", first ? batches : n, n, first ? n : batches);
  const auto blocks = Kokkos::create_mirror(typename Exec::memory_space(), d);
  const auto host = Kokkos::create_mirror(d), expected = Kokkos::create_mirror(d);
  Random random(1000 * n + block);
  for (std::size_t i = 0; i < host.extent(0); ++i)
    for (std::size_t j = 0; j < host.extent(1); ++j)
      for (std::size_t k = 0; k < host.extent(2); ++k)
        host(i, j, k) = random.chance(4.0 / static_cast<double>(n + 4))
                            ? T(draw(random))
                            : rigel::detail::convert<T>(typename S::accumulator(S::identity()));
  Kokkos::deep_copy(d, host);
  Kokkos::deep_copy(blocks, host);
  rigel::ClosureOptions options{.block = block, .batch = order, .kernel = "reference"};
  const auto by_blocks = rigel::closure(Exec(), s, blocks, options);
  options.kernel = "closure.small";
  const auto in_one = rigel::closure(Exec(), s, d, options);
  CHECK(in_one.negative_cycle == by_blocks.negative_cycle);
  Kokkos::deep_copy(host, d);
  Kokkos::deep_copy(expected, blocks);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < host.extent(0); ++i)
    for (std::size_t j = 0; j < host.extent(1); ++j)
      for (std::size_t k = 0; k < host.extent(2); ++k) count += !same(host(i, j, k), expected(i, j, k));
  return count;
}

constexpr auto fraction = [](Random& r) { return static_cast<float>(r.uniform(0, 1)); };
constexpr auto small_integer = [](Random& r) { return static_cast<std::int32_t>(r.integer(0, 50)); };

}  // namespace

TEST_CASE_TEMPLATE("small graphs: the bits of the elimination by contractions", Exec, Kokkos::DefaultExecutionSpace) {
  for (const std::int64_t n : {1, 2, 31, 32, 33, 63, 64, 65, 100, 127, 128})
    for (const std::int64_t block : {1, 7, 8, 32, 64}) {
      if (block == 1 && n > 33) continue;
      CAPTURE(n);
      CAPTURE(block);
      const Shape shape{n, block, 3};
      CHECK(differences<Exec, Right>(rigel::min_plus<float>{}, shape, fraction) == 0);
      CHECK(differences<Exec, Left>(rigel::min_plus<float>{}, {n, block, 3, rigel::Batch::last}, fraction) == 0);
      CHECK(differences<Exec, Right>(MostReliable{}, shape, fraction) == 0);
    }
  for (const std::int64_t n : {1, 30, 64, 127}) {
    CAPTURE(n);
    const Shape shape{n, 32, 5};
    // Neighbours in memory are elements of different graphs.
    CHECK(differences<Exec, Left>(rigel::min_plus<float>{}, shape, fraction) == 0);
    CHECK(differences<Exec, Right>(rigel::max_min<float>{}, shape, fraction) == 0);
    CHECK(differences<Exec, Left>(rigel::max_times<float>{}, shape, fraction) == 0);
    CHECK(differences<Exec, Right>(rigel::or_and<std::uint8_t>{}, shape, [](Random&) { return 1; }) == 0);
    CHECK(differences<Exec, Right>(rigel::min_plus<rigel::half>{}, shape, fraction) == 0);
    CHECK(differences<Exec, Right>(rigel::min_plus<std::int32_t>{}, shape, small_integer) == 0);
    CHECK(differences<Exec, Left>(Penalised{}, shape, small_integer) == 0);
    CHECK(differences<Exec, Right>(rigel::min_plus<double>{}, {n < 64 ? n : 64, 16, 3},
                                   [](Random& r) { return r.uniform(0, 1); }) == 0);
  }
}

TEST_CASE_TEMPLATE("small graphs: strides, and NaN", Exec, RIGEL_TEST_SPACES) {
  using S = rigel::min_plus<float>;
  const std::int64_t n = 70;
  Random random(3);
  std::vector<float> graph(n * n, S::identity());
  for (auto& x : graph)
    if (random.chance(0.05)) x = static_cast<float>(random.uniform(0, 1));
  graph[5 * n + 9] = std::numeric_limits<float>::quiet_NaN();
  const auto closed = [&](std::string_view kernel) {
    const auto d = support::laid_out<float, Exec, Kokkos::LayoutStride>(n, n);
    support::upload(d, graph);
    rigel::closure(Exec(), S{}, d, {.kernel = kernel});
    return support::download(d);
  };
  for (const bool on_diagonal : {false, true}) {
    if (on_diagonal) std::swap(graph[5 * n + 9], graph[69 * n + 69]);
    const auto found = closed("closure.small"), expected = closed("reference");
    std::int64_t wrong = 0, nans = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      wrong += !same(found[i], expected[i]);
      nans += found[i] != found[i];
    }
    CHECK(wrong == 0);
    CHECK(nans > 0);
  }
}

TEST_CASE_TEMPLATE("small graphs: NaN, zeros and integers without a path, as by contractions", Exec, RIGEL_TEST_SPACES) {
  // About one weight in a hundred is NaN, also where no arc leads to the next vertex.
  const auto some_nan = [](Random& r) {
    return r.chance(0.01) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(r.integer(1, 4));
  };
  const auto zero_or_more = [](Random& r) { return static_cast<float>(r.integer(0, 1) * r.integer(1, 2)); };
  const auto integer_or_none = [](Random& r) {
    return r.chance(0.5) ? static_cast<std::int32_t>(r.integer(0, 50)) : std::numeric_limits<std::int32_t>::max();
  };
  for (const std::int64_t n : {32, 64, 100, 128})
    for (const std::int64_t block : {7, 64}) {
      CAPTURE(n);
      CAPTURE(block);
      const Shape shape{n, block, 2};
      CHECK(differences<Exec, Right>(CarefulPlus{}, shape, some_nan) == 0);
      CHECK(differences<Exec, Right>(rigel::min_plus<float>{}, shape, some_nan) == 0);
      CHECK(differences<Exec, Left>(rigel::min_times<float>{}, shape, some_nan) == 0);
      CHECK(differences<Exec, Right>(rigel::min_times<float>{}, shape, zero_or_more) == 0);
      CHECK(differences<Exec, Left>(rigel::min_plus<std::int32_t>{}, shape, integer_or_none) == 0);
    }
}

TEST_CASE_TEMPLATE("small graphs: negative cycles are reported as by contractions", Exec, RIGEL_TEST_SPACES) {
  constexpr std::int64_t n = 100, batches = 4;
  const Kokkos::View<float***, Right, typename Exec::memory_space> d("d", batches, n, n);
  const auto host = Kokkos::create_mirror(d);
  const auto report_of = [&](const rigel::ClosureOptions& options) {
    Kokkos::deep_copy(d, host);
    return rigel::closure(Exec(), rigel::min_plus<float>{}, d, options);
  };
  Kokkos::deep_copy(host, std::numeric_limits<float>::infinity());
  CHECK_FALSE(report_of({.kernel = "closure.small"}).negative_cycle);
  // In graph 2, vertex 90 closes 20 → 90 → 33 → 20; in graph 3, 7 → 7.
  host(2, 20, 90) = -5;
  host(2, 90, 33) = 1;
  host(2, 33, 20) = 3;
  host(3, 7, 7) = -1;
  for (const int block : {8, 33, 64}) {
    const auto report = report_of({.block = block, .kernel = "closure.small"});
    CHECK(report.negative_cycle);
    CHECK(report.batch == 2);
    CHECK(report.vertex == 90);
  }
  CHECK_FALSE(report_of({.report = false, .kernel = "closure.small"}).negative_cycle);
  host(2, 20, 90) = -4;
  CHECK(report_of({.kernel = "closure.small"}).batch == 3);
  CHECK(report_of({.kernel = "closure.small"}).vertex == 7);
}

TEST_CASE_TEMPLATE("small graphs: workspace, and the default", Exec, RIGEL_TEST_SPACES) {
  const rigel::min_plus<float> s;
  const Kokkos::View<float***, Right, typename Exec::memory_space> d("d", 3, 100, 100);
  const auto bytes = [&](const rigel::ClosureOptions& options) {
    return rigel::closure_workspace_size(Exec(), s, d, options);
  };
  CHECK(bytes({.report = false, .kernel = "closure.small"}) == 0);
  CHECK(bytes({.kernel = "closure.small"}) == 256);
  CHECK(bytes({.report = false, .kernel = "reference"}) > 0);
  CHECK((bytes({.report = false}) == 0) == !support::on_host<Exec>);
  CHECK(bytes({.block = 100, .report = false}) > 0);
}

TEST_CASE_TEMPLATE("small graphs: what closure.small does not cover", Exec, RIGEL_TEST_SPACES) {
  using Space = typename Exec::memory_space;
  const rigel::min_plus<float> s;
  const rigel::ClosureOptions small{.kernel = "closure.small"};
  const Kokkos::View<float**, Right, Space> large("large", 129, 129), roads("roads", 100, 100);
  const Kokkos::View<double**, Right, Space> doubles("doubles", 65, 65);
  const Kokkos::View<int**, Right, Space> p("p", 100, 100);
  const auto message_of = [](const auto& call) {
    const auto error = support::caught(call);
    CHECK(error.code == rigel::Code::unsupported);
    return error.message;
  };
  const std::string of = "closure: kernel 'closure.small' does not cover D ", expected = ": expected at most ",
                    block = " vertices, of which a block has at most 64";
  CHECK(message_of([&] { rigel::closure(Exec(), s, large, small); }) ==
        of + "'large' 129x129, options.block = 64" + expected + "128" + block);
  CHECK(message_of([&] { rigel::closure(Exec(), s, roads, {.block = 65, .kernel = "closure.small"}); }) ==
        of + "'roads' 100x100, options.block = 65" + expected + "128" + block);
  CHECK(message_of([&] { rigel::closure(Exec(), rigel::min_plus<double>{}, doubles, small); }) ==
        of + "'doubles' 65x65, options.block = 64" + expected + "64" + block);
  CHECK(message_of([&] { rigel::closure(Exec(), s, roads, p, small); }) ==
        of + "'roads' 100x100, options.block = 64: it keeps no predecessors");
}
