// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the lower triangle of an m × m matrix is cut into block rows: rows [first, first + height) with the columns before their end. A
// block row is a launch. What it computes above the diagonal is wasted, height²/2 outputs, and so is what is left of the launch's last
// wave: the multiprocessors compute `wave` tiles at a time, and the next launch starts when the last one is done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace rigel::detail {

struct BlockRows {
  std::vector<std::int64_t> heights;  // none: the matrix is not cut
  double seconds = std::numeric_limits<double>::infinity();
};

/// `count` block rows of one height, a multiple of `multiple`, but for the last. None if a single one would do.
/// seconds(first, height) predicts the time of a block row, infinity if no launch can compute it.
template <class Seconds>
BlockRows equal_block_rows(std::int64_t m, std::int64_t multiple, int count, const Seconds& seconds) {
  const std::int64_t height = (m / count + multiple - 1) / multiple * multiple;
  BlockRows rows;
  if (height == 0 || height >= m) return rows;
  rows.seconds = 0;
  for (std::int64_t first = 0; first < m; first += height) {
    rows.heights.push_back(std::min(height, m - first));
    rows.seconds += seconds(first, rows.heights.back());
  }
  return rows;
}

/// Block rows whose waves are as full as they get: from the first row on, each has the height of the least predicted time for an output
/// of the triangle, of 1 to 16 steps. A step is `multiple` rows, more if that would cut m into more than 256.
template <class Seconds>
BlockRows block_rows_by_waves(std::int64_t m, std::int64_t multiple, const Seconds& seconds) {
  constexpr std::int64_t most_steps = 256, most_of_row = 16;
  const std::int64_t steps = (m + multiple - 1) / multiple, step = (steps + most_steps - 1) / most_steps * multiple;
  BlockRows rows;
  if (step >= m) return rows;
  rows.seconds = 0;
  for (std::int64_t first = 0; first < m; first += rows.heights.back()) {
    double least = std::numeric_limits<double>::infinity(), least_seconds = least;
    std::int64_t best = std::min(step, m - first);
    for (std::int64_t i = 1; i <= most_of_row; ++i) {
      const std::int64_t height = std::min(i * step, m - first);
      const double of_row = seconds(first, height);
      const double outputs = static_cast<double>(height) * (static_cast<double>(first) + static_cast<double>(height) / 2);
      if (of_row / outputs < least) {
        least = of_row / outputs;
        least_seconds = of_row;
        best = height;
      }
      if (height == m - first) break;
    }
    rows.heights.push_back(best);
    rows.seconds += least_seconds;
  }
  return rows;
}

}  // namespace rigel::detail
