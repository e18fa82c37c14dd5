// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slabs for tensor cores: `lines` lines (rows of A, columns of B) of 128 bytes of k in shared memory, as rows of 128 bytes
// whose pieces of 16 are permuted by the row (piece p of row r at p ^ permutation(r)), so that neither copies nor reads of
// fragments meet in a bank. Where k is contiguous in the operand a row is a line: ldmatrix takes eight rows at a time, and of
// doubles, which a warp reads one by one, two pieces of eight rows are taken. Where lines are contiguous a row is one k of
// 64 neighbouring lines, which ldmatrix transposes, or, of larger numbers, as many k of 16 lines as fill it: a warp reads them
// one by one, four k of eight lines (of four doubles). Bytes have to lie along k. Numbers that come in several planes, of 16 bits
// each, have rows of 64 bytes, plane by plane; in the operand the planes of a line take turns, as many values of k each as a row has.
#pragma once

#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/backends/cuda/arch/mma.hpp>

#include <algorithm>
#include <cstdint>

namespace rigel::tile {

enum class Direction : std::uint8_t { along_k, along_lines };

template <class Element, Direction direction, int lines, int threads, int planes = 1>
class MatrixSlab {
  static constexpr int size = static_cast<int>(sizeof(Element)), width = 16 / size;  // of a piece, in elements
  static constexpr int row_bytes = planes == 1 ? 128 : 64, pieces = row_bytes / 16;
  static constexpr int rows_apart = threads / pieces, each = lines / rows_apart;
  static constexpr bool by_lines = direction == Direction::along_lines, one_by_one = by_lines && size > 2;
  static constexpr int panel = size == 2 ? 64 : 16, panels = lines / panel;  // lines whose k make up rows
  static_assert(lines % rows_apart == 0 && rows_apart % 8 == 0);
  static_assert(planes == 1 || (!by_lines && size == 2));
  static_assert(!by_lines ||
                (size > 1 && lines % panel == 0 && (one_by_one ? rows_apart % panel : panel % rows_apart) == 0));

 public:
  static constexpr int depth = row_bytes / size;                                          // values of k
  static constexpr int plane_bytes = lines * row_bytes, bytes = planes * plane_bytes;     // of shared memory
  static constexpr int step_bytes = size == 8 ? 64 : 32, steps = row_bytes / step_bytes;  // of mma
  using Register = std::conditional_t<size == 8, double, std::uint32_t>;

  static constexpr int copies = planes * each;  // of a thread and slab
  __device__ __forceinline__ static int permutation(int row) {
    if (planes > 1) return row / 2 % 4;
    if (size == 8) return row % 4 * 2;
    return one_by_one ? row % 2 * 2 : row % 8;
  }

  /// One thread's share of copying slab after slab of a matrix, 16 bytes at a time.
  class Source {
   public:
    /// `first`: the matrix's element at the tile's first line, k = 0; `stride`: between lines, or between values of k.
    __device__ __forceinline__ Source(const Element* first, std::int64_t stride, std::int64_t lines_left)
        : from_(first + (by_lines ? k() : line()) * stride + (by_lines ? line() : k())),
          present_(static_cast<int>(std::min<std::int64_t>(lines_left, lines)) - line()) {}

    /// Starts copy `e` of a slab to `shared`, of which `left` values of k exist, or more; e = 0, 1, … in turn. What does not exist
    /// becomes zeros.
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
    // Where its first copy of a slab comes from.
    __device__ __forceinline__ static int line() {
      return one_by_one ? row() / panel * panel + piece() % size * width : by_lines ? piece() * width : row();
    }
    __device__ __forceinline__ static int k() {
      return one_by_one ? row() % panel * (8 / size) + piece() / size : by_lines ? row() : piece() * width;
    }

    const Element* from_;
    int present_;  // lines from this thread's first one on
  };

  /// What a warp's lane reads: fragments of 16 lines × a step of k, from line `first` on. Four registers: those of lines 0–7 and 8–15
  /// for the first half of k, then for the other (`rows`, as mma takes A); or those of both for lines 0–7, then for 8–15
  /// (`columns`: twice what it takes of B).
  enum class Order : std::uint8_t { rows, columns };
  template <Order order>
  class Reader {
   public:
    __device__ __forceinline__ Reader(int first, int lane) {
      const int quarter = lane / 8, bit[2] = {quarter % 2, quarter / 2};
      const int upper_lines = bit[order == Order::columns], upper_k = bit[order == Order::rows];
      if constexpr (one_by_one) {
        const int k = lane % 4, row = k * size / 8;  // of a half's first number, of both numbers of a half
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

    /// The fragment `at` lines on, a multiple of 16, in a step of k.
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
        // Found anew each time, so that four places of either operand take one register.
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
