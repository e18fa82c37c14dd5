// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves a tile of accumulators between registers and code that handles one output at a time. Register arrays need unrolled
// code, and the code for one output may be long. So the tile passes through shared memory in pieces: the long code is
// instantiated once, in a loop that is not unrolled, and neighbouring threads get neighbours in C's own order.
#pragma once

#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/backends/cuda/tile/shape.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>

#include <algorithm>
#include <cstdint>

namespace rigel::tile {

template <class Accumulator, class Shape, int chunk>
class Exchange {
  // A piece has `height` × `width` outputs of each thread: a chunk by a chunk if that fits.
  static constexpr int capacity = 20 * 1024;  // bytes, about what the slabs take anyway
  static constexpr int size_of_one = Shape::threads * static_cast<int>(sizeof(Accumulator));
  static constexpr int width = chunk * size_of_one <= capacity ? chunk : 1;
  static constexpr int height = chunk * width * size_of_one <= capacity ? chunk : 1;
  static constexpr int pieces_n = Shape::outputs_n / width, pieces = Shape::outputs_m / height * pieces_n;
  static constexpr int pitch = Shape::threads_n * width + 1;  // padding: reads down a column use different banks

 public:
  static constexpr int rows = Shape::threads_m * height, columns = Shape::threads_n * width;  // of a piece
  using Registers = Accumulator[Shape::outputs_m][Shape::outputs_n];
  static constexpr int size = rows * pitch;  // accumulators in shared memory

  /// The outputs of a piece that a thread stores: all lie in one row or column.
  struct Groups {
    static constexpr int of_thread = rows * columns / Shape::threads;
    static constexpr int width = of_thread % 2 == 0 ? 2 : 1, together = of_thread % 4 == 0 ? 2 : 1;
    const Accumulator* shared;
    int slot_step;
    int first, groups;  // the first group, and how many there are from there on
    int m, n;           // of the thread's first output in the tile
    int apart_m, apart_n, next_m, next_n;
    template <class T>
    __device__ __forceinline__ void load(T (&values)[together][width]) const {
      int slot = first * width * slot_step;
      asm volatile("" : "+r"(slot));  // computed here: a pointer that the loop advances would take more registers
#pragma unroll
      for (int t = 0; t < together; ++t)
#pragma unroll
        for (int v = 0; v < width; ++v) values[t][v] = shared[slot + (t * width + v) * slot_step];
    }
    /// Whether any come.
    __device__ __forceinline__ bool choose() { return groups > 0; }
    /// How many outputs come next.
    __device__ __forceinline__ int count() const { return together * width; }
    __device__ __forceinline__ bool exists(int, int) const { return true; }
    __device__ __forceinline__ void advance() {
      first += together;
      groups -= together;
    }
  };
  /// The same of those that exist. `groups`: how many come next.
  struct CutGroups : Groups {
    using Groups::together, Groups::width;
    int left = 0;  // how many outputs exist from the first group on

    /// The groups that come next: if `together` are not complete, one; of the last output alone, one whose second is a 0 in the same place.
    __device__ __forceinline__ bool choose() {
      this->groups = left < together * width ? 1 : together;
      if (left < width) this->apart_m = this->apart_n = 0;
      return left > 0;
    }
    __device__ __forceinline__ int count() const { return std::min(left, this->groups * width); }
    template <class T>
    __device__ __forceinline__ void load(T (&values)[together][width]) const {
#pragma unroll
      for (int t = 0; t < together; ++t)
#pragma unroll
        for (int v = 0; v < width; ++v)
          values[t][v] = exists(t, v) ? this->shared[((this->first + t) * width + v) * this->slot_step] : 0;
    }
    __device__ __forceinline__ bool exists(int t, int v) const { return t * width + v < count(); }
    __device__ __forceinline__ void advance() {
      this->first += this->groups;
      left -= this->groups * width;
    }
  };

  /// A piece of the tile in shared memory.
  class Piece {
   public:
    /// Its first row and column in the tile.
    __device__ __forceinline__ int first_m() const {
      return line_in_tile<Shape::threads_m, height>(number_ / pieces_n * height, 0);
    }
    __device__ __forceinline__ int first_n() const {
      return line_in_tile<Shape::threads_n, width>(number_ % pieces_n * width, 0);
    }

    /// use(x, m, n) for every output of the piece; consecutive threads take neighbours along n, or along m.
    template <class Use>
    __device__ __forceinline__ void for_each(bool along_n, const Use& use) const {
      elements_of(number_, thread_, along_n, [&](int m, int n, int at) { use(shared_[at], m, n); });
    }

