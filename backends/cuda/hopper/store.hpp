// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The short way from wgmma's accumulators to C, for outputs that become elements of C as they are: neighbouring lanes exchange pairs
// of columns, so that each has four neighbours in a row, and store those. Everything else goes by mma::store_tile().
#pragma once

#include <backends/cuda/arch/convert.hpp>
#include <backends/cuda/tile/slab.hpp>
#include <rigel/detail/arguments.hpp>

namespace rigel::backends::hopper {

/// Two sums as neighbours in C.
template <class Value, class Sum>
__device__ __forceinline__ auto two_of(Sum first, Sum second) {
  if constexpr (ShortFloat<Value>) {
    return arch::two_of<Value>(first, second);
  } else {
    struct Two {
      Value first, second;
    };
    return __builtin_bit_cast(std::uint64_t, Two{detail::convert<Value>(first), detail::convert<Value>(second)});
  }
}

/// Stores outputs of a warp, the first of which is C(l, m, n), as far as they exist; x[i][j] are those of rows 64·i and columns 8·j on,
/// as arch::wgmma has them. C has elements of type Value, four of which are aligned wherever a multiple of four columns begins.
template <class Value, class S, class Finish, class Sum, int rows, int columns>
__device__ __forceinline__ void store_fours(const detail::Arguments<S, Finish>& g, const Sum (&x)[rows][columns][4],
                                            std::int64_t l, std::int64_t m, std::int64_t n, int lane) {
  using Word = decltype(two_of<Value>(Sum{}, Sum{}));
  struct alignas(2 * sizeof(Word)) Four {
    Word low, high;
  };
  // A lane's own columns are 2·(lane mod 4) and the next one of eight; an even lane gets the two behind its own of the first eight of
  // sixteen, its neighbour the two before its own of the second eight.
  const bool odd = lane % 2 != 0;
  const int column = 8 * (lane & 1) + 2 * (lane & 2);
  const auto left_n = static_cast<int>(std::min<std::int64_t>(g.n - n, 8 * columns)) - column;
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t row = m + 64 * i + 8 * half + lane / 4;
      auto* const to = static_cast<Value*>(g.c) + g.c_offset(l, row, n + column);
      const int left = row < g.m ? left_n : 0;
#pragma unroll
      for (int j = 0; j < columns; j += 2) {
        const Word first = two_of<Value>(x[i][j][2 * half], x[i][j][2 * half + 1]);
        const Word second = two_of<Value>(x[i][j + 1][2 * half], x[i][j + 1][2 * half + 1]);
        const Word kept = odd ? second : first, other = __shfl_xor_sync(0xffffffffu, odd ? first : second, 1);
        if (8 * j < left) *reinterpret_cast<Four*>(to + 8 * j) = odd ? Four{other, kept} : Four{kept, other};
      }
    }
}

/// Stores where this is all there is to do, and says whether it was: no epilogue, nothing to add to, C by rows, four elements aligned.
template <class S, class Finish, class Sum, int rows, int columns>
__device__ __forceinline__ bool stored_as_they_are(const detail::Arguments<S, Finish>& g, const Sum (&x)[rows][columns][4],
                                                   std::int64_t l, std::int64_t m, std::int64_t n, int lane) {
  const auto fits = [&]<class Value>() {
    const auto address = reinterpret_cast<std::uintptr_t>(static_cast<Value*>(g.c) + g.c_offset(l, 0, n));
    return g.finish.template is_copy<Value>() && address % (4 * sizeof(Value)) == 0;
  };
  if (g.accumulate || g.c_strides.column != 1 || g.c_strides.row % 4 != 0 || g.n % 4 != 0) return false;
  if (fits.template operator()<typename S::accumulator>()) {
    store_fours<typename S::accumulator>(g, x, l, m, n, lane);
    return true;
  }
  if constexpr (ShortFloat<typename S::element>)
    if (fits.template operator()<typename S::element>()) {
      store_fours<typename S::element>(g, x, l, m, n, lane);
      return true;
    }
  return false;
}

}  // namespace rigel::backends::hopper
