// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/rigel.hpp>

#include <cstdio>

struct weighted_l1 {  // C(m,n) = Σ_k w·|a − b|, w a hyperparameter
  using element = float;
  using accumulator = float;
  float w;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return w * Kokkos::abs(a - b); }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  Kokkos::View<float**> x("x", 1000, 64), z("z", 500, 64), c("c", 1000, 500), d("d", 1000, 500);
  Kokkos::parallel_for(
      "fill", 1000, KOKKOS_LAMBDA(int i) {
        for (int k = 0; k < 64; ++k) {
          x(i, k) = i;
          if (i < 500) z(i, k) = k;
        }
      });

  Kokkos::DefaultExecutionSpace exec;
  rigel::contract(exec, weighted_l1{0.5F}, x, rigel::transposed(z), c);                  // your functor
  rigel::cdist(exec, x, z, d, rigel::metric::manhattan{}, rigel::epilogue::scale(0.5));  // the library's metric

  const auto yours = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), c);
  const auto ours = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), d);
  std::printf("%g and %g; by hand: 743\n", yours(10, 0), ours(10, 0));
}
