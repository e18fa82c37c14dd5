// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// metric::cosine and metric::correlation: SciPy's values; the formulas in long double, within the stated bound
// (docs/numerics.md); nearly parallel rows; rows without a direction; and the pass over rows: workspace, labels, bits.
#include <rigel/distance.hpp>
#include <rigel/kernel_matrix.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/error.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/layouts.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/recorder.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace {

using rigel::metric::correlation;
using rigel::metric::cosine;
using Values = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

// From the documentation of metric::cosine.
struct cosine_in_double : cosine {
  template <class>
  using row = double;
};

// A similarity by a product of unit rows.
struct cosine_similarity {
  static constexpr rigel::Preparation preparation = {};
  template <class>
  using row = double;
  template <class Row, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(rigel::plus_times<Row>{}, rigel::epilogue::Program{});
  }
};

template <class M>
constexpr bool is_centred = M::preparation.centred;

// Rows rounded to T.
template <class T>
Values held(Values rows) {
  for (double& v : rows) v = support::to_double(support::number<T>(v));
  return rows;
}
Values random_rows(int rows, int k, std::uint64_t seed, double low = -1, double high = 1) {
  support::Random random(seed);
  Values list(rows * k);
  for (double& v : list) v = random.uniform(low, high);
  return list;
}

// ½ |x̂ − ẑ|² in long double.
Values exact(bool centred, int m, int n, int k, const Values& x, const Values& z) {
  const auto prepared = [&](const Values& rows, int row) {
    std::vector<long double> unit(rows.begin() + row * k, rows.begin() + (row + 1) * k);
    long double sum = 0, squares = 0;
    for (const long double v : unit) sum += v;
    for (long double& v : unit) {
      if (centred) v -= sum / k;
      squares += v * v;
    }
    for (long double& v : unit) v /= std::sqrt(squares);
    return unit;
  };
  std::vector<std::vector<long double>> of_z;
  for (int j = 0; j < n; ++j) of_z.push_back(prepared(z, j));
  Values d;
  for (int i = 0; i < m; ++i) {
    const auto of_x = prepared(x, i);
    for (int j = 0; j < n; ++j) {
      long double sum = 0;
      for (int c = 0; c < k; ++c) sum += (of_x[c] - of_z[j][c]) * (of_x[c] - of_z[j][c]);
      d.push_back(static_cast<double>(sum / 2));
    }
  }
  return d;
}

// Whether errors are within the bound of docs/numerics.md plus the rounding of D to its type. `accuracy` is the kernel's, by
// default that of one chain.
template <class Row, class T = Row>
bool within(const Values& found, const Values& expected, int k, bool centred, const rigel::Accuracy& accuracy = {2, 1}) {
  constexpr bool in_double = std::is_same_v<Row, double>;
  const double u = std::numeric_limits<Row>::epsilon() / 2;
  const double a = in_double ? (centred ? 3 : 1) : 1.01, rho = in_double ? 16 + k / 16. : 1.01;
  if (found.size() != expected.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double d = expected[i];
    const double bound = (accuracy.constant + accuracy.per_term * k + k / 32. + 10) * u * d + 2 * std::sqrt(2 * d) * a * u +
                         2 * rho * rho * u * u + std::numeric_limits<T>::epsilon() * d;
    if (std::isnan(d) ? std::isnan(found[i]) : std::fabs(found[i] - d) <= bound) continue;
    MESSAGE("output ", i, " is ", found[i], ", expected ", d, " within ", bound);
    return false;
  }
  return true;
}

template <class T, class Exec, class D, class M>
Values distances(const M& metric, int m, int n, int k, const Values& x, const Values& z,
                 const rigel::CdistOptions& options = {}) {
  const auto d = support::matrix<D, Exec>(m, n);
  rigel::cdist(Exec{}, support::matrix<T, Exec>(m, k, x), support::matrix<T, Exec>(n, k, z), d, metric, options);
  return support::values(d);
}

