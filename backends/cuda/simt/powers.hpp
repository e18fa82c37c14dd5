// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of Σ |a − b|^p made for a GPU, in float and in double, and their accuracy: products for multiples of 1/2, a table and a
// polynomial for most other p.
#pragma once

#include <rigel/backends/cuda/simt/steps.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

namespace rigel::backends::simt {

/// Σ |a − b|^p in float for any p > 0 by two special functions, as accurate as math::power_approximately().
template <class S>
class PowersBySpecialFunctions : public PlainSteps {
 public:
  __device__ __forceinline__ PowersBySpecialFunctions(const S& s, const Parameters&, Table&, int, int) : p_(s.p) {}

  __device__ __forceinline__ float operator()(float x, float a, float b, std::int64_t) const {
    return math::add(x, math::power_approximately(math::abs(math::subtract(a, b)), p_));
  }

 private:
  float p_;
};

/// Σ |a − b|^p for any p > 0: in double as the semiring defines it.
template <class S> using AnyPowers = std::conditional_t<has_special_powers<S>, PowersBySpecialFunctions<S>, Steps<S>>;

/// Σ |a − b|^p for p = halves / 2: products, and a square root if `halves` is odd. The relative error of a term is at most
/// (halves + 2)·u. Subnormal differences count as 0 if p > 1.
template <class S, int halves>
class PowersByProducts : public PlainSteps {
 public:
  using T = operand_t<S>;
  static_assert(halves >= 1 && halves <= 8);

  __device__ __forceinline__ PowersByProducts(const S&, const Parameters&, Table&, int, int) {}

  __device__ __forceinline__ T operator()(T x, T a, T b, std::int64_t) const {
    const T d = math::subtract(a, b), square = d * d;
    if constexpr (halves == 1) return x + root(d);
    if constexpr (halves == 2) return x + math::abs(d);
    if constexpr (halves == 3 && sizeof(T) == 8) return math::fma(math::abs(d), root(d), x);
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

  // √|d|, within 2 u, in double if d is not subnormal or halves = 1. The special-function unit gives y ≈ 1/√|d|, within
  // 2^-20. The rest is one step of third order, whose own error is below 2^-60: s = |d|·y, e = 1 − s·y,
  // √|d| = s + s·e·(1/2 + 3/8·e). Small d are scaled by 2^128 if halves = 1. y is that of a positive finite number whatever
  // d is, so 0, infinity and NaN are their own roots.
  __device__ __forceinline__ static double root(double d) {
    int high = __double2hiint(d) & 0x7fffffff;
    const bool small = halves == 1 && high < 0x03600000;  // 2^-969
    if (halves == 1) d *= __hiloint2double(small ? 0x47f00000 : 0x3ff00000, 0);
    if (halves == 1) high = __double2hiint(d) & 0x7fffffff;
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(__hiloint2double(min(max(high, 0x00100000), 0x7fefffff), 0)));
    const double s = math::abs(d) * y, e = math::fma(-s, y, 1.);
    const double root = math::fma(s * e, math::fma(e, 0.375, 0.5), s);
    return halves == 1 ? root * __hiloint2double(small ? 0x3bf00000 : 0x3ff00000, 0) : root;
  }
};

/// 2^x in double for |x| ≤ 1000, within 2 u: 2^n · 2^(x − n), n the nearest integer. It is a fifth of exp2()'s code.
__device__ inline double power_of_two(double x) {
  constexpr double magic = math::detail::round_to_integer<double>;
  const double shifted = math::add(x, magic), r = math::subtract(x, math::subtract(shifted, magic));
  const double y = math::detail::polynomial(r, math::detail::format<double>::exp2);
  return __hiloint2double(__double2hiint(y) + (__double2loint(shifted) << 20), __double2loint(y));
}

/// Σ |a − b|^p in float for 1 < p ≤ 3.5 without special functions. |d| = c·m: c is the middle of |d|'s half octave and follows from
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

  /// What |d|^p is the product of: scale · Σ_i coefficient[i]·m^i.
  struct Parts {
    float scale, m;
    __device__ __forceinline__ Parts(float d, const Entry* entries) {
      // The entry's offset in bytes, computed by a shift and a mask alone.
      const Entry c = entry_at(entries, __float_as_uint(d) >> 19 & 511 << 3);
      scale = c.x;
      m = math::abs(d) * c.y;
    }
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
    return add(x, a, b, Join{});
  }

