// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Differences and sums of integers of 64 bits, which need 65: exact, then rounded to double once.
#pragma once

#include <rigel/numeric.hpp>

#include <cstdint>

namespace rigel::detail {

/// |x − y|, of numbers or of Clang vectors of them.
RIGEL_FUNCTION double wide_distance(std::int64_t x, std::int64_t y) {
  const auto a = static_cast<std::uint64_t>(x), b = static_cast<std::uint64_t>(y);
  return static_cast<double>(x < y ? b - a : a - b);
}
template <Lanes T>
RIGEL_FUNCTION auto wide_distance(T x, T y) {
  constexpr int lanes = sizeof(T) / sizeof(std::int64_t);
  using Unsigned = std::uint64_t __attribute__((ext_vector_type(lanes)));
  using Double = double __attribute__((ext_vector_type(lanes)));
  const auto a = __builtin_bit_cast(Unsigned, x), b = __builtin_bit_cast(Unsigned, y),
             is_less = __builtin_bit_cast(Unsigned, x < y);
  return __builtin_convertvector(((a - b) ^ is_less) - is_less, Double);
}

/// x − y.
RIGEL_FUNCTION double wide_difference(std::int64_t x, std::int64_t y) {
  const double distance = wide_distance(x, y);
  return x < y ? -distance : distance;
}

/// |x + y|.
RIGEL_FUNCTION double wide_sum(std::int64_t x, std::int64_t y) {
  const auto sum = static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y);
  if ((x < 0) != (y < 0)) return wide_distance(static_cast<std::int64_t>(sum), 0);
  if (x >= 0) return static_cast<double>(sum);
  return sum == 0 ? 0x1p64 : static_cast<double>(0 - sum);  // the least number twice
}

}  // namespace rigel::detail
