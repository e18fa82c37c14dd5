// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slabs as tensor copies write and wgmma reads them: rows of 64 or 128 bytes in shared memory whose pieces of 16 are permuted (PTX
// ISA, "Swizzling modes": in rows of 128 bytes piece p of row r is at p ^ (r mod 8), in rows of 64 at p ^ (r/2 mod 4)). Where k is
// contiguous in the operand a row is a line; where lines are, it is one k of 64 neighbouring lines (numbers of 16 bits only), and
// panels of 64 lines follow each other.
#pragma once

#include <rigel/backends/cuda/tile/matrix_slab.hpp>

#include <cstdint>

namespace rigel::tile {

template <class Element, Direction direction, int lines, int row_bytes = 128>
struct SwizzledSlab {
  static constexpr int size = static_cast<int>(sizeof(Element));
  static constexpr bool by_lines = direction == Direction::along_lines;
  static_assert(row_bytes == 128 || (row_bytes == 64 && !by_lines));
  static_assert(!by_lines || (size == 2 && lines % 64 == 0));

  static constexpr int depth = row_bytes / size;  // values of k
  static constexpr int steps = row_bytes / 32;    // of wgmma
  static constexpr int bytes = lines * row_bytes;

  /// The box of one tensor copy, as the tensor map has it, its contiguous extent first; and how many make up a slab, `parts` of
  /// which are copied by a block each.
  static constexpr int panel_bytes = 64 * row_bytes;
  template <int parts>
  static constexpr int box_rows = by_lines ? depth : lines / parts;
  template <int parts>
  static constexpr int copies = by_lines ? lines / 64 / parts : 1;
  static constexpr int box_columns = row_bytes / size;

  /// Where panel or box `copy` of part `part` begins: its first line in the slab, and its place in shared memory.
  template <int parts>
  __device__ __forceinline__ static int line_of(int part, int copy) {
    return part * (lines / parts) + copy * 64;
  }
  template <int parts>
  __device__ __forceinline__ static std::uint32_t place_of(int part, int copy) {
    return line_of<parts>(part, copy) * row_bytes;
  }

  /// The descriptor of step `step` of the lines from `line` on, a multiple of 64 (PTX ISA, "Matrix Descriptor Format"): address, leading
  /// and stride offset in units of 16 bytes, the kind of permutation. The stride is between groups of eight rows; the leading offset,
  /// between panels, has no meaning where k is contiguous.
  __device__ __forceinline__ static std::uint64_t descriptor(std::uint32_t slab, int line, int step) {
    constexpr std::uint32_t permutation = row_bytes == 128 ? 1 : 2;
    constexpr std::uint32_t leading = by_lines ? panel_bytes / 16 : 1, stride = 8 * row_bytes / 16;
    constexpr std::uint32_t step_bytes = by_lines ? 32 / size * row_bytes : 32;
    // In a cluster an address of shared memory holds the block's place there too, above the 18 bits that count here.
    const std::uint32_t first = ((slab + line * row_bytes) & 0x3ffffu) / 16;
    return std::uint64_t{permutation << 30 | stride} << 32 | ((leading << 16 | first) + step * step_bytes / 16);
  }
};

}  // namespace rigel::tile
