// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a lane keeps of a row while bounds pass by: the least bound, the group of columns that has it, and the second least of other groups.
#pragma once

#include <rigel/macros.hpp>
#include <rigel/numeric.hpp>

#include <bit>
#include <cstdint>

namespace rigel::backends::mma::nearest {

/// The last bits of a bound give way to the group's position in a run of 2^position_bits groups, so that one minimum finds both.
inline constexpr int position_bits = 6, groups_of_run = 1 << position_bits;

RIGEL_FUNCTION float placed(float bound, std::uint32_t position) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(bound) & ~std::uint32_t{groups_of_run - 1}) | position);
}
RIGEL_FUNCTION std::uint32_t position_of(float placed) { return std::bit_cast<std::uint32_t>(placed) & (groups_of_run - 1); }
RIGEL_FUNCTION float least_of(float x, float y) {
#if defined(__CUDA_ARCH__)
  return fminf(x, y);
#else
  return __builtin_fminf(x, y);
#endif
}
RIGEL_FUNCTION float largest_of(float x, float y) {
#if defined(__CUDA_ARCH__)
  return fmaxf(x, y);
#else
  return __builtin_fmaxf(x, y);
#endif
}

/// The groups of one lane and row. Groups come in runs; end_run() follows the last one of each.
struct Least {
  static constexpr float none = 0x1p127f;
  float of_run = none, first = none, second = none;  // of the run; of all runs before; the second of all groups
  std::uint32_t run = 0;                             // the first one's

  RIGEL_MEMBER void take(float bound, std::uint32_t position) {
    const float group = placed(bound, position);
    second = least_of(second, largest_of(of_run, group));
    of_run = least_of(of_run, group);
  }
  RIGEL_MEMBER void end_run(std::uint32_t number) {
    second = least_of(second, largest_of(of_run, first));
    run = of_run < first ? number : run;
    first = least_of(of_run, first);
    of_run = none;
  }
  /// The number of the first one among all groups, after end_run().
  RIGEL_MEMBER std::uint32_t group() const { return run * groups_of_run + position_of(first); }
};

/// What a warp's four lanes of a row keep together.
struct RowLeast {
  float first[4];
  std::uint32_t group[4];
  float second, square, lost;  // |x'|² and |dx|² of the row
};

/// The nearest column so far: its squared distance, its score, and its place. Columns may come in any order.
struct Nearest {
  float distance, score;
  std::int64_t n;
  RIGEL_MEMBER void take(float other, float other_score, std::int64_t other_n) {
    const bool replaces = n < 0 || other_score < score || (other_score == score && other_n < n);
    if (!replaces) return;
    distance = other;
    score = other_score;
    n = other_n;
  }
};

/// The lane of a row that has its least bound.
template <class Row>
RIGEL_FUNCTION int best_lane_of(const Row& row) {
  int best = 0;
  for (int q = 1; q < 4; ++q)
    if (row.first[q] < row.first[best]) best = q;
  return best;
}
/// Whether a row's nearest column is known, after that of the best lane is: examine(lane, group, nearest) computes the distances of a group's
/// columns. `row` is as a RowLeast, `c` the row's.
template <class Row, class Certainty, class Examine>
RIGEL_FUNCTION bool excludes_others(const Row& row, const Certainty& c, int best, Nearest& nearest, const Examine& examine) {
  if (nearest.n < 0) return false;
#pragma unroll 1
  for (int i = 1; i < 4; ++i) {
    const int q = (best + i) & 3;
    if (!c.excludes(row.first[q], nearest.distance)) examine(q, row.group[q], nearest);
  }
  return c.excludes(row.second, nearest.distance);
}
/// Finds a row's nearest column, or finds that it takes a search by subtraction.
template <class Row, class Certainty, class Examine>
RIGEL_FUNCTION bool find_nearest(const Row& row, const Certainty& c, Nearest& nearest, const Examine& examine) {
  const int best = best_lane_of(row);
  examine(best, row.group[best], nearest);
  return excludes_others(row, c, best, nearest, examine);
}

}  // namespace rigel::backends::mma::nearest
