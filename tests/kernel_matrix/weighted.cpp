// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metrics with data of their own, of positions, and of distributions: SciPy's and scikit-learn's values, the formulas in long double
// within the stated bounds, degenerate rows, batches, and messages.
#include "points.hpp"

#include <tests/support/compare.hpp>

#include <rigel/dissimilarities.hpp>
#include <rigel/linalg.hpp>

#include <cstdint>

using namespace kernel_matrix;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();

const Values x_values = {1, 2, 3, 4, 0, -1.5, 2, .25, 10, 0, 0, -3};
const Values z_values = {1, 2, 3, 4, -1, 0.5, 2, 2, 7, 7, -7, 0.125, 0, 0, 0, 0, 1, 2, -3, 4};
const Values variance_values = {0.5, 2, 3, 0.25}, weight_values = {2, 0.5, 0, 3};
const Values factor_values = {1, 0, 0, 0, 0.5, 2, 0, 0, -1, 0.25, 1.5, 0, 0, 1, -0.5, 0.75};  // 4 × 4
const Values narrow_values = {1, 0, 0.5, 2, -1, 0.25, 0, 1};                                  // 4 × 2
const Values p_values = {1, 2, 3, 4, 0, 0, 5, 1, 0.25, 0.25, 0.25, 0.25, 0, 0, 0, 0, 1, -1, 2, 3};
const Values q_values = {1, 2, 3, 4, 2, 4, 6, 8, 7, 0, 0, 0, 0, 3, 0, 2, 4, 3, 2, 1.0009765625, 0, 0, 0, 0};
const Values x_positions = {0.9, 2.1, -0.7, 0.4, 1.5, -3.0};
const Values z_positions = {0.9, 2.1, 0.9000001, 2.1, -0.9, 2.1 - 3.141592653589793, 0, 0, -1.5, 1.0};

// SciPy 1.17, scipy.spatial.distance.cdist(X, Z, …) of the rows above: 'seuclidean', V=variances; 'mahalanobis', VI=L @ L.T of both
// factors; 'minkowski', p=…, w=weights; 'jensenshannon' of the rows of p and q.
const Values seuclidean = {0.0,
                           5.0456251677402015,
                           13.33775968194559,
                           8.426149773176359,
                           3.4641016151377544,
                           8.044149012377463,
                           4.031128874149275,
                           12.695963925594622,
                           1.6457014715109581,
                           8.526918161524323,
                           19.05255888325765,
                           18.532628883494468,
                           9.894232326630163,
                           15.362291495737216,
                           19.05255888325765};
const Values mahalanobis = {0.0,
                            5.755432216610669,
                            23.118516827696798,
                            9.633924433998846,
                            10.920164833920778,
                            11.494054169439085,
                            5.962447588868182,
                            28.364208437968088,
                            4.5744705977850595,
                            15.687998000063615,
                            16.95951060614663,
                            14.802871343087462,
                            21.06270864139985,
                            10.784827305061496,
                            14.887074930959406};
const Values mahalanobis_of_two = {0.0,
                                   5.533985905294664,
                                   18.851806942571844,
                                   8.806957476904268,
                                   6.18465843842649,
                                   11.138334704972731,
                                   5.75,
                                   24.97905372507133,
                                   3.553167600887974,
                                   12.260199835239229,
                                   16.095418602819873,
                                   14.311271781361711,
                                   17.106742091935565,
                                   10.44030650891055,
                                   11.404494727957044};
const Values weighted_1 = {0.0, 10.75, 26.125, 15.0, 0.0, 15.0, 8.25, 18.625, 1.5, 15.0, 40.0, 37.25, 18.875, 29.0, 40.0};
const Values weighted_2 = {0.0,
                           4.596194077712559,
                           11.38186605965823,
                           7.211102550927978,
                           0.0,
                           7.093130479555554,
                           3.6314597615834874,
                           11.583258393042952,
                           1.14564392373896,
                           7.093130479555554,
                           17.635192088548397,
                           17.808003818508126,
                           8.473303665041163,
                           15.066519173319364,
                           17.635192088548397};
