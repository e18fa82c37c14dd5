// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few rows against a large matrix. A block takes 16 to 64 of B's columns, up to 128 rows and all of K, and streams B through a ring
// of slabs in shared memory by 16-byte copies, many in flight, so that the call runs at the speed of memory or of the steps. Some of
// its warps copy; a thread of the others computes a few outputs, each as one chain in ascending k. Slabs are deep, since each costs a
// barrier and the latency of shared memory.
#pragma once

#include <rigel/backends/cuda/arch/named_barrier.hpp>
#include <rigel/backends/cuda/arch/shared_memory.hpp>
#include <rigel/backends/cuda/simt/contract.hpp>

#include <array>
#include <string>

namespace rigel::backends::simt {

/// A tile of some rows by `Columns` columns; a slab has `Depth` elements along K, of which the code takes `Unrolled` at a time. A
/// computing thread has one of `Counts` rows, in each of `OfThread` columns: the more outputs share an operand, the less they read of
/// shared memory. Slabs hold elements as `Stored`, in vectors of 16 bytes.
template <class Element, class Stored_, int Columns, int OfThread, int Depth, int Unrolled, int... Counts>
struct SkinnyShape {
  using Stored = Stored_;
  static constexpr bool converts = !std::is_same_v<Element, Stored>;
  static constexpr int size = static_cast<int>(sizeof(Stored)), columns = Columns;
  static constexpr int computing = columns == 64 ? 256 : 128, copying = 128, threads = computing + copying;
  static constexpr int of_thread = OfThread, lanes = columns / of_thread, groups = computing / lanes;
  static constexpr int rows = std::max({Counts...}), m = groups * rows;  // at most: of a thread, of a tile
  // On a multiprocessor, as far as registers are concerned. Threads with up to 32 outputs take up to 150, and those with saturating sums
  // of 16-bit integers more than the others.
  static constexpr bool many_outputs = of_thread > 2;
  static constexpr int blocks = size == 1 || many_outputs || (std::is_integral_v<Element> && size == 2 && rows > 1) ? 1
                                : size == 4 && of_thread == 1                                                       ? 3
                                                                                                                    : 2;
  static constexpr int width = 16 / size;                                   // of a vector
  static constexpr int copied = width * static_cast<int>(sizeof(Element));  // bytes of its elements in memory
  static constexpr int depth = Depth, unrolled = Unrolled;
  // From one row of a thread to the next. If there is a choice of counts, all threads have equally many; else the last warps have none
  // of a few rows, and do nothing.
  static constexpr int apart = sizeof...(Counts) > 1 ? groups : 1;
  // Elements from one row of A to the next, and from one column of B to the next if it is K-major: an odd number of vectors, so that
  // eight neighbours are in different banks.
  static constexpr int pitch = depth + width;
  static constexpr std::array counts{Counts...};
  /// Elements of a slab, if threads have `count` rows.
  static constexpr int of_b = columns * pitch;
  __host__ __device__ static constexpr int of_a(int count) { return groups * count * pitch; }
  /// Bytes of all threads' outputs.
  template <class Accumulator>
  static constexpr int of_outputs(int count) {
    return count * of_thread * computing * static_cast<int>(sizeof(Accumulator));
  }
  // So many that a multiprocessor holds two blocks; fewer of the high tile, of which one of sm_80 holds one. sm_86 holds seven of 16-bit
  // floats.
  static constexpr int stages =
      std::min({108 * 1024 / ((of_a(counts[counts.size() / 2]) + of_b) * size),
                (163 * 1024 - of_outputs<std::int64_t>(rows)) / ((of_a(rows) + of_b) * size), size == 2 ? 7 : 8});
  /// Bytes of shared memory: slabs, and each thread's outputs.
  template <class Accumulator>
  static constexpr int shared(int count) {
    return stages * (of_a(count) + of_b) * size + of_outputs<Accumulator>(count);
  }
  /// Blocks that a multiprocessor holds.
  template <class Accumulator>
  static constexpr int resident(int count) {
    int resident = many_outputs ? 1 : std::max(blocks, 2);
    while (resident > 1 && !arch::holds(arch::shared_memory_of_sm_90, resident, shared<Accumulator>(count))) --resident;
    return resident;
  }
  static_assert(computing % lanes == 0 && depth % unrolled == 0 && unrolled % (2 * width) == 0 && stages >= 3);
  static_assert(arch::holds(arch::shared_memory_of_sm_80, 1, shared<std::int64_t>(rows)));

