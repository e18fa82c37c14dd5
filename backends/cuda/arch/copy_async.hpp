// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cp.async (PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy", sm_80): from global to shared memory,
// bypassing the registers.
#pragma once

#include <cstdint>

namespace rigel::arch {

/// Copies 4, 8 or 16 bytes, aligned to their number. Copies of 16 also bypass the L1 cache, unless `cached`.
template <int bytes, bool cached = false>
__device__ __forceinline__ void copy_async(void* shared, const void* global) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  if constexpr (bytes == 16 && !cached)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(global) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" : : "r"(to), "l"(global), "n"(bytes) : "memory");
}

/// Copies the first `count` of four words from an address aligned to 16 bytes and writes zeros for the others; a count below
/// 1 copies none, one above 4 copies four. Fewer than four are copied one by one, since 16 bytes may reach beyond the
/// allocation.
__device__ __forceinline__ void copy_async_words(void* shared, const void* global, int count) {
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  // A single statement takes no registers but its operands.
  asm volatile(
      "{.reg .pred whole, some, has;"
      "setp.ge.s32 whole, %2, 4;"
      "setp.lt.s32 some, %2, 4;"
      "@whole cp.async.cg.shared.global [%0], [%1], 16;"
      "setp.ge.and.s32 has, %2, 1, some;"
      "@has cp.async.ca.shared.global [%0], [%1], 4;"
      "setp.ge.and.s32 has, %2, 2, some;"
      "@has cp.async.ca.shared.global [%0 + 4], [%1 + 4], 4;"
      "setp.ge.and.s32 has, %2, 3, some;"
      "@has cp.async.ca.shared.global [%0 + 8], [%1 + 8], 4;"
      "setp.lt.s32 has, %2, 1;"
      "@has st.shared.u32 [%0], 0;"
      "setp.lt.s32 has, %2, 2;"
      "@has st.shared.u32 [%0 + 4], 0;"
      "setp.lt.s32 has, %2, 3;"
      "@has st.shared.u32 [%0 + 8], 0;"
      "@some st.shared.u32 [%0 + 12], 0;}"
      :
      : "r"(to), "l"(global), "r"(count)
      : "memory");
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

/// Waits until at most `groups` of this thread's groups are in flight.
template <int groups>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(groups) : "memory");
}

}  // namespace rigel::arch
