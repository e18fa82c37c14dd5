// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Euclidean distances by |x|² + |z|² − 2x·z: near points, self-distances, data far from the origin, and overflow, compared with
// differences in long double. The zoo's trials and verify() cover all shapes and layouts.
#include <rigel/distance.hpp>

#include <tests/backends/special_data.hpp>
#include <tests/support/error.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using Values = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity();
/// The square root of the largest number.
template <class T>
const double large = std::sqrt(static_cast<double>(std::numeric_limits<T>::max()));

/// The relative error bound of a distance; a squared distance has twice that.
double bound_of(const rigel::KernelInfo& info, int k) {
  const double u = info.element == rigel::Scalar::f32 ? 0x1p-24 : 0x1p-53;
  return ((info.accuracy.constant + info.accuracy.per_term * k) / 2 + 2) * u;
}

/// The kernels of l2_squared on tensor cores.
template <class T, class Exec>
std::vector<rigel::KernelInfo> kernels() {
  std::vector<rigel::KernelInfo> list;
  for (const auto& info : support::kernels_on(Exec{}, "l2_squared", rigel::scalar_of<T>))
    if (info.family == "cuda.mma") list.push_back(info);
  if (rigel::detail::space_of<Exec> == rigel::Space::cuda)
    CHECK(list.size() >= (std::is_same_v<T, float> ? 4 : 2));
  else
    support::skip("tensor cores: a host has none");
  return list;
}
/// Whether the kernel converts floats to doubles.
bool in_double(const rigel::KernelInfo& info) { return info.variant == "in_f64"; }

/// Calls check.operator()<T>() for the types that have kernels.
template <class Check>
void for_each_type(const Check& check) {
  check.template operator()<float>();
  check.template operator()<double>();
}

/// A standard normal number.
double normal(support::Random& random) {
  const double u = random.uniform(0x1p-30, 1), v = random.uniform(0, 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979 * v);
}
template <class T>
Values normal_points(int lines, int k, std::uint64_t seed, double mean = 0, double deviation = 1) {
  support::Random random(seed);
  Values list(lines * k);
  for (double& v : list) v = static_cast<T>(mean + deviation * normal(random));
  return list;
}
/// The same points moved in a random direction.
template <class T>
Values moved(const Values& points, int k, double by, std::uint64_t seed) {
  Values list = points;
  support::Random random(seed);
  for (double& v : list) v = static_cast<T>(v + by / std::sqrt(k) * normal(random));
  return list;
}

/// The square of a distance, by differences.
long double exact_square(int i, int j, int k, const Values& x, const Values& z) {
  long double sum = 0;
  for (int c = 0; c < k; ++c) {
    const long double d = static_cast<long double>(x[i * k + c]) - z[j * k + c];
    sum += d * d;
  }
  return sum;
}
Values exact(int m, int n, int k, const Values& x, const Values& z) {
  Values d(m * n);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) d[i * n + j] = static_cast<double>(std::sqrt(exact_square(i, j, k, x, z)));
  return d;
}

template <class T, class Exec>
Values distances(const rigel::KernelInfo& info, int m, int n, int k, const Values& x, const Values& z,
                 bool may_cancel = false) {
  const auto d = support::matrix<T, Exec>(m, n);
  rigel::cdist(Exec{}, support::matrix<T, Exec>(m, k, x), support::matrix<T, Exec>(n, k, z), d, rigel::metric::euclidean{},
               {.precision = info.precision, .may_cancel = may_cancel, .kernel = info.name});
  return support::values(d);
}
/// Distances of the points of one view from themselves.
template <class T, class Exec>
Values self_distances(const rigel::KernelInfo& info, int m, int k, const Values& x, bool may_cancel = false) {
  const auto view = support::matrix<T, Exec>(m, k, x);
  const auto d = support::matrix<T, Exec>(m, m);
  rigel::cdist(Exec{}, view, view, d, rigel::metric::euclidean{},
               {.precision = info.precision, .may_cancel = may_cancel, .kernel = info.name});
  return support::values(d);
}

