// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread does with one a and one b of an output, or with a few k at a time: x ⊕ (a ⊗ b). Most semirings use their own
// definition. Sums of powers and of exponentials in float have steps made for a GPU, whose accuracy is stated here: a
// multiprocessor evaluates 16 special functions per clock, and issues 128 other operations.
#pragma once

#include <rigel/semirings.hpp>

#include <cmath>
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

/// Σ |a − b|^p for any p > 0 by two special functions, as accurate as math::power_approximately().
template <class S>
class PowersBySpecialFunctions {
 public:
  using Parameters = NoParameters;
  using Table = NoTable;
  static constexpr int chunk = 1;

  __device__ __forceinline__ PowersBySpecialFunctions(const S& s, const Parameters&, Table&, int, int) : p_(s.p) {}

  __device__ __forceinline__ float operator()(float x, float a, float b, std::int64_t) const {
    return math::add(x, math::power_approximately(math::abs(math::subtract(a, b)), p_));
  }

 private:
  float p_;
};

/// Σ |a − b|^p for p = halves / 2: products, and a square root if `halves` is odd. The relative error of a term is at most
/// (halves + 2)·u. Subnormal differences count as 0 if p > 1.
template <class S, int halves>
class PowersByProducts {
 public:
  using Parameters = NoParameters;
  using Table = NoTable;
  static constexpr int chunk = 1;
  static_assert(halves >= 1 && halves <= 8);

  __device__ __forceinline__ PowersByProducts(const S&, const Parameters&, Table&, int, int) {}

  __device__ __forceinline__ float operator()(float x, float a, float b, std::int64_t) const {
    const float d = math::subtract(a, b), square = d * d;
    if constexpr (halves == 1) return x + root(d);
    if constexpr (halves == 2) return x + math::abs(d);
    if constexpr (halves == 3) return x + math::abs(d) * root(d);
    if constexpr (halves == 4) return math::fma(d, d, x);
    if constexpr (halves == 5) return math::fma(square, root(d), x);
    if constexpr (halves == 6) return math::fma(d * math::abs(d), d, x);  // FMUL reads |d| for free, FFMA does not
    if constexpr (halves == 7) return math::fma(square, math::abs(d) * root(d), x);
    return math::fma(square, square, x);
  }

 private:
  // √|d|, within 2 u.
  __device__ __forceinline__ static float root(float d) {
    float y;
    if constexpr (halves == 1)
      asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(math::abs(d)));
    else
      asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(math::abs(d)));
    return y;
  }
};

/// Σ |a − b|^p for 1 < p ≤ 3.5 without special functions. |d| = c·m: c is the middle of |d|'s half octave and follows from
/// the number's upper bits; m is in [0.8, 1.2]. So |d|^p = c^p · m^p. A table in shared memory holds c^p and 1/c. The
/// polynomial of degree 4 that is exact at the five zeros of the minimax polynomial's error for p = 1.5 gives m^p. The
/// relative error of a term, over all normal numbers, is below 1e-6 for p up to 3.3 (5.7e-7 for p = 1.3) and below 1.4e-6
/// for p up to 3.5. Subnormal differences count as 0. A term takes ten instructions and one read of shared memory, which has
/// bank conflicts only if differences in a warp are eight octaves apart. Terms are summed in fours first, so each sum has a
/// quarter of the roundings of one chain.
template <class S>
class PowersByTable {
 public:
  static constexpr int terms = 5, chunk = 4;
  struct Parameters {
    float p, coefficient[terms];  // 4·m^p = Σ_i coefficient[i]·(4·m)^i

    RIGEL_MEMBER explicit Parameters(float exponent);
  };
  // x: c^p / 4, y: 4 / c. So x overflows no sooner than the result, and y is normal.
  typedef float Entry __attribute__((ext_vector_type(2)));
  struct Table {
    Entry entry[512];  // by the exponent's 8 bits and the first bit of the mantissa
  };

  /// Whether it covers this exponent.
  RIGEL_MEMBER static bool supports(float p) { return p > 1 && p <= 3.5f; }

  __device__ __forceinline__ PowersByTable(const S&, const Parameters& g, Table& table, int thread, int threads)
      : PowersByTable(g, table) {
    fill(table, g, thread, threads);
  }
  /// With a table that is filled by the first step.
  __device__ __forceinline__ PowersByTable(const Parameters& g, const Table& table) : g_(g), table_(table) {}

