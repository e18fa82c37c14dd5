// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs of row and column intervals, checked and put in order.
#include <rigel/detail/range_table.hpp>
#include <rigel/error.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace rigel::detail {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(Code::invalid_argument, "Ranges: " + message); }

std::string words(const char* argument, std::size_t at, const GivenInterval& i) {
  return std::string(argument) + '[' + std::to_string(at) + "] from " + std::to_string(i.first) + " to " +
         std::to_string(i.end);
}

/// An interval, and its place among those that were given.
struct Placed {
  GivenInterval interval;
  std::size_t at;
};

/// Those of `given` from `begin` to `end` that are not empty, in ascending order; they lie within an extent and do not overlap.
std::vector<Placed> in_order(const std::vector<GivenInterval>& given, std::size_t begin, std::size_t end,
                             std::int64_t extent, const char* argument, const std::string& where) {
  std::vector<Placed> list;
  for (std::size_t i = begin; i < end; ++i) {
    const GivenInterval& own = given[i];
    if (own.first < 0 || own.first > own.end || own.end > extent)
      refuse(words(argument, i, own) + ", expected 0 <= first <= end <= " + std::to_string(extent));
    if (own.first < own.end) list.push_back({own, i});
  }
  std::sort(list.begin(), list.end(), [](const Placed& x, const Placed& y) { return x.interval.first < y.interval.first; });
  for (std::size_t i = 1; i < list.size(); ++i)
    if (list[i].interval.first < list[i - 1].interval.end)
      refuse(words(argument, list[i].at, list[i].interval) + " overlaps " +
             words(argument, list[i - 1].at, list[i - 1].interval) + where);
  return list;
}

void check_slices(const std::vector<GivenInterval>& rows, const std::vector<std::int64_t>& slices,
                  const std::vector<GivenInterval>& columns) {
  if (slices.size() != rows.size())
    refuse("slices has " + std::to_string(slices.size()) + " numbers, expected " + std::to_string(rows.size()) +
           ", one for each of rows");
  std::int64_t before = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i] < before)
      refuse("slices[" + std::to_string(i) + "] is " + std::to_string(slices[i]) + ", expected at least " +
             std::to_string(before) + ": they ascend");
    before = slices[i];
  }
  if (before != static_cast<std::int64_t>(columns.size()))
    refuse("slices ends with " + std::to_string(before) + ", expected " + std::to_string(columns.size()) +
           ", the number of intervals in columns");
}

}  // namespace

std::vector<RowInterval> parts_of(const RangeTable& table) {
  std::vector<RowInterval> parts;
  for (const RowInterval& rows : table.rows)
    for (std::int64_t first = rows.first; first < rows.end; first += RangeTable::part_rows)
      parts.push_back({first, std::min(first + RangeTable::part_rows, rows.end), rows.list, rows.list_end, rows.columns});
  return parts;
}

namespace {

void count_parts(RangeTable& table) {
  for (const RowInterval& part : parts_of(table)) {
    ++table.part_count;
    table.part_pairs += part.columns;
  }
}

}  // namespace

RangeTable table_of(std::int64_t m, std::int64_t n, const std::vector<GivenInterval>& rows,
                    const std::vector<std::int64_t>& slices, const std::vector<GivenInterval>& columns) {
  if (m < 0 || n < 0)
    refuse("the scores are " + std::to_string(m) + 'x' + std::to_string(n) + ", expected extents from 0 on");
  if (n > std::numeric_limits<std::int64_t>::max() / std::max(m, RangeTable::nominal_rows))
    refuse("the scores are " + std::to_string(m) + 'x' + std::to_string(n) + ", expected fewer than 2^63");
  check_slices(rows, slices, columns);
  if (columns.size() > std::size_t{std::numeric_limits<std::int32_t>::max()} || rows.size() >= (std::size_t{1} << 30))
    refuse("there are " + std::to_string(columns.size()) + " column intervals of " + std::to_string(rows.size()) +
           " row intervals, expected fewer than 2^31 and 2^30");
  // Lists are checked whether or not their rows are empty.
  struct List {
    std::int64_t first, end, columns;
  };
  std::vector<List> lists(rows.size());
  RangeTable table;
  table.m = m;
  table.n = n;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto begin = static_cast<std::size_t>(r == 0 ? 0 : slices[r - 1]), end = static_cast<std::size_t>(slices[r]);
    lists[r] = {static_cast<std::int64_t>(table.columns.size()), 0, 0};
    for (const Placed& own : in_order(columns, begin, end, n, "columns", ", of the same rows")) {
      table.columns.push_back({own.interval.first, own.interval.end, lists[r].columns});
      lists[r].columns += own.interval.end - own.interval.first;
    }
    lists[r].end = static_cast<std::int64_t>(table.columns.size());
  }
  std::int64_t next = 0;
  const auto add = [&](std::int64_t end, const List& list) {
    if (end > next) table.rows.push_back({next, end, list.first, list.end, list.columns});
    next = end;
  };
  for (const Placed& own : in_order(rows, 0, rows.size(), m, "rows", "")) {
    add(own.interval.first, {0, 0, 0});
    add(own.interval.end, lists[own.at]);
    table.pairs += (own.interval.end - own.interval.first) * lists[own.at].columns;
    table.most_columns = std::max(table.most_columns, lists[own.at].columns);
  }
  add(m, {0, 0, 0});
  count_parts(table);
  RangeTable nominal;
  nominal.m = RangeTable::nominal_rows;
  nominal.n = n;
  nominal.pairs = nominal.m * n;
  nominal.most_columns = n;
  nominal.rows = {{0, nominal.m, 0, n > 0 ? 1 : 0, n}};
  if (n > 0) nominal.columns = {{0, n, 0}};
  count_parts(nominal);
  table.nominal = std::make_shared<const RangeTable>(std::move(nominal));
  return table;
}

}  // namespace rigel::detail
