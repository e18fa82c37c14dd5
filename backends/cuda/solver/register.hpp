// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/solve.hpp>

namespace rigel::backends::solver {

/// cuda.solver.{cholesky,lu}.*.small: a block for each small system.
void add_small(Registry<Solve>& registry);
/// cuda.solver.cholesky.*.blocked: any order beyond 128.
void add_blocked_cholesky(Registry<Solve>& registry);
/// cuda.solver.lu.*.blocked: as far as 32 columns fit into a block's shared memory.
void add_blocked_lu(Registry<Solve>& registry);
/// cuda.solver.eigen.*.jacobi: a block for each small symmetric matrix.
void add_jacobi(Registry<Solve>& registry);
/// cuda.cusolver.*: NVIDIA's library, if this build has it.
void add_cusolver(Registry<Solve>& registry);

}  // namespace rigel::backends::solver
