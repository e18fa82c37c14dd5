// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cp.async (PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy", sm_80): from global to shared memory
// past the registers.
#pragma once

#include <cstdint>

namespace rigel::arch {

/// Copies 4, 8 or 16 bytes, aligned to their number; 16 past the L1 cache too, unless they are to be `cached`.
template <int bytes, bool cached = false>
__device__ __forceinline__ void copy_async(void* shared, const void* global) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  if constexpr (bytes == 16 && !cached)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(global) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" : : "r"(to), "l"(global), "n"(bytes) : "memory");
}

/// Copies the first `bytes` of 16, from an address aligned to 16, and writes zeros for the others, which are not read
/// (compute-sanitizer's memcheck takes all 16 for read).
__device__ __forceinline__ void copy_async_part(void* shared, const void* global, int bytes) {
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(global), "r"(bytes) : "memory");
}

/// Copies 16 bytes, or writes zeros and reads nothing.
__device__ __forceinline__ void copy_async_or_zero(std::uint32_t shared, const void* global, bool present) {
  asm volatile("{.reg .pred absent; setp.eq.b32 absent, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, absent;}"
               :
               : "r"(shared), "l"(global), "r"(static_cast<int>(present))
               : "memory");
}

/// Ends a group of this thread's copies.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most `groups` of this thread's groups are under way.
template <int groups>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(groups) : "memory");
}

}  // namespace rigel::arch