const Values weighted_1_5 = {0.0,
                             6.0985978333529065,
                             14.960923170057985,
                             9.091813695070835,
                             0.0,
                             9.013213270525844,
                             4.752118269193892,
                             13.493050966824807,
                             1.1872005352723025,
                             9.013213270525844,
                             23.093162552533546,
                             22.493909844305463,
                             10.948154675800726,
                             18.38551278425802,
                             23.093162552533546};
const Values weighted_3 = {0.0,
                           3.467384076541696,
                           8.746231370279455,
                           5.828476683251456,
                           0.0,
                           5.6633186201043655,
                           2.805352220156879,
                           9.976840938440702,
                           1.2014738834263332,
                           5.6633186201043655,
                           13.55578199428645,
                           14.48164542441399,
                           6.818840014320658,
                           12.767053944429666,
                           13.55578199428645};
const Values jensenshannon = {0.0,
                              0.0,
                              0.7249809149335342,
                              0.43698312380278936,
                              0.3261751344535535,
                              infinite,
                              0.44047195001590905,
                              0.44047195001590905,
                              0.8325546111576977,
                              0.722152723277973,
                              0.592502475433679,
                              infinite,
                              0.16692996572597973,
                              0.16692996572597973,
                              0.6167622441821304,
                              0.4681268519770538,
                              0.16684381530949935,
                              infinite,
                              infinite,
                              infinite,
                              infinite,
                              infinite,
                              infinite,
                              infinite,
                              infinite,
                              infinite,
                              infinite,
                              infinite,
                              infinite,
                              infinite};
// scikit-learn 1.9, DistanceMetric.get_metric('haversine').pairwise(x_positions, z_positions).
const Values haversine = {0.0,
                          9.999999994736442e-08,
                          3.141592653589793,
                          1.8900071741066662,
                          2.4362965187774717,
                          2.172308699860585,
                          2.1723087390681255,
                          0.969283953729208,
                          0.7891254226492465,
                          0.8130903024485114,
                          0.6468524515215871,
                          0.6468523521137368,
                          2.4947402020682063,
                          1.640882990841898,
                          3.082710022068131};

/// A view of numbers of T with a stride of 2.
template <class T, class Exec>
auto strided(const Values& values) {
  const Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space> pairs("pairs", values.size(), 2);
  Values both;
  for (const double v : values) {
    both.push_back(v);
    both.push_back(-7);
  }
  support::fill(pairs, both);
  return Kokkos::subview(pairs, Kokkos::ALL, 0);
}

/// Distances of T by every family of kernels against expected(x, z), in long double with a bound.
template <class T, class Exec, class M, class Expected>
void check(const M& metric, int k, const Values& x, const Values& z, const Expected& expected) {
  const auto m = x.size() / k, n = z.size() / k;
  with_each_family([&](const char* family) {
    const Values found = distances<T, Exec>(x, z, k, metric, {.kernel = family});
    double worst = 0;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const Bounded e = expected(&x[i * k], &z[j * k]);
        const auto error = std::fabs(found[i * n + j] - e.value);
        const auto ratio = static_cast<double>(error == 0 ? 0 : error / e.error);
        worst = support::larger(worst, ratio);
      }
    CAPTURE(family);
    CHECK(worst <= 1);
  });
}

/// Numbers in [low, 1] that T holds.
template <class T>
Values random_numbers(int count, double low, std::uint64_t seed) {
  support::Random random(seed);
  Values list(count);
  for (double& v : list) v = support::to_double(support::number<T>(random.uniform(low, 1)));
  return list;
}

/// The type that T is computed in.
template <class T>
using Number = rigel::accumulator_for<T>;

/// The unit roundoff of that type.
template <class T>
constexpr double computed_unit = unit<Number<T>>;

