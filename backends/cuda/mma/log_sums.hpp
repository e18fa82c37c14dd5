// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = log Σ_k exp(A(l,m,k) + B(l,k,n)) from products of exponentials relative to the maxima of A's rows and B's
// columns. If a sum is so small that what was lost could matter, the output is marked, and a second kernel recomputes it:
// first cells of 64 × 64 outputs by products of floats in two parts, whose exponents reach further; then outputs that are
// too small for those by direct sums.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/mma/exponentials.hpp>

namespace rigel::backends::mma {

using LogPlus = log_plus<float>;

/// Outputs to recompute: a bit each, in cells of 64 × 64; and a list of the cells that have some.
struct Marks {
  static constexpr int edge = 64, words = edge * edge / 32;  // of a cell

  std::uint32_t *bits, *met, *list, *count;
  unsigned cells_m, cells_n;

  __device__ void add(std::int64_t l, std::int64_t m, std::int64_t n) const {
    const std::int64_t cell = (l * cells_m + m / edge) * cells_n + n / edge;
    atomicOr(bits + cell * words + m % edge * (edge / 32) + n % edge / 32, 1u << n % 32);
    if (atomicExch(met + cell, 1u) == 0) list[atomicAdd(count, 1u)] = static_cast<std::uint32_t>(cell);
  }
};

/// log_plus's accumulator, from Σ of products of exponentials relative to the maxima; and whether it is accurate enough.
struct LogOfSum {
  detail::Arguments<LogPlus, detail::ProgramFinish> g;
  const ExponentialLine *a, *b;
  std::int64_t a_batch, b_batch;  // from one matrix's rows (or columns) to the next one's
  float most;                     // the logarithm of the sum may be this many times max(1, |result|)
  float* before;                  // C's values before it is overwritten, if it is accumulated
  Marks marks;

  /// Sums of products of pairs below this share of the sums of both lines (A's row, B's column) may have lost more than
  /// 2^-22: each exponential is off by 2^-51, and so is the product of two rests.
  static constexpr float least_share = 0x1p-28f;
  /// The least sum of products of floats in two parts. Exponentials below 2^-113 have an incomplete rest, of at most 2^-123,
  /// so 2^-122·K may be lost, which is 2^-2·K·u of this.
  static constexpr float least_of_floats = 0x1p-96f;

  __device__ __forceinline__ ExponentialLine line_a(std::int64_t l, std::int64_t m) const { return a[l * a_batch + m]; }
  __device__ __forceinline__ ExponentialLine line_b(std::int64_t l, std::int64_t n) const { return b[l * b_batch + n]; }
  __device__ __forceinline__ static log_sum<float> total(float max_a, float max_b, float sum) {
    const float maximum = math::add(max_a, max_b);
    return {maximum, maximum == -infinity<float>() ? 0 : sum};
  }
  /// Whether a sum is accurate enough. Maxima of −∞ or NaN alone determine the result.
  __device__ __forceinline__ bool holds(log_sum<float> x, float least) const {
    if (!(x.maximum > -infinity<float>())) return true;
    if (!(x.sum >= least)) return false;
    return !(math::abs(math::logarithm(x.sum)) > most * fmaxf(1, math::abs(LogPlus::result(x))));
  }
  __device__ __forceinline__ std::int64_t place(std::int64_t l, std::int64_t m, std::int64_t n) const {
    return (l * g.m + m) * g.n + n;
  }

