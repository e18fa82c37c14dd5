// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few rows against a large matrix. A block takes 16 to 128 of B's columns, up to 128 rows and all of K, and streams B through a ring
// of slabs in shared memory by 16-byte copies, many in flight, so that the call runs at the speed of memory or of the steps. Some of
// its warps copy; a thread of the others computes a few outputs, each as one chain in ascending k. Slabs are deep, since each costs a
// barrier and the latency of shared memory.
#pragma once

#include <rigel/backends/cuda/arch/named_barrier.hpp>
#include <rigel/backends/cuda/simt/skinny_copies.hpp>
#include <rigel/backends/cuda/simt/store.hpp>

namespace rigel::backends::simt {

/// A vector of a slab. Elements of one and two bytes stay in words until they are used, since those that cross a loop's end take a
/// register each.
template <class Stored, int width>
struct SkinnyVector {
  static constexpr int in_word = sizeof(Stored) < 4 ? 4 / static_cast<int>(sizeof(Stored)) : 1;
  using Bits = std::conditional_t<sizeof(Stored) == 1, std::uint8_t, std::uint16_t>;
  using Word = std::conditional_t<sizeof(Stored) < 4, std::uint32_t, Stored>;
  tile::Chunk<Word, width / in_word> words;

  __device__ __forceinline__ static SkinnyVector load(const Stored* from) {
    return {tile::Chunk<Word, width / in_word>::load(reinterpret_cast<const Word*>(from))};
  }
  __device__ __forceinline__ Stored operator[](int v) const {
    if constexpr (in_word > 1)
      return __builtin_bit_cast(Stored, static_cast<Bits>(words.value[v / in_word] >> v % in_word * (32 / in_word)));
    else
      return words.value[v];
  }
};

/// What a computing thread adds to its outputs.
template <class S, class Shape, bool k_major>
class SkinnySum {
  using Stored = typename Shape::Stored;
  using Operand = operand_t<S>;
  using Vector = SkinnyVector<Stored, Shape::width>;
  static constexpr int width = Shape::width, of_thread = Shape::of_thread;

 public:
  /// Of the first output, in the tile, and from one column to the next. K-major columns that are `lanes` apart are in different banks;
  /// N-major neighbours are read together. If a warp has four groups of rows by eight of columns, the groups change with such bits of
  /// the thread's number that half a warp reads 128 bytes of B, and the same address of A in every other pair.
  int row, column;
  static constexpr int apart = k_major ? Shape::lanes : 1;

  __device__ __forceinline__ explicit SkinnySum(int thread) {
    constexpr bool four_groups = Shape::lanes == 8;
    row = four_groups ? thread / 32 * 4 + thread % 32 / 16 * 2 + thread % 2 : thread / Shape::lanes;
    const int lane = four_groups ? thread / 2 % 8 : thread % Shape::lanes;
    column = lane * (k_major ? 1 : of_thread);
  }

  /// Adds `count` k of a slab, the first of which is k0: whole vectors, then what is left one by one.
  template <int rows>
  __device__ __forceinline__ void add(const S& s, typename S::accumulator (&x)[rows][of_thread], const Stored* slab,
                                      int count, std::int64_t k0) const {
    const Stored *const a = slab + row * Shape::pitch, *const b = slab + Shape::of_a(rows);
    const int whole = count / width * width;
    if (whole > 0) add_vectors<rows>(s, x, a, b, whole, k0);
#pragma unroll 1
    for (int k = whole; k < count; ++k) {
      Operand of_b[of_thread];
#pragma unroll
      for (int c = 0; c < of_thread; ++c) of_b[c] = static_cast<Operand>(b[place_of_b(c, k)]);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const auto of_a = static_cast<Operand>(a[r * Shape::groups * Shape::pitch + k]);
#pragma unroll
        for (int c = 0; c < of_thread; ++c) x[r][c] = step(s, x[r][c], of_a, of_b[c], k0 + k);
      }
    }
  }

