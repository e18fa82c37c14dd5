// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ceilings: the rate of a semiring's step on registers, in independent chains without a load.
#pragma once

#include <bench/host/ceiling_loops.hpp>

#include <Kokkos_Core.hpp>

namespace bench {

/// The loops of the widest level that this processor has.
inline Ceilings ceilings() {
  if (__builtin_cpu_supports("x86-64-v4")) return ceilings_v4();
  if (__builtin_cpu_supports("x86-64-v3")) return ceilings_v3();
  return ceilings_v2();
}

/// Runs a loop on every thread. Returns how many pairs they computed.
template <class Exec>
double on_all_threads(const Exec& exec, double (*loop)()) {
  double pairs = 0;
  Kokkos::parallel_reduce(
      "bench::ceiling",
      Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Static>>(exec, 0, exec.concurrency(), Kokkos::ChunkSize(1)),
      [=](int, double& sum) { sum += loop(); }, pairs);
  return pairs;
}

}  // namespace bench
