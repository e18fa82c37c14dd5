// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same for few rows against many columns that are contiguous along K, at the speed of memory. A block's threads have a column each, and
// all rows of it: each score is one chain in ascending k. The columns come in slabs of 128 bytes each, prefetched to shared memory; rows stay
// there. After some columns a thread gives its scores to an outlet, which knows it as one of all that share a row.
#pragma once

#include <rigel/backends/cuda/arch/copy_ahead.hpp>
#include <rigel/backends/cuda/reduce/kernel.hpp>

namespace rigel::backends::reduce {

/// Blocks that compute `Rows` rows of S at a time, with `Stages` slabs of `Vectors` vectors of 16 bytes of each column. Those of one row leave
/// room for a third block on a multiprocessor of compute capability 9.0.
template <class S, int Rows, int Vectors = 8, int Stages = 3>
struct Few {
  using T = score_of<S>;
  using Element = typename S::element;
  using Operand = operand_t<S>;
  static constexpr int rows = Rows, threads = 128, stages = Stages;
  static constexpr int states = Rows < threads / 32 ? threads / 32 : Rows;  // rows of a unit's state: what a block joins
  static constexpr int vectors = Vectors, pitch = (vectors + 1) * 16;   // of a column in a slab; bytes, spread over banks
  static constexpr int width = 16 / static_cast<int>(sizeof(Element));  // elements of a vector
  static constexpr int slab_bytes = threads * pitch;
  static constexpr int each = Rows == 1 ? 8 : 4;  // scores of a row that a thread has before it gives them away
  static constexpr int score_bytes = Rows * each * threads * static_cast<int>(sizeof(T));
  static constexpr int most_row_bytes = 32 * 1024;  // of all rows

  template <bool largest>
  using Extremum = reduce::Extremum<T, largest, Rows, threads, Rows>;
  using Counter = reduce::Counter<T, Rows, threads, Rows>;
  using Best = BestOfBlock<T, Rows, threads>;

  /// Operands of a row in shared memory, as whole vectors.
  static constexpr std::int64_t row_length(std::int64_t k) { return (k + width - 1) / width * width; }
  static constexpr std::int64_t row_bytes(std::int64_t k) {
    return (Rows * row_length(k) * static_cast<std::int64_t>(sizeof(Operand)) + 15) / 16 * 16;
  }
  static constexpr int outlet_bytes(Reducer reducer, int count) {
    switch (reducer) {
      case Reducer::minimum:
      case Reducer::maximum: return Extremum<false>::shared_bytes;
      case Reducer::count_below: return Counter::shared_bytes;
      case Reducer::smallest:
      case Reducer::largest: return Best::shared_bytes(count);
      default: return 0;  // few_supports() declines it
    }
  }
  static constexpr int shared_bytes(Reducer reducer, std::int64_t count, std::int64_t k) {
    return stages * slab_bytes + score_bytes + outlet_bytes(reducer, static_cast<int>(count)) +
           static_cast<int>(row_bytes(k));
  }
  static constexpr int most_shared_bytes =
      stages * slab_bytes + score_bytes +
      std::max(outlet_bytes(Reducer::minimum, 1), outlet_bytes(Reducer::smallest, most_best)) + most_row_bytes;

