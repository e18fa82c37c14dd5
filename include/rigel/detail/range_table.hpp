// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranges of a reduction as its kernels see them: which columns each row meets. No Kokkos here.
#pragma once

#include <rigel/numeric.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace rigel::detail {

/// Columns first … end − 1 of a list of intervals, of which `before` columns come earlier in the list.
struct ColumnInterval {
  std::int64_t first, end, before;
};
/// Rows first … end − 1. They meet the columns of intervals list … list_end − 1, which ascend and do not overlap: `columns` together.
struct RowInterval {
  std::int64_t first, end, list, list_end, columns;
};

/// The columns that rows meet, on the host and in memory of the execution space. Rows are in ascending order without gaps: rows in no range
/// are intervals that meet no columns.
struct RangeTable {
  /// The rows of a part at most, and those of nominal problems (Contraction::nominal()).
  static constexpr std::int64_t part_rows = 512, nominal_rows = 1024;

  std::int64_t m = 0, n = 0;      // extents of the scores
  std::int64_t pairs = 0;         // in ranges
  std::int64_t most_columns = 0;  // of a row
  std::int64_t part_pairs = 0;    // in ranges, if each part had one row
  std::vector<RowInterval> rows;
  std::vector<ColumnInterval> columns;

  std::shared_ptr<const RangeTable> nominal;  // of nominal_rows rows that meet all columns

  // In memory of the execution space, whose name is `memory`: rows in parts of at most part_rows, and the columns.
  std::string_view memory;
  std::int64_t part_count = 0;
  const RowInterval* parts = nullptr;
  const ColumnInterval* part_columns = nullptr;
};

/// An interval as the user gives it: first … end − 1.
struct GivenInterval {
  std::int64_t first, end;
};
/// The table of row intervals, of which number r meets the column intervals slices[r − 1] (0 for the first) … slices[r] − 1. Nothing of it is in
/// memory of an execution space. Throws Error(invalid_argument) unless intervals lie within M and N, and neither rows nor the columns of
/// one row interval overlap.
RangeTable table_of(std::int64_t m, std::int64_t n, const std::vector<GivenInterval>& rows,
                    const std::vector<std::int64_t>& slices, const std::vector<GivenInterval>& columns);
/// The rows in parts of at most part_rows.
std::vector<RowInterval> parts_of(const RangeTable& table);

/// The rows among which row m is, of a list in ascending order without gaps.
RIGEL_FUNCTION const RowInterval& interval_of_row(const RowInterval* rows, std::int64_t count, std::int64_t m) {
  std::int64_t begin = 0, end = count;
  while (end - begin > 1) {
    const std::int64_t middle = (begin + end) / 2;
    if (rows[middle].first <= m)
      begin = middle;
    else
      end = middle;
  }
  return rows[begin];
}

/// The interval that has column number `position` of a list, which is not beyond it, from interval `begin` on to before `end`.
RIGEL_FUNCTION std::int64_t interval_at(const ColumnInterval* columns, std::int64_t begin, std::int64_t end,
                                        std::int64_t position) {
  while (end - begin > 1) {
    const std::int64_t middle = (begin + end) / 2;
    if (columns[middle].before <= position)
      begin = middle;
    else
      end = middle;
  }
  return begin;
}

}  // namespace rigel::detail
