// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Euclidean distances by |x|² + |z|² − 2x·z: near points, points and themselves, data far from the origin, and all that overflows,
// against differences in double. That every shape and layout is right is what the zoo's trials and verify() show.
#include <rigel/distance.hpp>

#include <tests/support/error.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace {

using Values = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity();
/// The bound of a distance; squared, twice of it. (Outputs computed anew are one chain of K steps besides.)
constexpr double bound = 1e-5 + 64 * 0x1p-24;

/// The kernels of l2_squared on tensor cores.
template <class Exec>
std::vector<rigel::KernelInfo> kernels() {
  std::vector<rigel::KernelInfo> list;
  for (const auto& info : support::kernels_on(Exec{}, "l2_squared", rigel::Scalar::f32))
    if (info.family == "cuda.mma") list.push_back(info);
  if (rigel::detail::space_of<Exec> == rigel::Space::cuda)
    CHECK(list.size() >= 2);
  else
    support::skip("tensor cores: a host has none");
  return list;
}

/// Standard normal numbers, as floats.
double normal(support::Random& random) {
  const double u = random.uniform(0x1p-30, 1), v = random.uniform(0, 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979 * v);
}
Values normal_points(int lines, int k, std::uint64_t seed, double mean = 0, double deviation = 1) {
  support::Random random(seed);
  Values list(lines * k);
  for (double& v : list) v = static_cast<float>(mean + deviation * normal(random));
  return list;
}
/// The same points moved in a random direction.
Values moved(const Values& points, int k, double by, std::uint64_t seed) {
  Values list = points;
  support::Random random(seed);
  for (double& v : list) v = static_cast<float>(v + by / std::sqrt(k) * normal(random));
  return list;
}

/// Distances by differences in double, from the floats.
Values exact(int m, int n, int k, const Values& x, const Values& z) {
  Values d(m * n);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int c = 0; c < k; ++c) sum += (x[i * k + c] - z[j * k + c]) * (x[i * k + c] - z[j * k + c]);
      d[i * n + j] = std::sqrt(sum);
    }
  return d;
}

template <class Exec>
Values distances(const rigel::KernelInfo& info, int m, int n, int k, const Values& x, const Values& z) {
  const auto d = support::matrix<float, Exec>(m, n);
  rigel::cdist(Exec{}, support::matrix<float, Exec>(m, k, x), support::matrix<float, Exec>(n, k, z), d,
               rigel::metric::euclidean{}, {.precision = info.precision, .kernel = info.name});
  return support::values(d);
}
/// Of the points of one view against themselves.
template <class Exec>
Values self_distances(const rigel::KernelInfo& info, int m, int k, const Values& x) {
  const auto view = support::matrix<float, Exec>(m, k, x);
  const auto d = support::matrix<float, Exec>(m, m);
  rigel::cdist(Exec{}, view, view, d, rigel::metric::euclidean{}, {.precision = info.precision, .kernel = info.name});
  return support::values(d);
}

/// The largest relative error; infinite where one of the two is 0 or NaN and the other is not.
double error_of(const Values& found, const Values& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double e = found[i] == expected[i] ? 0 : std::fabs(found[i] - expected[i]) / expected[i];
    worst = e == e ? std::max(worst, e) : infinity;
  }
  return worst;
}

}  // namespace