/// Whether both are of one class and, if finite, differ by at most `bound` of the expected one.
bool is_within(double found, double expected, double bound) {
  if (std::isnan(expected)) return std::isnan(found);
  return found == expected || (std::isfinite(expected) && std::fabs(found - expected) <= bound * expected);
}

/// The largest relative error; infinite if one of the two is 0 or NaN and the other is not.
double error_of(const Values& found, const Values& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double e = found[i] == expected[i] ? 0 : std::fabs(found[i] - expected[i]) / expected[i];
    worst = e == e ? std::max(worst, e) : infinity;
  }
  return worst;
}

}  // namespace

TEST_CASE_TEMPLATE("distances on tensor cores: within their bound, near points too", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 140;
  for_each_type([&]<class T>() {
    for (const auto& info : kernels<T, Exec>()) {
      CAPTURE(info.name);
      CHECK(info.precision == (in_double(info) ? rigel::Precision::exact_products : rigel::Precision::promoted));
      // Rows of C that are stored element by element, and in vectors.
      for (const auto [n, k] : {std::pair{133, 1}, {132, 7}, {133, 64}, {132, 64}, {133, 333}, {136, 333}}) {
        CAPTURE(n);
        CAPTURE(k);
        const double bound = bound_of(info, k);
        const auto error = [&](const Values& x, const Values& z) {
          return error_of(distances<T, Exec>(info, m, n, k, x, z), exact(m, n, k, x, z));
        };
        const Values far = normal_points<T>(m, k, 1, 100, 10);
        CHECK(error(normal_points<T>(m, k, 6), normal_points<T>(n, k, 7)) <= bound);
        // Pairs of near points around 100 ± 10; ordinary points with a few near ones; all points near one point.
        for (const double apart : std::is_same_v<T, float> ? Values{1e-3} : Values{1e-3, 1e-6, 1e-9}) {
          CAPTURE(apart);
          Values near = moved<T>(far, k, apart, 2), few = normal_points<T>(m, k, 3, 100, 10);
          near.resize(n * k);
          few.resize(n * k);
          std::copy(near.begin(), near.begin() + 2 * k, few.begin() + 30 * k);
          CHECK(error(far, near) <= bound);
          CHECK(error(far, few) <= bound);
          CHECK(error(moved<T>(Values(m * k, 99), k, apart, 4), moved<T>(Values(n * k, 99), k, apart, 5)) <= bound);
          // Two groups on either side of the centre, so that half of all outputs cancel.
          Values groups = normal_points<T>(1, k, 8), x, z;
          for (int i = 0; i < m; ++i)
            for (int c = 0; c < k; ++c) x.push_back(i % 2 ? groups[c] : -groups[c]);
          z = moved<T>(x, k, apart, 10), x = moved<T>(x, k, apart, 11);
          z.resize(n * k);
          CHECK(error(x, z) <= bound);
        }
      }
    }
  });
}

// Distances of floats through double are rounded once, and their roots once more.
TEST_CASE_TEMPLATE("distances on tensor cores: of floats as doubles", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 150, n = 100, k = 1000;
  const Values x = normal_points<float>(m, k, 21, 100, 10), z = normal_points<float>(n, k, 22, 100, 10);
  for (const auto& info : kernels<float, Exec>()) {
    if (!in_double(info)) continue;
    CAPTURE(info.name);
    CHECK(error_of(distances<float, Exec>(info, m, n, k, x, z), exact(m, n, k, x, z)) <= 1.7 * 0x1p-24);
    CHECK(error_of(self_distances<float, Exec>(info, m, k, x), exact(m, m, k, x, x)) <= 1.7 * 0x1p-24);
  }
}

