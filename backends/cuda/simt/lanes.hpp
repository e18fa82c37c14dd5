// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the narrow kernels share: values that the compiler must not move, values of other lanes, and a step without tables.
#pragma once

#include <rigel/backends/cuda/simt/tuning.hpp>

#include <cstdint>
#include <type_traits>

namespace rigel::backends::simt {

/// Forces a value into a register here, so that the compiler does not move its load to where the value is used.
template <class T>
__device__ __forceinline__ void keep(T& value) {
  if constexpr (sizeof(T) == 4) {
    auto word = __builtin_bit_cast(std::uint32_t, value);
    asm volatile("" : "+r"(word));
    value = __builtin_bit_cast(T, word);
  } else if constexpr (sizeof(T) == 8) {
    auto word = __builtin_bit_cast(std::uint64_t, value);
    asm volatile("" : "+l"(word));
    value = __builtin_bit_cast(T, word);
  } else if constexpr (sizeof(T) <= 2) {
    using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
    std::uint16_t half_word = __builtin_bit_cast(Bits, value);
    asm volatile("" : "+h"(half_word));
    value = __builtin_bit_cast(T, static_cast<Bits>(half_word));
  }
}

/// The value that thread `lane ^ mask` of the warp holds.
template <class T>
__device__ __forceinline__ T of_lane(const T& value, int mask) {
  constexpr int words = (sizeof(T) + 3) / 4;
  unsigned word[words] = {};
  __builtin_memcpy(word, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < words; ++i) word[i] = __shfl_xor_sync(~0u, word[i], mask);
  T other;
  __builtin_memcpy(&other, word, sizeof(T));
  return other;
}

/// x ⊕ (a ⊗ b). Powers of floats are taken by special functions.
template <class S>
__device__ __forceinline__ typename S::accumulator direct_step(const S& s, const typename S::accumulator& x, operand_t<S> a,
                                                               operand_t<S> b, std::int64_t k) {
  if constexpr (has_special_powers<S>)
    return math::add(x, math::power_by_parts(math::abs(math::subtract(a, b)), s.p));
  else
    return step(s, x, a, b, k);
}

}  // namespace rigel::backends::simt
