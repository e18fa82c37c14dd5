// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The metrics of rigel/dissimilarities.hpp: SciPy's values, the formulas in long double within the stated bounds, and rows that are empty.
#include "points.hpp"

#include <tests/support/compare.hpp>

#include <rigel/dissimilarities.hpp>

#include <cstdint>

using namespace kernel_matrix;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();

const Values x_values = {1, 2, 3, 4, 0, -1.5, 2, .25, 10, 0, 0, -3};
const Values z_values = {1, 2, 3, 4, -1, 0.5, 2, 2, 7, 7, -7, 0.125, 0, 0, 0, 0, 1, 2, -3, 4};
const Values x_truths = {0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
const Values z_truths = {0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1,
                         1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0};

// SciPy 1.17, scipy.spatial.distance.cdist(X, Z, …) of the rows above; of truth values as bool.
const Values canberra = {0,
                         2.1333333333333333,
                         3.244949494949495,
                         4,
                         1,
                         3.0823529411764707,
                         2.7777777777777777,
                         3.3333333333333335,
                         3,
                         3.8823529411764706,
                         3.8181818181818183,
                         4,
                         3.1764705882352944,
                         2,
                         3.8181818181818183};
const Values braycurtis = {0,
                           0.48148148148148145,
                           0.9900497512437811,
                           1,
                           0.42857142857142855,
                           0.8604651162790697,
                           0.5757575757575758,
                           1.3776223776223777,
                           1,
                           1.962962962962963,
                           1.2352941176470589,
                           1.48,
                           0.5940959409594095,
                           1,
                           1.2352941176470589};
const Values jaccard = {0, 1, 0.375, 0.6666666666666666, 1, 1, 0, 1, 1, 1, 0.375, 1, 0, 0.625, 0.625};
const Values dice = {0,
                     1,
                     0.23076923076923078,
                     0.5,
                     1,
                     1,
                     not_a_number,
                     1,
                     1,
                     1,
                     0.23076923076923078,
                     1,
                     0,
                     0.45454545454545453,
                     0.45454545454545453};
const Values rogerstanimoto = {0,
                               0.7692307692307693,
                               0.5454545454545454,
                               0.6666666666666666,
                               1,
                               0.7692307692307693,
                               0,
                               1,
                               0.5454545454545454,
                               0.5454545454545454,
                               0.5454545454545454,
                               1,
                               0,
                               0.7692307692307693,
                               0.7692307692307693};
const Values russellrao = {0.375, 1, 0.375, 0.75, 1, 1, 1, 1, 1, 1, 0.375, 1, 0, 0.625, 0.625};
const Values sokalsneath = {0,
                            1,
                            0.5454545454545454,
                            0.8,
                            1,
                            1,
                            not_a_number,
                            1,
                            1,
                            1,
                            0.5454545454545454,
                            1,
                            0,
                            0.7692307692307693,
                            0.7692307692307693};
const Values yule = {0, 0, 0, 0.8571428571428571, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

/// A measure of counts[x][z] entries.
template <class Measure>
double measured(const double (&count)[2][2]) {
  const auto [above, below] = Measure::of(count[1][1], count[1][0], count[0][1], count[0][0]);
  return below == 0 ? Measure::undefined : above / below;
}

/// A measure of the counts of the truth values above.
template <class Measure>
Values measures() {
  Values list;
  for (int m = 0; m < 3; ++m)
    for (int n = 0; n < 5; ++n) {
      double count[2][2] = {};
      for (int i = 0; i < 8; ++i) ++count[x_truths[m * 8 + i] != 0][z_truths[n * 8 + i] != 0];
      list.push_back(measured<Measure>(count));
    }
  return list;
}

/// Eight truth values as the bits of a byte.
Values packed(const Values& truths) {
  Values words;
  for (std::size_t i = 0; i < truths.size(); i += 8) {
    int word = 0;
    for (int bit = 0; bit < 8; ++bit) word |= static_cast<int>(truths[i + bit]) << bit;
    words.push_back(word);
  }
  return words;
}

/// Rows of non-negative numbers that T holds.
template <class T>
Values random_abundances(int rows, int k, std::uint64_t seed) {
  support::Random random(seed);
  Values list(static_cast<std::size_t>(rows) * k);
  for (double& v : list) v = support::to_double(support::number<T>(random.uniform(0.01, 1)));
  return list;
}

/// Distances of T by every family of kernels against expected(x, z), in long double with a bound.
template <class T, class Exec, class M, class Expected>
void check(const M& metric, const Expected& expected) {
  const int m = 37, n = 23, k = 41;
  const Values x = random_abundances<T>(m, k, 1), z = random_abundances<T>(n, k, 2);
  with_each_family([&](const char* family) {
    const Values found = distances<T, Exec>(x, z, k, metric, {.kernel = family});
    double worst = 0;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        const Bounded e = expected(&x[i * k], &z[j * k], k);
        const auto error = std::fabs(found[i * n + j] - e.value);
        const auto ratio = static_cast<double>(error == 0 ? 0 : error / e.error);
        worst = support::larger(worst, ratio);
      }
    CAPTURE(family);
    CHECK(worst <= 1);
  });
}

/// The unit roundoff of the type that T is computed in.
template <class T>
constexpr double computed_unit = unit<rigel::accumulator_for<T>>;

template <class T>
Bounded canberra_of(const double* x, const double* z, int k) {
  long double sum = 0;
  for (int i = 0; i < k; ++i) sum += std::fabs(static_cast<long double>(x[i]) - z[i]) / (std::fabs(x[i]) + std::fabs(z[i]));
  return {sum, (k + 3) * computed_unit<T> * sum};
}

template <class T>
Bounded braycurtis_of(const double* x, const double* z, int k) {
  long double differences = 0, sums = 0;
  for (int i = 0; i < k; ++i) {
    differences += std::fabs(static_cast<long double>(x[i]) - z[i]);
    sums += std::fabs(static_cast<long double>(x[i]) + z[i]);
  }
  return {differences / sums, (2 * k + 3) * computed_unit<T> * differences / sums};
}

template <class T>
Bounded hellinger(const double* x, const double* z, int k) {
  long double sum = 0, of_roots = 0;  // a difference of roots is off by u·(√x + √z), and by u of itself
  for (int i = 0; i < k; ++i) {
    const long double a = std::sqrt(static_cast<long double>(x[i])), b = std::sqrt(static_cast<long double>(z[i]));
    sum += (a - b) * (a - b);
    of_roots += 2 * std::fabs(a - b) * (a + b);
  }
  // Tensor cores compute distances of floats within 1.01e-5 of them.
  const long double of_products = std::is_same_v<rigel::accumulator_for<T>, float> ? 2.1e-5L * sum : 0;
  const long double off = computed_unit<T> * (1.05L * of_roots + (k + 4) * sum) + of_products;
  return {std::sqrt(sum / 2), std::sqrt((sum + off) / 2) - std::sqrt(sum / 2) + 3 * computed_unit<T> * std::sqrt(sum / 2) +
                                  off / (2 * std::sqrt(2 * (sum - off)))};
}

template <class T>
Bounded entropy(const double* x, const double* z, int k) {
  long double sum = 0, magnitude = 0, mass = 0;
  for (int i = 0; i < k; ++i) {
    const long double term = x[i] * std::log(static_cast<long double>(x[i]) / z[i]);
    sum += term;
    magnitude += std::fabs(term);
    mass += x[i];
  }
  return {sum, computed_unit<T> * ((k + 4) * magnitude + 2 * mass)};
}

}  // namespace

