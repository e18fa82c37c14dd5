// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels for a user's functor. They are instantiated in the user's translation unit from the backends' headers, with the same
// loops and tiles as those of the zoo.
#pragma once

#include <rigel/config.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/keep.hpp>

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
#include <rigel/backends/cuda/mma/codes.hpp>
#include <rigel/backends/cuda/mma/distance.hpp>
#include <rigel/backends/cuda/simt/narrow.hpp>
#endif

#if defined(RIGEL_FUNCTORS_ON_HOPPER) && RIGEL_BACKEND_CUDA_SIMT
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900 && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "RIGEL_FUNCTORS_ON_HOPPER needs sm_90a in place of sm_90; rigel_functors_on_hopper() in CMake sets both."
#endif
#include <rigel/backends/cuda/hopper/contract.hpp>
#endif

#include <vector>

namespace rigel::detail {

/// The kernels of every family for semiring S, epilogue E and a C of `Value`, on Exec.
template <class Exec, class S, class E, class Value>
std::span<const Kernel<Contraction>> instantiated_kernels() {
  static const std::span<const Kernel<Contraction>> kernels = keep([] {
    using Finish = FunctorFinish<E, Value, false>;
    [[maybe_unused]] constexpr Spaces here = bit(space_of<Exec>);
    std::vector<Kernel<Contraction>> list;
#if RIGEL_BACKEND_REFERENCE
    list.push_back(backends::reference::kernel<S, Finish, type_list<Exec>>());
#endif
#if RIGEL_BACKEND_PORTABLE
    backends::portable::add_kernels<S, Finish, type_list<Exec>>(
        [&](Kernel<Contraction> k) { list.push_back(std::move(k)); });
#endif
#if RIGEL_BACKEND_HOST
    if constexpr ((here & host_spaces) != 0)
      backends::host::add_kernels<S, Finish, type_list<Exec>>([&](Kernel<Contraction> k) { list.push_back(std::move(k)); });
#endif
#if RIGEL_BACKEND_CUDA_SIMT
    if constexpr (here == bit(Space::cuda)) {
      backends::simt::add_kernels<S, Finish>(list);
      backends::mma::add_functor_kernels<S, FunctorFinish<E, Value, true>>(list);
      backends::mma::add_functor_distances<S, Finish>(list);
      backends::mma::add_functor_codes<S, FunctorFinish<E, Value, true>>(list);
#if defined(RIGEL_FUNCTORS_ON_HOPPER)
      backends::hopper::add_functor_kernels<S, FunctorFinish<E, Value, true>>(list);
#endif
    }
#endif
    return list;
  }());
  return kernels;
}

}  // namespace rigel::detail
