// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel that recomputes what log_sums.hpp marks: first cells of 64 × 64 outputs by products of floats in two parts,
// whose exponents reach further; then outputs that are too small for those by direct sums.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/mma/log_sums.hpp>

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

/// A thread's share of reading slabs of 64 lines (rows of A, columns of B) × 32 k; neighbouring threads read neighbours in
/// memory. What does not exist is −∞.
template <int threads>
class Loader {
 public:
  static constexpr int lines = Marks::edge, depth = 32, each = lines * depth / threads;

  __device__ __forceinline__ Loader(const float* first, std::int64_t line_stride, std::int64_t k_stride,
                                    std::int64_t lines_left)
      : along_k_(k_stride <= line_stride),
        from_(first + line() * line_stride + k() * k_stride),
        k_stride_(k_stride),
        apart_(along_k_ ? threads / depth * line_stride : threads / lines * k_stride),
        left_(static_cast<int>(std::min<std::int64_t>(lines_left, lines))) {}

  /// Reads the slab from k0 on.
  __device__ __forceinline__ void operator()(float (&x)[each], int k0, int all_k) const {
    // How many of this thread's numbers exist.
    const int lines_left = left_ - static_cast<int>(line()), k_left = all_k - k0 - static_cast<int>(k()),
              apart = threads / (along_k_ ? depth : lines),
              count = lines_left <= 0 || k_left <= 0 ? 0 : ((along_k_ ? lines_left : k_left) + apart - 1) / apart;
    const float* from = from_ + k0 * k_stride_;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      x[i] = i < count ? *from : -infinity<float>();
      from += apart_;
    }
  }
  /// visit(i, line, k) for every number i of the thread's share, with its place in the slab.
  template <class Visit>
  __device__ __forceinline__ void for_each(const Visit& visit) const {
    const unsigned first_line = line(), first_k = k();
    if (along_k_)
#pragma unroll
      for (int i = 0; i < each; ++i) visit(i, first_line + threads / depth * i, first_k);
    else
#pragma unroll
      for (int i = 0; i < each; ++i) visit(i, first_line, first_k + threads / lines * i);
  }

 private:
  // Recomputed in each slab: values derived from them would take too many registers.
  __device__ __forceinline__ unsigned line() const {
    return along_k_ ? arch::thread_index() / depth : arch::thread_index() % lines;
  }
  __device__ __forceinline__ unsigned k() const {
    return along_k_ ? arch::thread_index() % depth : arch::thread_index() / lines;
  }

  bool along_k_;
  const float* from_;
  std::int64_t k_stride_, apart_;
  int left_;
};

/// A block's shared memory.
template <int threads>
struct MarkedStorage {
  static constexpr int edge = Marks::edge, depth = Loader<threads>::depth, pitch = depth + 4;
  static constexpr int few = 256;  // outputs of a cell that warps compute one by one

  union {
    alignas(128) float parts[2][edge * depth];
    float terms[2][edge][pitch];
  };
  float values[edge][edge + 1];
  float maxima[2][edge], against[2][edge];
  std::uint32_t words[Marks::words];  // the marks
  std::uint16_t list[few];
  int left;
};

/// The work on one cell. The phases have little in common: values derived from the thread's index are not kept from one to
/// the next. Eight warps have 32 × 16 outputs each.
template <int threads>
class MarkedCell {
  using Storage = MarkedStorage<threads>;
  using Load = Loader<threads>;
  static constexpr int edge = Marks::edge, depth = Load::depth, each = Load::each, few = Storage::few;

 public:
  __device__ __forceinline__ MarkedCell(const LogOfSum& of, Storage& shared, unsigned cell)
      : of_(of), g_(of.g), shared_(shared), cell_(cell), all_k_(static_cast<int>(of.g.k)) {
    const unsigned in_batch = of.marks.cells_m * of.marks.cells_n;
    l_ = cell / in_batch;
    m0_ = cell % in_batch / of.marks.cells_n * edge;
    n0_ = cell % of.marks.cells_n * edge;
  }

