// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicted times of cuda.solver and cuda.cusolver, from what a kernel is, as data.
#pragma once

#include <rigel/solve.hpp>

namespace rigel::backends::solver::costs {

/// Matrices in registers: `tiles` × `tiles` elements of each of `threads` threads of a block, which is a system.
double small_seconds(const Solve& p, int tiles, int threads, bool wide);

/// Blocks of the diagonal; with `rows` of factors and right sides together.
double cholesky_seconds(const Solve& p, double blocks, bool has_right_sides, bool wide);
/// Panels, and blocks of U.
double lu_seconds(const Solve& p, double panels, double blocks, bool wide);

/// Jacobi's method. `bytes`: of an element.
double jacobi_seconds(const Solve& p, int bytes, bool has_vectors_in_shared_memory);

/// The library's routines: for a batch, or for one system after the other on so many streams.
double library_seconds(const Solve& p, bool batched, int streams, bool wide);

}  // namespace rigel::backends::solver::costs