    /// use(x, c) for each output of the piece that is among the tile's first `last_m` × `last_n`, in the same order. c is
    /// the output's element of a matrix, `tile` that of the tile's first output. Strides in elements. `is_assembly`: of `use`, whose
    /// turns the compiler then cannot repeat, since it does not know how many there are.
    template <bool is_assembly = false, class T, class Use>
    __device__ __forceinline__ void for_each(T* tile, std::int64_t row_stride, std::int64_t column_stride, int last_m,
                                             int last_n, bool along_n, const Use& use) const {
      static_assert(Shape::threads % rows == 0 && Shape::threads % columns == 0);
      constexpr int m_apart = height == chunk ? 1 : chunk, n_apart = width == chunk ? 1 : chunk;
      const int row = along_n ? thread_ / columns : thread_ % rows, column = along_n ? thread_ % columns : thread_ / rows;
      const int m = line_in_tile<Shape::threads_m, height>(number_ / pieces_n * height, row);
      const int n = line_in_tile<Shape::threads_n, width>(number_ % pieces_n * width, column);
      // A thread's outputs are in different rows (`along_n`), or in different columns.
      const int step = Shape::threads / (along_n ? columns : rows);
      const int count = count_of(m, n, last_m, last_n, along_n);
      const int slot_step = step * (along_n ? pitch : 1);
      const std::int64_t c_step = step * (along_n ? m_apart * row_stride : n_apart * column_stride);
      T* c = tile + m * row_stride + n * column_stride;
      const Accumulator* slot = shared_ + row * pitch + column;
      if constexpr (is_assembly) {
        for (int i = 0; i < count; ++i, c += c_step, slot += slot_step) use(*slot, *c);
      } else {
#pragma unroll 4
        for (int i = 0; i < count; ++i, c += c_step, slot += slot_step) use(*slot, *c);
      }
    }

    /// This thread's outputs of the piece, in groups, as Program::run_on() takes them; those of consecutive threads are
    /// neighbours along n, or along m.
    __device__ __forceinline__ Groups groups(bool along_n) const {
      static_assert((height == chunk || rows == Shape::threads_m) && Shape::threads % rows == 0 &&
                    Shape::threads % columns == 0);
      constexpr int m_apart = height == chunk ? 1 : chunk, n_apart = width == chunk ? 1 : chunk;
      const int row = along_n ? thread_ / columns : thread_ % rows, column = along_n ? thread_ % columns : thread_ / rows;
      const int step = Shape::threads / (along_n ? columns : rows);
      Groups g;
      g.shared = shared_ + row * pitch + column;
      g.first = 0;
      g.slot_step = step * (along_n ? pitch : 1);
      g.groups = (along_n ? rows : columns) / step / Groups::width;
      g.m = line_in_tile<Shape::threads_m, height>(number_ / pieces_n * height, row);
      g.n = line_in_tile<Shape::threads_n, width>(number_ % pieces_n * width, column);
      g.apart_m = along_n ? m_apart * step : 0;
      g.apart_n = along_n ? 0 : n_apart * step;
      g.next_m = Groups::width * g.apart_m;
      g.next_n = Groups::width * g.apart_n;
      return g;
    }

    /// How many of a thread's outputs of the piece are among the tile's first `last_m` × `last_n`, if (m, n) is its first one.
    __device__ __forceinline__ static int count_of(int m, int n, int last_m, int last_n, bool along_n) {
      constexpr int m_apart = height == chunk ? 1 : chunk, n_apart = width == chunk ? 1 : chunk;
      const int step = Shape::threads / (along_n ? columns : rows), most = (along_n ? rows : columns) / step;
      const int lines_left = along_n ? (last_m - m + m_apart - 1) / m_apart : (last_n - n + n_apart - 1) / n_apart;
      const int count = (along_n ? n < last_n : m < last_m) ? (lines_left + step - 1) / step : 0;
      return count < most ? count : most;
    }

   private:
    friend Exchange;
    Accumulator* shared_;
    int number_, thread_;
    __device__ __forceinline__ Piece(Accumulator* shared, int number, int thread)
        : shared_(shared), number_(number), thread_(thread) {}
  };

  /// use(piece) for every piece of the tile.
  template <class Use>
  __device__ __forceinline__ static void for_each(const Registers& x, Accumulator* shared, Place<Shape> place, int thread,
                                                  const Use& use) {
#pragma unroll 1
    for (int piece = 0; piece < pieces; ++piece) {
      __syncthreads();
      registers_of(piece, shared, place, [&](int i, int j, Accumulator& slot) { slot = x[i][j]; });
      __syncthreads();
      use(Piece(shared, piece, thread));
    }
  }

  /// x = *from(m, n) for every output of the tile, in the same order, by asynchronous copies.
  template <class From>
  __device__ __forceinline__ static void copy(Registers& x, Accumulator* shared, Place<Shape> place, int thread,
                                              bool along_n, const From& from) {
#pragma unroll 1
    for (int piece = 0; piece < pieces; ++piece) {
      elements_of(piece, thread, along_n,
                  [&](int m, int n, int at) { arch::copy_async<sizeof(Accumulator)>(&shared[at], from(m, n)); });
      arch::commit_copies();
      arch::wait_for_copies<0>();
      __syncthreads();
      registers_of(piece, shared, place, [&](int i, int j, const Accumulator& slot) { x[i][j] = slot; });
      __syncthreads();
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
      registers_of(piece, shared, place, [&](int i, int j, const Accumulator& slot) { x[i][j] = slot; });
      __syncthreads();
    }
  }

