// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cp.async.bulk (PTX ISA, "Data Movement and Conversion Instructions: Bulk copy", sm_90): copies bytes as they lie.
#pragma once

#include <cstdint>

namespace rigel::arch {

/// Copies a multiple of 16 bytes, from and to multiples of 16, from global to shared memory; `barrier` counts them.
__device__ __forceinline__ void copy_bytes(std::uint32_t shared, const void* from, unsigned bytes, std::uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :
               : "r"(shared), "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

}  // namespace rigel::arch
