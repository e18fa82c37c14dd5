// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions on the four unsigned bytes of a word (PTX ISA, "Video Instructions", "Integer Arithmetic Instructions").
#pragma once

#include <cstdint>

namespace rigel::arch {

/// x + Σ |a − b| over the bytes (vabsdiff4).
__device__ __forceinline__ std::uint32_t add_byte_distances(std::uint32_t x, std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum;
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(x));
  return sum;
}

/// |a − b| byte by byte (vabsdiff4).
__device__ __forceinline__ std::uint32_t byte_distances(std::uint32_t a, std::uint32_t b) {
  std::uint32_t distances;
  asm("vabsdiff4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(distances) : "r"(a), "r"(b), "r"(0));
  return distances;
}

/// x + Σ a·b over the bytes (dp4a, sm_61).
__device__ __forceinline__ std::uint32_t add_byte_products(std::uint32_t x, std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum;
  asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(x));
  return sum;
}

}  // namespace rigel::arch
