// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementary functions that semirings need inside the loop. Scalars use the platform's functions. Vectors, and sines, cosines and
// arcsines on a device, use the minimax polynomials below; their coefficients come from the Remez exchange algorithm in 60 digits.
#pragma once

#include <rigel/numeric.hpp>

#include <concepts>

namespace rigel::math {

namespace detail {

/// The unsigned integer, or vector of them, that holds the bits of T.
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
RIGEL_FUNCTION constexpr bits_t<T> to_bits(T x) {
  return __builtin_bit_cast(bits_t<T>, x);
}
template <class T>
RIGEL_FUNCTION constexpr T from_bits(bits_t<T> x) {
  return __builtin_bit_cast(T, x);
}

/// x · y + z, with or without rounding the product. It never calls the library's slow fma.
template <class T>
RIGEL_FUNCTION T multiply_add(T x, T y, T z) {
#if RIGEL_ON_DEVICE || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return math::fma(x, y, z);
#else
  return x * y + z;
#endif
}

/// x · p − n with about one rounding. x is an integer, |x| below 2^12, for float below 2^9.
template <class T>
RIGEL_FUNCTION T product_minus(T x, lane_t<T> p, T n) {
#if RIGEL_ON_DEVICE || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return math::fma(x, T{} + p, -n);
#else
  using L = lane_t<T>;
  // The product with the upper bits of p is exact.
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

/// The layout of an IEEE 754 type, and the coefficients for it.
template <class T>
struct format;

template <>
struct format<float> {
  static constexpr int mantissa_bits = 23, bias = 127;
  // (2/ln 2)·atanh(s)/s as a polynomial in s², |s| ≤ (√2 − 1)/(√2 + 1): |error·s| ≤ 1.8e-10.
  static constexpr float log2[] = {2.88539004f, 0.961800754f, 0.576584518f, 0.434256166f};
  // 1/(m + 1), √½ ≤ m ≤ √2: relative error 1.5e-2.
  static constexpr float inverse[] = {0.746045496f, -0.239015996f};
  static constexpr float sqrt_half = 0x1.6a09e6p-1f, exponent_limit = 0x1p32f;
  // (2·atanh(s)/s − 2)/s² as a polynomial in s², for the same s: |error·s³| ≤ 8.3e-10 of the logarithm.
  static constexpr float log[] = {0.666667759f, 0.399775684f, 0.298710734f};
  // (sin(r)/r − 1)/r² as a polynomial in r², |r| ≤ π/2: |error·r³| ≤ 8.6e-9 of the sine.
  static constexpr float sin[] = {-0.166666597f, 0.00833306648f, -0.000198095891f, 2.60575007e-06f};
  // π in three parts; products of the first two with a half-integer below 2^7 are exact.
  static constexpr float pi_high = 0x1.921ep1f, pi_middle = 0x1.b544p-15f, pi_low = 0x1.0b4612p-33f, sin_limit = 0x1p8f;
  // π − pi_high in two parts, within 2^-62; products of the first with an integer up to 4 are exact.
  static constexpr float pi_next = 0x1.b5444p-15f, pi_rest = 0x1.68c234p-38f;
  // (asin(z)/z − 1)/z² as a polynomial in z² ≤ 1/2: |error·z³| ≤ 6e-9 of the arcsine.
  static constexpr float asin[] = {0.166666225f,   0.0750268251f, 0.0440817848f, 0.0359911695f,
                                   -0.0080575645f, 0.110329576f,  -0.139967665f, 0.126114517f};
  // 2^r, |r| ≤ 1/2: relative error 2.6e-9.
  static constexpr float exp2[] = {
      1, 0.693147182f, 0.240226507f, 0.0555032715f, 0.00961805694f, 0.0013400428f, 0.000154614449f};
  // e^r, |r| ≤ ln(2)/2: relative error 3.1e-9.
  static constexpr float exp[] = {1, 1, 0.49999994f, 0.166665211f, 0.041668389f, 0.00836871658f, 0.00138145988f};
  static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
  static constexpr float exp_lowest = -104, exp_highest = 89;  // e^x is 0 below, infinity above
};

template <>
struct format<double> {
  static constexpr int mantissa_bits = 52, bias = 1023;
  // As above: |error·s| ≤ 4.4e-17.
  static constexpr double log2[] = {2.8853900817779308,  0.96179669392121681, 0.57707801809462411, 0.4121983031546419,
                                    0.32062199145048903, 0.26129187727372855, 0.24450957241783791};
  // As above: relative error 1.2e-4.
  static constexpr double inverse[] = {0.9356115073088197, -0.67805792334453396, 0.29953839612012623, -0.0571350229772691};
  static constexpr double sqrt_half = 0x1.6a09e667f3bcdp-1, exponent_limit = 0x1p63;
  // As above: |error·s³| ≤ 1.5e-18 of the logarithm.
  static constexpr double log[] = {0.6666666666666734,  0.39999999999416019, 0.28571428742100718, 0.22222198601351112,
                                   0.18183562929556638, 0.15314084575073489, 0.14795626011394039};
  // As above: |error·r³| ≤ 3.7e-18 of the sine.
  static constexpr double sin[] = {-0.16666666666666666,    0.0083333333333331944,   -0.00019841269841209142,
                                   2.7557319211123676e-06,  -2.5052106871526509e-08, 1.6058939640396399e-10,
                                   -7.6429897515451839e-13, 2.7211563325148922e-15};
  // As above, with a half-integer below 2^19.
  static constexpr double pi_high = 0x1.921fb544p1, pi_middle = 0x1.0b4611a6p-33, pi_low = 0x1.3198a2e037073p-68,
                          sin_limit = 0x1p20;
  // As above, within 2^-140.
  static constexpr double pi_next = 0x1.0b4611a62633p-33, pi_rest = 0x1.45c06e0e68948p-85;
  // As above: |error·z³| ≤ 2.9e-18 of the arcsine.
  static constexpr double asin[] = {0.16666666666666918,  0.074999999999205993, 0.044642857231161966, 0.030381939435386959,
                                    0.022372329830945514, 0.017348927626104703, 0.014025110762932098, 0.010863709423732109,
                                    0.015626001434842052, -0.02958603426719526, 0.19619889824119907,  -0.71853181658279996,
                                    2.1501751914361646,   -4.8435089150031256,  8.242982586327253,    -10.198259673612881,
                                    8.7260407939293572,   -4.624371498762275,   1.1659106679370441};
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

/// Adding this constant to a small number rounds it to an integer, which is then in the low bits of the mantissa.
template <class T>
inline constexpr T round_to_integer = T(3) * T(std::uint64_t(1) << (format<T>::mantissa_bits - 1));

/// A positive finite number as m · 2^e: m in [√½, √2), e an integer.
template <class T>
struct Split {
  T m, e;
};
template <class T>
RIGEL_FUNCTION Split<T> split(T x) {
  using L = lane_t<T>;
  using F = format<L>;
  using B = bits_t<L>;
#if defined(__AVX512F__)
  if constexpr (sizeof(T) > 64) {
    using Half = decltype(x.lo + x.lo);
    const auto low = split(Half(x.lo)), high = split(Half(x.hi));
    Split<T> both;
    both.m.lo = low.m, both.m.hi = high.m;
    both.e.lo = low.e, both.e.hi = high.e;
    return both;
  } else if constexpr (sizeof(T) == 64) {
    Split<T> y;  // with m in [1, 2)
    if constexpr (sizeof(L) == 8)
      y = {__builtin_bit_cast(T, __builtin_ia32_getmantpd512_mask(x, 0, x, -1, 4)),
           __builtin_bit_cast(T, __builtin_ia32_getexppd512_mask(x, x, -1, 4))};
    else
      y = {__builtin_bit_cast(T, __builtin_ia32_getmantps512_mask(x, 0, x, -1, 4)),
           __builtin_bit_cast(T, __builtin_ia32_getexpps512_mask(x, x, -1, 4))};
    const auto upper = y.m >= 2 * F::sqrt_half;
    return {select(upper, y.m * L(0.5), y.m), select(upper, y.e + L(1), y.e)};
  }
#endif
  constexpr B mantissa = (B(1) << F::mantissa_bits) - 1, least = to_bits(F::sqrt_half);
  constexpr L integer =
      L(B(1) << F::mantissa_bits);  // to_bits(integer) | x are the bits of integer + x, for small integers x
  const auto subnormal = x < std::numeric_limits<L>::min();
  const auto y = to_bits(select(subnormal, x * integer, x)) + (to_bits(L(1)) - least);
  const T bias = select(subnormal, T{} + (integer + F::bias + F::mantissa_bits), T{} + (integer + F::bias));
  return {from_bits<T>((y & mantissa) + least), from_bits<T>((y >> F::mantissa_bits) | to_bits(integer)) - bias};
}

/// y · 2^n, rounded once; y is about 1, n an integer of any size.
template <class T>
RIGEL_FUNCTION T scaled(T y, T n) {
  using L = lane_t<T>;
  using F = format<L>;
#if defined(__AVX512F__)
  if constexpr (sizeof(T) > 64) {
    using Half = decltype(y.lo + y.lo);
    T z;
    z.lo = scaled(Half(y.lo), Half(n.lo));
    z.hi = scaled(Half(y.hi), Half(n.hi));
    return z;
  } else if constexpr (sizeof(T) == 64 && sizeof(L) == 8) {
    return __builtin_bit_cast(T, __builtin_ia32_scalefpd512_mask(y, n, y, -1, 4));
  } else if constexpr (sizeof(T) == 64) {
    return __builtin_bit_cast(T, __builtin_ia32_scalefps512_mask(y, n, y, -1, 4));
  }
#endif
  // Two factors of about 2^(n/2). Beyond their range the result is 0 or infinity.
  constexpr L most = 2 * F::bias;
  const T limited = select(n < -most, T{} - most, select(n > most, T{} + most, n));
  const auto biased_twice = to_bits(limited + (round_to_integer<L> + most)) - to_bits(round_to_integer<L>);
  const auto half = biased_twice >> 1;
  return y * from_bits<T>(half << F::mantissa_bits) * from_bits<T>((biased_twice - half) << F::mantissa_bits);
}

/// (m − 1)/(m + 1) for m in [√½, √2). It needs no division, which is slow: a polynomial gives 1/(m + 1) with a relative error ε, and the
/// factors (1 + ε)(1 + ε²) correct it.
template <class T>
RIGEL_FUNCTION T ratio_of(T m) {
  using L = lane_t<T>;
  const T inverse = polynomial(m, format<L>::inverse), error = multiply_add(-inverse, m + L(1), T{} + 1);
  T s = (m - L(1)) * inverse;
  s = multiply_add(s, error, s);
  return multiply_add(s, error * error, s);
}

/// x^p, x ≥ 0, for any p.
///
///   x = 2^e·m with m in [√½, √2)
///   log2 m = (2/ln 2)·atanh((m − 1)/(m + 1)), which is 0 at m = 1
///   y = p·(e + log2 m) = n + r, n the nearest integer; p·e − n is rounded once
///   x^p = 2^n · 2^r
///
/// Dependency chains are long, so vectors of eight 512-bit registers run twice as fast as vectors of one.
template <class T>
RIGEL_FUNCTION T positive_power(T x, lane_t<T> exponent) {
  using L = lane_t<T>;
  using F = format<L>;
  // At larger exponents every power but that of 1 is 0 or infinity, and the power of 1 is exact. NaN stays.
  constexpr L limit = F::exponent_limit;
  const L p = exponent > limit ? limit : exponent < -limit ? -limit : exponent;
  const auto [m, e] = split(x);
  const T s = ratio_of(m);
  constexpr int terms = sizeof(F::log2) / sizeof(L);
  L c[terms];  // p enters here, so the compiler hoists these products out of the caller's loop
  for (int i = 0; i < terms; ++i) c[i] = p * F::log2[i];
  const T log = polynomial(s * s, c) * s;  // p·log2 m
  const T n = __builtin_elementwise_roundeven(multiply_add(e, T{} + p, log));
  const T r = product_minus(e, p, n) + log;
  const T y = scaled(polynomial(r, F::exp2), n);
  // 0, infinity and NaN are their own powers for p > 0. Integer comparisons are twice as fast as those of floats.
  const auto special = to_bits(x) - 1 >= bits_t<T>{} + (to_bits(std::numeric_limits<L>::infinity()) - 1);
  const T of_special = p > 0 ? x : p < 0 ? L(1) / x : select(x == x, T{} + (p + 1), x);
  return select(special, of_special, y);
}

/// The natural logarithm of a positive finite number, within 2u (the formula of fdlibm's log, Sun Microsystems, 1993).
///
///   x = 2^e·m with m in [√½, √2), f = m − 1, s = f/(m + 1)
///   ln m = f − f²/2 + s·(f²/2 + 2·(s²/3 + s⁴/5 + …)), whose last part is small, so that errors of s are harmless
template <class T>
RIGEL_FUNCTION T positive_logarithm(T x) {
  using L = lane_t<T>;
  using F = format<L>;
  const auto [m, e] = split(x);
  const T f = m - L(1), s = ratio_of(m), z = s * s, half_square = L(0.5) * f * f;
  const T low = multiply_add(s, multiply_add(z, polynomial(z, F::log), half_square), e * F::ln2_low);
  return multiply_add(e, T{} + F::ln2_high, f - (half_square - low));
}

/// sin x, or cos x, by the platform's function. On a device it reduces large arguments by hundreds of instructions, which stand once.
template <bool Cosine, class T>
#if RIGEL_ON_DEVICE
__host__ __device__ __attribute__((noinline))
#else
RIGEL_FUNCTION
#endif
T platform_circular(T x) {
#if RIGEL_ON_DEVICE
  return Cosine ? ::cos(x) : ::sin(x);
#else
  return Cosine ? std::cos(x) : std::sin(x);
#endif
}

/// Whether sines and cosines of T are polynomials here.
template <class T>
inline constexpr bool takes_polynomials =
    Lanes<T> || (RIGEL_ON_DEVICE && (std::is_same_v<T, float> || std::is_same_v<T, double>));

/// Replaces what is beyond the limit of the polynomials by the platform's sin x, or cos x.
template <bool Cosine, class T, class Beyond>
RIGEL_FUNCTION void replace_beyond(T& result, T x, Beyond beyond) {
  if constexpr (!Lanes<T>) {
    if (beyond) [[unlikely]]
      result = platform_circular<Cosine>(x);
  } else if (__builtin_reduce_or(beyond) != 0) [[unlikely]] {
#pragma clang loop unroll(disable) vectorize(disable)
    for (int i = 0; i < static_cast<int>(sizeof(T) / sizeof(lane_t<T>)); ++i)
      if (beyond[i]) result[i] = platform_circular<Cosine>(x[i]);
  }
}

/// sin x, or cos x. With n the nearest integer to x/π (of cos to x/π − 1/2, and a half more), the result is ±sin(x − n·π).
template <bool Cosine, class T>
RIGEL_FUNCTION T circular(T x) {
  using L = lane_t<T>;
  using F = format<L>;
  constexpr L inverse_pi = L(0.31830988618379067), shift = Cosine ? L(0.5) : L(0);
  const T rounded = multiply_add(x, T{} + inverse_pi, T{} - shift) + round_to_integer<L>;
  const T nearest = rounded - round_to_integer<L>, n = nearest + shift;
  const T r = multiply_add(n, T{} - F::pi_low, multiply_add(n, T{} - F::pi_middle, multiply_add(n, T{} - F::pi_high, x)));
  const T square = r * r, y = multiply_add(r * square, polynomial(square, F::sin), r);
  const auto odd = to_bits(rounded) + bits_t<L>(Cosine);  // the lowest bit: whether the sign changes
  T result = from_bits<T>(to_bits(y) ^ (odd << (8 * sizeof(L) - 1)));
  replace_beyond<Cosine>(result, x, math::abs(x) > T{} + F::sin_limit);
  return result;
}

}  // namespace detail

/// e^x; within 2 units in the last place.
template <Number T>
RIGEL_FUNCTION T exponential(T x) {
  if constexpr (Lanes<T>) {
    using L = lane_t<T>;
    using F = detail::format<L>;
    const T t =
        select(x < T{} + F::exp_lowest, T{} + F::exp_lowest, select(x > T{} + F::exp_highest, T{} + F::exp_highest, x));
    const T rounded = detail::multiply_add(t, T{} + L(1.4426950408889634), T{} + detail::round_to_integer<L>);
    const T n = rounded - detail::round_to_integer<L>;
    const T r = detail::multiply_add(n, T{} - F::ln2_low, detail::multiply_add(n, T{} - F::ln2_high, t));
    return detail::scaled(detail::polynomial(r, F::exp), n);
  } else {
#if RIGEL_ON_DEVICE
    return ::exp(x);
#else
    return std::exp(x);
#endif
  }
}

/// The natural logarithm of x; within 2 units in the last place.
template <Number T>
RIGEL_FUNCTION T logarithm(T x) {
  if constexpr (Lanes<T>) {
    using L = lane_t<T>;
    constexpr L infinite = std::numeric_limits<L>::infinity();
    // 0, infinity, NaN and negative numbers, as in positive_power().
    const auto special = detail::to_bits(x) - 1 >= detail::bits_t<T>{} + (detail::to_bits(infinite) - 1);
    const T limit = select(x < T{}, T{} + std::numeric_limits<L>::quiet_NaN(), select(x == T{}, T{} - infinite, x));
    return select(special, limit, detail::positive_logarithm(x));
  } else {
#if RIGEL_ON_DEVICE
    return ::log(x);
#else
    return std::log(x);
#endif
  }
}

/// The same for a positive finite number.
template <Number T>
RIGEL_FUNCTION T positive_logarithm(T x) {
  if constexpr (Lanes<T>)
    return detail::positive_logarithm(x);
  else
    return logarithm(x);
}

#if defined(__AVX512F__)
/// Whether reciprocal() takes vectors T.
template <class T>
inline constexpr bool has_reciprocal = Lanes<T> && std::is_floating_point_v<lane_t<T>> && sizeof(T) % 64 == 0;

/// 1 / x within (1 + 2^-3)·u, if x and 1 / x are normal numbers. A division takes three times as long.
template <Lanes T>
  requires has_reciprocal<T>
RIGEL_FUNCTION T reciprocal(T x) {
  if constexpr (sizeof(T) > 64) {
    using Half = decltype(x.lo + x.lo);
    T y;
    y.lo = reciprocal(Half(x.lo));
    y.hi = reciprocal(Half(x.hi));
    return y;
  } else if constexpr (sizeof(lane_t<T>) == 8) {
    // An estimate within 2^-14, and two steps of Newton's method.
    T y = __builtin_bit_cast(T, __builtin_ia32_rcp14pd512_mask(x, x, -1));
    y = fma(y, fma(-x, y, T{} + 1), y);
    return fma(y, fma(-x, y, T{} + 1), y);
  } else {
    const T y = __builtin_bit_cast(T, __builtin_ia32_rcp14ps512_mask(x, x, -1));
    return fma(y, fma(-x, y, T{} + 1), y);
  }
}
#else
template <class T>
inline constexpr bool has_reciprocal = false;
#endif

/// sin x and cos x; within 2 units in the last place, on vectors and devices for |x| ≤ 2π. Beyond 2^8 (double: 2^20) these call the
/// platform's functions, as other scalars do.
template <Number T>
RIGEL_FUNCTION T sine(T x) {
  if constexpr (detail::takes_polynomials<T>)
    return detail::circular<false>(x);
  else
    return detail::platform_circular<false>(x);
}
template <Number T>
RIGEL_FUNCTION T cosine(T x) {
  if constexpr (detail::takes_polynomials<T>)
    return detail::circular<true>(x);
  else
    return detail::platform_circular<true>(x);
}

/// sin((a − b)/2) but for its sign, within 2 units in the last place and an error of u in a − b for |a|, |b| ≤ 2π: multiples of 2π are
/// subtracted from the difference before it is rounded. They are off by 2^-60 (double: 2^-138). For larger a or b the bound is relative
/// to that of a − b.
template <Number T>
RIGEL_FUNCTION T sine_of_half_difference(T a, T b) {
  using L = lane_t<T>;
  using F = detail::format<L>;
  using detail::multiply_add;
  constexpr L nearest = detail::round_to_integer<L>;
  // What a − b loses by rounding (D. E. Knuth, The Art of Computer Programming 2, section 4.2.2).
  const T difference = subtract(a, b), moved = subtract(difference, a);
  const T lost = subtract(subtract(a, subtract(difference, moved)), add(b, moved));
  const T x = difference * L(0.5), rest = lost * L(0.5);
  const T n = multiply_add(x, T{} + L(0.31830988618379067), T{} + nearest) - nearest;
  // x − n·π: the first step is exact, the second one where digits cancel, and what the sum loses goes to the last part.
  const T rough = multiply_add(n, T{} - F::pi_next, multiply_add(n, T{} - F::pi_high, x)), sum = add(rough, rest);
  const T r = add(sum, multiply_add(n, T{} - F::pi_rest, subtract(rest, subtract(sum, rough))));
  const auto beyond = math::abs(x) > T{} + F::sin_limit;
  if constexpr (!detail::takes_polynomials<T>) {
    return sine(beyond ? x : r);
  } else {
    const T square = r * r;
    T result = multiply_add(r * square, detail::polynomial(square, F::sin), r);
    detail::replace_beyond<false>(result, x, beyond);
    return result;
  }
}

/// arcsin √v for 0 ≤ v ≤ 1, within 4u. Without branches, so that loops of it become vectors.
template <std::floating_point T>
RIGEL_FUNCTION T arcsine_of_root(T v) {
  const bool upper = v > T(0.5);  // arcsin √v = π/2 − arcsin √(1 − v)
  const T w = upper ? 1 - v : v, z = __builtin_elementwise_sqrt(w);
  const T y = detail::multiply_add(z * w, detail::polynomial(w, detail::format<T>::asin), z);
  return upper ? T(1.5707963267948966) - y : y;
}

/// x^p for x ≥ 0 and any p; NaN if x or p is. Powers of 1 are 1. On vectors the relative error is at most (4 + 2|p|)·u, where u is the
/// unit roundoff. (An error of u in x alone changes the power by p·u.)
template <Number T>
RIGEL_FUNCTION T power(T x, lane_t<T> p) {
  if constexpr (Lanes<T>) {
    return detail::positive_power(x, p);
  } else {
    if (x != x || p != p) return x + p;  // pow() makes 1 of powers of 1, and of those by 0
#if RIGEL_ON_DEVICE
    return ::pow(x, p);
#else
    return std::pow(x, p);
#endif
  }
}

#if RIGEL_ON_DEVICE
namespace detail {

// The exponent of a positive float from its bits. Instead of a conversion, the exponent field becomes the low bits of a float
// near 2^23, whose mantissa holds integers.
__device__ inline float exponent_of(std::uint32_t bits) {
  return __uint_as_float(__funnelshift_r(bits, 0x4b000000u >> 9, 23)) - (0x1p23f + 127);
}
// Its mantissa, in [1, 2).
__device__ inline float mantissa_of(std::uint32_t bits) { return __uint_as_float((bits & 0x7fffffu) | 0x3f800000u); }
// Whether the float is 0, infinity or NaN, which are their own powers.
__device__ inline bool is_own_power(std::uint32_t bits) { return bits - 1 >= 0x7f800000u - 1; }
// x^p of any other float by two instructions of the special-function unit; `exponent` is that of x.
__device__ inline float power_of_parts(std::uint32_t bits, float exponent, float p) {
  float log, y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log) : "f"(mantissa_of(bits)));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(math::fma(p, exponent, p * log)));
  return y;
}

}  // namespace detail
#endif