// SciPy 1.17, scipy.spatial.distance.cdist(X, Z, …) of these rows. The first rows of X and Z are equal, and one row of Z is 0.
const Values x_small = {1, 2, 3, 4, 0, -1.5, 2, .25, 10, 0, 0, -3};
const Values z_small = {1, 2, 3, 4, -1, 0.5, 2, 2, 7, 7, -7, 0.125, 0, 0, 0, 0, 1, 2, -3, 4};
const Values of_cosine = {0.0,
                          0.15957968473727002,
                          0.9924711675944307,
                          not_a_number,
                          0.6,
                          0.7093310321948962,
                          0.5092506807949289,
                          1.803210432922084,
                          not_a_number,
                          1.5813379356102075,
                          1.0349748708391335,
                          1.5038901481753908,
                          0.4499904733317718,
                          not_a_number,
                          1.0349748708391335};
const Values of_correlation = {2.220446049250313e-16, 0.05612019255146106, 1.668032547714035,   not_a_number,
                               0.8245883961385941,    0.6174701136851519,  0.49936748867816716, 1.896216389040242,
                               not_a_number,          1.6907371561527373,  1.8865926413116156,  1.9042742967476824,
                               0.49862684290674686,   not_a_number,        1.1794445813663739};

bool near(const Values& found, const Values& expected, double tolerance) {
  bool all = found.size() == expected.size();
  for (std::size_t i = 0; all && i < found.size(); ++i)
    all = std::isnan(expected[i]) ? std::isnan(found[i]) : std::fabs(found[i] - expected[i]) <= tolerance;
  return all;
}

// Checks random rows of one type, by the chosen kernel.
template <class T, class Exec, class M>
void check_type(const M& metric, double low, double high) {
  using Row = typename M::template row<T>;
  for (const auto& [m, n, k] : {std::array{19, 33, 2}, {7, 5, 31}, {33, 17, 64}, {3, 70, 333}, {2, 3, 5000}}) {
    CAPTURE(k);
    const Values x = held<T>(random_rows(m, k, k, low, high)), z = held<T>(random_rows(n, k, k + 1, low, high));
    CHECK(
        within<Row>(distances<T, Exec, Row>(metric, m, n, k, x, z), exact(is_centred<M>, m, n, k, x, z), k, is_centred<M>));
  }
}

// X's rows turned by an angle, towards another random row.
template <class T>
Values turned(const Values& x, int m, int k, double angle) {
  const Values other = random_rows(m, k, 77);
  Values z(x.size());
  for (int i = 0; i < m; ++i) {
    double xx = 0, xo = 0, oo = 0;
    for (int c = i * k; c < (i + 1) * k; ++c) xx += x[c] * x[c], xo += x[c] * other[c];
    for (int c = i * k; c < (i + 1) * k; ++c) oo += std::pow(other[c] - xo / xx * x[c], 2);
    for (int c = i * k; c < (i + 1) * k; ++c)
      z[c] = std::cos(angle) * x[c] + std::sin(angle) * std::sqrt(xx / oo) * (other[c] - xo / xx * x[c]);
  }
  return held<T>(z);
}

}  // namespace

TEST_CASE_TEMPLATE("cosine and correlation equal SciPy's", Exec, RIGEL_TEST_SPACES) {
  constexpr double f32 = 4 * std::numeric_limits<float>::epsilon(), f64 = 4 * std::numeric_limits<double>::epsilon();
  const Values f = distances<float, Exec, float>(cosine{}, 3, 5, 4, x_small, z_small);
  const Values g = distances<double, Exec, double>(cosine{}, 3, 5, 4, x_small, z_small);
  CHECK(near(f, of_cosine, f32));
  CHECK(near(g, of_cosine, f64));
  CHECK(near(distances<float, Exec, float>(correlation{}, 3, 5, 4, x_small, z_small), of_correlation, f32));
  CHECK(near(distances<double, Exec, double>(correlation{}, 3, 5, 4, x_small, z_small), of_correlation, f64));
  CHECK(near(distances<rigel::half, Exec, double>(cosine{}, 3, 5, 4, x_small, z_small), of_cosine, f32));
  // Equal rows.
  CHECK(f[0] == 0);
  CHECK(g[0] == 0);
  // Integers, in floating point: SciPy's values of these bytes.
  const Values bytes = {0, 255, 7, 1, 2, 3, 250, 251, 252};
  CHECK(near(distances<std::uint8_t, Exec, float>(cosine{}, 3, 3, 3, bytes, bytes),
             {0, 0.44367733759813466, 0.4069642968417405, 0.44367733759813466, 0, 0.07295529637041065, 0.4069642968417405,
              0.07295529637041065, 0},
             f32));
  CHECK(near(distances<std::int64_t, Exec, double>(correlation{}, 3, 3, 3, bytes, bytes),
             {0, 0.9759029124864979, 0.9759029124864979, 0.9759029124864979, 0, 0, 0.9759029124864979, 0, 0}, f64));
}

