// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices of any layout, and their elements on the host.
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace support {

/// A matrix of rows × columns in a layout. LayoutStride: every second row and every third column of a larger matrix.
template <class T, class Exec, class Layout = Kokkos::LayoutRight>
auto laid_out(std::int64_t rows, std::int64_t columns) {
  using Space = typename Exec::memory_space;
  if constexpr (std::is_same_v<Layout, Kokkos::LayoutStride>)
    return Kokkos::subview(Kokkos::View<T****, Kokkos::LayoutRight, Space>("larger", rows, 2, columns, 3), Kokkos::ALL, 1,
                           Kokkos::ALL, 2);
  else
    return Kokkos::View<T**, Layout, Space>("laid out", rows, columns);
}

/// Copies elements, row by row, to a matrix and back. They go through a contiguous matrix in the same memory space, since
/// copies between spaces do not take every layout.
template <class View, class T>
void upload(const View& d, const std::vector<T>& values) {
  const Kokkos::View<const T**, Kokkos::LayoutRight, Kokkos::HostSpace> host(values.data(), d.extent(0), d.extent(1));
  const Kokkos::View<T**, Kokkos::LayoutRight, typename View::memory_space> same("upload", d.extent(0), d.extent(1));
  Kokkos::deep_copy(same, host);
  Kokkos::deep_copy(d, same);
}
template <class View>
auto download(const View& d) {
  using T = typename View::non_const_value_type;
  const Kokkos::View<T**, Kokkos::LayoutRight, typename View::memory_space> same("download", d.extent(0), d.extent(1));
  Kokkos::deep_copy(same, d);
  std::vector<T> values(d.extent(0) * d.extent(1));
  Kokkos::deep_copy(Kokkos::View<T**, Kokkos::LayoutRight, Kokkos::HostSpace>(values.data(), d.extent(0), d.extent(1)),
                    same);
  return values;
}

}  // namespace support
