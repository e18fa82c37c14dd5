// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of every kernel with every metric: against derivatives in long double within a-priori bounds, against finite
// differences, and by hand.
#include "slopes.hpp"

#include <array>

using namespace kernel_matrix;

namespace {

template <class Exec>
using Numbers = Kokkos::View<double*, typename Exec::memory_space>;

/// Runs one pair with T and checks it against its derivatives: one X for all batches, a Z, G and hyperparameters for each.
template <class T, class Exec, class M, class Make>
void check_bounds(const M& metric, double p, const Make& make, const Slopes& slopes, const std::vector<Reals>& h,
                  int batches, int rows, int columns, int k, std::int64_t block_rows) {
  const Values x = random_points<T>(rows, k, 1), z = random_points<T>(batches * columns, k, 2),
               g = random_points<T>(batches * rows, columns, 3);
  const auto dx = support::batch<T, Exec>(batches, rows, k, {}, "dX"), dz = support::batch<T, Exec>(batches, columns, k);
  const std::array<Numbers<Exec>, 3> dh = {Numbers<Exec>("dh", batches), Numbers<Exec>("dh", batches),
                                           Numbers<Exec>("dh", batches)};
  std::array<Values, 3> values = {Values(batches, 1), Values(batches, 1), Values(batches, 1)};
  for (int l = 0; l < batches; ++l)
    for (std::size_t i = 0; i < h[l].size(); ++i) values[i][l] = static_cast<double>(h[l][i]);
  const auto call = [&](const auto& kernel) {
    rigel::kernel_matrix_gradient(Exec(), support::matrix<T, Exec>(rows, k, x, "X"),
                                  support::batch<T, Exec>(batches, columns, k, z, "Z"),
                                  support::batch<T, Exec>(batches, rows, columns, g, "G"), metric, kernel, dx, dz,
                                  make(dh[0], dh[1], dh[2]), {.block_rows = block_rows});
  };
  if (batches == 1)
    call(make(values[0][0], values[1][0], values[2][0]));
  else
    call(make(numbers<Exec>(values[0]), numbers<Exec>(values[1]), numbers<Exec>(values[2])));
  const Values found_x = support::values(dx), found_z = support::values(dz);
  for (int l = 0; l < batches; ++l) {
    CAPTURE(l);
    const Gradients expected = gradients<T>({p, slopes, h[l]}, x.data(), z.data() + l * columns * k,
                                            g.data() + l * rows * columns, rows, columns, k);
    CHECK(off_bounds(found_x, expected.x, l * rows * k) == 0);
    CHECK(off_bounds(found_z, expected.z, l * columns * k) == 0);
    for (std::size_t i = 0; i < expected.h.size(); ++i) CHECK(off_bounds(support::values(dh[i]), {expected.h[i]}, l) == 0);
  }
}

template <class T, class Exec>
void check_pairs(int batches, int rows, int columns, int k, std::int64_t block_rows = 0) {
  int pair = 0;
  for_each_pair([&](const auto& metric, double p, const auto& make, const Slopes& slopes, const std::vector<Reals>& h) {
    CAPTURE(pair++);
    check_bounds<T, Exec>(metric, p, make, slopes, h, batches, rows, columns, k, block_rows);
  });
}

}  // namespace

TEST_CASE_TEMPLATE("kernel_matrix_gradient: every kernel within its bound", Exec, RIGEL_TEST_SPACES) {
  SUBCASE("float, batches") { check_pairs<float, Exec>(3, 17, 23, 5); }
  SUBCASE("double, batches") { check_pairs<double, Exec>(3, 17, 23, 5); }
  SUBCASE("float, blocks") { check_pairs<float, Exec>(1, 17, 23, 5, 4); }
  SUBCASE("double, blocks of batches") { check_pairs<double, Exec>(3, 17, 23, 5, 5); }
  SUBCASE("double, rows in parts") { check_pairs<double, Exec>(1, 3, 2100, 2); }
}