// Numbers between which double does not tell: rows (0, 1, 3), (0, 2, 6) and (3, 1, 0) less their means are (-4, -1, 5)/3, twice that, and
// (5, -1, -4)/3, so that r = 1 and -39/42.
TEST_CASE_TEMPLATE("correlation of int64 far from 0", Exec, RIGEL_TEST_SPACES) {
  constexpr std::int64_t far = std::int64_t{1} << 60;
  const Kokkos::View<std::int64_t**, Kokkos::LayoutRight, Kokkos::HostSpace> host("x", 3, 3);
  const std::int64_t rows[3][3] = {{0, 1, 3}, {0, 2, 6}, {3, 1, 0}};
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) host(i, k) = far + rows[i][k];
  const Kokkos::View<std::int64_t**, Kokkos::LayoutRight, typename Exec::memory_space> x("x", 3, 3);
  Kokkos::deep_copy(x, host);
  const auto d = support::matrix<double, Exec>(3, 3);
  rigel::cdist(Exec(), x, x, d, correlation{});
  const double opposite = 1 + 39. / 42;
  CHECK(near(support::values(d), {0, 0, opposite, 0, 0, opposite, opposite, opposite, 0}, 0x1p-50));
}

TEST_CASE_TEMPLATE("cosine and correlation of every type, within their bound", Exec, RIGEL_TEST_SPACES) {
  check_type<float, Exec>(cosine{}, -1, 1);
  check_type<double, Exec>(cosine{}, -1, 1);
  check_type<rigel::half, Exec>(cosine{}, -4, 4);
  check_type<rigel::bfloat16, Exec>(cosine{}, -4, 4);
  check_type<std::int8_t, Exec>(cosine{}, -128, 127);
  check_type<std::int32_t, Exec>(cosine{}, -1e9, 1e9);
  check_type<float, Exec>(correlation{}, 100, 101);
  check_type<double, Exec>(correlation{}, 100, 101);
  check_type<rigel::half, Exec>(correlation{}, -4, 4);
  check_type<rigel::bfloat16, Exec>(correlation{}, -4, 4);
  check_type<std::uint8_t, Exec>(correlation{}, 0, 255);
}

TEST_CASE_TEMPLATE("cosine of nearly parallel rows, by every kernel", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 70, k = 96;
  const Values x = held<float>(random_rows(m, k, 3));
  for (const double angle : {1e-2, 1e-3, 1e-4, 1e-5}) {
    CAPTURE(angle);
    const Values z = turned<float>(x, m, k, angle);
    const Values expected = exact(false, m, m, k, x, z), of_correlation = exact(true, m, m, k, x, z);
    CHECK(expected[0] == doctest::Approx(angle * angle / 2).epsilon(0.05));
    for (const auto& info : support::kernels_on(Exec{}, "l2_squared", rigel::Scalar::f32)) {
      if (info.accumulator != rigel::Scalar::f32) continue;
      CAPTURE(info.name);
      const rigel::CdistOptions options{.precision = info.precision, .kernel = info.name};
      Values found, found_centred;
      if (!support::ran(info, [&] {
            found = distances<float, Exec, float>(cosine{}, m, m, k, x, z, options);
            found_centred = distances<float, Exec, float>(correlation{}, m, m, k, x, z, options);
          }))
        continue;
      CHECK(within<float>(found, expected, k, false, info.accuracy));
      CHECK(within<float>(found_centred, of_correlation, k, true, info.accuracy));
    }
    // Rows prepared in double give distances as accurate as rows of doubles do.
    CHECK(within<double, float>(distances<float, Exec, float>(cosine_in_double{}, m, m, k, x, z), expected, k, false));
    const Values finer = turned<double>(x, m, k, angle);
    CHECK(within<double>(distances<double, Exec, double>(cosine{}, m, m, k, x, finer), exact(false, m, m, k, x, finer), k,
                         false));
    CHECK(within<double>(distances<double, Exec, double>(correlation{}, m, m, k, x, finer), exact(true, m, m, k, x, finer),
                         k, true));
  }
}

