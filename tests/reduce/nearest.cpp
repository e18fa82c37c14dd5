// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// assign() and nearest() with the reference's bits on hostile points, against a plain loop of chains: duplicates, points far from 0 and
// close together, large, tiny and infinite ones, NaN. On a GPU this is cuda.mma.nearest, whose rows are certain after one product on
// tensor cores, or searched again by subtraction; shapes are larger than several of its tiles, and ragged.
#include <rigel/neighbors.hpp>

#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>
#include <tests/support/skip.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace {

using namespace reduced;
namespace metric = rigel::metric;

enum class Kind { ordinary, far_away, scaled, large, tiny, duplicates, constant, outliers, with_nan, with_infinity, last };

Values points_of(Kind kind, int rows, int k, std::uint64_t seed, bool special) {
  support::Random random(seed);
  Values v(static_cast<std::size_t>(rows * k));
  for (double& x : v) {
    x = random.uniform(-1, 1);
    if (kind == Kind::far_away) x = 100 + 1e-3 * x;
    if (kind == Kind::scaled) x *= std::exp2(random.uniform(-30, 30));
    if (kind == Kind::large) x *= 1e19;
    if (kind == Kind::tiny) x *= 1e-22;
    if (kind == Kind::constant) x = 3;
    x = static_cast<float>(x);
  }
  const auto at = [&](int row) { return v.begin() + std::ptrdiff_t{row} * k; };
  for (int row = 1; row < rows; ++row)
    if (kind == Kind::duplicates && random.chance(0.3))
      std::copy_n(at(static_cast<int>(random.integer(0, row - 1))), k, at(row));
  if (kind == Kind::outliers) std::fill_n(at(rows / 2), k, 1e6);
  if (special && (kind == Kind::with_nan || kind == Kind::with_infinity))
    for (int i = 0; i < 3; ++i)
      *(at(static_cast<int>(random.integer(0, rows - 1))) + random.integer(0, k - 1)) =
          kind == Kind::with_nan ? not_a_number : infinity;
  return v;
}

/// The chains of a row, sorted, and their places; of equal ones the smallest first. NaN is the least of a minimum, else the largest.
Results expected_of(const Values& x, const Values& z, int m, int n, int k, bool root, bool exclude_self, int count) {
  Results all;
  for (int row = 0; row < m; ++row) {
    std::vector<std::pair<double, int>> scores;
    for (int column = 0; column < n; ++column) {
      if (exclude_self && column == row) continue;
      float sum = 0;
      for (int i = 0; i < k; ++i) {
        const float d = static_cast<float>(x[at(row, k, i)]) - static_cast<float>(z[at(column, k, i)]);
        sum = std::fma(d, d, sum);
      }
      scores.push_back({static_cast<double>(root ? std::sqrt(sum) : sum), column});
    }
    std::ranges::sort(scores, [&](const auto& a, const auto& b) {
      const bool a_is_nan = a.first != a.first, b_is_nan = b.first != b.first;
      if (a_is_nan != b_is_nan) return a_is_nan == (count == 0);
      return a.first < b.first || (!(b.first < a.first) && a.second < b.second);
    });
    for (std::size_t i = 0; i < static_cast<std::size_t>(std::max(count, 1)); ++i) {
      all.values.push_back(i < scores.size() ? scores[i].first : infinity);
      all.indices.push_back(i < scores.size() ? scores[i].second : -1);
    }
  }
  return all;
}

int differences(const Values& x, const Values& y) {
  int count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) count += x[i] != y[i] && (x[i] == x[i] || y[i] == y[i]);
  return count;
}

