// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few rows against a large matrix. A block takes 128 bytes of B's columns and all of K, and streams B through a ring of slabs in
// shared memory by 16-byte copies, many in flight, so that the call runs at the speed of memory. A thread computes outputs of one
// column, each as one chain in ascending k.
#pragma once

#include <rigel/backends/cuda/simt/contract.hpp>

namespace rigel::backends::simt {

/// A block of `groups` · Rows rows by 128 bytes of columns; a slab has `depth` elements along K. Vectors are of 16 bytes.
template <class Element, int Rows>
struct SkinnyShape {
  static constexpr int size = static_cast<int>(sizeof(Element)), columns = 128 / size, threads = 256;
  static constexpr int rows = Rows, groups = threads / columns, m = groups * rows;
  static constexpr int width = 16 / size;  // of a vector
  static constexpr int depth = 32;
  // Elements from one row of A to the next, and from one column of B to the next if it is K-major: an odd number of vectors, so that
  // eight neighbours are in different banks.
  static constexpr int pitch = depth + width;
  static constexpr int of_a = m * pitch, of_b = columns * pitch;  // elements of a slab
  static constexpr int bytes = (of_a + of_b) * size, stages = std::min(48 * 1024 / bytes, 9);
  static_assert(depth % width == 0 && stages >= 3);
};

/// A block's part of the operands.
template <class Shape, class Element>
struct SkinnyOperands {
  const Element *a, *b;
  std::int64_t a_row, b_line;  // from row to row of A; from column to column of B, or from k to k if it is N-major
  int rows_left, columns_left;

  /// Starts to bring a slab of `left` > 0 elements along K to `slab`: A, then B.
  template <bool k_major>
  __device__ __forceinline__ void start(Element* slab, std::int64_t k0, std::int64_t left) const {
    constexpr int width = Shape::width, along = Shape::depth / width, threads = Shape::threads;
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < (Shape::m * along + threads - 1) / threads; ++i) {
      const int v = thread + i * threads, row = v / along, k = v % along * width;
      if (row < std::min(Shape::m, rows_left) && k < left)
        arch::copy_async<16>(slab + row * Shape::pitch + k, a + row * a_row + k0 + k);
    }
    Element* const to = slab + Shape::of_a;
    if constexpr (k_major) {
#pragma unroll
      for (int i = 0; i < (Shape::columns * along + threads - 1) / threads; ++i) {
        const int v = thread + i * threads, column = v / along, k = v % along * width;
        if (column < std::min(Shape::columns, columns_left) && k < left)
          arch::copy_async<16>(to + column * Shape::pitch + k, b + column * b_line + k0 + k);
      }
    } else {
      constexpr int across = Shape::columns / width;  // 8
#pragma unroll
      for (int i = 0; i < (Shape::depth * across + threads - 1) / threads; ++i) {
        const int v = thread + i * threads, k = v / across, column = v % across * width;
        if (k < std::min<std::int64_t>(Shape::depth, left) && column < columns_left)
          arch::copy_async<16>(to + k * Shape::columns + column, b + (k0 + k) * b_line + column);
      }
    }
  }
};