// z = a·x + b has correlation 1 or −1 with x. The offsets take twice the digits of the spread; all numbers are exact.
TEST_CASE_TEMPLATE("correlation of affine images of a row", Exec, RIGEL_TEST_SPACES) {
  constexpr int k = 50;
  support::Random random(8);
  Values x(k), z;
  for (double& v : x) v = static_cast<double>(random.integer(-8, 8));
  for (const auto [a, b] : {std::pair{1., 0.}, {4., 0.}, {1., 1e6}, {3., -2e6}, {-1., 0.}, {-5., 1e6}})
    for (const double v : x) z.push_back(a * v + b);
  const auto check = [&]<class T>(T) {
    const double u = std::numeric_limits<T>::epsilon() / 2;
    const Values d = distances<T, Exec, T>(correlation{}, 1, 6, k, x, z);
    CHECK(d[0] == 0);
    CHECK(d[1] == 0);  // powers of two change no digit
    CHECK(d[2] <= 2 * 9 * u * u);
    CHECK(d[3] <= 2 * 9 * u * u);
    CHECK(near({d[4], d[5]}, {2, 2}, 2 * (k + 30) * u));
  };
  check(1.f);
  check(1.);
  // One row differs from 1 only in the last bits; the other is that difference, 2^52 times as large. They are parallel.
  Values near_one(k), bits(k);
  for (int c = 0; c < k; ++c) {
    const int units = c % 3 + c / 25;
    bits[c] = units;
    near_one[c] = 1 + units * 0x1p-52;
  }
  CHECK(distances<double, Exec, double>(correlation{}, 1, 1, k, near_one, bits)[0] <= 2 * 9 * 0x1p-106);
}

TEST_CASE_TEMPLATE("cosine in batches, broadcast, in every layout", Exec, RIGEL_TEST_SPACES) {
  constexpr int batches = 3, m = 19, n = 33, k = 21;
  const Values x = random_rows(batches * m, k, 11), z = random_rows(n, k, 12);
  // The same bits again, because they depend only on the numbers of a row.
  rigel::CdistOptions options{.require = rigel::Promise::reference_bits};
  Values expected;
  for (int l = 0; l < batches; ++l) {
    const Values of_batch(x.begin() + l * m * k, x.begin() + (l + 1) * m * k);
    for (const double v : distances<double, Exec, double>(correlation{}, m, n, k, of_batch, z, options))
      expected.push_back(v);
  }
  using Space = typename Exec::memory_space;
  const auto each = [](const auto& view, const auto& at) {
    const auto host = Kokkos::create_mirror_view(view);
    for (std::size_t i = 0; i < view.extent(0); ++i)
      for (std::size_t j = 0; j < view.extent(1); ++j)
        for (std::size_t c = 0; c < view.extent(2); ++c) host(i, j, c) = at(i, j, c);
    Kokkos::deep_copy(view, host);
  };
  // The batch index first, and last. All batches share Z, as a view of rank 2, transposed, or with one batch.
  const Kokkos::View<double***, Kokkos::LayoutRight, Space> x_first("x", batches, m, k), z_first("z", 1, n, k);
  const Kokkos::View<double***, Kokkos::LayoutLeft, Space> x_last("x", m, k, batches), d_last("d", m, n, batches);
  const Kokkos::View<double***, Kokkos::LayoutLeft, Space> d_first("d", batches, m, n);
  each(x_first, [&](auto l, auto i, auto c) { return x[(l * m + i) * k + c]; });
  each(x_last, [&](auto i, auto c, auto l) { return x[(l * m + i) * k + c]; });
  each(z_first, [&](auto, auto j, auto c) { return z[j * k + c]; });
  const auto z_rows = support::laid_out<double, Exec, Kokkos::LayoutStride>(n, k);
  const auto z_columns = support::laid_out<double, Exec, Kokkos::LayoutRight>(k, n);
  Values of_columns;
  for (int c = 0; c < k; ++c)
    for (int j = 0; j < n; ++j) of_columns.push_back(z[j * k + c]);
  support::upload(z_rows, z);
  support::upload(z_columns, of_columns);
  const auto read = [&](const auto& view, bool last) {
    const auto host = Kokkos::create_mirror_view(view);
    Kokkos::deep_copy(host, view);
    Values list;
    for (int l = 0; l < batches; ++l)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) list.push_back(last ? host(i, j, l) : host(l, i, j));
    Kokkos::deep_copy(view, -1.);
    return list;
  };
  rigel::cdist(Exec{}, x_first, z_first, d_first, correlation{}, options);
  CHECK(read(d_first, false) == expected);
  rigel::cdist(Exec{}, x_first, z_rows, d_first, correlation{}, options);
  CHECK(read(d_first, false) == expected);
  rigel::cdist(Exec{}, x_first, rigel::transposed(z_columns), d_first, correlation{}, options);
  CHECK(read(d_first, false) == expected);
  options.batch = rigel::Batch::last;
  rigel::cdist(Exec{}, x_last, z_rows, d_last, correlation{}, options);
  CHECK(read(d_last, true) == expected);
}

