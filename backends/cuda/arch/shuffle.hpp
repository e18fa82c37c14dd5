// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace rigel::arch {

/// What `join` makes of the lanes of a warp that are a multiple of `apart` from each other, in pairs, the farthest first; all of them
/// get it. All lanes call it.
template <int apart = 1, class T, class Join>
__device__ __forceinline__ T joined_lanes(T x, const Join& join) {
#pragma unroll
  for (int distance = 16; distance >= apart; distance /= 2) x = join(x, __shfl_xor_sync(~0u, x, distance));
  return x;
}

}  // namespace rigel::arch
