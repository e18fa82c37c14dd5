// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a problem is cut: C into tiles, which the workers (one for each thread) take in turn; k into blocks of at most
// `max_depth`; a tile into the register blocks of the microkernel. Each worker packs what its tile needs into scratch
// memory of its own.
#pragma once

#include <rigel/registry.hpp>

namespace rigel::backends::host {

/// What a compiled loop says of its shapes.
struct Geometry {
  int rows, columns;  // of the microkernel's block
  std::size_t operand_bytes, accumulator_bytes;
  bool commutative;
};

struct Grid {
  bool transposed;  // the loops compute C's transpose: a ⊗ b = b ⊗ a, and C is contiguous in m
  int workers;
  int depth, depth_blocks;         // of k, at least one block
  std::int64_t tile_m, tile_n;     // in the loops' terms; multiples of the block's shape
  std::int64_t tiles_m, tiles_n, tiles;
  // Offsets into a worker's scratch memory, and its size, in bytes: packed A, packed B, accumulators of one block, and
  // where there are several blocks of k, accumulators of the tile.
  std::size_t a, b, block, sums, scratch;

  std::size_t workspace() const { return counter_bytes + static_cast<std::size_t>(workers) * scratch; }

  /// The next tile's number stands at the beginning of the workspace, on a cache line of its own.
  static constexpr std::size_t counter_bytes = 256;
};

/// The cut of a problem.
Grid grid_of(const Problem& problem, const Geometry& geometry);

/// A compiled loop: worker number `worker` computes tiles until none is left. `arguments` are its Arguments.
using Work = void (*)(const void* arguments, const Grid& grid, int worker, void* workspace);

struct Loop {
  Work work;
  Geometry geometry;
};

}  // namespace rigel::backends::host