TEST_CASE_TEMPLATE("cosine and correlation of rows with themselves: 0, symmetric, prepared once", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 150, k = 65;
  const auto check = [&]<class M>(const M& metric) {
    const auto x = support::matrix<float, Exec>(m, k, random_rows(m, k, 21)), copy = support::matrix<float, Exec>(m, k);
    Kokkos::deep_copy(copy, x);
    const auto d = support::matrix<float, Exec>(m, m);
    for (const auto precision : {rigel::Precision::accumulator, rigel::Precision::promoted}) {
      rigel::cdist(Exec{}, x, x, d, metric, {.precision = precision});
      const Values of_self = support::values(d);
      rigel::cdist(Exec{}, x, copy, d, metric, {.precision = precision});
      const Values of_copy = support::values(d);
      int wrong = 0;
      for (int i = 0; i < m; ++i) {
        wrong += of_self[i * m + i] != 0 || of_copy[i * m + i] != 0;
        for (int j = 0; j < i; ++j) wrong += of_self[i * m + j] != of_self[j * m + i];
      }
      CHECK(wrong == 0);
    }
    const rigel::CdistOptions options{.kernel = "reference"};
    const std::size_t once = rigel::cdist_workspace_size(Exec{}, x, x, d, metric, {}, options);
    CHECK(once >= m * k * sizeof(float));
    CHECK(rigel::cdist_workspace_size(Exec{}, x, copy, d, metric, {}, options) == 2 * once);
  };
  check(cosine{});
  check(correlation{});
}

