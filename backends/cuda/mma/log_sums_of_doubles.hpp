// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = log Σ_k exp(A(l,m,k) + B(l,k,n)) in double, from products of exponentials relative to the maxima of A's rows and B's
// columns. Outputs whose sum is so small that what underflow lost could matter are marked, and then computed by direct sums, unless
// infinities decide them.
#pragma once

#include <rigel/backends/cuda/arch/shuffle.hpp>
#include <rigel/backends/cuda/mma/log_sums_infinite.hpp>
#include <rigel/backends/cuda/simt/steps.hpp>
#include <rigel/backends/cuda/simt/sum.hpp>

namespace rigel::backends::mma {

using LogPlusOfDoubles = log_plus<double>;

/// A line's maximum over k, and whether some of its numbers are −∞.
struct LineOfDoubles {
  double maximum;
  bool least;
  __device__ __forceinline__ bool has_least() const { return least; }
};

/// An operand, and the exponentials of its lines (rows of A, columns of B) against their maxima: K-major, zeros after the last k.
struct LinesOfDoubles {
  static constexpr int threads = 256, of_block = threads / 32;  // a warp takes a line
  const double* from;
  std::int64_t matrix_stride, line_stride, k_stride, lines, k, pitch;
  unsigned groups;  // blocks of a matrix
  double* to;
  LineOfDoubles* of_lines;

  __device__ __forceinline__ void take(unsigned block) const {
    const unsigned lane = threadIdx.x % 32;
    const std::int64_t matrix = block / groups, line = std::int64_t{block % groups} * of_block + threadIdx.x / 32;
    if (line >= lines) return;
    const double* const x = from + matrix * matrix_stride + line * line_stride;
    double maximum = -infinity<double>();
    bool least = false;
    for (std::int64_t i = lane; i < k; i += 32) {
      const double value = x[i * k_stride];
      maximum = math::maximum(maximum, value);
      least = least || value == -infinity<double>();
    }
    least = __any_sync(~0u, least) != 0;
    maximum = arch::joined_lanes(maximum, [](double u, double v) { return math::maximum(u, v); });
    const double against = maximum == -infinity<double>() ? 0 : maximum;  // a line of −∞ alone has exponentials of 0
    double* const exponentials = to + (matrix * lines + line) * pitch;
    for (std::int64_t i = lane; i < pitch; i += 32)
      exponentials[i] = i < k ? math::exponential(math::subtract(x[i * k_stride], against)) : 0;
    if (lane == 0) of_lines[matrix * lines + line] = {maximum, least};
  }
};

/// Both operands, A's blocks before B's; and words to set to 0.
__global__ void __launch_bounds__(LinesOfDoubles::threads)
    exponentials_of_doubles(const __grid_constant__ LinesOfDoubles a, const __grid_constant__ LinesOfDoubles b,
                            unsigned blocks_of_a, std::uint32_t* zeros, std::int64_t words) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * LinesOfDoubles::threads + threadIdx.x; i < words;
       i += std::int64_t{gridDim.x} * LinesOfDoubles::threads)
    zeros[i] = 0;
  if (blockIdx.x < blocks_of_a)
    a.take(blockIdx.x);
  else
    b.take(blockIdx.x - blocks_of_a);
}

/// log_plus's result, from Σ of products of exponentials relative to the maxima. Marks it if it is not accurate enough.
struct LogOfSumOfDoubles : StoresResults {
  detail::Arguments<LogPlusOfDoubles, detail::ProgramFinish> g;
  const LineOfDoubles *lines_a, *lines_b;
  std::int64_t a_batch, b_batch;  // from one matrix's to the next one's
  double* before;                 // C's values before it is overwritten, if it is accumulated
  Marks marks;

  /// The least sum: exponentials below 2^-1022, and products of two, may be lost, which is at most 2^-1021·K.
  static constexpr double least = 0x1p-900;
  /// The logarithm of the sum may be this many times max(1, |result|).
  static constexpr double most = 16;

