// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of metrics of rigel/dissimilarities.hpp in float, made for a GPU. Elements that are 0 or in [2^-77, 2^125] are regular: the
// reciprocal of the special-function unit then takes any sum of two, and a slab of them needs no further tests. A block tests each
// element of a slab once, as OrderedSteps do; slabs with others take the longer of two formulas.
#pragma once

#include <rigel/backends/cuda/simt/powers.hpp>

#include <cstdint>
#include <limits>

namespace rigel::backends::simt {

/// Whether the bits of a number are neither 0 nor from `least` to `most`.
template <std::uint32_t least, std::uint32_t most>
__device__ __forceinline__ bool are_outside(std::uint32_t bits) {
  return bits - least > most - least && bits != 0;
}

/// Whether an element is not regular.
__device__ __forceinline__ bool is_irregular(float x) {
  return are_outside<0x19000000, 0x7e000000>(__float_as_uint(x) & 0x7fffffffu);  // the bits of 2^-77 and 2^125
}

/// A power of two that brings the larger of |a| and |b| between 2^-86 and 2^64, if that is not 0.
__device__ __forceinline__ float scale_of(float a, float b) {
  constexpr std::uint32_t sum = 0x5f400000, exponent = 0x7f800000;  // 3/2 of the bits of 1
  return __uint_as_float((sum - (__float_as_uint(fmaxf(math::abs(a), math::abs(b))) >> 1)) & exponent);
}

/// What a sum of two elements, of which this is one, is computed from: so that it is not 0. It changes no sum of regular numbers but
/// 0 + 0. The compiler computes it once for each column.
__device__ __forceinline__ float not_zero(float b) { return math::add(b, std::numeric_limits<float>::min()); }

/// Steps whose slabs are tested for elements that are not regular.
template <class S>
class RegularSteps : public PlainSteps {
 public:
  __device__ __forceinline__ static bool is_special(float value) { return is_irregular(value); }
  __device__ __forceinline__ static float begin(float x) { return x; }
  __device__ __forceinline__ static float end(float x) { return x; }
};

/// Σ |a − b| / (|a| + |b|). A quotient is corrected by its remainder: it is off by (1 + 2^-20)·u, a term by 3u. Seven instructions.
template <class S>
class CanberraSteps : public RegularSteps<S> {
 public:
  __device__ __forceinline__ CanberraSteps(const S&, const NoParameters&, NoTable&, int, int) {}

  __device__ __forceinline__ float operator()(float x, float a, float b, std::int64_t) const {
    const float d = math::subtract(a, b), sum = math::add(math::abs(a), not_zero(math::abs(b))),
                inverse = math::reciprocal(sum), q = math::multiply(d, inverse);
    return math::add(x, math::abs(math::fma(math::fma(-q, sum, d), inverse, q)));
  }
  __device__ __forceinline__ float exactly(float x, float a, float b, std::int64_t k) const {
    const float scale = scale_of(a, b);
    return (*this)(x, a * scale, b * scale, k);
  }
};

/// Σ a·ln(a/m) + b·ln(b/m), m = (a + b)/2. With s = a + b, t = (a − b)/s and y = min(a, b)/s, a term is s·h:
///
///   h = t²·(c₀ + c₁·t² + … + c₄·t⁸)                                 if t² < 0.36
///   h = ln 2 + (1 − y)·ln(1 − y) + y·ln y, (1 − y)·ln(1 − y) by a polynomial of degree 4, else
///
/// The first polynomial is within 9u of h, the second within 5u. A term is off by less than 30u, of which the quotient's
/// rounding causes up to 13u, and the logarithm, within 2^-22 of itself, less than 7u. 21 instructions, two of them of the
/// special-function unit.
template <class S>
class DivergenceSteps : public RegularSteps<S> {
 public:
  __device__ __forceinline__ DivergenceSteps(const S&, const NoParameters&, NoTable&, int, int) {}

  __device__ __forceinline__ static bool is_special(float value) { return !(value >= 0) || is_irregular(value); }

  __device__ __forceinline__ float operator()(float x, float a, float b, std::int64_t) const {
    const float sum = math::add(a, not_zero(b));
    return math::fma(sum, share(a, b, sum), x);
  }
  __device__ __forceinline__ float exactly(float x, float a, float b, std::int64_t) const {
    const float scale = scale_of(a, b), scaled_a = a * scale, scaled_b = b * scale;
    const float h = share(scaled_a, scaled_b, math::add(scaled_a, not_zero(scaled_b)));
    const bool infinite = a < 0 || b < 0 || math::abs(math::subtract(a, b)) == infinity<float>();
    return infinite ? math::add(x, infinity<float>()) : math::fma(math::add(a, b), h, x);
  }

