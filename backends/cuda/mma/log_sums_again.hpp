// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel that recomputes what log_sums.hpp marks, in cells of 64 × 64 outputs: infinities decide some; others come from products
// of floats in two parts, whose exponents reach further; those that are too small for these from direct sums.
#pragma once

#include <rigel/backends/cuda/mma/log_sums_infinite.hpp>
#include <rigel/backends/cuda/simt/steps.hpp>
#include <rigel/backends/cuda/simt/sum.hpp>

namespace rigel::backends::mma {

/// log Σ exp(t), eight k at a time relative to the running maximum, by the special-function unit: an exponential is within 4
/// u, its argument, x ≤ 0, within 2.25·|x|·u. Absent terms are −∞.
class DirectSum {
 public:
  static constexpr int chunk = 8;

  __device__ __forceinline__ static float largest(const float (&t)[chunk]) {
    return math::maximum(math::maximum(math::maximum(t[0], t[1]), math::maximum(t[2], t[3])),
                         math::maximum(math::maximum(t[4], t[5]), math::maximum(t[6], t[7])));
  }
  /// What a chunk adds, if `larger` is the maximum up to it and `before` that of the previous chunks: sum ← sum · weight +
  /// own.
  struct Part {
    float weight, own;
    __device__ __forceinline__ Part(const float (&t)[chunk], float before, float larger) {
      // Relative to a finite number, since infinity minus infinity is NaN.
      constexpr float most = std::numeric_limits<float>::max();
      const float scale = fminf(fmaxf(larger, -most), most);
      const auto e = [&](float x) __attribute__((always_inline)) {
        float y;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(math::subtract(x, scale) * 1.44269504088896340736f));
        return y;
      };
      weight = e(before);
      own = ((e(t[0]) + e(t[1])) + (e(t[2]) + e(t[3]))) + ((e(t[4]) + e(t[5])) + (e(t[6]) + e(t[7])));
    }
  };
  __device__ __forceinline__ static log_sum<float> step(log_sum<float> x, const float (&t)[chunk]) {
    const float larger = math::maximum(x.maximum, largest(t));
    const Part part(t, x.maximum, larger);
    return {larger, math::fma(x.sum, part.weight, part.own)};
  }
};

/// The same as the steps of cuda.simt's tiles.
struct DirectSteps {
  using Accumulator = log_sum<float>;
  static constexpr int chunk = DirectSum::chunk;
  template <int count>
  __device__ __forceinline__ Accumulator operator()(Accumulator x, const float (&a)[count], const float (&b)[count]) const {
    float t[chunk];
#pragma unroll
    for (int i = 0; i < chunk; ++i) t[i] = i < count ? math::add(a[i % count], b[i % count]) : -infinity<float>();
    return DirectSum::step(x, t);
  }
};

/// A block's shared memory.
template <int threads>
struct MarkedStorage {
  static constexpr int edge = Marks::edge, depth = Loader<float, threads>::depth;
  static constexpr int few = 256;  // outputs of a cell that warps compute one by one
  using Shape = tile::Shape<16, 16, 4, 4, 16, 2, false>;
  using Sums = simt::TileSum<LogPlus, Shape, DirectSteps, tile::Way::single, tile::Way::single>;
  static_assert(Shape::threads == threads && Shape::m == edge && Shape::n == edge);

  // What a phase needs; a slab of terms has the form of Sums.
  union {
    alignas(128) float parts[2][edge * depth];
    float slabs[Sums::slab_bytes / sizeof(float)];
    typename InfiniteTerms<float, threads>::Storage infinite;
    float values[edge][edge + 1];
  };
  float maxima[2][edge], against[2][edge];
  typename InfiniteTerms<float, threads>::Facts facts;
  std::uint32_t words[Marks::words];  // the marks
  std::uint16_t list[few];
  int left;
  unsigned cell, l, m0, n0;  // the cell's number, its matrix, its first row and column

  __device__ __forceinline__ void start(const Marks& marks, unsigned number) {
    const unsigned in_batch = marks.cells_m * marks.cells_n;
    cell = number, l = number / in_batch, m0 = number % in_batch / marks.cells_n * edge, n0 = number % marks.cells_n * edge;
    left = 0;
  }
};

/// The work on one cell. The phases have little in common: values derived from the thread's index are not kept from one to
/// the next. Eight warps have 32 × 16 outputs each.
template <int threads>
class MarkedCell {
  using Storage = MarkedStorage<threads>;
  using Load = Loader<float, threads>;
  static constexpr int edge = Marks::edge, depth = Load::depth, each = Load::each, few = Storage::few;

 public:
  /// The cell's place must be in shared memory.
  __device__ __forceinline__ MarkedCell(const LogOfSum& of, Storage& shared)
      : of_(of), g_(of.g), shared_(shared), all_k_(static_cast<int>(of.g.k)) {}

