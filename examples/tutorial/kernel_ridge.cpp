// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/rigel.hpp>

#include <cmath>
#include <cstdio>

// Learns sin from 64 points by kernel ridge regression: f(x) = Σ_i k(x, x_i)·w_i, (K + α·1)·w = sin(x_i).
int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  Kokkos::DefaultExecutionSpace exec;

  constexpr int n = 64, tests = 100;
  Kokkos::View<double**> x("x", n, 1), w("w", n, 1), z("z", tests, 1), f("f", tests, 1);
  Kokkos::View<double**> k("k", n, n), to_tests("to_tests", tests, n);
  Kokkos::parallel_for(
      "points", tests, KOKKOS_LAMBDA(int i) {
        if (i < n) x(i, 0) = 0.1 * i, w(i, 0) = Kokkos::sin(0.1 * i);
        z(i, 0) = 0.03 + 0.06 * i;
      });

  const rigel::metric::euclidean metric;
  const rigel::kernel::gaussian kernel{0.5};
  rigel::kernel_matrix(exec, x, k, metric, kernel, {.regularisation = 1e-6});  // K + α·1
  rigel::cholesky_solve(exec, k, w, w, {.overwrite_b = true, .check = true});  // w
  rigel::kernel_matrix(exec, z, x, to_tests, metric, kernel);                  // k(z, x_i)
  rigel::contract(exec, rigel::plus_times<double>{}, to_tests, w, f);          // f(z)

  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), f);
  double largest = 0;
  for (int i = 0; i < tests; ++i) largest = std::fmax(largest, std::fabs(result(i, 0) - std::sin(0.03 + 0.06 * i)));
  std::printf("f(1.53) = %.4f, sin(1.53) = %.4f\n", result(25, 0), std::sin(1.53));
  std::printf("largest error below 1e-4: %s\n", largest < 1e-4 ? "yes" : "no");
}
