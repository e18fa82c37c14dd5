// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats as 16-bit numbers, two in a word, the first in the low half (PTX ISA, "cvt", sm_80). Rounds to nearest even; every NaN
// becomes the same one.
#pragma once

#include <rigel/numeric.hpp>

#include <cstdint>

namespace rigel::arch {

template <ShortFloat T>
__device__ __forceinline__ std::uint32_t two_of(float first, float second) {
  std::uint32_t two;
  if constexpr (std::is_same_v<T, half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(second), "f"(first));
  return two;
}

/// The elements of C that become of `count` neighbours.
template <class Value, int count>
__device__ __forceinline__ void convert(Value (&to)[count], const float (&from)[count]) {
  if constexpr (ShortFloat<Value> && count % 2 == 0) {
    struct Two {
      Value first, second;
    };
#pragma unroll
    for (int i = 0; i < count; i += 2) {
      const auto two = __builtin_bit_cast(Two, two_of<Value>(from[i], from[i + 1]));
      to[i] = two.first;
      to[i + 1] = two.second;
    }
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) to[i] = static_cast<Value>(from[i]);
  }
}

}  // namespace rigel::arch