template <class T, class Exec>
void check_weighted() {
  const int m = 37, n = 23, k = 41;
  const double u = computed_unit<T>;
  const Values x = random_numbers<T>(m * k, -1, 1), z = random_numbers<T>(n * k, -1, 2);
  const Values w = random_numbers<Number<T>>(k, 0.01, 3);
  const auto view = strided<Number<T>, Exec>(w);
  check<T, Exec>(metric::seuclidean{view}, k, x, z, [&](const double* a, const double* b) {
    long double sum = 0;
    for (int i = 0; i < k; ++i) sum += std::pow(static_cast<long double>(a[i]) - b[i], 2) / w[i];
    return Bounded{std::sqrt(sum), (k / 2. + 5) * u * std::sqrt(sum)};
  });
  for (const double p : {1., 2., 0.75, 3.5}) {
    const double e = p == 1 || p == 2 ? u : (8 + 2 * p) * u;
    check<T, Exec>(metric::weighted_minkowski{p, view}, k, x, z, [&](const double* a, const double* b) {
      long double sum = 0;
      for (int i = 0; i < k; ++i)
        sum += w[i] * std::pow(std::fabs(static_cast<long double>(a[i]) - b[i]), static_cast<long double>(p));
      const long double d = std::pow(sum, 1 / static_cast<long double>(p));
      return Bounded{d, (((k + p + 2) * u + e) / p + 4 * u) * d};
    });
  }
}

template <class T, class Exec>
void check_mahalanobis() {
  const int m = 37, n = 23, k = 41, r = 35;
  using Row = Number<T>;
  const double u = computed_unit<T>;
  const Values x = random_numbers<T>(m * k, -1, 1), z = random_numbers<T>(n * k, -1, 2);
  const Values l = random_numbers<Row>(k * r, -1, 3);
  check<T, Exec>(metric::mahalanobis{support::matrix<Row, Exec>(k, r, l)}, k, x, z, [&](const double* a, const double* b) {
    long double sum = 0, of_a = 0, of_b = 0, sizes_of_a = 0, sizes_of_b = 0;
    for (int j = 0; j < r; ++j) {
      long double ya = 0, yb = 0, size_a = 0, size_b = 0;
      for (int i = 0; i < k; ++i) {
        const long double factor = l[i * r + j];
        ya += factor * a[i];
        yb += factor * b[i];
        size_a += std::fabs(factor * a[i]);
        size_b += std::fabs(factor * b[i]);
      }
      sum += (ya - yb) * (ya - yb);
      of_a += ya * ya;
      of_b += yb * yb;
      sizes_of_a += size_a * size_a;
      sizes_of_b += size_b * size_b;
    }
    const long double d = std::sqrt(sum);
    const double of_euclidean = (r + 4) * u + (std::is_same_v<Row, float> ? 1.01e-5 : (200 + 17 * r) * u);
    return Bounded{d, of_euclidean * d + u * (std::sqrt(of_a) + std::sqrt(of_b)) +
                          2 * (k + 1) * unit<double> * (std::sqrt(sizes_of_a) + std::sqrt(sizes_of_b))};
  });
}

template <class T, class Exec>
void check_jensenshannon() {
  const int m = 37, n = 23, k = 41;
  const double u = computed_unit<T>;
  Values x = random_numbers<T>(m * k, 0.01, 1), z = random_numbers<T>(n * k, 0.01, 2);
  for (int i = 0; i < 3 * k; ++i) z[i] = x[i];                         // equal rows,
  for (int i = 0; i < k; ++i) z[3 * k + i] = 4 * x[i];                 // a multiple of one,
  for (int i = 0; i < k; i += 2) x[5 * k + i] = z[6 * k + i + 1] = 0;  // and rows with zeros
  check<T, Exec>(metric::jensenshannon{}, k, x, z, [&](const double* a, const double* b) {
    long double of_a = 0, of_b = 0, sum = 0;
    for (int i = 0; i < k; ++i) {
      of_a += a[i];
      of_b += b[i];
    }
    for (int i = 0; i < k; ++i) {
      const long double p = a[i] / of_a, q = b[i] / of_b, mean = (p + q) / 2;
      sum += (p == 0 ? 0 : p * std::log1p((p - mean) / mean)) + (q == 0 ? 0 : q * std::log1p((q - mean) / mean));
    }
    const long double s = std::max(sum, 0.L) / 2, d = std::sqrt(s);
    const long double off =
        (k + k / 16. + 50) * u * s + 3 * u * d + std::pow((k / 32. + 8) * u, 2.L) + 4e-19L;  // the last of long double
    return Bounded{d, std::sqrt(s + off) - std::sqrt(std::max(s - off, 0.L)) + 2 * u * d};
  });
}

}  // namespace

