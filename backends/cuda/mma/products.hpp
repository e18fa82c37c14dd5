// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of fragments, and what is done with all accumulators of a thread.
#pragma once

#include <rigel/numeric.hpp>

#include <cstdint>

namespace rigel::backends::mma {

/// What tf32 does not see of a float: x less its upper 11 bits, which leaves 13 bits, of which tf32 then sees 11. Upper
/// parts are truncated, so that no product of them overflows before that of the floats does.
__device__ __forceinline__ std::uint32_t rest_of(std::uint32_t bits) {
  return __float_as_uint(math::subtract(__uint_as_float(bits), __uint_as_float(bits & 0xffffe000u)));
}

/// visit(i, j, r) for all accumulators of a thread.
template <int rows, int columns, class Visit>
__device__ __forceinline__ void for_each_accumulator(const Visit& visit) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) visit(i, j, r);
}

/// sums += x, in float.
template <class Sum, int rows, int columns>
__device__ __forceinline__ void add_sums(Sum (&sums)[rows][columns][4], const Sum (&x)[rows][columns][4]) {
  for_each_accumulator<rows, columns>([&](int i, int j, int r) { sums[i][j][r] = math::add(sums[i][j][r], x[i][j][r]); });
}

/// x += A·B for all fragments of a step, back and forth: consecutive instructions share a fragment.
template <class Mma, class Register, int rows, int columns>
__device__ __forceinline__ void add_products(typename Mma::Accumulator (&x)[rows][columns][4], const Register (&a)[rows][4],
                                             const Register (&b)[columns / 2][4]) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int turn = 0; turn < columns; ++turn) {
      const int j = i % 2 == 0 ? turn : columns - 1 - turn;
      Mma::add(x[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

/// The same for floats in two parts, without the products of both rests. (The instruction takes the floats themselves as
/// upper parts.)
template <class Mma, int rows, int columns>
__device__ __forceinline__ void add_split_products(typename Mma::Accumulator (&x)[rows][columns][4],
                                                   const std::uint32_t (&a)[rows][4],
                                                   const std::uint32_t (&b)[columns / 2][4]) {
  std::uint32_t rest_b[columns / 2][4];
#pragma unroll
  for (int j = 0; j < columns / 2; ++j)
#pragma unroll
    for (int r = 0; r < 4; ++r) rest_b[j][r] = rest_of(b[j][r]);
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    std::uint32_t rest_a[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) rest_a[r] = rest_of(a[i][r]);
    const auto add = [&](const std::uint32_t (&of_a)[4], const std::uint32_t (&of_b)[columns / 2][4]) {
#pragma unroll
      for (int j = 0; j < columns; ++j) Mma::add(x[i][j], of_a, of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1]);
    };
    add(rest_a, b);
    add(a[i], rest_b);
    add(a[i], b);
  }
}

}  // namespace rigel::backends::mma
