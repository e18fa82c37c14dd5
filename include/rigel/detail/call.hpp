// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the launches of drivers share, in closure(), transitive_closure() and cdist() of prepared rows: from an Execution and its
// operands to typed kernels.
#pragma once

#include <rigel/detail/arguments.hpp>
#include <rigel/detail/execution.hpp>

namespace rigel::detail {

template <class Exec>
inline constexpr bool runs_on_host = Kokkos::SpaceAccessibility<Exec, Kokkos::HostSpace>::accessible;

/// The Kokkos instance of an execution, whose space is known to be Exec.
template <class Exec>
const Exec& instance(const Execution& execution) {
  return *static_cast<const Exec*>(execution.instance);
}

/// The policy, for a launch whose functor a device gets as the kernel's argument. Without it Kokkos::Cuda copies functors of more
/// than 512 bytes through one buffer on the host, which a replay of a captured graph would read again.
template <class Policy>
auto by_argument(const Policy& policy) {
  return Kokkos::Experimental::require(policy, Kokkos::Experimental::WorkItemProperty::HintLightWeight);
}

template <class T>
Strided<T> strided_in(const Operand& o) {
  return {static_cast<T*>(o.data), o.batch_stride, o.row_stride, o.column_stride};
}

}  // namespace rigel::detail
