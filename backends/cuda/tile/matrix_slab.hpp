// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slabs for tensor cores: 128 bytes along K of `lines` rows of A or columns of B, kept as shared-memory rows of 128 bytes.
// The 16-byte pieces of a row are swizzled (piece p of row r is at p ^ permutation(r)), so neither copies nor reads of
// fragments have bank conflicts. In names, a line is a row of A or a column of B; `along_k` is K-major, `along_lines` M- or
// N-major.
//
// - K-major: a shared-memory row holds one line. ldmatrix reads eight of them at a time. Doubles are read one by one: a warp
//   takes two pieces of eight rows.
// - M- or N-major, 16-bit numbers: a row holds 64 neighbouring lines for one k. ldmatrix transposes.
// - M- or N-major, larger numbers: a row holds 16 neighbouring lines for as many k as fill it. Numbers are read one by one:
//   a warp takes four k of eight lines.
//
// Bytes must be K-major. Planes (16-bit numbers, K-major) have rows of 64 bytes each, plane by plane. In the operand, the
// planes of a line alternate: as many elements along K of each as a row holds.
#pragma once

#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/backends/cuda/arch/mma.hpp>
#include <rigel/backends/cuda/tile/direction.hpp>

#include <algorithm>
#include <cstdint>

namespace rigel::tile {

template <class Element, Direction direction, int lines, int threads, int planes = 1>
class MatrixSlab {
  static constexpr int size = static_cast<int>(sizeof(Element)), width = 16 / size;  // of a piece, in elements
  static constexpr int row_bytes = planes == 1 ? 128 : 64, pieces = row_bytes / 16;
  static constexpr int rows_apart = threads / pieces, each = lines / rows_apart;
  static constexpr bool by_lines = direction == Direction::along_lines, one_by_one = by_lines && size > 2;
  static constexpr int panel = size == 2 ? 64 : 16, panels = lines / panel;  // lines that share rows
  static_assert(lines % rows_apart == 0 && rows_apart % 8 == 0);
  static_assert(planes == 1 || (!by_lines && size == 2));
  static_assert(!by_lines ||
                (size > 1 && lines % panel == 0 && (one_by_one ? rows_apart % panel : panel % rows_apart) == 0));

 public:
  static constexpr int depth = row_bytes / size;                                          // elements along K
  static constexpr int plane_bytes = lines * row_bytes, bytes = planes * plane_bytes;     // of shared memory
  static constexpr int step_bytes = size == 8 ? 64 : 32, steps = row_bytes / step_bytes;  // of mma
  using Register = std::conditional_t<size == 8, double, std::uint32_t>;

  static constexpr int copies = planes * each;  // of a thread and slab
  __device__ __forceinline__ static int permutation(int row) {
    if (planes > 1) return row / 2 % 4;
    if (size == 8) return row % 4 * 2;
    return one_by_one ? row % 2 * 2 : row % 8;
  }

  /// One thread's share of the copies of successive slabs, 16 bytes at a time.
  class Source {
   public:
    /// `first`: the matrix's element at the tile's first line, k = 0. `stride`: between lines if K-major, else between k and
    /// k + 1.
    __device__ __forceinline__ Source(const Element* first, std::int64_t stride, std::int64_t lines_left)
        : from_(first + (by_lines ? k() : line()) * stride + (by_lines ? line() : k())),
          present_(static_cast<int>(std::min<std::int64_t>(lines_left, lines)) - line()) {}

    /// Starts copy `e` of a slab to `shared`; e = 0, 1, … in order. `left` elements along K exist, or more. What does not
    /// exist becomes zeros.
    __device__ __forceinline__ void copy(int e, std::uint32_t shared, std::uint32_t stride, int left) {
      const std::uint32_t to = shared + row() * row_bytes + ((piece() ^ permutation(row())) * 16);
      if constexpr (one_by_one) {
        arch::copy_async_or_zero(to + e * rows_apart * row_bytes, from_ + e * rows_apart,
                                 k() < left && e * rows_apart < present_);
        if (e == each - 1) from_ += std::uint64_t{stride} * depth;
      } else if constexpr (by_lines) {
        const int rows = e / panels * rows_apart, line = e % panels * panel;
        arch::copy_async_or_zero(to + (line + rows) * row_bytes, from_ + line, k() + rows < left && line < present_);
        if (e % panels == panels - 1) from_ += std::uint64_t{stride} * rows_apart;
      } else if constexpr (planes > 1) {
        const int plane = e % planes, rows = e / planes * rows_apart;
        arch::copy_async_or_zero(to + plane * plane_bytes + rows * row_bytes, from_ + plane * depth,
                                 k() < left && rows < present_);
        if (plane == planes - 1) from_ += std::uint64_t{stride} * rows_apart;
        if (e == copies - 1) from_ += planes * depth - std::int64_t{stride} * lines;
      } else {
        arch::copy_async_or_zero(to + e * rows_apart * row_bytes, from_, k() < left && e * rows_apart < present_);
        from_ += std::uint64_t{stride} * rows_apart;
        if (e == each - 1) from_ += depth - std::int64_t{stride} * lines;
      }
    }

