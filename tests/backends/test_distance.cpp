// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cdist(): SciPy's values on a small example, the formulas in double on larger ones, options and messages.
#include "../support/compare.hpp"
#include "../support/error.hpp"
#include "../support/matrix.hpp"
#include "../support/random.hpp"
#include "../support/spaces.hpp"

#include <rigel/distance.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
namespace metric = rigel::metric;

const std::vector<double> x_values = {1, 2, 3, 4, 0, -1.5, 2, .25, 10, 0, 0, -3};
const std::vector<double> z_values = {1, 2, 3, 4, -1, 0.5, 2, 2, 7, 7, -7, 0.125, 0, 0, 0, 0, 1, 2, -3, 4};

// SciPy 1.17, scipy.spatial.distance.cdist(X, Z, …) of the rows above.
const std::vector<double> cityblock = {0.0,  6.5,   24.875, 10.0, 6.0,    9.25, 4.75, 24.625,
                                       3.75, 13.25, 21.0,   18.5, 20.125, 13.0, 21.0};
const std::vector<double> euclidean = {0.0,
                                       3.3541019662496847,
                                       13.267088037696894,
                                       5.477225575051661,
                                       6.0,
                                       5.320949163448191,
                                       2.839454172900137,
                                       14.222011988463517,
                                       2.5124689052802225,
                                       7.232738070744716,
                                       11.958260743101398,
                                       12.257650672131263,
                                       10.805814407068077,
                                       10.44030650891055,
                                       11.958260743101398};
const std::vector<double> squared = {0.0,    11.25,   176.015625, 30.0,   36.0,       28.3125, 8.0625, 202.265625,
                                     6.3125, 52.3125, 143.0,      150.25, 116.765625, 109.0,   143.0};
const std::vector<double> chebyshev = {0.0, 2.0, 10.0, 4.0, 6.0, 3.75, 2.0, 9.0, 2.0, 5.0, 9.0, 11.0, 7.0, 10.0, 9.0};
// By hand.
const std::vector<double> inner = {30, 14, .5, 0, 12, 4, 3.75, -24.46875, 0, -8, -2, -16, 69.625, 0, -2};
const std::vector<double> p_1_3 = {0.0,
                                   4.768320427708198,
                                   18.419922868903885,
                                   7.487050309871409,
                                   5.999999999999999,
                                   7.0523345430195095,
                                   3.727857094037768,
                                   19.066068865231667,
                                   3.082691930627686,
                                   9.931420289047,
                                   15.940795494067647,
                                   14.916651742299376,
                                   14.95511681187641,
                                   11.572299226093275,
                                   15.940795494067647};
const std::vector<double> p_half = {0.0,
                                    25.53454722255107,
                                    96.36047894847512,
                                    37.7765657052182,
                                    5.999999999999999,
                                    33.72496983905743,
                                    13.965835822584722,
                                    79.47331402122039,
                                    9.85306004890244,
                                    49.60931936426079,
                                    77.29953973506532,
                                    58.89047723416676,
                                    77.28731407065101,
                                    23.954451150103324,
                                    77.29953973506532};
const std::vector<double> p_3 = {0.0,
                                 2.7312777856406987,
                                 11.184719667376156,
                                 4.641588833612778,
                                 5.999999999999999,
                                 4.6043024490803,
                                 2.4305907780232054,
                                 11.902278012037241,
                                 2.25,
                                 6.05149542979873,
                                 10.344651721148189,
                                 11.355145900262963,
                                 9.059350867783435,
                                 10.089201935541267,
                                 10.344651721148189};
const std::vector<double> hamming = {0.0, 1.0, 1.0, 1.0, 0.25, 1.0, 0.75, 1.0, 0.75, 1.0, 1.0, 1.0, 1.0, 0.5, 1.0};

// The largest |found − expected|, relative to `expected` if that is not 0.
double error_of(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double e = std::abs(found[i] - expected[i]) / (expected[i] == 0 ? 1 : std::abs(expected[i]));
    worst = std::isnan(e) ? infinite : std::max(worst, e);
  }
  return worst;
}