  __device__ __forceinline__ float operator()(float sum, std::int64_t l, std::int64_t m, std::int64_t n) const {
    const ExponentialLine x = line_a(l, m), y = line_b(l, n);
    auto value = total(x.maximum, y.maximum, sum * (1 / (pair_scale * pair_scale)));
    const bool good = holds(value, least_share * math::add(x.sum, y.sum));
    if (!good) marks.add(l, m, n);
    if (g.accumulate) {
      const auto start = g.start(LogPlus{}, l, m, n);
      if (!good) before[place(l, m, n)] = LogPlus::result(start);
      value = LogPlus::add(start, value);
    }
    return LogPlus::result(value);
  }
};

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

/// Recomputes marked outputs, cell by cell. Eight warps have 32 × 16 outputs each.
template <int threads>
__global__ void __launch_bounds__(threads, 2) compute_marked(const __grid_constant__ LogOfSum of) {
  static_assert(threads == 256);
  using Mma = arch::Mma<float>;
  constexpr int edge = Marks::edge, depth = Loader<threads>::depth, each = Loader<threads>::each, pitch = depth + 4;
  using Slab = tile::MatrixSlab<float, tile::Direction::along_k, edge, threads>;
  constexpr int few = 256;  // outputs of a cell that warps compute one by one
  __shared__ __attribute__((aligned(128))) union {
    float parts[2][edge * depth];
    float terms[2][edge][pitch];
  } shared;
  __shared__ float values[edge][edge + 1];
  __shared__ float maxima[2][edge], against[2][edge];
  __shared__ std::uint32_t words[Marks::words];
  __shared__ std::uint16_t list[few];
  __shared__ int left;

  const auto& g = of.g;
  const int all_k = static_cast<int>(g.k);
  const unsigned cells = *of.marks.count;
#pragma unroll 1
  for (unsigned index = blockIdx.x; index < cells; index += gridDim.x) {
    // The phases of a cell have little in common: values derived from the thread's index are not kept from one to the next.
    const unsigned thread = arch::thread_index();
    const unsigned cell = of.marks.list[index], in_batch = of.marks.cells_m * of.marks.cells_n;
    const unsigned l = cell / in_batch, m0 = cell % in_batch / of.marks.cells_n * edge, n0 = cell % of.marks.cells_n * edge;
    const auto loader_of_a = [&] { return Loader<threads>(g.a.data + g.a.offset(l, m0, 0), g.a.row, g.a.column, g.m - m0); };
    const auto loader_of_b = [&] { return Loader<threads>(g.b.data + g.b.offset(l, 0, n0), g.b.column, g.b.row, g.n - n0); };
    // Stores marked outputs, from the sum that value(row, column, sum) sets, and clears their marks. Outputs for which it
    // returns false stay marked.
    const auto store = [&](const auto& value) __attribute__((always_inline)) {
#pragma unroll 1
      for (unsigned e = arch::thread_index(); e < edge * edge; e += threads) {
        const unsigned row = e / edge, column = e % edge;
        if ((words[e / 32] >> e % 32 & 1) == 0) continue;
        log_sum<float> sum;
        if (!value(row, column, sum)) continue;
        const std::int64_t m = m0 + row, n = n0 + column;
        if (g.accumulate) sum = LogPlus::add(LogPlus::lift(of.before[of.place(l, m, n)]), sum);
        g.store(LogPlus{}, sum, l, m, n);
        atomicAnd(&words[e / 32], ~(1u << e % 32));
      }
    };

    __syncthreads();
    if (thread < Marks::words) words[thread] = of.marks.bits[std::size_t{cell} * Marks::words + thread];
    if (thread < 2 * edge) {
      const bool of_a = thread < edge;
      const std::int64_t line = (of_a ? m0 : n0) + thread % edge;
      float maximum = -infinity<float>();
      if (line < (of_a ? g.m : g.n)) maximum = (of_a ? of.line_a(l, line) : of.line_b(l, line)).maximum;
      maxima[thread / edge][thread % edge] = maximum;
      against[thread / edge][thread % edge] = subtrahend(maximum);
    }
    if (thread == 0) left = 0;
    __syncthreads();

    {
      const auto slabs = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared.parts[0]));
      const unsigned mine = arch::thread_index(), lane = mine % 32, row = mine / 128 * 32, column = mine / 32 % 4 * 16;
      const typename Slab::template Reader<Slab::Order::rows> reader_a(static_cast<int>(row), static_cast<int>(lane));
      const typename Slab::template Reader<Slab::Order::columns> reader_b(static_cast<int>(column), static_cast<int>(lane));
      // A warp without marked outputs only stages.
      const bool needed = __any_sync(~0u, (words[(row + lane) * (edge / 32) + column / 32] >> column % 32 & 0xffff) != 0);
      const Loader<threads> load[2] = {loader_of_a(), loader_of_b()};
      float sums[2][2][4] = {}, x[2][each];
#pragma unroll
      for (int o = 0; o < 2; ++o) load[o](x[o], 0, all_k);
#pragma unroll 1
      for (int k0 = 0; k0 < all_k; k0 += depth) {
        __syncthreads();
#pragma unroll
        for (int o = 0; o < 2; ++o)
          load[o].for_each([&](int i, unsigned line, unsigned k) __attribute__((always_inline)) {
            shared.parts[o][line * depth + (k / 4 ^ line % 8) * 4 + k % 4] = exponential_against(against[o][line], x[o][i]);
          });
        __syncthreads();
#pragma unroll
        for (int o = 0; o < 2; ++o) load[o](x[o], k0 + depth, all_k);
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
            values[row + 16 * i + lane / 4 + r / 2 * 8][column + 8 * j + lane % 4 * 2 + r % 2] = sums[i][j][r];
    }
    __syncthreads();
    store([&](unsigned row, unsigned column, log_sum<float>& sum) {
      sum = LogOfSum::total(maxima[0][row], maxima[1][column], values[row][column]);
      return of.holds(sum, LogOfSum::least_of_floats);
    });
    __syncthreads();

    // What is still marked.
    for (unsigned e = arch::thread_index(); e < edge * edge; e += threads)
      if (words[e / 32] >> e % 32 & 1) {
        const int i = atomicAdd(&left, 1);
        if (i < few) list[i] = static_cast<std::uint16_t>(e);
      }
    __syncthreads();
    if (left == 0) continue;
    if (left <= few) {
      // A lane takes a chunk; the weights and sums of 32 lanes are joined in ascending order.
      const auto lane = static_cast<int>(arch::thread_index() % 32);
#pragma unroll 1
      for (int i = static_cast<int>(arch::thread_index() / 32); i < left; i += threads / 32) {
        const unsigned row = list[i] / edge, column = list[i] % edge;
        log_sum<float> sum = LogPlus::identity();
#pragma unroll 1
        for (int k0 = 0; k0 < all_k; k0 += 32 * DirectSum::chunk) {
          float t[DirectSum::chunk];
#pragma unroll
          for (int j = 0; j < DirectSum::chunk; ++j) {
            const int k = k0 + lane * DirectSum::chunk + j;
            t[j] = k < all_k ? math::add(g.a.at(l, m0 + row, k), g.b.at(l, k, n0 + column)) : -infinity<float>();
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
        if (lane == 0) values[row][column] = LogPlus::result(sum);
      }
    } else {
      // Threads have 4 × 2 outputs of one half of the columns, then of the other.
      using Terms = tile::Chunk<float, DirectSum::chunk>;
      const Loader<threads> load[2] = {loader_of_a(), loader_of_b()};
      const unsigned row = arch::thread_index() / 16;
#pragma unroll 1
      for (unsigned column = arch::thread_index() % 16; column < edge; column += edge / 2) {
        log_sum<float> sums[4][2];
        float x[2][each];
#pragma unroll
        for (int o = 0; o < 2; ++o) load[o](x[o], 0, all_k);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 2; ++j) sums[i][j] = LogPlus::identity();
#pragma unroll 1
        for (int k0 = 0; k0 < all_k; k0 += depth) {
          __syncthreads();
#pragma unroll
          for (int o = 0; o < 2; ++o)
            load[o].for_each([&](int i, unsigned line, unsigned k)
                                 __attribute__((always_inline)) { shared.terms[o][line][k] = x[o][i]; });
          __syncthreads();
#pragma unroll
          for (int o = 0; o < 2; ++o) load[o](x[o], k0 + depth, all_k);
#pragma unroll 1
          for (int k = 0; k < depth; k += DirectSum::chunk) {
            Terms of_b[2];
#pragma unroll
            for (int j = 0; j < 2; ++j) of_b[j] = Terms::load(&shared.terms[1][column + 16 * j][k]);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              const Terms of_a = Terms::load(&shared.terms[0][row + 16 * i][k]);
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
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 2; ++j) values[row + 16 * i][column + 16 * j] = LogPlus::result(sums[i][j]);
      }
    }
    __syncthreads();
    store([&](unsigned row, unsigned column, log_sum<float>& sum) {
      sum = LogPlus::lift(values[row][column]);
      return true;
    });
  }
}

}  // namespace rigel::backends::mma
