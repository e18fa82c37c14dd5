// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/rigel.hpp>

#include <cstdio>

// The most reliable of K relays, if a message passes two links: C(m,n) = max_k trust·a·b, a and b probabilities.
struct most_reliable {
  using element = double;
  using accumulator = double;
  static constexpr bool commutative = true, selective = true, exact = true;
  double trust;  // a hyperparameter: what each relay is trusted to forward
  KOKKOS_FUNCTION static double identity() { return 0; }
  KOKKOS_FUNCTION double multiply(double a, double b) const { return trust * a * b; }
  KOKKOS_FUNCTION double add(double x, double y) const { return x < y ? y : x; }
};

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  Kokkos::DefaultExecutionSpace exec;

  Kokkos::View<double**> a("a", 100, 500), b("b", 500, 100), c("c", 100, 100);
  Kokkos::parallel_for(
      "fill", 500, KOKKOS_LAMBDA(int k) {
        for (int m = 0; m < 100; ++m) a(m, k) = b(k, m) = (1 + (7 * m + 3 * k) % 64) / 64.0;
      });
  rigel::contract(exec, most_reliable{0.75}, a, b, c);

  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), c);
  std::printf("c(0,0) = %g, c(0,1) = %g\n", result(0, 0), result(0, 1));
}
