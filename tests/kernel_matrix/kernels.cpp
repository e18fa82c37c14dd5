// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every kernel against its formula in long double, within a-priori bounds: with numbers, and with one of each batch in memory.
#include "points.hpp"

using namespace kernel_matrix;

namespace {

constexpr int rows = 37, columns = 53, k = 29, batches = 3;

// One X for all batches, a Z for each.
template <class T, class Exec>
struct Points {
  Values x = random_points<T>(rows, k, 1), z = random_points<T>(batches * columns, k, 2);
  Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space> of_x = support::matrix<T, Exec>(rows, k, x, "X");
  Kokkos::View<T***, Kokkos::LayoutRight, typename Exec::memory_space> of_z =
      support::batch<T, Exec>(batches, columns, k, z, "Z");

  /// Checks the kernel matrix against expected(batch, x, z).
  template <class M, class K, class Expected>
  void check(const M& metric, const K& kernel, const Expected& expected) const {
    const auto d = support::batch<T, Exec>(batches, rows, columns, {}, "D");
    rigel::kernel_matrix(Exec(), of_x, of_z, d, metric, kernel);
    const Values found = support::values(d);
    int bad = 0;
    for (int l = 0; l < batches; ++l)
      for (int m = 0; m < rows; ++m)
        for (int n = 0; n < columns; ++n) {
          const Bounded e = expected(l, &x[m * k], &z[(l * columns + n) * k]);
          const long double off = std::fabs(found[(l * rows + m) * columns + n] - e.value);
          if (!(off <= e.error)) ++bad;
        }
    CHECK(bad == 0);
  }
};

template <class T>
Bounded of_manhattan(const double* x, const double* z) {
  return manhattan<T>(x, z, k);
}
template <class T>
Bounded of_euclidean(const double* x, const double* z) {
  return euclidean<T>(x, z, k);
}

template <class T, class Exec>
void check_numbers() {
  const Points<T, Exec> points;
  const auto check = [&](const auto& metric, const auto& kernel, const auto& distance, const auto& expected) {
    points.check(metric, kernel, [&](int, const double* x, const double* z) { return expected(distance(x, z)); });
  };
  const auto euclid = of_euclidean<T>, city = of_manhattan<T>;
  const auto inner = [](const double* x, const double* z) { return product<T>(x, z, k); };
  check(metric::manhattan{}, kernel::laplace{7.5}, city, [](Bounded d) { return laplace<T>(d, 7.5); });
  check(metric::euclidean{}, kernel::laplace{2}, euclid, [](Bounded d) { return laplace<T>(d, 2); });
  check(metric::euclidean{}, kernel::matern12{2}, euclid, [](Bounded d) { return laplace<T>(d, 2); });
  check(metric::euclidean{}, kernel::gaussian{1.5}, euclid, [](Bounded d) { return gaussian<T>(d, 1.5); });
  check(metric::manhattan{}, kernel::gaussian{9.f}, city, [](Bounded d) { return gaussian<T>(d, 9); });
  check(metric::minkowski{2}, kernel::gaussian{1.5}, euclid, [](Bounded d) { return gaussian<T>(d, 1.5); });
  check(metric::euclidean{}, kernel::matern32{2.5}, euclid, [](Bounded d) { return matern32<T>(d, 2.5); });
  check(metric::manhattan{}, kernel::matern32{11}, city, [](Bounded d) { return matern32<T>(d, 11); });
  check(metric::euclidean{}, kernel::matern52{2.5}, euclid, [](Bounded d) { return matern52<T>(d, 2.5); });
  check(metric::euclidean{}, kernel::rational_quadratic{1.25, 0.75}, euclid,
        [](Bounded d) { return rational_quadratic<T>(d, 1.25, 0.75); });
  check(metric::manhattan{}, kernel::rational_quadratic{8, 2}, city,
        [](Bounded d) { return rational_quadratic<T>(d, 8, 2); });
  for (const double large : {1e6, 1e8, 1e12, 1e60}) {
    check(metric::euclidean{}, kernel::rational_quadratic{1.25, large}, euclid,
          [&](Bounded d) { return rational_quadratic<T>(d, 1.25, large); });
    check(metric::manhattan{}, kernel::rational_quadratic{8, large}, city,
          [&](Bounded d) { return rational_quadratic<T>(d, 8, large); });
  }
  check(metric::inner_product{}, kernel::polynomial{3}, inner, [](Bounded v) { return polynomial<T>(v, 3, 1, 1); });
  check(metric::inner_product{}, kernel::polynomial{2, 0.25, -0.5}, inner,
        [](Bounded v) { return polynomial<T>(v, 2, 0.25, -0.5); });
  check(metric::inner_product{}, kernel::sigmoid{0.125, -0.25}, inner,
        [](Bounded v) { return sigmoid<T>(v, 0.125, -0.25); });
  // |error of the distance| as rigel::metric::cosine states it; the subtraction from 1 adds a unit.
  points.check(metric::cosine{}, kernel::cosine{}, [](int, const double* x, const double* z) {
    const long double c = product<T>(x, z, k).value / std::sqrt(product<T>(x, x, k).value * product<T>(z, z, k).value);
    const long double d = 1 - c, of_sum = 2 * euclidean<T>(x, z, k).error / euclidean<T>(x, z, k).value;
    return Bounded{c, of_sum * d + unit<T> * ((k / 32. + 10) * d + 6 * std::sqrt(2 * d) + 1)};
  });
}

// Numbers of each batch, and one in memory for all.
template <class T, class Exec>
void check_views() {
  const Points<T, Exec> points;
  const Values lengths = {1.5, 4, 0.75}, alphas = {0.5, 2, 1.25}, degrees = {2, 3, 1}, scales = {0.25, -0.125, 1};
  const auto length = numbers<Exec>(lengths), alpha = numbers<Exec>(alphas), degree = numbers<Exec>(degrees),
             scale = numbers<Exec>(scales);
  const auto check = [&](const auto& metric, const auto& kernel, const auto& expected) {
    points.check(metric, kernel, expected);
  };
  const metric::euclidean euclid;
  check(euclid, kernel::laplace{length},
        [&](int l, auto x, auto z) { return laplace<T>(of_euclidean<T>(x, z), lengths[l]); });
  check(euclid, kernel::matern12{length},
        [&](int l, auto x, auto z) { return laplace<T>(of_euclidean<T>(x, z), lengths[l]); });
  check(euclid, kernel::gaussian{length},
        [&](int l, auto x, auto z) { return gaussian<T>(of_euclidean<T>(x, z), lengths[l]); });
  check(euclid, kernel::matern32{length},
        [&](int l, auto x, auto z) { return matern32<T>(of_euclidean<T>(x, z), lengths[l]); });
  check(euclid, kernel::matern52{length},
        [&](int l, auto x, auto z) { return matern52<T>(of_euclidean<T>(x, z), lengths[l]); });
  check(euclid, kernel::gaussian{number<Exec>(2)},
        [&](int, auto x, auto z) { return gaussian<T>(of_euclidean<T>(x, z), 2); });
  check(euclid, kernel::gaussian{numbers<Exec>({2})},
        [&](int, auto x, auto z) { return gaussian<T>(of_euclidean<T>(x, z), 2); });
  check(euclid, kernel::rational_quadratic{length, alpha},
        [&](int l, auto x, auto z) { return rational_quadratic<T>(of_euclidean<T>(x, z), lengths[l], alphas[l]); });
  check(euclid, kernel::rational_quadratic{length, 1.5},
        [&](int l, auto x, auto z) { return rational_quadratic<T>(of_euclidean<T>(x, z), lengths[l], 1.5); });
  const Values large = {1e6, 1e8, 1e12};
  check(euclid, kernel::rational_quadratic{length, numbers<Exec>(large)},
        [&](int l, auto x, auto z) { return rational_quadratic<T>(of_euclidean<T>(x, z), lengths[l], large[l]); });
  check(metric::manhattan{}, kernel::rational_quadratic{9, alpha},
        [&](int l, auto x, auto z) { return rational_quadratic<T>(of_manhattan<T>(x, z), 9, alphas[l]); });
  check(metric::inner_product{}, kernel::polynomial{degree, scale, length},
        [&](int l, auto x, auto z) { return polynomial<T>(product<T>(x, z, k), degrees[l], scales[l], lengths[l]); });
  check(metric::inner_product{}, kernel::sigmoid{scale, length},
        [&](int l, auto x, auto z) { return sigmoid<T>(product<T>(x, z, k), scales[l], lengths[l]); });
}

}  // namespace

