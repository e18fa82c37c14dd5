// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cp.async with a prefetch to the L2 cache (PTX ISA, "cp.async", .level::prefetch_size, sm_80).
#pragma once

#include <cstdint>

namespace rigel::arch {

/// The bytes of memory that copy_async_ahead() brings to the L2 cache, aligned to their number.
inline constexpr int bytes_ahead = 256;

/// copy_async<16>() of memory that will be read from its beginning to its end.
__device__ __forceinline__ void copy_async_ahead(void* shared, const void* global) {
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" : : "r"(to), "l"(global) : "memory");
}

}  // namespace rigel::arch
