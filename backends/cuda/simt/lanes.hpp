// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What threads of narrow blocks have in common: values that the compiler has to leave where they are, and those of other lanes.
#pragma once

#include <cstdint>

namespace rigel::backends::simt {

/// Has a value by here: the compiler may not move its load to where the value is used.
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
  }
}

/// What thread `lane ^ mask` of the warp has.
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

}  // namespace rigel::backends::simt