TEST_CASE_TEMPLATE("weighted metrics: SciPy's values", Exec, RIGEL_TEST_SPACES) {
  const auto of = [&]<class T>(T) {
    const auto variances = strided<T, Exec>(variance_values), weights = strided<T, Exec>(weight_values);
    CHECK(error_of(distances<T, Exec>(x_values, z_values, 4, metric::seuclidean{variances}), seuclidean) <= 7 * unit<T>);
    CHECK(error_of(distances<T, Exec>(x_values, z_values, 4, metric::weighted_minkowski{1, weights}), weighted_1) <=
          8 * unit<T>);
    CHECK(error_of(distances<T, Exec>(x_values, z_values, 4, metric::weighted_minkowski{2, weights}), weighted_2) <=
          8 * unit<T>);
    CHECK(error_of(distances<T, Exec>(x_values, z_values, 4, metric::weighted_minkowski{1.5, weights}), weighted_1_5) <=
          14 * unit<T>);
    CHECK(error_of(distances<T, Exec>(x_values, z_values, 4, metric::weighted_minkowski{3, weights}), weighted_3) <=
          14 * unit<T>);
    // All numbers are multiples of 1/32 of few bits, so that rows are transformed exactly.
    const auto factor = support::matrix<T, Exec>(4, 4, factor_values),
               narrow = support::matrix<T, Exec>(4, 2, narrow_values);
    CHECK(error_of(distances<T, Exec>(x_values, z_values, 4, metric::mahalanobis{factor}), mahalanobis) <= 4 * unit<T>);
    CHECK(error_of(distances<T, Exec>(x_values, z_values, 4, metric::mahalanobis{narrow}), mahalanobis_of_two) <=
          4 * unit<T>);
    Values squares;
    for (const double v : mahalanobis) squares.push_back(v * v);
    CHECK(error_of(distances<T, Exec>(x_values, z_values, 4, metric::mahalanobis{factor}, {.skip_epilogue = true}),
                   squares) <= 4 * unit<T>);
  };
  of(float{});
  of(double{});
}

TEST_CASE_TEMPLATE("weighted metrics: within their bounds", Exec, RIGEL_TEST_SPACES) {
  check_weighted<float, Exec>();
  check_weighted<double, Exec>();
  check_weighted<rigel::half, Exec>();
}

TEST_CASE_TEMPLATE("mahalanobis: within its bound", Exec, RIGEL_TEST_SPACES) {
  check_mahalanobis<float, Exec>();
  check_mahalanobis<double, Exec>();
  check_mahalanobis<rigel::half, Exec>();
}

TEST_CASE_TEMPLATE("jensenshannon: SciPy's values, degenerate rows included", Exec, RIGEL_TEST_SPACES) {
  // Rows 0 of p, 0 and 1 of q are proportional: D² = 0 within ((K/32 + 8)·u)², see docs/numerics.md.
  const auto of = [&]<class T>(T, double tolerance) {
    CHECK(error_of(distances<T, Exec>(p_values, q_values, 4, metric::jensenshannon{}), jensenshannon) <= tolerance);
  };
  of(double{}, 60 * unit<double>);
  of(float{}, 60 * unit<float>);
  of(rigel::half{}, 60 * unit<float>);  // q holds 1 + 2^-10: every number is one of half
}

TEST_CASE_TEMPLATE("jensenshannon: within its bound", Exec, RIGEL_TEST_SPACES) {
  check_jensenshannon<float, Exec>();
  check_jensenshannon<double, Exec>();
  check_jensenshannon<rigel::half, Exec>();
}

