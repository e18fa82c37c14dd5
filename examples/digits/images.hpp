// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The digits as matrices.
#pragma once

#include <examples/digits/data.hpp>

#include <Kokkos_Core.hpp>

namespace digits {

/// The images [first, first + n) as rows, in memory of Exec.
template <class Exec>
Kokkos::View<double**, Kokkos::LayoutRight, Exec> images(const Data& data, int first, int n) {
  const Kokkos::View<double**, Kokkos::LayoutRight, Exec> x("images", n, features);
  const auto host = Kokkos::create_mirror_view(x);
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < features; ++k) host(i, k) = data.pixels[(first + i) * features + k];
  Kokkos::deep_copy(x, host);
  return x;
}

}  // namespace digits