TEST_CASE_TEMPLATE("cosine and correlation of rows without a direction", Exec, RIGEL_TEST_SPACES) {
  const auto check = [&]<class T>(T) {
    const double largest = std::numeric_limits<T>::max(), a = static_cast<T>(0.1);
    // Rows without a direction: 0, one value repeated, infinity, NaN. Then rows that have one.
    const Values x = {0, 0,         0,        a, a, a, infinity, 1,       2,        1,      not_a_number,
                      2, -infinity, infinity, 0, 1, 2, 4,        largest, -largest, largest};
    constexpr double n = not_a_number;
    const Values d = distances<T, Exec, T>(cosine{}, 7, 2, 3, x, {1, 2, 4, 1, 1, 1});
    CHECK(near(d,
               {n, n, 1 - 7 / std::sqrt(63), 0, n, n, n, n, n, n, 0, 1 - 7 / std::sqrt(63), 1 - 3 / std::sqrt(63), 2. / 3},
               8 * std::numeric_limits<T>::epsilon()));
    const Values e = distances<T, Exec, T>(correlation{}, 7, 2, 3, x, {1, 2, 4, 1, 1, 1});
    CHECK(near(e, {n, n, n, n, n, n, n, n, n, n, 0, n, 1 - 1 / std::sqrt(28), n}, 8 * std::numeric_limits<T>::epsilon()));
  };
  check(1.f);
  check(1.);
  // A row of one coordinate has its sign as direction; less its mean it is 0. An empty row has no direction.
  CHECK(near(distances<float, Exec, float>(cosine{}, 2, 2, 1, {3, -2}, {5, 0}), {0, not_a_number, 2, not_a_number},
             4 * std::numeric_limits<float>::epsilon()));
  CHECK(support::same(distances<float, Exec, float>(correlation{}, 1, 1, 1, {3}, {5}), {not_a_number}));
  CHECK(support::same(distances<float, Exec, float>(cosine{}, 1, 2, 0, {}, {}), {not_a_number, not_a_number}));
  CHECK(distances<float, Exec, float>(cosine{}, 1, 1, 0, {}, {}, {.skip_epilogue = true}) == Values{0});
}

// Scaling by powers of two changes no digit, even if squares would overflow or vanish. All distances are 0, or those of the
// unscaled rows.
TEST_CASE_TEMPLATE("cosine and correlation of the largest and the smallest numbers", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 5, k = 37;
  const auto check = [&]<class T, class M>(T, const M& metric, std::initializer_list<int> exponents) {
    const Values x = held<rigel::half>(random_rows(m, k, 31, 0.5, 1)), z = held<T>(random_rows(m, k, 32));
    const Values expected = distances<T, Exec, T>(metric, m, m, k, x, z);
    for (const int exponent : exponents) {
      CAPTURE(exponent);
      Values scaled = x;
      for (double& v : scaled) v = std::ldexp(v, exponent);
      CHECK(distances<T, Exec, T>(metric, m, m, k, scaled, z) == expected);
      const Values d = distances<T, Exec, T>(metric, m, m, k, scaled, x);
      for (int i = 0; i < m; ++i) CHECK(d[i * m + i] == 0);
    }
  };
  for (const int exponent : {-137, -100, -30, 100, 127}) {
    check(1.f, cosine{}, {exponent});
    check(1.f, correlation{}, {exponent});
  }
  for (const int exponent : {-1062, -1000, -500, -449, 500, 501, 1000, 1023}) {
    check(1., cosine{}, {exponent});
    check(1., correlation{}, {exponent});
  }
}

// Opposite rows: roundings do not take a distance beyond 2, nor a cosine below −1, so that arccos takes it.
TEST_CASE_TEMPLATE("cosine and correlation from 0 to 2", Exec, RIGEL_TEST_SPACES) {
  const auto check = [&]<class T, class M>(T, const M& metric, int k) {
    CAPTURE(k);
    constexpr int m = 40;
    Values x = held<T>(random_rows(m, k, static_cast<std::uint64_t>(k))), z = x;
    if (k == 2) x = {1, 5, 3, 5, 7, 9}, z = x;
    for (double& v : z) v = -v;
    const int rows = static_cast<int>(x.size()) / k;
    const Values d = distances<T, Exec, T>(metric, rows, rows, k, x, z);
    CHECK(std::all_of(d.begin(), d.end(), [](double v) { return v >= 0 && v <= 2; }));
    const auto c = support::matrix<T, Exec>(rows, rows);
    rigel::kernel_matrix(Exec(), support::matrix<T, Exec>(rows, k, x), support::matrix<T, Exec>(rows, k, z), c, metric,
                         rigel::kernel::cosine{});
    const Values cosines = support::values(c);
    CHECK(std::all_of(cosines.begin(), cosines.end(), [](double v) { return v >= -1 && v <= 1; }));
    for (int i = 0; i < rows; ++i)
      CHECK(std::fabs(cosines[i * rows + i] + 1) <= (2.0 * k + 20) * std::numeric_limits<T>::epsilon());
  };
  for (const int k : {2, 3, 17, 130}) {
    check(1.f, cosine{}, k);
    check(1., cosine{}, k);
    check(1.f, correlation{}, k);
    check(1., correlation{}, k);
  }
  CHECK(support::same(distances<double, Exec, double>(cosine{}, 1, 1, 2, {0, 0}, {1, 2}), {not_a_number}));
}