 private:
  // h
  __device__ __forceinline__ static float share(float a, float b, float sum) {
    const float inverse = math::reciprocal(sum), t = math::multiply(math::subtract(a, b), inverse), w = t * t;
    float near = 0.022427575165052446f;
    near = math::fma(near, w, 0.013746404418127496f);
    near = math::fma(near, w, 0.03389656674769374f);
    near = math::fma(near, w, 0.08330724865075533f);
    near = math::fma(near, w, 0.500000188830263f) * w;
    const float y = math::fma(fminf(a, b), inverse, 0x1p-100f);  // the logarithm of 0 would be infinite
    float log;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log) : "f"(y));
    float far = 0.1150221720903613f;
    far = math::fma(far, y, 0.16071068504533753f);
    far = math::fma(far, y, 0.5004392409480564f);
    far = math::fma(far, y, -1.0000111408959365f);
    far = math::fma(math::fma(log, 0.693147180559945309f, far), y, 0.6931472252457603f);
    return w < 0.36f ? near : far;
  }
};

/// Σ a·ln(a/b), by an e for which a/b = 2^e·(1 + f) and -1/3 ≤ f < 1/3, but for roundings at the limits:
///
///   f = (2^-e·a - b)/b,   ln(a/b) = e·ln 2 + f + f²·(c₀ + c₁·f + … + c₇·f⁷)
///
/// The difference is exact, f within 2u, the polynomial within 0.6u of ln(1 + f), and the logarithm within 5u; of equal numbers it
/// is 0. Regular are 0 and numbers in [2^-62, 2^62]. 20 instructions, and the reciprocal of b, which a thread's rows share.
template <class S>
class EntropySteps : public RegularSteps<S> {
 public:
  __device__ __forceinline__ EntropySteps(const S&, const NoParameters&, NoTable&, int, int) {}

  /// Negative numbers and -0 too.
  __device__ __forceinline__ static bool is_special(float value) {
    return are_outside<0x20800000, 0x5e800000>(__float_as_uint(value));  // the bits of 2^-62 and 2^62
  }

  __device__ __forceinline__ float operator()(float x, float a, float b, std::int64_t) const {
    const float limit = a == 0 ? 0 : infinity<float>();
    float log = logarithm(quotient(one_for_zero(a), b));
    asm("" : "+f"(log));  // computed for b = 0 too: no branch
    return math::fma(a, b == 0 ? limit : log, x);
  }
  __device__ __forceinline__ float exactly(float x, float a, float b, std::int64_t) const {
    float power_of_a, power_of_b;
    const float size_a = scaled(one_for_zero(a), power_of_a), size_b = scaled(b, power_of_b);
    const float ratio = size_a * math::reciprocal(size_b);
    float log = ratio == 0 ? -infinity<float>() : ratio;
    if (ratio > 0 && ratio < infinity<float>()) {
      Quotient q = quotient(size_a, size_b);
      q.exponent = math::add(q.exponent, (power_of_a - power_of_b) * 0x1p23f);
      log = logarithm(q);
    }
    const bool signs_differ = (__float_as_uint(a) ^ __float_as_uint(b)) >> 31 != 0;
    if (signs_differ && ratio != 0) log = std::numeric_limits<float>::quiet_NaN();  // ln(-0) is infinite
    if (a == 0) log = b == b ? 0 : b;
    return math::fma(a, log, x);
  }