TEST_CASE("dissimilarities: measures of Boolean rows are SciPy's") {
  CHECK(error_of(measures<metric::measure::jaccard>(), jaccard) <= 2 * unit<double>);
  CHECK(error_of(measures<metric::measure::dice>(), dice) <= 2 * unit<double>);
  CHECK(error_of(measures<metric::measure::rogerstanimoto>(), rogerstanimoto) <= 2 * unit<double>);
  CHECK(error_of(measures<metric::measure::russellrao>(), russellrao) <= 2 * unit<double>);
  CHECK(error_of(measures<metric::measure::sokalsneath>(), sokalsneath) <= 2 * unit<double>);
  CHECK(error_of(measures<metric::measure::yule>(), yule) <= 2 * unit<double>);
}

TEST_CASE_TEMPLATE("dissimilarities: SciPy's values", Exec, RIGEL_TEST_SPACES) {
  const auto numbers = [&]<class T>(T) {  // x and z hold numbers of half
    const double u = computed_unit<T>;
    CHECK(error_of(distances<T, Exec>(x_values, z_values, 4, metric::canberra{}), canberra) <= 7 * u);
    CHECK(error_of(distances<T, Exec>(x_values, z_values, 4, metric::braycurtis{}), braycurtis) <= 11 * u);
  };
  numbers(float{});
  numbers(double{});
  numbers(rigel::half{});
  const auto truths = [&]<class T>(T) {
    const double u = unit<double>;
    CHECK(error_of(distances<T, Exec>(x_truths, z_truths, 8, metric::jaccard{}), jaccard) <= 2 * u);
    CHECK(error_of(distances<T, Exec>(x_truths, z_truths, 8, metric::dice{}), dice) <= 2 * u);
    CHECK(error_of(distances<T, Exec>(x_truths, z_truths, 8, metric::rogerstanimoto{}), rogerstanimoto) <= 2 * u);
    CHECK(error_of(distances<T, Exec>(x_truths, z_truths, 8, metric::russellrao{}), russellrao) <= 2 * u);
    CHECK(error_of(distances<T, Exec>(x_truths, z_truths, 8, metric::sokalsneath{}), sokalsneath) <= 2 * u);
    CHECK(error_of(distances<T, Exec>(x_truths, z_truths, 8, metric::yule{}), yule) <= 2 * u);
  };
  truths(std::uint8_t{});
  truths(float{});
  const auto words = [&](const auto& metric, const Values& expected) {
    const Values found = distances<std::uint8_t, Exec>(packed(x_truths), packed(z_truths), 1, metric);
    CHECK(error_of(found, expected) <= 2 * unit<double>);
  };
  words(metric::bit_dice{}, dice);
  words(metric::bit_rogerstanimoto{}, rogerstanimoto);
  words(metric::bit_russellrao{}, russellrao);
  words(metric::bit_sokalsneath{}, sokalsneath);
  words(metric::bit_yule{}, yule);
}

