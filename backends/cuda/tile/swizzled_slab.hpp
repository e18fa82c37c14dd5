// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slabs as tensor copies (TMA) write and wgmma reads them: shared-memory rows of 64 or 128 bytes whose 16-byte pieces are
// swizzled. Piece p of row r is at p ^ (r mod 8) in rows of 128 bytes, at p ^ (r/2 mod 4) in rows of 64 (PTX ISA, "Swizzling
// modes"). A row of a K-major slab holds one line, which is a row of A or a column of B. A row of an M- or N-major slab
// (16-bit numbers only) holds 64 neighbouring lines for one k; panels of 64 lines follow each other.
#pragma once

#include <rigel/backends/cuda/tile/direction.hpp>

#include <cstdint>

namespace rigel::tile {

template <class Element, Direction direction, int lines, int row_bytes = 128>
struct SwizzledSlab {
  static constexpr int size = static_cast<int>(sizeof(Element));
  static constexpr bool by_lines = direction == Direction::along_lines;
  static_assert(row_bytes == 128 || (row_bytes == 64 && !by_lines));
  static_assert(!by_lines || (size == 2 && lines % 64 == 0));

  static constexpr int depth = row_bytes / size;  // elements along K
  static constexpr int steps = row_bytes / 32;    // of wgmma
  static constexpr int bytes = lines * row_bytes;

  /// Shares of a slab are lines; of an odd number of panels, k of all of them.
  template <int parts>
  static constexpr bool shares_k = by_lines && lines / 64 % parts != 0;
  /// The box of one tensor copy as the tensor map has it (box_columns is its contiguous extent), and the number of copies
  /// per slab for a block that copies one of `parts` shares. The swizzle repeats every eight rows of a box.
  static constexpr int panel_bytes = 64 * row_bytes;
  template <int parts>
  static constexpr int box_rows = shares_k<parts> ? depth / parts
                                  : by_lines      ? depth
                                                  : lines / parts;
  template <int parts>
  static constexpr int copies = shares_k<parts> ? lines / 64
                                : by_lines      ? lines / 64 / parts
                                                : 1;
  static constexpr int box_columns = row_bytes / size;

  /// Where copy `copy` of share `part` begins: its first line and k in the slab, and its offset in shared memory.
  template <int parts>
  __device__ __forceinline__ static int line_of(int part, int copy) {
    return (shares_k<parts> ? 0 : part * (lines / parts)) + copy * 64;
  }
  template <int parts>
  __device__ __forceinline__ static int k_of(int part) {
    return shares_k<parts> ? part * box_rows<parts> : 0;
  }
  template <int parts>
  __device__ __forceinline__ static std::uint32_t place_of(int part, int copy) {
    static_assert(box_rows<parts> % 8 == 0);
    return (line_of<parts>(part, copy) + k_of<parts>(part)) * row_bytes;
  }

  /// The wgmma descriptor of step `step` along K of the lines from `line` on, a multiple of 64 (PTX ISA, "Matrix Descriptor
  /// Format"): address, leading and stride offset in units of 16 bytes, swizzling mode. The stride is between groups of
  /// eight rows. The leading offset is between panels; it means nothing if the slab is K-major.
  __device__ __forceinline__ static std::uint64_t descriptor(std::uint32_t slab, int line, int step) {
    constexpr std::uint32_t permutation = row_bytes == 128 ? 1 : 2;
    constexpr std::uint32_t leading = by_lines ? panel_bytes / 16 : 1, stride = 8 * row_bytes / 16;
    constexpr std::uint32_t step_bytes = by_lines ? 32 / size * row_bytes : 32;
    // In a cluster a shared-memory address also holds the block's rank, above the 18 bits that count here.
    const std::uint32_t first = ((slab + line * row_bytes) & 0x3ffffu) / 16;
    return std::uint64_t{permutation << 30 | stride} << 32 | ((leading << 16 | first) + step * step_bytes / 16);
  }
};

}  // namespace rigel::tile
