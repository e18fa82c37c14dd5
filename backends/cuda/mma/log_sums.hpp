// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = log Σ_k exp(A(l,m,k) + B(l,k,n)) from products of exponentials relative to the maxima of A's rows and B's
// columns. If a sum is so small that what was lost could matter, the output is marked, and log_sums_again.hpp
// recomputes it.
#pragma once

#include <rigel/backends/cuda/mma/exponentials.hpp>
#include <rigel/backends/cuda/runtime.hpp>

namespace rigel::backends::mma {

using LogPlus = log_plus<float>;

/// Outputs to recompute: a bit each, in cells of 64 × 64; and a list of the cells that have some.
struct Marks {
  static constexpr int edge = 64, words = edge * edge / 32;  // of a cell

  std::uint32_t *bits, *met, *list, *count;
  unsigned cells_m, cells_n;

  static std::int64_t cells_along(std::int64_t extent) { return (extent + edge - 1) / edge; }
  static std::int64_t cells_of(const Product& p) { return p.batch * cells_along(p.m) * cells_along(p.n); }
  static Status supports(const Product& p) {
    if (p.m > cuda::max_grid || p.n > cuda::max_grid ||
        cells_along(p.m) * cells_along(p.n) > cuda::max_grid / std::max<std::int64_t>(p.batch, 1))
      return {Decline::extents, "C has more than 2^31 - 1 rows, columns or cells of 64 by 64"};
    return {};
  }
  static Marks in(const Product& p, std::uint32_t* bits, std::uint32_t* met, std::uint32_t* list, std::uint32_t* count) {
    return {bits, met, list, count, static_cast<unsigned>(cells_along(p.m)), static_cast<unsigned>(cells_along(p.n))};
  }

  /// If all of C is marked, a cell is met thousands of times; a read tells all but the first. (Lanes that join their marks first would have
  /// to be together, which costs the main loop a WARPSYNC.)
  __device__ void add(std::int64_t l, std::int64_t m, std::int64_t n) const {
    const std::int64_t cell = (l * cells_m + m / edge) * cells_n + n / edge;
    atomicOr(bits + cell * words + m % edge * (edge / 32) + n % edge / 32, 1u << n % 32);
    if (*static_cast<const volatile std::uint32_t*>(met + cell) != 0) return;
    if (atomicExch(met + cell, 1u) == 0) list[atomicAdd(count, 1u)] = static_cast<std::uint32_t>(cell);
  }
};

/// What the extremes of a row and a column say of an output. A row with +∞ and a column without −∞ (or the other way round) give
/// +∞, if neither has NaN; else the infinity may meet −∞, which gives NaN.
template <class Line>
__device__ __forceinline__ bool is_infinite(const Line& x, const Line& y) {
  constexpr auto most = infinity<decltype(Line::maximum)>();
  return (x.maximum == most || y.maximum == most) && !(x.maximum == most && y.has_least()) &&
         !(y.maximum == most && x.has_least());
}

/// log_plus's accumulator, from Σ of products of exponentials relative to the maxima; and whether it is accurate enough.
struct LogOfSum : StoresResults {
  detail::Arguments<LogPlus, detail::ProgramFinish> g;
  const ExponentialLine *lines_a, *lines_b;
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

  __device__ __forceinline__ ExponentialLine a(std::int64_t l, std::int64_t m) const { return lines_a[l * a_batch + m]; }
  __device__ __forceinline__ ExponentialLine b(std::int64_t l, std::int64_t n) const { return lines_b[l * b_batch + n]; }
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

  __device__ __forceinline__ float operator()(float sum, ExponentialLine x, ExponentialLine y, std::int64_t l,
                                              std::int64_t m, std::int64_t n) const {
    auto value = total(x.maximum, y.maximum, sum * (1 / (pair_scale * pair_scale)));
    bool good = holds(value, least_share * math::add(x.sum(), y.sum()));
    if (!good) {
      // An infinite line's exponentials are NaN.
      good = is_infinite(x, y);
      if (good)
        value.sum = 1;
      else
        marks.add(l, m, n);
    }
    if (g.accumulate) {
      const auto start = g.start(LogPlus{}, l, m, n);
      if (!good) before[place(l, m, n)] = LogPlus::result(start);
      value = LogPlus::add(start, value);
    }
    return LogPlus::result(value);
  }
  template <class Shape>
  static constexpr int bytes = StoreBuffer<Shape::outputs_n, float>::bytes;
  template <class Shape, class S, class Finish, int rows, int columns>
  __device__ __forceinline__ void store(const detail::Arguments<S, Finish>& arguments, float (&sums)[rows][columns][4],
                                        std::int64_t l, std::int64_t m, std::int64_t n, unsigned, unsigned char* shared,
                                        int lane) const {
    store_results<Shape>(arguments, sums, *this, l, m, n, shared, lane);
  }
};

}  // namespace rigel::backends::mma
