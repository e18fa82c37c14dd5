// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sixteen kernels of this program's own for products of doubles on a host: tiles of 16 × 16 and 32 × 32 outputs, and each of A, B and C row-major or
// column-major. They take batches (rank-3 views), ragged edges and sums that start with C, and no epilogue.
#pragma once

namespace tiles {

/// Registers them as "tiles.plus_times.f64.<layouts of A, B and C>.<tile>", such as tiles.plus_times.f64.rcr.16x16. Once.
void register_all();

}  // namespace tiles
