// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of semirings from text share.
#pragma once

#include <tests/support/error.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <rigel/runtime.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace texts {

using Host = Kokkos::DefaultHostExecutionSpace;

/// Which the host and all execution spaces of this build can read and write.
#ifdef KOKKOS_ENABLE_CUDA
using Memory = Kokkos::CudaUVMSpace;
#else
using Memory = Host::memory_space;
#endif
template <class T, class Layout = Kokkos::LayoutRight>
using Matrix = Kokkos::View<T**, Layout, Memory>;
template <class T, class Layout = Kokkos::LayoutRight>
using Batch = Kokkos::View<T***, Layout, Memory>;

/// visit.operator()<Exec>() for the execution spaces of this build.
template <class Visit>
void for_each_space(const Visit& visit) {
  [&]<class... Exec>(rigel::type_list<Exec...>) {
    (visit.template operator()<Exec>(), ...);
  }(rigel::type_list<RIGEL_TEST_SPACES>{});
}

/// contract() on a space, complete when it returns.
template <class Exec, class... Arguments>
void contract(const Arguments&... arguments) {
  const Exec exec;
  rigel::contract(exec, arguments...);
  exec.fence();
}

/// Whether texts can be compiled here; else the test is skipped.
inline bool can_compile() {
  std::string reason;
  const bool can = rigel::runtime::is_available(&reason);
  if (!can) support::skip("texts are not compiled: " + reason);
  return can;
}

/// The names by which a call can ask for kernels of a semiring on a space: that of the choice, which is empty, and with `all` the own one of
/// each that takes any extents.
template <class Exec>
std::vector<std::string> kernels_of(const rigel::runtime::Semiring& semiring, bool all) {
  std::vector<std::string> names = {""};
  if (all)
    for (const auto& kernel : semiring.kernels(rigel::detail::space_of<Exec>))
      if (kernel.info.variant != "skinny" && !kernel.info.variant.ends_with("split_k")) names.push_back(kernel.info.name);
  return names;
}
/// The name of the one of that variant; empty if there is none.
template <class Exec>
std::string kernel_of(const rigel::runtime::Semiring& semiring, std::string_view variant) {
  for (const auto& kernel : semiring.kernels(rigel::detail::space_of<Exec>))
    if (kernel.info.variant == variant) return kernel.info.name;
  return {};
}

/// Numbers between -8 and 8, exact in every type; whole ones for integers.
template <class View>
void fill(const View& view, unsigned seed) {
  using T = typename View::non_const_value_type;
  for (std::size_t i = 0; i < view.size(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    const int value = static_cast<int>(seed >> 20) % 257 - 128;
    const int whole = value / 16;
    view.data()[i] = std::is_integral_v<T> ? static_cast<T>(whole) : static_cast<T>(static_cast<float>(value) / 16);
  }
}

/// How many values of two views differ; any NaN equals any NaN, and zeros are equal.
template <class X, class Y>
int different(const X& x, const Y& y) {
  int count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto u = static_cast<double>(x.data()[i]), v = static_cast<double>(y.data()[i]);
    count += u == v || (u != u && v != v) ? 0 : 1;
  }
  return count;
}

/// a ⊗ b of a text, by a product of 1 × 1 matrices.
template <class Exec = Host, class T>
T product(const rigel::runtime::Semiring& semiring, T a, T b) {
  const Matrix<T> left("a", 1, 1), right("b", 1, 1), c("c", 1, 1);
  left(0, 0) = a;
  right(0, 0) = b;
  contract<Exec>(semiring, left, right, c);
  return c(0, 0);
}
template <class T>
T product(const char* text, T a, T b) {
  return product(rigel::runtime::Semiring({.element = rigel::scalar_of<T>, .multiply = text, .add = "x + y"}), a, b);
}

}  // namespace texts
