// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicted times of the cuda.reduce kernels, and how they cut the columns. Tiles take what those of cuda.simt take (costs/simt.hpp).
#pragma once

#include <rigel/backends/cuda/costs/simt.hpp>
#include <rigel/reduction_problem.hpp>

namespace rigel::backends::reduce {

/// How a call is cut. A unit is a tile of rows; its columns come in slices of so many tiles, and a launch has so many units. The workspace
/// is within the call's limit, or that of one unit in one slice.
struct Cut {
  int slices = 1, slice_tiles = 0;
  std::uint32_t units = 0, launch_units = 1;
  std::size_t unit_bytes = 0;  // of workspace
  std::size_t bytes() const { return unit_bytes * launch_units; }
};

namespace costs {

/// A call: what its scores are (simt::costs), and blocks.
struct Call {
  std::uint32_t units = 0;        // tiles of rows, of all matrices
  int column_tiles = 0;           // of a row
  int join_blocks = 1;            // that join a unit's slices
  simt::costs::TileCall scores;   // all tiles
  int shared_bytes = 0;           // of a block
  std::size_t state_bytes = 0;    // of a row in the workspace, for each slice; 0: with one slice there is none
  bool always_has_state = false;  // with one slice, too
};

/// A call of few rows (few.hpp), whose tiles have so many rows and columns. Other members are as above; states have `state_rows` rows.
struct FewCall {
  int rows = 1, columns = 128, state_rows = 4;
  std::uint32_t units = 0;
  int join_blocks = 1;
  int shared_bytes = 0;
  std::size_t state_bytes = 0;
};
std::pair<Cut, double> choose(const Reduction& p, const simt::costs::Semiring& s, const FewCall& call);

/// The cut of least predicted time, and that time.
std::pair<Cut, double> choose(const Reduction& p, const simt::costs::Semiring& s, const simt::costs::Tile& t,
                              const Call& call);

}  // namespace costs
}  // namespace rigel::backends::reduce
