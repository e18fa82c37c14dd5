// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a thread block cuts a tile of C: which thread holds which outputs.
#pragma once

namespace rigel::tile {

/// A block of ThreadsM × ThreadsN threads computes ThreadsM·OutputsM × ThreadsN·OutputsN outputs of C, in slabs of Depth
/// values of k. `blocks` is the number of blocks that a multiprocessor must be able to hold at a time (it limits the
/// registers of a thread to 65,536 / (blocks · threads)). With `Ahead` a thread reads the operands of k + 1 while it works
/// on those of k, which takes a second set of registers.
template <int ThreadsM, int ThreadsN, int OutputsM, int OutputsN, int Depth, int Blocks, bool Ahead>
struct Shape {
  static constexpr int threads_m = ThreadsM, threads_n = ThreadsN, threads = ThreadsM * ThreadsN;
  static constexpr int outputs_m = OutputsM, outputs_n = OutputsN;
  static constexpr int m = ThreadsM * OutputsM, n = ThreadsN * OutputsN, depth = Depth;
  static constexpr int blocks = Blocks;
  static constexpr bool ahead = Ahead;
};

/// The place of a thread in its block. A warp covers 4 × 8 threads (of a block at least that wide), so that its reads of
/// a slab are broadcasts of 64 and 128 contiguous bytes.
template <class Shape>
struct Place {
  static constexpr int warp_n = Shape::threads_n < 8 ? Shape::threads_n : 8, warp_m = 32 / warp_n;
  static constexpr int warps_n = Shape::threads_n / warp_n;
  static_assert(Shape::threads_m % warp_m == 0 && Shape::threads_n % warp_n == 0);

  int m, n;
  __device__ __forceinline__ explicit Place(int thread)
      : m(thread / 32 / warps_n * warp_m + thread % 32 / warp_n), n(thread / 32 % warps_n * warp_n + thread % warp_n) {}
};

/// The line (row or column of the tile) of output i of the thread at place t, of `threads` along that axis: outputs come
/// in chunks of `chunk` neighbours, the chunks of all threads interleaved.
template <int threads, int chunk>
__device__ __forceinline__ constexpr int line_of(int i, int t) {
  return (i / chunk * threads + t) * chunk + i % chunk;
}

}  // namespace rigel::tile
