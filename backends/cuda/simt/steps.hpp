// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread does with one a and one b of an output, or with a few k at a time: x ⊕ (a ⊗ b). Most semirings use their own
// definition. Sums of exponentials in float have steps made for a GPU, whose accuracy is stated here; powers.hpp has those of
// sums of powers. A multiprocessor evaluates 16 special functions per clock, and issues 128 other operations.
#pragma once

#include <rigel/semirings.hpp>

#include <cstdint>
#include <limits>

namespace rigel::backends::simt {

/// What the host passes to a kernel's steps: nothing.
struct NoParameters {};
/// What the threads of a block share for their steps: nothing.
struct NoTable {};

/// As the semiring defines it.
template <class S>
class Steps {
 public:
  using Accumulator = typename S::accumulator;
  using Operand = operand_t<S>;
  using Parameters = NoParameters;
  using Table = NoTable;
  static constexpr int chunk = 1;  // k at a time

  __device__ __forceinline__ Steps(const S& s, const Parameters&, Table&, int, int) : s_(s) {}

  __device__ __forceinline__ Accumulator operator()(Accumulator x, Operand a, Operand b, std::int64_t k) const {
    return step(s_, x, a, b, k);
  }

 private:
  const S& s_;
};

/// log Σ exp(a + b), a few k at a time: one maximum and one rescaling for all, one exponential each, by the special-function
/// unit. An exponential is within 4 u, its argument x ≤ 0 within |x|·u.
template <class S>
class LogSums {
 public:
  using Parameters = NoParameters;
  using Table = NoTable;
  using Accumulator = log_sum<float>;
  static constexpr int chunk = 8;

  __device__ __forceinline__ LogSums(const S&, const Parameters&, Table&, int, int) {}

  template <int count>
  __device__ __forceinline__ Accumulator operator()(Accumulator x, const float (&a)[count], const float (&b)[count]) const {
    float t[count], larger = x.maximum;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      t[i] = math::add(a[i], b[i]);
      larger = math::maximum(larger, t[i]);
    }
    // Relative to a finite number, since infinity minus infinity is NaN.
    constexpr float most = std::numeric_limits<float>::max();
    const float scale = fminf(fmaxf(larger, -most), most);
    float sum = x.sum * exponential(math::subtract(x.maximum, scale));
#pragma unroll
    for (int i = 0; i < count; ++i) sum = math::add(sum, exponential(math::subtract(t[i], scale)));
    return {larger, sum};
  }

 private:
  __device__ __forceinline__ static float exponential(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504088896340736f));
    return y;
  }
};

}  // namespace rigel::backends::simt
