// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few rows against a large matrix. A block takes 16 to 64 of B's columns, up to 128 rows and all of K, and streams B through a ring
// of slabs in shared memory by 16-byte copies, many in flight, so that the call runs at the speed of memory or of the steps. Some of
// its warps copy; a thread of the others computes a few outputs, each as one chain in ascending k. Slabs are deep, since each costs a
// barrier and the latency of shared memory.
#pragma once

#include <rigel/backends/cuda/arch/named_barrier.hpp>
#include <rigel/backends/cuda/simt/skinny_plan.hpp>

namespace rigel::backends::simt {

/// How C is cut into tiles, a block's rows by its columns: those of a column of tiles follow each other. A thread has `count` rows.
struct SkinnyTiles {
  unsigned in_column, in_matrix;
  std::int64_t all;
  int count;
};

/// One of them: its first output is C(l, m, n).
template <class Shape>
struct SkinnyTile {
  std::int64_t l, m, n;

  __device__ __forceinline__ SkinnyTile(const SkinnyTiles& tiles, std::int64_t index) {
    l = tiles.all == tiles.in_matrix ? 0 : index / tiles.in_matrix;
    const auto in_matrix = static_cast<unsigned>(index - l * tiles.in_matrix);
    const unsigned across = tiles.in_column == 1 ? in_matrix : in_matrix / tiles.in_column;
    m = std::int64_t{in_matrix - across * tiles.in_column} * (Shape::groups * tiles.count);
    n = std::int64_t{across} * Shape::columns;
  }
};

/// A thread's copies of the slabs of its block's tiles, one after the other: vectors of A and of B, each some lines behind the last.
/// They advance by additions, since a slab's multiplications of 64 bits would take as long as its sums. 16-bit floats that are computed
/// in float arrive at the end of their vector's place, and the thread that copied them converts them there.
template <class S, class Finish, class Shape, bool k_major>
class SkinnyCopies {
  using Element = typename S::element;
  using Stored = typename Shape::Stored;
  static constexpr int width = Shape::width, threads = Shape::copying;
  static constexpr int along = Shape::depth / width, across = Shape::columns / width;  // vectors of a line
  static constexpr int in_line_b = k_major ? along : across, lines_b = k_major ? Shape::columns : Shape::depth;
  static constexpr int pitch_b = k_major ? Shape::pitch : Shape::columns;
  static constexpr int apart_a = threads / along, apart_b = threads / in_line_b;  // lines
  static constexpr int count_a = (Shape::m + apart_a - 1) / apart_a, count_b = (lines_b + apart_b - 1) / apart_b;
  static_assert(threads % along == 0 && threads % in_line_b == 0);

 public:
  __device__ __forceinline__ SkinnyCopies(const detail::Arguments<S, Finish>& g, const SkinnyTiles& tiles, int thread)
      : g_(g), tiles_(tiles), thread_(thread), index_(blockIdx.x) {
    begin();
  }
  /// Starts to bring the next slab to `slab`: A, then B.
  __device__ __forceinline__ void start(Stored* slab) {
    const int k = thread_ % along * width;
    Stored *const to_a = first_of_a(slab), *const to_b = first_of_b(slab);
    // Through the L1 cache: tiles have the same rows of A, and all blocks at once would wait for a few lines of the L2 cache.
    copy<count_a, true>(to_a, apart_a * Shape::pitch, a_, apart_a * g_.a.row, k < left_ ? exist_a_ : 0);
    if constexpr (k_major) {
      copy<count_b, false>(to_b, apart_b * pitch_b, b_, apart_b * g_.b.column, k < left_ ? exist_b_ : 0);
    } else {
      const std::int64_t left = (left_ - thread_ / in_line_b + apart_b - 1) / apart_b;
      copy<count_b, false>(to_b, apart_b * pitch_b, b_, apart_b * g_.b.row, std::min<std::int64_t>(left, exist_b_));
    }
    left_ -= Shape::depth;
    a_ += Shape::depth;
    b_ += Shape::depth * (k_major ? 1 : g_.b.row);
    if (left_ <= 0) {
      index_ += gridDim.x;
      begin();
    }
  }

