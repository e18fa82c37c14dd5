// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile of accumulators between registers and any code that handles one output at a time. Register arrays need
// unrolled code and the code for one output may be long, so the tile passes through shared memory in pieces: the long
// code stands once, in a loop that is not unrolled, and neighbouring threads get neighbours in C's own order.
#pragma once

#include <backends/cuda/tile/shape.hpp>

namespace rigel::tile {

template <class Accumulator, class Shape, int chunk>
class Exchange {
  // A piece has `height` × `width` outputs of each thread: a chunk by a chunk where that fits.
  static constexpr int capacity = 20 * 1024;  // bytes, about what the slabs take anyway
  static constexpr int size_of_one = Shape::threads * static_cast<int>(sizeof(Accumulator));
  static constexpr int width = chunk * size_of_one <= capacity ? chunk : 1;
  static constexpr int height = chunk * width * size_of_one <= capacity ? chunk : 1;
  static constexpr int rows = Shape::threads_m * height, columns = Shape::threads_n * width;
  static constexpr int pieces_n = Shape::outputs_n / width, pieces = Shape::outputs_m / height * pieces_n;
  static constexpr int pitch = columns + 1;  // reads down a column meet different banks

 public:
  using Registers = Accumulator[Shape::outputs_m][Shape::outputs_n];
  static constexpr int size = rows * pitch;  // accumulators in shared memory

  /// use(x, m, n) for every output of the tile; consecutive threads take neighbours along n, or along m.
  template <class Use>
  __device__ __forceinline__ static void for_each(const Registers& x, Accumulator* shared, Place<Shape> place, int thread,
                                                  bool along_n, const Use& use) {
#pragma unroll 1
    for (int piece = 0; piece < pieces; ++piece) {
      __syncthreads();
      registers_of(piece, place, [&](int i, int j, int at) { shared[at] = x[i][j]; });
      __syncthreads();
      elements_of(piece, thread, along_n, [&](int m, int n, int at) { use(shared[at], m, n); });
    }
  }

  /// x = make(m, n) for every output of the tile, in the same order.
  template <class Make>
  __device__ __forceinline__ static void fill(Registers& x, Accumulator* shared, Place<Shape> place, int thread,
                                              bool along_n, const Make& make) {
#pragma unroll 1
    for (int piece = 0; piece < pieces; ++piece) {
      elements_of(piece, thread, along_n, [&](int m, int n, int at) { shared[at] = make(m, n); });
      __syncthreads();
      registers_of(piece, place, [&](int i, int j, int at) { x[i][j] = shared[at]; });
      __syncthreads();
    }
  }

 private:
  // visit(i, j, place in shared memory) for the registers of this thread that belong to a piece.
  template <class Visit>
  __device__ __forceinline__ static void registers_of(int piece, Place<Shape> place, const Visit& visit) {
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if (p != piece) continue;
#pragma unroll
      for (int i = 0; i < height; ++i)
#pragma unroll
        for (int j = 0; j < width; ++j)
          visit(p / pieces_n * height + i, p % pieces_n * width + j,
                (place.m * height + i) * pitch + place.n * width + j);
    }
  }

  // visit(m, n, place in shared memory) for this thread's share of a piece.
  template <class Visit>
  __device__ __forceinline__ static void elements_of(int piece, int thread, bool along_n, const Visit& visit) {
#pragma unroll 1
    for (int e = thread; e < rows * columns; e += Shape::threads) {
      const int row = along_n ? e / columns : e % rows, column = along_n ? e % columns : e / rows;
      visit(line_of<Shape::threads_m, chunk>(piece / pieces_n * height + row % height, row / height),
            line_of<Shape::threads_n, chunk>(piece % pieces_n * width + column % width, column / width),
            row * pitch + column);
    }
  }
};

}  // namespace rigel::tile
