// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Number types and the elementary operations on them: one formula serves scalars on host and device and Clang vectors on the
// host. The compiler contracts no operation into another; there is an fma only if the source calls it.
#pragma once

#if !defined(__clang__) || __clang_major__ < 22
#error "Rigel's headers need Clang 22 or newer, whose types and vectors they use: set CMAKE_CXX_COMPILER to clang++-22"
#endif

#include <rigel/macros.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace rigel {

namespace detail {

template <class T>
concept OtherThanFloat = std::is_arithmetic_v<T> && !std::is_same_v<T, float>;

// x rounded to odd: x itself if it is a float, else of the two floats next to it the one whose last bit is 1. Rounding that to nearest,
// to a type of at most 22 digits, gives what one rounding of x gives (S. Boldo and G. Melquiond, Emulation of a FMA and correctly
// rounded sums: proved algorithms using rounding to odd, IEEE Transactions on Computers 57(4), 2008).
template <OtherThanFloat T>
RIGEL_FUNCTION constexpr float rounded_to_odd(T x) {
  if constexpr (std::is_integral_v<T> && sizeof(T) <= 2) {
    return static_cast<float>(x);
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (sizeof(T) == 8) {
      // What the last 12 bits of a number beyond 2^53 say is whether they are 0.
      constexpr T least = T(1) << 53, last = 0xfff;
      if (x > least || (std::is_signed_v<T> && x < T(0) - least)) x = (x & ~last) | ((x & last) != 0 ? T(0x800) : T(0));
    }
    return rounded_to_odd(static_cast<double>(x));
  } else {
    const auto nearest = static_cast<float>(x);
    const T back = nearest;
    const bool is_beyond = x < 0 ? back < x : back > x;
    return __builtin_bit_cast(float, (__builtin_bit_cast(std::uint32_t, nearest) - (is_beyond ? 1u : 0u)) |
                                         (back != x ? 1u : 0u));  // NaN stays one
  }
}

}  // namespace detail

/// IEEE 754 binary16. The conversion to float is exact; those from other numbers round once, to nearest even.
struct half {
  _Float16 value;
  half() = default;
  RIGEL_MEMBER constexpr half(float x) : value(static_cast<_Float16>(x)) {}
  template <detail::OtherThanFloat T>
  RIGEL_MEMBER constexpr half(T x) : half(detail::rounded_to_odd(x)) {}
  RIGEL_MEMBER constexpr operator float() const { return static_cast<float>(value); }
};

/// bfloat16: the upper half of a binary32. The conversion to float is exact; those from other numbers round once, to nearest even.
struct bfloat16 {
  std::uint16_t bits;
  bfloat16() = default;
  RIGEL_MEMBER constexpr bfloat16(float x) : bits(round(x)) {}
  template <detail::OtherThanFloat T>
  RIGEL_MEMBER constexpr bfloat16(T x) : bfloat16(detail::rounded_to_odd(x)) {}
  RIGEL_MEMBER constexpr operator float() const { return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16); }

 private:
  RIGEL_MEMBER static constexpr std::uint16_t round(float x) {
#if RIGEL_ON_DEVICE
    if (!__builtin_is_constant_evaluated()) {
      std::uint16_t rounded = 0;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(x));  // PTX ISA, sm_80; every NaN becomes the same one
      return rounded;
    }
#endif
    const auto u = __builtin_bit_cast(std::uint32_t, x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);  // a quiet NaN
    return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};

/// A floating-point number of 16 bits.
template <class T>
concept ShortFloat = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

/// The type of a view's elements, an operand or an accumulator, for code that knows types at run time only.
enum class Scalar : std::uint8_t { f16, bf16, f32, f64, i8, u8, i16, i32, i64, u32, u64, other };

/// The short name of a scalar type, as in kernel names: "f32", "i8", …
constexpr const char* name(Scalar s) {
  constexpr const char* names[] = {"f16", "bf16", "f32", "f64", "i8", "u8", "i16", "i32", "i64", "u32", "u64", "other"};
  return names[static_cast<int>(s)];
}

/// Bytes of one value; 0 for Scalar::other.
constexpr std::size_t size_of(Scalar s) {
  constexpr std::size_t sizes[] = {2, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 0};
  return sizes[static_cast<int>(s)];
}