TEST_CASE_TEMPLATE("jensenshannon: of counts", Exec, RIGEL_TEST_SPACES) {
  const Values x = {3, 0, 5, 9, 1, 2, 3, 4}, z = {1, 1, 1, 1, 6, 0, 10, 18};
  const Values of_doubles = distances<double, Exec>(x, z, 4, metric::jensenshannon{});
  CHECK(support::same(distances<std::int32_t, Exec>(x, z, 4, metric::jensenshannon{}), of_doubles));
  CHECK(error_of(distances<std::uint8_t, Exec>(x, z, 4, metric::jensenshannon{}), of_doubles) <= 60 * unit<float>);
}

TEST_CASE_TEMPLATE("haversine: scikit-learn's values", Exec, RIGEL_TEST_SPACES) {
  // The half angle's sine is rounded like the two sines and cosines; it is 1 at antipodes, where the arcsine turns u into √u.
  const Values found = distances<double, Exec>(x_positions, z_positions, 2, metric::haversine{});
  REQUIRE(found.size() == haversine.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double rest = std::cos(haversine[i] / 2);  // of the arcsine's derivative, 1/rest
    const double tolerance =
        16 * unit<double> * haversine[i] + (rest > 1e-7 ? 16 * unit<double> / rest : std::sqrt(32 * unit<double>));
    CHECK(std::fabs(found[i] - haversine[i]) <= tolerance);
  }
  const Values x = random_numbers<float>(40, -1, 1), z = random_numbers<float>(60, -1, 2);
  check<float, Exec>(metric::haversine{}, 2, x, z, [](const double* a, const double* b) {
    const long double north = std::sin((static_cast<long double>(a[0]) - b[0]) / 2),
                      east = std::sin((static_cast<long double>(a[1]) - b[1]) / 2),
                      h = north * north +
                          std::cos(static_cast<long double>(a[0])) * std::cos(static_cast<long double>(b[0])) * east * east;
    const long double d = 2 * std::asin(std::sqrt(h)), slope = 1 / (std::sqrt(h) * std::sqrt(1 - h));  // of d by h
    return Bounded{
        d, unit<float> * (14 * h * slope + 4 * d)};  // sines, squares, cosines, their product and sum; root and arcsine
  });
}

namespace {

/// λ − λ', less the multiple of 2π next to it, for longitudes next to ±π, or 0 and 2π.
long double reduced_difference(long double a, long double b) {
  constexpr long double pi = 3.14159265358979323846264338327950288L;
  // What a π of 64 bits leaves.
  constexpr long double rest = std::numeric_limits<long double>::digits == 64 ? -5.01655761266833202355732708e-20L : 0;
  if (std::fabs(a - b) < pi) return a - b;
  const long double sign = a > b ? 1 : -1;
  const bool near_zero = std::fabs(a) < 1 || std::fabs(b) < 1;
  const long double all = near_zero && std::fabs(a) > 1 ? (a - sign * 2 * pi) - b
                          : near_zero                   ? a - (b + sign * 2 * pi)
                                                        : (a - sign * pi) - (b + sign * pi);
  return all - sign * 2 * rest;
}

/// Positions next to each other across the antimeridian, or around 0 of longitudes from 0 to 2π.
template <class T, class Exec>
void check_haversine_across() {
  const double u = computed_unit<T>, pi = 3.14159265358979323846;
  for (const bool around_zero : {false, true}) {
    support::Random random(around_zero ? 3 : 4);
    const auto positions = [&](double first, double second) {
      Values list;
      for (int i = 0; i < 40; ++i) {
        const double off = std::exp2(random.uniform(-15, -1));
        list.push_back(support::to_double(support::number<T>(i % 4 == 0 ? 0.3 : random.uniform(0.29, 0.31))));
        list.push_back(support::to_double(support::number<T>(i % 2 == 0 ? first - off : second + off)));
      }
      return list;
    };
    const Values x = around_zero ? positions(2 * pi, 0) : positions(pi, -pi),
                 z = around_zero ? positions(2 * pi, 0) : positions(pi, -pi);
    check<T, Exec>(metric::haversine{}, 2, x, z, [&](const double* a, const double* b) {
      const long double north = std::sin((static_cast<long double>(a[0]) - b[0]) / 2),
                        east = std::sin(reduced_difference(a[1], b[1]) / 2),
                        h = north * north + std::cos(static_cast<long double>(a[0])) *
                                                std::cos(static_cast<long double>(b[0])) * east * east;
      const long double d = 2 * std::asin(std::sqrt(h)), slope = h == 0 ? 0 : 1 / (std::sqrt(h) * std::sqrt(1 - h));
      return Bounded{d, u * (14 * h * slope + 4 * d) + std::numeric_limits<double>::min()};
    });
  }
}

}  // namespace