 private:
  /// Of a row: what its term's logarithm is computed from, so that it is finite for a = 0.
  __device__ __forceinline__ static float one_for_zero(float a) { return a == 0 ? 1 : a; }
  /// |x| without a power of two, so that it is regular if it is neither 0 nor infinite.
  __device__ __forceinline__ static float scaled(float x, float& power) {
    const float size = math::abs(x);
    power = size < 0x1p-62f ? -100 : size > 0x1p62f ? 100 : 0;
    return math::multiply(size, power < 0 ? 0x1p100f : power > 0 ? 0x1p-100f : 1.f);
  }
  /// 2^e·(1 + f); `exponent` is e·2^23.
  struct Quotient {
    float exponent, f;
  };
  /// a/b, b > 0.
  __device__ __forceinline__ static Quotient quotient(float a, float b) {
    const float estimate = math::reciprocal(b), inverse = math::fma(math::fma(-b, estimate, 1.f), estimate, estimate);
    // e's place in the bits of a float; it is 0 from a quotient of 2/3 on.
    const std::uint32_t exponent = (__float_as_uint(math::multiply(a, inverse)) - 0x3f2aaaabu) & 0xff800000u;
    const float difference = math::subtract(__uint_as_float(__float_as_uint(a) - exponent), b);
    return {__int2float_rn(static_cast<int>(exponent)), math::multiply(difference, inverse)};
  }
  __device__ __forceinline__ static float logarithm(Quotient q) {
    constexpr float c[] = {-0.49999937415122986f, 0.33333197236061096f, -0.2500782012939453f,  0.20011168718338013f,
                           -0.1641596108675003f,  0.13995808362960815f, -0.15388540923595428f, 0.14026351273059845f};
    const float of_rest = math::fma(q.f * q.f, math::detail::polynomial(q.f, c), q.f);
    return math::fma(q.exponent, 0x1.62e43p-1f * 0x1p-23f, of_rest);
  }
};

/// Whether the table of PowersByTable gives powers within (8 + 2p)·u. As products, squares are within u.
inline bool has_near_powers(float p) { return p > 1 && p <= 3.25f && p != 2; }

/// Σ weights_k·|a − b|^p by the table of PowersByTable.
template <class S>
class WeightedPowersByTable : public PowersByTable<S> {
  using Base = PowersByTable<S>;

 public:
  using typename Base::Parameters, typename Base::Table;

  __device__ __forceinline__ WeightedPowersByTable(const S& s, const Parameters& g, Table& table, int thread, int threads)
      : Base(s, g, table, thread, threads), weights_(s.weights) {}

  template <int count>
  __device__ __forceinline__ float operator()(float x, const float (&a)[count], const float (&b)[count],
                                              std::int64_t k) const {
    float weights[count];
#pragma unroll
    for (int i = 0; i < count; ++i) weights[i] = weights_[k + i];
    return Base::add(x, a, b,
                     [&](int i, float, float scale, float power, float sum, bool first) __attribute__((always_inline)) {
                       const float factor = scale * weights[i];
                       return first ? factor * power : math::fma(factor, power, sum);
                     });
  }

 private:
  decltype(S::weights) weights_;
};

/// Σ |a − b|^p without differences below epsilon, by the table of PowersByTable.
template <class S>
class PowersFromEpsilonByTable : public PowersByTable<S> {
  using Base = PowersByTable<S>;

 public:
  using typename Base::Parameters, typename Base::Table;

  __device__ __forceinline__ PowersFromEpsilonByTable(const S& s, const Parameters& g, Table& table, int thread, int threads)
      : Base(s, g, table, thread, threads), epsilon_(s.epsilon) {}

  template <int count>
  __device__ __forceinline__ float operator()(float x, const float (&a)[count], const float (&b)[count],
                                              std::int64_t) const {
    return Base::add(x, a, b,
                     [&](int, float d, float scale, float power, float sum, bool first) __attribute__((always_inline)) {
                       if (math::abs(d) < epsilon_) return sum;
                       return first ? scale * power : math::fma(scale, power, sum);
                     });
  }

 private:
  float epsilon_;
};

/// Has ByTable, the steps of S by a table if has_near_powers(p). Other exponents take S's own definition.
template <class S>
struct PowersOfMetric {};
template <>
struct PowersOfMetric<weighted_lp<float>> {
  using ByTable = WeightedPowersByTable<weighted_lp<float>>;
};
template <>
struct PowersOfMetric<lp_with_epsilon<float>> {
  using ByTable = PowersFromEpsilonByTable<lp_with_epsilon<float>>;
};
template <class S>
concept SumsPowersOfMetric = requires { typename PowersOfMetric<S>::ByTable; };

template <> struct steps_for<canberra<float>> {
  using type = CanberraSteps<canberra<float>>;
};
template <> struct steps_for<divergence_from_mean<float>> {
  using type = DivergenceSteps<divergence_from_mean<float>>;
};
template <> struct steps_for<relative_entropy<float>> {
  using type = EntropySteps<relative_entropy<float>>;
};

}  // namespace rigel::backends::simt