template <class Exec>
void check(Kind kind, int m, int n, int k, bool of_x, bool exclude_self, int count) {
  const Exec exec;
  const Values of_rows = points_of(kind, m, k, static_cast<std::uint64_t>(m) + static_cast<std::uint64_t>(k), of_x),
               of_columns =
                   exclude_self ? of_rows : points_of(kind, n, k, static_cast<std::uint64_t>(n), !of_x || count % 2 == 1);
  const auto x = support::matrix<float, Exec>(m, k, of_rows), z = support::matrix<float, Exec>(n, k, of_columns);
  rigel::ReduceOptions options{.exclude_self = exclude_self, .require = rigel::Promise::reference_bits};
  if constexpr (!support::on_host<Exec>) options.kernel = "cuda.mma.l2_squared.f32.nearest";
  for (const bool root : {false, true}) {
    const Results expected = expected_of(of_rows, of_columns, m, n, k, root, exclude_self, count);
    CAPTURE(static_cast<int>(kind));
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(count);
    CAPTURE(root);
    const auto with_metric = [&](const auto& metric) {
      if (count == 0) {
        const auto indices = vector<std::int64_t, Exec>(m);
        const auto distances = vector<float, Exec>(m);
        rigel::assign(exec, x, z, metric, indices, distances, options);
        exec.fence();
        CHECK(differences(support::values(indices), expected.indices) == 0);
        CHECK(differences(support::values(distances), expected.values) == 0);
      } else {
        const auto indices = support::matrix<std::int64_t, Exec>(m, count);
        const auto distances = support::matrix<float, Exec>(m, count);
        rigel::nearest(exec, x, z, metric, count, indices, distances, options);
        exec.fence();
        CHECK(differences(support::values(indices), expected.indices) == 0);
        CHECK(differences(support::values(distances), expected.values) == 0);
      }
    };
    if (root)
      with_metric(metric::euclidean{});
    else
      with_metric(metric::squared_euclidean{});
  }
}

TEST_CASE_TEMPLATE("assign and nearest: hostile points, the reference's bits", Exec, RIGEL_TEST_SPACES) {
  constexpr int of_host = support::on_host<Exec> ? 4 : 1;  // hosts have no tiles to go beyond
  for (int kind = 0; kind < static_cast<int>(Kind::last); ++kind)
    for (const auto [m, n, k] :
         {std::array{1, 1, 1}, std::array{130, 7, 3}, std::array{300, 700, 16}, std::array{257, 1100, 31},
          std::array{140, 1030, 64}, std::array{200, 2100, 100}, std::array{129, 650, 128}}) {
      const int rows = (m - 1) / of_host + 1, columns = (n - 1) / of_host + 1;
      for (const int count : {0, n < 600 ? 3 : 8}) {
        check<Exec>(static_cast<Kind>(kind), rows, columns, k, false, false, count);
        check<Exec>(static_cast<Kind>(kind), rows, rows, k, true, true, std::min(count, 3));
      }
    }
}

TEST_CASE_TEMPLATE("nearest: up to 128 of hostile points, the reference's bits", Exec, RIGEL_TEST_SPACES) {
  constexpr int of_host = support::on_host<Exec> ? 4 : 1;
  for (int kind = 0; kind < static_cast<int>(Kind::last); ++kind)
    for (const auto [m, n, k, count] :
         {std::array{130, 2100, 16, 33}, std::array{70, 2600, 31, 101}, std::array{129, 3100, 64, 100},
          std::array{65, 2700, 128, 128}, std::array{33, 1500, 100, 64}, std::array{40, 300, 20, 128},
          std::array{20, 90, 5, 100}}) {
      check<Exec>(static_cast<Kind>(kind), m, (n - 1) / of_host + 1, k, kind % 2 == 0, false, count);
      if (kind % 3 == 0 && n > 2000)
        check<Exec>(static_cast<Kind>(kind), (n - 1) / of_host / 2 + 1, (n - 1) / of_host / 2 + 1, k, true, true, count / 2);
    }
}