 private:
  // visit(i, j, element of shared memory) for the registers of this thread that belong to a piece.
  template <class Visit>
  __device__ __forceinline__ static void registers_of(int piece, Accumulator* shared, Place<Shape> place,
                                                      const Visit& visit) {
    // One pointer and constants: a sum of integers for every element would take the compiler several times as long.
    Accumulator* const own = shared + place.m * height * pitch + place.n * width;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if (p != piece) continue;
#pragma unroll
      for (int i = 0; i < height; ++i)
#pragma unroll
        for (int j = 0; j < width; ++j) visit(p / pieces_n * height + i, p % pieces_n * width + j, own[i * pitch + j]);
    }
  }

  // The row or column of the tile that is number `l` of a piece; the piece starts with output `first` of each thread.
  template <int threads, int outputs>
  __device__ __forceinline__ static int line_in_tile(int first, int l) {
    if constexpr (outputs == chunk)
      return first * threads + l;  // the chunks of all threads
    else
      return line_of<threads, chunk>(first, l);
  }

  // visit(m, n, place in shared memory) for this thread's share of a piece.
  template <class Visit>
  __device__ __forceinline__ static void elements_of(int piece, int thread, bool along_n, const Visit& visit) {
    static_assert((height == 1 || height == chunk) && (width == 1 || width == chunk));
#pragma unroll 1
    for (int e = thread; e < rows * columns; e += Shape::threads) {
      const int row = along_n ? e / columns : e % rows, column = along_n ? e % columns : e / rows;
      visit(line_in_tile<Shape::threads_m, height>(piece / pieces_n * height, row),
            line_in_tile<Shape::threads_n, width>(piece % pieces_n * width, column), row * pitch + column);
    }
  }
};

/// Moves a tile of accumulators to the rows of a matrix: each warp transposes its part in shared memory of its own, without
/// waiting for other warps, so that 32 threads take 32 neighbours of a row.
template <class Accumulator, class Shape, int chunk>
class WarpExchange {
  using In = Place<Shape>;
  static constexpr int groups = Shape::outputs_n / chunk;  // groups of row neighbours that a warp holds
  static constexpr int at_a_time = 16;                     // outputs that a thread sees at a time, to hide latency
  static constexpr int height = groups * In::warp_m < at_a_time ? at_a_time / (groups * In::warp_m) : 1;  // along m
  static constexpr int pitch = groups * 32;
  static_assert(In::warp_n * chunk == 32 && Shape::outputs_n % chunk == 0 && chunk % height == 0 &&
                Shape::outputs_m % height == 0);

 public:
  static constexpr int size = Shape::threads / 32 * In::warp_m * height * pitch;  // accumulators in shared memory

  /// What a thread sees of the tile at a time: the accumulators of rows m + row(r) and columns n + column(q).
  struct View {
    static constexpr int rows = In::warp_m * height, columns = groups;
    const Accumulator* first;
    int m, n;
    __device__ __forceinline__ Accumulator operator()(int r, int q) const { return first[r * pitch + q * 32]; }
    __device__ __forceinline__ static constexpr int row(int r) { return r / height * chunk + r % height; }
    __device__ __forceinline__ static constexpr int column(int q) { return q * Shape::threads_n * chunk; }
  };

  /// use(view) for all outputs, `height` of a thread along m at a time: unrolled, or one copy of the code in a loop.
  template <bool unrolled, class Use>
  __device__ __forceinline__ static void for_each(const Accumulator (&x)[Shape::outputs_m][Shape::outputs_n],
                                                  Accumulator* shared, Place<Shape> place, int thread, const Use& use) {
    const int lane = thread % 32, first_m = place.m - lane / In::warp_n, first_n = place.n - lane % In::warp_n;
    Accumulator* const own = shared + thread / 32 * In::warp_m * height * pitch;
    Accumulator* const to = own + lane / In::warp_n * height * pitch + lane % In::warp_n * chunk;
    const auto put = [&](int i) __attribute__((always_inline)) {
#pragma unroll
      for (int h = 0; h < height; ++h)
#pragma unroll
        for (int j = 0; j < Shape::outputs_n; j += chunk) {
          Chunk<Accumulator, chunk> values;
#pragma unroll
          for (int v = 0; v < chunk; ++v) values.value[v] = x[i + h][j + v];
          values.store(to + h * pitch + j / chunk * 32);
        }
    };
    const auto get = [&](int i) __attribute__((always_inline)) {
      use(View{own + lane, line_of<Shape::threads_m, chunk>(i, first_m), first_n * chunk + lane});
    };
    __syncthreads();
    if constexpr (unrolled) {
#pragma unroll
      for (int i = 0; i < Shape::outputs_m; i += height) {
        __syncwarp();
        put(i);
        __syncwarp();
        get(i);
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < Shape::outputs_m; i += height) {
        __syncwarp();
#pragma unroll
        for (int o = 0; o < Shape::outputs_m; o += height)
          if (o == i) put(o);
        __syncwarp();
        get(i);
      }
    }
  }
};

}  // namespace rigel::tile