TEST_CASE_TEMPLATE("distances on tensor cores: of points and themselves 0, and symmetric", Exec, RIGEL_TEST_SPACES) {
  constexpr int k = 70;
  for_each_type([&]<class T>() {
    for (const int m : {333, 332, 320}) {
      CAPTURE(m);
      Values x = normal_points<T>(m, k, 12, 100, 10);
      std::copy(x.begin() + 5 * k, x.begin() + 6 * k, x.begin() + 300 * k);  // a duplicate point
      const Values expected = exact(m, m, k, x, x);
      for (const auto& info : kernels<T, Exec>()) {
        CAPTURE(info.name);
        const Values d = self_distances<T, Exec>(info, m, k, x), of_copies = distances<T, Exec>(info, m, m, k, x, x);
        const Values cancelled = self_distances<T, Exec>(info, m, k, x, true);
        CHECK(error_of(d, expected) <= bound_of(info, k));
        CHECK(error_of(of_copies, expected) <= bound_of(info, k));
        int wrong = 0;
        for (int i = 0; i < m; ++i) {
          wrong += d[i * m + i] != 0 || of_copies[i * m + i] != 0 || cancelled[i * m + i] != 0;
          for (int j = 0; j < i; ++j) wrong += d[i * m + j] != d[j * m + i] || cancelled[i * m + j] != cancelled[j * m + i];
        }
        CHECK(wrong == 0);
        CHECK(d[5 * m + 300] == 0);
      }
    }
  });
}

// options.may_cancel: |error| ≤ b·(|x − c|² + |z − c|²), where c is the median of eight rows and docs/numerics.md gives b.
TEST_CASE_TEMPLATE("distances on tensor cores: what cancels may stay", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 136, n = 132;
  for_each_type([&]<class T>() {
    for (const int k : {0, 1, 64, 333}) {
      CAPTURE(k);
      Values x = normal_points<T>(m, k, 31, 100, 10), z = moved<T>(x, k, 1e-3, 32);
      z.resize(n * k);
      Values centre(k), norms_x(m), norms_z(n);
      for (int c = 0; c < k; ++c) {
        Values samples;
        for (int i = 0; i < 8; ++i) samples.push_back(x[i * (m / 8) * k + c]);
        std::sort(samples.begin(), samples.end());
        centre[c] = static_cast<T>((samples[3] + samples[4]) / 2);
      }
      for (int i = 0; i < m; ++i) norms_x[i] = static_cast<double>(exact_square(i, 0, k, x, centre));
      for (int j = 0; j < n; ++j) norms_z[j] = static_cast<double>(exact_square(j, 0, k, z, centre));
      for (const auto& info : kernels<T, Exec>()) {
        CAPTURE(info.name);
        const bool as_halves = std::is_same_v<T, float> && !in_double(info);
        const double b = as_halves ? (66 + k / 16.) * 0x1p-24 : (15 + k + k / 32.) * 0x1p-53;
        const double rounding = std::is_same_v<T, float> ? 4 * 0x1p-24 : 4 * 0x1p-53;
        const Values found = distances<T, Exec>(info, m, n, k, x, z, true);
        // Results that cancel differ from those with a guard, except for floats in double, which keep more digits than float
        // has.
        if (k > 1 && !in_double(info)) CHECK(found != distances<T, Exec>(info, m, n, k, x, z));
        const double least = std::is_same_v<T, float> ? 0x1p-126 : 0x1p-1000;
        int wrong = 0, zero = 0;
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            const double d = found[i * n + j];
            const auto square = static_cast<double>(exact_square(i, j, k, x, z));
            wrong += !(d >= 0 && std::fabs(d * d - square) <= b * (norms_x[i] + norms_z[j]) + rounding * square + least);
            zero += d == 0;
          }
        CHECK(wrong == 0);
        if (k == 0) CHECK(zero == m * n);
      }
    }
  });
}

