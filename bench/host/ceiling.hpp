// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ceilings: the rate of a semiring's step on registers, in independent chains without a load.
#pragma once

#include <Kokkos_Core.hpp>

namespace bench {

/// Each function runs its loop for about a millisecond and returns how many pairs it computed.
struct Ceilings {
  double (*l1_f32)();
  double (*l1_f64)();
  double (*min_plus_f32)();
  double (*plus_times_f32)();
};

namespace detail {

template <class T, int Bytes>
using vector = T __attribute__((ext_vector_type(Bytes / sizeof(T))));

enum class Loop { l1, min_plus, plus_times };

// `chains` accumulators, each with its own operand. The empty assembly hides the value of the other operand, so that the
// compiler moves nothing out of the loop. It is a macro because a template cannot take the instruction set as an argument, and
// because functions inlined here must not pass vectors that other code cannot hold.
#define RIGEL_BENCH_LOOP(name, instructions, bytes, chains)                                  \
  template <Loop operation, class T>                                                         \
  [[gnu::noinline, gnu::target(instructions), clang::min_vector_width(512)]] double name() { \
    using V = vector<T, bytes>;                                                              \
    constexpr long steps = 1 << 18;                                                          \
    V x[chains], a[chains], b = V(T(0.5));                                                   \
    for (int j = 0; j < chains; ++j) x[j] = V(T(j)), a[j] = V(T(0.25) * T(j + 1));           \
    for (long i = 0; i < steps; ++i) {                                                       \
      __asm__ volatile("" : "+v"(b));                                                        \
      _Pragma("unroll") for (int j = 0; j < chains; ++j) {                                   \
        if constexpr (operation == Loop::l1) {                                               \
          x[j] += __builtin_elementwise_abs(a[j] - b);                                       \
        } else if constexpr (operation == Loop::min_plus) {                                  \
          const V y = a[j] + b;                                                              \
          x[j] = y < x[j] ? y : x[j];                                                        \
        } else {                                                                             \
          x[j] = __builtin_elementwise_fma(a[j], b, x[j]);                                   \
        }                                                                                    \
      }                                                                                      \
    }                                                                                        \
    _Pragma("unroll") for (int j = 0; j < chains; ++j) __asm__ volatile("" : : "v"(x[j]));   \
    return double(steps) * chains * (bytes / sizeof(T));                                     \
  }
RIGEL_BENCH_LOOP(loop_v4, "arch=x86-64-v4", 64, 12)
RIGEL_BENCH_LOOP(loop_v3, "arch=x86-64-v3", 32, 6)
RIGEL_BENCH_LOOP(loop_v2, "arch=x86-64-v2", 16, 6)
#undef RIGEL_BENCH_LOOP

}  // namespace detail

inline Ceilings ceilings() {
  using namespace detail;
  if (__builtin_cpu_supports("x86-64-v4"))
    return {loop_v4<Loop::l1, float>, loop_v4<Loop::l1, double>, loop_v4<Loop::min_plus, float>,
            loop_v4<Loop::plus_times, float>};
  if (__builtin_cpu_supports("x86-64-v3"))
    return {loop_v3<Loop::l1, float>, loop_v3<Loop::l1, double>, loop_v3<Loop::min_plus, float>,
            loop_v3<Loop::plus_times, float>};
  return {loop_v2<Loop::l1, float>, loop_v2<Loop::l1, double>, loop_v2<Loop::min_plus, float>,
          loop_v2<Loop::plus_times, float>};
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
