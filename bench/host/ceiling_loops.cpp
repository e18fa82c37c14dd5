// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of one level, for whose instruction set this file is compiled: RIGEL_BENCH_CEILINGS is the function's name,
// RIGEL_BENCH_VECTOR_BYTES the size of a vector, RIGEL_BENCH_CHAINS how many accumulators there are.
//
// The level is the file's and no function's attribute: options such as -march=native turn off what the builder's processor lacks, for
// attributes, too.
#include <bench/host/ceiling_loops.hpp>

namespace {

constexpr int chains = RIGEL_BENCH_CHAINS;

template <class T>
using vector = T __attribute__((ext_vector_type(RIGEL_BENCH_VECTOR_BYTES / sizeof(T))));

enum class Loop { l1, min_plus, plus_times };

// `chains` accumulators, each with its own operand. The empty assembly hides the value of the other operand, so that the
// compiler moves nothing out of the loop.
template <Loop operation, class T>
[[gnu::noinline, clang::min_vector_width(512)]] double loop() {
  using V = vector<T>;
  constexpr long steps = 1 << 18;
  V x[chains], a[chains], b = V(T(0.5));
  for (int j = 0; j < chains; ++j) x[j] = V(T(j)), a[j] = V(T(0.25) * T(j + 1));
  for (long i = 0; i < steps; ++i) {
    __asm__ volatile("" : "+v"(b));
#pragma unroll
    for (int j = 0; j < chains; ++j) {
      if constexpr (operation == Loop::l1) {
        x[j] += __builtin_elementwise_abs(a[j] - b);
      } else if constexpr (operation == Loop::min_plus) {
        const V y = a[j] + b;
        x[j] = y < x[j] ? y : x[j];
      } else {
#ifdef __FMA__
        x[j] = __builtin_elementwise_fma(a[j], b, x[j]);
#else
        x[j] += a[j] * b;
#endif
      }
    }
  }
#pragma unroll
  for (int j = 0; j < chains; ++j) __asm__ volatile("" : : "v"(x[j]));
  return double(steps) * chains * (RIGEL_BENCH_VECTOR_BYTES / sizeof(T));
}

}  // namespace

bench::Ceilings bench::RIGEL_BENCH_CEILINGS() {
  return {loop<Loop::l1, float>, loop<Loop::l1, double>, loop<Loop::min_plus, float>, loop<Loop::plus_times, float>};
}