TEST_CASE_TEMPLATE("distances on tensor cores: within 1e-5 of themselves, near points too", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 140;
  for (const auto& info : kernels<Exec>()) {
    CAPTURE(info.name);
    CHECK(info.precision == rigel::Precision::promoted);
    // Rows of C that leave one by one, and in vectors.
    for (const auto [n, k] : {std::pair{133, 1}, {132, 7}, {133, 64}, {132, 64}, {133, 333}, {136, 333}}) {
      CAPTURE(n);
      CAPTURE(k);
      const Values far = normal_points(m, k, 1, 100, 10);
      // Ordinary ones; points 1e-3 apart around 100 ± 10; the same but for a few of them; all of them near one point.
      Values near = moved(far, k, 1e-3, 2), few = normal_points(m, k, 3, 100, 10);
      near.resize(n * k);
      few.resize(n * k);
      std::copy(near.begin(), near.begin() + 2 * k, few.begin() + 30 * k);
      const Values one = moved(Values(m * k, 99), k, 1e-3, 4), other = moved(Values(n * k, 99), k, 1e-3, 5);
      CHECK(error_of(distances<Exec>(info, m, n, k, normal_points(m, k, 6), normal_points(n, k, 7)),
                     exact(m, n, k, normal_points(m, k, 6), normal_points(n, k, 7))) <= bound);
      CHECK(error_of(distances<Exec>(info, m, n, k, far, near), exact(m, n, k, far, near)) <= bound);
      CHECK(error_of(distances<Exec>(info, m, n, k, far, few), exact(m, n, k, far, few)) <= bound);
      CHECK(error_of(distances<Exec>(info, m, n, k, one, other), exact(m, n, k, one, other)) <= bound);
      // Two groups on either side of the centre: half of all outputs cancel.
      Values groups = moved(normal_points(1, k, 8), k, 0, 9), x, z;
      for (int i = 0; i < m; ++i)
        for (int c = 0; c < k; ++c) x.push_back(i % 2 ? groups[c] : -groups[c]);
      z = moved(x, k, 1e-3, 10), x = moved(x, k, 1e-3, 11);
      z.resize(n * k);
      CHECK(error_of(distances<Exec>(info, m, n, k, x, z), exact(m, n, k, x, z)) <= bound);
    }
  }
}

TEST_CASE_TEMPLATE("distances on tensor cores: of points and themselves 0, and symmetric", Exec, RIGEL_TEST_SPACES) {
  constexpr int k = 70;
  for (const int m : {333, 332, 320}) {
    CAPTURE(m);
    Values x = normal_points(m, k, 12, 100, 10);
    std::copy(x.begin() + 5 * k, x.begin() + 6 * k, x.begin() + 300 * k);  // a point that is there twice
    const Values expected = exact(m, m, k, x, x);
    for (const auto& info : kernels<Exec>()) {
      CAPTURE(info.name);
      const Values d = self_distances<Exec>(info, m, k, x), of_copies = distances<Exec>(info, m, m, k, x, x);
      CHECK(error_of(d, expected) <= bound);
      CHECK(error_of(of_copies, expected) <= bound);
      int wrong = 0;
      for (int i = 0; i < m; ++i) {
        wrong += d[i * m + i] != 0 || of_copies[i * m + i] != 0;
        for (int j = 0; j < i; ++j) wrong += d[i * m + j] != d[j * m + i];
      }
      CHECK(wrong == 0);
      CHECK(d[5 * m + 300] == 0);
    }
  }
}

// Norms that are finite and a distance that is not: in vectors, away from the diagonal and beside it.
TEST_CASE_TEMPLATE("distances on tensor cores: squares that overflow", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 256, k = 4;
  Values x(m * k, 0.);
  x[0] = static_cast<float>(1.22e19);
  for (const int line : {1, 70, 200}) x[line * k] = -x[0];
  for (const auto& info : kernels<Exec>()) {
    CAPTURE(info.name);
    for (const bool self : {false, true}) {
      const Values d = self ? self_distances<Exec>(info, m, k, x) : distances<Exec>(info, m, m, k, x, x);
      int wrong = 0;
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j) {
          const double difference = std::fabs(x[i * k] - x[j * k]);
          const double expected = difference > 1.5e19 ? infinity : difference;
          wrong += !(d[i * m + j] == expected || std::fabs(d[i * m + j] - expected) <= bound * expected);
        }
      CHECK(wrong == 0);
    }
  }
}