TEST_CASE_TEMPLATE("haversine: across the antimeridian and around 0", Exec, RIGEL_TEST_SPACES) {
  check_haversine_across<float, Exec>();
  check_haversine_across<double, Exec>();
  // In 50 digits, of the floats next to these numbers: π − 3e-4 and −π + 1e-4; 2π and 1e-9; π and −π + 1.6e-7.
  const auto one = [](double a, double b, double expected) {
    const Values found =
        distances<float, Exec>({0, static_cast<float>(a)}, {0, static_cast<float>(b)}, 2, metric::haversine{});
    CHECK(std::fabs(found[0] - expected) <= 11 * unit<float> * expected);
  };
  one(3.1412926536, -3.1414926536, 4.0012994875151598779e-4);
  one(6.2831855, 1e-9, 1.7384556003573164470e-7);
  one(3.1415927, -3.1415925, 6.3573019094112786767e-8);
  CHECK(distances<double, Exec>({0, 3, 0, infinite}, {0, 3, 0, not_a_number}, 2, metric::haversine{})[0] == 0);
  CHECK(std::isnan(distances<double, Exec>({0, infinite}, {0, 3}, 2, metric::haversine{})[0]));
}

TEST_CASE_TEMPLATE("weighted metrics: subnormal variances", Exec, RIGEL_TEST_SPACES) {
  const auto of = [&]<class T>(T, double variance) {  // variance = 2^-2j: a difference of 2^-j is one standard deviation
    const double deviation = std::sqrt(variance);
    const auto view = strided<T, Exec>({variance, 20});
    const Values x = {4 * deviation, 0, 0, 0}, z = {0, 10, 4 * deviation, 0};
    const Values found = distances<T, Exec>(x, z, 2, metric::seuclidean{view});
    CHECK(error_of(found, {std::sqrt(21.), 0, std::sqrt(5.), 4}) <= 7 * unit<T>);
  };
  of(float{}, 0x1p-148);
  of(float{}, 0x1p-130);
  of(float{}, 0x1p126);
  of(double{}, 0x1p-1074);
  of(double{}, 0x1p1020);
}

// Rows times a power of two have the same bits, at the limits of double, too.
TEST_CASE_TEMPLATE("jensenshannon: of the largest and the smallest numbers", Exec, RIGEL_TEST_SPACES) {
  const Values x = {1, 3, 0, 7, 5, 5, 2, 1}, z = {3, 1, 2, 2, 0, 0, 1, 7};
  const Values expected = distances<double, Exec>(x, z, 4, metric::jensenshannon{});
  for (const int exponent : {-1074, -1060, -1000, -700, 900, 1000, 1021}) {
    CAPTURE(exponent);
    Values scaled = x;
    for (double& v : scaled) v = std::ldexp(v, exponent);
    CHECK(distances<double, Exec>(scaled, z, 4, metric::jensenshannon{}) == expected);
    CHECK(distances<double, Exec>(scaled, scaled, 4, metric::jensenshannon{})[0] == 0);
  }
  // Negative numbers whose share underflows, and a row with infinity.
  const auto one = [&]<class T>(T, const Values& row) {
    return distances<T, Exec>(row, {1, 2, 3}, 3, metric::jensenshannon{})[0];
  };
  CHECK(one(double{}, {-5e-324, 3, 4}) == infinite);
  CHECK(one(double{}, {-1e-300, 1.5e308, 1.5e308}) == infinite);
  CHECK(one(float{}, {-1e-42, 1e6, 1e6}) == infinite);
  CHECK(one(double{}, {-0., 3, 4}) < 1);
  CHECK(std::isnan(one(double{}, {infinite, 3, 4})));
}

