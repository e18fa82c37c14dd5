// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a thread block divides a tile of C: which thread holds which outputs.
#pragma once

#include <rigel/backends/cuda/tile/role.hpp>

namespace rigel::tile {

/// A block of ThreadsM × ThreadsN threads computes ThreadsM·OutputsM × ThreadsN·OutputsN outputs of C, in slabs of Depth
/// elements along K. `Blocks` is the number of blocks that a multiprocessor must be able to hold at a time; it limits a
/// thread to 65,536 / (Blocks · threads) registers. With `Ahead` a thread prefetches the operands of k + 1 into a second set
/// of registers while it works on those of k.
template <int ThreadsM, int ThreadsN, int OutputsM, int OutputsN, int Depth, int Blocks, bool Ahead, Role Which = Role::only>
struct Shape {
  static constexpr int threads_m = ThreadsM, threads_n = ThreadsN, threads = ThreadsM * ThreadsN;
  static constexpr int outputs_m = OutputsM, outputs_n = OutputsN;
  static constexpr int m = ThreadsM * OutputsM, n = ThreadsN * OutputsN, depth = Depth;
  static constexpr int blocks = Blocks;
  static constexpr bool ahead = Ahead;
  static constexpr Role role = Which;
};

/// The same tile for one block on a multiprocessor, with as many registers as a thread may have.
template <class Shape>
using OneBlock = tile::Shape<Shape::threads_m, Shape::threads_n, Shape::outputs_m, Shape::outputs_n, Shape::depth, 1,
                             Shape::ahead, Shape::role>;

/// The place of a thread in its block. A warp covers 4 × 8 threads if the block is at least 8 wide, so its reads of a slab
/// are broadcasts of 64 and 128 contiguous bytes.
template <class Shape>
struct Place {
  static constexpr int warp_n = Shape::threads_n < 8 ? Shape::threads_n : 8, warp_m = 32 / warp_n;
  static constexpr int warps_n = Shape::threads_n / warp_n;
  static_assert(Shape::threads_m % warp_m == 0 && Shape::threads_n % warp_n == 0);

  int m, n;
  __device__ __forceinline__ explicit Place(int thread)
      : m(thread / 32 / warps_n * warp_m + thread % 32 / warp_n), n(thread / 32 % warps_n * warp_n + thread % warp_n) {}
};

/// The row or column of the tile that output i of the thread at place t has, of `threads` along that axis. Outputs come in
/// chunks of `chunk` neighbours; the chunks of all threads are interleaved.
template <int threads, int chunk>
__device__ __forceinline__ constexpr int line_of(int i, int t) {
  return (i / chunk * threads + t) * chunk + i % chunk;
}

}  // namespace rigel::tile
