// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batches of matrices in any layout, and their elements as doubles on the host.
#pragma once

#include "matrix.hpp"
#include "random.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace support {

using Numbers = std::vector<double>;  // row by row

/// The unit roundoff.
template <class T>
inline constexpr double unit = std::numeric_limits<T>::epsilon() / 2;

/// A batch of matrices in a layout. LayoutStride: every second row and third column of larger ones.
template <class T, class Exec, class Layout = Kokkos::LayoutRight>
auto batch_of(int batches, int rows, int columns) {
  using Space = typename Exec::memory_space;
  if constexpr (std::is_same_v<Layout, Kokkos::LayoutStride>)
    return Kokkos::subview(Kokkos::View<T*****, Kokkos::LayoutRight, Space>("larger", batches, rows, 2, columns, 3),
                           Kokkos::ALL, Kokkos::ALL, 1, Kokkos::ALL, 2);
  else
    return Kokkos::View<T***, Layout, Space>("batch", batches, rows, columns);
}

/// A contiguous view of the same extents, of rank 1 to 4, in the same memory.
template <class View>
auto contiguous(const View& v) {
  using Same = Kokkos::View<typename View::non_const_data_type, Kokkos::LayoutRight, typename View::memory_space>;
  if constexpr (View::rank() == 1)
    return Same("contiguous", v.extent(0));
  else if constexpr (View::rank() == 2)
    return Same("contiguous", v.extent(0), v.extent(1));
  else if constexpr (View::rank() == 3)
    return Same("contiguous", v.extent(0), v.extent(1), v.extent(2));
  else
    return Same("contiguous", v.extent(0), v.extent(1), v.extent(2), v.extent(3));
}
/// Copies elements to such a view, and back.
template <class View>
void put(const View& v, const Numbers& values) {
  const auto same = contiguous(v);
  const auto host = Kokkos::create_mirror_view(same);
  for (std::size_t i = 0; i < values.size(); ++i) host.data()[i] = number<typename View::non_const_value_type>(values[i]);
  Kokkos::deep_copy(same, host);
  Kokkos::deep_copy(v, same);
}
template <class View>
Numbers get(const View& v) {
  const auto same = contiguous(v);
  Kokkos::deep_copy(same, v);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, same);
  Numbers values;
  for (std::size_t i = 0; i < host.size(); ++i) values.push_back(static_cast<double>(host.data()[i]));
  return values;
}

/// Random numbers in [−1, 1] that T holds exactly.
template <class T>
Numbers random_numbers(Random& random, std::int64_t count) {
  Numbers values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(number<T>(random.uniform(-1, 1))));
  return values;
}

}  // namespace support
