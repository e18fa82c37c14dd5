// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call whose workspace comes from the pool, with a check of its results.
#pragma once

#include <rigel/contract.hpp>

#include <cstdio>

namespace lifetime {

// All of A is 2, all of B is 3. K is odd: kernels that copy 16 bytes at a time have to pack such operands first.
template <class Exec>
bool is_right(const Exec& exec) {
  constexpr int m = 33, n = 35, k = 41;
  const Kokkos::View<float**, Kokkos::LayoutRight, Exec> a("a", m, k), b("b", k, n), c("c", m, n);
  Kokkos::deep_copy(a, 2);
  Kokkos::deep_copy(b, 3);
  const rigel::plus_times<float> s;
  const rigel::epilogue::Program none;
  for (const auto& info : rigel::kernels(
           {.semiring = "plus_times", .element = rigel::Scalar::f32, .spaces = rigel::bit(rigel::detail::space_of<Exec>)})) {
    const rigel::ContractOptions options{.precision = info.precision, .kernel = info.name};
    try {
      if (rigel::workspace_size(exec, s, a, b, c, none, options) == 0) continue;
    } catch (const rigel::Error&) {
      continue;  // it declines the problem or the processor
    }
    rigel::contract(exec, s, a, b, c, none, options);
    const auto found = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), c);
    int wrong = 0;
    for (int i = 0; i < m * n; ++i) wrong += found.data()[i] != 2 * 3 * k;
    std::printf("%s: %d wrong results\n", info.name.c_str(), wrong);
    return wrong == 0;
  }
  std::printf("no kernel needs a workspace here\n");
  return false;
}

}  // namespace lifetime
