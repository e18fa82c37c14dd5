// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The outlet of sum and log_sum_exp.
#pragma once

#include <rigel/backends/cuda/reduce/outlet.hpp>

namespace rigel::backends::reduce {

/// Lane j takes the columns j, j + lanes, … in ascending order. Columns are not cut into slices: the order is the reference's.
template <class T, class Lane, int rows_of_tile, int threads>
struct Lanes {
  static constexpr int lanes = detail::lanes;
  static constexpr int shared_bytes = lanes * rows_of_tile * static_cast<int>(sizeof(Lane));
  Lane* sums;  // lane by lane, those of all rows

  template <class Block>
  RIGEL_MEMBER void begin(const Block& block) const {
    for (int i = block.thread(); i < lanes * rows_of_tile; i += threads) sums[i] = Lane();
  }

  template <class Block, int most>
  RIGEL_MEMBER void take(const Block&, const Part<T, most>& part) const {
    constexpr int unrolled = sizeof(Lane) == sizeof(double) ? 4 : 1;  // an exponential is long
#pragma unroll unrolled
    for (int i = 0; i < part.count; ++i)
      if (!part.is_self(i)) {
        Lane& lane = sums[(part.n + i * part.step) % lanes * rows_of_tile + part.row];
        Lane sum = lane;
        sum.add(part(i));
        lane = sum;
      }
  }

  template <class Block>
  RIGEL_MEMBER void end(const Block& block, const Launch<T>& launch, const Rows& at) const {
    block.sync();
    for (int row = block.thread(); row < at.rows; row += threads) {
      Lane* const of_row = sums + row;
#pragma unroll 1
      for (int half = lanes / 2; half > 0; half /= 2)
#pragma unroll 1
        for (int j = 0; j < half; ++j) {
          Lane sum = of_row[j * rows_of_tile];
          sum.add(of_row[(j + half) * rows_of_tile]);
          of_row[j * rows_of_tile] = sum;
        }
      launch.outputs.store(of_row[0].result(), at.l, at.m + row);
    }
  }
};

}  // namespace rigel::backends::reduce
