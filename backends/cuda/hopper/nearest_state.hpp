// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points by wgmma: the order of columns, and what a lane keeps of a row while bounds pass by. A lane has the bounds of every fourth
// pair of columns. It keeps the least and the second least of their groups, and the least of each class; a group has one column of each class.
// So the column of the best group and the best class is known, and all others have bounds from the second best group or class on.
#pragma once

#include <rigel/backends/cuda/mma/nearest_state.hpp>

namespace rigel::backends::hopper::nearest {

using mma::nearest::groups_of_run;
using mma::nearest::largest_of;
using mma::nearest::Least;
using mma::nearest::least_of;

/// How columns are cut. Of a tile's columns a lane has 32 for each of its rows: four groups of eight, one of each class.
struct Layout {
  static constexpr int columns = 128, groups = 4, classes = 8;
  static constexpr int tiles_of_run = groups_of_run / groups;
  static std::int64_t tiles(std::int64_t n) { return (n + columns - 1) / columns; }

  /// The column of lane q of four with this class, of a group by its number among all groups.
  RIGEL_MEMBER static constexpr std::uint32_t column(std::uint32_t group, int of_class, int q) {
    return group / groups * columns + group % groups * 32 + static_cast<unsigned>(of_class / 2 * 8 + 2 * q + of_class % 2);
  }
  /// Where a tile has the norm of its column: a lane's four of 16 columns together.
  RIGEL_MEMBER static constexpr int place_of_norm(int column) {
    return column / 16 * 16 + column % 8 / 2 * 4 + column / 8 % 2 * 2 + column % 2;
  }
};

/// What a lane keeps of one row.
struct LaneRow {
  Least groups;
  float classes[Layout::classes];

  RIGEL_MEMBER void begin() {
    groups = {};
#pragma unroll
    for (float& c : classes) c = Least::none;
  }
  RIGEL_MEMBER void take(float bound, int of_class) { classes[of_class] = least_of(classes[of_class], bound); }
  /// The least bounds of all columns but one, and which one that is.
  RIGEL_MEMBER void end(unsigned run, int q, float& first, std::uint32_t& column, float& second) {
    groups.end_run(run);
    float least = classes[0], next = Least::none;
    int of_class = 0;
#pragma unroll
    for (int c = 1; c < Layout::classes; ++c) {
      next = least_of(next, largest_of(least, classes[c]));
      of_class = classes[c] < least ? c : of_class;
      least = least_of(least, classes[c]);
    }
    first = groups.first;
    column = Layout::column(groups.group(), of_class, q);
    second = least_of(groups.second, next);
  }
};

}  // namespace rigel::backends::hopper::nearest