// Rows as long as some words, and a bit less or more; NaN is true, −0 is not. Against counts by a plain loop.
TEST_CASE_TEMPLATE("dissimilarities: truth values of rows of any length", Exec, RIGEL_TEST_SPACES) {
  const auto check = [&]<class T, class Layout>(T, Layout, int k, const Values& truths) {
    CAPTURE(k);
    const int m = 5, n = 7;
    support::Random random(static_cast<std::uint64_t>(k));
    Values x(m * k), z(n * k);
    for (Values* const values : {&x, &z})
      for (double& value : *values) value = truths[static_cast<std::size_t>(random.uniform(0, 1) * truths.size())];
    const Kokkos::View<T**, Layout, typename Exec::memory_space> of_x("X", m, k), of_z("Z", n, k);
    const auto d = support::matrix<double, Exec>(m, n);
    Kokkos::deep_copy(of_x, support::matrix<T, Exec>(m, k, x));
    Kokkos::deep_copy(of_z, support::matrix<T, Exec>(n, k, z));
    rigel::cdist(Exec(), of_x, of_z, d, metric::rogerstanimoto{});
    Kokkos::fence();
    Values expected;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double count[2][2] = {};
        for (int l = 0; l < k; ++l) ++count[x[i * k + l] != 0][z[j * k + l] != 0];
        expected.push_back(measured<metric::measure::rogerstanimoto>(count));
      }
    CHECK(error_of(support::values(d), expected) <= 2 * unit<double>);
  };
  for (const int k : {1, 31, 32, 33, 64, 65, 100, 1000}) {
    check(std::uint8_t{}, Kokkos::LayoutRight{}, k, {0, 0, 1, 128, 255});
    check(std::int8_t{}, Kokkos::LayoutLeft{}, k, {0, -128, 1, 0});
    check(std::int32_t{}, Kokkos::LayoutRight{}, k, {0, 0, 65536, -1});
    check(float{}, Kokkos::LayoutLeft{}, k, {0, -0., 1e-45, not_a_number});
    check(double{}, Kokkos::LayoutRight{}, k, {0, -0., infinite, 1e-310});
    check(rigel::half{}, Kokkos::LayoutRight{}, k, {0, -0., 0.5, not_a_number});
  }
}