TEST_CASE_TEMPLATE("kernel_matrix: every kernel", Exec, RIGEL_TEST_SPACES) {
  SUBCASE("float") { check_numbers<float, Exec>(); }
  SUBCASE("double") { check_numbers<double, Exec>(); }
}

TEST_CASE_TEMPLATE("kernel_matrix: hyperparameters of each batch, in memory", Exec, RIGEL_TEST_SPACES) {
  SUBCASE("float") { check_views<float, Exec>(); }
  SUBCASE("double") { check_views<double, Exec>(); }
}

// The metrics that have no formula above: each kernel is that of the distances which cdist() gives.
TEST_CASE_TEMPLATE("kernel_matrix: any metric", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<double, Exec>(rows, k, random_points<double>(rows, k, 3));
  const auto z = support::matrix<double, Exec>(columns, k, random_points<double>(columns, k, 4));
  const auto d = support::matrix<double, Exec>(rows, columns);
  const auto check = [&](const auto& metric) {
    rigel::cdist(Exec(), x, z, d, metric);
    const Values distances = support::values(d);
    rigel::kernel_matrix(Exec(), x, z, d, metric, kernel::gaussian{0.5});
    const Values found = support::values(d);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Bounded e = gaussian<double>({distances[i], (k + 16) * unit<double> * distances[i]}, 0.5);
      if (!(std::fabs(found[i] - e.value) <= e.error)) FAIL_CHECK(i << ": " << found[i] << " of " << distances[i]);
    }
  };
  check(metric::chebyshev{});
  check(metric::minkowski{3});
  check(metric::minkowski{std::numeric_limits<double>::infinity()});
  check(metric::hamming{});
  check(metric::cosine{});
  check(metric::correlation{});
}