// Finite norms and an infinite distance: in vectors, away from the diagonal and next to it.
TEST_CASE_TEMPLATE("distances on tensor cores: squares that overflow", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 256, k = 4;
  for_each_type([&]<class T>() {
    Values x(m * k, 0.);
    x[0] = static_cast<T>(0.66 * large<T>);
    for (const int line : {1, 70, 200}) x[line * k] = -x[0];
    for (const auto& info : kernels<T, Exec>()) {
      CAPTURE(info.name);
      for (const bool self : {false, true})
        for (const bool may_cancel : {false, true}) {
          const Values d = self ? self_distances<T, Exec>(info, m, k, x, may_cancel)
                                : distances<T, Exec>(info, m, m, k, x, x, may_cancel);
          int wrong = 0;
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < m; ++j) {
              const double difference = std::fabs(x[i * k] - x[j * k]);
              const double expected = difference > large<T> ? infinity : difference;
              // With may_cancel, the distance of equal points far from the centre may be up to 2^-9 of their distance from it.
              const bool small = may_cancel && expected == 0 && d[i * m + j] >= 0 && d[i * m + j] <= 0x1p-9 * large<T>;
              wrong += !(small || is_within(d[i * m + j], expected, bound_of(info, k)));
            }
          CHECK(wrong == 0);
        }
    }
  });
}

// Batches of self-distances, with accumulation, in vectors, and with an epilogue that reads the diagonal.
TEST_CASE_TEMPLATE("distances on tensor cores: batches of points and themselves", Exec, RIGEL_TEST_SPACES) {
  constexpr int batches = 3, m = 260, k = 20;
  for_each_type([&]<class T>() {
    const Values x = normal_points<T>(batches * m, k, 16, 5);
    const auto view = support::batch<T, Exec>(batches, m, k, x);
    for (const auto& info : kernels<T, Exec>()) {
      CAPTURE(info.name);
      for (const double before : {0., 3.}) {
        CAPTURE(before);
        const auto d = support::batch<T, Exec>(batches, m, m, Values(batches * m * m, before));
        rigel::contract(Exec{}, rigel::l2_squared<T>{}, view, rigel::transposed(view), d,
                        before == 0 ? rigel::epilogue::pow(0.5) : rigel::epilogue::add_diagonal(1),
                        {.accumulate = before != 0, .precision = info.precision, .kernel = info.name});
        const Values found = support::values(d);
        Values expected;
        for (int l = 0; l < batches; ++l) {
          const Values own(x.begin() + l * m * k, x.begin() + (l + 1) * m * k), root = exact(m, m, k, own, own);
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < m; ++j) {
              const double v = root[i * m + j];
              expected.push_back(before == 0 ? v : before + v * v + (i == j));
            }
        }
        CHECK(error_of(found, expected) <= 2 * bound_of(info, k));
      }
    }
  });
}

// Rejected and kept tiles next to each other: blocks of 64 and of 32 rows that are near each other, on one side of the centre,
// between blocks elsewhere, and single rows of either kind among the others. One launch has enough tiles for all
// multiprocessors, tiles of which only a part is rejected, and tiles with few rejected outputs.
TEST_CASE_TEMPLATE("distances on tensor cores: tiles that are rejected in parts", Exec, RIGEL_TEST_SPACES) {
  constexpr int batches = 3, samples = 8;
  // `apart`: how many rows apart the rows are whose median is the centre, four on either side of it; 0: there are none here.
  const auto points = [](int lines, int k, int blocks, std::uint64_t seed, int apart) {
    support::Random random(seed);
    Values list;
    for (int i = 0; i < lines; ++i) {
      const bool sampled = apart > 0 && i % apart == 0 && i / apart < samples;
      bool elsewhere = i / (i < lines / 2 ? 64 : 32) % blocks == 2;
      if (i % 41 == 7) elsewhere = !elsewhere;
      for (int c = 0; c < k; ++c) {
        double side = elsewhere && (c + static_cast<int>(seed % 2) * c / 2) % 2 ? -100 : 100;
        if (sampled) side = i / apart < samples / 2 ? -100 : 100;
        list.push_back(static_cast<float>(side + 0.01 * normal(random)));
      }
    }
    return list;
  };
  for_each_type([&]<class T>() {
    const auto all = kernels<T, Exec>();
    for (const bool self : {false, true})
      for (const auto [k, before] : {std::pair{16, 0.}, {13, 0.25}}) {
        CAPTURE(self);
        CAPTURE(k);
        if (all.empty()) continue;
        const int m = self ? 1301 : 1025, n = self ? m : 1163;
        Values x, z, expected;
        for (int l = 0; l < batches; ++l) {
          const Values of_x = points(m, k, 5, 17 + 2 * l, m / samples), of_z = points(n, k, 7, 18 + 2 * l, 0);
          x.insert(x.end(), of_x.begin(), of_x.end());
          z.insert(z.end(), of_z.begin(), of_z.end());
          for (const double v : exact(m, n, k, of_x, self ? of_x : of_z))
            expected.push_back(std::hypot(std::sqrt(before), v));
        }
        const auto x_view = support::batch<T, Exec>(batches, m, k, x);
        const auto z_view = self ? x_view : support::batch<T, Exec>(batches, n, k, z);
        for (const auto& info : all) {
          CAPTURE(info.name);
          const auto d = support::batch<T, Exec>(batches, m, n, Values(std::size_t(batches) * m * n, before));
          rigel::contract(Exec{}, rigel::l2_squared<T>{}, x_view, rigel::transposed(z_view), d, rigel::epilogue::pow(0.5),
                          {.accumulate = before != 0, .precision = info.precision, .kernel = info.name});
          CHECK(error_of(support::values(d), expected) <= bound_of(info, k));
        }
      }
  });
}