/// The Scalar of a C++ type; Scalar::other for a type that Rigel does not know.
template <class T>
inline constexpr Scalar scalar_of = Scalar::other;
template <> inline constexpr Scalar scalar_of<half> = Scalar::f16;
template <> inline constexpr Scalar scalar_of<bfloat16> = Scalar::bf16;
template <> inline constexpr Scalar scalar_of<float> = Scalar::f32;
template <> inline constexpr Scalar scalar_of<double> = Scalar::f64;
template <> inline constexpr Scalar scalar_of<std::int8_t> = Scalar::i8;
template <> inline constexpr Scalar scalar_of<std::uint8_t> = Scalar::u8;
template <> inline constexpr Scalar scalar_of<bool> = Scalar::u8;  // for reading; contract() converts what it writes
template <> inline constexpr Scalar scalar_of<std::int16_t> = Scalar::i16;
template <> inline constexpr Scalar scalar_of<std::int32_t> = Scalar::i32;
template <> inline constexpr Scalar scalar_of<std::int64_t> = Scalar::i64;
template <> inline constexpr Scalar scalar_of<long long> = Scalar::i64;
template <> inline constexpr Scalar scalar_of<std::uint32_t> = Scalar::u32;
template <> inline constexpr Scalar scalar_of<std::uint64_t> = Scalar::u64;
template <> inline constexpr Scalar scalar_of<unsigned long long> = Scalar::u64;

/// The type of one lane of a Clang vector; for a scalar, its own type.
template <class T>
struct lane {
  using type = T;
};
template <class T>
  requires requires(T v) { v[0]; }
struct lane<T> {
  using type = std::remove_cvref_t<decltype(std::declval<T&>()[0])>;
};
template <class T>
using lane_t = typename lane<T>::type;

namespace detail {
template <class T>
inline constexpr bool is_floating_point =
    std::is_floating_point_v<T> || ShortFloat<T> || std::is_same_v<T, _Float16> || std::is_same_v<T, __bf16>;
}  // namespace detail

/// A Clang vector (`ext_vector_type`) of numbers. Host kernels use vectors of any size, CUDA kernels those of two 16-bit
/// numbers.
template <class T>
concept Lanes = !std::is_same_v<lane_t<T>, T> &&
                (std::is_integral_v<lane_t<T>> || (detail::is_floating_point<lane_t<T>> && !ShortFloat<lane_t<T>>));

/// A scalar or a vector of scalars.
template <class T>
concept Number = std::is_arithmetic_v<T> || ShortFloat<T> || Lanes<T>;

/// Infinity as the identity of min and max. It is IEEE infinity; for integers it is half the largest value, so that the sum of
/// two infinities does not wrap. Integer operands must stay within ±infinity.
template <class T>
RIGEL_FUNCTION constexpr T infinity() {
  if constexpr (ShortFloat<T>)
    return std::numeric_limits<float>::infinity();
  else if constexpr (std::is_floating_point_v<T>)
    return std::numeric_limits<T>::infinity();
  else
    return static_cast<T>(std::numeric_limits<T>::max() / 2);
}
template <class T>
RIGEL_FUNCTION constexpr T negative_infinity() {
  return static_cast<T>(-infinity<T>());
}

/// Elementary operations on scalars and vectors.
namespace math {

template <class T>
inline constexpr bool is_floating = detail::is_floating_point<lane_t<T>>;

/// operation(x, y), where integers wrap: their arithmetic runs in an unsigned type.
template <class T, class Operation>
RIGEL_FUNCTION T wrapping(T x, T y, Operation operation) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<std::common_type_t<T, int>>;
    return static_cast<T>(operation(static_cast<U>(x), static_cast<U>(y)));
  } else {
    return operation(x, y);
  }
}

