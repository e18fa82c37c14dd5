// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few rows against a large matrix. A block takes 128 bytes of B's columns and all of K, and streams B through a ring of slabs in
// shared memory by 16-byte copies, many in flight, so that the call runs at the speed of memory. Half of its warps copy; a thread of
// the other half computes a few outputs of one column, each as one chain in ascending k. Slabs are deep, since each costs a barrier and
// the latency of shared memory.
#pragma once

#include <rigel/backends/cuda/arch/named_barrier.hpp>
#include <rigel/backends/cuda/arch/shared_memory.hpp>
#include <rigel/backends/cuda/simt/contract.hpp>

namespace rigel::backends::simt {

/// A tile of M rows by 128 bytes of columns, or by 64 of 1-byte types; a slab has `depth` elements along K, of which the code takes
/// `unrolled` at a time. A computing thread has `rows` neighbours in each of `of_thread` columns: the more outputs share an operand,
/// the less they read of shared memory, which is what limits sums of many rows. Vectors are of 16 bytes.
template <class Element, int M>
struct SkinnyShape {
  static constexpr int size = static_cast<int>(sizeof(Element)), columns = std::min(128 / size, 64);
  static constexpr int computing = size <= 2 ? 256 : 128, copying = 128, threads = computing + copying;
  static constexpr int blocks = size == 1 ? 1 : 2;  // on a multiprocessor, as far as registers are concerned
  static constexpr int of_thread = size == 8 ? 1 : 2, lanes = columns / of_thread;
  static constexpr int m = M, rows = m * lanes / computing;
  static constexpr int width = 16 / size;  // of a vector
  static constexpr int depth = size == 8 ? 64 : 128, unrolled = 32;
  // Elements from one row of A to the next, and from one column of B to the next if it is K-major: an odd number of vectors, so that
  // eight neighbours are in different banks.
  static constexpr int pitch = depth + width;
  static constexpr int of_a = m * pitch, of_b = columns * pitch;  // elements of a slab
  static constexpr int bytes = (of_a + of_b) * size, stages = std::min(110 * 1024 / bytes, 8), shared = stages * bytes;
  static_assert(rows * computing == m * lanes && depth % unrolled == 0 && unrolled % width == 0 && stages >= 3);
  static_assert(arch::holds(arch::shared_memory_of_sm_90, 2, shared));
};

/// How C is cut into tiles, a block's rows by its columns: those of a column of tiles follow each other.
struct SkinnyTiles {
  unsigned in_column, in_matrix;
  std::int64_t all;
};

/// One of them: its first output is C(l, m, n).
template <class Shape>
struct SkinnyTile {
  std::int64_t l, m, n;

  __device__ __forceinline__ SkinnyTile(const SkinnyTiles& tiles, std::int64_t index) {
    l = tiles.all == tiles.in_matrix ? 0 : index / tiles.in_matrix;
    const auto in_matrix = static_cast<unsigned>(index - l * tiles.in_matrix);
    const unsigned across = tiles.in_column == 1 ? in_matrix : in_matrix / tiles.in_column;
    m = std::int64_t{in_matrix - across * tiles.in_column} * Shape::m;
    n = std::int64_t{across} * Shape::columns;
  }
};

/// A thread's copies of the slabs of its block's tiles, one after the other: vectors of A and of B, each some lines behind the last.
/// They advance by additions, since a slab's multiplications of 64 bits would take as long as its sums.
template <class S, class Finish, class Shape, bool k_major>
class SkinnyCopies {
  using Element = typename S::element;
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
  __device__ __forceinline__ void start(Element* slab) {
    const int k = thread_ % along * width;
    Element* const to_a = slab + thread_ / along * Shape::pitch + k;
    Element* const to_b = slab + Shape::of_a + thread_ / in_line_b * pitch_b + thread_ % in_line_b * width;
#pragma unroll
    for (int i = 0; i < count_a; ++i)
      if (i < exist_a_ && k < left_) arch::copy_async<16>(to_a + i * apart_a * Shape::pitch, a_ + i * apart_a * g_.a.row);
#pragma unroll
    for (int i = 0; i < count_b; ++i)
      if (i < exist_b_ && (k_major ? k : thread_ / in_line_b + i * apart_b) < left_)
        arch::copy_async<16>(to_b + i * apart_b * pitch_b, b_ + i * apart_b * line_of_b());
    left_ -= Shape::depth;
    a_ += Shape::depth;
    b_ += Shape::depth * (k_major ? 1 : g_.b.row);
    if (left_ <= 0) {
      index_ += gridDim.x;
      begin();
    }
  }

