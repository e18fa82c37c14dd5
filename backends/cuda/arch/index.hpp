// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace rigel::arch {

/// blockIdx.x, read anew at each call: the compiler neither keeps it in a register from one call to the next nor what
/// follows from it.
__device__ __forceinline__ unsigned block_index() {
  unsigned index;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}

}  // namespace rigel::arch