/// x + y, x − y, x · y, each rounded once. On the device they use the rounding intrinsics, which the compiler never fuses.
template <Number T>
RIGEL_FUNCTION T add(T x, T y) {
#if RIGEL_ON_DEVICE
  if constexpr (std::is_same_v<T, float>)
    return __fadd_rn(x, y);
  else if constexpr (std::is_same_v<T, double>)
    return __dadd_rn(x, y);
  else
#endif
    return wrapping(x, y, [](auto u, auto v) __attribute__((always_inline)) { return u + v; });
}
template <Number T>
RIGEL_FUNCTION T subtract(T x, T y) {
#if RIGEL_ON_DEVICE
  // Clang's __fsub_rn is inline assembly, so an abs() of its result would cost a separate instruction.
  if constexpr (std::is_floating_point_v<T>)
    return add(x, -y);
  else
#endif
    return wrapping(x, y, [](auto u, auto v) __attribute__((always_inline)) { return u - v; });
}
template <Number T>
RIGEL_FUNCTION T multiply(T x, T y) {
#if RIGEL_ON_DEVICE
  if constexpr (std::is_same_v<T, float>)
    return __fmul_rn(x, y);
  else if constexpr (std::is_same_v<T, double>)
    return __dmul_rn(x, y);
  else
#endif
    return wrapping(x, y, [](auto u, auto v) __attribute__((always_inline)) { return u * v; });
}

/// x · y + z, rounded once for floating-point numbers.
template <Number T>
RIGEL_FUNCTION T fma(T x, T y, T z) {
  if constexpr (is_floating<T>)
    return __builtin_elementwise_fma(x, y, z);
  else
    return add(multiply(x, y), z);
}

/// 1 / x within 1 ulp, if x and 1 / x are normal numbers. On the device one instruction, where a division that serves all numbers
/// takes ten and a branch.
RIGEL_FUNCTION float reciprocal(float x) {
#if RIGEL_ON_DEVICE
  return __nvvm_rcp_approx_ftz_f(x);
#else
  return 1 / x;
#endif
}

/// 2^x within 2 ulp, if that is a normal number; on the device a smaller one is 0.
RIGEL_FUNCTION float exp2(float x) {
#if RIGEL_ON_DEVICE
  return __nvvm_ex2_approx_ftz_f(x);
#else
  return std::exp2(x);
#endif
}

/// |x|
template <Number T>
RIGEL_FUNCTION T abs(T x) {
  if constexpr (std::is_unsigned_v<lane_t<T>>)
    return x;
  else
    return __builtin_elementwise_abs(x);
}

/// The number of set bits, as an int32 or a vector of them.
template <Number T>
  requires std::is_unsigned_v<lane_t<T>>
RIGEL_FUNCTION auto population_count(T x) {
  if constexpr (Lanes<T>) {
    using Counts = std::int32_t __attribute__((ext_vector_type(sizeof(T) / sizeof(lane_t<T>))));
    return __builtin_convertvector(__builtin_elementwise_popcount(x), Counts);
  } else {
    return static_cast<std::int32_t>(__builtin_elementwise_popcount(x));
  }
}

/// condition ? x : y, lane by lane. `condition` is a bool, or the result of a comparison of vectors.
template <class C, class T>
RIGEL_FUNCTION T select(C condition, T x, T y) {
  return condition ? x : y;
}

/// Whether the host has instructions for minimum() and maximum() of floating-point numbers.
#if defined(__aarch64__)
inline constexpr bool minimum_is_instruction = true;
#else
inline constexpr bool minimum_is_instruction = false;
#endif

#if RIGEL_ON_DEVICE
namespace detail {

// condition ? x : y, as two selections of 32 bits. From a selection of 64 bits after a comparison, ptxas makes a minimum, and
// copies operands for it.
__device__ __forceinline__ double select_words(bool condition, double x, double y) {
  return __hiloint2double(condition ? __double2hiint(x) : __double2hiint(y),
                          condition ? __double2loint(x) : __double2loint(y));
}

// minimum() and maximum() of doubles by two comparisons and these selections. The compiler makes twice as many instructions of
// `x < y || x != x ? x : y`.
__device__ __forceinline__ double minimum(double x, double y) { return select_words((x < y) | __builtin_isnan(x), x, y); }
__device__ __forceinline__ double maximum(double x, double y) { return select_words((x > y) | __builtin_isnan(x), x, y); }

}  // namespace detail
#endif

/// The smaller of x and y; NaN if either is NaN; of two zeros, either one.
template <Number T>
RIGEL_FUNCTION T minimum(T x, T y) {
  if constexpr (!is_floating<T>) {
    return __builtin_elementwise_min(x, y);
  } else {
#if RIGEL_ON_DEVICE
    if constexpr (!std::is_same_v<T, double>)
      return __builtin_elementwise_minimum(x, y);  // one instruction
    else
      return detail::minimum(x, y);
#else
    if constexpr (minimum_is_instruction)
      return __builtin_elementwise_minimum(x, y);
    else
      return select(x != x, x, select(x < y, x, y));
#endif
  }
}

