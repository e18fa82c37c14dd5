// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread does with one a and one b of an output, or with a few k at a time: x ⊕ (a ⊗ b). Most semirings use their own
// definition. Sums of exponentials in float have steps made for a GPU, whose accuracy is stated here; powers.hpp has those of
// sums of powers. A multiprocessor evaluates 16 special functions per clock, and issues 128 other operations.
#pragma once

#include <rigel/backends/cuda/simt/tiles.hpp>
#include <rigel/detail/ordered.hpp>
#include <rigel/semirings.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace rigel::backends::simt {

/// What the host passes to a kernel's steps: nothing.
struct NoParameters {};
/// What the threads of a block share for their steps: nothing.
struct NoTable {};
struct PlainSteps {
  using Parameters = NoParameters;
  using Table = NoTable;
  static constexpr int chunk = 1;  // k at a time
};

/// As the semiring defines it.
template <class S>
class Steps : public PlainSteps {
 public:
  using Accumulator = typename S::accumulator;
  using Operand = operand_t<S>;

  __device__ __forceinline__ Steps(const S& s, const Parameters&, Table&, int, int) : s_(s) {}

  __device__ __forceinline__ Accumulator operator()(Accumulator x, Operand a, Operand b, std::int64_t k) const {
    return step(s_, x, a, b, k);
  }

 private:
  const S& s_;
};

template <class S> inline constexpr bool is_linf = false;
template <class E, class A> inline constexpr bool is_linf<linf<E, A>> = true;

/// Minima and maxima of doubles. A block tests each element of a slab once. If none is special, no product is NaN, and the
/// slab is added by operator(); else by exactly(). NaN stays in an accumulator in both.
template <class S>
class OrderedSteps : public PlainSteps {
 public:
  using Accumulator = typename S::accumulator;
  using Operand = operand_t<S>;

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
template <class S> using StepsFor = typename steps_for<S>::type;

/// log Σ exp(a + b), a few k at a time: one maximum and one rescaling for all, one exponential each, by the special-function
/// unit. An exponential is within 4 u, its argument x ≤ 0 within |x|·u.
template <class S>
class LogSums : public PlainSteps {
 public:
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

/// The entry of a table at an offset in bytes.
template <class T>
__device__ __forceinline__ T entry_at(const T* entries, unsigned place) {
  const void* const entry = reinterpret_cast<const char*>(entries) + place;
  return *static_cast<const T*>(__builtin_assume_aligned(entry, sizeof(T)));
}

/// e^x of doubles for sums of exponentials, by a table in shared memory and a polynomial: eight instructions in double and the product with
/// the table's entry, which the caller adds to its sum by one more.
///
/// e^x = 2^(n/32) · e^r, n the integer nearest to 32·x/ln 2, |r| ≤ h = ln 2/64 and a little. The table holds 2^(j/32) for j from 0
/// to 31 in 32-bit words, so different entries are in different banks. The polynomial of degree 5 is Taylor's of degree 6 with
/// r⁶ replaced: with t = (r/h)², t³ − α·t² + β·t is Chebyshev's polynomial, stretched to vanish at 0, divided by its leading
/// coefficient, and at most 1/26. So the polynomial is within 0.8 u of e^r, and e^x within 5 u with the argument x·(1 ± u/3).
/// Anything below −708 counts as about −708: e^x is never less than 2^-1022. x is at most 700, or +NaN, which stays.
class ExponentialOfDouble {
 public:
  struct Table {
    unsigned low[32], high[32];  // of 2^(j/32), high less j·2^15: adding n·2^15 adds n div 32 to the exponent
  };

  /// The block's threads have filled the table, and met since.
  __device__ __forceinline__ explicit ExponentialOfDouble(const Table& table) : table_(table) {}
  __device__ __forceinline__ static void fill(Table& table, int thread) {
    if (thread >= 32) return;
    const double power = ::exp2(thread / 32.);
    table.low[thread] = __double2loint(power);
    table.high[thread] = __double2hiint(power) - (thread << 15);
  }