template <class T, class Exec, class M>
std::vector<double> small(const M& metric, const rigel::CdistOptions& options = {}) {
  const auto x = support::matrix<T, Exec>(3, 4, x_values, "x");
  const auto z = support::matrix<T, Exec>(5, 4, z_values, "z");
  const auto d = support::matrix<T, Exec>(3, 5, {}, "d");
  rigel::cdist(Exec(), x, z, d, metric, options);
  return support::values(d);
}

// Four powers, three sums and a root, each within an ulp or two of its type. The root scales errors by 1/p, which doubles them
// for p = 1/2.
template <class T>
constexpr double power_tolerance = 32 * std::numeric_limits<T>::epsilon();

template <class T, class Exec>
void against_scipy() {
  // All inputs are small multiples of 1/8: sums and squares are exact, a root rounds once.
  CHECK(small<T, Exec>(metric::manhattan{}) == cityblock);
  CHECK(small<T, Exec>(metric::squared_euclidean{}) == squared);
  CHECK(small<T, Exec>(metric::chebyshev{}) == chebyshev);
  CHECK(small<T, Exec>(metric::inner_product{}) == inner);
  CHECK(small<T, Exec>(metric::hamming{}) == hamming);
  CHECK(error_of(small<T, Exec>(metric::euclidean{}), euclidean) <= 2 * std::numeric_limits<T>::epsilon());
  CHECK(small<T, Exec>(metric::euclidean{}, {.skip_epilogue = true}) == squared);
  CHECK(small<T, Exec>(metric::minkowski{1}) == cityblock);
  CHECK(small<T, Exec>(metric::minkowski{2}) == small<T, Exec>(metric::euclidean{}));
  CHECK(small<T, Exec>(metric::minkowski{infinite}) == chebyshev);
  CHECK(error_of(small<T, Exec>(metric::minkowski{1.3}), p_1_3) <= power_tolerance<T>);
  CHECK(error_of(small<T, Exec>(metric::minkowski{0.5}), p_half) <= power_tolerance<T>);
  CHECK(error_of(small<T, Exec>(metric::minkowski{3}), p_3) <= power_tolerance<T>);
  std::vector<double> sums;
  for (const double v : p_3) sums.push_back(v * v * v);
  CHECK(error_of(small<T, Exec>(metric::minkowski{3}, {.skip_epilogue = true}), sums) <= power_tolerance<T>);
}

