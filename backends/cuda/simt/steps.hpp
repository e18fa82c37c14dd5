// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread does with one a and one b of an output, or with a few k at a time: x ⊕ (a ⊗ b). Most semirings use their own
// definition. Sums of exponentials in float have steps made for a GPU, whose accuracy is stated here; powers.hpp has those of
// sums of powers. A multiprocessor evaluates 16 special functions per clock, and issues 128 other operations.
#pragma once

#include <rigel/backends/cuda/simt/tiles.hpp>
#include <rigel/detail/ordered.hpp>
#include <rigel/semirings.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

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

template <class S>
inline constexpr bool is_linf = false;
template <class E, class A>
inline constexpr bool is_linf<linf<E, A>> = true;

/// Minima and maxima of doubles. A block tests each element of a slab once. If none is special, no product is NaN, and the
/// slab is added by operator(); else by exactly(). NaN stays in an accumulator in both.
template <class S>
class OrderedSteps {
 public:
  using Accumulator = typename S::accumulator;
  using Operand = operand_t<S>;
  using Parameters = NoParameters;
  using Table = NoTable;
  static constexpr int chunk = 1;

  __device__ __forceinline__ OrderedSteps(const S& s, const Parameters&, Table&, int, int) : s_(s) {}

  /// Whether a product of this element and another, if only special ones are left out, can be NaN: NaN itself, and, unless
  /// products are minima or maxima, every infinity but the annihilator.
  __device__ __forceinline__ static bool is_special(Operand value) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    if constexpr (detail::has_ordered_multiply<S>)
      return value != value;
    else if constexpr (std::is_same_v<S, min_plus<double>>)
      return !(value > -infinite);
    else if constexpr (std::is_same_v<S, max_plus<double>>)
      return !(value < infinite);
    else
      return !(math::abs(value) < infinite);
  }

  __device__ __forceinline__ Accumulator operator()(Accumulator x, Operand a, Operand b, std::int64_t k) const {
    if constexpr (is_linf<S>) {
      const Operand d = math::subtract(a, b);
      return math::abs(d) > math::abs(x) ? d : x;
    } else {
      return detail::step_on<true>(s_, x, a, b, k);
    }
  }
  __device__ __forceinline__ Accumulator exactly(Accumulator x, Operand a, Operand b, std::int64_t k) const {
    return step(s_, end(x), a, b, k);
  }

  /// What a sum's steps start from, and its value after them. Meanwhile linf keeps differences with their signs: comparisons
  /// read absolute values for free, selections do not.
  __device__ __forceinline__ static Accumulator begin(Accumulator x) { return is_linf<S> ? math::maximum(x, 0.) : x; }
  __device__ __forceinline__ static Accumulator end(Accumulator x) { return is_linf<S> ? math::abs(x) : x; }

 private:
  const S& s_;
};

/// The steps of a semiring; metrics.hpp has those of some metrics.
template <class S>
struct steps_for {
  using type = std::conditional_t<compares_doubles<S>, OrderedSteps<S>, Steps<S>>;
};
template <class S>
using StepsFor = typename steps_for<S>::type;

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

/// log Σ exp(a + b) in double, a few k at a time: one maximum and one rescaling for all, one exponential each. Relative to the maximum,
/// x = n·ln2/32 + r with |r| ≤ ln2/64, and exp x = 2^(n/32)·exp r: a table in shared memory holds 2^(j/32), and Taylor's polynomial of
/// degree 6 is within 2^-57 of exp r. An exponential is within 3 u, its argument x ≤ 0 within 2·|x|·u, and 0 below exp(−708). NaN stays in
/// the sum. A term takes 16 instructions in double, a fifth of them for the rescaling, and some 13 of integers, which run beside them.
/// The table's words are of 32 bits, so different entries are in different banks.
template <class S>
  requires std::is_same_v<operand_t<S>, double>
class LogSums<S> {
 public:
  using Parameters = NoParameters;
  using Accumulator = log_sum<double>;
  static constexpr int chunk = 4;
  struct Table {
    unsigned low[32], high[32];  // words of 2^(j/32)
  };

  __device__ __forceinline__ LogSums(const S&, const Parameters&, Table& table, int thread, int) : table_(table) {
    if (thread < 32) {
      const double power = ::exp2(thread / 32.);
      table.low[thread] = __double2loint(power);
      table.high[thread] = __double2hiint(power);
    }
  }

  template <int count>
  __device__ __forceinline__ Accumulator operator()(Accumulator x, const double (&a)[count],
                                                    const double (&b)[count]) const {
    double t[count], larger = x.maximum;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      t[i] = math::add(a[i], b[i]);
      larger = t[i] > larger ? t[i] : larger;
    }
    const double scale = finite(larger);
    const Exponential before = exponential(math::subtract(x.maximum, scale));
    double sum = x.sum * before.scale * before.power;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const Exponential e = exponential(math::subtract(t[i], scale));
      sum = math::fma(e.scale, e.power, sum);
    }
    return {larger, sum};
  }

 private:
  // The largest number of its sign for an infinity: infinity minus infinity is NaN. Also for NaN, which then is in differences.
  __device__ __forceinline__ static double finite(double x) {
    const unsigned high = __double2hiint(x), low = __double2loint(x);
    const bool is_finite = (high & 0x7fffffff) < infinite;
    return __hiloint2double(is_finite ? high : (high & 0x80000000) | (infinite - 1), is_finite ? low : ~0u);
  }

  // exp x as a product, for x ≤ 0, NaN, or +∞, which counts as 0.
  struct Exponential {
    double scale, power;
  };
  __device__ __forceinline__ Exponential exponential(double x) const {
    constexpr double rounding = 0x1.8p52, of_ln2 = 46.166241308446828384, ln2 = 0.021660849392498290195;  // 32/ln 2; ln 2/32
    constexpr unsigned least = 0xc0862000;  // the upper word of −708
    const unsigned high = __double2hiint(x);
    const bool is_zero = high - least - 1 < 0xfff00000 - least;                                    // below −708, not NaN
    const double y = __hiloint2double(is_zero || high == infinite ? 0 : high, __double2loint(x));  // NaN alone gives NaN
    const double shifted = math::fma(y, of_ln2, rounding), r = math::fma(math::subtract(shifted, rounding), -ln2, y);
    const unsigned n = __double2loint(shifted), j = n % 32, exponent = (n & ~31u) << 15;
    double power = 1. / 720;
    power = math::fma(power, r, 1. / 120);
    power = math::fma(power, r, 1. / 24);
    power = math::fma(power, r, 1. / 6);
    power = math::fma(power, r, 0.5);
    power = math::fma(power, r, 1.);
    power = math::fma(power, r, 1.);
    return {__hiloint2double(is_zero ? 0 : table_.high[j] + exponent, is_zero ? 0 : table_.low[j]), power};
  }

  static constexpr unsigned infinite = 0x7ff00000;  // the upper word
  const Table& table_;
};

}  // namespace rigel::backends::simt
