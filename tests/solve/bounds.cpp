// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random systems by every kernel, held to a-priori backward errors (N. J. Higham, Accuracy and Stability of Numerical Algorithms,
// 2nd ed., theorems 9.4, 10.3 and 10.4). The constants 3n + 1 of the theorems are 3n + 4 here, for kernels that multiply by a
// rounded reciprocal instead of dividing.
#include <tests/solve/systems.hpp>
#include <tests/support/compare.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

using rigel::Factorisation;
using rigel::Triangle;
using solve::Numbers;

namespace {

constexpr int sizes[] = {1, 2, 5, 8, 16, 17, 32, 33, 50, 64, 65, 96, 128, 129, 200};

// Calls visit(options) for every kernel of the factorisation.
template <class T, class Exec, class Visit>
void by_every_kernel(Factorisation f, const Visit& visit) {
  for (const std::string& name : solve::kernels_of<T, Exec>(f)) {
    CAPTURE(name);
    visit(rigel::SolveOptions{.triangle = Triangle::lower, .kernel = name});
    if (f != Factorisation::lu) visit(rigel::SolveOptions{.triangle = Triangle::upper, .kernel = name});
  }
}

// Solutions of definite systems, held to theorem 10.4.
template <class T>
void require_solutions(const Numbers& all, const Numbers& found, const Numbers& sides, int batches, int n, int m) {
  for (int i = 0; i < batches; ++i) {
    const Numbers matrix = solve::part(all, i, n * n);
    CHECK(solve::residual(matrix, solve::part(found, i, n * m), solve::part(sides, i, n * m), n, m,
                          solve::factor_bound<T>(matrix, n), solve::gamma<T>(3 * n + 4)) <= 1);
  }
}

template <class T, class Exec, class Layout>
void check_definite(int batches, int n, int m, std::uint64_t seed) {
  support::Random random(seed);
  CAPTURE(n);
  CAPTURE(m);
  Numbers all;
  for (int l = 0; l < batches; ++l) {
    const Numbers one = solve::random_definite<T>(random, n);
    all.insert(all.end(), one.begin(), one.end());
  }
  const Numbers sides = solve::random_numbers<T>(random, std::int64_t{batches} * n * m);
  const auto a = solve::batch_of<T, Exec, Layout>(batches, n, n), l = solve::batch_of<T, Exec, Layout>(batches, n, n);
  const auto b = solve::batch_of<T, Exec, Layout>(batches, n, m), x = solve::batch_of<T, Exec, Layout>(batches, n, m);
  solve::put(a, all);
  solve::put(b, sides);
  by_every_kernel<T, Exec>(Factorisation::cholesky, [&](const rigel::SolveOptions& options) {
    const Exec exec;
    const auto require = [&] { require_solutions<T>(all, solve::get(x), sides, batches, n, m); };
    if (!solve::covered(rigel::cholesky_solve_problem(exec, a, b, x, {}, options))) return;
    rigel::cholesky_solve(exec, a, b, x, options);
    require();
    CHECK(solve::get(a) == all);
    CHECK(solve::get(b) == sides);
    if (!solve::covered(rigel::cholesky_factor_problem(exec, a, l, {}, options))) return;
    rigel::cholesky_factor(exec, a, l, options);
    const Numbers factors = solve::get(l);
    const bool lower = options.triangle == Triangle::lower;
    for (int i = 0; i < batches; ++i) {
      const Numbers matrix = solve::part(all, i, n * n), factor = solve::part(factors, i, n * n),
                    bound = solve::factor_bound<T>(matrix, n);
      double worst = 0;
      for (int r = 0; r < n; ++r)
        for (int c = 0; c < n; ++c) {
          double rest = matrix[r * n + c];
          for (int k = 0; k < n; ++k)
            rest -= lower ? factor[r * n + k] * factor[c * n + k] : factor[k * n + r] * factor[k * n + c];
          worst = support::larger(worst, std::abs(rest) / (solve::gamma<T>(n + 4) * bound[r * n + c]));
          if (lower ? c > r : c < r) CHECK(factor[r * n + c] == 0);
        }
      CHECK(worst <= 1);
    }
    rigel::cholesky_solve_factored(exec, l, b, x, options);
    require();
  });
}

template <class T, class Exec, class Layout>
void check_general(int batches, int n, int m, std::uint64_t seed) {
  support::Random random(seed);
  CAPTURE(n);
  CAPTURE(m);
  const Numbers all = solve::random_numbers<T>(random, std::int64_t{batches} * n * n),
                sides = solve::random_numbers<T>(random, std::int64_t{batches} * n * m);
  const auto a = solve::batch_of<T, Exec, Layout>(batches, n, n);
  const auto b = solve::batch_of<T, Exec, Layout>(batches, n, m), x = solve::batch_of<T, Exec, Layout>(batches, n, m);
  solve::put(a, all);
  solve::put(b, sides);
  by_every_kernel<T, Exec>(Factorisation::lu, [&](const rigel::SolveOptions& options) {
    const Exec exec;
    if (!solve::covered(rigel::lu_solve_problem(exec, a, b, x, {}, options))) return;
    rigel::lu_solve(exec, a, b, x, options);
    const Numbers found = solve::get(x);
    for (int i = 0; i < batches; ++i) {
      const Numbers matrix = solve::part(all, i, n * n);
      CHECK(solve::residual(matrix, solve::part(found, i, n * m), solve::part(sides, i, n * m), n, m,
                            solve::elimination_bound(matrix, n), solve::gamma<T>(3 * n + 4)) <= 1);
    }
    CHECK(solve::get(a) == all);
    CHECK(solve::get(b) == sides);
  });
}

template <class T, class Exec, class Layout>
void check_eigen(int batches, int n, std::uint64_t seed) {
  support::Random random(seed);
  CAPTURE(n);
  Numbers all;
  for (int l = 0; l < batches; ++l) {
    const Numbers one = solve::random_symmetric<T>(random, n);
    all.insert(all.end(), one.begin(), one.end());
  }
  const auto a = solve::batch_of<T, Exec, Layout>(batches, n, n), v = solve::batch_of<T, Exec, Layout>(batches, n, n);
  const Kokkos::View<T**, typename Exec::memory_space> w("w", batches, n);
  solve::put(a, all);
  by_every_kernel<T, Exec>(Factorisation::eigen, [&](const rigel::SolveOptions& options) {
    const Exec exec;
    if (!solve::covered(rigel::eigh_problem(exec, a, w, v, {}, options))) return;
    rigel::eigh(exec, a, w, v, options);
    const Numbers values = solve::get(w), vectors = solve::get(v);
    for (int i = 0; i < batches; ++i) {
      const Numbers of = solve::part(values, i, n);
      for (int k = 1; k < n; ++k) CHECK(of[k - 1] <= of[k]);
      CHECK(solve::eigen_error<T>(solve::part(all, i, n * n), of, solve::part(vectors, i, n * n), n) <=
            solve::eigen_threshold);
    }
    CHECK(solve::get(a) == all);
  });
}

// Systems of several panels of the blocked kernels: A = 1 + R·Rᵀ, with R of eight columns.
template <class T, class Exec, class Layout>
void check_large(int batches, int n, int m) {
  support::Random random(static_cast<std::uint64_t>(n));
  CAPTURE(n);
  CAPTURE(m);
  constexpr int rank = 8;
  Numbers all;
  for (int l = 0; l < batches; ++l) {
    const Numbers r = solve::random_numbers<T>(random, std::int64_t{n} * rank);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = i == j ? 1 : 0;
        for (int k = 0; k < rank; ++k) sum += r[i * rank + k] * r[j * rank + k];
        all.push_back(static_cast<T>(sum));
      }
  }
  const Numbers sides = solve::random_numbers<T>(random, std::int64_t{batches} * n * m);
  const auto a = solve::batch_of<T, Exec, Layout>(batches, n, n), l = solve::batch_of<T, Exec, Layout>(batches, n, n);
  const auto b = solve::batch_of<T, Exec, Layout>(batches, n, m), x = solve::batch_of<T, Exec, Layout>(batches, n, m);
  solve::put(a, all);
  solve::put(b, sides);
  by_every_kernel<T, Exec>(Factorisation::cholesky, [&](const rigel::SolveOptions& options) {
    if (options.kernel.starts_with("reference")) return;  // a thread for each system: minutes on a GPU
    const Exec exec;
    const auto require = [&] { require_solutions<T>(all, solve::get(x), sides, batches, n, m); };
    if (!solve::covered(rigel::cholesky_solve_problem(exec, a, b, x, {}, options))) return;
    rigel::cholesky_solve(exec, a, b, x, options);
    require();
    rigel::cholesky_factor(exec, a, l, options);
    rigel::cholesky_solve_factored(exec, l, b, x, options);
    require();
    CHECK(solve::get(a) == all);
  });
}

