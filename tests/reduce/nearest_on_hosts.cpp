// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// host.nearest: assign() and nearest() by a product of floats that excludes most columns must give what the reference gives, in every bit
// and place, whatever the points are: clusters and duplicates, of which it excludes few, far from 0, tiny, huge, infinite and NaN; in
// parts of rows and columns; and more results than columns.
#include <rigel/neighbors.hpp>

#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace {

using namespace reduced;
namespace metric = rigel::metric;

enum class Kind {
  ordinary,
  clusters,
  duplicates,
  constant,
  far_away,
  whole_numbers,
  scaled,
  tiny,
  subnormal,
  large,
  overflowing,
  outliers,
  special_columns,
  special_rows,
  mostly_nan,
  last
};

/// Points of a kind. T's largest and smallest numbers are 2^±exponent or so.
Values points_of(Kind kind, int rows, int k, std::uint64_t seed, bool of_rows, int exponent) {
  support::Random random(seed);
  support::Random of_centres(77);
  Values centres(static_cast<std::size_t>(5 * k)), v(static_cast<std::size_t>(rows * k));
  for (double& c : centres) c = of_centres.uniform(-100, 100);
  for (int row = 0; row < rows; ++row) {
    const int cluster = static_cast<int>(random.integer(0, 4));
    for (int i = 0; i < k; ++i) {
      double& x = v[at(row, k, i)];
      x = random.uniform(-1, 1);
      switch (kind) {
        case Kind::clusters: x = centres[at(cluster, k, i)] + 1e-3 * x; break;
        case Kind::constant: x = 3; break;
        case Kind::far_away: x += 1e6; break;
        case Kind::whole_numbers: x = std::round(2 * x); break;
        case Kind::scaled: x *= std::exp2(random.uniform(-30, 30)); break;
        case Kind::tiny: x = std::ldexp(x, -exponent / 2); break;
        case Kind::subnormal: x = std::ldexp(x, -exponent); break;
        case Kind::large: x = std::ldexp(x, exponent / 2 - 8); break;
        case Kind::overflowing: x = std::ldexp(x, exponent / 2); break;
        case Kind::mostly_nan:
          if (!of_rows && random.chance(0.3)) x = not_a_number;
          break;
        default: break;
      }
    }
    const auto mine = v.begin() + std::ptrdiff_t{row} * k;
    if (kind == Kind::duplicates && row > 0 && random.chance(0.5))
      std::copy_n(v.begin() + std::ptrdiff_t{random.integer(0, row - 1)} * k, k, mine);
    if (kind == Kind::outliers && row % 50 == 7) std::fill_n(mine, k, std::ldexp(1., exponent / 2 - 20));
    const bool special = kind == Kind::special_rows ? of_rows : kind == Kind::special_columns && !of_rows;
    if (special && row % 40 == 3) mine[random.integer(0, k - 1)] = row % 80 == 3 ? not_a_number : infinity;
    if (special && row % 40 == 5) std::fill_n(mine, k, std::ldexp(1., exponent));
  }
  return v;
}

template <class T, class Exec>
struct Case {
  Kind kind = Kind::ordinary;
  int m = 1, n = 1, k = 1, count = 0;  // 0: assign()
  bool exclude_self = false, root = false;
  std::size_t limit = 0;  // of the workspace

  using Score = std::conditional_t<std::is_same_v<T, double>, double, float>;
  struct Out {
    Kokkos::View<std::int64_t**, Kokkos::LayoutRight, typename Exec::memory_space> indices;
    Kokkos::View<Score**, Kokkos::LayoutRight, typename Exec::memory_space> distances;
  };

  template <class X, class Z>
  Out results(const X& x, const Z& z, rigel::ReduceOptions options) const {
    const Exec exec;
    const int columns = std::max(count, 1);
    Out out{support::matrix<std::int64_t, Exec>(m, columns), support::matrix<Score, Exec>(m, columns)};
    options.exclude_self = exclude_self;
    const auto with_metric = [&](const auto& metric) {
      if (count == 0)
        rigel::assign(exec, x, z, metric, Kokkos::subview(out.indices, Kokkos::ALL, 0),
                      Kokkos::subview(out.distances, Kokkos::ALL, 0), options);
      else
        rigel::nearest(exec, x, z, metric, count, out.indices, out.distances, options);
    };
    if (root)
      with_metric(metric::euclidean{});
    else
      with_metric(metric::squared_euclidean{});
    exec.fence();
    return out;
  }