TEST_CASE_TEMPLATE("dissimilarities: packed rows and a workspace", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<std::uint8_t, Exec>(3, 8, x_truths),
             z = support::matrix<std::uint8_t, Exec>(5, 8, z_truths);
  const auto d = support::matrix<double, Exec>(3, 5);
  CHECK(rigel::explain_cdist(Exec(), x, z, d, metric::dice{}).starts_with("rows prepared: packed, u32, "));
  const std::size_t bytes = rigel::cdist_workspace_size(Exec(), x, z, d, metric::dice{});
  CHECK(bytes >= (3 + 5) * 4);
  const Kokkos::View<std::byte*, typename Exec::memory_space> memory("memory", bytes + 256);
  auto* const aligned = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256) % 256;
  rigel::cdist(Exec(), x, z, d, metric::dice{}, {.workspace = {aligned, bytes}});
  CHECK(error_of(support::values(d), dice) <= 2 * unit<double>);
  // Of no columns, every count is 0.
  const auto none = support::matrix<std::uint8_t, Exec>(2, 0);
  const auto e = support::matrix<double, Exec>(2, 2, {7, 7, 7, 7});
  rigel::cdist(Exec(), none, none, e, metric::jaccard{});
  CHECK(support::values(e) == Values{0, 0, 0, 0});
}

// The roots are rounded once, to what the formula says; a negative number is NaN, also on tensor cores.
TEST_CASE_TEMPLATE("dissimilarities: Hellinger's roots", Exec, RIGEL_TEST_SPACES) {
  const Values found = distances<float, Exec>({1, 4, 0, 9}, {4, 1, 9, 0, -1, 0}, 2, metric::hellinger{});
  // √½·√((1−2)² + (2−1)²), √½·√((1−3)² + (2−0)²), NaN; √½·√((0−2)² + (3−1)²), √½·√((0−3)² + (3−0)²), NaN.
  CHECK(error_of(found, {1, 2, not_a_number, 2, 3, not_a_number}) <= 2e-5);
}

TEST_CASE_TEMPLATE("dissimilarities: within their bounds", Exec, RIGEL_TEST_SPACES) {
  const auto all = [&]<class T>(T) {
    check<T, Exec>(metric::canberra{}, canberra_of<T>);
    check<T, Exec>(metric::braycurtis{}, braycurtis_of<T>);
    check<T, Exec>(metric::hellinger{}, hellinger<T>);
    check<T, Exec>(metric::kl_divergence{}, entropy<T>);
  };
  all(float{});
  all(double{});
  all(rigel::half{});
}

