// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nearest(), assign(), logsumexp() and reduce_distances() against distances that cdist() stores: metrics with and without prepared rows,
// integers that are widened, a p for each batch, kernels.
#include <rigel/neighbors.hpp>

#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>

#include <algorithm>
#include <cmath>

namespace {

using namespace reduced;
namespace metric = rigel::metric;
namespace reducer = rigel::reducer;

constexpr int batches = 2, m = 9, n = 150, dimensions = 5, count = 6;

template <class T, class Exec>
auto points(int rows, std::uint64_t seed, int of_batches = batches) {
  support::Random random(seed);
  Values v(static_cast<std::size_t>(of_batches * rows * dimensions));
  for (double& x : v) x = static_cast<double>(random.integer(1, 9));
  return support::batch<T, Exec>(of_batches, rows, dimensions, v, "points");
}

/// The nearest of all that cdist() stores in float or double, with the same kernel of contract(), in strips of several sizes.
template <class T, class D, class Exec, class M>
void check(const Exec& exec, const M& metric, bool largest = false) {
  const auto x = points<T, Exec>(m, 1), z = points<T, Exec>(n, 2, 1);
  const auto stored = support::batch<D, Exec>(batches, m, n);
  rigel::cdist(exec, x, z, stored, metric, {.kernel = "reference"});
  exec.fence();
  const Values d = support::values(stored);
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
    CAPTURE(limit);
    const rigel::ReduceOptions options{.score_kernel = "reference", .workspace_limit = limit};
    const auto distances = support::batch<D, Exec>(batches, m, count);
    const auto indices = support::batch<std::int64_t, Exec>(batches, m, count);
    const auto closest = support::matrix<int, Exec>(batches, m);
    const auto least = support::matrix<D, Exec>(batches, m);
    rigel::nearest(exec, x, z, metric, count, indices, distances, options);
    rigel::assign(exec, x, z, metric, closest, least, options);
    exec.fence();
    const Values v = support::values(distances), i = support::values(indices), c = support::values(closest),
                 l = support::values(least);
    int wrong = 0;
    for (int row = 0; row < batches * m; ++row) {
      std::vector<std::pair<double, int>> order;
      for (int j = 0; j < n; ++j) {
        const double distance = d[reduced::at(row, n, j)];
        order.push_back({largest ? -distance : distance, j});
      }
      std::sort(order.begin(), order.end());
      for (int j = 0; j < count; ++j) {
        const auto [key, place] = order[static_cast<std::size_t>(j)];
        const auto at = reduced::at(row, count, j);
        wrong += v[at] != (largest ? -key : key) || i[at] != place;
      }
      wrong += c[static_cast<std::size_t>(row)] != order[0].second ||
               l[static_cast<std::size_t>(row)] != (largest ? -order[0].first : order[0].first);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE_TEMPLATE("nearest and assign: metrics", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  check<float, float>(exec, metric::euclidean{});
  check<double, double>(exec, metric::manhattan{});
  check<rigel::half, float>(exec, metric::chebyshev{});
  check<float, float>(exec, metric::inner_product{}, true);
  check<float, float>(exec, metric::cosine{});
  check<double, double>(exec, metric::correlation{});
  check<std::int8_t, double>(exec, metric::euclidean{});
  check<std::int32_t, double>(exec, metric::squared_euclidean{});
  check<std::uint32_t, double>(exec, metric::bit_hamming{});
  check<float, float>(exec, metric::minkowski<>{3});
}

TEST_CASE_TEMPLATE("nearest: a power for each batch", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto p = vector<float, Exec>(batches);
  support::fill(p, {1.5, 3});
  check<float, float>(exec, metric::minkowski<decltype(p)>{p});
}

TEST_CASE_TEMPLATE("nearest: a set with itself, by hand", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto x = support::matrix<float, Exec>(4, 1, {0, 3, 4, 10}, "x");
  const auto indices = support::matrix<int, Exec>(4, 2);
  const auto distances = support::matrix<float, Exec>(4, 2);
  rigel::nearest(exec, x, x, metric::euclidean{}, 2, indices, distances, {.exclude_self = true});
  exec.fence();
  CHECK(support::values(indices) == Values{1, 2, 2, 0, 1, 0, 2, 1});
  CHECK(support::values(distances) == Values{3, 4, 1, 3, 1, 4, 6, 7});
  rigel::nearest(exec, x, x, metric::euclidean{}, 2, indices, rigel::no_output);
  exec.fence();
  CHECK(support::values(indices) == Values{0, 1, 1, 2, 2, 1, 3, 2});
  const auto counts = vector<std::int64_t, Exec>(4);
  rigel::reduce_distances(exec, x, x, metric::euclidean{}, reducer::count_below{4, true}, counts, rigel::no_output,
                          rigel::epilogue::Program{}, {.exclude_self = true});
  exec.fence();
  CHECK(support::values(counts) == Values{2, 2, 2, 0});
}

TEST_CASE_TEMPLATE("radius_neighbors: all that cdist() has within the radius", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto check = [&](const auto& metric, double radius, bool exclude_self) {
    const auto all = points<float, Exec>(n, 3, 1);
    const auto x = Kokkos::subview(all, 0, Kokkos::ALL, Kokkos::ALL);
    const auto d = support::matrix<float, Exec>(n, n);
    rigel::cdist(exec, x, x, d, metric, {.kernel = "reference"});
    exec.fence();
    const Values stored = support::values(d);
    for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
      const rigel::ReduceOptions options{
          .exclude_self = exclude_self, .score_kernel = "reference", .workspace_limit = limit};
      const auto offsets = vector<std::int64_t, Exec>(n + 1);
      rigel::radius_offsets(exec, x, x, metric, radius, offsets, options);
      exec.fence();
      const Values o = support::values(offsets);
      const int total = static_cast<int>(o.back());
      const auto indices = vector<int, Exec>(total);
      const auto distances = vector<float, Exec>(total);
      rigel::radius_neighbors(exec, x, x, metric, radius, offsets, indices, distances, options);
      exec.fence();
      const Values i = support::values(indices), v = support::values(distances);
      std::size_t at = 0;
      int wrong = o[0] != 0;
      for (int row = 0; row < n; ++row) {
        for (int j = 0; j < n; ++j) {
          const double distance = stored[reduced::at(row, n, j)];
          if (distance > radius || (exclude_self && j == row)) continue;
          wrong += at >= i.size() || i[at] != j || v[at] != distance;
          ++at;
        }
        wrong += o[static_cast<std::size_t>(row) + 1] != static_cast<double>(at);
      }
      CHECK(wrong == 0);
      CHECK(at > n);
    }
  };
  check(metric::euclidean{}, 5, false);
  check(metric::manhattan{}, 8, true);
  check(metric::cosine{}, 0.05, true);
}

TEST_CASE_TEMPLATE("nearest: NaN points come last, and prepared rows keep them apart", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  // A row of zeros has no direction.
  const auto x = support::matrix<float, Exec>(2, 2, {1, 0, 0, 0}),
             z = support::matrix<float, Exec>(3, 2, {0, 0, -1, 0, 2, 0});
  const auto indices = support::matrix<int, Exec>(2, 3);
  const auto distances = support::matrix<double, Exec>(2, 3);
  rigel::nearest(exec, x, z, metric::cosine{}, 3, indices, distances);
  exec.fence();
  CHECK(support::values(indices) == Values{2, 1, 0, 0, 1, 2});
  const Values d = support::values(distances);
  CHECK(d[0] == 0);
  CHECK(std::abs(d[1] - 2) <= 30 * 0x1p-24);  // cosine's bound
  for (int i = 2; i < 6; ++i) CHECK(d[static_cast<std::size_t>(i)] != d[static_cast<std::size_t>(i)]);
  const auto first = vector<int, Exec>(2);
  rigel::assign(exec, x, z, metric::cosine{}, first);
  exec.fence();
  CHECK(support::values(first) == Values{0, 0});
}

TEST_CASE_TEMPLATE("logsumexp and kernel sums", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto x = support::matrix<double, Exec>(2, 1, {0, 1000}), z = support::matrix<double, Exec>(3, 1, {0, 1, 2});
  const auto values = vector<double, Exec>(2);
  // log(1 + e^-1/2 + e^-4/2); all exponentials of the second row underflow but relative to its maximum, −998²/2.
  rigel::logsumexp(exec, x, z, metric::squared_euclidean{}, values, rigel::epilogue::scale(-0.5));
  exec.fence();
  const Values v = support::values(values);
  CHECK(std::abs(v[0] - 0.55495691964199064844) <= 8 * 0x1p-53);
  CHECK(std::abs(v[1] + 498002) <= 498002 * 0x1p-53);
  rigel::reduce_distances(exec, x, z, rigel::kernel_over(metric::euclidean{}, rigel::kernel::gaussian{1.0}), reducer::sum{},
                          values);
  exec.fence();
  const Values sums = support::values(values);
  CHECK(std::abs(sums[0] - 1.7418659429492461) <= 16 * 0x1p-53);
  CHECK(sums[1] == 0);
}

TEST_CASE("nearest: errors and workspace") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const auto x = support::matrix<float, Exec>(4, 3, {}, "queries"), z = support::matrix<float, Exec>(5, 2, {}, "points");
  const auto indices = support::matrix<int, Exec>(4, 2);
  const auto distances = support::matrix<float, Exec>(4, 2);
  for (const bool prepared : {false, true}) {
    const auto e = support::caught([&] {
      if (prepared)
        rigel::nearest(exec, x, z, metric::cosine{}, 2, indices, distances);
      else
        rigel::nearest(exec, x, z, metric::euclidean{}, 2, indices, distances);
    });
    CHECK(e.code == rigel::Code::invalid_argument);
    CHECK(e.lacks({"nearest: Z 'points' is 5x2, expected 3 columns to match X 'queries' 4x3"}) == "");
  }
  const auto y = support::matrix<float, Exec>(5, 3);
  const std::size_t bytes =
      rigel::reduce_distances_workspace_size(exec, x, y, metric::cosine{}, reducer::smallest{2}, distances, indices);
  CHECK(bytes > 0);
  const Kokkos::View<char*, Exec> memory("memory", bytes + 256);
  const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
  rigel::ReduceOptions options{.workspace = {.data = reinterpret_cast<void*>(address), .bytes = bytes}};
  rigel::nearest(exec, x, y, metric::cosine{}, 2, indices, distances, options);
  options.workspace.bytes = bytes - 1;
  CHECK(support::caught([&] {
          rigel::nearest(exec, x, y, metric::cosine{}, 2, indices, distances, options);
        }).lacks({"nearest: the workspace has", "expected"}) == "");
  CHECK(rigel::explain_reduce_distances(exec, x, y, metric::cosine{}, reducer::smallest{2}, distances, indices)
            .find("rows prepared") == 0);
  CHECK(support::caught([&] {
          rigel::nearest(exec, x, y, metric::euclidean{}, 9999, indices, distances);
        }).lacks({"nearest: smallest's k is 9999"}) == "");
}

TEST_CASE_TEMPLATE("radius_offsets: the first offset overlaps neither X nor Z", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto memory = vector<std::int64_t, Exec>(5);  // X in the first two, offsets from the second one on
  Kokkos::deep_copy(memory, 7);
  using Points = Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
  const Points x(reinterpret_cast<float*>(memory.data()), 2, 2);
  const auto z = support::matrix<float, Exec>(3, 2);
  const auto offsets = Kokkos::subview(memory, Kokkos::pair<int, int>(1, 4));
  for (const bool is_x : {true, false}) {
    const auto e = support::caught([&] {
      if (is_x)
        rigel::radius_offsets(exec, x, z, metric::euclidean{}, 1, offsets);
      else
        rigel::radius_offsets(exec, z, x, metric::cosine{}, 1, Kokkos::subview(memory, Kokkos::pair<int, int>(1, 5)));
    });
    CHECK(e.code == rigel::Code::invalid_argument);
    CHECK(e.lacks({"radius_offsets: offsets 'vector' 1x1 overlaps", is_x ? " X " : " Z ",
                   "2x2, expected distinct elements"}) == "");
  }
  CHECK(support::values(memory) == Values{7, 7, 7, 7, 7});
}

}  // namespace
