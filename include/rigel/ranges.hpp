// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranges: which pairs of rows and columns a reduction takes, as intervals of both. KeOps calls it block sparsity
// (kernel-operations.io, "Block-sparse reductions").
#pragma once

#include <rigel/detail/call.hpp>
#include <rigel/detail/capture.hpp>
#include <rigel/detail/range_table.hpp>
#include <rigel/error.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace rigel {

namespace detail {

template <class View>
inline constexpr bool is_host_integers =
    Kokkos::is_view_v<View> && std::is_integral_v<typename View::non_const_value_type> &&
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename View::memory_space>::accessible;

/// The ordinal of the GPU that an instance runs on; -1: the host.
template <class Exec>
int gpu_of([[maybe_unused]] const Exec& exec) {
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (std::is_same_v<Exec, Kokkos::Cuda>) return exec.cuda_device();
#endif
  return -1;
}

/// A table of ranges, and the ordinal of the GPU that has its copy; -1: the host.
struct PlacedRanges : RangeTable {
  int device;
  PlacedRanges(RangeTable table, int device) : RangeTable(std::move(table)), device(device) {}
};

/// A table with its copy in a memory space.
template <class Memory>
struct RangesIn : PlacedRanges {
  Kokkos::View<RowInterval*, Memory> part_rows_view;
  Kokkos::View<ColumnInterval*, Memory> columns_view;

  template <class Exec>
  RangesIn(const Exec& exec, RangeTable table)
      : PlacedRanges(std::move(table), gpu_of(exec)),
        part_rows_view(Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "rigel::Ranges/rows"), this->part_count),
        columns_view(Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "rigel::Ranges/columns"), this->columns.size()) {
    const std::vector<RowInterval> of_rows = parts_of(*this);
    copy(exec, part_rows_view, of_rows);
    copy(exec, columns_view, this->columns);
    exec.fence("rigel::Ranges");
    this->memory = Memory::name();
    this->parts = part_rows_view.data();
    this->part_columns = columns_view.data();
  }

 private:
  template <class Exec, class View, class T>
  static void copy(const Exec& exec, const View& to, const std::vector<T>& from) {
    Kokkos::deep_copy(exec, to,
                      Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(from.data(), from.size()));
  }
};

}  // namespace detail

/// Which scores (m, n) of M × N a reduction takes: for each of some intervals of rows, the intervals of columns that they meet. All other
/// pairs add nothing: the result is that of the reducer's identity, not of a score of 0.
///
///     score (m, n) is taken  ⇔  rows(r,0) ≤ m < rows(r,1) and columns(i,0) ≤ n < columns(i,1) for some r and slices(r−1) ≤ i < slices(r)
///
/// with slices(−1) = 0. These are KeOps's ranges_i, slices_i and redranges_j. A copy of the object shares what it has.
class Ranges {
 public:
  /// All pairs.
  Ranges() = default;

  /// exec      where reductions will run: the ranges are copied to its memory, and the call waits for that
  /// m, n      the extents of the scores
  /// rows      R × 2 integers: from rows(r,0) to before rows(r,1)
  /// slices    R integers, ascending: where the list of each row interval ends in columns; the last one is P
  /// columns   P × 2 integers
  /// All three are views that the host can read, and are read before this returns. Intervals may be in any order and of length 0; those of
  /// rows do not overlap, and neither do the columns of one row interval. They lie within 0 … M and 0 … N. Rows in no interval are those without
  /// a score.
  ///
  /// Calls take them on the device of `exec`, on any stream.
  /// The object owns the copies: keep it until the work of calls that take it is complete, and as long as a captured graph of them is
  /// replayed. It costs time and memory in proportion to R + P and M / 512. Throws Error(invalid_argument) otherwise.
  /// Calls that take it can be captured; but it is made, and its last copy destroyed, while nothing is, because both wait.
  template <class Exec, class Rows, class Slices, class Columns>
  Ranges(const Exec& exec, std::int64_t m, std::int64_t n, const Rows& rows, const Slices& slices, const Columns& columns)
      : Ranges(exec, detail::table_of(m, n, pairs_of(rows, "rows"), numbers_of(slices), pairs_of(columns, "columns"))) {}
  template <class Exec>
  Ranges(const Exec& exec, detail::RangeTable table) {
    // A graph would copy at each replay from what is gone by then.
    detail::require_no_capture(detail::execution_of(exec), "Ranges", "ranges that were made before");
    table_ = std::make_shared<const detail::RangesIn<typename Exec::memory_space>>(exec, std::move(table));
  }

  /// Whether it has intervals: false of a default object, which stands for all pairs.
  explicit operator bool() const { return table_ != nullptr; }
  /// The number of pairs in ranges; of a default object −1, which stands for all.
  std::int64_t pairs() const { return table_ ? table_->pairs : -1; }
  const detail::PlacedRanges* table() const { return table_.get(); }

 private:
  template <class View>
  static std::vector<detail::GivenInterval> pairs_of(const View& view, const char* argument) {
    static_assert(detail::is_host_integers<View> && View::rank() == 2,
                  "Ranges: rows and columns are views of rank 2 of integers that the host can read");
    if (view.extent(0) > 0 && view.extent(1) != 2)
      throw Error(Code::invalid_argument, std::string("Ranges: ") + argument + " '" + view.label() + "' is " +
                                              std::to_string(view.extent(0)) + 'x' + std::to_string(view.extent(1)) +
                                              ", expected two columns: first and end of each interval");
    std::vector<detail::GivenInterval> list(view.extent(0));
    for (std::size_t i = 0; i < list.size(); ++i)
      list[i] = {static_cast<std::int64_t>(view(i, 0)), static_cast<std::int64_t>(view(i, 1))};
    return list;
  }
  template <class View>
  static std::vector<std::int64_t> numbers_of(const View& view) {
    static_assert(detail::is_host_integers<View> && View::rank() == 1,
                  "Ranges: slices are a view of rank 1 of integers that the host can read");
    std::vector<std::int64_t> list(view.extent(0));
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = static_cast<std::int64_t>(view(i));
    return list;
  }

  std::shared_ptr<const detail::PlacedRanges> table_;
};

namespace detail {

/// The ranges of a call on an instance of an execution space, which is on the GPU `device`, or -1; null: all pairs.
template <class Exec>
const RangeTable* ranges_on(const Ranges& ranges, int device, const char* function) {
  const PlacedRanges* const table = ranges.table();
  if (table && table->memory != Exec::memory_space::name())
    throw Error(Code::invalid_argument, std::string(function) + ": options.ranges are in memory of " +
                                            std::string(table->memory) + ", expected " + Exec::memory_space::name() +
                                            ", that of the execution space");
  if (table && table->device != device)
    throw Error(Code::invalid_argument, std::string(function) + ": options.ranges are on GPU " +
                                            std::to_string(table->device) + ", expected GPU " + std::to_string(device) +
                                            ", that of the execution space");
  return table;
}

}  // namespace detail

}  // namespace rigel