// Zeros, numbers at the limits of double, and rows that are not finite; the bits of other rows do not depend on them.
TEST_CASE_TEMPLATE("dissimilarities: canberra of any numbers", Exec, RIGEL_TEST_SPACES) {
  const int k = 3;
  const Values z = {1, 2, 3, 0, 0, 0, 0.1, -0.7, 1e-310, 1e300, -1e-300, 0.3};
  const Values x = {1, 2, 3, 0.3, 0, -7, 0.9, 0.1, 0.2};
  const Values alone = distances<double, Exec>(x, z, k, metric::canberra{});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      const Bounded e = [&] {
        long double sum = 0;
        for (int l = 0; l < k; ++l) {
          const long double a = x[i * k + l], b = z[j * k + l];
          sum += a == 0 && b == 0 ? 0 : std::fabs(a - b) / (std::fabs(a) + std::fabs(b));
        }
        return Bounded{sum, (k + 4) * unit<double> * sum};
      }();
      CHECK(std::fabs(alone[i * 4 + j] - e.value) <= e.error);
    }
  Values more = x;
  more.insert(more.end(), {infinite, 1, 2, 1, not_a_number, 2, 1e308, 5e-324, 0});
  const Values all = distances<double, Exec>(more, z, k, metric::canberra{}, {.require = rigel::Promise::batch_invariant});
  const Values of_x = distances<double, Exec>(x, z, k, metric::canberra{}, {.require = rigel::Promise::batch_invariant});
  CHECK(std::equal(of_x.begin(), of_x.end(), all.begin()));
  for (int j = 0; j < 4; ++j) {
    CHECK(std::isnan(all[12 + j]));
    CHECK(std::isnan(all[16 + j]));
    CHECK(std::isfinite(all[20 + j]));
  }
}

// A row of zeros, tiny numbers and infinities next to other rows, whose bits stay.
TEST_CASE_TEMPLATE("dissimilarities: rows of floats do not depend on others", Exec, RIGEL_TEST_SPACES) {
  const int k = 45, rows = 21, columns = 37;
  Values x = random_abundances<float>(rows, k, 3);
  const Values z = random_abundances<float>(columns, k, 4);
  for (std::size_t i = 0; i < x.size(); i += 7) x[i] = 0;
  Values more = x, tiny = x;
  for (double& v : tiny) v = static_cast<float>(v * 0x1p-110);
  more.insert(more.end(), tiny.begin(), tiny.end());
  more.insert(more.end(), static_cast<std::size_t>(k), 0);
  more.insert(more.end(), static_cast<std::size_t>(k), infinite);
  const auto check = [&](const auto& metric) {
    const rigel::CdistOptions options{.require = rigel::Promise::batch_invariant};
    const Values alone = distances<float, Exec>(x, z, k, metric, options),
                 all = distances<float, Exec>(more, z, k, metric, options);
    CHECK(std::equal(alone.begin(), alone.end(), all.begin()));
  };
  check(metric::canberra{});
  check(metric::jensenshannon{});
  check(metric::kl_divergence{});
}

// Sums and differences beyond the largest number, and the largest next to the smallest ones, by every family.
TEST_CASE_TEMPLATE("dissimilarities: canberra at the limits", Exec, RIGEL_TEST_SPACES) {
  const auto check = [&]<class T>(T) {
    using Limits = std::numeric_limits<T>;
    const double most = Limits::max(), tiny = Limits::denorm_min();
    const Values x = {0.75 * most, most, tiny, 0.75 * most, 0, 0, 1, 2, 0, 0.5 * most, 0, 0},
                 z = {-0.75 * most, tiny, -tiny, 0.5 * most, 0, 0};
    // By hand: 1 + 1 + 1, .2 + 1 + 1; 1 + 1 + 1, .2; …
    const Values expected = {3, 2.2, 3, 0.2, 3, 2, 3, 0};
    with_each_family([&](const char* family) {
      CAPTURE(family);
      const Values found = distances<T, Exec>(x, z, 3, metric::canberra{}, {.kernel = family});
      CHECK(error_of(found, expected) <= 7 * unit<T>);
    });
  };
  check(float{});
  check(double{});
}

