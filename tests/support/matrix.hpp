// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small matrices written out in a test, and what a view holds after a call.
#pragma once

#include "memory.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace support {

template <class T, class Exec>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space>;
template <class T, class Exec>
using Batch = Kokkos::View<T***, Kokkos::LayoutRight, typename Exec::memory_space>;

// T from a double and back: the 16-bit floats by way of float, integers modulo their range.
template <class T>
T number(double v) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::int64_t>(v));
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(v);
  else
    return T(static_cast<float>(v));
}
template <class T>
double to_double(T v) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(v);
  else
    return static_cast<float>(v);
}

/// Fills a contiguous view in the order of its memory; missing values become 0.
template <class View>
void fill(const View& v, const std::vector<double>& values) {
  std::vector<typename View::non_const_value_type> host(v.size());
  for (std::size_t i = 0; i < values.size(); ++i) host[i] = number<typename View::non_const_value_type>(values[i]);
  if (!host.empty()) copy_in<typename View::execution_space>(v.data(), host.data(), host.size() * sizeof host[0]);
}

/// rows × columns, filled row by row.
template <class T, class Exec>
Matrix<T, Exec> matrix(int rows, int columns, const std::vector<double>& values = {}, const std::string& label = "matrix") {
  const Matrix<T, Exec> m(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), rows, columns);
  fill(m, values);
  return m;
}

/// batches × rows × columns, filled in this order.
template <class T, class Exec>
Batch<T, Exec> batch(int batches, int rows, int columns, const std::vector<double>& values = {},
                     const std::string& label = "batch") {
  const Batch<T, Exec> m(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), batches, rows, columns);
  fill(m, values);
  return m;
}

/// All elements of a contiguous view in the order of its memory, as doubles (exact but for 64-bit integers above 2^53),
/// after all work has ended.
template <class View>
std::vector<double> values(const View& v) {
  std::vector<typename View::non_const_value_type> host(v.size());
  if (!host.empty()) copy_out<typename View::execution_space>(host.data(), v.data(), host.size() * sizeof host[0]);
  std::vector<double> list;
  for (const auto x : host) list.push_back(to_double(x));
  return list;
}

}  // namespace support
