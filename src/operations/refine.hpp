// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Solves whose solutions are refined, as calls of solves that are not.
#pragma once

#include <rigel/solve.hpp>

namespace rigel::detail {

/// What run() and workspace_size() are to a problem with `refine` > 0 that has right sides.
void run_refined(const Solve& problem);
WorkspaceSize refined_size(const Solve& problem);

/// The workspace of a problem whose operands are not placed yet: unchecked.
WorkspaceSize workspace_of(const Solve& problem);

}  // namespace rigel::detail