  void check() const {
    constexpr int exponent = std::is_same_v<T, double> ? 1020 : std::is_same_v<T, rigel::half> ? 14 : 124;
    Values of_x = points_of(kind, m, k, static_cast<std::uint64_t>(m) + 7, true, exponent);
    Values of_z = exclude_self ? of_x : points_of(kind, n, k, static_cast<std::uint64_t>(n), false, exponent);
    const auto x = support::matrix<T, Exec>(m, k, of_x), z = support::matrix<T, Exec>(n, k, of_z);
    const std::string kernel = "host.l2_squared." + std::string(rigel::name(rigel::scalar_of<T>)) + ".nearest";
    const Out found = results(x, z, {.kernel = kernel, .workspace_limit = limit}),
              expected = results(x, z, {.kernel = "reference"});
    int wrong = 0;
    for (int row = 0; row < m; ++row)
      for (int i = 0; i < std::max(count, 1); ++i) {
        const Score a = found.distances(row, i), b = expected.distances(row, i);
        wrong += found.indices(row, i) != expected.indices(row, i) || (a != b && (a == a || b == b));
      }
    CAPTURE(kernel);
    CAPTURE(static_cast<int>(kind));
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(count);
    CAPTURE(exclude_self);
    CAPTURE(root);
    CHECK(wrong == 0);
  }
};

template <class T, class Exec>
void check_kinds() {
  for (int kind = 0; kind < static_cast<int>(Kind::last); ++kind) {
    const bool is_short = sizeof(T) == 2;
    for (const auto [m, n, k, count] :
         {std::array{37, 701, 33, 10}, std::array{13, 350, 3, 0}, std::array{25, 1030, 64, 1}}) {
      if (is_short && count == 1) continue;
      Case<T, Exec>{.kind = static_cast<Kind>(kind), .m = m, .n = n, .k = k, .count = count, .root = count == 10}.check();
      Case<T, Exec>{.kind = static_cast<Kind>(kind), .m = n / 4, .n = n / 4, .k = k, .count = count, .exclude_self = true}
          .check();
    }
  }
}

TEST_CASE_TEMPLATE("host.nearest: points of every kind, the reference's bits and places", Exec, RIGEL_TEST_SPACES) {
  if constexpr (support::on_host<Exec>) {
    check_kinds<float, Exec>();
    check_kinds<double, Exec>();
    check_kinds<rigel::half, Exec>();
    check_kinds<rigel::bfloat16, Exec>();
  }
}

