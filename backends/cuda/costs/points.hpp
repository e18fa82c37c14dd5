// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicted times of cuda.points, and into how many slices it cuts the columns.
#pragma once

#include <rigel/reduction_problem.hpp>

namespace rigel::backends::points {

/// Slices of the columns, and tiles of each.
struct Cut {
  std::int32_t slices = 1, slice_tiles = 0;
  std::size_t bytes = 0;  // of the workspace
};

namespace costs {

/// What a kernel is: blocks of so many rows, tiles of so many columns, and of a score the instructions, and how many of them are those of the
/// special-function unit.
struct Call {
  int threads = 1, rows_of_block = 1, tile_columns = 1, registers = 0;
  double instructions = 0, special = 0;
  double doubles = 0;           // instructions of double in addition
  std::int64_t units = 0;       // blocks of rows of all matrices
  std::size_t state_bytes = 0;  // of a row in a slice, if there are several
};
/// The cut of the least predicted time, and that time.
std::pair<Cut, double> choose(const Reduction& p, const Call& call);

/// With products on tensor cores: tiles of so many rows and columns, with so many numbers of each point; columns in parts, each cut into
/// slices; instructions of a score in addition to products of halves, of which there are so many; blocks of a
/// multiprocessor.
struct ExpandedCall {
  int rows = 1, columns = 1, numbers = 1, parts = 1, slices = 1, slice_tiles = 1;
  double instructions = 0, products = 3, resident = 3;
};
double expanded_seconds(const Reduction& p, const ExpandedCall& call);

}  // namespace costs
}  // namespace rigel::backends::points