  __device__ __forceinline__ static void fill(Table& table, const Parameters& g, int thread, int threads) {
#pragma unroll 1
    for (int i = thread; i < 512; i += threads) table.entry[i] = entry(i, g);
  }

  template <int count>
  __device__ __forceinline__ float operator()(float x, const float (&a)[count], const float (&b)[count]) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float d = math::subtract(a[i], b[i]);
      // The entry's offset in bytes, computed by a shift and a mask alone.
      const auto place = __float_as_uint(d) >> 19 & 511 << 3;
      const void* const at = reinterpret_cast<const char*>(table_.entry) + place;
      const Entry c = *static_cast<const Entry*>(__builtin_assume_aligned(at, sizeof(Entry)));
      const float m = math::abs(d) * c.y;
      float power = g_.coefficient[terms - 1];
#pragma unroll
      for (int j = terms - 2; j >= 0; --j) power = math::fma(power, m, g_.coefficient[j]);
      sum = i == 0 ? c.x * power : math::fma(c.x, power, sum);
    }
    return math::add(x, sum);
  }

 private:
  __device__ static Entry entry(int i, const Parameters& g) {
    const int exponent = i / 2;
    if (exponent == 0) return {0, 0};
    // Infinity and NaN are their own powers. m is then |d| itself, the polynomial is infinite with the sign of its last
    // term, and this factor has the same sign.
    if (exponent == 255) return {copysignf(std::numeric_limits<float>::infinity(), g.coefficient[terms - 1]), 1};
    const double log2_c = exponent - 127 + (i % 2 ? 0.80735492205760410744 : 0.32192809488736234787);  // log2 1.75, 1.25
    return {static_cast<float>(::exp2(double{g.p} * log2_c - 2)), static_cast<float>(::exp2(2 - log2_c))};
  }

  const Parameters& g_;
  const Table& table_;
};

template <class S>
RIGEL_FUNCTION PowersByTable<S>::Parameters::Parameters(float exponent) : p(exponent), coefficient{} {
  constexpr double node[terms] = {4 * 0.80824, 4 * 0.87164, 4 * 0.98315, 4 * 1.1063, 4 * 1.18853};
  const auto power = [&](double base) {
#if RIGEL_ON_DEVICE
    return ::exp2(exponent * ::log2(base));  // far shorter than pow()
#else
    return std::pow(base, double{exponent});
#endif
  };
  // Newton's divided differences, then Newton's form multiplied out.
  double difference[terms], c[terms] = {};
#pragma unroll
  for (int i = 0; i < terms; ++i) difference[i] = 4 * power(node[i] / 4);
#pragma unroll
  for (int order = 1; order < terms; ++order)
#pragma unroll
    for (int i = terms - 1; i > 0; --i)
      if (i >= order) difference[i] = (difference[i] - difference[i - 1]) / (node[i] - node[i - order]);
#pragma unroll
  for (int i = terms - 1; i >= 0; --i) {
#pragma unroll
    for (int j = terms - 1; j > 0; --j) c[j] = c[j - 1] - node[i] * c[j];
    c[0] = difference[i] - node[i] * c[0];
  }
#pragma unroll
  for (int i = 0; i < terms; ++i) coefficient[i] = static_cast<float>(c[i]);
  // A last coefficient of 0 would turn infinity into NaN.
  if (!(std::abs(coefficient[terms - 1]) > 1e-30f)) coefficient[terms - 1] = 1e-30f;
}

/// Σ |a − b|^p for an exponent in memory of the device: a block chooses, before its first step, the table if that covers the
/// exponent, else special functions.
template <class S>
class PowersOfView {
 public:
  using Parameters = NoParameters;
  using ByTable = PowersByTable<S>;
  using Table = typename ByTable::Table;
  static constexpr int chunk = ByTable::chunk;

  __device__ __forceinline__ PowersOfView(const S& s, const Parameters&, Table& table, int thread, int threads)
      : s_(s), of_table_(s.p), table_(table) {
    if (ByTable::supports(s.p)) ByTable::fill(table, of_table_, thread, threads);
  }

  /// use(step) with the chosen one.
  template <class Use>
  __device__ __forceinline__ void choose(const Use& use) const {
    if (ByTable::supports(s_.p)) {
      use(ByTable(of_table_, table_));
    } else {
      NoTable none;
      use(PowersBySpecialFunctions<S>(s_, {}, none, 0, 0));
    }
  }

 private:
  const S& s_;
  typename ByTable::Parameters of_table_;
  const Table& table_;
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
