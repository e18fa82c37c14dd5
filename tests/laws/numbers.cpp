// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// half and bfloat16, minimum and maximum, wrapping integers.
#include <rigel/numeric.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/nearest.hpp>
#include <tests/support/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using rigel::bfloat16;
using rigel::half;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), not_a_number = std::numeric_limits<float>::quiet_NaN();

// The value of a bit pattern by the definition of the format: sign, exponent bits, fraction bits.
double value_of(unsigned bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const unsigned fraction = bits & ((1u << fraction_bits) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? not_a_number : sign * infinity;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1u << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

template <class T>
T from_bits(unsigned bits) {
  return __builtin_bit_cast(T, static_cast<std::uint16_t>(bits));
}
template <class T>
unsigned bits_of(T v) {
  return __builtin_bit_cast(std::uint16_t, v);
}

template <class T>
void check_round_trip(int exponent_bits, int fraction_bits) {
  int wrong_values = 0, wrong_bits = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float f = from_bits<T>(bits);
    wrong_values += !support::same<double>(f, value_of(bits, exponent_bits, fraction_bits));
    const T back(f);
    wrong_bits += f != f ? float(back) == float(back) : bits_of(back) != bits;
  }
  CHECK(wrong_values == 0);
  CHECK(wrong_bits == 0);
}

// Checks rounding between each number and the next one: below the midpoint, at it (to even), and above it. The midpoint and its
// neighbours are floats.
template <class T>
void check_rounding(unsigned largest) {
  int wrong = 0;
  for (unsigned bits = 0; bits < largest; ++bits) {
    const float low = from_bits<T>(bits), high = from_bits<T>(bits + 1);
    const float middle = low + (high - low) / 2;
    const unsigned even = bits & 1 ? bits + 1 : bits;
    for (const float sign : {1.f, -1.f}) {
      const unsigned s = sign < 0 ? 0x8000u : 0;
      wrong += bits_of(T(sign * middle)) != (even | s);
      wrong += bits_of(T(sign * std::nextafterf(middle, low))) != (bits | s);
      wrong += bits_of(T(sign * std::nextafterf(middle, high))) != ((bits + 1) | s);
    }
  }
  CHECK(wrong == 0);
}

template <class T>
void check_one_rounding() {
  int wrong = 0;
  for (const double x : support::doubles_near_ties()) wrong += !support::same<double>(float(T(x)), support::nearest<T>(x));
  const auto check = [&]<class I>(I) {
    for (const I x : support::integers_near_ties<I>())
      wrong += !support::same<double>(float(T(x)), support::nearest<T>(static_cast<long double>(x)));
  };
  check(std::int16_t{});
  check(std::uint16_t{});
  check(std::int32_t{});
  check(std::uint32_t{});
  check(std::int64_t{});
  check(std::uint64_t{});
  CHECK(wrong == 0);
  CHECK(std::isnan(float(T(std::numeric_limits<double>::quiet_NaN()))));
  CHECK(float(T(-std::numeric_limits<double>::infinity())) == -infinity);
}

}  // namespace

TEST_CASE("half and bfloat16: doubles and integers round once") {
  check_one_rounding<half>();
  check_one_rounding<bfloat16>();
  CHECK(float(half(1 + 0x1p-11 + 0x1p-40)) == 1.0009765625f);
  CHECK(float(bfloat16(33685505)) == 33816576);
  constexpr half of_constant = 1 + 0x1p-11 + 0x1p-40;
  CHECK(float(of_constant) == 1.0009765625f);
}

TEST_CASE("half: every bit pattern has its value and comes back") { check_round_trip<half>(5, 10); }
TEST_CASE("bfloat16: every bit pattern has its value and comes back") { check_round_trip<bfloat16>(8, 7); }