  /// sum + e^x.
  __device__ __forceinline__ double add(double x, double sum) const {
    constexpr double magic = 0x1.8p52, per_unit = 46.166241308446828384, unit = 0.021660849392498290;  // 32/ln 2, ln 2/32
    const unsigned high = std::min(static_cast<unsigned>(__double2hiint(x)), 0xc0862000u);  // larger ones are below −708
    x = __hiloint2double(static_cast<int>(high), __double2loint(x));
    const double shifted = math::fma(x, per_unit, magic);
    const unsigned n = __double2loint(shifted), place = (n & 31) * 4;
    const double r = math::fma(math::subtract(shifted, magic), -unit, x);
    constexpr double h = unit / 2, h2 = h * h;
    constexpr double coefficient[] = {
        1. / 120, 1. / 24 + 1.3923048454132638 / 720 * h2, 1. / 6, 0.5 - 0.43078061834694711 / 720 * h2 * h2, 1, 1};
    double power = coefficient[0];
#pragma unroll
    for (int i = 1; i < 6; ++i) power = math::fma(power, r, coefficient[i]);
    const double scale = __hiloint2double(static_cast<int>(entry_at(table_.high, place) + (n << 15)),
                                          static_cast<int>(entry_at(table_.low, place)));
    return math::fma(scale, power, sum);
  }
  __device__ __forceinline__ double operator()(double x) const { return add(x, 0); }

 private:
  const Table& table_;
};

/// log Σ exp(a + b) in double, four k at a time. `maximum` is a term that no other exceeds by more than 32. It stays as long as that holds,
/// which upper words show, compared as floats; else it becomes the largest term, and the sum is rescaled. So only the last
/// rescaling matters: the previous ones multiply e^-32 of each of their terms. Terms that are infinite, NaN or beyond 2^1017 look
/// like NaN there, and take the other path.
///
/// An exponential is within 5 u, its argument x within 4/3·|x|·u. The terms of a chunk are summed first, so a sum of K has 4 + K/4
/// additions. A term takes eleven instructions in double and a quarter, a maximum of floats, two reads of shared memory, and four
/// others.
template <class S>
  requires(std::is_same_v<operand_t<S>, double>)
class LogSums<S> {
 public:
  using Parameters = NoParameters;
  using Table = ExponentialOfDouble::Table;
  using Accumulator = log_sum<double>;
  static constexpr int chunk = 4;

  __device__ __forceinline__ LogSums(const S&, const Parameters&, Table& table, int thread, int) : exponential_(table) {
    ExponentialOfDouble::fill(table, thread);
  }

  template <int count>
  __device__ __forceinline__ Accumulator operator()(Accumulator x, const double (&a)[count],
                                                    const double (&b)[count]) const {
    double above[count];  // terms, relative to the maximum
    float highest = -infinity<float>();
#pragma unroll
    for (int i = 0; i < count; ++i) {
      above[i] = math::subtract(math::add(a[i], b[i]), x.maximum);
      highest = math::maximum(highest, __int_as_float(__double2hiint(above[i])));
    }
    if (!(highest <= __int_as_float(__double2hiint(most)))) raise(x, above, a, b);
    double sum = exponential_(above[0]);
#pragma unroll
    for (int i = 1; i < count; ++i) sum = exponential_.add(above[i], sum);
    x.sum = math::add(x.sum, sum);
    asm volatile("" : "+d"(x.sum));  // otherwise terms of several outputs are computed at a time, which spills
    return x;
  }

 private:
  static constexpr double most = 32;

  /// Makes the largest term the maximum, if that is so much smaller. NaN becomes the sum's.
  template <int count>
  __device__ __forceinline__ void raise(Accumulator& x, double (&above)[count], const double (&a)[count],
                                        const double (&b)[count]) const {
    double larger = x.maximum;
    bool has_nan = false;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const double t = math::add(a[i], b[i]);
      larger = math::maximum_if_ordered(t, larger);
      has_nan |= t != t;
    }
    if (!(math::subtract(larger, x.maximum) > most)) larger = x.maximum;
    // Relative to a finite number, since infinity minus infinity is NaN. So is a term of infinity.
    const auto at_most = [](double t) { return words(std::min(__double2hiint(t), 0x7fefffff), t); };
    const double bounded = at_most(larger);
    const auto high = std::min(static_cast<unsigned>(__double2hiint(bounded)), 0xffefffffu);
    const double scale = words(static_cast<int>(high), bounded);
#pragma unroll
    for (int i = 0; i < count; ++i) above[i] = math::subtract(at_most(math::add(a[i], b[i])), scale);
    if (larger != x.maximum) x.sum *= exponential_(math::subtract(x.maximum, scale));
    if (has_nan) x.sum = std::numeric_limits<double>::quiet_NaN();
    x.maximum = larger;
  }
  __device__ __forceinline__ static double words(int high, double low) {
    return __hiloint2double(high, __double2loint(low));
  }

  ExponentialOfDouble exponential_;
};

}  // namespace rigel::backends::simt
