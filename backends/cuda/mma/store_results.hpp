// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The store of results that depend on an output's row and column, not on its sum alone: logarithms of sums, and what counts of bits
// make of a code's words. Such a result has
//     a(l, m), b(l, n)                what it needs of a row of A and of a column of B, which a lane reads once for several outputs,
//     operator()(sum, a, b, l, m, n)  S's accumulator, for outputs that exist.
#pragma once

#include <rigel/backends/cuda/mma/kernel.hpp>

namespace rigel::backends::mma {

/// use(slot, row, column) for outputs that exist, of eight rows of a warp's sums at a time in its shared memory; then done(piece). A
/// lane has one column of every 32, and the code of use() exists twice. (The loop is left by all lanes at once: a lane that leaves it alone
/// costs the main loop a WARPSYNC.)
template <class Shape, class Sum, int rows, int columns, class Begin, class Use, class Done>
__device__ __forceinline__ void for_each_in_buffer(const Sum (&sums)[rows][columns][4], std::int64_t last_m,
                                                   std::int64_t last_n, Sum* buffer, int lane, const Begin& begin,
                                                   const Use& use, const Done& done) {
  constexpr int outputs_n = Shape::outputs_n, pitch = StoreBuffer<outputs_n, Sum>::pitch;
  using Pieces = tensor::Pieces<outputs_n, 16, rows, columns>;
  static_assert(Pieces::parts == 1 && outputs_n % 32 == 0);
  tensor::for_each_piece<outputs_n, 16>(sums, buffer, lane, [&](int piece) __attribute__((always_inline)) {
    const int row0 = Pieces::row(piece);
#pragma unroll 1
    for (int first = 0; first < outputs_n; first += 32) {
      const int column = first + lane;
      const bool exists = column < last_n;
      decltype(begin(column)) of_column{};
      if (exists) of_column = begin(column);
#pragma unroll 2
      for (int r = 0; r < 8; ++r)
        if (exists && row0 + r < last_m) use(buffer[r * pitch + column], of_column, row0 + r, column);
    }
    done(piece);
  });
}

/// sum ← result() for a warp's outputs, then store_tile(); or, if results are no numbers, each by itself.
template <class Shape, class S, class Finish, class Sum, int rows, int columns, class Result>
__device__ __forceinline__ void store_results(const detail::Arguments<S, Finish>& g, Sum (&sums)[rows][columns][4],
                                              const Result& result, std::int64_t l, std::int64_t m, std::int64_t n,
                                              unsigned char* shared, int lane) {
  constexpr int outputs_n = Shape::outputs_n, pitch = StoreBuffer<outputs_n, Sum>::pitch;
  Sum* const buffer = reinterpret_cast<Sum*>(shared);
  const auto of_column = [&](int column) { return result.b(l, n + column); };
  if constexpr (std::is_arithmetic_v<typename S::accumulator>) {
    for_each_in_buffer<Shape>(
        sums, g.m - m, g.n - n, buffer, lane, of_column,
        [&](Sum& sum, const auto& b, int row, int column)
            __attribute__((always_inline)) { sum = result(sum, result.a(l, m + row), b, l, m + row, n + column); },
        [&](int piece) __attribute__((always_inline)) {
          __syncwarp();
#pragma unroll
          for (int p = 0; p < 2 * rows; ++p) {
            if (p != piece) continue;
#pragma unroll
            for (int j = 0; j < columns; ++j)
#pragma unroll
              for (int v = 0; v < 2; ++v)
                sums[p / 2][j][p % 2 * 2 + v] = buffer[lane / 4 * pitch + 8 * j + lane % 4 * 2 + v];
          }
        });
    constexpr bool large = is_large<Shape>;
    __syncwarp();
    constexpr tensor::StorePolicy policy{
        .outputs_n = outputs_n, .apart = 16, .together = large ? 1 : 2, .accumulates = !large, .layers = 0};
    tensor::store_tile<policy>(g, sums, l, m, n, shared, lane);
  } else {
    const S s = g.semiring(l);
    for_each_in_buffer<Shape>(
        sums, g.m - m, g.n - n, buffer, lane, of_column,
        [&](Sum& sum, const auto& b, int row, int column) __attribute__((always_inline)) {
          const std::int64_t i = m + row, j = n + column;
          const auto value = result(sum, result.a(l, i), b, l, i, j);
          g.store(s, g.accumulate ? s.add(g.start(s, l, i, j), value) : value, l, i, j);
        },
        [](int) {});
  }
}

/// What a result with such a store has in addition.
struct StoresResults {
  template <class Shape>
  __device__ __forceinline__ void begin(std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, unsigned char*,
                                        int) const {}
};

}  // namespace rigel::backends::mma