TEST_CASE("half: rounds to nearest even") {
  check_rounding<half>(0x7bff);
  CHECK(float(half(65504.f)) == 65504.f);
  CHECK(float(half(65519.996f)) == 65504.f);  // below the midpoint to 2^16
  CHECK(float(half(65520.f)) == infinity);
  CHECK(float(half(-65520.f)) == -infinity);
  CHECK(float(half(0x1p-25f)) == 0.f);  // halfway to the smallest subnormal: to even
  CHECK(float(half(std::nextafterf(0x1p-25f, 1.f))) == 0x1p-24f);
  CHECK(std::signbit(float(half(-0x1p-26f))));
}

TEST_CASE("bfloat16: rounds to nearest even") {
  check_rounding<bfloat16>(0x7f7f);
  const float largest = 0x1.fep127f;
  CHECK(float(bfloat16(largest)) == largest);
  CHECK(float(bfloat16(std::nextafterf(0x1.ffp127f, 0.f))) == largest);
  CHECK(float(bfloat16(0x1.ffp127f)) == infinity);
  CHECK(float(bfloat16(std::numeric_limits<float>::max())) == infinity);
  CHECK(float(bfloat16(std::numeric_limits<float>::denorm_min())) == 0.f);
}

namespace {

// Checks that the sum of two numbers is the one nearest to their sum in double, and the even one of two that are equally near.
template <class T>
void check_sums(int fraction_bits) {
  const auto number = [](unsigned bits) { return double(float(__builtin_bit_cast(T, static_cast<std::uint16_t>(bits)))); };
  support::Random random(1);
  int wrong = 0, ties = 0;
  for (int i = 0; i < 300000; ++i) {
    // The exponent of y is near that of x, so that the last bits of y decide how x + y is rounded.
    const auto x = static_cast<unsigned>(random.next()) & 0xffffu;
    const auto y = (x + static_cast<unsigned>(random.integer(-14, 2) * (1 << fraction_bits))) ^
                   static_cast<unsigned>(random.next() & 0x8000u) ^ static_cast<unsigned>(random.integer(0, 7));
    const double exact = number(x) + number(y & 0xffffu);
    const T sum = rigel::math::add(__builtin_bit_cast(T, static_cast<std::uint16_t>(x)),
                                   __builtin_bit_cast(T, static_cast<std::uint16_t>(y)));
    const unsigned bits = bits_of(sum), size = bits & 0x7fffu;
    if (!std::isfinite(exact) || !std::isfinite(float(sum))) continue;
    const double error = std::fabs(std::fabs(exact) - number(size));
    for (const unsigned next : {size - (size > 0), size + 1}) {
      if (next == size || !std::isfinite(number(next))) continue;
      const double other = std::fabs(std::fabs(exact) - number(next));
      wrong += error > other || (error == other && bits % 2 != 0);
      ties += error == other;
    }
  }
  CHECK(wrong == 0);
  CHECK(ties > 1000);
}

}  // namespace

TEST_CASE("16-bit floats: sums are rounded once") {
  check_sums<half>(10);
  check_sums<bfloat16>(7);
  // 2049 lies between 2048 and 2050, 2051 between 2050 and 2052: to even.
  CHECK(float(rigel::math::add(half(2048), half(1))) == 2048);
  CHECK(float(rigel::math::add(half(2048), half(3))) == 2052);
  CHECK(float(rigel::math::subtract(half(65504), half(-16))) == infinity);
  CHECK(float(rigel::math::abs(half(-0x1p-24f))) == 0x1p-24f);
}

TEST_CASE("16-bit floats: minimum and maximum propagate NaN") {
  const half one = 1, two = 2, none = not_a_number;
  CHECK(float(rigel::math::minimum(one, two)) == 1);
  CHECK(float(rigel::math::maximum(one, two)) == 2);
  for (const half x : {one, two}) {
    CHECK(std::isnan(float(rigel::math::minimum(x, none))));
    CHECK(std::isnan(float(rigel::math::maximum(none, x))));
  }
  CHECK(float(rigel::infinity<half>()) == infinity);
  CHECK(float(rigel::negative_infinity<bfloat16>()) == -infinity);
}