TEST_CASE_TEMPLATE("nearest: neighbours in space that are neighbours in order", Exec, RIGEL_TEST_SPACES) {
  // Points along a line: the nearest ones of a row are the rows next to it, at equal distances two by two.
  const Exec exec;
  constexpr int n = 4000, k = 3, count = 60;
  Values points(std::size_t{n} * k, 1);
  for (int row = 0; row < n; ++row) points[at(row, k, 1)] = row;
  Results expected;
  for (int row = 0; row < n; ++row) {
    std::vector<std::pair<double, int>> others;
    for (int other = std::max(row - count, 0); other <= std::min(row + count, n - 1); ++other)
      if (other != row) others.push_back({(other - row) * (other - row), other});
    std::ranges::sort(others);
    for (std::size_t i = 0; i < count; ++i) {
      expected.values.push_back(others[i].first);
      expected.indices.push_back(others[i].second);
    }
  }
  const auto x = support::matrix<float, Exec>(n, k, points);
  const auto indices = support::matrix<int, Exec>(n, count);
  const auto distances = support::matrix<float, Exec>(n, count);
  rigel::ReduceOptions options{.exclude_self = true, .require = rigel::Promise::reference_bits};
  if constexpr (!support::on_host<Exec>) options.kernel = "cuda.mma";
  rigel::nearest(exec, x, x, metric::squared_euclidean{}, count, indices, distances, options);
  exec.fence();
  CHECK(differences(support::values(indices), expected.indices) == 0);
  CHECK(differences(support::values(distances), expected.values) == 0);
}

TEST_CASE_TEMPLATE("nearest: a point so far away that its distance is infinite", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto x = support::matrix<float, Exec>(1, 1, {0}),
             z = support::matrix<float, Exec>(10, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 0x1p120});
  const auto indices = support::matrix<int, Exec>(1, 10);
  const auto distances = support::matrix<float, Exec>(1, 10);
  rigel::ReduceOptions options{.require = rigel::Promise::reference_bits};
  if constexpr (!support::on_host<Exec>) options.kernel = "cuda.mma";
  rigel::nearest(exec, x, z, metric::squared_euclidean{}, 10, indices, distances, options);
  exec.fence();
  CHECK(support::values(indices) == Values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(support::values(distances) == Values{0, 1, 4, 9, 16, 25, 36, 49, 64, infinity});
}