/// The larger of x and y; NaN if either is NaN; of two zeros, either one.
template <Number T>
RIGEL_FUNCTION T maximum(T x, T y) {
  if constexpr (!is_floating<T>) {
    return __builtin_elementwise_max(x, y);
  } else {
#if RIGEL_ON_DEVICE
    if constexpr (!std::is_same_v<T, double>)
      return __builtin_elementwise_maximum(x, y);  // one instruction
    else
      return detail::maximum(x, y);
#else
    if constexpr (minimum_is_instruction)
      return __builtin_elementwise_maximum(x, y);
    else
      return select(x != x, x, select(x > y, x, y));
#endif
  }
}

/// The same for half and bfloat16. The host computes in float and then rounds: sums, differences and products equal those that are
/// rounded once, since float has more than twice as many digits (S. A. Figueroa, When is double rounding innocuous?, SIGNUM
/// Newsletter 30(3), 1995). The device has instructions for these types, while its conversions to bfloat16 are slow. Products stay
/// in float there, too: the compiler would fuse those of a translation unit that allows contraction.
#if RIGEL_ON_DEVICE
namespace detail {
RIGEL_FUNCTION _Float16 native(half x) { return x.value; }
RIGEL_FUNCTION __bf16 native(bfloat16 x) { return __builtin_bit_cast(__bf16, x); }
}  // namespace detail
template <ShortFloat T> RIGEL_FUNCTION T add(T x, T y) {
  return __builtin_bit_cast(T, detail::native(x) + detail::native(y));
}
template <ShortFloat T> RIGEL_FUNCTION T subtract(T x, T y) {
  return __builtin_bit_cast(T, detail::native(x) - detail::native(y));
}
template <ShortFloat T> RIGEL_FUNCTION T minimum(T x, T y) {
  return __builtin_bit_cast(T, __builtin_elementwise_minimum(detail::native(x), detail::native(y)));
}
template <ShortFloat T> RIGEL_FUNCTION T maximum(T x, T y) {
  return __builtin_bit_cast(T, __builtin_elementwise_maximum(detail::native(x), detail::native(y)));
}
#else
template <ShortFloat T> RIGEL_FUNCTION T add(T x, T y) { return add(static_cast<float>(x), static_cast<float>(y)); }
template <ShortFloat T> RIGEL_FUNCTION T subtract(T x, T y) {
  return subtract(static_cast<float>(x), static_cast<float>(y));
}
template <ShortFloat T> RIGEL_FUNCTION T minimum(T x, T y) { return minimum(static_cast<float>(x), static_cast<float>(y)); }
template <ShortFloat T> RIGEL_FUNCTION T maximum(T x, T y) { return maximum(static_cast<float>(x), static_cast<float>(y)); }
#endif
template <ShortFloat T> RIGEL_FUNCTION T multiply(T x, T y) {
  return multiply(static_cast<float>(x), static_cast<float>(y));
}
template <ShortFloat T> RIGEL_FUNCTION T abs(T x) { return abs(static_cast<float>(x)); }

/// The smaller (larger) of x and y, in one instruction on x86-64. If y is NaN the result is NaN; if x is NaN the result is y.
template <Number T>
RIGEL_FUNCTION T minimum_if_ordered(T x, T y) {
  if constexpr (is_floating<T>) {
#if RIGEL_ON_DEVICE
    if constexpr (std::is_same_v<T, double>) return detail::select_words(x < y, x, y);
#endif
    return select(x < y, x, y);
  } else {
    return minimum(x, y);
  }
}
template <Number T>
RIGEL_FUNCTION T maximum_if_ordered(T x, T y) {
  if constexpr (is_floating<T>) {
#if RIGEL_ON_DEVICE
    if constexpr (std::is_same_v<T, double>) return detail::select_words(x > y, x, y);
#endif
    return select(x > y, x, y);
  } else {
    return maximum(x, y);
  }
}

}  // namespace math
}  // namespace rigel
