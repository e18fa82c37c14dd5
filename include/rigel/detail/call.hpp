// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What calls of several launches share, closure(), transitive_closure() and cdist() of prepared rows: matrices by pointer and
// strides, and memory.
#pragma once

#include <rigel/contract.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/detail/pool.hpp>

#include <string>

namespace rigel::detail {

template <class Exec>
inline constexpr bool runs_on_host = Kokkos::SpaceAccessibility<Exec, Kokkos::HostSpace>::accessible;

template <class T>
Strided<T> strided_in(const Operand& o) {
  return {static_cast<T*>(o.data), o.batch_stride, o.row_stride, o.column_stride};
}

/// "3x64x64", or without batches "64x64".
inline std::string extents(const Operand& o) {
  return (o.batches != 1 ? std::to_string(o.batches) + 'x' : "") + std::to_string(o.rows) + 'x' + std::to_string(o.columns);
}
inline std::string describe(const Operand& o) { return "'" + o.label + "' is " + extents(o); }

/// A batch of matrices as contract() takes it, its batch index where `batch` says.
template <class Exec, class T>
auto batch_of(const Strided<T>& m, std::int64_t batches, std::int64_t rows, std::int64_t columns,
              Batch batch = Batch::first) {
  using Traits = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  const auto layout = [](auto... n) { return Kokkos::LayoutStride(static_cast<std::size_t>(n)...); };
  return Kokkos::View<T***, Kokkos::LayoutStride, typename Exec::memory_space, Traits>(
      m.data, batch == Batch::first ? layout(batches, m.batch, rows, m.row, columns, m.column)
                                    : layout(rows, m.row, columns, m.column, batches, m.batch));
}

/// The memory of one call: the caller's, or for as long as this object lives the pool's. It is taken before the first launch,
/// and only where there can be one.
class CallMemory {
 public:
  CallMemory(const char* call, const Execution& execution, Workspace given, std::size_t bytes) : data_(given.data) {
    require_launch(call, execution);
    if (data_ && bytes > 0 && reinterpret_cast<std::uintptr_t>(data_) % 256 != 0)
      throw Error(Code::invalid_argument, std::string(call) + ": the workspace is not aligned to 256 bytes");
    if (data_ && given.bytes < bytes)
      throw Error(Code::invalid_argument, std::string(call) + ": the workspace has " + std::to_string(given.bytes) +
                                              " bytes, expected " + std::to_string(bytes));
    if (data_) return;
    pooled_ = lease(call, execution, bytes);
    data_ = pooled_.data();
  }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(data_); }

 private:
  PoolLease pooled_;
  void* data_;
};

}  // namespace rigel::detail