// Tiles all of whose outputs cancel: each output is one chain of differences in ascending k, as in cuda.simt, for every layout.
TEST_CASE_TEMPLATE("distances on tensor cores: what cancels in whole tiles has the bits of one chain", Exec,
                   RIGEL_TEST_SPACES) {
  constexpr int m = 256;
  const auto transposed_values = [](const Values& list, int lines, int k) {
    Values t(list.size());
    for (int i = 0; i < lines; ++i)
      for (int c = 0; c < k; ++c) t[c * lines + i] = list[i * k + c];
    return t;
  };
  for_each_type([&]<class T>() {
    // The larger n ends in the first columns of a tile, of half a tile and of a quarter of one.
    for (const auto& [n, k] :
         std::vector<std::pair<int, int>>{{384, 1}, {384, 16}, {384, 67}, {384, 72}, {389, 1}, {389, 67}}) {
      CAPTURE(n);
      CAPTURE(k);
      Values x = moved<T>(Values(m * k, 100), k, 1e-3, 41);
      const Values z = moved<T>(Values(n * k, 100), k, 1e-3, 42);
      // Four of the eight rows whose median is the centre are elsewhere; their outputs may be kept.
      const auto is_elsewhere = [&](int i) { return i % (m / 8) == 0 && i / (m / 8) < 4; };
      for (int i = 0; i < m * k; ++i)
        if (is_elsewhere(i / k)) x[i] = -x[i];
      const auto x_view = support::matrix<T, Exec>(m, k, x), z_view = support::matrix<T, Exec>(n, k, z);
      const auto x_across = support::matrix<T, Exec>(k, m, transposed_values(x, m, k)),
                 z_across = support::matrix<T, Exec>(k, n, transposed_values(z, n, k));
      const auto chains = [&]<class Sum>() {
        const auto d = support::matrix<Sum, Exec>(m, n);
        rigel::contract(Exec{}, rigel::l2_squared<Sum>{}, support::matrix<Sum, Exec>(m, k, x),
                        rigel::transposed(support::matrix<Sum, Exec>(n, k, z)), d, rigel::epilogue::Program{},
                        {.kernel = "reference"});
        Values list = support::values(d);
        for (double& v : list) v = static_cast<T>(v);
        return list;
      };
      for (const auto& info : kernels<T, Exec>()) {
        CAPTURE(info.name);
        const Values expected = in_double(info) ? chains.template operator()<double>() : chains.template operator()<T>();
        for (const bool along_k : {true, false}) {
          CAPTURE(along_k);
          const auto d = support::matrix<T, Exec>(m, n);
          const auto compute = [&](const auto& a, const auto& b) {
            rigel::contract(Exec{}, rigel::l2_squared<T>{}, a, b, d, rigel::epilogue::Program{},
                            {.precision = info.precision, .kernel = info.name});
          };
          if (along_k)
            compute(x_view, rigel::transposed(z_view));
          else
            compute(rigel::transposed(x_across), z_across);
          const Values found = support::values(d);
          int wrong = 0;
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) wrong += !is_elsewhere(i) && found[i * n + j] != expected[i * n + j];
          CHECK(wrong == 0);
        }
      }
    }
  });
}

