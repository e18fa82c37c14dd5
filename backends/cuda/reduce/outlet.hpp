// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What becomes of a row of scores whose tiles one block computes after the other, in place of a store. An outlet has
//
//     begin(block)        before the first tile
//     take(block, part)   some scores of one row, for each thread: tiles in ascending order of columns, and in a tile a row's columns, too
//     end(block, …)       after the last one: results, or what a later launch joins to those of other slices of the columns
//
// A thread always takes the same columns of a row, modulo how many threads share the row. `Block` is a block of threads: that of a GPU,
// or one that a test emulates.
//
//   extrema.hpp   minimum and maximum: the best of each thread, joined at the end; count_below, likewise
//   lanes.hpp     sum and log_sum_exp: the lanes of detail::lanes in shared memory, in the reference's order
//   lists.hpp     smallest and largest: scores that precede a row's k-th are gathered in shared memory. When a row's place is full, warps
//                 merge what has been gathered with the rows' sorted lists in global memory
#pragma once

#include <rigel/detail/reduction.hpp>

#include <cstddef>
#include <cstdint>

namespace rigel::backends::reduce {

/// One launch of a call. Its units are tiles of rows, of all matrices, and the columns of each are cut into slices.
template <class T>
struct Launch {
  detail::ReducedOutputs outputs;
  detail::Below<T> below;
  Reducer reducer;
  bool exclude_self;
  std::int32_t count;          // results of a row
  std::int32_t slices;         // of the columns,
  std::int32_t slice_tiles;    // of so many tiles each; the last one may have fewer
  std::int64_t rows;           // of a matrix,
  std::uint32_t row_tiles;     // in so many tiles
  std::uint32_t first, units;  // of this launch
  std::byte* states;           // of slices: results of each unit's rows, slice by slice; of Best always
};

/// Scores of one row of a tile that a thread takes: `count` of at most `most` in shared memory, every `apart`-th. Their columns in the matrix
/// are n, n + step, …; `self` is the one that is left out, or −1.
template <class T, int most>
struct Part {
  const T* first;
  int apart, count;
  int group, row;  // number among the thread's rows, and in the tile
  std::int32_t n, step;
  std::int64_t self;

  RIGEL_MEMBER T operator()(int i) const { return first[i * apart]; }
  RIGEL_MEMBER bool is_self(int i) const { return n + i * step == self; }
  /// Whether is(score) holds for any score, without a branch for each.
  template <class Is>
  RIGEL_MEMBER bool any(const Is& is) const {
    bool found = false;
    if (count == most) {
#pragma unroll
      for (int i = 0; i < most; ++i) found |= is((*this)(i));
    } else {
#pragma unroll 1
      for (int i = 0; i < count; ++i) found |= is((*this)(i));
    }
    return found;
  }
};

/// Whether a reducer has an outlet.
constexpr bool has_outlet(Reducer r) {
  switch (r) {
    case Reducer::minimum:
    case Reducer::maximum:
    case Reducer::smallest:
    case Reducer::largest:
    case Reducer::sum:
    case Reducer::log_sum_exp:
    case Reducer::count_below: return true;
    default: return false;
  }
}

/// The block's rows in the outputs: matrix l, from row m on, `rows` of them; and in the states of this slice.
struct Rows {
  std::int64_t l, m;
  int rows;
  std::int64_t state;  // number of the first row's, among those of all slices
};

}  // namespace rigel::backends::reduce
