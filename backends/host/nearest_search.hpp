// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on hosts: what the loops of all levels and their launch share. No Kokkos here.
#pragma once

#include <rigel/backends/host/level.hpp>
#include <rigel/backends/host/nearest_bound.hpp>
#include <rigel/detail/reduction.hpp>

namespace rigel::backends::host::nearest {

/// The shapes of a compiled loop: a block of scores.
struct Geometry {
  int rows, columns;
};

/// What a row knows of its search.
struct Row {
  double square;        // |x'|²
  std::int64_t looked;  // columns that were computed by subtraction
  int waiting;          // columns that are listed
  bool plain;           // searched by subtraction alone
};

/// A call as the loops see it. Rows are cut into groups, of which each keeps its state while parts of the columns pass, and groups into
/// blocks, which are the items of workers.
struct Search {
  const void *x, *z;
  detail::Strided<char> of_x, of_z;  // strides: row is a point's, column that of its numbers
  std::int64_t m, n;
  int k, count;  // numbers of a row, results of a row
  bool minimum, root, exclude_self;
  detail::ReducedOutputs outputs;

  const double* centre;
  double scale;
  // The present part of the columns: panels of Geometry::columns of them, each with what scores begin with, and then z' for each k.
  float* panels;
  std::int64_t first_column, columns;
  std::int32_t* special;  // those that the filter does not take
  std::int64_t specials;
  bool is_first, is_last;
  // The present group of rows.
  std::int64_t first_row, rows;
  int block_rows;
  // States of its rows: scores up to `limits` are listed, at most `capacity` of them, and `best` are heaps of the exact results.
  int capacity;
  float* limits;
  Row* states;
  float* scores;
  std::int32_t* places;
  void* best;

  RIGEL_MEMBER std::int64_t panel_floats(int width) const { return std::int64_t{k + 1} * width; }
};

struct Loop {
  /// Packs a panel of the present part.
  void (*pack)(const Search& g, std::int64_t panel);
  /// Searches the present part for a block of the group, with scratch_bytes() of memory.
  void (*search)(const Search& g, std::int64_t block, void* scratch);
  Geometry geometry;
};
/// Rows that are searched by subtraction at a time.
inline constexpr int most_plain = 64;

/// Scratch bytes of a worker for so many rows of a block.
inline std::size_t scratch_bytes(std::int64_t block_rows, std::int64_t k) {
  constexpr std::int64_t lines = most_plain + 32;  // those of rows and columns that are searched by subtraction
  return static_cast<std::size_t>((block_rows + lines) * k) * sizeof(double);
}

/// The number that chains are computed in.
template <class Element>
using chain_t = std::conditional_t<std::is_same_v<Element, double>, double, float>;

/// The loop of an element's type at a level, which nearest.cpp.in defines.
template <class Level, class Element>
const Loop& compiled_loop();

}  // namespace rigel::backends::host::nearest
