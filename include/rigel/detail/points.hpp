// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of distances on operands: what rigel/neighbors.hpp hands to the compiled driver, src/operations/points.cpp.
#pragma once

#include <rigel/detail/cdist.hpp>
#include <rigel/reduction_problem.hpp>

#include <string>
#include <utility>
#include <vector>

namespace rigel::detail {

/// `p`: the reduction whose scores are the contraction of X and transposed Z. `pass`: as in cdist.hpp.
void run_points(Reduction p, const RowPass* pass);

/// The same of radius_offsets(), whose counts are all offsets but the first, which overlaps neither X nor Z.
void run_offsets(Reduction p, const RowPass* pass);
std::string explain_points(Reduction p, const RowPass* pass);
std::size_t points_bytes(Reduction p, const RowPass* pass);
std::vector<Candidate<Reduction>> points_candidates(Reduction p, const RowPass* pass);

inline constexpr auto run_reduction = [](Reduction p, const RowPass* pass) { run_points(std::move(p), pass); };
inline constexpr auto bytes_of_reduction = [](Reduction p, const RowPass* pass) { return points_bytes(std::move(p), pass); };

}  // namespace rigel::detail