/// The grid: along x the blocks of a column of blocks, then the next column; along y the matrices of a batch from `first` on.
template <class S, class Finish, class Shape, bool k_major>
__global__ void __launch_bounds__(Shape::threads, 2)
    contract_skinny(const __grid_constant__ detail::Arguments<S, Finish> g, unsigned blocks_m, std::int64_t first) {
  using Element = typename S::element;
  using Operand = operand_t<S>;
  using Vector = tile::Chunk<Element, Shape::width>;
  constexpr int stages = Shape::stages, width = Shape::width, rows = Shape::rows;
  __shared__ __attribute__((aligned(16))) unsigned char shared[stages * Shape::bytes];
  Element* const slabs = reinterpret_cast<Element*>(shared);
  const auto slab = [&](int stage) { return slabs + stage * (Shape::of_a + Shape::of_b); };

  const std::int64_t l = first + blockIdx.y, m0 = std::int64_t{blockIdx.x % blocks_m} * Shape::m,
                     n0 = std::int64_t{blockIdx.x / blocks_m} * Shape::columns;
  const auto left_of = [](std::int64_t all, int most) { return static_cast<int>(std::min<std::int64_t>(all, most)); };
  const SkinnyOperands<Shape, Element> operands{&g.a.at(l, m0, 0),
                                                &g.b.at(l, 0, n0),
                                                g.a.row,
                                                k_major ? g.b.column : g.b.row,
                                                left_of(g.m - m0, Shape::m),
                                                left_of(g.n - n0, Shape::columns)};
  const int thread = static_cast<int>(threadIdx.x), column = thread % Shape::columns, group = thread / Shape::columns;
  const S s = g.semiring(l);
  typename S::accumulator x[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    x[r] = S::identity();
    const int m = group + r * Shape::groups;
    if constexpr (can_accumulate<S>)
      if (m < operands.rows_left && column < operands.columns_left) x[r] = g.start(s, l, m0 + m, n0 + column);
  }

#pragma unroll 1
  for (int stage = 0; stage < stages - 1; ++stage) {
    if (stage * Shape::depth < g.k)
      operands.template start<k_major>(slab(stage), stage * Shape::depth, g.k - stage * Shape::depth);
    arch::commit_copies();
  }
  int current = 0, free = stages - 1;
#pragma unroll 1
  for (std::int64_t k0 = 0; k0 < g.k; k0 += Shape::depth) {
    arch::wait_for_copies<stages - 2>();
    __syncthreads();  // the slab has arrived, and the one before it has been read
    if (const std::int64_t next = k0 + (stages - 1) * Shape::depth; next < g.k)
      operands.template start<k_major>(slab(free), next, g.k - next);
    arch::commit_copies();
    const Element *const a = slab(current) + group * Shape::pitch, *const b = slab(current) + Shape::of_a;
    const int count = left_of(g.k - k0, Shape::depth);
    const auto add = [&](int k) __attribute__((always_inline)) {
      Vector of_a[rows], of_b;
#pragma unroll
      for (int r = 0; r < rows; ++r) of_a[r] = Vector::load(a + r * Shape::groups * Shape::pitch + k);
      if constexpr (k_major) {
        of_b = Vector::load(b + column * Shape::pitch + k);
      } else {
#pragma unroll
        for (int v = 0; v < width; ++v) of_b.value[v] = b[(k + v) * Shape::columns + column];
      }
#pragma unroll
      for (int v = 0; v < width; ++v)
#pragma unroll
        for (int r = 0; r < rows; ++r)
          x[r] = step(s, x[r], static_cast<Operand>(of_a[r].value[v]), static_cast<Operand>(of_b.value[v]), k0 + k + v);
    };
    if (count == Shape::depth) {
#pragma unroll
      for (int k = 0; k < Shape::depth; k += width) add(k);
    } else {
#pragma unroll 1
      for (int k = 0; k < count; k += width) add(k);
    }
    free = current;
    current = current + 1 == stages ? 0 : current + 1;
  }

#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const int m = group + r * Shape::groups;
    if (m < operands.rows_left && column < operands.columns_left) g.store(s, x[r], l, m0 + m, n0 + column);
  }
}

/// Whether a semiring of the zoo has these kernels: if ⊗ is short, not on pairs, and has kernels for vectors elsewhere.
template <class S>
inline constexpr bool has_skinny =
    in_zoo<S> && !is_transcendental<S> && !is_packed<S> && !singles_only<S> && bit_counts_of<S> == 0 &&
    std::is_arithmetic_v<typename S::accumulator> && sizeof(typename S::element) <= 8;