// In 50 digits: quotients beyond the type's range, whose logarithms are not; and 0 against NaN.
TEST_CASE_TEMPLATE("dissimilarities: divergences of far numbers", Exec, RIGEL_TEST_SPACES) {
  with_each_family([&](const char* family) {
    const auto of = [&]<class T>(T, const Values& x, const Values& z) {  // of rows of two
      return distances<T, Exec>(x, z, 2, metric::kl_divergence{}, {.kernel = family});
    };
    const auto diagonal = [](const Values& all) {
      const auto n = static_cast<std::size_t>(std::sqrt(static_cast<double>(all.size())));
      Values list;
      for (std::size_t i = 0; i < n; ++i) list.push_back(all[i * n + i]);
      return list;
    };
    const Values floats =
        diagonal(of(float{}, {0.5, 0.5, 1e20f, 0, 1e-30f, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, -1e-20f, 0},
                    {1, 1e-39f, 1e-20f, 0, 1e20f, 0, not_a_number, 1, infinite, 1, 0, 1, -1, 1, 0, 1, 1e30f, 0}));
    const Values doubles =
        diagonal(of(double{}, {1e200, 0, 0x1p-1074, 1, 0, 1}, {1e-200, 0, 0x1p1023, 0x1p-1030, not_a_number, 1}));
    CAPTURE(family);
    CHECK(error_of(floats, {44.207262025171290489, 9.21034056173702003e21, 1e-30f * -115.129254649702, not_a_number, 0, 0, 0,
                            infinite, not_a_number}) <= 6 * unit<float>);
    CHECK(error_of(doubles, {9.2103403719761824572e202, 713.94159597674367, not_a_number}) <= 6 * unit<double>);
  });
}

TEST_CASE_TEMPLATE("dissimilarities: the divergence of distributions with zeros", Exec, RIGEL_TEST_SPACES) {
  const Values found = distances<double, Exec>({0, 1, 0.5, 0.5}, {0.5, 0.5, 0, 1}, 2, metric::kl_divergence{});
  CHECK(std::fabs(found[0] - std::log(2.)) <= 4 * unit<double>);
  CHECK(found[1] == 0);
  CHECK(found[2] == 0);
  CHECK(found[3] == infinite);
}

// A term is a·ln(a/b), also of numbers whose quotient needs care: 0 and -0, next to the limits of float, negative, infinite and NaN. Tiles
// of a GPU take shorter steps where all numbers are 0 or between 2^-62 and 2^62.
TEST_CASE_TEMPLATE("dissimilarities: the divergence of any floats", Exec, RIGEL_TEST_SPACES) {
  const Values regular = {0, 1, 0.5, 0x1.333334p-2, 0x1.fffffep-1, 0x1.555556p-1, 0x1.555554p0, 0x1p-62, 0x1p62, 0x1.8p-30};
  Values any = regular;
  any.insert(any.end(), {-0., 0x1p-63, 0x1p63, 0x1p-149, 0x3p-140, 0x1.8p-126, 0x1.5p127, -1, -0x1p-70, infinite, -infinite,
                         not_a_number});
  const auto check = [&](const Values& numbers, const std::string& kernel) {
    const int copies = 5, k = 2, rows = copies * static_cast<int>(numbers.size());
    Values x, z;
    for (int copy = 0; copy < copies; ++copy)
      for (const double v : numbers) {
        x.insert(x.end(), {v, 0.75});
        z.insert(z.end(), {v, 0.5});
      }
    const Values found = distances<float, Exec>(x, z, k, metric::kl_divergence{}, {.kernel = kernel});
    CAPTURE(kernel);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < rows; ++j) {
        const double a = x[i * k], b = z[j * k], term = a == 0 && b == b ? 0 : a * std::log(a / b);
        if (std::isfinite(term) && std::fabs(term) > 0x1p127) continue;  // the order of roundings decides what overflows
        CAPTURE(a);
        CAPTURE(b);
        const double other = 0.75 * std::log(1.5), sum = term + other, value = found[i * rows + j];
        const double bound = unit<float> * ((k + 4) * (std::fabs(term) + other) + 2 * (std::fabs(a) + 0.75)) + 0x1p-149;
        if (std::isfinite(sum))
          CHECK(std::fabs(value - sum) <= bound);
        else
          CHECK((std::isnan(sum) ? std::isnan(value) : value == sum));
      }
  };
  for (const Values& numbers : {regular, any}) {
    check(numbers, "");
    if (rigel::detail::space_of<Exec> != rigel::Space::cuda) continue;
    for (const char* tile : {"64x128x8", "32x32x16"})
      check(numbers, std::string("cuda.simt.::rigel::relative_entropy<float>.f32.") + tile);
  }
}