 private:
  /// Where the slab of B holds k of column c of this thread.
  __device__ __forceinline__ int place_of_b(int c, int k) const {
    return k_major ? (column + c * apart) * Shape::pitch + k : k * Shape::pitch_n + column + c;
  }
  /// Adds `count` k, whole vectors. A vector of each row is read as soon as the one before it has been added, also across the
  /// loop's end.
  template <int rows>
  __device__ __forceinline__ void add_vectors(const S& s, typename S::accumulator (&x)[rows][of_thread], const Stored* a,
                                              const Stored* b, int count, std::int64_t k0) const {
    Vector of_a[rows];
    // Of an N-major B each k's elements come together.
    std::conditional_t<k_major, Vector, tile::Chunk<Stored, width>> of_b[2][of_thread];
    const auto element_of_b = [&](int from, int c, int v) __attribute__((always_inline)) {
      if constexpr (k_major)
        return of_b[from][c][v];
      else
        return of_b[from][c].value[v];
    };
    const auto read_a = [&](int r, int k) __attribute__((always_inline)) {
      of_a[r] = Vector::load(a + r * Shape::groups * Shape::pitch + k);
    };
    const auto read_b = [&](int to, int k) __attribute__((always_inline)) {
      if constexpr (k_major) {
#pragma unroll
        for (int c = 0; c < of_thread; ++c) of_b[to][c] = Vector::load(b + place_of_b(c, k));
      } else {
#pragma unroll
        for (int v = 0; v < width; ++v) {
          const auto neighbours = tile::Chunk<Stored, of_thread>::load(b + place_of_b(0, k + v));
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
            x[r][c] = step(s, x[r][c], static_cast<Operand>(of_a[r][v]), static_cast<Operand>(element_of_b(from, c, v)),
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
__global__ void __launch_bounds__(Shape::threads, k_major ? Shape::blocks : Shape::blocks_n_major)
    contract_skinny(const __grid_constant__ detail::Arguments<S, Finish> g, const __grid_constant__ SkinnyTiles tiles) {
  using Stored = typename Shape::Stored;
  using Accumulator = typename S::accumulator;
  constexpr int stages = Shape::stages(k_major), of_thread = Shape::of_thread;
  extern __shared__ __attribute__((aligned(16))) unsigned char shared[];
  Stored* const slabs = reinterpret_cast<Stored*>(shared);
  const int of_slab = Shape::of_a(tiles.count) + Shape::of_b(k_major);
  const auto slab = [&](int stage) { return slabs + stage * of_slab; };
  const auto next = [](int stage) { return stage + 1 == stages ? 0 : stage + 1; };
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t all = (tiles.all - blockIdx.x + gridDim.x - 1) / gridDim.x * ((g.k + Shape::depth - 1) / Shape::depth);

  // All threads meet at each slab: it has arrived, and the one before it has been read.
  const auto meet = [] { arch::wait_at<Shape::threads>(1); };
  if (thread >= Shape::computing) {
    SkinnyCopies<S, Shape, k_major> copies(g, tiles, thread - Shape::computing);
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

  // Outputs go through shared memory, so that one loop starts and stores them: the code of an epilogue is long.
  Accumulator* const exchange = reinterpret_cast<Accumulator*>(slab(stages)) + thread;
  const SkinnySum<S, Shape, k_major> sum(thread);
  int current = 0;
#pragma unroll 1
  for (std::int64_t index = blockIdx.x; index < tiles.all; index += gridDim.x) {
    const SkinnyTile<Shape> tile(tiles, index);
    const S s = g.semiring(tile.l);
    // use(output, row, column) for this thread's outputs that exist; row and column of the caller's C.
    const auto for_each_output = [&](const auto& use) __attribute__((always_inline)) {
#pragma unroll 1
      for (int i = 0; i < tiles.count * of_thread; ++i) {
        const std::int64_t m = tile.m + sum.row + i / of_thread * Shape::groups,
                           n = tile.n + sum.column + i % of_thread * sum.apart;
        if (m < g.m && n < g.n) use(exchange[i * Shape::computing], tiles.swapped ? n : m, tiles.swapped ? m : n);
      }
    };
    if (g.accumulate)
      for_each_output([&](Accumulator& output, std::int64_t m, std::int64_t n) { output = g.start(s, tile.l, m, n); });
    const bool has_rows = tile.m + sum.row < g.m;
    Shape::with_count(tiles.count, [&]<int rows>() __attribute__((always_inline)) {
      Accumulator x[rows][of_thread];
      const auto for_each = [&](const auto& use) __attribute__((always_inline)) {
#pragma unroll
        for (int i = 0; i < rows * of_thread; ++i) use(x[i / of_thread][i % of_thread], exchange[i * Shape::computing]);
      };
      for_each([&](Accumulator& output, const Accumulator& start) {
        output = g.accumulate ? start : Accumulator(S::identity());
      });
#pragma unroll 1
      for (std::int64_t k0 = 0; k0 < g.k; k0 += Shape::depth, current = next(current)) {
        meet();
        if (has_rows)
          sum.template add<rows>(s, x, slab(current), static_cast<int>(std::min<std::int64_t>(g.k - k0, Shape::depth)), k0);
      }
      for_each([&](const Accumulator& output, Accumulator& end) { end = output; });
    });
    const Store<S, Finish> store(g);
    for_each_output([&](const Accumulator& output, std::int64_t m, std::int64_t n) { store(s, output, tile.l, m, n); });
  }
}

/// Launches a tile's CUDA kernel on a problem whose arguments these are. Its threads have `count` rows.
template <class S, class Shape, class Finish>
void launch_skinny(const cuda::Launches& launches, const void* function, detail::Arguments<S, Finish> arguments,
                   const SkinnyProblem& p, const SkinnyWay& way, int count, int multiprocessors) {
  using Accumulator = typename S::accumulator;
  if (p.swapped) exchange_operands(arguments);
  const int rows = Shape::groups * count;
  SkinnyTiles tiles;
  tiles.in_column = static_cast<unsigned>((p.a.lines + rows - 1) / rows);
  tiles.in_matrix = tiles.in_column * static_cast<unsigned>((p.b.lines + Shape::columns - 1) / Shape::columns);
  tiles.all = p.batch * tiles.in_matrix;
  tiles.count = count;
  tiles.swapped = p.swapped;
  tiles.gathers = way.gathers;
  tiles.shifts = way.shifts;
  const auto last = [](std::int64_t extent, std::int64_t stride) {
    return (extent - 1) * std::max<std::int64_t>(stride, 0);
  };
  tiles.end_of_b = arguments.b.data + last(p.batch, p.b.operand->batch_stride) + last(p.b.k, p.b.k_stride) +
                   last(p.b.lines, p.b.line_stride) + 1;
  const std::int64_t blocks = std::min<std::int64_t>(
      tiles.all, Shape::template resident<Accumulator>(count, way.k_major) * std::max(multiprocessors, 1));
  void* list[] = {&arguments, &tiles};
  launches(function, static_cast<unsigned>(blocks), Shape::threads,
           static_cast<std::size_t>(Shape::template shared<Accumulator>(count, way.k_major)), list);
}

template <class S, class Finish, class Shape>
void run_skinny(const KernelInfo& info, const Contraction& problem, const SkinnyProblem& p, int count) {
  const SkinnyWay way = skinny_way<Shape>(p);
  const auto function = way.k_major ? reinterpret_cast<const void*>(&contract_skinny<S, Finish, Shape, true>)
                                    : reinterpret_cast<const void*>(&contract_skinny<S, Finish, Shape, false>);
  static cuda::LaunchFacts facts[2];
  const cuda::Launches launches(problem, info.name);
  facts[way.k_major].find(function, Shape::template shared<typename S::accumulator>(Shape::rows, way.k_major), launches);
  launch_skinny<S, Shape>(launches, function, detail::arguments_of<S, Finish>(problem), p, way, count,
                          problem.execution.multiprocessors);
}

/// The facts of these kernels: of the low tile.
template <class S>
KernelInfo skinny_info() {
  using Low = decltype(low_skinny_shape<S>());
  KernelInfo info = tile_info<S, SmallTile<S>>();
  detail::set_variant(info, "skinny");
  info.tile = {Low::m, Low::columns, Low::depth};
  info.stages = Low::stages(true);
  info.threads = Low::threads;
  info.shared_memory = Low::template shared<typename S::accumulator>(Low::rows, true);
  return info;
}

template <class S>
double skinny_cost(const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
  const SkinnyChoice choice = skinny_choice<S>(p);
  plan.keep(choice);
  return choice.seconds;
}

template <class S, class Finish>
Kernel<Contraction> skinny_kernel() {
  Kernel<Contraction> k;
  k.info = skinny_info<S>();
  k.supports = detail::supports_by<skinny_supports<S, Finish>>;
  k.cost = skinny_cost<S>;
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& problem, const Plan& plan, const Workspace&) {
    const auto choice = plan.get<SkinnyChoice>();
    const SkinnyProblem p(problem);
    for_each_skinny_shape<S>(p, [&]<class Shape, int index>() {
      if (index == choice.shape) run_skinny<S, Finish, Shape>(kernel.info, problem, p, choice.count);
    });
  };
  return k;
}

}  // namespace rigel::backends::simt