// Every execution space is compared with the first host space, so all of them have the same bits.
TEST_CASE_TEMPLATE("prepared rows have the same bits everywhere and in any company", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 20, n = 9;
  using Host = Kokkos::DefaultHostExecutionSpace;
  for (const int k : {5, 33, 700, 2049, 9000}) {
    CAPTURE(k);
    const Values x = random_rows(m, k, k, 0, 3), z = random_rows(n, k, k + 1, 0, 3);
    const rigel::CdistOptions options{.require = rigel::Promise::reference_bits};
    const auto check = [&]<class T, class M>(T, const M& metric) {
      const Values d = distances<T, Exec, T>(metric, m, n, k, x, z, options);
      CHECK(d == distances<T, Host, T>(metric, m, n, k, x, z, {.kernel = "reference"}));
      const Values row(x.begin() + 7 * k, x.begin() + 8 * k);
      CHECK(distances<T, Exec, T>(metric, 1, n, k, row, z, options) == Values(d.begin() + 7 * n, d.begin() + 8 * n));
    };
    check(1.f, correlation{});
    check(1., correlation{});
    check(1., cosine{});
  }
}

TEST_CASE_TEMPLATE("cosine with epilogues; unit rows for another metric", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<double, Exec>(3, 4, x_small), z = support::matrix<double, Exec>(5, 4, z_small);
  const auto d = support::matrix<double, Exec>(3, 5);
  Values bell, products;
  for (const double v : of_cosine) bell.push_back(std::exp(-v / 2)), products.push_back(1 - v);
  // The metric has no step of its own that could be skipped.
  rigel::cdist(Exec{}, x, z, d, cosine{}, {.skip_epilogue = true});
  CHECK(near(support::values(d), of_cosine, 1e-14));
  rigel::cdist(Exec{}, x, z, d, cosine{}, rigel::epilogue::gaussian(1));
  CHECK(near(support::values(d), bell, 1e-14));
  rigel::cdist(Exec{}, x, z, d, cosine{}, rigel::epilogue::functor(rigel::epilogue::gaussian(1)));
  CHECK(near(support::values(d), bell, 1e-14));
  rigel::cdist(Exec{}, x, z, d, cosine_similarity{});
  CHECK(near(support::values(d), products, 1e-14));
}

