// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cp.async.bulk.tensor (PTX ISA, "Data Movement and Conversion Instructions: Tensor copy", sm_90): copies a box of a
// three-dimensional tensor from global to shared memory; what lies beyond the tensor's extents becomes zeros. The host
// encodes the tensor map, which holds address, extents, strides, box and swizzling mode.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace rigel::arch {

__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(map) : "memory");
}

/// Copies the box that begins at (x, y, z); `barrier` counts its bytes.
__device__ __forceinline__ void copy_tensor(std::uint32_t shared, const CUtensorMap* map, int x, int y, int z,
                                            std::uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
               :
               : "r"(shared), "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
               : "memory");
}

/// The same to each block of the cluster whose bit is set in `blocks`, at the same offsets in its shared memory.
__device__ __forceinline__ void copy_tensor_to(std::uint16_t blocks, std::uint32_t shared, const CUtensorMap* map, int x,
                                               int y, int z, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;"
      :
      : "r"(shared), "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"(blocks)
      : "memory");
}

}  // namespace rigel::arch