  /// Converts what this thread has copied to `slab`, which has arrived.
  __device__ __forceinline__ void convert(Stored* slab) const {
    if constexpr (Shape::converts) {
      const int lines_a = Shape::groups * tiles_.count - thread_ / along;
      convert_vectors<count_a>(first_of_a(slab), apart_a * Shape::pitch, (lines_a + apart_a - 1) / apart_a);
      convert_vectors<count_b>(first_of_b(slab), apart_b * pitch_b, count_b);
    }
  }

 private:
  /// The places of this thread's first vectors.
  __device__ __forceinline__ Stored* first_of_a(Stored* slab) const {
    return slab + thread_ / along * Shape::pitch + thread_ % along * width;
  }
  __device__ __forceinline__ Stored* first_of_b(Stored* slab) const {
    return slab + Shape::of_a(tiles_.count) + thread_ / in_line_b * pitch_b + thread_ % in_line_b * width;
  }
  /// Where a vector's elements arrive.
  __device__ __forceinline__ static Element* arrival(Stored* vector) {
    return reinterpret_cast<Element*>(reinterpret_cast<unsigned char*>(vector) + (16 - Shape::copied));
  }
  /// The first `exist` of `count` vectors.
  template <int count>
  __device__ __forceinline__ static void convert_vectors(Stored* first, int apart, int exist) {
    constexpr int at_once = count < 4 ? count : 4;
#pragma unroll
    for (int i = 0; i < count; i += at_once) {
      tile::Chunk<Element, width> from[at_once];
#pragma unroll
      for (int j = 0; j < at_once; ++j)
        if (i + j < exist) from[j] = tile::Chunk<Element, width>::load(arrival(first + (i + j) * apart));
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        tile::Chunk<Stored, width> to;
#pragma unroll
        for (int v = 0; v < width; ++v) to.value[v] = static_cast<Stored>(from[j].value[v]);
        if (i + j < exist) to.store(first + (i + j) * apart);
      }
    }
  }
  /// Copies the first `exist` of `count` vectors.
  template <int count, bool cached>
  __device__ __forceinline__ static void copy(Stored* to, int to_apart, const Element* from, std::int64_t from_apart,
                                              std::int64_t exist) {
    const int limit = static_cast<int>(exist);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (i < limit) arch::copy_async<Shape::copied, cached>(arrival(to + i * to_apart), from);
      from += from_apart;
      asm volatile("" : "+l"(from));  // otherwise each address is a product
    }
  }
  __device__ __forceinline__ void begin() {
    if (index_ >= tiles_.all) return;
    const SkinnyTile<Shape> tile(tiles_, index_);
    // How many of the lines from `first` on, `apart` from each other, are among `lines`.
    const auto exist = [](std::int64_t lines, int first, int apart) {
      return static_cast<int>(std::clamp<std::int64_t>((lines - first + apart - 1) / apart, 0, count_a + count_b));
    };
    left_ = g_.k;
    a_ = &g_.a.at(tile.l, tile.m + thread_ / along, thread_ % along * width);
    exist_a_ = exist(std::min<std::int64_t>(g_.m - tile.m, Shape::groups * tiles_.count), thread_ / along, apart_a);
    if constexpr (k_major) {
      b_ = &g_.b.at(tile.l, thread_ % along * width, tile.n + thread_ / along);
      exist_b_ = exist(std::min<std::int64_t>(g_.n - tile.n, Shape::columns), thread_ / along, apart_b);
    } else {
      b_ = &g_.b.at(tile.l, thread_ / across, tile.n + thread_ % across * width);
      exist_b_ = thread_ % across * width < g_.n - tile.n ? exist(Shape::depth, thread_ / across, apart_b) : 0;
    }
  }

  const detail::Arguments<S, Finish>& g_;
  const SkinnyTiles& tiles_;
  int thread_;
  std::int64_t index_, left_;  // the tile, and the elements along K from the next slab on
  const Element *a_, *b_;      // of the next slab
  int exist_a_, exist_b_;      // of this thread's lines
};