/// x^p like power(), p > 0, but on GPUs by two instructions of the special-function unit: x = 2^e·m, x^p = 2^(p·e + p·log2 m). The
/// relative error is at most (4 + 3p + 0.7·|log2 x^p|)·u, tested on random x. The largest relative error over all normal
/// floats, measured on sm_90, is 2.9e-6 for p = 1.3 and 1.5; for x from 1e-3 to 1e3 it is 6.4e-7.
/// A subnormal x counts as 2^-127, and a subnormal result becomes 0.
RIGEL_FUNCTION float power_approximately(float x, float p) {
#if RIGEL_ON_DEVICE
  const std::uint32_t bits = __float_as_uint(x);
  return detail::is_own_power(bits) ? x : detail::power_of_parts(bits, detail::exponent_of(bits), p);
#else
  return std::pow(x, p);
#endif
}
/// The same for any p and an x that is not 0: ∞ has the powers ∞, 1 and 0, and NaN, also as p, gives NaN.
RIGEL_FUNCTION float power_approximately_of_any(float x, float p) {
#if RIGEL_ON_DEVICE
  const std::uint32_t bits = __float_as_uint(x);
  // An exponent beyond all others, which p = 0 still makes 0.
  const float exponent = detail::is_own_power(bits) ? minimum(x, 0x1p100f) : detail::exponent_of(bits);
  return detail::power_of_parts(bits, exponent, p);
#else
  return power(x, p);
#endif
}