/// The one or the `count` nearest, of x in several pieces of rows; row m must be row m % period of `expected`.
template <class Exec>
void check_pieces(const Values& of_rows, const Values& of_columns, int m, int n, int k, int count, std::size_t limit,
                  bool exclude_self, const Results& expected, int period) {
  const Exec exec;
  const auto x = support::matrix<float, Exec>(m, k, of_rows), z = support::matrix<float, Exec>(n, k, of_columns);
  const rigel::ReduceOptions options{.exclude_self = exclude_self, .kernel = "cuda.mma", .workspace_limit = limit};
  const int results = std::max(count, 1);
  const auto indices = support::matrix<int, Exec>(m, results);
  const auto distances = support::matrix<float, Exec>(m, results);
  if (count == 0)
    rigel::assign(exec, x, z, metric::squared_euclidean{}, Kokkos::subview(indices, Kokkos::ALL, 0),
                  Kokkos::subview(distances, Kokkos::ALL, 0), options);
  else
    rigel::nearest(exec, x, z, metric::squared_euclidean{}, count, indices, distances, options);
  exec.fence();
  const Values places = support::values(indices), values = support::values(distances);
  int wrong = 0;
  for (int row = 0; row < m; ++row)
    for (int i = 0; i < results; ++i) {
      const std::size_t found = at(row, results, i), right = at(row % period, results, i);
      wrong += places[found] != expected.indices[right] || values[found] != expected.values[right];
    }
  CAPTURE(m);
  CAPTURE(count);
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("assign and nearest: several pieces of rows", Exec, RIGEL_TEST_SPACES) {
  if constexpr (!support::on_host<Exec>) {
    {
      constexpr int m = 200000, n = 300, k = 16, period = 1000;  // of the minimum pieces of 85632 rows
      const Values some = points_of(Kind::ordinary, period, k, 5, false), z = points_of(Kind::ordinary, n, k, 6, false);
      Values x;
      for (int i = 0; i < m / period; ++i) x.insert(x.end(), some.begin(), some.end());
      for (const int count : {0, 6})
        check_pieces<Exec>(x, z, m, n, k, count, std::size_t{1} << 20, false,
                           expected_of(some, z, period, n, k, false, false, count), period);
    }
    // The bits of a row's number: its nearest ones have one other bit. Of the minimum pieces of 68224 rows.
    constexpr int m = 70000, k = 17;
    Values x(static_cast<std::size_t>(m) * k);
    for (int row = 0; row < m; ++row)
      for (int bit = 0; bit < k; ++bit) x[at(row, k, bit)] = row >> bit & 1;
    for (const int count : {0, 3}) {
      Results expected;
      for (int row = 0; row < m; ++row) {
        std::vector<int> others;
        for (int bit = 0; bit < k; ++bit)
          if ((row ^ 1 << bit) < m) others.push_back(row ^ 1 << bit);
        std::ranges::sort(others);
        for (std::size_t i = 0; i < static_cast<std::size_t>(std::max(count, 1)); ++i) {
          expected.indices.push_back(others[i]);
          expected.values.push_back(1);
        }
      }
      check_pieces<Exec>(x, x, m, m, k, count, 5'870'000, true, expected, m);
    }
  }
}

TEST_CASE_TEMPLATE("assign and nearest: several strips of columns and pieces of rows", Exec, RIGEL_TEST_SPACES) {
  if constexpr (!support::on_host<Exec>) {
    constexpr int m = 1000, n = 20000, k = 40, period = 250;
    const Values some = points_of(Kind::duplicates, period, k, 5, false), z = points_of(Kind::duplicates, n, k, 6, false);
    Values x;
    for (int i = 0; i < m / period; ++i) x.insert(x.end(), some.begin(), some.end());
    // Of 2.8 MB as halves: strips, and of the lists of 1000 rows pieces.
    for (const std::size_t limit : {std::size_t{600} << 10, std::size_t{1} << 20, std::size_t{4} << 20})
      for (const int count : {0, 7, 33, 100})
        check_pieces<Exec>(x, z, m, n, k, count, limit, false, expected_of(some, z, period, n, k, false, false, count),
                           period);
  }
}

/// The families with a kernel of minima of T's; "" on hosts.
template <class T, class Exec>
std::vector<std::string> families_of_minima(const Exec& exec) {
  if constexpr (support::on_host<Exec>) return {""};
  std::vector<std::string> list;
  const rigel::Execution e = rigel::detail::execution_of(exec);
  for (const auto& info : rigel::kernels({.operation = "reduce",
                                          .semiring = "l2_squared",
                                          .element = rigel::scalar_of<T>,
                                          .spaces = rigel::bit(e.space),
                                          .compute_capability = e.compute_capability}))
    if (info.variant == "nearest") list.push_back(info.family);
  return list;
}

template <class T, class Exec>
void check_short(Kind kind, int m, int n, int k, bool root, std::size_t limit = 0) {
  const Exec exec;
  const int pitch = (k + 7) / 8 * 8;  // rows begin at multiples of 16 bytes; NaN after the last number
  const auto short_points = [&](int rows, std::uint64_t seed, bool special) {
    Values v = points_of(kind, rows, k, seed, special);
    for (double& x : v) x = static_cast<double>(static_cast<float>(T(static_cast<float>(x))));
    return v;
  };
  const auto view_of = [&](const Values& v, int rows) {
    Values wide(static_cast<std::size_t>(rows) * static_cast<std::size_t>(pitch), not_a_number);
    for (int row = 0; row < rows; ++row) std::copy_n(&v[at(row, k, 0)], k, &wide[at(row, pitch, 0)]);
    return Kokkos::subview(support::matrix<T, Exec>(rows, pitch, wide), Kokkos::ALL, std::pair(0, k));
  };
  const Values of_rows = short_points(m, 3, true), of_columns = short_points(n, 4, k == 20);
  const auto x = view_of(of_rows, m), z = view_of(of_columns, n);
  const Results expected = expected_of(of_rows, of_columns, m, n, k, root, false, 0);
  for (const std::string& family : families_of_minima<T>(exec)) {
    const auto indices = vector<std::int64_t, Exec>(m);
    const auto distances = vector<float, Exec>(m);
    const rigel::ReduceOptions options{
        .require = rigel::Promise::reference_bits, .kernel = family, .workspace_limit = limit};
    if (root)
      rigel::assign(exec, x, z, metric::euclidean{}, indices, distances, options);
    else
      rigel::assign(exec, x, z, metric::squared_euclidean{}, indices, distances, options);
    exec.fence();
    CAPTURE(family);
    CAPTURE(static_cast<int>(kind));
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CHECK(differences(support::values(indices), expected.indices) == 0);
    CHECK(differences(support::values(distances), expected.values) == 0);
  }
}

TEST_CASE_TEMPLATE("assign: points of 16 bits", Exec, RIGEL_TEST_SPACES) {
  constexpr int of_host = support::on_host<Exec> ? 4 : 1;
  for (int kind = 0; kind < static_cast<int>(Kind::last); ++kind)
    for (const auto [m, n, k] : {std::array{140, 300, 7}, std::array{1, 1, 1}, std::array{513, 700, 20},
                                 std::array{300, 2500, 64}, std::array{257, 1100, 65}, std::array{700, 129, 128}}) {
      check_short<rigel::half, Exec>(static_cast<Kind>(kind), m, (n - 1) / of_host + 1, k, kind % 2 == 0);
      check_short<rigel::bfloat16, Exec>(static_cast<Kind>(kind), m, (n - 1) / of_host + 1, k, kind % 2 == 1);
    }
  if constexpr (!support::on_host<Exec>) {
    check_short<rigel::bfloat16, Exec>(Kind::ordinary, 200000, 40, 16, false, std::size_t{1} << 20);  // in pieces of rows
    // Persistent blocks take more than one block of rows, with more tiles than the ring holds, and with fewer.
    check_short<rigel::half, Exec>(Kind::ordinary, 70000, 400, 7, true);
    check_short<rigel::bfloat16, Exec>(Kind::ordinary, 35000, 200, 65, false);
  }
}

TEST_CASE_TEMPLATE("assign: what cuda.hopper declines goes to another kernel, and explain() says why", Exec,
                   RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto families = families_of_minima<rigel::bfloat16>(exec);
  if (std::ranges::find(families, "cuda.hopper") == families.end())
    return support::skip("cuda.hopper: another GPU, a host, or a library without sm_90a");
  const auto declined = [&](int k, const rigel::ReduceOptions& options) {
    const auto x = support::matrix<rigel::bfloat16, Exec>(40, k), z = support::matrix<rigel::bfloat16, Exec>(40, k);
    const auto indices = vector<int, Exec>(40);
    rigel::assign(exec, x, z, metric::squared_euclidean{}, indices, rigel::no_output, options);
    rigel::ReduceOptions named = options;
    named.kernel = "cuda.hopper";
    return support::caught(
        [&] { rigel::assign(exec, x, z, metric::squared_euclidean{}, indices, rigel::no_output, named); });
  };
  CHECK(declined(20, {}).lacks({"begin at multiples of 16 bytes"}) == "");
  CHECK(declined(136, {}).lacks({"takes K from 1 to 128"}) == "");
  CHECK(declined(64, {.exclude_self = true}).lacks({"does not leave out the scores of n = m"}) == "");
}

TEST_CASE_TEMPLATE("assign: strided points", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int m = 260, n = 90, k = 20;
  const Values of_rows = points_of(Kind::ordinary, m, k, 1, false), of_columns = points_of(Kind::ordinary, n, k, 2, false);
  const auto x = support::matrix<float, Exec>(m, k, of_rows), z = support::matrix<float, Exec>(n, k, of_columns);
  // Column-major copies, and rows with gaps.
  using Columns = Kokkos::View<float**, Kokkos::LayoutLeft, typename Exec::memory_space>;
  const Columns xt("xt", m, k);
  const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> wide("wide", n, k + 3);
  const auto zw = Kokkos::subview(wide, Kokkos::ALL, std::pair(1, k + 1));
  Kokkos::deep_copy(exec, xt, x);
  Kokkos::deep_copy(exec, zw, z);
  const auto indices = vector<std::int32_t, Exec>(m);
  const auto distances = vector<double, Exec>(m);
  const Results expected = expected_of(of_rows, of_columns, m, n, k, false, false, 0);
  rigel::ReduceOptions options{.require = rigel::Promise::reference_bits};
  if constexpr (!support::on_host<Exec>) options.kernel = "cuda.mma";
  rigel::assign(exec, xt, zw, metric::squared_euclidean{}, indices, distances, options);
  exec.fence();
  CHECK(differences(support::values(indices), expected.indices) == 0);
  CHECK(differences(support::values(distances), expected.values) == 0);
}

}  // namespace