// Central differences of the loss in long double, D(s) = (loss(v + s) − loss(v − s)) / 2s. D(s) is off by f'''·s²/6 + O(s⁴),
// which D(s) − D(2s) = −f'''·s²/2 + O(s⁴) exceeds, and by the rounding of losses over s. Slopes are at most 8 here, so that f64
// is off by at most 8·(N + K + 200) units of Σ|G|.
TEST_CASE("kernel_matrix_gradient: finite differences") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  constexpr int m = 4, n = 6, k = 3;
  constexpr Real step = 0x1p-14L;
  const Values x0 = random_points<double>(m, k, 11), z0 = random_points<double>(n, k, 12),
               g = random_points<double>(m, n, 13);
  for (int i = 0; i < m * n * k; ++i)  // no kink is near
    REQUIRE(std::fabs(x0[i / (n * k) * k + i % k] - z0[i / k % n * k + i % k]) > 4 * step);
  Real all = 0;
  for (const double one : g) all += std::fabs(one);
  int pair = 0;
  for_each_pair(
      [&](const auto& metric, double p, const auto& make, const Slopes& slopes, const std::vector<Reals>& batches) {
        CAPTURE(pair++);
        const auto dx = support::matrix<double, Exec>(m, k), dz = support::matrix<double, Exec>(n, k);
        const std::array<Numbers<Exec>, 3> dh = {Numbers<Exec>("dh", 1), Numbers<Exec>("dh", 1), Numbers<Exec>("dh", 1)};
        Values value(3, 1);
        for (std::size_t i = 0; i < batches[0].size(); ++i) value[i] = static_cast<double>(batches[0][i]);
        rigel::kernel_matrix_gradient(Exec(), support::matrix<double, Exec>(m, k, x0),
                                      support::matrix<double, Exec>(n, k, z0), support::matrix<double, Exec>(m, n, g),
                                      metric, make(value[0], value[1], value[2]), dx, dz, make(dh[0], dh[1], dh[2]));
        Reals x(x0.begin(), x0.end()), z(z0.begin(), z0.end()), h = batches[0];
        const auto loss = [&] {
          Real sum = 0;
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) sum += g[i * n + j] * slopes.value(distance(p, &x[i * k], &z[j * k], k), h);
          return sum;
        };
        const auto difference = [&](Real& variable, Real s) {
          const Real kept = variable;
          variable = kept + s;
          const Real above = loss();
          variable = kept - s;
          const Real below = loss();
          variable = kept;
          return (above - below) / (2 * s);
        };
        const auto check = [&](Reals& variables, const Values& found) {
          int bad = 0;
          for (std::size_t i = 0; i < variables.size(); ++i) {
            const Real once = difference(variables[i], step), twice = difference(variables[i], 2 * step);
            const Real of_losses = 64 * std::numeric_limits<Real>::epsilon() * 64 * all / step,  // values are at most 64
                of_double = 8 * (n + k + 200) * unit<double> * all;
            if (!(std::fabs(found[i] - once) <= std::fabs(once - twice) + of_losses + of_double)) ++bad;
          }
          CHECK(bad == 0);
        };
        check(x, support::values(dx));
        check(z, support::values(dz));
        Values of_h;
        for (const auto& one : dh) of_h.push_back(support::values(one)[0]);
        check(h, of_h);
      });
}