// Differences and squares that int32 does not hold, by hand.
TEST_CASE_TEMPLATE("kernel_matrix: integers", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<std::int32_t, Exec>(2, 2, {70000, 0, 3, 4}), z = support::matrix<std::int32_t, Exec>(1, 2);
  const auto d = support::matrix<double, Exec>(2, 1);
  rigel::kernel_matrix(Exec(), x, z, d, metric::euclidean{}, kernel::laplace{70000});
  CHECK(error_of(support::values(d), {std::exp(-1.), std::exp(-5. / 70000)}) <= 8 * unit<double>);
  rigel::kernel_matrix(Exec(), x, z, d, metric::minkowski{1}, kernel::gaussian{70000});
  CHECK(error_of(support::values(d), {std::exp(-0.5), std::exp(-0.5 * 49 / 4.9e9)}) <= 8 * unit<double>);
  // 2^60 + 1 less 2^60.
  const Kokkos::View<std::int64_t**, Kokkos::LayoutRight, typename Exec::memory_space> far("far", 1, 2), next("next", 1, 2);
  Kokkos::deep_copy(far, std::int64_t{1} << 60);
  Kokkos::deep_copy(next, (std::int64_t{1} << 60) + 1);
  const auto of_neighbours = support::matrix<float, Exec>(1, 1);
  rigel::kernel_matrix(Exec(), far, next, of_neighbours, metric::manhattan{}, kernel::laplace{2});
  CHECK(error_of(support::values(of_neighbours), {std::exp(-1.)}) <= 8 * unit<float>);
}
