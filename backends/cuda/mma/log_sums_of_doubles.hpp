// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = log Σ_k exp(A(l,m,k) + B(l,k,n)) in double, from products of exponentials relative to the maxima of A's rows and B's
// columns. Outputs whose sum is so small that what underflow lost could matter are marked, and then computed by direct sums.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/arch/shuffle.hpp>
#include <rigel/backends/cuda/mma/log_sums.hpp>
#include <rigel/backends/cuda/simt/steps.hpp>
#include <rigel/backends/cuda/simt/sum.hpp>

namespace rigel::backends::mma {

using LogPlusOfDoubles = log_plus<double>;

/// An operand, and the exponentials of its lines (rows of A, columns of B) against their maxima: K-major, zeros after the last k.
struct LinesOfDoubles {
  static constexpr int threads = 256, of_block = threads / 32;  // a warp takes a line
  const double* from;
  std::int64_t matrix_stride, line_stride, k_stride, lines, k, pitch;
  unsigned groups;  // blocks of a matrix
  double *to, *maxima;

  __device__ __forceinline__ void take(unsigned block) const {
    const unsigned lane = threadIdx.x % 32;
    const std::int64_t matrix = block / groups, line = std::int64_t{block % groups} * of_block + threadIdx.x / 32;
    if (line >= lines) return;
    const double* const x = from + matrix * matrix_stride + line * line_stride;
    double maximum = -infinity<double>();
    for (std::int64_t i = lane; i < k; i += 32) maximum = math::maximum(maximum, x[i * k_stride]);
    maximum = arch::joined_lanes(maximum, [](double u, double v) { return math::maximum(u, v); });
    const double against = maximum == -infinity<double>() ? 0 : maximum;  // a line of −∞ alone has exponentials of 0
    double* const exponentials = to + (matrix * lines + line) * pitch;
    for (std::int64_t i = lane; i < pitch; i += 32)
      exponentials[i] = i < k ? math::exponential(math::subtract(x[i * k_stride], against)) : 0;
    if (lane == 0) maxima[matrix * lines + line] = maximum;
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
struct LogOfSumOfDoubles {
  detail::Arguments<LogPlusOfDoubles, detail::ProgramFinish> g;
  const double *a, *b;            // the maxima
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

  __device__ __forceinline__ double operator()(double sum, std::int64_t l, std::int64_t m, std::int64_t n) const {
    const double maximum = math::add(a[l * a_batch + m], b[l * b_batch + n]);
    // Maxima of −∞ or NaN alone determine the result.
    const bool decided = !(maximum > -infinity<double>());
    const double log = math::logarithm(sum), result = decided ? maximum : math::add(maximum, log);
    const bool good = decided || (sum >= least && !(math::abs(log) > most * math::maximum(1., math::abs(result))));
    if (!good) marks.add(l, m, n);
    if (!g.accumulate) return result;
    const auto start = g.start(LogPlusOfDoubles{}, l, m, n);
    if (!good) before[place(l, m, n)] = LogPlusOfDoubles::result(start);
    return LogPlusOfDoubles::result(LogPlusOfDoubles::add(start, LogPlusOfDoubles::lift(result)));
  }
};

/// Computes marked outputs, cell by cell: half of a cell's columns after the other, as cuda.simt's tiles would.
__global__ void __launch_bounds__(256, 1) compute_marked_doubles(const __grid_constant__ LogOfSumOfDoubles of) {
  using Shape = tile::Shape<16, 16, 4, 2, 8, 1, false>;
  static_assert(Shape::threads == 256 && Shape::m == Marks::edge && 2 * Shape::n == Marks::edge);
  using Step = simt::LogSums<LogPlusOfDoubles>;
  using Sum = simt::TileSum<LogPlusOfDoubles, Shape, Step, tile::Way::single, tile::Way::single>;
  __shared__ __attribute__((aligned(16))) unsigned char shared[Sum::bytes];
  __shared__ typename Step::Table table;
  auto* const slabs = reinterpret_cast<typename Sum::Stored*>(shared);
  auto* const staging = slabs + Sum::slabs_size;
  const LogPlusOfDoubles semiring;
  const auto& g = of.g;
  const Step step(semiring, {}, table, static_cast<int>(threadIdx.x), 256);
  const unsigned cells = *of.marks.count, in_batch = of.marks.cells_m * of.marks.cells_n;
#pragma unroll 1
  for (unsigned half = blockIdx.x; half < 2 * cells; half += gridDim.x) {
    const unsigned cell = of.marks.list[half / 2];
    const std::int64_t l = cell / in_batch, m = std::int64_t{cell % in_batch / of.marks.cells_n} * Marks::edge,
                       n = std::int64_t{cell % of.marks.cells_n} * Marks::edge + half % 2 * Shape::n;
    if (n >= g.n) continue;
    const int thread = static_cast<int>(arch::thread_index());
    tile::Place<Shape> place(thread);
    typename Sum::Registers x;
#pragma unroll
    for (auto& row : x)
#pragma unroll
      for (auto& value : row) value = LogPlusOfDoubles::identity();
    __syncthreads();
    if (g.k > 0) {
      typename Sum::LoaderA a(&g.a.at(l, m, 0), g.a.row, g.a.column, g.m - m, g.k, staging, thread);
      typename Sum::LoaderB b(&g.b.at(l, 0, n), g.b.column, g.b.row, g.n - n, g.k, staging + Sum::LoaderA::staging_size,
                              thread);
      typename Sum::Operand of_a[2][Shape::outputs_m], of_b[2][Shape::outputs_n];
      Sum::add(x, a, b, of_a, of_b, g, step, place, slabs);
    }
    Sum::Exchange::for_each(
        x, reinterpret_cast<typename Sum::Accumulator*>(shared), place, thread,
        [&](const auto& piece) __attribute__((always_inline)) {
          piece.for_each(true, [&](const log_sum<double>& sum, int row, int column) __attribute__((always_inline)) {
            const std::int64_t i = m + row, j = n + column;
            if (i >= g.m || j >= g.n) return;
            const unsigned in_row = static_cast<unsigned>(j % Marks::edge);
            const std::uint32_t word =
                of.marks.bits[std::size_t{cell} * Marks::words + row * (Marks::edge / 32) + in_row / 32];
            if ((word >> in_row % 32 & 1) == 0) return;
            const auto value =
                g.accumulate ? LogPlusOfDoubles::add(LogPlusOfDoubles::lift(of.before[of.place(l, i, j)]), sum) : sum;
            g.store(semiring, value, l, i, j);
          });
        });
  }
}

}  // namespace rigel::backends::mma
