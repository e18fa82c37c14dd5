// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A user's program: its own semiring and one of the zoo, compared with loops.
#include <rigel/contract.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdio>

// C(m,n) = Σ_k w·|a − b|, w a hyperparameter.
struct weighted_l1 {
  using element = float;
  using accumulator = float;
  float w;
  KOKKOS_FUNCTION static accumulator identity() { return 0.f; }
  KOKKOS_FUNCTION accumulator multiply(element a, element b) const { return w * Kokkos::abs(a - b); }
  KOKKOS_FUNCTION accumulator add(accumulator x, accumulator y) const { return x + y; }
};

// The weight and the numbers are small multiples of 1/2, so that every sum is exact in any order.
float x_value(int i, int j) { return 0.5f * static_cast<float>((7 * i + 3 * j) % 11); }
float z_value(int i, int j) { return 0.5f * static_cast<float>((5 * i + 2 * j) % 13); }

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  constexpr int m = 37, n = 29, k = 17;
  const Kokkos::DefaultExecutionSpace exec;
  Kokkos::View<float**, Kokkos::DefaultExecutionSpace> x("x", m, k), z("z", n, k), c("c", m, n), p("p", m, n);
  const auto x_host = Kokkos::create_mirror_view(x);
  const auto z_host = Kokkos::create_mirror_view(z);
  for (int j = 0; j < k; ++j) {
    for (int i = 0; i < m; ++i) x_host(i, j) = x_value(i, j);
    for (int i = 0; i < n; ++i) z_host(i, j) = z_value(i, j);
  }
  Kokkos::deep_copy(x, x_host);
  Kokkos::deep_copy(z, z_host);

  rigel::contract(exec, weighted_l1{0.5f}, x, rigel::transposed(z), c);
  rigel::contract(exec, rigel::min_plus<float>{}, x, rigel::transposed(z), p);

  const auto c_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, c);
  const auto p_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, p);
  int wrong = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0, least = INFINITY;
      for (int l = 0; l < k; ++l) {
        sum += 0.5f * std::fabs(x_value(i, l) - z_value(j, l));
        least = std::fmin(least, x_value(i, l) + z_value(j, l));
      }
      wrong += c_host(i, j) != sum;
      wrong += p_host(i, j) != least;
    }
  std::printf("consumer: %d of %d elements wrong, on %s\n", wrong, 2 * m * n, exec.name());
  return wrong != 0;
}