// 1 / (1 + v), plus the row's value in a view.
template <class View>
struct similarity {
  View offset;
  KOKKOS_FUNCTION double operator()(double v, std::int64_t m, std::int64_t, std::int64_t) const {
    return offset(m) + 1 / (1 + v);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("cdist equals SciPy's", Exec, RIGEL_TEST_SPACES) {
  against_scipy<double, Exec>();
  against_scipy<float, Exec>();
}

TEST_CASE_TEMPLATE("cdist of 16-bit floats and of integers", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<rigel::half, Exec>(3, 4, x_values);
  const auto z = support::matrix<rigel::half, Exec>(5, 4, z_values);
  const auto d = support::matrix<float, Exec>(3, 5);
  rigel::cdist(Exec(), x, z, d, metric::manhattan{});
  CHECK(support::values(d) == cityblock);
  rigel::cdist(Exec(), x, z, d, metric::minkowski{1.3});
  CHECK(error_of(support::values(d), p_1_3) <= power_tolerance<float>);

  const auto u = support::matrix<std::uint8_t, Exec>(2, 3, {0, 255, 7, 1, 2, 3}, "u");
  const auto sums = support::matrix<std::int32_t, Exec>(2, 2, {}, "sums");
  const auto roots = support::matrix<double, Exec>(2, 2);
  rigel::cdist(Exec(), u, u, sums, metric::manhattan{});
  CHECK(support::values(sums) == std::vector<double>{0, 258, 258, 0});
  rigel::cdist(Exec(), u, u, roots, metric::euclidean{});
  const double root = std::sqrt(1. + 253. * 253. + 16.);
  CHECK(support::values(roots) == std::vector<double>{0, root, root, 0});
  CHECK(support::caught([&] { rigel::cdist(Exec(), u, u, sums, metric::euclidean{}); }).message ==
        "cdist: D 'sums' holds integers, expected floating-point numbers for this metric, or options.skip_epilogue");
}

template <class T, class Exec>
auto integer_matrix(int columns, const std::vector<T>& values) {
  const auto rows = static_cast<int>(values.size()) / columns;
  const Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space> m("integers", rows, columns);
  support::copy_in<typename Exec::memory_space::execution_space>(m.data(), values.data(), values.size() * sizeof(T));
  return m;
}

// A difference of int64 has up to 65 bits, of which double need not hold even the numbers: between 2^60 and 2^61 every 256th.
TEST_CASE_TEMPLATE("cdist of int64: differences are exact and rounded once", Exec, RIGEL_TEST_SPACES) {
  using Values = std::vector<double>;
  const auto of = [](const std::vector<std::int64_t>& rows, int columns, const auto& metric,
                     const rigel::CdistOptions& options = {}) {
    const auto x = integer_matrix<std::int64_t, Exec>(columns, rows);
    const auto m = static_cast<int>(x.extent(0));
    const auto d = support::matrix<double, Exec>(m, m);
    const auto differ = support::matrix<bool, Exec>(m, m);
    rigel::cdist(Exec(), x, x, d, metric, options);
    rigel::cdist(Exec(), x, x, differ, metric, {.kernel = options.kernel});
    const Values found = support::values(d);
    Values expected;
    for (const double v : found) expected.push_back(v != 0);
    CHECK(support::values(differ) == expected);
    return found;
  };
  constexpr std::int64_t far = std::int64_t{1} << 60, least = std::numeric_limits<std::int64_t>::min(),
                         most = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> one = {0, far, far + 1}, limits = {least, most}, two = {least, far, most, far + 3};
  const auto near = [](double v) { return Values{0, v, v, v, 0, 1, v, 1, 0}; };
  for (const char* kernel : {"", "reference", "portable", "host"}) {
    if (kernel == std::string("host") && rigel::detail::space_of<Exec> == rigel::Space::cuda) continue;
    CAPTURE(kernel);
    const rigel::CdistOptions options{.kernel = kernel};
    CHECK(of(one, 1, metric::manhattan{}, options) == near(0x1p60));
    CHECK(of(one, 1, metric::squared_euclidean{}, options) == near(0x1p120));
    CHECK(of(one, 1, metric::euclidean{}, options) == near(0x1p60));
    CHECK(of(one, 1, metric::chebyshev{}, options) == near(0x1p60));
    CHECK(of(one, 1, metric::hamming{}, options) == near(1));
    for (const double p : {1., 2., infinite}) CHECK(of(one, 1, metric::minkowski{p}, options) == near(0x1p60));
    CHECK(error_of(of(one, 1, metric::minkowski{3}, options), near(0x1p60)) <= power_tolerance<double>);
    // 2^64 - 1, rounded; with another coordinate whose difference is 3.
    CHECK(of(limits, 1, metric::manhattan{}, options) == Values{0, 0x1p64, 0x1p64, 0});
    CHECK(of(limits, 1, metric::squared_euclidean{}, options) == Values{0, 0x1p128, 0x1p128, 0});
    CHECK(of(limits, 1, metric::euclidean{}, options) == Values{0, 0x1p64, 0x1p64, 0});
    CHECK(of(limits, 1, metric::chebyshev{}, options) == Values{0, 0x1p64, 0x1p64, 0});
    CHECK(of(limits, 1, metric::hamming{}, options) == Values{0, 1, 1, 0});
    CHECK(error_of(of(limits, 1, metric::minkowski{0.5}, options), {0, 0x1p64, 0x1p64, 0}) <= power_tolerance<double>);
    CHECK(of(two, 2, metric::hamming{}, options) == Values{0, 1, 1, 0});
    CHECK(of(two, 2, metric::manhattan{}, options) == Values{0, 0x1p64, 0x1p64, 0});
  }
  CHECK(of(one, 1, metric::manhattan{}, {.require = rigel::Promise::batch_invariant}) == near(0x1p60));
  // 255/256 of the pairs differ by less than the spacing of doubles.
  std::vector<std::int64_t> line;
  for (int i = 0; i < 70; ++i) line.push_back(far + i);
  Values expected;
  for (int i = 0; i < 70; ++i)
    for (int j = 0; j < 70; ++j) expected.push_back(std::abs(i - j));
  CHECK(of(line, 1, metric::euclidean{}) == expected);
}

// The bound of docs/numerics.md for a sum of terms that are rounded once, and a root; the largest difference is rounded once.
TEST_CASE_TEMPLATE("cdist of random int64", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 37, n = 75, k = 19;
  constexpr double u = 0x1p-53;
  support::Random random(5);
  const auto numbers = [&](int count) {
    std::vector<std::int64_t> all;
    for (int i = 0; i < count; ++i) {
      const auto high = static_cast<std::int64_t>(random.uniform(-0x1p31, 0x1p31)),
                 low = static_cast<std::int64_t>(random.uniform(0, 0x1p32));
      all.push_back(i % 3 == 0 ? high * (std::int64_t{1} << 32) + low : (std::int64_t{1} << 61) + low % 1000);
    }
    return all;
  };
  const auto x_numbers = numbers(m * k), z_numbers = numbers(n * k);
  const auto x = integer_matrix<std::int64_t, Exec>(k, x_numbers), z = integer_matrix<std::int64_t, Exec>(k, z_numbers);
  const auto d = support::matrix<double, Exec>(m, n);
  const auto check = [&](const auto& metric, double bound, const rigel::CdistOptions& options, const auto& distance) {
    rigel::cdist(Exec(), x, z, d, metric, options);
    const auto found = support::values(d);
    double worst = 0;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        long double sum = 0, largest = 0;
        for (int c = 0; c < k; ++c) {
          const std::int64_t a = x_numbers[i * k + c], b = z_numbers[j * k + c];
          const auto difference = static_cast<long double>(static_cast<std::uint64_t>(a < b ? b : a) -
                                                           static_cast<std::uint64_t>(a < b ? a : b));
          sum += distance(difference);
          largest = std::max(largest, difference);
        }
        const long double expected = bound == 0 ? static_cast<double>(largest) : sum;
        worst = support::larger(worst, static_cast<double>(std::abs(found[i * n + j] - expected) / expected));
      }
    CHECK(worst <= bound);
  };
  for (const char* kernel : {"", "reference", "portable", "host"}) {
    if (kernel == std::string("host") && rigel::detail::space_of<Exec> == rigel::Space::cuda) continue;
    CAPTURE(kernel);
    const rigel::CdistOptions options{.kernel = kernel};
    check(metric::manhattan{}, (2 + k) * u, options, [](long double t) { return t; });
    check(metric::squared_euclidean{}, (2 + k) * u, options, [](long double t) { return t * t; });
    check(metric::chebyshev{}, 0, options, [](long double t) { return t; });
    check(metric::minkowski{3}, (2 + k + 24) * u, {.skip_epilogue = true, .kernel = kernel},
          [](long double t) { return t * t * t; });
  }
}

// Bytes take any p, for any number of columns: (Σ_k 2^3)^(1/3) = 2·K^(1/3).
TEST_CASE_TEMPLATE("cdist: minkowski of integers takes any p", Exec, RIGEL_TEST_SPACES) {
  const auto check = [&]<class T>(T) {
    for (const int k : {0, 1, 33025, 33026}) {
      CAPTURE(k);
      const auto x = support::matrix<T, Exec>(1, k, std::vector<double>(k, 5), "x"),
                 z = support::matrix<T, Exec>(1, k, std::vector<double>(k, 3), "z");
      const auto d = support::matrix<double, Exec>(1, 1);
      const auto sums = support::matrix<std::int64_t, Exec>(1, 1, {}, "sums");
      rigel::cdist(Exec(), x, z, d, metric::minkowski{3});
      CHECK(error_of(support::values(d), {2 * std::cbrt(k)}) <= k * 0x1p-53 + power_tolerance<double>);
      rigel::cdist(Exec(), x, z, d, metric::minkowski{3}, {.skip_epilogue = true});
      CHECK(error_of(support::values(d), {8. * k}) <= power_tolerance<double>);
      const auto caught = support::caught([&] { rigel::cdist(Exec(), x, z, sums, metric::minkowski{3}); });
      CHECK(caught.code == rigel::Code::unsupported);
      CHECK(caught.lacks({"minkowski's p is 3", "expected 1, 2 or infinity for a D of integers"}) == "");
      // Sums of p = 1 and maxima fit into integers where squares do not.
      rigel::cdist(Exec(), x, z, sums, metric::minkowski{1});
      CHECK(support::values(sums)[0] == 2 * k);
      rigel::cdist(Exec(), x, z, sums, metric::minkowski{infinite});
      CHECK(support::values(sums)[0] == (k > 0 ? 2 : 0));
      CHECK_THROWS_AS(rigel::cdist(Exec(), x, z, d, metric::minkowski{-1.}), rigel::Error);
    }
  };
  check(std::int8_t{});
  check(std::uint8_t{});
  check(std::int32_t{});
  check(std::int64_t{});
}

// Distances of integers whose differences, squares or sums do not fit into their type.
TEST_CASE_TEMPLATE("cdist of large integers", Exec, RIGEL_TEST_SPACES) {
  const auto of = [&]<class T>(const std::vector<T>& x, const std::vector<T>& z, const auto& metric) {
    const int k = static_cast<int>(x.size());
    const Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space> a("x", 1, k), b("z", 1, k);
    support::copy_in<typename Exec::memory_space::execution_space>(a.data(), x.data(), x.size() * sizeof(T));
    support::copy_in<typename Exec::memory_space::execution_space>(b.data(), z.data(), z.size() * sizeof(T));
    const auto d = support::matrix<double, Exec>(1, 1);
    rigel::cdist(Exec(), a, b, d, metric);
    return support::values(d)[0];
  };
  using I32 = std::vector<std::int32_t>;
  using I64 = std::vector<std::int64_t>;
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min(), most = std::numeric_limits<std::int32_t>::max();
  for (const std::int32_t v : {5, 50000, 65536, 70000, most}) {
    CHECK(of(I32{v}, I32{0}, metric::euclidean{}) == v);
    CHECK(of(I32{v}, I32{0}, metric::minkowski{2}) == v);
  }
  CHECK(of(I32{most, 0}, I32{least, 0}, metric::euclidean{}) == 0x1p32 - 1);
  CHECK(of(I32{most, 5}, I32{least, 7}, metric::chebyshev{}) == 0x1p32 - 1);
  CHECK(of(I32{most, most}, I32{least, least}, metric::manhattan{}) == 2 * (0x1p32 - 1));
  CHECK(of(I32{3, 4}, I32{0, 0}, metric::squared_euclidean{}) == 25);
  CHECK(of(I32{100000, 0}, I32{0, 0}, metric::squared_euclidean{}) == 1e10);
  CHECK(of(I32{3, 5}, I32{3, 6}, metric::hamming{}) == 0.5);
  CHECK(of(I32{most}, I32{least}, metric::squared_euclidean{}) == 0x1p64 - 0x1p33);  // + 1, rounded
  CHECK(of(I32{most}, I32{least}, metric::hamming{}) == 1);
  // Neighbours far from 0 keep their digits.
  constexpr std::int64_t far = std::int64_t{1} << 60, limit = std::numeric_limits<std::int64_t>::max();
  CHECK(of(I64{far, far}, I64{far + 3, far - 4}, metric::euclidean{}) == 5);
  CHECK(of(I64{limit}, I64{-limit - 1}, metric::chebyshev{}) == 0x1p64);
  CHECK(of(I64{limit}, I64{-limit - 1}, metric::euclidean{}) == 0x1p64);
  CHECK(of(I64{limit, 1}, I64{-limit, 1}, metric::manhattan{}) == 0x1p64);
  CHECK(of(I64{far, far + 1}, I64{far, far}, metric::hamming{}) == 0.5);

  // Into integers sums stay integers.
  const auto x = support::matrix<std::int32_t, Exec>(2, 2, {3, 4, 0, 0}), d = support::matrix<std::int32_t, Exec>(2, 2);
  rigel::cdist(Exec(), x, x, d, metric::squared_euclidean{});
  CHECK(support::values(d) == std::vector<double>{0, 25, 25, 0});
  const auto r = support::matrix<float, Exec>(2, 2);
  CHECK(rigel::explain_cdist(Exec(), x, x, r, metric::euclidean{}).starts_with("rows prepared: widened, f64, "));
}

TEST_CASE_TEMPLATE("cdist of many columns of bytes", Exec, RIGEL_TEST_SPACES) {
  const auto check = [&]<class T>(T, double low, double high) {
    for (const int k : {33025, 33026, 40000}) {
      CAPTURE(k);
      const auto x = support::matrix<T, Exec>(1, k, std::vector<double>(k, high)),
                 z = support::matrix<T, Exec>(1, k, std::vector<double>(k, low));
      const auto d = support::matrix<double, Exec>(1, 1);
      const auto sums = support::matrix<std::int64_t, Exec>(1, 1);
      rigel::cdist(Exec(), x, z, d, metric::squared_euclidean{});
      CHECK(support::values(d)[0] == 65025. * k);
      rigel::cdist(Exec(), x, z, d, metric::euclidean{});
      CHECK(support::values(d)[0] == std::sqrt(65025. * k));
      const auto caught = support::caught([&] { rigel::cdist(Exec(), x, z, sums, metric::squared_euclidean{}); });
      if (k > 33025) {
        CHECK(caught.code == rigel::Code::unsupported);
        CHECK(caught.lacks({"cdist: X 'matrix' has", std::to_string(k).c_str(), "expected at most 33025",
                            "integers of D 'matrix'"}) == "");
      } else {
        CHECK(caught.code == rigel::Code::ok);
        CHECK(support::values(sums)[0] == 65025. * k);
      }
    }
  };
  check(std::uint8_t{}, 0, 255);
  check(std::int8_t{}, -128, 127);
}

// More differences than a float counts; one number in memory serves all columns.
TEST_CASE_TEMPLATE("cdist counts more than 2^24 differences", Exec, RIGEL_TEST_SPACES) {
  constexpr std::int64_t k = (std::int64_t{1} << 24) + 3;
  const auto count = [&](double x, double z, std::int64_t columns) {
    using View = Kokkos::View<const float**, Kokkos::LayoutStride, typename Exec::memory_space>;
    const auto a = support::matrix<float, Exec>(1, 1, {x}), b = support::matrix<float, Exec>(1, 1, {z});
    const Kokkos::LayoutStride layout(1, 1, static_cast<std::size_t>(columns), 0);
    const auto d = support::matrix<double, Exec>(1, 1);
    rigel::cdist(Exec(), View(a.data(), layout), View(b.data(), layout), d, metric::hamming{}, {.skip_epilogue = true});
    return support::values(d)[0];
  };
  CHECK(count(1, 2, k) == static_cast<double>(k));
  CHECK(count(std::nan(""), 2, k) == static_cast<double>(k));
  CHECK(count(-0., 0, k) == 0);
  CHECK(count(1, 2, k - 3) == 0x1p24);
  const auto words = support::matrix<std::uint64_t, Exec>(1, 1, {1});
  using Words = Kokkos::View<const std::uint64_t**, Kokkos::LayoutStride, typename Exec::memory_space>;
  const Words many(words.data(), Kokkos::LayoutStride(1, 1, std::size_t{1} << 25, 0));
  const auto d = support::matrix<double, Exec>(1, 1);
  for (const auto& caught : {support::caught([&] { rigel::cdist(Exec(), many, many, d, metric::bit_hamming{}); }),
                             support::caught([&] { rigel::cdist(Exec(), many, many, d, metric::bit_jaccard{}); })}) {
    CHECK(caught.code == rigel::Code::unsupported);
    CHECK(caught.lacks({"X has 33554432 words of 64 bits", "expected at most 33554431"}) == "");
  }
}

TEST_CASE_TEMPLATE("cdist in batches, broadcast, in every layout", Exec, RIGEL_TEST_SPACES) {
  constexpr int batches = 3, m = 19, n = 33, k = 7;
  using Space = typename Exec::memory_space;
  support::Random random(11);
  const Kokkos::View<double***, Kokkos::LayoutRight, Space> x("x", batches, m, k);
  const Kokkos::View<double**, Kokkos::LayoutLeft, Space> z("z", k, n);  // transposed below
  const Kokkos::View<double***, Kokkos::LayoutLeft, Space> d("d", batches, m, n);
  const auto x_host = Kokkos::create_mirror_view(x);
  const auto z_host = Kokkos::create_mirror_view(z);
  const auto d_host = Kokkos::create_mirror_view(d);
  for (int l = 0; l < batches; ++l)
    for (int i = 0; i < m; ++i)
      for (int c = 0; c < k; ++c) x_host(l, i, c) = random.uniform(-1, 1);
  for (int j = 0; j < n; ++j)
    for (int c = 0; c < k; ++c) z_host(c, j) = random.uniform(-1, 1);
  Kokkos::deep_copy(x, x_host);
  Kokkos::deep_copy(z, z_host);
  for (const double p : {0.7, 1.0, 1.5, 2.0, 4.0}) {
    CAPTURE(p);
    rigel::cdist(Exec(), x, rigel::transposed(z), d, metric::minkowski{p});
    Kokkos::deep_copy(d_host, d);
    double worst = 0;
    for (int l = 0; l < batches; ++l)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          double sum = 0;
          for (int c = 0; c < k; ++c) sum += std::pow(std::abs(x_host(l, i, c) - z_host(c, j)), p);
          const double expected = std::pow(sum, 1 / p);
          worst = support::larger(worst, std::abs(d_host(l, i, j) - expected) / expected);
        }
    CHECK(worst <= 64 * std::numeric_limits<double>::epsilon());
  }
}

