// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The barriers of a block by number (PTX ISA, "Parallel Synchronization and Communication Instructions: barrier{.cta}"). Barrier 0
// is that of __syncthreads(); there are 16. Unlike there, threads may wait at different places of the code. A barrier completes when
// `threads` threads, whole warps, wait there, and can then be used again. What they wrote before is visible to all of them.
#pragma once

namespace rigel::arch {

template <int threads>
__device__ __forceinline__ void wait_at(int barrier) {
  asm volatile("barrier.cta.sync %0, %1;" : : "r"(barrier), "n"(threads) : "memory");
}

/// The same; returns whether `x` holds for all of the threads.
template <int threads>
__device__ __forceinline__ bool all_at(int barrier, bool x) {
  int all;
  asm volatile("{.reg .pred x, all; setp.ne.s32 x, %3, 0; barrier.cta.red.and.pred all, %1, %2, x; selp.s32 %0, 1, 0, all;}"
               : "=r"(all)
               : "r"(barrier), "n"(threads), "r"(static_cast<int>(x))
               : "memory");
  return all != 0;
}

}  // namespace rigel::arch