/// What a computing thread adds to its outputs.
template <class S, class Shape, bool k_major>
class SkinnySum {
  using Stored = typename Shape::Stored;
  using Operand = operand_t<S>;
  using Vector = tile::Chunk<Stored, Shape::width>;
  static constexpr int width = Shape::width, of_thread = Shape::of_thread;

 public:
  /// Of the first output, in the tile, and from one column to the next. K-major columns that are `lanes` apart are in different banks;
  /// N-major neighbours are read together. If a warp has four groups of rows by eight of columns, the groups change with such bits of
  /// the thread's number that half a warp reads 128 bytes of B, and the same address of A in every other pair.
  int row, column;
  static constexpr int apart = k_major ? Shape::lanes : 1;

  __device__ __forceinline__ SkinnySum(int thread, int count) {
    constexpr bool four_groups = Shape::lanes == 8;
    const int group = four_groups ? thread / 32 * 4 + thread % 32 / 16 * 2 + thread % 2 : thread / Shape::lanes;
    const int lane = four_groups ? thread / 2 % 8 : thread % Shape::lanes;
    row = Shape::apart == 1 ? group * count : group;
    column = lane * (k_major ? 1 : of_thread);
  }

  /// Adds `count` k of a slab, whole vectors, the first of which is k0. A vector of each row is read as soon as the one before it has
  /// been added, also across the loop's end.
  template <int rows>
  __device__ __forceinline__ void add(const S& s, typename S::accumulator (&x)[rows][of_thread], const Stored* slab,
                                      int count, std::int64_t k0) const {
    if (count <= 0) return;
    const Stored *const a = slab + row * Shape::pitch, *const b = slab + Shape::of_a(rows);
    Vector of_a[rows], of_b[2][of_thread];
    const auto read_a = [&](int r, int k) __attribute__((always_inline)) {
      of_a[r] = Vector::load(a + r * Shape::apart * Shape::pitch + k);
    };
    const auto read_b = [&](int to, int k) __attribute__((always_inline)) {
      if constexpr (k_major) {
#pragma unroll
        for (int c = 0; c < of_thread; ++c) of_b[to][c] = Vector::load(b + (column + c * apart) * Shape::pitch + k);
      } else {
#pragma unroll
        for (int v = 0; v < width; ++v) {
          const auto neighbours = tile::Chunk<Stored, of_thread>::load(b + (k + v) * Shape::columns + column);
#pragma unroll
          for (int c = 0; c < of_thread; ++c) of_b[to][c].value[v] = neighbours.value[c];
        }
      }
    };
    // Adds k to k + width - 1 and reads the vectors from `next` on.
    const auto add = [&](int from, int k, int next) __attribute__((always_inline)) {
      read_b(1 - from, next);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
#pragma unroll
        for (int v = 0; v < width; ++v)
#pragma unroll
          for (int c = 0; c < of_thread; ++c)
            x[r][c] = step(s, x[r][c], static_cast<Operand>(of_a[r].value[v]), static_cast<Operand>(of_b[from][c].value[v]),
                           k0 + k + v);
        read_a(r, next);
      }
    };
    read_b(0, 0);
#pragma unroll
    for (int r = 0; r < rows; ++r) read_a(r, 0);
    const int last = count - width;
    int done = 0;
#pragma unroll 1
    for (; done + Shape::unrolled <= count; done += Shape::unrolled)
#pragma unroll
      for (int k = 0; k < Shape::unrolled; k += width)
        add(k / width % 2, done + k, k + width < Shape::unrolled ? done + k + width : std::min(done + k + width, last));
    // What is left, if K is no multiple of a slab.
#pragma unroll 1
    for (; done < count; done += width) {
      add(0, done, std::min(done + width, last));
#pragma unroll
      for (int c = 0; c < of_thread; ++c) of_b[0][c] = of_b[1][c];
    }
  }
};