// Overflow and NaN affect only their own row and column, and give what differences give.
TEST_CASE_TEMPLATE("distances on tensor cores: infinities, NaN, very large and very small numbers", Exec,
                   RIGEL_TEST_SPACES) {
  constexpr int m = 9, k = 40;
  const double nan = std::nan("");
  for_each_type([&]<class T>() {
    Values x = normal_points<T>(m, k, 13);
    x[0 * k + 3] = infinity, x[1 * k + 3] = infinity, x[2 * k + 3] = -infinity, x[3 * k + 7] = nan;
    x[4 * k + 1] = static_cast<T>(1e11 * large<T>), x[5 * k + 1] = static_cast<T>(0.8 * large<T>);
    for (int c = 0; c < k; ++c) x[6 * k + c] = static_cast<T>(x[6 * k + c] * (std::is_same_v<T, float> ? 1e-30 : 1e-250));
    for (const auto& info : kernels<T, Exec>()) {
      CAPTURE(info.name);
      for (const bool self : {false, true}) {
        const Values d = self ? self_distances<T, Exec>(info, m, k, x) : distances<T, Exec>(info, m, m, k, x, x);
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < m; ++j) {
            CAPTURE(i);
            CAPTURE(j);
            const long double sum = exact_square(i, j, k, x, x);
            const double expected = sum > std::numeric_limits<T>::max() ? infinity : static_cast<double>(std::sqrt(sum));
            const double found = d[i * m + j];
            CHECK_MESSAGE(is_within(found, expected, bound_of(info, k)), found, " for ", expected);
          }
      }
    }
  });
}

namespace {

/// Distances of rows of x from rows of z, from operands whose lines (`across`: whose k) are contiguous, with `before` in D.
template <class T, class Exec>
Values distances_in(const rigel::KernelInfo& info, int m, int n, int k, const Values& x, const Values& z, bool across,
                    double before = 0) {
  const auto transposed_values = [k](const Values& list, int lines) {
    Values t(list.size());
    for (int i = 0; i < lines; ++i)
      for (int c = 0; c < k; ++c) t[c * lines + i] = list[i * k + c];
    return t;
  };
  const auto d = support::matrix<T, Exec>(m, n, Values(static_cast<std::size_t>(m) * n, before));
  const auto compute = [&](const auto& a, const auto& b) {
    rigel::contract(Exec{}, rigel::l2_squared<T>{}, a, b, d, rigel::epilogue::pow(0.5),
                    {.accumulate = before != 0, .precision = info.precision, .kernel = info.name});
  };
  if (across)
    compute(rigel::transposed(support::matrix<T, Exec>(k, m, transposed_values(x, m))),
            support::matrix<T, Exec>(k, n, transposed_values(z, n)));
  else
    compute(support::matrix<T, Exec>(m, k, x), rigel::transposed(support::matrix<T, Exec>(n, k, z)));
  return support::values(d);
}

}  // namespace