// Rows that overflow when they are transformed are 0 from themselves and infinitely far from others; sums that only overflow on the way
// are right.
TEST_CASE_TEMPLATE("mahalanobis: rows that overflow", Exec, RIGEL_TEST_SPACES) {
  const auto check = [&]<class T>(T, double large) {
    const Values rows = {large, 1, large, 2, large / 2, 0, -large, 0, 1, 1};
    const metric::mahalanobis metric{support::matrix<T, Exec>(2, 2, {large, 1, 0, 1})};
    const Values own = distances<T, Exec>(rows, rows, 2, metric);
    // Of rows 0 and 1 the first coordinates are equal and beyond the type, and the second ones are large + 1 and large + 2, which are equal.
    const Values expected = {0,        0,        infinite, infinite, infinite, 0,        0,        infinite, infinite,
                             infinite, infinite, infinite, 0,        infinite, infinite, infinite, infinite, infinite,
                             0,        infinite, infinite, infinite, infinite, infinite, 0};
    CHECK(support::same(own, expected));
    const metric::mahalanobis sum{support::matrix<T, Exec>(3, 1, {large, large, large})};
    CHECK(distances<T, Exec>({large, -large, 1 / std::sqrt(large)}, {0, 0, 0}, 3, sum)[0] == std::sqrt(large));
    CHECK(std::isnan(distances<T, Exec>({infinite, 1, 1}, {infinite, 1, 1}, 3, sum)[0]));
  };
  check(float{}, 0x1p100);
  check(double{}, 0x1p1000);
}

TEST_CASE_TEMPLATE("weighted metrics: degenerate data", Exec, RIGEL_TEST_SPACES) {
  // SciPy 1.17, 'seuclidean' with V = {0, 1, 1, 1}: 0/0 and x/0.
  const auto zero = strided<double, Exec>({0, 1, 1, 1});
  const Values found = distances<double, Exec>(x_values, z_values, 4, metric::seuclidean{zero});
  const Values expected = {not_a_number, infinite, infinite, infinite, not_a_number, infinite, infinite, infinite,
                           not_a_number, infinite, infinite, infinite, infinite,     infinite, infinite};
  CHECK(support::same(found, expected));

  const auto none = support::matrix<double, Exec>(1, 0), d = support::matrix<double, Exec>(1, 1, {7});
  const Kokkos::View<double*, typename Exec::memory_space> no_numbers("no numbers", 0);
  rigel::cdist(Exec(), none, none, d, metric::seuclidean{no_numbers});
  CHECK(support::values(d) == Values{0});
  rigel::cdist(Exec(), none, none, d, metric::weighted_minkowski{1.5, no_numbers});
  CHECK(support::values(d) == Values{0});
  rigel::cdist(Exec(), none, none, d, metric::mahalanobis{support::matrix<double, Exec>(0, 3)});
  CHECK(support::values(d) == Values{0});
  rigel::cdist(Exec(), none, none, d, metric::jensenshannon{});
  CHECK(support::values(d) == Values{infinite});
  const auto one = support::matrix<double, Exec>(1, 2, {1, 2});
  support::fill(d, {7});
  rigel::cdist(Exec(), one, one, d, metric::mahalanobis{support::matrix<double, Exec>(2, 0)});
  CHECK(support::values(d) == Values{0});
}