  __device__ __forceinline__ std::int64_t place(std::int64_t l, std::int64_t m, std::int64_t n) const {
    return (l * g.m + m) * g.n + n;
  }

  __device__ __forceinline__ LineOfDoubles a(std::int64_t l, std::int64_t m) const { return lines_a[l * a_batch + m]; }
  __device__ __forceinline__ LineOfDoubles b(std::int64_t l, std::int64_t n) const { return lines_b[l * b_batch + n]; }

  __device__ __forceinline__ double operator()(double sum, LineOfDoubles x, LineOfDoubles y, std::int64_t l, std::int64_t m,
                                               std::int64_t n) const {
    const double maximum = math::add(x.maximum, y.maximum);
    // Maxima of −∞ or NaN alone determine the result.
    const bool decided = !(maximum > -infinity<double>());
    const double log = math::logarithm(sum);
    double result = decided ? maximum : math::add(maximum, log);
    bool good = decided || (sum >= least && !(math::abs(log) > most * math::maximum(1., math::abs(result))));
    if (!good) {
      // An infinite line's exponentials are NaN.
      good = is_infinite(x, y);
      if (good)
        result = maximum;
      else
        marks.add(l, m, n);
    }
    if (!g.accumulate) return result;
    const auto start = g.start(LogPlusOfDoubles{}, l, m, n);
    if (!good) before[place(l, m, n)] = LogPlusOfDoubles::result(start);
    return LogPlusOfDoubles::result(LogPlusOfDoubles::add(start, LogPlusOfDoubles::lift(result)));
  }
  template <class Shape>
  static constexpr int bytes = StoreBuffer<Shape::outputs_n, double>::bytes;
  template <class Shape, class S, class Finish, int rows, int columns>
  __device__ __forceinline__ void store(const detail::Arguments<S, Finish>& arguments, double (&sums)[rows][columns][4],
                                        std::int64_t l, std::int64_t m, std::int64_t n, unsigned, unsigned char* shared,
                                        int lane) const {
    store_results<Shape>(arguments, sums, *this, l, m, n, shared, lane);
  }
};