 private:
  __device__ __forceinline__ std::int64_t line_of_b() const { return k_major ? g_.b.column : g_.b.row; }
  __device__ __forceinline__ void begin() {
    if (index_ >= tiles_.all) return;
    const SkinnyTile<Shape> tile(tiles_, index_);
    // How many of the lines from `first` on, `apart` from each other, are among `lines`.
    const auto exist = [](std::int64_t lines, int first, int apart) {
      return static_cast<int>(std::clamp<std::int64_t>((lines - first + apart - 1) / apart, 0, count_a + count_b));
    };
    left_ = g_.k;
    a_ = &g_.a.at(tile.l, tile.m + thread_ / along, thread_ % along * width);
    exist_a_ = exist(std::min<std::int64_t>(g_.m - tile.m, Shape::m), thread_ / along, apart_a);
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

/// Blocks are persistent: each takes every gridDim.x-th tile, and its copies run ahead into the next one.
template <class S, class Finish, class Shape, bool k_major>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    contract_skinny(const __grid_constant__ detail::Arguments<S, Finish> g, const __grid_constant__ SkinnyTiles tiles) {
  using Element = typename S::element;
  using Operand = operand_t<S>;
  using Vector = tile::Chunk<Element, Shape::width>;
  constexpr int stages = Shape::stages, width = Shape::width, rows = Shape::rows, of_thread = Shape::of_thread;
  extern __shared__ __attribute__((aligned(16))) unsigned char shared[];
  Element* const slabs = reinterpret_cast<Element*>(shared);
  const auto slab = [&](int stage) { return slabs + stage * (Shape::of_a + Shape::of_b); };
  const auto next = [](int stage) { return stage + 1 == stages ? 0 : stage + 1; };
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t all = (tiles.all - blockIdx.x + gridDim.x - 1) / gridDim.x * ((g.k + Shape::depth - 1) / Shape::depth);

  // All threads meet at each slab: it has arrived, and the one before it has been read.
  const auto meet = [] { arch::wait_at<Shape::threads>(1); };
  if (thread >= Shape::computing) {
    SkinnyCopies<S, Finish, Shape, k_major> copies(g, tiles, thread - Shape::computing);
    int free = 0;
    const auto bring = [&](std::int64_t i) __attribute__((always_inline)) {
      if (i < all) copies.start(slab(free));
      arch::commit_copies();
      free = next(free);
    };
#pragma unroll 1
    for (int i = 0; i < stages - 1; ++i) bring(i);
#pragma unroll 1
    for (std::int64_t i = 0; i < all; ++i) {
      arch::wait_for_copies<stages - 2>();
      meet();
      bring(i + stages - 1);
    }
    return;
  }

  // Columns of a K-major B that are `lanes` apart are in different banks; those of an N-major one are read together.
  const int column = thread % Shape::lanes * (k_major ? 1 : of_thread), row = thread / Shape::lanes * rows;
  constexpr int apart = k_major ? Shape::lanes : 1;
  int current = 0;
#pragma unroll 1
  for (std::int64_t index = blockIdx.x; index < tiles.all; index += gridDim.x) {
    const SkinnyTile<Shape> tile(tiles, index);
    const std::int64_t m = tile.m + row, n = tile.n + column;
    const S s = g.semiring(tile.l);
    typename S::accumulator x[rows][of_thread];
    // use(output, row, column) for each that exists.
    const auto for_each_output = [&](const auto& use) __attribute__((always_inline)) {
#pragma unroll
      for (int r = 0; r < rows; ++r)
#pragma unroll
        for (int c = 0; c < of_thread; ++c)
          if (m + r < g.m && n + c * apart < g.n) use(x[r][c], m + r, n + c * apart);
    };
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int c = 0; c < of_thread; ++c) x[r][c] = S::identity();
    if constexpr (can_accumulate<S>)
      if (g.accumulate)
        for_each_output([&](auto& output, std::int64_t i, std::int64_t j) { output = g.start(s, tile.l, i, j); });
#pragma unroll 1
    for (std::int64_t k0 = 0; k0 < g.k; k0 += Shape::depth, current = next(current)) {
      meet();
      const Element *const a = slab(current) + row * Shape::pitch, *const b = slab(current) + Shape::of_a;
      const int count = m < g.m ? static_cast<int>(std::min<std::int64_t>(g.k - k0, Shape::depth)) : 0;
      const auto add = [&](int k) __attribute__((always_inline)) {
        Vector of_a[rows], of_b[of_thread];
#pragma unroll
        for (int r = 0; r < rows; ++r) of_a[r] = Vector::load(a + r * Shape::pitch + k);
        if constexpr (k_major) {
#pragma unroll
          for (int c = 0; c < of_thread; ++c) of_b[c] = Vector::load(b + (column + c * apart) * Shape::pitch + k);
        } else {
#pragma unroll
          for (int v = 0; v < width; ++v) {
            const auto neighbours = tile::Chunk<Element, of_thread>::load(b + (k + v) * Shape::columns + column);
#pragma unroll
            for (int c = 0; c < of_thread; ++c) of_b[c].value[v] = neighbours.value[c];
          }
        }
#pragma unroll
        for (int v = 0; v < width; ++v)
#pragma unroll
          for (int r = 0; r < rows; ++r)
#pragma unroll
            for (int c = 0; c < of_thread; ++c)
              x[r][c] = step(s, x[r][c], static_cast<Operand>(of_a[r].value[v]), static_cast<Operand>(of_b[c].value[v]),
                             k0 + k + v);
      };
      int done = 0;
#pragma unroll 1
      for (; done + Shape::unrolled <= count; done += Shape::unrolled)
#pragma unroll
        for (int k = 0; k < Shape::unrolled; k += width) add(done + k);
#pragma unroll 1
      for (; done < count; done += width) add(done);
    }
    for_each_output([&](auto& output, std::int64_t i, std::int64_t j) { g.store(s, output, tile.l, i, j); });
  }
}

/// Whether a semiring of the zoo has these kernels: if ⊗ is short, not on pairs, and has kernels for vectors elsewhere.
template <class S>
inline constexpr bool has_skinny =
    in_zoo<S> && !is_transcendental<S> && !is_packed<S> && !singles_only<S> && bit_counts_of<S> == 0 &&
    std::is_arithmetic_v<typename S::accumulator> && sizeof(typename S::element) <= 8;

/// use.operator()<Shape>() with the least of two tiles that has all rows, or with the larger one.
template <class S, class Use>
auto with_skinny_shape(const Contraction& p, const Use& use) {
  using Low = SkinnyShape<typename S::element, 8>;
  if (p.m <= Low::m) return use.template operator()<Low>();
  return use.template operator()<SkinnyShape<typename S::element, 16>>();
}

/// Whether an operand consists of lines of whole vectors: of `length` neighbours, `lines` of them, `line_stride` apart.
inline bool in_whole_vectors(const Operand& o, std::int64_t length, std::int64_t stride, std::int64_t lines,
                             std::int64_t line_stride) {
  const auto whole = [&](std::int64_t elements) { return elements * static_cast<std::int64_t>(o.size) % 16 == 0; };
  return stride == 1 && whole(length) && (lines <= 1 || whole(line_stride)) && whole(o.batch_stride) &&
         reinterpret_cast<std::uintptr_t>(o.data) % 16 == 0;
}
inline bool is_k_major_in_vectors(const Contraction& p) {
  return in_whole_vectors(p.b, p.k, p.b.row_stride, p.n, p.b.column_stride);
}

template <class S, class Finish>
Status skinny_supports(const Contraction& p) {
  if (!in_whole_vectors(p.a, p.k, p.a.column_stride, p.m, p.a.row_stride))
    return {Decline::layout, "rows of A are no vectors of 16 bytes along K"};
  if (!is_k_major_in_vectors(p) && !in_whole_vectors(p.b, p.n, p.b.column_stride, p.k, p.b.row_stride))
    return {Decline::layout, "B is in vectors of 16 bytes neither along K nor along N"};
  if (!with_skinny_shape<S>(p, [&]<class Shape>() { return p.m <= 4 * Shape::m; }))
    return {Decline::extents, "C has more than a few rows"};
  if (p.n > max_grid) return {Decline::extents, "C has more than 2^31 - 1 columns"};  // hence fewer blocks
  return detail::finish_supports<Finish>(p);
}

/// A launch and the first slabs, and the longest of three: B's bytes; a block's tiles, if it had a multiprocessor to itself; and what
/// the warps of a multiprocessor take for all of its tiles. Fitted to an H100.
template <class S>
double skinny_seconds(const Contraction& p) {
  return with_skinny_shape<S>(p, [&]<class Shape>() {
    constexpr double launch = 5.5e-6, clock = 1.75e9, bytes_per_second = 2.5e12;
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
    const double of_block =
        std::ceil(tiles / (2 * multiprocessors)) * (1000 + slabs * 250 + k * std::max(chain, 0.6 * of_k));
    const double rounds = tiles <= multiprocessors ? 1 : 2 * std::ceil(tiles / (2 * multiprocessors));  // of two blocks each
    const double of_multiprocessor = rounds * (1000 + 0.87 * (slabs * 150 + k * of_k * busy / 4));
    const double bytes = static_cast<double>(p.batch) * static_cast<double>(p.n) * k * p.b.size;
    return launch + std::max(std::max(of_block, of_multiprocessor) / clock, bytes / bytes_per_second);
  });
}

template <class S, class Finish>
void run_skinny(const KernelInfo& info, const Contraction& p) {
  const cuda::CurrentDevice current(p.execution.device);
  auto arguments = detail::arguments_of<S, Finish>(p);
  with_skinny_shape<S>(p, [&]<class Shape>() {
    SkinnyTiles tiles;
    tiles.in_column = static_cast<unsigned>((p.m + Shape::m - 1) / Shape::m);
    tiles.in_matrix = tiles.in_column * static_cast<unsigned>((p.n + Shape::columns - 1) / Shape::columns);
    tiles.all = p.batch * tiles.in_matrix;
    const bool k_major = is_k_major_in_vectors(p);
    const auto function = k_major ? reinterpret_cast<const void*>(&contract_skinny<S, Finish, Shape, true>)
                                  : reinterpret_cast<const void*>(&contract_skinny<S, Finish, Shape, false>);
    static cuda::LaunchFacts facts[2];
    facts[k_major].find(function, Shape::shared, p.execution.device, info.name);
    const std::int64_t blocks = std::min<std::int64_t>(tiles.all, 2 * std::max(p.execution.multiprocessors, 1));
    void* list[] = {&arguments, &tiles};
    cuda::check_launch(cudaLaunchKernel(function, dim3(static_cast<unsigned>(blocks)), dim3(Shape::threads), list,
                                        Shape::shared, static_cast<cudaStream_t>(p.execution.stream)),
                       info.name);
  });
}

template <class S, class Finish>
Kernel<Contraction> skinny_kernel() {
  Kernel<Contraction> k = kernel<S, Finish, SmallTile<S>>();
  detail::set_variant(k.info, "skinny");
  with_skinny_shape<S>(Contraction{}, [&]<class Low>() {
    k.info.tile = {Low::m, Low::columns, Low::depth};
    k.info.stages = Low::stages;
    k.info.threads = Low::threads;
    k.info.shared_memory = Low::shared;
  });
  k.supports = detail::supports_by<skinny_supports<S, Finish>>;
  k.cost = detail::cost_by<skinny_seconds<S>>;
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
    run_skinny<S, Finish>(kernel.info, p);
  };
  return k;
}

}  // namespace rigel::backends::simt
