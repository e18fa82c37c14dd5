// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers rounded to 16 bits by the definition of the formats, and numbers that a rounding to float on the way would round differently.
#pragma once

#include <rigel/numeric.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace support {

/// The number of T that is nearest to x, of two the even one, infinite beyond the largest.
template <rigel::ShortFloat T>
double nearest(long double x) {
  constexpr bool is_half = std::is_same_v<T, rigel::half>;
  constexpr int digits = is_half ? 11 : 8, least = is_half ? -14 : -126, most = is_half ? 15 : 127;
  if (x == 0 || !std::isfinite(x)) return static_cast<double>(x);
  const long double unit = std::ldexp(1.L, std::max(std::ilogb(x), least) - digits + 1);
  const long double rounded = std::nearbyint(x / unit) * unit;
  return std::fabs(rounded) < std::ldexp(1.L, most + 1)
             ? static_cast<double>(rounded)
             : std::copysign(std::numeric_limits<double>::infinity(), static_cast<double>(x));
}

/// Doubles next to numbers halfway between two of half and of bfloat16: nearer to them than floats are. And special ones.
inline std::vector<double> doubles_near_ties() {
  std::vector<double> list = {
      1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-8 + 0x1p-40, 0, -0., 1e300, -1e300, 1e-300, 65519.999999, 65520, 0x1.fffffffp-25,
      0x1.0000001p-25,       0x1.ff00001p127};
  for (const int digits : {11, 8})
    for (int exponent = -30; exponent <= 17; ++exponent)
      for (const int odd : {0, 1, 2, 77})
        for (const int beyond : {0, 30, 37, 50})
          for (const int sign : {1, -1}) {
            const double tie = std::ldexp((1 << (digits - 1)) + odd + 0.5, exponent - digits + 1);
            list.push_back(sign * tie * (1 + (beyond == 0 ? 0 : std::ldexp(1, -beyond))));
            list.push_back(sign * tie * (1 - (beyond == 0 ? 0 : std::ldexp(1, -beyond))));
          }
  return list;
}

/// The same for integers of type I.
template <class I>
std::vector<I> integers_near_ties() {
  std::vector<I> list = {0,
                         1,
                         static_cast<I>(33685505),
                         std::numeric_limits<I>::max(),
                         std::numeric_limits<I>::min(),
                         std::numeric_limits<I>::max() - 1};
  for (const int digits : {11, 8})
    for (int shift = 0; shift + digits + 1 < std::numeric_limits<I>::digits; ++shift)
      for (const int odd : {0, 1, 2, 77})
        for (const int beyond : {-1, 0, 1}) {
          const I tie = static_cast<I>((I((1 << (digits - 1)) + odd) * 2 + 1) << shift);
          list.push_back(static_cast<I>(tie + beyond));
          if constexpr (std::is_signed_v<I>) list.push_back(static_cast<I>(-tie + beyond));
        }
  return list;
}

}  // namespace support