// x = 3, z = 1, G = 2 and K = 1: every distance is 2, the product 3.
TEST_CASE_TEMPLATE("kernel_matrix_gradient: 1 x 1 by hand", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<double, Exec>(1, 1, {3}), z = support::matrix<double, Exec>(1, 1, {1}),
             g = support::matrix<double, Exec>(1, 1, {2}), dx = support::matrix<double, Exec>(1, 1),
             dz = support::matrix<double, Exec>(1, 1);
  const auto a = number<Exec>(-7), b = number<Exec>(-7), c = number<Exec>(-7);
  const auto check = [&](const auto& metric, const auto& kernel, const auto& dk, double by_x, double by_z,
                         const Values& by) {
    rigel::kernel_matrix_gradient(Exec(), x, z, g, metric, kernel, dx, dz, dk);
    CHECK(support::values(dx)[0] == doctest::Approx(by_x).epsilon(1e-14));
    CHECK(support::values(dz)[0] == doctest::Approx(by_z).epsilon(1e-14));
    const Values found = {support::values(a)[0], support::values(b)[0], support::values(c)[0]};
    for (std::size_t i = 0; i < by.size(); ++i) CHECK(found[i] == doctest::Approx(by[i]).epsilon(1e-14));
  };
  const auto distances = [&](const auto& metric) {
    // u = 2/4, k = e^−½: k' = −k/4, ∂k/∂length = k·2/16
    check(metric, kernel::laplace{4}, kernel::laplace{a}, -std::exp(-0.5) / 2, std::exp(-0.5) / 2, {std::exp(-0.5) / 4});
    check(metric, kernel::matern12{4}, kernel::matern12{a}, -std::exp(-0.5) / 2, std::exp(-0.5) / 2, {std::exp(-0.5) / 4});
    // k = e^−½: k' = −k·2/4, ∂k/∂bandwidth = k·4/8
    check(metric, kernel::gaussian{2}, kernel::gaussian{a}, -std::exp(-0.5), std::exp(-0.5), {std::exp(-0.5)});
    // u = √3·2/2: k' = −3·2/4·e^−u, ∂k/∂length = 3·4/8·e^−u
    check(metric, kernel::matern32{2}, kernel::matern32{a}, -3 * std::exp(-std::sqrt(3.)), 3 * std::exp(-std::sqrt(3.)),
          {3 * std::exp(-std::sqrt(3.))});
    // u = √5: k' = −5·2/12·(1 + u)·e^−u, ∂k/∂length = 5·4/24·(1 + u)·e^−u
    const double matern = 5. / 3 * (1 + std::sqrt(5.)) * std::exp(-std::sqrt(5.));
    check(metric, kernel::matern52{2}, kernel::matern52{a}, -matern, matern, {matern});
    // 1 + 4/(2·2·1) = 2, alpha = 2: k' = −2·2^−3, ∂k/∂length = 4·2^−3, ∂k/∂alpha = 2^−2·(1/2 − ln 2)
    check(metric, kernel::rational_quadratic{1, 2}, kernel::rational_quadratic{a, b}, -0.5, 0.5,
          {1, 0.25 - std::log(2.) / 2});
    // 1 + 4/(2·alpha·4), alpha = 1e8: k' = −2/4·(1 + 1/(2·alpha))^(−alpha − 1), by length twice as much and off by its sign, in 50 digits
    check(metric, kernel::rational_quadratic{2, 1e8}, kernel::rational_quadratic{a, 0}, -0.606530657438143459000515,
          0.606530657438143459000515, {0.606530657438143459000515});
  };
  distances(metric::euclidean{});
  distances(metric::manhattan{});
  distances(metric::minkowski{2.5});
  // b = 2·3 + 1 = 7, degree 2: k' = 2·2·7, by degree 49·ln 7, by scale 2·7·3, by offset 2·7; dX = 2·28·1, dZ = 2·28·3
  check(metric::inner_product{}, kernel::polynomial{2, 2, 1}, kernel::polynomial{a, b, c}, 56, 168,
        {98 * std::log(7.), 84, 28});
  // 3/4 − 1/4 = 1/2: k' = 1/(4·cosh²½)
  const double slope = 2 / (std::cosh(0.5) * std::cosh(0.5));
  check(metric::inner_product{}, kernel::sigmoid{0.25, -0.25}, kernel::sigmoid{a, b}, slope / 4, slope * 3 / 4,
        {slope * 3, slope});
}
