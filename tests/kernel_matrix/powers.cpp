// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// metric::minkowski with p in memory, one for each batch or one for all, and with an epsilon: SciPy's values, the formula in long double
// within bounds, kernels of them, and messages.
#include "points.hpp"

#include <tests/support/compare.hpp>

#include <rigel/dissimilarities.hpp>

using namespace kernel_matrix;

namespace {

constexpr int k = 29, m = 19, n = 23;

template <class T>
using Number = rigel::accumulator_for<T>;

/// A view of rank 1 of numbers of T.
template <class T, class Exec>
auto powers(const Values& values) {
  const Kokkos::View<T*, typename Exec::memory_space> v("powers", values.size());
  support::fill(v, values);
  return v;
}

/// (Σ |x − z|^p)^(1/p), where differences below epsilon count 0. A difference is rounded, a power is off by (8 + 3p + 0.7·|log2 of it|)
/// units on every backend, the sum by K, the root by 4 and its argument's error over p.
template <class T>
Bounded minkowski(const double* x, const double* z, double p, double epsilon = 0) {
  long double sum = 0, off = 0;
  for (int i = 0; i < k; ++i) {
    const long double t = std::fabs(static_cast<long double>(x[i]) - z[i]);
    if (t == 0 || t < epsilon) continue;
    const long double power = std::pow(t, static_cast<long double>(p));
    sum += power;
    off += power * (8 + 4 * p + 0.7L * std::fabs(std::log2(power)));
  }
  const double u = unit<Number<T>>;
  const long double d = sum == 0 ? 0 : std::pow(sum, 1 / static_cast<long double>(p));
  return {d, sum == 0 ? 0 : u * d * ((off / sum + k) / p + 4)};
}

/// L random batches of X and one of Z.
template <class T, class Exec>
struct Points {
  explicit Points(int batches)
      : x(random_points<T>(batches * m, k, 1)),
        z(random_points<T>(n, k, 2)),
        x_view(support::batch<T, Exec>(batches, m, k, x)),
        z_view(support::matrix<T, Exec>(n, k, z)),
        d_view(support::batch<double, Exec>(batches, m, n)) {}

  /// Outputs of call(family) for every family against expected(batch, x, z).
  template <class Call, class Expected>
  void check(const Call& call, const Expected& expected) const {
    with_each_family([&](const char* family) {
      call(family);
      const Values found = support::values(d_view);
      double worst = 0;
      for (int l = 0; l < static_cast<int>(x_view.extent(0)); ++l)
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            const Bounded e = expected(l, &x[(l * m + i) * k], &z[j * k]);
            const long double error = std::fabs(found[(l * m + i) * n + j] - e.value);
            const auto ratio = static_cast<double>(error == 0 ? 0 : error / e.error);
            worst = support::larger(worst, ratio);
          }
      CAPTURE(family);
      CHECK(worst <= 1);
    });
  }

  Values x, z;
  support::Batch<T, Exec> x_view;
  support::Matrix<T, Exec> z_view;
  support::Batch<double, Exec> d_view;
};

template <class T, class Exec>
void check_views() {
  const Values p = {1, 2, 1.3125, 0.75, 3};
  const Points<T, Exec> points(5);
  const auto of_batches = powers<Number<T>, Exec>(p);
  const auto distances = [&](const auto& metric, const Values& of, double epsilon = 0) {
    points.check(
        [&](const char* family) {
          rigel::cdist(Exec(), points.x_view, points.z_view, points.d_view, metric, {.kernel = family});
        },
        [&](int l, auto x, auto z) { return minkowski<T>(x, z, of[l % of.size()], epsilon); });
  };
  distances(metric::minkowski{of_batches}, p);
  distances(metric::minkowski{powers<Number<T>, Exec>({1.75})}, {1.75});
  const Kokkos::View<Number<T>, typename Exec::memory_space> one("one");
  support::fill(one, {2.5});
  distances(metric::minkowski{one}, {2.5});

  points.check(
      [&](const char* family) {
        rigel::cdist(Exec(), points.x_view, points.z_view, points.d_view, metric::minkowski{of_batches},
                     {.skip_epilogue = true, .kernel = family});
      },
      [&](int l, auto x, auto z) {
        const Bounded d = minkowski<T>(x, z, p[l]);
        const long double sum = std::pow(d.value, static_cast<long double>(p[l]));
        return Bounded{sum, sum * (d.error / d.value) * p[l] * 1.01L};
      });

  const auto lengths = numbers<Exec>({4, 2, 8, 16, 3});
  const Values of_lengths = {4, 2, 8, 16, 3};
  points.check(
      [&](const char* family) {
        rigel::kernel_matrix(Exec(), points.x_view, points.z_view, points.d_view, metric::minkowski{of_batches},
                             kernel::laplace{lengths}, {.kernel = family});
      },
      [&](int l, auto x, auto z) { return laplace<Number<T>>(minkowski<T>(x, z, p[l]), of_lengths[l]); });
  points.check(
      [&](const char* family) {
        rigel::kernel_matrix(Exec(), points.x_view, points.z_view, points.d_view, metric::minkowski{of_batches},
                             kernel::gaussian{9}, {.kernel = family});
      },
      [&](int l, auto x, auto z) { return gaussian<Number<T>>(minkowski<T>(x, z, p[l]), 9); });
}