// By every kernel. A NaN makes its row or column NaN; other outputs that are not finite are computed by differences: one by one, or in
// tiles.
TEST_CASE_TEMPLATE("distances: data that is not finite, or overflows", Exec, RIGEL_TEST_SPACES) {
  for_each_type([&]<class T>() {
    kernels<T, Exec>();
    for (const special::Data& data : special::all())
      for (const auto& [m, n, k] : std::vector<std::tuple<int, int, int>>{{70, 67, 33}, {200, 133, 64}}) {
        CAPTURE(data.name);
        CAPTURE(k);
        Values x = normal_points<T>(m, k, 51), z = normal_points<T>(n, k, 52);
        support::Random random(53);
        data.change({x, m, k}, {z, n, k}, static_cast<T>(0.9 * std::numeric_limits<T>::max()), random);
        for (const double before : {0., 0.25}) {
          CAPTURE(before);
          Values expected;
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
              const long double sum = before + exact_square(i, j, k, x, z);
              expected.push_back(sum > std::numeric_limits<T>::max() ? infinity : static_cast<double>(std::sqrt(sum)));
            }
          for (const auto& info : support::kernels_on(Exec{}, "l2_squared", rigel::scalar_of<T>)) {
            CAPTURE(info.name);
            for (const bool across : {false, true}) {
              CAPTURE(across);
              Values found;
              if (!support::ran(info, [&] { found = distances_in<T, Exec>(info, m, n, k, x, z, across, before); })) continue;
              int wrong = 0, first = -1;
              for (int e = 0; e < m * n; ++e)
                if (!is_within(found[e], expected[e], bound_of(info, k)) && wrong++ == 0) first = e;
              CHECK_MESSAGE(wrong == 0, wrong, " of ", m * n, ", first ", first, ": ", found[std::max(first, 0)], " for ",
                            expected[std::max(first, 0)]);
            }
          }
        }
      }
  });
}

// A matrix against itself with NaN: symmetric, and NaN on the diagonal of such rows alone.
TEST_CASE_TEMPLATE("distances on tensor cores: of points with NaN and themselves", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 200, k = 24;
  for_each_type([&]<class T>() {
    Values x = normal_points<T>(m, k, 54);
    for (int i = 0; i < m; i += 5) x[i * k + i % k] = std::nan("");
    for (const auto& info : kernels<T, Exec>()) {
      CAPTURE(info.name);
      const Values d = self_distances<T, Exec>(info, m, k, x), expected = exact(m, m, k, x, x);
      int wrong = 0;
      for (int e = 0; e < m * m; ++e) wrong += !is_within(d[e], expected[e], bound_of(info, k));
      CHECK(wrong == 0);
    }
  });
}

// As many near points in every tile of a warp as are summed one by one, in one layout or in both, and more.
TEST_CASE_TEMPLATE("distances on tensor cores: some near points in every tile", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 256, n = 160, k = 48;
  for_each_type([&]<class T>() {
    const Values base = normal_points<T>(64, k, 55);
    Values x;
    for (int i = 0; i < m; i += 64) x.insert(x.end(), base.begin(), base.end());
    for (const int near : {3, 12, 24, 32}) {
      CAPTURE(near);
      Values z = normal_points<T>(n, k, 56);
      const Values moved_base = moved<T>(base, k, 1e-3, 57);
      for (int j = 0; j < n; ++j)
        if (j % 32 < near) std::copy_n(moved_base.begin() + j % 32 * k, k, z.begin() + j * k);
      const Values expected = exact(m, n, k, x, z);
      for (const auto& info : kernels<T, Exec>()) {
        CAPTURE(info.name);
        for (const bool across : {false, true})
          CHECK(error_of(distances_in<T, Exec>(info, m, n, k, x, z, across), expected) <= bound_of(info, k));
      }
    }
  });
}