  __device__ __forceinline__ void compute() const {
    read_marks();
    __syncthreads();
    decide_infinite();
    __syncthreads();
    if (__syncthreads_or(marks_of_thread() != 0) == 0) return;
    multiply();
    __syncthreads();
    store([&](unsigned row, unsigned column, log_sum<float>& sum) {
      sum = LogOfSum::total(shared_.maxima[0][row], shared_.maxima[1][column], shared_.values[row][column]);
      return of_.holds(sum, LogOfSum::least_of_floats);
    });
    __syncthreads();

    list_what_is_left();
    __syncthreads();
    if (shared_.left == 0) return;
    // A warp reads 256 k of an output at a time: 32 lines of memory with one of its numbers each, unless operands are K-major.
    const bool k_major = g_.a.column <= g_.a.row && g_.b.row <= g_.b.column;
    if (shared_.left <= (k_major ? few : few / 2))
      sum_by_warps();
    else
      sum_by_threads();
    __syncthreads();
    store([&](unsigned row, unsigned column, log_sum<float>& sum) {
      sum = LogPlus::lift(shared_.values[row][column]);
      return true;
    });
  }

 private:
  // The matrix, and the first row and column of the cell. Read when they are needed, so that they take no registers while tiles are
  // summed.
  __device__ __forceinline__ static unsigned read(const unsigned& from) {
    return *static_cast<const volatile unsigned*>(&from);
  }
  __device__ __forceinline__ unsigned l() const { return read(shared_.l); }
  __device__ __forceinline__ unsigned m0() const { return read(shared_.m0); }
  __device__ __forceinline__ unsigned n0() const { return read(shared_.n0); }

  __device__ __forceinline__ Load loader_of_a() const {
    return Load(g_.a.data + g_.a.offset(l(), m0(), 0), g_.a.row, g_.a.column, g_.m - m0());
  }
  __device__ __forceinline__ Load loader_of_b() const {
    return Load(g_.b.data + g_.b.offset(l(), 0, n0()), g_.b.column, g_.b.row, g_.n - n0());
  }

  /// The marks, and the maxima of the cell's rows and columns.
  __device__ __forceinline__ void read_marks() const {
    const unsigned thread = arch::thread_index();
    if (thread < Marks::words)
      shared_.words[thread] = of_.marks.bits[std::size_t{read(shared_.cell)} * Marks::words + thread];
    if (thread < 2 * edge) {
      const bool of_a = thread < edge;
      const std::int64_t line = (of_a ? m0() : n0()) + thread % edge;
      ExponentialLine x = {-infinity<float>(), 0};
      if (line < (of_a ? g_.m : g_.n)) x = of_a ? of_.a(l(), line) : of_.b(l(), line);
      shared_.maxima[thread / edge][thread % edge] = x.maximum;
      shared_.against[thread / edge][thread % edge] = subtrahend(x.maximum);
      shared_.facts.set(thread, x);
    }
  }

  /// This thread's share of the marks.
  __device__ __forceinline__ std::uint32_t marks_of_thread() const {
    const unsigned thread = arch::thread_index();
    return thread < Marks::words ? shared_.words[thread] : 0;
  }
  __device__ __forceinline__ bool is_marked(unsigned row, unsigned column) const {
    return (shared_.words[row * (edge / 32) + column / 32] >> column % 32 & 1) != 0;
  }
  /// Stores a marked output and clears its mark.
  __device__ __forceinline__ void store_one(unsigned row, unsigned column, log_sum<float> sum) const {
    const std::int64_t m = m0() + row, n = n0() + column;
    if (g_.accumulate) sum = LogPlus::add(LogPlus::lift(of_.before[of_.place(l(), m, n)]), sum);
    g_.store(LogPlus{}, sum, l(), m, n);
    atomicAnd(&shared_.words[row * (edge / 32) + column / 32], ~(1u << column % 32));
  }

  /// Marked outputs that infinities decide.
  __device__ __forceinline__ void decide_infinite() const {
    using Terms = InfiniteTerms<float, threads>;
    const Load load[2] = {loader_of_a(), loader_of_b()};
    Terms::find(
        load, all_k_, shared_.infinite, shared_.facts, [&](unsigned row, unsigned column) { return is_marked(row, column); },
        [&](unsigned row, unsigned column, float value) { store_one(row, column, LogPlus::lift(value)); });
  }