 protected:
  struct Join {
    __device__ __forceinline__ float operator()(int, float, float scale, float power, float sum, bool first) const {
      return first ? scale * power : math::fma(scale, power, sum);
    }
  };
  /// x plus the sum of all terms, one after the other: sum = join(i, a[i] − b[i], scale, power, sum, first), a term being scale·power.
  /// The polynomials of `together` terms take a degree at a time.
  template <int together = 1, int count, class Join>
  __device__ __forceinline__ float add(float x, const float (&a)[count], const float (&b)[count], const Join& join) const {
    static_assert(count % together == 0);
    float sum = 0;
#pragma unroll
    for (int first = 0; first < count; first += together) {
      float d[together], scale[together], m[together], power[together];
#pragma unroll
      for (int i = 0; i < together; ++i) {
        d[i] = math::subtract(a[first + i], b[first + i]);
        const Parts parts(d[i], table_.entry);
        scale[i] = parts.scale;
        m[i] = parts.m;
        power[i] = g_.coefficient[terms - 1];
      }
#pragma unroll
      for (int j = terms - 2; j >= 0; --j)
#pragma unroll
        for (int i = 0; i < together; ++i) power[i] = math::fma(power[i], m[i], g_.coefficient[j]);
#pragma unroll
      for (int i = 0; i < together; ++i) sum = join(first + i, d[i], scale[i], power[i], sum, first + i == 0);
    }
    return math::add(x, sum);
  }

  const Parameters& g_;
  const Table& table_;

 private:
  __device__ static Entry entry(int i, const Parameters& g) {
    const int exponent = i / 2;
    if (exponent == 0) return {0, 0};
    // Infinity and NaN are their own powers. m is then |d| itself, the polynomial is infinite with the sign of its last
    // term, and this factor has the same sign.
    if (exponent == 255) return {copysignf(std::numeric_limits<float>::infinity(), g.coefficient[terms - 1]), 1};
    const double log2_c = exponent - 127 + (i % 2 ? 0.80735492205760410744 : 0.32192809488736234787);  // log2 1.75, 1.25
    return {static_cast<float>(power_of_two(math::fma(double{g.p}, log2_c, -2.))),
            static_cast<float>(power_of_two(math::subtract(2., log2_c)))};
  }
};

/// The polynomial through (node, power) for five nodes: its coefficients are Σ_i of[j][i] · power(i).
struct PowerNodes {
  static constexpr int count = 5;
  static constexpr double node[count] = {4 * 0.80824, 4 * 0.87164, 4 * 0.98315, 4 * 1.1063, 4 * 1.18853};
  static constexpr double log2_quarter[count] = {-0.307144342260292, -0.19819569091002812, -0.02451654836544697,
                                                 0.1457426602776055, 0.2491783191869446};  // log2(node / 4)
  double of[count][count] = {};

  constexpr PowerNodes() {
    for (int i = 0; i < count; ++i) {
      double product[count] = {1};  // Π_(j ≠ i) (x − node(j)) / (node(i) − node(j))
      int degree = 0;
      for (int j = 0; j < count; ++j) {
        if (j == i) continue;
        const double divisor = node[i] - node[j];
        for (int c = ++degree; c >= 0; --c)
          product[c] = ((c > 0 ? product[c - 1] : 0) - (c < degree ? node[j] * product[c] : 0)) / divisor;
      }
      for (int c = 0; c < count; ++c) of[c][i] = product[c];
    }
  }
};

template <class S>
RIGEL_FUNCTION PowersByTable<S>::Parameters::Parameters(float exponent) : p(exponent), coefficient{} {
  static_assert(terms == PowerNodes::count);
  constexpr PowerNodes nodes;
  double power[terms];
#pragma unroll
  for (int i = 0; i < terms; ++i) {
    const double exponent_of_two = double{exponent} * PowerNodes::log2_quarter[i];
#if RIGEL_ON_DEVICE
    power[i] = 4 * power_of_two(exponent_of_two);
#else
    power[i] = 4 * std::exp2(exponent_of_two);
#endif
  }
#pragma unroll
  for (int j = 0; j < terms; ++j) {
    double sum = 0;
#pragma unroll
    for (int i = 0; i < terms; ++i) sum += nodes.of[j][i] * power[i];
    coefficient[j] = static_cast<float>(sum);
  }
  // A last coefficient of 0 would turn infinity into NaN.
  if (!(std::abs(coefficient[terms - 1]) > 1e-30f)) coefficient[terms - 1] = 1e-30f;
}

/// Σ |a − b|^p in double for 1 ≤ p ≤ 7 without special functions. With q = p − 1 and |d| = 2^e·m, m in [1, 2):
///
///   c = the middle of m's interval, of 32; r = m/c − 1, |r| ≤ h = 1/65
///   |d|^p = 2^(q·e) · c^q · (1 + r)^q · |d|
///
/// So 0, infinity and NaN need no care, and powers overflow or underflow only if the term does. Tables in shared memory hold
/// 2^(q·e), 1/c (rounded to 21 bits) and c^q. The polynomial of degree 6 is Taylor's of degree 7 with r⁷ replaced by what
/// the Chebyshev polynomial T₇ leaves of it; it is within 1.2·u. The relative error of a term is below (16 + p)·u; a
/// subnormal difference counts as at most the least normal number if p > 1.
///
/// A term takes eleven instructions in double, four reads of 32 or 64 bits, and six others. Tables by m are of 32-bit words, so
/// different entries are in different banks; exponents in a warp have bank conflicts only if they are 16 apart.
template <class S>
  requires(std::is_same_v<operand_t<S>, double>)
