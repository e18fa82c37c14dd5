// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/rigel.hpp>

#include <cstdio>

// Two legs of a journey: from M towns to N, by any of K stations. All costs are integers.
int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  Kokkos::DefaultExecutionSpace exec;

  Kokkos::View<int**> to_station("to_station", 2, 3), to_town("to_town", 3, 2), cost("cost", 2, 2);
  const auto first = Kokkos::create_mirror_view(to_station), second = Kokkos::create_mirror_view(to_town);
  const int of_first[2][3] = {{4, 9, 2}, {7, 1, 5}}, of_second[3][2] = {{3, 8}, {1, 6}, {6, 4}};
  for (int m = 0; m < 2; ++m)
    for (int k = 0; k < 3; ++k) first(m, k) = of_first[m][k], second(k, m) = of_second[k][m];
  Kokkos::deep_copy(to_station, first);
  Kokkos::deep_copy(to_town, second);

  // cost(m,n) = min_k to_station(m,k) + to_town(k,n)
  rigel::contract(exec, rigel::min_plus<int>{}, to_station, to_town, cost);

  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), cost);
  for (int m = 0; m < 2; ++m) std::printf("from %d: %d to 0, %d to 1\n", m, result(m, 0), result(m, 1));
}