// Separate operands per batch, and one operand shared by all; accumulation; unaligned columns of a larger matrix.
TEST_CASE_TEMPLATE("distances on tensor cores: batches, sums with C, parts of matrices", Exec, RIGEL_TEST_SPACES) {
  constexpr int batches = 3, m = 21, n = 35, k = 18, wide = k + 3;
  for_each_type([&]<class T>() {
    const Values x = normal_points<T>(batches * m, wide, 14, 5), z = normal_points<T>(n, wide, 15, 5);
    const auto part = [&](const Values& of, int first, int lines) {
      Values list;
      for (int i = first; i < first + lines; ++i)
        list.insert(list.end(), of.begin() + i * wide + 1, of.begin() + i * wide + 1 + k);
      return list;
    };
    const auto columns = std::pair{1, 1 + k};
    const auto x_view = support::batch<T, Exec>(batches, m, wide, x);
    const auto z_view = support::matrix<T, Exec>(n, wide, z);
    for (const auto& info : kernels<T, Exec>()) {
      CAPTURE(info.name);
      const auto d = support::batch<T, Exec>(batches, m, n, Values(batches * m * n, 2));
      rigel::contract(Exec{}, rigel::l2_squared<T>{}, Kokkos::subview(x_view, Kokkos::ALL, Kokkos::ALL, columns),
                      rigel::transposed(Kokkos::subview(z_view, Kokkos::ALL, columns)), d, rigel::epilogue::pow(0.5),
                      {.accumulate = true, .precision = info.precision, .kernel = info.name});
      const Values found = support::values(d);
      Values expected;
      for (int l = 0; l < batches; ++l)
        for (const double v : exact(m, n, k, part(x, l * m, m), part(z, 0, n))) expected.push_back(std::sqrt(2 + v * v));
      CHECK(error_of(found, expected) <= bound_of(info, k));
    }
  });
}

TEST_CASE_TEMPLATE("distances on tensor cores: asked for, and only for K that their bound allows", Exec, RIGEL_TEST_SPACES) {
  const rigel::metric::euclidean metric;
  for_each_type([&]<class T>() {
    const auto one = support::matrix<T, Exec>(1, 1, {1}), d = support::matrix<T, Exec>(1, 1);
    for (const auto& info : kernels<T, Exec>()) {
      CAPTURE(info.name);
      support::check_asked_for<rigel::CdistOptions>(
          info, [&](const auto& asked) { rigel::cdist(Exec{}, one, one, d, metric, asked); });
      CHECK(support::caught([&] {
              rigel::cdist(Exec{}, one, one, d, metric,
                           {.require = rigel::Promise::reference_bits, .precision = info.precision, .kernel = info.name});
            }).lacks({"promises only repeatable"}) == "");
      rigel::cdist(Exec{}, one, one, d, metric, {.precision = info.precision, .kernel = info.name});
      CHECK(support::values(d) == Values{0});
    }
  });
  const auto wide = support::matrix<float, Exec>(1, 1 << 18, {1}), d = support::matrix<float, Exec>(1, 1);
  for (const auto& info : kernels<float, Exec>()) {
    if (in_double(info)) continue;
    CAPTURE(info.name);
    CHECK(support::caught([&] {
            rigel::cdist(Exec{}, wide, wide, d, metric, {.precision = info.precision, .kernel = info.name});
          }).lacks({"K is too large"}) == "");
    rigel::cdist(Exec{}, wide, wide, d, metric, {.precision = info.precision, .may_cancel = true, .kernel = info.name});
    CHECK(support::values(d) == Values{0});
  }
}

// Self-distances, which take half of the products.
TEST_CASE_TEMPLATE("distances on tensor cores: chosen where they are faster", Exec, RIGEL_TEST_SPACES) {
  if (rigel::detail::execution_of(Exec{}).compute_capability != 90)
    return support::skip("tensor cores whose rates are known: of compute capability 9.0");
  using View = Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space>;
  const View x(Kokkos::view_alloc("x", Kokkos::WithoutInitializing), 8192, 1024);
  const View d(Kokkos::view_alloc("d", Kokkos::WithoutInitializing), 8192, 8192);
  const auto chooses = [&](const char* kernel, const rigel::CdistOptions& options) {
    const std::string text =
        rigel::explain_cdist(Exec{}, x, x, d, rigel::metric::euclidean{}, rigel::epilogue::Program{}, options);
    CHECK_MESSAGE(text.find(std::string("* ") + kernel) != std::string::npos, text);
  };
  chooses("cuda.mma.l2_squared.f32.promoted.128x128x32", {});
  chooses("cuda.simt.", {.precision = rigel::Precision::accumulator});
  chooses("cuda.mma.l2_squared.f32.in_f64.", {.precision = rigel::Precision::exact_products});
  chooses("cuda.mma.l2_squared.f32.promoted.128x128x32", {.precision = rigel::Precision::promoted});
}