  /// Products of exponentials, as floats in two parts.
  __device__ __forceinline__ void multiply() const {
    using Mma = arch::Mma<float>;
    using Slab = tile::MatrixSlab<float, tile::Direction::along_k, edge, threads>;
    const auto slabs = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared_.parts[0]));
    const unsigned mine = arch::thread_index(), lane = mine % 32, row = mine / 128 * 32, column = mine / 32 % 4 * 16;
    const typename Slab::template Reader<Slab::Order::rows> reader_a(static_cast<int>(row), static_cast<int>(lane));
    const typename Slab::template Reader<Slab::Order::columns> reader_b(static_cast<int>(column), static_cast<int>(lane));
    // A warp without marked outputs only stages.
    const bool needed =
        __any_sync(~0u, (shared_.words[(row + lane) * (edge / 32) + column / 32] >> column % 32 & 0xffff) != 0);
    const Load load[2] = {loader_of_a(), loader_of_b()};
    float sums[2][2][4] = {}, x[2][each];
#pragma unroll
    for (int o = 0; o < 2; ++o) load[o](x[o], 0, all_k_);
#pragma unroll 1
    for (int k0 = 0; k0 < all_k_; k0 += depth) {
      __syncthreads();
#pragma unroll
      for (int o = 0; o < 2; ++o)
        load[o].for_each([&](int i, unsigned line, unsigned k) __attribute__((always_inline)) {
          shared_.parts[o][line * depth + (k / 4 ^ line % 8) * 4 + k % 4] =
              exponential_against(shared_.against[o][line], x[o][i]);
        });
      __syncthreads();
#pragma unroll
      for (int o = 0; o < 2; ++o) load[o](x[o], k0 + depth, all_k_);
      float of_slab[2][2][4] = {};
      if (needed)
#pragma unroll
        for (int step = 0; step < Slab::steps; ++step) {
          std::uint32_t fragment_a[2][4], fragment_b[1][4];
#pragma unroll
          for (int i = 0; i < 2; ++i) reader_a.read(slabs, 16 * i, step, fragment_a[i]);
          reader_b.read(slabs + Slab::bytes, 0, step, fragment_b[0]);
          add_split_products<Mma>(of_slab, fragment_a, fragment_b);
        }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j)