  template <class Visit>
  __device__ __forceinline__ static void visit(const Launch<T>& launch, void* shared, const Visit& visit) {
    using Kept = reduce::Kept<T>;
    switch (launch.reducer) {
      case Reducer::minimum: return visit(Extremum<false>{static_cast<Kept*>(shared)});
      case Reducer::maximum: return visit(Extremum<true>{static_cast<Kept*>(shared)});
      case Reducer::count_below: return visit(Counter{static_cast<std::int32_t*>(shared)});
      case Reducer::smallest:
      case Reducer::largest: return visit(Best(launch.reducer == Reducer::largest, shared, launch.count));
      default: return;
    }
  }
};

/// Rows beyond the last one repeat it. Without columns A need not exist.
template <class Shape, int Rows, class Arguments>
__device__ __forceinline__ void load_rows(const Arguments& g, typename Shape::Operand* to, int length, unsigned l,
                                          std::int64_t m0, int rows) {
  for (int i = static_cast<int>(threadIdx.x); i < Rows * length; i += Shape::threads) {
    const int row = i / length, k = i - row * length;
    to[i] = static_cast<typename Shape::Operand>(g.a.at(l, m0 + std::min(row, rows - 1), k));
  }
}

/// Whether at least half of what a copy brings to the L2 cache belongs to columns.
template <class Element>
__device__ __forceinline__ bool copies_ahead(const detail::ProductArguments<Element>& g) {
  return g.b.column <= 2 * g.k || g.k * static_cast<int>(sizeof(Element)) >= 2 * arch::bytes_ahead;
}

/// Starts the copies of a slab of a tile. A thread copies one vector of every sixteenth column. `ahead`: what lies next to it in memory will
/// be read, too.
template <class Shape, class Arguments>
__device__ __forceinline__ void copy_slab(const Arguments& g, unsigned char* stage, unsigned l, int tile, int slab,
                                          int vectors, bool ahead) {
  using Element = typename Shape::Element;
  constexpr int threads = Shape::threads;
  const int thread = static_cast<int>(threadIdx.x), vector = thread % Shape::vectors;
  if (slab * Shape::vectors + vector >= vectors) return;
  const std::int64_t n0 = std::int64_t{tile} * threads;
  const int last = static_cast<int>(std::min<std::int64_t>(g.n - n0, threads)) - 1;
  const Element* const from = &g.b.at(l, 0, n0) + (slab * Shape::vectors + vector) * Shape::width;
#pragma unroll
  for (int i = 0; i < Shape::vectors; ++i) {
    const int column = thread / Shape::vectors + i * (threads / Shape::vectors);
    void* const to = stage + vector * 16 + column * Shape::pitch;
    const Element* const address = from + std::min(column, last) * g.b.column;
    if (ahead)
      arch::copy_async_ahead(to, address);
    else
      arch::copy_async<16>(to, address);
  }
}

/// Adds a vector of a column, elements k and after, to the sums of all rows.
template <class Shape, class S, int Rows>
__device__ __forceinline__ void add_vector(const S& s, typename Shape::T (&x)[Rows], const unsigned char* vector_of_column,
                                           const typename Shape::Operand* of_rows, int length, int k) {
  using Element = typename Shape::Element;
  using Operand = typename Shape::Operand;
  constexpr int width = Shape::width, part = std::min(width, 16 / static_cast<int>(sizeof(Operand)));
  const auto vector = tile::Chunk<Element, width>::load(reinterpret_cast<const Element*>(vector_of_column));
#pragma unroll
  for (int w = 0; w < width; w += part) {
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const auto a = tile::Chunk<Operand, part>::load(of_rows + r * length + k + w);
#pragma unroll
      for (int i = 0; i < part; ++i)
        x[r] = step(s, x[r], a.value[i], static_cast<Operand>(vector.value[w + i]), std::int64_t{k + w + i});
    }
  }
}

/// A thread's scores of row r and columns n, n + threads, …, after the epilogue.
template <class Shape, class Arguments, class Launch>
__device__ __forceinline__ auto part_of(const Arguments& g, const Launch& launch, typename Shape::T* scores, unsigned l,
                                        std::int64_t m0, std::int64_t n, int r, int count) {
  constexpr int threads = Shape::threads;
  if (g.finish.program.power() == 0.5) {
#pragma unroll
    for (int i = 0; i < Shape::each; ++i) scores[i * threads] = rounded_root(scores[i * threads]);
  } else if (!g.finish.program.empty()) {
#pragma unroll 1
    for (int i = 0; i < count; ++i) scores[i * threads] = g.finish.program(scores[i * threads], m0 + r, n + i * threads, l);
  }
  return Part<typename Shape::T, Shape::each>{.first = scores,
                                              .apart = threads,
                                              .count = count,
                                              .group = r,
                                              .row = r,
                                              .n = static_cast<std::int32_t>(n),
                                              .step = threads,
                                              .self = launch.exclude_self ? m0 + r : -1};
}