TEST_CASE("16-bit floats: NaN and infinities stay what they are") {
  // A NaN whose payload is in the truncated bits stays a NaN.
  const float low_payload = __builtin_bit_cast(float, 0x7f800001u);
  for (const float x : {not_a_number, -not_a_number, low_payload}) {
    CHECK(std::isnan(float(half(x))));
    CHECK(std::isnan(float(bfloat16(x))));
  }
  for (const float x : {infinity, -infinity}) {
    CHECK(float(half(x)) == x);
    CHECK(float(bfloat16(x)) == x);
  }
}

template <class T>
void check_selection() {
  const T inf = std::numeric_limits<T>::infinity(), none = std::numeric_limits<T>::quiet_NaN();
  using rigel::math::maximum, rigel::math::minimum;
  for (const T x : {T(0), T(1), T(-3), inf, -inf}) {
    CHECK(std::isnan(minimum(x, none)));
    CHECK(std::isnan(minimum(none, x)));
    CHECK(std::isnan(maximum(x, none)));
    CHECK(std::isnan(maximum(none, x)));
    CHECK(minimum(x, inf) == x);
    CHECK(maximum(x, -inf) == x);
    for (const T y : {T(0), T(2), T(-5), inf, -inf}) {
      CHECK(minimum(x, y) == std::min(x, y));
      CHECK(maximum(x, y) == std::max(x, y));
      CHECK(rigel::math::minimum_if_ordered(x, y) == std::min(x, y));
      CHECK(rigel::math::maximum_if_ordered(x, y) == std::max(x, y));
    }
    CHECK(std::isnan(rigel::math::minimum_if_ordered(x, none)));
    CHECK(std::isnan(rigel::math::maximum_if_ordered(x, none)));
  }
  CHECK(std::isnan(minimum(none, none)));
  CHECK(std::isnan(maximum(none, none)));
}
TEST_CASE("minimum and maximum: NaN wins, whichever side it is on") {
  check_selection<float>();
  check_selection<double>();
}

TEST_CASE("minimum and maximum of vectors, lane by lane") {
  using Vector = float __attribute__((ext_vector_type(4)));
  const Vector x = {1, not_a_number, 3, -infinity}, y = {2, 5, not_a_number, 4};
  const Vector low = rigel::math::minimum(x, y), high = rigel::math::maximum(x, y);
  CHECK(low[0] == 1);
  CHECK(std::isnan(low[1]));
  CHECK(std::isnan(low[2]));
  CHECK(low[3] == -infinity);
  CHECK(high[0] == 2);
  CHECK(std::isnan(high[1]));
  CHECK(std::isnan(high[2]));
  CHECK(high[3] == 4);
}

template <class T>
void check_wrapping() {
  const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  CHECK(rigel::math::add(high, T(1)) == low);
  CHECK(rigel::math::subtract(low, T(1)) == high);
  CHECK(rigel::math::multiply(high, T(2)) == T(-2));
  CHECK(rigel::math::multiply(low, T(-1)) == low);
  CHECK(rigel::math::fma(high, T(2), T(3)) == T(1));
  CHECK(rigel::math::abs(T(-7)) == T(7));
}
TEST_CASE("signed integers wrap") {
  check_wrapping<std::int32_t>();
  check_wrapping<std::int64_t>();
}

TEST_CASE("integer infinity: two of them add without wrapping") {
  CHECK(rigel::infinity<std::int32_t>() == 0x3fffffff);
  CHECK(rigel::infinity<std::int64_t>() == 0x3fffffffffffffff);
  CHECK(rigel::infinity<std::int32_t>() + rigel::infinity<std::int32_t>() > 0);
  CHECK(rigel::negative_infinity<std::int32_t>() == -0x3fffffff);
  CHECK(rigel::infinity<float>() == infinity);
  CHECK(rigel::negative_infinity<double>() == -infinity);
}

TEST_CASE("fma rounds once, and nothing else is fused") {
  const float x = 1 + 0x1p-12f;  // x² = 1 + 2^-11 + 2^-24
  CHECK(rigel::math::fma(x, x, -1.f) == 0x1p-11f + 0x1p-24f);
  CHECK(rigel::math::add(rigel::math::multiply(x, x), -1.f) == 0x1p-11f);
}