#pragma unroll
          for (int r = 0; r < 4; ++r) sums[i][j][r] = math::add(sums[i][j][r], of_slab[i][j][r]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int r = 0; r < 4; ++r)
          shared_.values[row + 16 * i + lane / 4 + r / 2 * 8][column + 8 * j + lane % 4 * 2 + r % 2] = sums[i][j][r];
  }

  /// Stores marked outputs, from the sum that value(row, column, sum) sets, and clears their marks. Outputs for which it
  /// returns false stay marked.
  template <class ValueOf>
  __device__ __forceinline__ void store(const ValueOf& value) const {
#pragma unroll 1
    for (unsigned e = arch::thread_index(); e < edge * edge; e += threads) {
      const unsigned row = e / edge, column = e % edge;
      log_sum<float> sum;
      if (is_marked(row, column) && value(row, column, sum)) store_one(row, column, sum);
    }
  }

  /// Counts what is still marked, and lists it while it is little.
  __device__ __forceinline__ void list_what_is_left() const {
    for (unsigned e = arch::thread_index(); e < edge * edge; e += threads)
      if (shared_.words[e / 32] >> e % 32 & 1) {
        const int i = atomicAdd(&shared_.left, 1);
        if (i < few) shared_.list[i] = static_cast<std::uint16_t>(e);
      }
  }

  /// The terms of an output from k0 on, as far as they exist.
  __device__ __forceinline__ void terms_of(float (&t)[DirectSum::chunk], unsigned row, unsigned column, int k0) const {
#pragma unroll
    for (int j = 0; j < DirectSum::chunk; ++j)
      t[j] = k0 + j < all_k_ ? math::add(g_.a.at(l(), m0() + row, k0 + j), g_.b.at(l(), k0 + j, n0() + column))
                             : -infinity<float>();
  }

  /// Listed outputs by direct sums, one at a time. A lane takes a chunk; the weights and sums of 32 lanes are joined in
  /// ascending order.
  __device__ __forceinline__ void sum_by_warps() const {
    const auto lane = static_cast<int>(arch::thread_index() % 32);
#pragma unroll 1
    for (int i = static_cast<int>(arch::thread_index() / 32); i < shared_.left; i += threads / 32) {
      const unsigned row = shared_.list[i] / edge, column = shared_.list[i] % edge;
      log_sum<float> sum = LogPlus::identity();
#pragma unroll 1
      for (int k0 = 0; k0 < all_k_; k0 += 32 * DirectSum::chunk) {
        float t[DirectSum::chunk];
        terms_of(t, row, column, k0 + lane * DirectSum::chunk);
        float larger = math::maximum(sum.maximum, DirectSum::largest(t));
#pragma unroll
        for (int apart = 1; apart < 32; apart *= 2) {
          const float other = __shfl_up_sync(~0u, larger, apart);
          if (lane >= apart) larger = math::maximum(larger, other);
        }
        const float other = __shfl_up_sync(~0u, larger, 1);
        const DirectSum::Part part(t, lane == 0 ? sum.maximum : other, larger);
#pragma unroll 8
        for (int j = 0; j < 32; ++j)
          sum.sum = math::fma(sum.sum, __shfl_sync(~0u, part.weight, j), __shfl_sync(~0u, part.own, j));
        sum.maximum = __shfl_sync(~0u, larger, 31);
      }
      if (lane == 0) shared_.values[row][column] = LogPlus::result(sum);
    }
  }

  /// All outputs by direct sums, as cuda.simt's tiles have them, and what is left of K after whole chunks.
  __device__ __forceinline__ void sum_by_threads() const {
    using Shape = typename Storage::Shape;
    using Sums = typename Storage::Sums;
    const unsigned thread = arch::thread_index();
    tile::Place<Shape> place(static_cast<int>(thread));
    typename Sums::Registers x;
#pragma unroll
    for (auto& row : x)
#pragma unroll
      for (auto& sum : row) sum = LogPlus::identity();
    const int whole = all_k_ / DirectSum::chunk * DirectSum::chunk;
    if (whole > 0) {
      typename Sums::LoaderA a(g_.a.data + g_.a.offset(l(), m0(), 0), g_.a.row, g_.a.column, g_.m - m0(), whole,
                               shared_.slabs, thread);
      typename Sums::LoaderB b(g_.b.data + g_.b.offset(l(), 0, n0()), g_.b.column, g_.b.row, g_.n - n0(), whole,
                               shared_.slabs, thread);
      typename Sums::Operand of_a[2][Shape::outputs_m], of_b[2][Shape::outputs_n];
      const detail::ProductArguments<float> of_whole{g_.batch, g_.m, g_.n, whole, g_.a, g_.b};
      Sums::add(x, a, b, of_a, of_b, of_whole, DirectSteps{}, place, shared_.slabs);
    }
    __syncthreads();
    if (whole < all_k_) {
      add_rest(x, place, whole);
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < Shape::outputs_m; ++i)
#pragma unroll
      for (int j = 0; j < Shape::outputs_n; ++j)
        shared_.values[tile::line_of<Shape::threads_m, Sums::chunk>(i, place.m)]
                      [tile::line_of<Shape::threads_n, Sums::chunk>(j, place.n)] = LogPlus::result(x[i][j]);
  }
  /// The terms from k0 on, less than a chunk.
  template <class Registers, class Place>
  __device__ __forceinline__ void add_rest(Registers& x, const Place& place, int k0) const {
    using Shape = typename Storage::Shape;
    using Sums = typename Storage::Sums;
    using Slab = typename Sums::SlabA;
    constexpr int chunk = DirectSum::chunk, size = chunk * Slab::pitch;
    static_assert(std::is_same_v<Slab, typename Sums::SlabB> && 2 * size * sizeof(float) <= sizeof(shared_.slabs));
#pragma unroll 1
    for (unsigned e = arch::thread_index(); e < 2 * chunk * edge; e += threads) {
      const unsigned o = e / (chunk * edge), line = e % edge;
      const int k = k0 + static_cast<int>(e / edge % chunk);
      float value = -infinity<float>();
      if (k < all_k_ && (o == 0 ? m0() + line < g_.m : n0() + line < g_.n))
        value = o == 0 ? g_.a.at(l(), m0() + line, k) : g_.b.at(l(), k, n0() + line);
      shared_.slabs[o * size + (k - k0) * Slab::pitch + line] = value;
    }
    __syncthreads();
    float of_a[chunk][Shape::outputs_m], of_b[chunk][Shape::outputs_n];
#pragma unroll
    for (int c = 0; c < chunk; ++c) {
      Slab::template read<Shape::threads_m, Sums::chunk>(shared_.slabs, c, place.m, of_a[c]);
      Slab::template read<Shape::threads_n, Sums::chunk>(shared_.slabs + size, c, place.n, of_b[c]);
    }
    simt::step_chunk(DirectSteps{}, x, of_a, of_b, k0);
  }

  const LogOfSum& of_;
  const detail::Arguments<LogPlus, detail::ProgramFinish>& g_;
  Storage& shared_;
  int all_k_;
};

/// Recomputes marked outputs, cell by cell.
template <int threads>
__global__ void __launch_bounds__(threads, 2) compute_marked(const __grid_constant__ LogOfSum of) {
  static_assert(threads == 256);
  __shared__ MarkedStorage<threads> shared;
  const unsigned cells = *of.marks.count;
#pragma unroll 1
  for (unsigned index = blockIdx.x; index < cells; index += gridDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) shared.start(of.marks, of.marks.list[index]);
    __syncthreads();
    MarkedCell<threads>(of, shared).compute();
  }
}

}  // namespace rigel::backends::mma