  /// use.operator()<count>() with one of Counts.
  template <class Use>
  __device__ __forceinline__ static void with_count(int count, const Use& use) {
    static_cast<void>(((count == Counts && (use.template operator()<Counts>(), true)) || ...));
  }
};

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

/// Whether a semiring of the zoo has these kernels: if ⊗ is short, not on pairs, and has kernels for vectors elsewhere.
template <class S>
inline constexpr bool has_skinny =
    in_zoo<S> && !is_transcendental<S> && !is_packed<S> && !singles_only<S> && bit_counts_of<S> == 0 &&
    std::is_arithmetic_v<typename S::accumulator> && sizeof(typename S::element) <= 8;

/// Columns of 128 bytes, or 64 of 1-byte types.
template <class Element>
inline constexpr int skinny_columns = std::min(128 / static_cast<int>(sizeof(Element)), 64);

/// The tiles of a semiring: for the fewest rows, and for more. Light semirings that compute floats have 4 to 16 rows, or 32 to 128 (of
/// 16-bit floats sums of products alone, since its code is long); others have 8 or 16. Slabs for many rows hold 16-bit floats as floats,
/// which threads would convert again and again; few rows wait for memory, and gain nothing by that.
template <class S>
constexpr auto low_skinny_shape() {
  using Element = typename S::element;
  if constexpr (computes_floats<S>)
    return SkinnyShape<Element, Element, 32, 1, 128, 32, 1, 2, 3, 4>{};
  else if constexpr (sizeof(Element) == 8)
    return SkinnyShape<Element, Element, skinny_columns<Element>, 1, 64, 32, 1>{};
  else
    return SkinnyShape<Element, Element, skinny_columns<Element>, 2, 128, 32, 1>{};
}
template <class S>
constexpr auto high_skinny_shape() {
  using Element = typename S::element;
  if constexpr (is_light_float<S>)
    return SkinnyShape<Element, Element, 32, 4, 64, 8, 2, 4, 5, 7, 8>{};
  else if constexpr (std::is_same_v<OnFloats<S>, plus_times<float>>)
    return SkinnyShape<Element, float, 32, 4, 64, 8, 2, 4, 8>{};
  else if constexpr (sizeof(Element) == 8)
    return SkinnyShape<Element, Element, skinny_columns<Element>, 1, 64, 32, 2>{};
  else
    return SkinnyShape<Element, Element, skinny_columns<Element>, 2, 128, 32, 2>{};
}

/// Whether an operand consists of lines of whole vectors of `bytes`: of `length` neighbours, `lines` of them, `line_stride` apart.
inline bool in_whole_vectors(const Operand& o, int bytes, std::int64_t length, std::int64_t stride, std::int64_t lines,
                             std::int64_t line_stride) {
  const auto whole = [&](std::int64_t elements) { return elements * static_cast<std::int64_t>(o.size) % bytes == 0; };
  return stride == 1 && whole(length) && (lines <= 1 || whole(line_stride)) && whole(o.batch_stride) &&
         reinterpret_cast<std::uintptr_t>(o.data) % static_cast<std::uintptr_t>(bytes) == 0;
}
template <class Shape>
bool a_in_vectors(const Contraction& p) {
  return in_whole_vectors(p.a, Shape::copied, p.k, p.a.column_stride, p.m, p.a.row_stride);
}
template <class Shape>
bool is_k_major_in_vectors(const Contraction& p) {
  return in_whole_vectors(p.b, Shape::copied, p.k, p.b.row_stride, p.n, p.b.column_stride);
}
template <class Shape>
bool b_in_vectors(const Contraction& p) {
  return is_k_major_in_vectors<Shape>(p) ||
         in_whole_vectors(p.b, Shape::copied, p.n, p.b.column_stride, p.k, p.b.row_stride);
}

/// use.operator()<Shape>() with the low tile if that has all rows and takes the operands' vectors, or with the high one, which may
/// take shorter vectors.
template <class S, class Use>
auto with_skinny_shape(const Contraction& p, const Use& use) {
  using Low = decltype(low_skinny_shape<S>());
  using High = decltype(high_skinny_shape<S>());
  const bool takes_vectors = Low::copied == High::copied || (a_in_vectors<Low>(p) && b_in_vectors<Low>(p));
  if (p.m <= Low::m && takes_vectors) return use.template operator()<Low>();
  return use.template operator()<High>();
}

template <class S, class Finish>
Status skinny_supports(const Contraction& p) {
  return with_skinny_shape<S>(p, [&]<class Shape>() -> Status {
    const auto no_vectors = [](const char* operand, const char* place) {
      return Status{Decline::layout, operand + std::to_string(Shape::copied) + place};
    };
    if (!a_in_vectors<Shape>(p)) return no_vectors("rows of A are no vectors of ", " bytes along K");
    if (!b_in_vectors<Shape>(p)) return no_vectors("B is in vectors of ", " bytes neither along K nor along N");
    if (p.m > std::max(2 * Shape::m, 64)) return {Decline::extents, "C has more than a few rows"};
    const int bytes = Shape::template shared<typename S::accumulator>(Shape::rows);
    if (bytes > p.execution.shared_memory)
      return {Decline::memory, "needs " + std::to_string(bytes) + " bytes of shared memory"};
    if (p.n > max_grid) return {Decline::extents, "C has more than 2^31 - 1 columns"};  // hence fewer blocks
    return detail::finish_supports<Finish>(p);
  });
}

/// A launch and the first slabs, and the longest of three: B's bytes; a block's tiles, if it had a multiprocessor to itself; and what
/// the warps of a multiprocessor take for all of its tiles. Fitted to an H100, with the first tiles of 8 and 16 rows.
template <class S, class Shape>
double skinny_seconds(const Contraction& p) {
  constexpr double launch = 4.5e-6, clock = 1.75e9, bytes_per_second = 2.5e12;
  constexpr double chain = sizeof(typename S::accumulator) > 4 ? 10 : 5, warps = Shape::computing / 32;
  constexpr double outputs = Shape::rows * Shape::of_thread,
                   conversions = Shape::size < 4 ? Shape::rows + Shape::of_thread : 0;
  constexpr double of_type = Shape::size == 8 ? 1.5 : Shape::size == 1 ? 3 : 1, of_output = 1.5 + 0.96 / relative_speed<S>;
  // Clocks that one k takes a computing warp, if each scheduler has one.
  constexpr double of_k = of_type * (4 + outputs * of_output + 0.6 * conversions);
  const double tiles = static_cast<double>(p.batch) * std::ceil(static_cast<double>(p.m) / Shape::m) *
                       std::ceil(static_cast<double>(p.n) / Shape::columns);
  const double multiprocessors = std::max(p.execution.multiprocessors, 1), k = static_cast<double>(p.k);
  const double slabs = std::ceil(k / Shape::depth);
  const double busy = std::min(std::ceil(static_cast<double>(p.m) * warps / Shape::m), warps);
  const double of_block = std::ceil(tiles / (2 * multiprocessors)) * (1000 + slabs * 250 + k * std::max(chain, 0.6 * of_k));
  const double rounds = tiles <= multiprocessors ? 1 : 2 * std::ceil(tiles / (2 * multiprocessors));  // of two blocks each
  const double of_multiprocessor = rounds * (1000 + 0.87 * (slabs * 150 + k * of_k * busy / 4));
  const double bytes = static_cast<double>(p.batch) * static_cast<double>(p.n) * k * p.b.size;
  return launch + std::max(std::max(of_block, of_multiprocessor) / clock, bytes / bytes_per_second);
}

/// The same for threads of `count` rows of semirings that compute floats, from instructions: a warp of each scheduler computes a tile.
template <class S, class Shape>
double skinny_seconds_of_floats(const Contraction& p, int count) {
  constexpr double launch = 4.5e-6, clock = 1.7e9, bytes_per_second = 3.5e12, c_per_second = 2e12;
  constexpr double of_step = 1.95 * pace<OnFloats<S>>.step, of_tile = 700, of_slab = 120, of_output = 50,
                   of_copy = 5;  // clocks
  const double rows = count, columns = Shape::of_thread, k = static_cast<double>(p.k), n = static_cast<double>(p.n);
  const double lines = Shape::groups * rows + Shape::columns;
  const double of_reads = columns == 1 ? rows / Shape::width + 1 : (rows + columns) / Shape::width;
  const double conversions = Shape::size < 4 ? rows + columns : 0;
  // A read of 16 bytes takes shared memory two clocks, or four if all threads of a warp read different columns.
  const double of_memory = (columns == 1 ? 2 * rows + 4 : 2 * (rows + columns)) * Shape::size / 4;
  const double copies = lines / (Shape::width * Shape::copying) * (of_copy + (Shape::converts ? 12 : 0));
  const double of_k = std::max(rows * columns * of_step + of_reads + conversions + copies, of_memory);
  const double batches = static_cast<double>(p.batch);
  const double tiles =
      batches * std::ceil(static_cast<double>(p.m) / (Shape::groups * rows)) * std::ceil(n / Shape::columns);
  const double multiprocessors = std::max(p.execution.multiprocessors, 1);
  // Blocks wait at barriers, and for the first slab of a tile, while others of their multiprocessor compute.
  const double waits = of_tile + std::ceil(k / Shape::depth) * of_slab;
  const int resident = Shape::template resident<typename S::accumulator>(count);
  const double of_multiprocessor = std::ceil(tiles / multiprocessors),
               of_block = std::ceil(tiles / (resident * multiprocessors));
  // A scheduler has one warp that computes, whose reads and steps wait for each other if it has many.
  constexpr double overlap = Shape::many_outputs ? 1.22 : 1.1;
  const double clocks = of_multiprocessor * (overlap * k * of_k + rows * columns * of_output) + of_block * waits;
  const double bytes = batches * n * (k * p.b.size / bytes_per_second + static_cast<double>(p.m) * p.b.size / c_per_second);
  return launch + std::max(clocks / clock, bytes);
}

/// How many rows a thread has, and the time.
struct SkinnyChoice {
  int count;
  double seconds;
};
template <class S>
SkinnyChoice skinny_choice(const Contraction& p) {
  return with_skinny_shape<S>(p, [&]<class Shape>() {
    if constexpr (Shape::counts.size() == 1) {
      return SkinnyChoice{Shape::rows, skinny_seconds<S, Shape>(p)};
    } else {
      SkinnyChoice best{0, std::numeric_limits<double>::infinity()};
      for (const int count : Shape::counts)
        if (const double seconds = skinny_seconds_of_floats<S, Shape>(p, count); seconds < best.seconds)
          best = {count, seconds};
      return best;
    }
  });
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