/// Computes marked outputs, half of a cell's rows after the other: what infinities decide, then the rest as cuda.simt's tiles would.
__global__ void __launch_bounds__(256, 1) compute_marked_doubles(const __grid_constant__ LogOfSumOfDoubles of) {
  using Shape = tile::OneBlock<simt::LargeTile<LogPlusOfDoubles>>;  // a loop over cells spills with half of the registers
  static_assert(Shape::threads == 256 && 2 * Shape::m == Marks::edge && Shape::n == Marks::edge);
  using Step = simt::LogSums<LogPlusOfDoubles>;
  using Sum = simt::TileSum<LogPlusOfDoubles, Shape, Step, tile::Way::single, tile::Way::single>;
  using Terms = InfiniteTerms<double, Shape::threads>;
  constexpr int edge = Marks::edge, words_of_row = edge / 32;
  __shared__ __attribute__((aligned(16))) unsigned char shared[Sum::bytes];
  __shared__ typename Step::Table table;
  __shared__ typename Terms::Facts facts;
  __shared__ std::uint32_t words[Marks::words / 2];
  // The matrix, and the first row and column. Read when they are needed, so that they take no registers while terms are summed.
  __shared__ unsigned place_of_half[3];
  const auto at = [&](int which) { return *static_cast<const volatile unsigned*>(&place_of_half[which]); };
  const auto l = [&] { return at(0); };
  const auto m = [&] { return at(1); };
  const auto n = [&] { return at(2); };
  static_assert(sizeof(typename Terms::Storage) <= sizeof(shared));
  auto* const slabs = reinterpret_cast<typename Sum::Stored*>(shared);
  const auto& g = of.g;
  const Step step(LogPlusOfDoubles{}, {}, table, static_cast<int>(threadIdx.x), Shape::threads);
  const unsigned cells = *of.marks.count;
#pragma unroll 1
  for (unsigned half = blockIdx.x; half < 2 * cells; half += gridDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) {
      const unsigned cell = of.marks.list[half / 2], in_batch = of.marks.cells_m * of.marks.cells_n;
      place_of_half[0] = cell / in_batch;
      place_of_half[1] = cell % in_batch / of.marks.cells_n * edge + half % 2 * Shape::m;
      place_of_half[2] = cell % of.marks.cells_n * edge;
    }
    if (threadIdx.x < Marks::words / 2)
      words[threadIdx.x] =
          of.marks.bits[(std::size_t{2} * of.marks.list[half / 2] + half % 2) * (Marks::words / 2) + threadIdx.x];
    __syncthreads();
    if (m() >= g.m) continue;
    if (const unsigned thread = arch::thread_index(); thread < 2 * edge) {
      const bool of_a = thread < edge;
      const std::int64_t line = std::int64_t{of_a ? m() : n()} + thread % edge;
      LineOfDoubles x = {-infinity<double>(), false};
      if (line < (of_a ? g.m : g.n)) x = of_a ? of.a(l(), line) : of.b(l(), line);
      facts.set(thread, x);
    }
    __syncthreads();
    const auto is_marked = [&](unsigned row, unsigned column) {
      return (words[row * words_of_row + column / 32] >> column % 32 & 1) != 0;
    };
    const auto store = [&](unsigned row, unsigned column, log_sum<double> sum) {
      const std::int64_t i = std::int64_t{m()} + row, j = std::int64_t{n()} + column;
      if (g.accumulate) sum = LogPlusOfDoubles::add(LogPlusOfDoubles::lift(of.before[of.place(l(), i, j)]), sum);
      g.store(LogPlusOfDoubles{}, sum, l(), i, j);
    };
    const typename Terms::Load load[2] = {{g.a.data + g.a.offset(l(), m(), 0), g.a.row, g.a.column, g.m - m()},
                                          {g.b.data + g.b.offset(l(), 0, n()), g.b.column, g.b.row, g.n - n()}};
    Terms::find(
        load, static_cast<int>(g.k), *reinterpret_cast<typename Terms::Storage*>(shared), facts,
        [&](unsigned row, unsigned column) { return row < Shape::m && is_marked(row, column); },
        [&](unsigned row, unsigned column, double value) {
          store(row, column, LogPlusOfDoubles::lift(value));
          atomicAnd(&words[row * words_of_row + column / 32], ~(1u << column % 32));
        });
    __syncthreads();
    if (__syncthreads_or(threadIdx.x < Marks::words / 2 && words[threadIdx.x] != 0) == 0) continue;
    const unsigned thread = arch::thread_index();
    tile::Place<Shape> place(static_cast<int>(thread));
    typename Sum::Registers x;
#pragma unroll
    for (auto& row : x)
#pragma unroll
      for (auto& value : row) value = LogPlusOfDoubles::identity();
    if (g.k > 0) {
      typename Sum::LoaderA a(g.a.data + g.a.offset(l(), m(), 0), g.a.row, g.a.column, g.m - m(), g.k, slabs, thread);
      typename Sum::LoaderB b(g.b.data + g.b.offset(l(), 0, n()), g.b.column, g.b.row, g.n - n(), g.k, slabs, thread);
      typename Sum::Operand of_a[2][Shape::outputs_m], of_b[2][Shape::outputs_n];
      Sum::add(x, a, b, of_a, of_b, g, step, place, slabs);
    }
    Sum::Exchange::for_each(
        x, reinterpret_cast<typename Sum::Accumulator*>(shared), place, static_cast<int>(arch::thread_index()),
        [&](const auto& piece) __attribute__((always_inline)) {
          piece.for_each(true, [&](const log_sum<double>& sum, int row, int column) __attribute__((always_inline)) {
            const auto in_row = static_cast<unsigned>(row), in_column = static_cast<unsigned>(column);
            if (is_marked(in_row, in_column)) store(in_row, in_column, sum);
          });
        });
  }
}

}  // namespace rigel::backends::mma