// Batches of points against themselves, with what C held, in vectors and with an epilogue that knows the diagonal.
TEST_CASE_TEMPLATE("distances on tensor cores: batches of points and themselves", Exec, RIGEL_TEST_SPACES) {
  constexpr int batches = 3, m = 260, k = 20;
  const Values x = normal_points(batches * m, k, 16, 5);
  const auto view = support::batch<float, Exec>(batches, m, k, x);
  for (const auto& info : kernels<Exec>()) {
    CAPTURE(info.name);
    for (const double before : {0., 3.}) {
      CAPTURE(before);
      const auto d = support::batch<float, Exec>(batches, m, m, Values(batches * m * m, before));
      rigel::contract(Exec{}, rigel::l2_squared<float>{}, view, rigel::transposed(view), d,
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
      CHECK(error_of(found, expected) <= 2 * bound);
    }
  }
}

// What overflows or is not a number does so in its own row and column only, and gives what differences give.
TEST_CASE_TEMPLATE("distances on tensor cores: infinities, NaN, very large and very small numbers", Exec,
                   RIGEL_TEST_SPACES) {
  constexpr int m = 9, k = 40;
  const double nan = std::nan(""), large = 1e30, small = 1e-30;
  Values x = normal_points(m, k, 13);
  x[0 * k + 3] = infinity, x[1 * k + 3] = infinity, x[2 * k + 3] = -infinity, x[3 * k + 7] = nan;
  x[4 * k + 1] = static_cast<float>(large), x[5 * k + 1] = static_cast<float>(1.5e19);
  for (int c = 0; c < k; ++c) x[6 * k + c] = static_cast<float>(x[6 * k + c] * small);
  for (const auto& info : kernels<Exec>()) {
    CAPTURE(info.name);
    for (const bool self : {false, true}) {
      const Values d = self ? self_distances<Exec>(info, m, k, x) : distances<Exec>(info, m, m, k, x, x);
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j) {
          CAPTURE(i);
          CAPTURE(j);
          double sum = 0;
          for (int c = 0; c < k; ++c) sum += (x[i * k + c] - x[j * k + c]) * (x[i * k + c] - x[j * k + c]);
          const double expected = sum > std::numeric_limits<float>::max() ? infinity : std::sqrt(sum), found = d[i * m + j];
          const bool same = found == expected || (std::isnan(found) && std::isnan(expected)) ||
                            std::fabs(found - expected) <= bound * expected;
          CHECK_MESSAGE(same, found, " for ", expected);
        }
    }
  }
}

// Each batch of its own, and one of the two for all; C added to; columns of a larger matrix, unaligned.
TEST_CASE_TEMPLATE("distances on tensor cores: batches, sums with C, parts of matrices", Exec, RIGEL_TEST_SPACES) {
  constexpr int batches = 3, m = 21, n = 35, k = 18, wide = k + 3;
  const Values x = normal_points(batches * m, wide, 14, 5), z = normal_points(n, wide, 15, 5);
  const auto part = [&](const Values& of, int first, int lines) {
    Values list;
    for (int i = first; i < first + lines; ++i)
      list.insert(list.end(), of.begin() + i * wide + 1, of.begin() + i * wide + 1 + k);
    return list;
  };
  const auto columns = std::pair{1, 1 + k};
  const auto x_view = support::batch<float, Exec>(batches, m, wide, x);
  const auto z_view = support::matrix<float, Exec>(n, wide, z);
  for (const auto& info : kernels<Exec>()) {
    CAPTURE(info.name);
    const auto d = support::batch<float, Exec>(batches, m, n, Values(batches * m * n, 2));
    rigel::contract(Exec{}, rigel::l2_squared<float>{}, Kokkos::subview(x_view, Kokkos::ALL, Kokkos::ALL, columns),
                    rigel::transposed(Kokkos::subview(z_view, Kokkos::ALL, columns)), d, rigel::epilogue::pow(0.5),
                    {.accumulate = true, .precision = info.precision, .kernel = info.name});
    const Values found = support::values(d);
    Values expected;
    for (int l = 0; l < batches; ++l)
      for (const double v : exact(m, n, k, part(x, l * m, m), part(z, 0, n))) expected.push_back(std::sqrt(2 + v * v));
    CHECK(error_of(found, expected) <= bound);
  }
}

TEST_CASE_TEMPLATE("distances on tensor cores: asked for, and only for K that their bound allows", Exec, RIGEL_TEST_SPACES) {
  const auto one = support::matrix<float, Exec>(1, 1, {1}), d = support::matrix<float, Exec>(1, 1);
  const auto wide = support::matrix<float, Exec>(1, 1 << 18, {1});
  for (const auto& info : kernels<Exec>()) {
    CAPTURE(info.name);
    const rigel::metric::euclidean metric;
    const rigel::CdistOptions options{.precision = info.precision, .kernel = info.name};
    CHECK(support::caught([&] { rigel::cdist(Exec{}, wide, wide, d, metric, options); }).lacks({"K is too large"}) == "");
    support::check_asked_for<rigel::CdistOptions>(
        info, [&](const auto& asked) { rigel::cdist(Exec{}, one, one, d, metric, asked); });
    CHECK(support::values(d) == Values{0});
  }
}
