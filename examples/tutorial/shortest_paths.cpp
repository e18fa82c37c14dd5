// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/rigel.hpp>

#include <cstdio>

// A ring of 1000 towns, each with a road to the next, and a motorway from town 0 to town 500.
int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  Kokkos::DefaultExecutionSpace exec;
  using Roads = rigel::min_plus<int>;

  constexpr int n = 1000;
  Kokkos::View<int**> d("d", n, n), before("before", n, n);
  Kokkos::deep_copy(exec, d, Roads::identity());  // no road
  Kokkos::parallel_for(
      "roads", Kokkos::RangePolicy(exec, 0, n), KOKKOS_LAMBDA(int i) {
        d(i, (i + 1) % n) = 2;
        if (i == 0) d(0, 500) = 100;
      });

  const auto report = rigel::closure(exec, Roads{}, d, before);

  const auto length = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), d);
  const auto last = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), before);
  std::printf("negative cycle: %s\n", report.negative_cycle ? "yes" : "no");
  std::printf("from 999 to 501: %d, by", length(999, 501));
  for (int i = 501; i != 999; i = last(999, i)) std::printf(" %d", i);
  std::printf(" 999\n");
}
