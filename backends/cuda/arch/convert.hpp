// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two floats as 16-bit numbers in one word, the first in the low half (PTX ISA, "cvt", sm_80). Rounds to nearest even; every
// NaN becomes the same one.
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

}  // namespace rigel::arch
