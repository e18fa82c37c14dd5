// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of distances on operands: what rigel/neighbors.hpp hands to the compiled driver, src/operations/points.cpp.
#pragma once

#include <rigel/detail/cdist.hpp>
#include <rigel/reduction_problem.hpp>

#include <string>
#include <vector>

namespace rigel::detail {

/// `p`: the reduction whose scores are the contraction of X and transposed Z. `pass`: as in cdist.hpp.
void run_points(Reduction p, const RowPass* pass);
std::string explain_points(Reduction p, const RowPass* pass);
std::size_t points_bytes(Reduction p, const RowPass* pass);
std::vector<Candidate<Reduction>> points_candidates(Reduction p, const RowPass* pass);

}  // namespace rigel::detail