template <class S, class Shape>
__global__ void __launch_bounds__(Shape::threads, 2)
    reduce_few(const __grid_constant__ detail::Arguments<S, detail::ProgramFinish> g,
               const __grid_constant__ Launch<score_of<S>> launch) {
  constexpr int Rows = Shape::rows;
  using T = typename Shape::T;
  using Operand = typename Shape::Operand;
  constexpr int threads = Shape::threads, width = Shape::width, each = Shape::each, stages = Shape::stages;
  extern __shared__ __attribute__((aligned(16))) unsigned char shared[];
  auto* const scores = reinterpret_cast<T*>(shared + stages * Shape::slab_bytes);
  auto* const of_outlet = shared + stages * Shape::slab_bytes + Shape::score_bytes;
  auto* const of_rows = reinterpret_cast<Operand*>(of_outlet + Shape::outlet_bytes(launch.reducer, launch.count));
  const DeviceBlock block;
  const int thread = static_cast<int>(threadIdx.x);
  const S& s = g.one_semiring;

  const unsigned slice = blockIdx.x / launch.units, unit = launch.first + (blockIdx.x - slice * launch.units),
                 l = unit / launch.row_tiles;
  const std::int64_t m0 = std::int64_t{unit - l * launch.row_tiles} * Rows, state = std::int64_t{blockIdx.x} * Shape::states;
  const int rows = static_cast<int>(std::min<std::int64_t>(g.m - m0, Rows));
  const auto all_tiles = static_cast<int>(static_cast<std::uint64_t>(g.n + threads - 1) / threads);
  const int first_tile = static_cast<int>(slice) * launch.slice_tiles,
            end_tile = std::min(first_tile + launch.slice_tiles, all_tiles);
  // Vectors of a column, and the slabs that they come in.
  const int vectors = static_cast<int>(g.k / width), slabs = (vectors + Shape::vectors - 1) / Shape::vectors;

  const auto with_outlet = [&](const auto& use) __attribute__((always_inline)) { Shape::visit(launch, of_outlet, use); };

  const bool ahead = copies_ahead(g);
  int next_tile = first_tile, next_slab = 0, next_stage = 0;
  const auto start = [&] {
    if (next_tile < end_tile) {
      copy_slab<Shape>(g, shared + next_stage * Shape::slab_bytes, l, next_tile, next_slab, vectors, ahead);
      if (++next_slab == slabs) next_slab = 0, ++next_tile;
      next_stage = next_stage + 1 == stages ? 0 : next_stage + 1;
    }
    arch::commit_copies();
  };
#pragma unroll
  for (int i = 0; i < stages - 1; ++i) start();

  arch::allow_next_launch();
  with_outlet([&](const auto& outlet) __attribute__((always_inline)) { outlet.begin(block); });
  const auto length = static_cast<int>(Shape::row_length(g.k));
  if (g.n > 0) load_rows<Shape, Rows>(g, of_rows, length, l, m0, rows);

  int stage = 0, taken = 0;  // scores that a thread has of each row
#pragma unroll 1
  for (int tile = first_tile; tile < end_tile; ++tile) {
    T x[Rows];
#pragma unroll
    for (int r = 0; r < Rows; ++r) x[r] = S::identity();
#pragma unroll 1
    for (int slab = 0; slab < slabs; ++slab) {
      arch::wait_for_copies<stages - 2>();
      __syncthreads();
      start();
      const unsigned char* const own = shared + stage * Shape::slab_bytes + thread * Shape::pitch;
      stage = stage + 1 == stages ? 0 : stage + 1;
      const int before = slab * Shape::vectors;
      const auto add = [&](int v) __attribute__((always_inline)) {
        add_vector<Shape>(s, x, own + v * 16, of_rows, length, (before + v) * width);
      };
      if (before + Shape::vectors <= vectors) {
#pragma unroll
        for (int v = 0; v < Shape::vectors; ++v) add(v);
      } else {
#pragma unroll 1
        for (int v = 0; before + v < vectors; ++v) add(v);
      }
    }
#pragma unroll
    for (int r = 0; r < Rows; ++r) scores[(r * each + taken) * threads + thread] = x[r];
    if (++taken < each && tile + 1 < end_tile) continue;
    // The thread's columns of the last `taken` tiles.
    const std::int64_t n = std::int64_t{tile + 1 - taken} * threads + thread;
    const std::int64_t left = (g.n - n + threads - 1) / threads;
    const int count = static_cast<int>(std::clamp<std::int64_t>(left, 0, taken));
    taken = 0;
#pragma unroll 1
    for (int r = 0; r < Rows; ++r) {
      const Part<T, each> part =
          part_of<Shape>(g, launch, scores + r * each * threads + thread, l, m0, n, r, r < rows ? count : 0);
      with_outlet([&](const auto& outlet) __attribute__((always_inline)) {
        if constexpr (requires { outlet.take(block, part, launch.below); })
          outlet.take(block, part, launch.below);
        else
          outlet.take(block, part);
      });
    }
  }

  with_outlet([&](const auto& outlet) __attribute__((always_inline)) {
    const reduce::Rows at{l, m0, rows, state};
    if constexpr (requires { outlet.end(block, launch, at, 1); })
      outlet.end(block, launch, at, 1);
    else
      outlet.end(block, launch, at);
  });
}

}  // namespace rigel::backends::reduce