/// Blocks are persistent: each takes every gridDim.x-th tile, and its copies run ahead into the next one.
template <class S, class Finish, class Shape, bool k_major>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    contract_skinny(const __grid_constant__ detail::Arguments<S, Finish> g, const __grid_constant__ SkinnyTiles tiles) {
  using Stored = typename Shape::Stored;
  using Accumulator = typename S::accumulator;
  constexpr int stages = Shape::stages, of_thread = Shape::of_thread;
  extern __shared__ __attribute__((aligned(16))) unsigned char shared[];
  Stored* const slabs = reinterpret_cast<Stored*>(shared);
  const int of_slab = Shape::of_a(tiles.count) + Shape::of_b;
  const auto slab = [&](int stage) { return slabs + stage * of_slab; };
  const auto next = [](int stage) { return stage + 1 == stages ? 0 : stage + 1; };
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t all = (tiles.all - blockIdx.x + gridDim.x - 1) / gridDim.x * ((g.k + Shape::depth - 1) / Shape::depth);

  // All threads meet at each slab: it has arrived, and the one before it has been read.
  const auto meet = [] { arch::wait_at<Shape::threads>(1); };
  if (thread >= Shape::computing) {
    SkinnyCopies<S, Finish, Shape, k_major> copies(g, tiles, thread - Shape::computing);
    int free = 0;
#pragma unroll 1
    for (std::int64_t i = 1 - stages; i < all; ++i) {
      if (i >= 0) {
        arch::wait_for_copies<stages - 2>();
        copies.convert(slab(next(free)));
        meet();
      }
      if (i + stages - 1 < all) copies.start(slab(free));
      arch::commit_copies();
      free = next(free);
    }
    return;
  }

  // One or two outputs of a thread go straight to C. More go through shared memory, so that one loop starts and stores them: the code of
  // an epilogue is long.
  constexpr auto is_direct = [](int count) { return count * of_thread <= 2; };
  Accumulator* const exchange = reinterpret_cast<Accumulator*>(slab(stages)) + thread;
  const SkinnySum<S, Shape, k_major> sum(thread, tiles.count);
  int current = 0;
#pragma unroll 1
  for (std::int64_t index = blockIdx.x; index < tiles.all; index += gridDim.x) {
    const SkinnyTile<Shape> tile(tiles, index);
    const S s = g.semiring(tile.l);
    // use(row, column) if output i of this thread exists.
    const auto with_output = [&](int i, const auto& use) __attribute__((always_inline)) {
      const std::int64_t m = tile.m + sum.row + i / of_thread * Shape::apart,
                         n = tile.n + sum.column + i % of_thread * sum.apart;
      if (m < g.m && n < g.n) use(m, n);
    };
    const bool starts = can_accumulate<S> && g.accumulate;
    if constexpr (can_accumulate<S> && !is_direct(Shape::rows))
      if (starts && !is_direct(tiles.count))
#pragma unroll 1
        for (int i = 0; i < tiles.count * of_thread; ++i)
          with_output(i, [&](std::int64_t m, std::int64_t n) { exchange[i * Shape::computing] = g.start(s, tile.l, m, n); });
    const bool has_rows = tile.m + sum.row < g.m;
    Shape::with_count(tiles.count, [&]<int rows>() __attribute__((always_inline)) {
      Accumulator x[rows][of_thread];
      const auto for_each = [&](const auto& use) __attribute__((always_inline)) {
#pragma unroll
        for (int i = 0; i < rows * of_thread; ++i) use(x[i / of_thread][i % of_thread], i);
      };
      for_each([&](auto& output, int i) {
        output = Accumulator(S::identity());
        if constexpr (!can_accumulate<S>)
          return;
        else if constexpr (is_direct(rows)) {
          if (starts) with_output(i, [&](std::int64_t m, std::int64_t n) { output = g.start(s, tile.l, m, n); });
        } else {
          if (starts) output = exchange[i * Shape::computing];
        }
      });
#pragma unroll 1
      for (std::int64_t k0 = 0; k0 < g.k; k0 += Shape::depth, current = next(current)) {
        meet();
        if (has_rows)
          sum.template add<rows>(s, x, slab(current), static_cast<int>(std::min<std::int64_t>(g.k - k0, Shape::depth)), k0);
      }
      for_each([&](const auto& output, int i) {
        if constexpr (is_direct(rows))
          with_output(i, [&](std::int64_t m, std::int64_t n) { g.store(s, output, tile.l, m, n); });
        else
          exchange[i * Shape::computing] = output;
      });
    });
    if constexpr (!is_direct(Shape::rows))
      if (!is_direct(tiles.count))
#pragma unroll 1
        for (int i = 0; i < tiles.count * of_thread; ++i)
          with_output(i, [&](std::int64_t m, std::int64_t n) { g.store(s, exchange[i * Shape::computing], tile.l, m, n); });
  }
}

