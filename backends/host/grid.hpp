// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a problem is cut: C into tiles, which the workers (one per thread) take from a shared counter; K into blocks of at most
// `max_depth`; a tile into the register blocks of the microkernel. Each worker packs the operands of its tile into its own
// scratch memory.
#pragma once

#include <rigel/detail/workspace.hpp>
#include <rigel/registry.hpp>

namespace rigel::backends::host {

/// The shapes of a compiled loop.
struct Geometry {
  int rows, columns;  // of the microkernel's block
  std::size_t operand_bytes, accumulator_bytes;
  bool commutative;
};

struct Grid {
  bool transposed;  // the loops compute C's transpose, because ⊗ commutes and C is contiguous along M
  int workers;
  int depth, depth_blocks;      // k-steps of a block, and the number of blocks, at least one
  std::int64_t tile_m, tile_n;  // in the loops' terms; multiples of the block's shape
  std::int64_t tiles_m, tiles_n, tiles;
  // Offsets in a worker's scratch memory, and its size, in bytes: packed A, packed B, the accumulators of one register block,
  // and, if K has several blocks, the accumulators of the tile.
  std::size_t a, b, block, sums, scratch;

  std::size_t workspace() const { return counter_bytes + static_cast<std::size_t>(workers) * scratch; }

  /// The workspace begins with the counter of tiles, on a cache line of its own.
  static constexpr std::size_t counter_bytes = detail::workspace_alignment;
};

/// Cuts a problem for a loop of the given shapes.
Grid grid_of(const Contraction& problem, const Geometry& geometry);

/// The function of a compiled loop: worker number `worker` computes tiles until none is left. `arguments` points to a
/// detail::Arguments.
using Work = void (*)(const void* arguments, const Grid& grid, int worker, void* workspace);

struct Loop {
  Work work;
  Geometry geometry;
};

}  // namespace rigel::backends::host