class PowersByTable<S> {
 public:
  static constexpr int terms = 6, chunk = 1;
  struct Parameters {
    double q, coefficient[terms];  // (1 + r)^q = 1 + Σ_i coefficient[i]·r^(i + 1)

    RIGEL_MEMBER explicit Parameters(double exponent);
  };
  struct Table {
    double of_exponent[2048];
    unsigned inverse[32], low[32], high[32];  // upper word of 1/c; words of c^q
  };

  /// Whether it covers this exponent.
  RIGEL_MEMBER static bool supports(double p) { return p >= 1 && p <= 7; }

  __device__ __forceinline__ PowersByTable(const S&, const Parameters& g, Table& table, int thread, int threads)
      : PowersByTable(g, table) {
    fill(table, g, thread, threads);
  }
  /// With a table that is filled by the first step.
  __device__ __forceinline__ PowersByTable(const Parameters& g, const Table& table) : g_(g), table_(table) {}

  __device__ __forceinline__ static void fill(Table& table, const Parameters& g, int thread, int threads) {
#pragma unroll 1
    for (int i = thread; i < 2048; i += threads) table.of_exponent[i] = of_exponent(i, g.q);
    if (thread < 32) {
      const unsigned inverse = __double2hiint(64. / (65 + 2 * thread));
      const double power = ::exp2(-g.q * ::log2(__hiloint2double(inverse, 0)));
      table.inverse[thread] = inverse;
      table.low[thread] = __double2loint(power);
      table.high[thread] = __double2hiint(power);
    }
  }

  __device__ __forceinline__ double operator()(double x, double a, double b, std::int64_t) const {
    const double d = math::subtract(a, b);
    const unsigned high = __double2hiint(d);
    // Offsets of entries in bytes, each computed by a shift and a mask alone.
    const unsigned by_exponent = high >> 17 & 2047 << 3, by_mantissa = high >> 13 & 31 << 2;
    const double m = __hiloint2double((high & 0xfffff) | 0x3ff00000, __double2loint(d));
    const double r = math::fma(m, __hiloint2double(entry_at(table_.inverse, by_mantissa), 0), -1.);
    double power = g_.coefficient[terms - 1];
#pragma unroll
    for (int i = terms - 2; i >= 0; --i) power = math::fma(power, r, g_.coefficient[i]);
    power = math::fma(power, r, 1.);
    power *= entry_at(table_.of_exponent, by_exponent) *
             __hiloint2double(entry_at(table_.high, by_mantissa), entry_at(table_.low, by_mantissa));
    return math::fma(power, math::abs(d), x);
  }

 private:
  // 2^(q·e) for the exponent field i. Subnormal numbers count as less than the least normal one.
  __device__ static double of_exponent(int i, double q) {
    if (i == 2047) return std::numeric_limits<double>::infinity();
    const double e = max(i, 1) - 1023, rounded = q * e, rest = math::fma(q, e, -rounded), power = ::exp2(rounded);
    constexpr double ln2 = 0.69314718055994530942;
    return power < std::numeric_limits<double>::infinity() ? math::fma(power, rest * ln2, power) : power;
  }

  const Parameters& g_;
  const Table& table_;
};

template <class S>
  requires(std::is_same_v<operand_t<S>, double>)
RIGEL_FUNCTION PowersByTable<S>::Parameters::Parameters(double exponent) : q(exponent - 1), coefficient{} {
  double binomial = 1;
#pragma unroll
  for (int i = 0; i < terms; ++i) coefficient[i] = binomial *= (q - i) / (i + 1);
  // With x = r/h and T₇ Chebyshev's polynomial, x⁷ = T₇(x)/64 + 7/4·x⁵ − 7/8·x³ + 7/64·x.
  constexpr double h = 0.015384674072265625, h2 = h * h;
  const double last = binomial * ((q - terms) / (terms + 1)) * h2;
  coefficient[4] += 1.75 * last;
  coefficient[2] -= 0.875 * last * h2;
  coefficient[0] += 0.109375 * last * h2 * h2;
}

/// The same with coefficients in registers. Consecutive instructions share one, so that it is read once: a multiply-add of three
/// registers, each read for itself, takes more than the register file delivers.
template <class S>
class PowersByDegree : public PowersByTable<S> {
 public:
  using PowersByTable<S>::PowersByTable;
  template <int count>
  __device__ __forceinline__ float operator()(float x, const float (&a)[count], const float (&b)[count]) const {
    return this->template add<count>(x, a, b, typename PowersByTable<S>::Join{});
  }
};

/// Σ |a − b|^p for an exponent in memory of the device: a block chooses, before its first step, the table if that covers the
/// exponent, else what takes any.
template <class S>
class PowersOfView {
 public:
  using Parameters = NoParameters;
  using ByTable = std::conditional_t<has_special_powers<S>, PowersByDegree<S>, PowersByTable<S>>;
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
      use(AnyPowers<S>(s_, {}, none, 0, 0));
    }
  }

 private:
  const S& s_;
  typename ByTable::Parameters of_table_;
  const Table& table_;
};

}  // namespace rigel::backends::simt