template <class T, class Exec>
void check_all() {
  std::uint64_t seed = 1;
  for (const int n : sizes) {
    const int m = n % 4 == 0 ? 16 : n % 3 == 0 ? 1 : 5, batches = n % 2 ? 3 : 2;
    check_definite<T, Exec, Kokkos::LayoutRight>(batches, n, m, seed++);
    check_general<T, Exec, Kokkos::LayoutLeft>(batches, n, m, seed++);
    check_eigen<T, Exec, Kokkos::LayoutRight>(batches, n, seed++);
  }
  check_definite<T, Exec, Kokkos::LayoutLeft>(2, 33, 3, seed++);
  check_definite<T, Exec, Kokkos::LayoutStride>(2, 257, 4, seed++);
  check_general<T, Exec, Kokkos::LayoutRight>(2, 333, 40, seed++);
  check_large<T, Exec, Kokkos::LayoutRight>(2, 1190, 3);
  check_large<T, Exec, Kokkos::LayoutLeft>(1, 1100, 70);
  check_definite<T, Exec, Kokkos::LayoutStride>(2, 33, 40, seed++);
  check_general<T, Exec, Kokkos::LayoutRight>(2, 33, 3, seed++);
  check_general<T, Exec, Kokkos::LayoutStride>(2, 33, 40, seed++);
  check_eigen<T, Exec, Kokkos::LayoutLeft>(2, 33, seed++);
  check_eigen<T, Exec, Kokkos::LayoutStride>(2, 33, seed++);
  check_definite<T, Exec, Kokkos::LayoutRight>(40, 20, 2, seed++);
  check_general<T, Exec, Kokkos::LayoutRight>(40, 20, 2, seed++);
  check_eigen<T, Exec, Kokkos::LayoutRight>(40, 20, seed++);
}

}  // namespace