TEST_CASE_TEMPLATE("host.nearest: extents, parts and numbers of results", Exec, RIGEL_TEST_SPACES) {
  if constexpr (support::on_host<Exec>) {
    for (const int k : {1, 2, 5, 16, 17, 63, 100, 257, 300}) {
      Case<float, Exec>{.m = 29, .n = 333, .k = k, .count = 4}.check();
      Case<double, Exec>{.m = 5, .n = 95, .k = k, .count = 0}.check();
    }
    for (const int count : {0, 1, 2, 31, 32, 33, 100, 255, 256}) {
      Case<float, Exec>{.m = 7, .n = 900, .k = 9, .count = count}.check();
      Case<double, Exec>{.m = 7, .n = 40, .k = 9, .count = count}.check();  // more results than columns
      Case<float, Exec>{.m = 1, .n = 1, .k = 9, .count = count, .exclude_self = true}.check();
    }
    // Parts of the columns, and groups of rows, with columns and rows that the filter does not take.
    for (const Kind kind : {Kind::ordinary, Kind::special_columns, Kind::special_rows, Kind::duplicates, Kind::mostly_nan}) {
      Case<float, Exec>{.kind = kind, .m = 300, .n = 1500, .k = 20, .count = 12, .limit = 150'000}.check();
      Case<double, Exec>{.kind = kind, .m = 300, .n = 1500, .k = 20, .count = 0, .limit = 120'000}.check();
      Case<double, Exec>{.kind = kind, .m = 500, .n = 500, .k = 20, .count = 3, .exclude_self = true, .limit = 120'000}
          .check();
    }
  }
}

TEST_CASE_TEMPLATE("host.nearest: strided points, equal distances", Exec, RIGEL_TEST_SPACES) {
  if constexpr (support::on_host<Exec>) {
    const Case<float, Exec> one{.m = 60, .n = 410, .k = 21, .count = 5};
    const auto x = support::matrix<float, Exec>(one.m, one.k, points_of(Kind::ordinary, one.m, one.k, 1, true, 0)),
               z = support::matrix<float, Exec>(one.n, one.k, points_of(Kind::ordinary, one.n, one.k, 2, false, 0));
    const Kokkos::View<float**, Kokkos::LayoutLeft, typename Exec::memory_space> by_columns("columns", one.m, one.k);
    const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> wide("wide", one.n, one.k + 3);
    const auto with_gaps = Kokkos::subview(wide, Kokkos::ALL, std::pair(1, one.k + 1));
    Kokkos::deep_copy(by_columns, x);
    Kokkos::deep_copy(with_gaps, z);
    const auto found = one.results(by_columns, with_gaps, {.kernel = "host.l2_squared.f32.nearest"}),
               expected = one.results(x, z, {.kernel = "reference"});
    CHECK(support::values(found.indices) == support::values(expected.indices));
    CHECK(support::values(found.distances) == support::values(expected.distances));
    // The corners of a cube are all at a distance of 1 of its neighbours: the first ones count.
    constexpr int bits = 9, points = 1 << bits;
    Values corners;
    for (int p = 0; p < points; ++p)
      for (int bit = 0; bit < bits; ++bit) corners.push_back(p >> bit & 1);
    const auto cube = support::matrix<double, Exec>(points, bits, corners);
    const Case<double, Exec> ties{.m = points, .n = points, .k = bits, .count = 4, .exclude_self = true};
    const auto first = ties.results(cube, cube, {.kernel = "host.l2_squared.f64.nearest"});
    int wrong = 0;
    for (int p = 0; p < points; ++p) {
      std::vector<int> others;
      for (int bit = 0; bit < bits; ++bit) others.push_back(p ^ 1 << bit);
      std::ranges::sort(others);
      for (int i = 0; i < 4; ++i)
        wrong += first.indices(p, i) != others[static_cast<std::size_t>(i)] || first.distances(p, i) != 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("host.nearest: what it serves, and when it is chosen") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const auto x = support::matrix<float, Exec>(600, 64), z = support::matrix<float, Exec>(2000, 64);
  const auto explain = [&](const auto& a, const auto& b, const auto& metric, int count,
                           const rigel::ReduceOptions& options = {}) {
    const auto indices = support::matrix<int, Exec>(static_cast<int>(a.extent(0)), count);
    const auto distances = support::matrix<float, Exec>(static_cast<int>(a.extent(0)), count);
    return rigel::explain_reduce_distances(exec, a, b, metric, rigel::reducer::smallest{count}, distances, indices, {},
                                           options);
  };
  const auto chosen = [](const std::string& text) {
    const std::size_t star = text.find('*');
    return text.substr(star, text.find('\n', star) - star);
  };
  CHECK(chosen(explain(x, z, metric::euclidean{}, 10)).find("host.l2_squared.f32.nearest") != std::string::npos);
  CHECK(explain(x, z, metric::euclidean{}, 300).find("finds the 256 smallest at most") != std::string::npos);
  CHECK(explain(x, z, metric::euclidean{}, 10, {.workspace_limit = 4096})
            .find("bytes of workspace, more than the limit of 4096") != std::string::npos);
  // Few rows are not worth packing the columns.
  const auto one = support::matrix<float, Exec>(1, 64);
  CHECK(chosen(explain(one, z, metric::euclidean{}, 10)).find("nearest") == std::string::npos);
}

}  // namespace