  __device__ __forceinline__ void compute() const {
    read_marks();
    __syncthreads();
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
    if (shared_.left <= few)
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
  __device__ __forceinline__ Load loader_of_a() const {
    return Load(g_.a.data + g_.a.offset(l_, m0_, 0), g_.a.row, g_.a.column, g_.m - m0_);
  }
  __device__ __forceinline__ Load loader_of_b() const {
    return Load(g_.b.data + g_.b.offset(l_, 0, n0_), g_.b.column, g_.b.row, g_.n - n0_);
  }

  /// The marks, and the maxima of the cell's rows and columns.
  __device__ __forceinline__ void read_marks() const {
    const unsigned thread = arch::thread_index();
    if (thread < Marks::words) shared_.words[thread] = of_.marks.bits[std::size_t{cell_} * Marks::words + thread];
    if (thread < 2 * edge) {
      const bool of_a = thread < edge;
      const std::int64_t line = (of_a ? m0_ : n0_) + thread % edge;
      float maximum = -infinity<float>();
      if (line < (of_a ? g_.m : g_.n)) maximum = (of_a ? of_.line_a(l_, line) : of_.line_b(l_, line)).maximum;
      shared_.maxima[thread / edge][thread % edge] = maximum;
      shared_.against[thread / edge][thread % edge] = subtrahend(maximum);
    }
    if (thread == 0) shared_.left = 0;
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
      if ((shared_.words[e / 32] >> e % 32 & 1) == 0) continue;
      log_sum<float> sum;
      if (!value(row, column, sum)) continue;
      const std::int64_t m = m0_ + row, n = n0_ + column;
      if (g_.accumulate) sum = LogPlus::add(LogPlus::lift(of_.before[of_.place(l_, m, n)]), sum);
      g_.store(LogPlus{}, sum, l_, m, n);
      atomicAnd(&shared_.words[e / 32], ~(1u << e % 32));
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
#pragma unroll
        for (int j = 0; j < DirectSum::chunk; ++j) {
          const int k = k0 + lane * DirectSum::chunk + j;
          t[j] = k < all_k_ ? math::add(g_.a.at(l_, m0_ + row, k), g_.b.at(l_, k, n0_ + column)) : -infinity<float>();
        }
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

  /// All outputs by direct sums. Threads have 4 × 2 outputs of one half of the columns, then of the other.
  __device__ __forceinline__ void sum_by_threads() const {
    const Load load[2] = {loader_of_a(), loader_of_b()};
    const unsigned row = arch::thread_index() / 16;
#pragma unroll 1
    for (unsigned column = arch::thread_index() % 16; column < edge; column += edge / 2) {
      log_sum<float> sums[4][2];
      float x[2][each];
#pragma unroll
      for (int o = 0; o < 2; ++o) load[o](x[o], 0, all_k_);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) sums[i][j] = LogPlus::identity();
#pragma unroll 1
      for (int k0 = 0; k0 < all_k_; k0 += depth) {
        __syncthreads();
#pragma unroll
        for (int o = 0; o < 2; ++o)
          load[o].for_each([&](int i, unsigned line, unsigned k)
                               __attribute__((always_inline)) { shared_.terms[o][line][k] = x[o][i]; });
        __syncthreads();
#pragma unroll
        for (int o = 0; o < 2; ++o) load[o](x[o], k0 + depth, all_k_);
        add_terms(sums, row, column);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) shared_.values[row + 16 * i][column + 16 * j] = LogPlus::result(sums[i][j]);
    }
  }
  /// The same for the terms of a slab.
  __device__ __forceinline__ void add_terms(log_sum<float> (&sums)[4][2], unsigned row, unsigned column) const {
    using Terms = tile::Chunk<float, DirectSum::chunk>;
#pragma unroll 1
    for (int k = 0; k < depth; k += DirectSum::chunk) {
      Terms of_b[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) of_b[j] = Terms::load(&shared_.terms[1][column + 16 * j][k]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Terms of_a = Terms::load(&shared_.terms[0][row + 16 * i][k]);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float t[DirectSum::chunk];
#pragma unroll
          for (int v = 0; v < DirectSum::chunk; ++v) t[v] = math::add(of_a.value[v], of_b[j].value[v]);
          sums[i][j] = DirectSum::step(sums[i][j], t);
        }
      }
    }
  }

  const LogOfSum& of_;
  const detail::Arguments<LogPlus, detail::ProgramFinish>& g_;
  Storage& shared_;
  unsigned cell_, l_, m0_, n0_;
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
    MarkedCell<threads>(of, shared, of.marks.list[index]).compute();
  }
}

}  // namespace rigel::backends::mma
