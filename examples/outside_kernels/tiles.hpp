// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sixteen kernels of this program's own for products of doubles: tiles of 16 × 16 and 32 × 32 outputs, and each of A, B and C row-major or
// column-major. They take batches (rank-3 views), ragged edges and sums that start with C, and no epilogue. They run on CUDA if Kokkos has it,
// else on hosts.
#pragma once

namespace tiles {

/// Registers their provider, "tiles". It makes them when calls want them, as "tiles.plus_times.f64.<layouts of A, B and C>.<tile>", such as
/// tiles.plus_times.f64.rcr.16x16.
void provide();

}  // namespace tiles
