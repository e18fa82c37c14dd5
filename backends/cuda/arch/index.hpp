// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace rigel::arch {

/// blockIdx.x, threadIdx.x and the lane in the warp, read again at each call: between calls the compiler keeps neither them nor
/// values derived from them in registers.
__device__ __forceinline__ unsigned block_index() {
  unsigned index;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}
__device__ __forceinline__ unsigned thread_index() {
  unsigned index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}
__device__ __forceinline__ int lane_index() {
  int index;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(index));
  return index;
}

}  // namespace rigel::arch