TEST_CASE_TEMPLATE("cdist with an epilogue after the metric's own", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<double, Exec>(3, 4, x_values);
  const auto z = support::matrix<double, Exec>(5, 4, z_values);
  const auto d = support::matrix<double, Exec>(3, 5);
  std::vector<double> expected;
  for (const double v : euclidean) expected.push_back(std::exp(-v / 2));
  rigel::cdist(Exec(), x, z, d, metric::euclidean{}, rigel::epilogue::laplace(2));
  CHECK(error_of(support::values(d), expected) <= 1e-14);

  const Kokkos::View<double*, typename Exec::memory_space> offset("offset", 3);
  Kokkos::deep_copy(offset, 0.5);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 0.5 + 1 / (1 + euclidean[i]);
  using Unmanaged = Kokkos::View<const double*, typename Exec::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  rigel::cdist(Exec(), x, z, d, metric::euclidean{}, similarity<Unmanaged>{offset});
  CHECK(error_of(support::values(d), expected) <= 1e-14);
}

TEST_CASE_TEMPLATE("cdist into bool: whether rows differ", Exec, RIGEL_TEST_SPACES) {
  const std::vector<double> rows = {1, 1, 1, 17, 1, 1.25, 3, 3}, integers = {1, 1, 1, 17, 17, 1, 3, 3};
  const auto differ = [](const auto& x, const auto& metric) {
    const auto d = support::matrix<bool, Exec>(4, 4, std::vector<double>(16, 1));
    rigel::cdist(Exec{}, x, x, d, metric);
    return support::values(d);
  };
  const std::vector<double> all = {0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0};
  const auto x = support::matrix<float, Exec>(4, 2, rows);
  CHECK(differ(x, metric::manhattan{}) == all);
  CHECK(differ(x, metric::euclidean{}) == all);
  CHECK(differ(x, metric::chebyshev{}) == all);
  CHECK(differ(x, metric::hamming{}) == all);
  // Rows of (1, 1) and (3, 3) have the same direction.
  CHECK(differ(x, metric::cosine{}) == std::vector<double>{0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 0});
  // 256 = 16², whose last byte is 0.
  const auto i = support::matrix<std::int32_t, Exec>(4, 2, integers);
  CHECK(differ(i, metric::squared_euclidean{}) == all);
  CHECK(differ(i, metric::euclidean{}) == all);
}

