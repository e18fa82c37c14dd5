// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicted times of cuda.best, the k smallest sums of differences.
#pragma once

#include <rigel/reduction_problem.hpp>

namespace rigel::backends::best::costs {

/// Tiles of so many rows and columns; slabs of so many numbers.
struct Call {
  int rows = 1, columns = 1, depth = 1;
};
double seconds(const Reduction& p, const Call& call);

}  // namespace rigel::backends::best::costs