template <class S, class Finish>
void run_skinny(const KernelInfo& info, const Contraction& p, int count) {
  const cuda::CurrentDevice current(p.execution.device);
  auto arguments = detail::arguments_of<S, Finish>(p);
  with_skinny_shape<S>(p, [&]<class Shape>() {
    using Accumulator = typename S::accumulator;
    const int rows = Shape::groups * count;
    SkinnyTiles tiles;
    tiles.in_column = static_cast<unsigned>((p.m + rows - 1) / rows);
    tiles.in_matrix = tiles.in_column * static_cast<unsigned>((p.n + Shape::columns - 1) / Shape::columns);
    tiles.all = p.batch * tiles.in_matrix;
    tiles.count = count;
    const bool k_major = is_k_major_in_vectors<Shape>(p);
    const auto function = k_major ? reinterpret_cast<const void*>(&contract_skinny<S, Finish, Shape, true>)
                                  : reinterpret_cast<const void*>(&contract_skinny<S, Finish, Shape, false>);
    static cuda::LaunchFacts facts[2];
    facts[k_major].find(function, Shape::template shared<Accumulator>(Shape::rows), p.execution.device, info.name);
    const std::int64_t blocks = std::min<std::int64_t>(
        tiles.all, Shape::template resident<Accumulator>(count) * std::max(p.execution.multiprocessors, 1));
    void* list[] = {&arguments, &tiles};
    cuda::check_launch(cudaLaunchKernel(function, dim3(static_cast<unsigned>(blocks)), dim3(Shape::threads), list,
                                        static_cast<std::size_t>(Shape::template shared<Accumulator>(count)),
                                        static_cast<cudaStream_t>(p.execution.stream)),
                       info.name);
  });
}

template <class S, class Finish>
Kernel<Contraction> skinny_kernel() {
  Kernel<Contraction> k = kernel<S, Finish, SmallTile<S>>();
  detail::set_variant(k.info, "skinny");
  using Low = decltype(low_skinny_shape<S>());
  k.info.tile = {Low::m, Low::columns, Low::depth};
  k.info.stages = Low::stages;
  k.info.threads = Low::threads;
  k.info.shared_memory = Low::template shared<typename S::accumulator>(Low::rows);
  k.supports = detail::supports_by<skinny_supports<S, Finish>>;
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
    const SkinnyChoice choice = skinny_choice<S>(p);
    plan.keep(choice);
    return choice.seconds;
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace&) {
    run_skinny<S, Finish>(kernel.info, p, plan.get<SkinnyChoice>().count);
  };
  return k;
}

}  // namespace rigel::backends::simt