   private:
    __device__ __forceinline__ static int row() { return static_cast<int>(threadIdx.x) / pieces; }
    __device__ __forceinline__ static int piece() { return static_cast<int>(threadIdx.x) % pieces; }
    // The line and k of the thread's first copy of a slab.
    __device__ __forceinline__ static int line() {
      return one_by_one ? row() / panel * panel + piece() % size * width : by_lines ? piece() * width : row();
    }
    __device__ __forceinline__ static int k() {
      return one_by_one ? row() % panel * (8 / size) + piece() / size : by_lines ? row() : piece() * width;
    }

    const Element* from_;
    int present_;  // lines from this thread's first one to the end
  };

  /// What a lane reads: fragments of 16 lines × one step along K, from line `first` on, in four registers. `rows` is the
  /// order in which mma takes A: lines 0–7 and 8–15 for the first half of the step, then both for the second half. `columns`
  /// is twice what mma takes of B: both halves for lines 0–7, then both for 8–15.
  enum class Order : std::uint8_t { rows, columns };
  template <Order order>
  class Reader {
   public:
    __device__ __forceinline__ Reader(int first, int lane) {
      const int quarter = lane / 8, bit[2] = {quarter % 2, quarter / 2};
      const int upper_lines = bit[order == Order::columns], upper_k = bit[order == Order::rows];
      if constexpr (one_by_one) {
        const int k = lane % 4, row = k * size / 8;  // within half a step: the lane's k, and the row that holds it
        place_ = (first + row) * row_bytes + (((k * size % 8 + lane / 4 / width) ^ permutation(row)) * 16) +
                 lane / 4 % width * size;
      } else if constexpr (size == 8)
        place_ = (first + lane / 4) * row_bytes + ((lane % 4 / 2 ^ permutation(lane / 4)) * 16) + lane % 2 * 8;
      else if constexpr (by_lines)
        place_ = (first / panel * panel + upper_k * 8 + lane % 8) * row_bytes +
                 (((first % panel / 8 + upper_lines) ^ (lane % 8)) * 16);
      else
        place_ = (first + upper_lines * 8 + lane % 8) * row_bytes + ((upper_k ^ permutation(lane % 8)) * 16);
    }

    /// Reads the fragment of step `step` that starts `at` lines (a multiple of 16) after the first.
    __device__ __forceinline__ void read(std::uint32_t shared, int at, int step, Register (&fragment)[4]) const {
      constexpr bool of_rows = order == Order::rows;
      if constexpr (one_by_one) {
        const std::uint32_t from = shared + (at + step * (depth / steps) * size / 8) * row_bytes;
        constexpr int other_half = size / 2 * row_bytes, other_lines = 8 * size;
        arch::load_one(fragment[0], from + place_);
        arch::load_one(fragment[of_rows ? 2 : 1], from + place_ + other_half);
        arch::load_one(fragment[of_rows ? 1 : 2], from + (place_ ^ other_lines));
        arch::load_one(fragment[3], from + (place_ ^ other_lines) + other_half);
      } else if constexpr (size == 8) {
        // Recomputed at each read, so that four places of either operand share one register.
        int place = place_;
        asm volatile("" : "+r"(place));
        const std::uint32_t from = shared + at * row_bytes;
        const std::uint32_t half[2] = {from + (place ^ (step * 64)), from + (place ^ (step * 64 + 32))};
        arch::load_one(fragment[0], half[0]);
        arch::load_one(fragment[of_rows ? 2 : 1], half[1]);
        arch::load_one(fragment[of_rows ? 1 : 2], half[0] + 8 * row_bytes);
        arch::load_one(fragment[3], half[1] + 8 * row_bytes);
      } else if constexpr (by_lines)
        arch::load_matrix<true>(fragment,
                                shared + (place_ ^ (at % panel / 8 * 16)) + (at / panel * panel + step * 16) * row_bytes);
      else
        arch::load_matrix<false>(fragment, shared + (place_ ^ (step * 32)) + at * row_bytes);
    }

   private:
    int place_;
  };
};

}  // namespace rigel::tile