TEST_CASE_TEMPLATE("cdist of nothing", Exec, RIGEL_TEST_SPACES) {
  const auto none = support::matrix<double, Exec>(3, 0), d = support::matrix<double, Exec>(3, 3, std::vector<double>(9, 7.));
  rigel::cdist(Exec(), none, none, d, metric::minkowski{1.3});
  CHECK(support::values(d) == std::vector<double>(9, 0.));
  const auto x = support::matrix<double, Exec>(0, 4), z = support::matrix<double, Exec>(5, 4);
  rigel::cdist(Exec(), x, z, support::matrix<double, Exec>(0, 5), metric::euclidean{});
}

TEST_CASE_TEMPLATE("cdist with the caller's workspace and a named kernel; its explanation", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<double, Exec>(3, 4, x_values);
  const auto z = support::matrix<double, Exec>(5, 4, z_values);
  const auto d = support::matrix<double, Exec>(3, 5);
  for (const char* kernel : {"reference", "portable"}) {
    rigel::CdistOptions options{.kernel = kernel};
    const std::size_t bytes = rigel::cdist_workspace_size(Exec(), x, z, d, metric::manhattan{}, {}, options);
    const Kokkos::View<char*, typename Exec::memory_space> memory("workspace", bytes + 256);
    const auto aligned = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
    options.workspace = {reinterpret_cast<void*>(aligned), bytes};
    rigel::cdist(Exec(), x, z, d, metric::manhattan{}, options);
    CHECK(support::values(d) == cityblock);
  }
  const std::string text = rigel::explain_cdist(Exec(), x, z, d, metric::minkowski{1.3});
  CHECK(text.find("lp") != std::string::npos);
  CHECK(text.find("reference.lp.f64") != std::string::npos);
}

