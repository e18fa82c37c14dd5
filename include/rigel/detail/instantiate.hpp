// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels for a user's functor, instantiated in the user's own translation unit from the backends' headers: the same
// loops and tiles as the zoo's.
#pragma once

#include <rigel/config.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/detail/execution.hpp>

#if RIGEL_BACKEND_REFERENCE
#include <rigel/backends/reference/contract.hpp>
#endif
#if RIGEL_BACKEND_PORTABLE
#include <rigel/backends/portable/contract.hpp>
#endif
#if RIGEL_BACKEND_HOST
#include <rigel/backends/host/contract.hpp>
#endif
#if RIGEL_BACKEND_CUDA_SIMT
#include <rigel/backends/cuda/simt/narrow.hpp>
#endif

#include <vector>

namespace rigel::detail {

/// One kernel of every family for semiring S, epilogue E and a C of `Value`, on Exec.
template <class Exec, class S, class E, class Value>
std::span<const Kernel> instantiated_kernels() {
  static const std::vector<Kernel> kernels = [] {
    using Finish = FunctorFinish<E, Value>;
    [[maybe_unused]] constexpr Spaces here = bit(space_of<Exec>);
    std::vector<Kernel> list;
#if RIGEL_BACKEND_REFERENCE
    list.push_back(backends::reference::kernel<S, Finish, type_list<Exec>>());
#endif
#if RIGEL_BACKEND_PORTABLE
    list.push_back(backends::portable::kernel<S, Finish, type_list<Exec>>());
#endif
#if RIGEL_BACKEND_HOST
    if constexpr ((here & host_spaces) != 0) list.push_back(backends::host::kernel<S, Finish, type_list<Exec>>());
#endif
#if RIGEL_BACKEND_CUDA_SIMT
    if constexpr (here == bit(Space::cuda)) backends::simt::add_kernels<S, Finish>(list);
#endif
    return list;
  }();
  return kernels;
}

}  // namespace rigel::detail
