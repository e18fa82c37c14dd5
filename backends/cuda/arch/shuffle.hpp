// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace rigel::arch {

/// Joins the values of the lanes whose distances are multiples of `apart`, in pairs, the farthest first. Each of these lanes
/// gets the result. All lanes of the warp must call it.
template <int apart = 1, class T, class Join>
__device__ __forceinline__ T joined_lanes(T x, const Join& join) {
#pragma unroll
  for (int distance = 16; distance >= apart; distance /= 2) x = join(x, __shfl_xor_sync(~0u, x, distance));
  return x;
}

}  // namespace rigel::arch