template <class T, class Exec>
void check_epsilon() {
  const Points<T, Exec> points(3);
  constexpr double epsilon = 0.25;  // a power of two, which T holds
  const auto check = [&](const auto& metric, const Values& p, const Values& epsilons) {
    points.check(
        [&](const char* family) {
          rigel::cdist(Exec(), points.x_view, points.z_view, points.d_view, metric, {.kernel = family});
        },
        [&](int l, auto x, auto z) { return minkowski<T>(x, z, p[l % p.size()], epsilons[l % epsilons.size()]); });
  };
  for (const double p : {1., 2., 1.3125, 0.75}) check(metric::minkowski_with_epsilon{p, epsilon}, {p}, {epsilon});
  check(metric::minkowski_with_epsilon{1.5, 0}, {1.5}, {0});
  check(metric::minkowski_with_epsilon{1.5, 4}, {1.5}, {4});  // all distances are 0

  using S = rigel::lp_with_epsilon<T>;
  const Kokkos::View<S*, typename Exec::memory_space> semirings("semirings", 3);
  const auto host = Kokkos::create_mirror_view(semirings);
  const Values p = {1.5, 2, 0.75}, epsilons = {0.5, 0, 0.125};
  for (int l = 0; l < 3; ++l) {
    host(l) = S{};
    host(l).p = static_cast<Number<T>>(p[l]);
    host(l).epsilon = static_cast<Number<T>>(epsilons[l]);
  }
  Kokkos::deep_copy(semirings, host);
  check(metric::minkowski{semirings}, p, epsilons);
}

}  // namespace

TEST_CASE_TEMPLATE("minkowski: p in memory, of each batch or of all", Exec, RIGEL_TEST_SPACES) {
  SUBCASE("float") { check_views<float, Exec>(); }
  SUBCASE("double") { check_views<double, Exec>(); }
  SUBCASE("half") { check_views<rigel::half, Exec>(); }
}

TEST_CASE_TEMPLATE("minkowski: with epsilon", Exec, RIGEL_TEST_SPACES) {
  SUBCASE("float") { check_epsilon<float, Exec>(); }
  SUBCASE("double") { check_epsilon<double, Exec>(); }
  SUBCASE("half") { check_epsilon<rigel::half, Exec>(); }
}

TEST_CASE_TEMPLATE("minkowski: SciPy's values of p in memory", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<double, Exec>(2, 4, {1, 2, 3, 4, 0, -1.5, 2, .25}),
             z = support::matrix<double, Exec>(2, 4, {-1, 0.5, 2, 2, 7, 7, -7, 0.125});
  const auto d = support::batch<double, Exec>(3, 2, 2);
  rigel::cdist(Exec(), x, z, d, metric::minkowski{powers<double, Exec>({1.3, 0.5, 3})});
  // SciPy 1.17, scipy.spatial.distance.cdist(X, Z, 'minkowski', p=…).
  const Values expected = {4.768320427708198,  18.419922868903885, 3.727857094037768,  19.066068865231667,
                           25.53454722255107,  96.36047894847512,  13.965835822584722, 79.47331402122039,
                           2.7312777856406987, 11.184719667376156, 2.4305907780232054, 11.902278012037241};
  const Values found = support::values(d);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(std::fabs(found[i] - expected[i]) <= 64 * unit<double> * expected[i]);  // powers, sums, and a root of p = 1/2
}

TEST_CASE_TEMPLATE("minkowski: X with itself, p in memory", Exec, RIGEL_TEST_SPACES) {
  const Points<double, Exec> points(2);
  const auto d = support::batch<double, Exec>(2, m, m);
  rigel::cdist(Exec(), points.x_view, points.x_view, d, metric::minkowski{powers<double, Exec>({1.5, 0.75})});
  const Values found = support::values(d);
  for (int l = 0; l < 2; ++l)
    for (int i = 0; i < m; ++i) {
      CHECK(found[(l * m + i) * m + i] == 0);
      for (int j = 0; j < i; ++j) CHECK(found[(l * m + i) * m + j] == found[(l * m + j) * m + i]);
    }
}

TEST_CASE_TEMPLATE("minkowski: messages", Exec, RIGEL_TEST_SPACES) {
  const Points<float, Exec> points(3);
  const auto refused = [&](const auto& metric, std::initializer_list<const char*> texts) {
    const auto caught = support::caught([&] { rigel::cdist(Exec(), points.x_view, points.z_view, points.d_view, metric); });
    CHECK(caught.code == rigel::Code::invalid_argument);
    CHECK(caught.lacks(texts) == "");
  };
  refused(metric::minkowski{powers<float, Exec>({1, 2})},
          {"cdist: the view of p 'powers' has 2 numbers", "expected 3", "one for each batch of D"});
  refused(metric::minkowski{Kokkos::View<float*, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(
              static_cast<float*>(nullptr), 3)},
          {"has no data"});
  refused(metric::minkowski_with_epsilon{-1, 0.5}, {"minkowski_with_epsilon's p is -1", "finite p > 0"});
  refused(metric::minkowski_with_epsilon{1, -0.5}, {"epsilon is -0.5", "0 or more"});
  const auto in_kernels = support::caught([&] {
    rigel::kernel_matrix(Exec(), points.x_view, points.z_view, points.d_view, metric::minkowski{powers<float, Exec>({1, 2})},
                         kernel::laplace{1});
  });
  CHECK(in_kernels.lacks({"kernel_matrix: the view of p", "expected 3"}) == "");
}
