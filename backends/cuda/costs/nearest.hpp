// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicted times of nearest points on tensor cores (cuda.mma), from what a kernel is, as data.
#pragma once

#include <rigel/reduction_problem.hpp>

namespace rigel::backends::mma::costs {

/// `numbers`: along K as tensor cores multiply them. `group`: bounds that are compared together. `rows`: of a block, of which a multiprocessor
/// holds `blocks`.
struct NearestCall {
  int numbers = 0, group = 1, rows = 0, blocks = 1;
};
/// The minimum by one sweep over the columns.
double nearest_seconds(const Reduction& p, const NearestCall& call);

/// `results`: the k of the k smallest. `pieces`, `strips`: of rows and columns that are searched at a time; no strips: all distances are
/// computed by subtraction. `words`: of a row's list.
struct NearestManyCall : NearestCall {
  int results = 0, words = 0;
  double pieces = 1, strips = 1;
};
double nearest_many_seconds(const Reduction& p, const NearestManyCall& call);

}  // namespace rigel::backends::mma::costs
