// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small matrices written out in a test, and what a view holds after a call.
#pragma once

#include <Kokkos_Core.hpp>

#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

namespace support {

template <class T, class Exec>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space>;
template <class T, class Exec>
using Batch = Kokkos::View<T***, Kokkos::LayoutRight, typename Exec::memory_space>;

// T from a double: the 16-bit floats by way of float.
template <class T>
T number(double v) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(v);
  else return T(static_cast<float>(v));
}

/// rows × columns, filled row by row; missing values stay 0.
template <class T, class Exec>
Matrix<T, Exec> matrix(int rows, int columns, const std::vector<double>& values = {}, const std::string& label = "matrix") {
  Matrix<T, Exec> m(label, rows, columns);
  const auto host = Kokkos::create_mirror_view(m);
  for (std::size_t i = 0; i < values.size(); ++i) host.data()[i] = number<T>(values[i]);
  Kokkos::deep_copy(m, host);
  return m;
}

/// batches × rows × columns, filled in this order.
template <class T, class Exec>
Batch<T, Exec> batch(int batches, int rows, int columns, const std::vector<double>& values = {},
                     const std::string& label = "batch") {
  Batch<T, Exec> m(label, batches, rows, columns);
  const auto host = Kokkos::create_mirror_view(m);
  for (std::size_t i = 0; i < values.size(); ++i) host.data()[i] = number<T>(values[i]);
  Kokkos::deep_copy(m, host);
  return m;
}

/// All elements of a contiguous view in the order of its memory, as doubles (exact but for 64-bit integers above 2^53),
/// after all work has ended.
template <class View>
std::vector<double> values(const View& v) {
  Kokkos::fence();
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, v);
  std::vector<double> list(v.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    if constexpr (std::is_arithmetic_v<typename View::non_const_value_type>) list[i] = static_cast<double>(host.data()[i]);
    else list[i] = static_cast<float>(host.data()[i]);
  }
  return list;
}

}  // namespace support
