// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementary functions that semirings need inside the loop. Numbers take the platform's own functions; vectors take the
// polynomials below, whose coefficients are minimax ones, from Remez's exchange in 60 digits.
#pragma once

#include <rigel/numeric.hpp>

namespace rigel::math {

namespace detail {

/// The unsigned integers that hold the bits of T.
template <class T>
struct bits_of {
  using lane = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  using type = lane;
};
template <Lanes T>
struct bits_of<T> {
  using lane = std::conditional_t<sizeof(lane_t<T>) == 4, std::uint32_t, std::uint64_t>;
  using type = lane __attribute__((ext_vector_type(sizeof(T) / sizeof(lane))));
};
template <class T>
using bits_t = typename bits_of<T>::type;

template <class T>
RIGEL_FUNCTION constexpr bits_t<T> to_bits(T x) { return __builtin_bit_cast(bits_t<T>, x); }
template <class T>
RIGEL_FUNCTION constexpr T from_bits(bits_t<T> x) { return __builtin_bit_cast(T, x); }

/// x · y + z where it does not matter whether the product is rounded: never a call of the library's fma.
template <class T>
RIGEL_FUNCTION T multiply_add(T x, T y, T z) {
#if RIGEL_ON_DEVICE || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return math::fma(x, y, z);
#else
  return x * y + z;
#endif
}

/// x · p − n, rounded about once; |x| is an integer below 2^12, or below 2^9 for float.
template <class T>
RIGEL_FUNCTION T product_minus(T x, lane_t<T> p, T n) {
#if RIGEL_ON_DEVICE || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return math::fma(x, T{} + p, -n);
#else
  using L = lane_t<T>;
  // The product with the upper part of p is exact.
  const L high = from_bits<L>(to_bits(p) & ~bits_t<L>((1 << (sizeof(L) == 4 ? 9 : 12)) - 1));
  return (x * high - n) + x * (p - high);
#endif
}

/// c[0] + c[1]·x + …
template <class T, std::size_t N>
RIGEL_FUNCTION T polynomial(T x, const lane_t<T> (&c)[N]) {
  T y = T{} + c[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) y = multiply_add(y, x, T{} + c[i]);
  return y;
}

/// The layout of an IEEE number and the coefficients for it.
template <class T>
struct format;

template <>
struct format<float> {
  static constexpr int mantissa_bits = 23, bias = 127;
  // (2/ln 2)·atanh(s)/s in s², |s| ≤ (√2 − 1)/(√2 + 1): |error·s| ≤ 1.8e-10.
  static constexpr float log2[] = {2.88539004f, 0.961800754f, 0.576584518f, 0.434256166f};
  // 1/(m + √2), 1 ≤ m ≤ 2: relative error 1.5e-2.
  static constexpr float inverse[] = {0.527533829f, -0.119507998f};
  static constexpr float sqrt2 = 0x1.6a09e6p+0f, log2_sqrt2 = 0.49999997531f;  // of sqrt2 as it is rounded
  // 2^r, |r| ≤ 1/2: relative error 2.6e-9.
  static constexpr float exp2[] = {1, 0.693147182f, 0.240226507f, 0.0555032715f, 0.00961805694f, 0.0013400428f,
                                   0.000154614449f};
  // e^r, |r| ≤ ln(2)/2: relative error 3.1e-9.
  static constexpr float exp[] = {1, 1, 0.49999994f, 0.166665211f, 0.041668389f, 0.00836871658f, 0.00138145988f};
  static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
  static constexpr float exp_lowest = -104, exp_highest = 89;  // below, above: 0, infinity
};

template <>
struct format<double> {
  static constexpr int mantissa_bits = 52, bias = 1023;
  // As above: |error·s| ≤ 4.4e-17.
  static constexpr double log2[] = {2.8853900817779308,  0.96179669392121681, 0.57707801809462411, 0.4121983031546419,
                                    0.32062199145048903, 0.26129187727372855, 0.24450957241783791};
  // As above: relative error 1.2e-4.
  static constexpr double inverse[] = {0.66157724137423346, -0.33902896167226698, 0.10590281556114174,
                                       -0.014283755744317275};
  static constexpr double sqrt2 = 0x1.6a09e667f3bcdp+0, log2_sqrt2 = 0.5 + 9.8619872508746977e-17;
  // As above: relative error 2.2e-16.
  static constexpr double exp2[] = {1,
                                    0.69314718055994973,
                                    0.24022650695908768,
                                    0.055504108664458832,
                                    0.0096181291080346017,
                                    0.0013333558228561979,
                                    0.00015403529961121926,
                                    1.5252658116279701e-05,
                                    1.3215662838367787e-06,
                                    1.0208537955145904e-07,
                                    7.0372784613055893e-09};
  // As above: relative error 8.5e-18.
  static constexpr double exp[] = {1,
                                   1,
                                   0.50000000000000056,
                                   0.16666666666666671,
                                   0.041666666666573066,
                                   0.0083333333333261358,
                                   0.001388888893251478,
                                   0.00019841269874820627,
                                   2.4801504313785541e-05,
                                   2.7557255400206422e-06,
                                   2.7626371065696354e-07,
                                   2.5105217004720745e-08};
  static constexpr double ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b3ap-40;
  static constexpr double exp_lowest = -746, exp_highest = 710;
};

/// Adding it rounds a small number to an integer, which the low bits then hold.
template <class T>
inline constexpr T round_to_integer = T(3) * T(std::uint64_t(1) << (format<T>::mantissa_bits - 1));

/// floor(log2 |x|) of normal numbers.
template <class T>
RIGEL_FUNCTION T exponent(T x) {
  using L = lane_t<T>;
  using F = format<L>;
#if defined(__AVX512F__)
  if constexpr (sizeof(T) > 64) {
    T e;
    e.lo = exponent(decltype(x.lo + x.lo)(x.lo));
    e.hi = exponent(decltype(x.hi + x.hi)(x.hi));
    return e;
  } else if constexpr (sizeof(T) == 64 && sizeof(L) == 8) {
    return __builtin_bit_cast(T, __builtin_ia32_getexppd512_mask(x, x, -1, 4));
  } else if constexpr (sizeof(T) == 64) {
    return __builtin_bit_cast(T, __builtin_ia32_getexpps512_mask(x, x, -1, 4));
  }
#endif
  // The exponent's field, as the low bits of a number whose mantissa holds integers.
  constexpr L base = L(bits_t<L>(1) << F::mantissa_bits);
  return from_bits<T>((to_bits(math::abs(x)) >> F::mantissa_bits) | to_bits(base)) - (base + F::bias);
}

template <class T>
RIGEL_FUNCTION bool any(T condition) {
  if constexpr (std::is_same_v<T, bool>) return condition;
  else return __builtin_reduce_or(condition) != 0;
}

/// Powers x^p for one p: the operands for which x^p and everything on the way to it is a normal number. Zero is served
/// too; p itself is at most 8, so that the error stays what power() says.
template <class T>
struct PowerRange {
  bits_t<T> low, high;  // bits of the smallest and of the largest x