/// x^p like power(), p > 0, but on GPUs by three instructions of the special-function unit: x = 2^e·m and
/// x^p = 2^h · 2^(p·e − h + p·log2 m), where h is the integer nearest to p·e. So the magnitude of x^p costs no accuracy. The
/// relative error is at most (6 + 3.5p)·u if x^p is normal, tested on random x. x ≥ 0, or NaN.
RIGEL_FUNCTION float power_by_parts(float x, float p) {
#if RIGEL_ON_DEVICE
  const bool subnormal = x < 0x1p-126f;
  const std::uint32_t bits = __float_as_uint(subnormal ? x * 0x1p24f : x);
  const float e = detail::exponent_of(bits) - (subnormal ? 24 : 0),
              h = math::add(math::fma(p, e, 0x1.8p23f), -0x1.8p23f);  // rounded to an integer
  const float scaled = ::fminf(::fmaxf(h, -126), 127);                // 2^h itself may be infinite or subnormal
  float log, y, scale;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log) : "f"(detail::mantissa_of(bits)));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(math::fma(p, log, math::fma(p, e, -h)) + (h - scaled)));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(scale) : "f"(scaled));
  return detail::is_own_power(bits) ? x : math::multiply(y, scale);
#else
  return std::pow(x, p);
#endif
}

}  // namespace rigel::math