TEST_CASE_TEMPLATE("solve: bounds, in float", Exec, RIGEL_TEST_SPACES) { check_all<float, Exec>(); }
TEST_CASE_TEMPLATE("solve: bounds, in double", Exec, RIGEL_TEST_SPACES) { check_all<double, Exec>(); }

// Elements that rounding leaves of the diagonal are as large as the others: sweeps must end all the same.
template <class T, class Exec>
void check_nearly_multiple_of_one() {
  support::Random random(5);
  for (const int n : {8, 33, 64})
    for (int trial = 0; trial < 8; ++trial) {
      Numbers all = solve::random_symmetric<T>(random, n);
      for (double& x : all) x *= 4 * support::unit<T>;
      for (int i = 0; i < n; ++i) all[i * n + i] = static_cast<T>(all[i * n + i] + 0.75);
      const auto a = solve::batch_of<T, Exec, Kokkos::LayoutRight>(1, n, n),
                 v = solve::batch_of<T, Exec, Kokkos::LayoutRight>(1, n, n);
      const Kokkos::View<T**, typename Exec::memory_space> w("w", 1, n);
      solve::put(a, all);
      for (const std::string& name : solve::kernels_of<T, Exec>(Factorisation::eigen)) {
        CAPTURE(name);
        CAPTURE(n);
        const rigel::SolveOptions options{.kernel = name};
        if (!solve::covered(rigel::eigh_problem(Exec{}, a, w, v, {}, options))) continue;
        rigel::eigh(Exec{}, a, w, v, options);
        CHECK(solve::eigen_error<T>(all, solve::get(w), solve::get(v), n) <= solve::eigen_threshold);
      }
    }
}

TEST_CASE_TEMPLATE("solve: eigenvectors of nearly a multiple of one", Exec, RIGEL_TEST_SPACES) {
  check_nearly_multiple_of_one<float, Exec>();
  check_nearly_multiple_of_one<double, Exec>();
}

TEST_CASE_TEMPLATE("solve: transposed views, and matrices of rank 2", Exec, RIGEL_TEST_SPACES) {
  support::Random random(7);
  constexpr int n = 21, m = 4;
  const Numbers matrix = solve::random_numbers<double>(random, n * n), sides = solve::random_numbers<double>(random, n * m);
  const Kokkos::View<double**, typename Exec::memory_space> a("a", n, n), b("b", n, m), x("x", n, m);
  Numbers turned(matrix.size());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) turned[j * n + i] = matrix[i * n + j];
  solve::put(a, turned);
  solve::put(b, sides);
  rigel::lu_solve(Exec{}, rigel::transposed(a), b, x);
  CHECK(solve::residual(matrix, solve::get(x), sides, n, m, solve::elimination_bound(matrix, n),
                        solve::gamma<double>(3 * n + 4)) <= 1);
}

TEST_CASE_TEMPLATE("solve: the batch index last", Exec, RIGEL_TEST_SPACES) {
  const Kokkos::View<double***, typename Exec::memory_space> a("a", 1, 1, 3), b("b", 1, 2, 3), x("x", 1, 2, 3);
  solve::put(a, {4, 16, 64});
  solve::put(b, {4, 16, 64, 8, 32, 128});
  rigel::cholesky_solve(Exec{}, a, b, x, {.batch = rigel::Batch::last});
  for (const double value : solve::get(Kokkos::subview(x, 0, 0, Kokkos::ALL))) CHECK(value == 1);
  for (const double value : solve::get(Kokkos::subview(x, 0, 1, Kokkos::ALL))) CHECK(value == 2);
}

TEST_CASE_TEMPLATE("solve: log-determinants of a batch against f64", Exec, RIGEL_TEST_SPACES) {
  // log det of a product of diagonals: the sum of logarithms in double, rounded once.
  const Kokkos::View<float***, typename Exec::memory_space> l("l", 3, 2, 2);
  const Kokkos::View<float*, typename Exec::memory_space> d("d", 3);
  solve::put(l, {1, 0, 5, 3, 2, 0, 0, 0.5, std::nan(""), 0, 0, 1});
  rigel::log_determinant(Exec{}, l, d);
  const Numbers found = solve::get(d);
  CHECK(found[0] == static_cast<double>(static_cast<float>(2 * std::log(3.))));
  CHECK(found[1] == 0);
  CHECK(std::isnan(found[2]));
}