  RIGEL_MEMBER explicit PowerRange(T p) {
    constexpr int bias = format<T>::bias, mantissa_bits = format<T>::mantissa_bits;
    const bool served = p > T(0) && p <= T(8);
    const T q = served ? T(1) / p : T(1);
    const T lowest = (bias - 3) * q, highest = (bias - 1) * q;
    const int down = lowest < T(bias - 1) ? static_cast<int>(lowest) : bias - 1;
    const int up = highest < T(bias) ? static_cast<int>(highest) : bias;
    low = static_cast<bits_t<T>>(bias - down) << mantissa_bits;
    high = static_cast<bits_t<T>>(bias + up) << mantissa_bits;
    if (!served) low = high = ~bits_t<T>(0);  // which no |x| has
  }
};

/// x^p where x is in the range of p, or zero.
///
/// x = 2^e·m, m in [1, 2); log2 m = log2 √2 + (2/ln 2)·atanh((m − √2)/(m + √2)); y = p·(e + log2 m) is split into its
/// nearest integer n and a remainder, whose part p·e − n is rounded once; x^p = 2^n · 2^(y − n). The quotient comes from
/// a polynomial for 1/(m + √2) of relative error ε and the factors (1 + ε)(1 + ε²), since a processor's divider is slow.
/// Chains are long: on vectors of eight registers a processor with 512-bit ones runs twice as fast as on one.
template <class T>
RIGEL_FUNCTION T power_in_range(T x, lane_t<T> p) {
  using L = lane_t<T>;
  using F = format<L>;
  using B = bits_t<L>;
  constexpr int mantissa_bits = F::mantissa_bits;
  constexpr B mantissa = (B(1) << mantissa_bits) - 1, one = to_bits(L(1));
  const T m = from_bits<T>((to_bits(x) & mantissa) | one);
  const T e = exponent(x);
  const T inverse = polynomial(m, F::inverse), error = multiply_add(-inverse, m + F::sqrt2, T{} + 1);
  T s = (m - F::sqrt2) * inverse;
  s = multiply_add(s, error, s);
  s = multiply_add(s, error * error, s);
  constexpr int terms = sizeof(F::log2) / sizeof(L);
  L c[terms];  // p enters here, outside of the caller's loop
  for (int i = 0; i < terms; ++i) c[i] = p * F::log2[i];
  const T log = multiply_add(polynomial(s * s, c), s, T{} + p * F::log2_sqrt2);  // p·log2 m
  const T rounded = multiply_add(e, T{} + p, log) + round_to_integer<L>;
  const T r = product_minus(e, p, rounded - round_to_integer<L>) + log;
  const auto y = to_bits(polynomial(r, F::exp2)) + (to_bits(rounded) << mantissa_bits);
  return from_bits<T>(select(x != T{}, y, bits_t<T>{}));
}

}  // namespace detail

/// e^x; within 2 units in the last place.
template <Number T>
RIGEL_FUNCTION T exponential(T x) {
  if constexpr (Lanes<T>) {
    using L = lane_t<T>;
    using F = detail::format<L>;
    const T t = select(x < T{} + F::exp_lowest, T{} + F::exp_lowest, select(x > T{} + F::exp_highest, T{} + F::exp_highest, x));
    const T rounded = detail::multiply_add(t, T{} + L(1.4426950408889634), T{} + detail::round_to_integer<L>);
    const T n = rounded - detail::round_to_integer<L>;
    const T r = detail::multiply_add(n, T{} - F::ln2_low, detail::multiply_add(n, T{} - F::ln2_high, t));
    const T y = detail::polynomial(r, F::exp);
    // 2^n in two factors, so that results near the ends of the range, subnormal ones too, are rounded once.
    using B = detail::bits_t<L>;
    const auto half_bits = (detail::to_bits(rounded) + (B(F::bias) * 2 - detail::to_bits(detail::round_to_integer<L>))) >> 1;
    const auto rest_bits = detail::to_bits(rounded) + (B(F::bias) * 2 - detail::to_bits(detail::round_to_integer<L>)) - half_bits;
    return y * detail::from_bits<T>(half_bits << F::mantissa_bits) * detail::from_bits<T>(rest_bits << F::mantissa_bits);
  } else {
#if RIGEL_ON_DEVICE
    return ::exp(x);
#else
    return std::exp(x);
#endif
  }
}

/// Natural logarithm of x; lane by lane on vectors (no loop needs it).
template <Number T>
RIGEL_FUNCTION T logarithm(T x) {
  if constexpr (Lanes<T>) {
    return __builtin_elementwise_log(x);
  } else {
#if RIGEL_ON_DEVICE
    return ::log(x);
#else
    return std::log(x);
#endif
  }
}

/// x^p for x ≥ 0 and p > 0; NaN for NaN. On vectors the relative error is at most (4 + 2p)·u, u the unit roundoff,
/// for p ≤ 8; operands beyond the range of powers that are normal numbers, and larger p, are left to the platform's
/// pow.
template <Number T>
RIGEL_FUNCTION T power(T x, lane_t<T> p) {
  if constexpr (Lanes<T>) {
    using L = lane_t<T>;
    const detail::PowerRange<L> range(p);
    const auto beyond = (detail::to_bits(x) - range.low > detail::bits_t<T>{} + (range.high - range.low)) & (x != T{});
    T y = detail::power_in_range(x, p);
    if (detail::any(beyond)) [[unlikely]] {
      // Lane by lane, so that a lane's bits do not depend on its neighbours.
      constexpr int count = sizeof(T) / sizeof(L);
      L from[count], to[count];
      detail::bits_t<L> left[count];
      __builtin_memcpy(from, &x, sizeof(T));
      __builtin_memcpy(to, &y, sizeof(T));
      __builtin_memcpy(left, &beyond, sizeof(T));
#pragma nounroll
      for (int i = 0; i < count; ++i)
        if (left[i] != 0) to[i] = std::pow(from[i], p);
      __builtin_memcpy(&y, to, sizeof(T));
    }
    return y;
  } else {
#if RIGEL_ON_DEVICE
    return ::pow(x, p);
#else
    return std::pow(x, p);
#endif
  }
}

}  // namespace rigel::math