TEST_CASE("cdist says what is wrong") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const auto x = support::matrix<float, Exec>(4, 6, {}, "x"), z = support::matrix<float, Exec>(5, 6, {}, "z"),
             other = support::matrix<float, Exec>(5, 7, {}, "other"), d = support::matrix<float, Exec>(4, 5, {}, "d"),
             flat = support::matrix<float, Exec>(5, 4, {}, "flat");
  const auto three = support::batch<float, Exec>(3, 4, 6, {}, "three"),
             two = support::batch<float, Exec>(2, 4, 5, {}, "two");
  const metric::manhattan m;
  CHECK(support::caught([&] { rigel::cdist(exec, x, other, d, m); }).message ==
        "cdist: Z 'other' is 5x7, expected 6 columns to match X 'x' 4x6");
  CHECK(support::caught([&] { rigel::cdist(exec, x, z, flat, m); }).message ==
        "cdist: D 'flat' is 5x4, expected 4 rows to match the rows of X 'x' 4x6");
  CHECK(support::caught([&] { rigel::cdist(exec, x, x, d, m); }).message ==
        "cdist: D 'd' is 4x5, expected 4 columns to match the rows of Z 'x' 4x6");
  CHECK(support::caught([&] { rigel::cdist(exec, three, z, two, m); }).message ==
        "cdist: X 'three' is 3x4x6, expected 2 batches or one to match D 'two' 2x4x5");
  const auto square = support::matrix<float, Exec>(6, 6, {}, "square");
  CHECK(support::caught([&] { rigel::cdist(exec, square, square, square, m); }).message ==
        "cdist: D 'square' 6x6 overlaps X 'square' 6x6, expected distinct elements");
  const auto tall = support::matrix<float, Exec>(5, 6, {}, "tall");
  const auto top = Kokkos::subview(tall, std::pair{0, 4}, std::pair{0, 5});
  CHECK(support::caught([&] { rigel::cdist(exec, x, tall, top, m); }).message ==
        "cdist: D 'tall' 4x5 overlaps transposed Z 'tall' 6x5, expected distinct elements");
  for (const double p : {0., -1., std::nan("")})
    CHECK(support::caught([&] { rigel::cdist(exec, x, z, d, metric::minkowski{p}); }).message.find("expected p > 0") !=
          std::string::npos);
}
