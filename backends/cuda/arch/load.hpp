// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads that the compiler does not move (PTX ISA, "ld"), and requests for what will be loaded ("prefetch").
#pragma once

#include <cstdint>

namespace rigel::arch {

/// 16 bits of global memory in the low half of a register, zeros in the high half. Clang would combine two such values right
/// after their loads, and the thread would wait for memory there.
__device__ __forceinline__ std::uint32_t load_short(const std::uint16_t* from) {
  std::uint32_t value;
  asm volatile("ld.global.u16 %0, [%1];" : "=r"(value) : "l"(from));
  return value;
}

/// A line of the L2 cache.
inline constexpr int line_bytes = 128;

/// Brings the line that has an address to the L2 cache. Nothing waits.
__device__ __forceinline__ void prefetch_line(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" : : "l"(address) : "memory");
}

}  // namespace rigel::arch