TEST_CASE_TEMPLATE("prepared rows: workspace, labels, explanation", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto x = support::matrix<float, Exec>(33, 40, random_rows(33, 40, 1), "x"),
             z = support::matrix<float, Exec>(35, 40, random_rows(35, 40, 2), "z"),
             d = support::matrix<float, Exec>(33, 35, Values(33 * 35, 7.), "d");
  for (const auto precision : {rigel::Precision::accumulator, rigel::Precision::promoted}) {
    rigel::CdistOptions options{.precision = precision};
    const std::size_t bytes = rigel::cdist_workspace_size(exec, x, z, d, cosine{}, {}, options);
    CHECK(bytes >= (33 + 35) * 40 * sizeof(float));
    const Kokkos::View<char*, typename Exec::memory_space> memory("workspace", bytes + 256);
    char* const aligned = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256);
    {
      // The call is refused before anything is enqueued.
      const support::Recorder recorder;
      options.workspace = {aligned, bytes - 1};
      CHECK(support::caught([&] { rigel::cdist(exec, x, z, d, cosine{}, options); }).message ==
            "cdist: the workspace has " + std::to_string(bytes - 1) + " bytes, expected " + std::to_string(bytes));
      options.workspace = {aligned + 16, bytes};
      CHECK(support::caught([&] { rigel::cdist(exec, x, z, d, cosine{}, options); }).message ==
            "cdist: the workspace is not aligned to 256 bytes");
      options.workspace = {};
      options.kernel = "none";
      CHECK(support::caught([&] { rigel::cdist(exec, x, z, d, cosine{}, options); }).code == rigel::Code::not_found);
      CHECK(recorder.events().kernels.empty());
      CHECK(recorder.events().allocations.empty());
    }
    CHECK(support::values(d) == Values(33 * 35, 7.));
    options.kernel = {};
    const auto check = [&](std::size_t leases) {
      support::Recorder recorder;
      rigel::cdist(exec, x, z, d, cosine{}, options);
      exec.fence();
      const auto events = recorder.events();
      CHECK(events.allocations == std::vector<std::string>(leases, "rigel::workspace"));
      REQUIRE(events.kernels.size() >= 2);
      CHECK(events.kernels[0] == "rigel::cdist/rows");
      CHECK(events.kernels[1].starts_with("rigel::contract/"));
      REQUIRE(events.regions.size() == 2);
      CHECK(events.regions[0] == "rigel::cdist");
      CHECK(events.open_regions == 0);
      const Values found = support::values(d);
      Kokkos::deep_copy(d, 7);
      return found;
    };
    options.workspace = {aligned, bytes};
    rigel::cdist(exec, x, z, d, cosine{}, options);  // Kokkos may allocate its scratch memory here
    const Values own = check(0);
    options.workspace = {};
    rigel::cdist(exec, x, z, d, cosine{}, options);       // the pool may grow here
    CHECK(check(support::on_host<Exec> ? 0 : 1) == own);  // on CUDA the tools see each lease
  }
  const std::string text = rigel::explain_cdist(exec, x, z, d, correlation{});
  CHECK(text.starts_with("rows prepared: centred, f32, 11008 bytes of workspace\ncdist l2_squared f32, 33x35x40"));
  // Nothing to do.
  const auto nothing = support::matrix<float, Exec>(0, 40), no_rows = support::matrix<float, Exec>(0, 35);
  const support::Recorder recorder;
  CHECK(rigel::cdist_workspace_size(exec, nothing, z, no_rows, cosine{}) == 0);
  rigel::cdist(exec, nothing, z, no_rows, cosine{});
  CHECK(recorder.events().kernels.empty());
}

TEST_CASE("cosine says what is wrong") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const auto x = support::matrix<float, Exec>(4, 6, {}, "x"), z = support::matrix<float, Exec>(5, 6, {}, "z"),
             other = support::matrix<float, Exec>(5, 7, {}, "other"), d = support::matrix<float, Exec>(4, 5, {}, "d"),
             square = support::matrix<float, Exec>(6, 6, {}, "square"),
             tall = support::matrix<float, Exec>(5, 6, {}, "tall");
  CHECK(support::caught([&] { rigel::cdist(exec, x, other, d, cosine{}); }).message ==
        "cdist: Z 'other' is 5x7, expected 6 columns to match X 'x' 4x6");
  CHECK(support::caught([&] { rigel::cdist(exec, x, x, d, cosine{}); }).message ==
        "cdist: D 'd' is 4x5, expected 4 columns to match the rows of Z 'x' 4x6");
  CHECK(support::caught([&] { rigel::cdist(exec, square, square, square, cosine{}); }).message ==
        "cdist: D 'square' 6x6 overlaps X 'square' 6x6, expected distinct elements");
  const auto top = Kokkos::subview(tall, std::pair{0, 4}, std::pair{0, 5});
  CHECK(support::caught([&] { rigel::cdist(exec, x, tall, top, cosine{}); }).message ==
        "cdist: D 'tall' 4x5 overlaps Z 'tall' 5x6, expected distinct elements");
  // A workspace in which X lies, whose rows would be overwritten while they are read.
  const Kokkos::View<char*, typename Exec::memory_space> shared("shared", 4096);
  auto* const first = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(shared.data()) + 255) / 256 * 256);
  const Kokkos::View<const float**, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged> inside(
      reinterpret_cast<const float*>(first), 4, 6);
  CHECK(support::caught([&] {
          rigel::cdist(exec, inside, tall, d, cosine{}, {.workspace = {first, 3840}});
        }).lacks({"cdist: the workspace", "overlaps X", "4x6"}) == "");
}
