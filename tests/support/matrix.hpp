// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small matrices with given elements, and the elements of a view after a call.
#pragma once

#include "memory.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace support {

template <class T, class Exec>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space>;
template <class T, class Exec>
using Batch = Kokkos::View<T***, Kokkos::LayoutRight, typename Exec::memory_space>;

// Converts a double to T and back: 16-bit floats through float, integers modulo their range.
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
  using T = typename View::non_const_value_type;
  const std::unique_ptr<T[]> host(new T[v.size()]());  // a vector of bools is no array
  for (std::size_t i = 0; i < values.size(); ++i) host[i] = number<T>(values[i]);
  if (v.size() > 0) copy_in<typename View::execution_space>(v.data(), host.get(), v.size() * sizeof(T));
}

/// A matrix of rows × columns, filled row by row.
template <class T, class Exec>
Matrix<T, Exec> matrix(int rows, int columns, const std::vector<double>& values = {}, const std::string& label = "matrix") {
  const Matrix<T, Exec> m(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), rows, columns);
  fill(m, values);
  return m;
}

/// A batch of matrices, batches × rows × columns, filled in this order.
template <class T, class Exec>
Batch<T, Exec> batch(int batches, int rows, int columns, const std::vector<double>& values = {},
                     const std::string& label = "batch") {
  const Batch<T, Exec> m(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), batches, rows, columns);
  fill(m, values);
  return m;
}

/// All elements of a contiguous view in the order of its memory, as doubles (exact but for 64-bit integers above 2^53). It
/// waits for all work first.
template <class View>
std::vector<double> values(const View& v) {
  using T = typename View::non_const_value_type;
  const std::unique_ptr<T[]> host(new T[v.size()]());
  if (v.size() > 0) copy_out<typename View::execution_space>(host.get(), v.data(), v.size() * sizeof(T));
  std::vector<double> list;
  for (std::size_t i = 0; i < v.size(); ++i) list.push_back(to_double(host[i]));
  return list;
}

}  // namespace support