TEST_CASE_TEMPLATE("mahalanobis: batches, X with itself, kernels, workspace", Exec, RIGEL_TEST_SPACES) {
  const Values both = {1, 2, 3, 4, 0, -1.5, 2, .25, 10, 0, 0, -3, 7, 7, -7, 0.125, -1, 0.5, 2, 2, 0, 1, 0, 1};
  const auto x = support::batch<double, Exec>(2, 3, 4, both), d = support::batch<double, Exec>(2, 3, 3);
  const auto z = support::matrix<double, Exec>(5, 4, z_values);
  const metric::mahalanobis metric{support::matrix<double, Exec>(4, 4, factor_values)};
  rigel::cdist(Exec(), x, x, d, metric);
  const Values own = support::values(d);
  for (int l = 0; l < 2; ++l)
    for (int i = 0; i < 3; ++i) {
      CHECK(own[l * 9 + i * 4] == 0);
      for (int j = 0; j < i; ++j) CHECK(own[l * 9 + i * 3 + j] == own[l * 9 + j * 3 + i]);
    }

  const auto of_z = support::batch<double, Exec>(2, 3, 5);
  rigel::cdist(Exec(), x, z, of_z, metric);
  Values first = support::values(of_z);
  first.resize(15);
  CHECK(error_of(first, mahalanobis) <= 4 * unit<double>);

  const auto bytes = rigel::cdist_workspace_size(Exec(), x, z, of_z, metric);
  CHECK(bytes >= (6 + 5) * 4 * sizeof(double));
  CHECK(rigel::explain_cdist(Exec(), x, z, of_z, metric).find("transformed") != std::string::npos);

  const auto k = support::batch<double, Exec>(2, 3, 5);
  rigel::kernel_matrix(Exec(), x, z, k, metric, kernel::gaussian{4});
  const Values kernels = support::values(k);
  for (int i = 0; i < 15; ++i) {
    const double argument = mahalanobis[i] * mahalanobis[i] / 32;
    CHECK(std::fabs(kernels[i] - std::exp(-argument)) <= 16 * (1 + argument) * unit<double> * std::exp(-argument));
  }
}

TEST_CASE_TEMPLATE("mahalanobis: of an inverse covariance matrix, by its Cholesky factor", Exec, RIGEL_TEST_SPACES) {
  // L·Lᵀ of the factor above, whose condition number is 21.7. The factorisation changes it by 5u·|L|·|Lᵀ| (docs/numerics.md), and squares
  // by no more than the condition number times that, relative to them.
  const auto inverse_covariance =
      support::matrix<double, Exec>(4, 4, {1, 0.5, -1, 0, 0.5, 4.25, 0, 2, -1, 0, 3.3125, -0.5, 0, 2, -0.5, 1.8125});
  const auto factor = support::matrix<double, Exec>(4, 4);
  rigel::cholesky_factor(Exec(), inverse_covariance, factor);
  const Values found = distances<double, Exec>(x_values, z_values, 4, metric::mahalanobis{factor});
  CHECK(error_of(found, mahalanobis) <= 4 * 5 * 21.7 * unit<double>);
}

TEST_CASE_TEMPLATE("weighted metrics: messages", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<double, Exec>(3, 4, x_values, "x"), z = support::matrix<double, Exec>(5, 4, z_values, "z"),
             d = support::matrix<double, Exec>(3, 5, {}, "d");
  const Kokkos::View<double*, typename Exec::memory_space> three("three", 3);
  const auto refused = [&](const auto& metric, std::initializer_list<const char*> texts) {
    const auto caught = support::caught([&] { rigel::cdist(Exec(), x, z, d, metric); });
    CHECK(caught.code == rigel::Code::invalid_argument);
    CHECK(caught.lacks(texts) == "");
  };
  refused(metric::seuclidean{three}, {"seuclidean's variances 'three' are 3 numbers", "expected 4"});
  refused(metric::weighted_minkowski{1.5, three}, {"weighted_minkowski's weights 'three' are 3 numbers", "expected 4"});
  const Kokkos::View<double*, typename Exec::memory_space> four("four", 4);
  refused(metric::weighted_minkowski{0, four}, {"weighted_minkowski's p is 0", "finite p > 0"});
  refused(metric::weighted_minkowski{infinite, four}, {"weighted_minkowski's p is inf", "finite p > 0"});
  refused(metric::haversine{}, {"X has 4 columns", "haversine's 2"});
  refused(metric::mahalanobis{support::matrix<double, Exec>(3, 4, {}, "narrow")},
          {"cdist: the factor 'narrow' is 3x4", "expected 4 rows", "the columns of X 'x'"});
  const Kokkos::View<double**, Kokkos::LayoutRight, typename Exec::memory_space> inside(d.data(), 4, 3);
  refused(metric::mahalanobis{inside}, {"D 'd'", "overlaps", "the factor"});
}