TEST_CASE_TEMPLATE("dissimilarities: a row does not diverge from itself", Exec, RIGEL_TEST_SPACES) {
  const int rows = 130, k = 33;
  const Values x = random_abundances<float>(rows, k, 5);
  const Values found = distances<float, Exec>(x, x, k, metric::kl_divergence{});
  for (int i = 0; i < rows; ++i) CHECK(found[i * rows + i] == 0);
}

// Differences and sums that the elements' type, or double, does not hold.
TEST_CASE_TEMPLATE("dissimilarities: braycurtis of integers", Exec, RIGEL_TEST_SPACES) {
  const auto of = []<class T>(const std::vector<T>& x_numbers, const std::vector<T>& z_numbers, std::int64_t k) {
    using View = Kokkos::View<T**, Kokkos::LayoutStride, typename Exec::memory_space>;
    const auto columns = static_cast<std::size_t>(k), stride = static_cast<std::size_t>(x_numbers.size() > 1);
    const Kokkos::View<T*, typename Exec::memory_space> x("x", x_numbers.size()), z("z", z_numbers.size());
    support::copy_in<Exec>(x.data(), x_numbers.data(), x_numbers.size() * sizeof(T));
    support::copy_in<Exec>(z.data(), z_numbers.data(), z_numbers.size() * sizeof(T));
    const Kokkos::LayoutStride layout(1, 1, columns, stride);
    const auto d = support::matrix<double, Exec>(1, 1);
    rigel::cdist(Exec(), View(x.data(), layout), View(z.data(), layout), d, metric::braycurtis{});
    return support::values(d)[0];
  };
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min(), most = std::numeric_limits<std::int32_t>::max();
  CHECK(of(std::vector{1, 2}, std::vector{3, -5}, 2) == 9. / 7);
  CHECK(of(std::vector{least}, std::vector{most}, 1) == 0x1p32 - 1);
  CHECK(of(std::vector{most, most}, std::vector{most, least}, 2) == 1);  // (2^32 - 1) / (2^32 - 2 + 1)
  constexpr std::int64_t far = std::int64_t{1} << 60, lowest = std::numeric_limits<std::int64_t>::min(),
                         highest = std::numeric_limits<std::int64_t>::max();
  CHECK(of(std::vector{far, far}, std::vector{far + 1, far}, 2) == 0x1p-62);     // 1 / (2^62 + 1)
  CHECK(of(std::vector{far, -far}, std::vector{far, far - 1}, 2) == 1);          // (2^61 - 1) / (2^61 + 1)
  CHECK(of(std::vector{lowest}, std::vector{highest}, 1) == 0x1p64);             // 2^64 - 1, rounded, to 1
  CHECK(of(std::vector{lowest, far}, std::vector{lowest, -far}, 2) == 0x1p-3);   // 2^61 / 2^64
  CHECK(of(std::vector{lowest, lowest}, std::vector{lowest, highest}, 2) == 1);  // 2^64 - 1, rounded, to 2^64 + 1, rounded
  // One number in memory serves all columns; sums of 509 reach 2^31 after 4219038 of them.
  CHECK(of(std::vector<std::uint8_t>{255}, std::vector<std::uint8_t>{254}, 4300000) == 1. / 509);
}

TEST_CASE_TEMPLATE("dissimilarities: rows without numbers", Exec, RIGEL_TEST_SPACES) {
  const auto none = support::matrix<double, Exec>(1, 0), d = support::matrix<double, Exec>(1, 1, {7});
  rigel::cdist(Exec(), none, none, d, metric::canberra{});
  CHECK(support::values(d) == Values{0});
  rigel::cdist(Exec(), none, none, d, metric::braycurtis{});
  CHECK(support::same(support::values(d), {not_a_number}));
}
