// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a problem is cut: C into tiles, which the workers (one per thread) take from a shared counter; K into blocks of at most
// `max_depth`; a tile into the register blocks of the microkernel. Each worker packs the operands of its tile into its own
// scratch memory.
#pragma once

#include <rigel/detail/workspace.hpp>
#include <rigel/registry.hpp>

#include <array>
#include <utility>

namespace rigel::backends::host {

/// How the loops compute a problem.
enum class Way {
  blocks,   // work.hpp: blocks of outputs in registers
  batches,  // batches.hpp: lanes are matrices of a batch
  slices    // slices.hpp: lanes are k
};

/// The shapes of a compiled loop.
struct Geometry {
  int rows, columns;  // of the microkernel's block
  int lanes;          // of the other two ways
  std::size_t operand_bytes, accumulator_bytes, sums_bytes, value_bytes;
  bool commutative;
  bool has_half;     // of the level
  int vector_bytes;  // of the vectors that steps take; 0: they take numbers one by one
  double pairs;      // per cycle and thread, if a step on a vector takes a cycle
  double joined;     // cycles that the ⊕ of a slice's lanes takes for one of them
};

/// Tiles of slices.hpp have at most so many rows and columns.
inline constexpr int slice_tile = 16;

struct Grid {
  bool transposed;    // the loops compute C's transpose, which a commutative ⊗ allows; of batches: C is contiguous along M
  bool steps_differ;  // of batches: what a step of the epilogue does depends on the output's place or matrix
  int workers;
  int depth;                    // k-steps of a block
  std::int64_t depth_blocks;    // the number of blocks, at least one
  std::int64_t tile_m, tile_n;  // in the loops' terms; multiples of the block's shape
  std::int64_t tiles_m, tiles_n, tiles;
  // Slices of K: how many, the k of one, and whether workers share those of a tile.
  int slices;
  std::int64_t slice;
  bool shares_slices;
  // Offsets in the memory that workers share, and its size: how many slices of each tile are done, and the sums of each.
  std::size_t done, partial, shared;
  // Offsets in a worker's scratch memory, and its size, in bytes: packed A, packed B, the accumulators of one register block (of
  // batches: values; of slices: two tiles and a row), and the accumulators of the tile, if K has several blocks (of slices: of two tiles).
  std::size_t a, b, block, sums, scratch;

  std::size_t workspace() const { return shared + static_cast<std::size_t>(workers) * scratch; }

  /// The workspace begins with the counter of tiles, on a cache line of its own.
  static constexpr std::size_t counter_bytes = detail::workspace_alignment;
};

/// Cuts a problem for loops of the given shapes.
Grid grid_of(Way way, const Contraction& problem, const Geometry& geometry);

/// The function of a compiled loop: worker number `worker` computes tiles until none is left. `arguments` points to a
/// detail::Arguments.
using Work = void (*)(const void* arguments, const Grid& grid, int worker, void* workspace);

struct Loop {
  std::array<Work, 3> work;  // by Way
  Geometry geometry;
};

/// The way of the least predicted time, and that time. `any_order`: slices may be among them.
std::pair<Way, double> way_of(const Contraction& problem, const Geometry& geometry, bool any_order);
/// The predicted time of one way.
double seconds_of(Way way, const Contraction& problem, const Geometry& geometry);

}  // namespace rigel::backends::host