/// use.operator()<Shape>() with the least of two blocks that has all rows, or with the larger one.
template <class S, class Use>
auto with_skinny_shape(const Contraction& p, const Use& use) {
  using Element = typename S::element;
  using Low = SkinnyShape<Element, 1>;
  if (p.m <= Low::m) return use.template operator()<Low>();
  constexpr int rows = sizeof(Element) == 8 ? 2 : sizeof(Element) == 2 ? 8 : 4;  // as registers and shared memory allow
  return use.template operator()<SkinnyShape<Element, rows>>();
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
  if (!with_skinny_shape<S>(p, [&]<class Shape>() { return p.m <= 2 * Shape::m; }))
    return {Decline::extents, "C has more than a few rows"};
  if (p.n > max_grid) return {Decline::extents, "C has more than 2^31 - 1 columns"};  // hence fewer blocks
  return detail::finish_supports<Finish>(p);
}

/// A launch, for each round of blocks the wait for the first slabs, and the longest of three: B's bytes; the slabs of a block, each as
/// long as a thread's chain; and what the warps of a multiprocessor issue. Estimated for sm_90 from instruction counts.
template <class S>
double skinny_seconds(const Contraction& p) {
  return with_skinny_shape<S>(p, [&]<class Shape>() {
    constexpr double launch = 3.5e-6, wait = 2e-6, clock = 1.8e9, bytes_per_second = 2.5e12, of_slab = 200;
    constexpr double instructions = 1.6 / relative_speed<S> * registers_of<operand_t<S>>;
    constexpr double chain = sizeof(typename S::accumulator) > 4 ? 10 : 5, issue = 3 * (Shape::rows * instructions + 2);
    const double blocks = static_cast<double>(p.batch) * std::ceil(static_cast<double>(p.m) / Shape::m) *
                          std::ceil(static_cast<double>(p.n) / Shape::columns);
    const double multiprocessors = std::max(p.execution.multiprocessors, 1), each = std::ceil(blocks / multiprocessors);
    const double slabs = std::ceil(static_cast<double>(p.k) / Shape::depth), resident = 4;
    const double rounds = std::ceil(each / resident), of_chain = rounds * slabs * (of_slab + Shape::depth * chain);
    const double of_issue = each * slabs * (of_slab / 2 + Shape::depth * issue);
    const double bytes = static_cast<double>(p.batch) * static_cast<double>(p.n) * static_cast<double>(p.k) * p.b.size;
    return launch + rounds * wait + std::max(std::max(of_chain, of_issue) / clock, bytes / bytes_per_second);
  });
}

template <class S, class Finish>
void run_skinny(const KernelInfo& info, const Contraction& p) {
  const cuda::CurrentDevice current(p.execution.device);
  auto arguments = detail::arguments_of<S, Finish>(p);
  with_skinny_shape<S>(p, [&]<class Shape>() {
    auto blocks_m = static_cast<unsigned>((p.m + Shape::m - 1) / Shape::m);
    const auto blocks = blocks_m * static_cast<unsigned>((p.n + Shape::columns - 1) / Shape::columns);
    const auto function = is_k_major_in_vectors(p)
                              ? reinterpret_cast<const void*>(&contract_skinny<S, Finish, Shape, true>)
                              : reinterpret_cast<const void*>(&contract_skinny<S, Finish, Shape, false>);
    cuda::for_each_launch(p.batch, cuda::max_grid_yz, [&](std::int64_t first, std::int64_t count) {
      void* list[] = {&arguments, &blocks_m, &first};
      cuda::check_launch(cudaLaunchKernel(function, dim3(blocks, static_cast<unsigned>(count)), dim3(Shape::threads), list,
                                          0, static_cast<cudaStream_t>(p.execution.stream)),
                         info.name);
    });
  });
}

template <class S, class Finish>
Kernel<Contraction> skinny_kernel() {
  using Low = SkinnyShape<typename S::element, 1>;
  Kernel<Contraction> k = kernel<S, Finish, SmallTile<S>>();
  detail::set_variant(k.info, "skinny");
  k.info.tile = {Low::m, Low::columns, Low::depth};
  k.info.stages = Low::stages;
  k.info.threads = Low::threads;
  k.info.shared_memory = Low::stages * Low::bytes;
  k.supports = detail::supports_by<skinny_supports<S, Finish>>;
  k.cost = detail::cost_by<skinny_seconds<S>>;
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
    run_skinny<S, Finish>(kernel.info, p);
  };
  return k;
}

}  // namespace rigel::backends::simt
