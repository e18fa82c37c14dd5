// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles the kernels of dissimilarities.hpp. cmake/RigelC.cmake makes a file for each semiring.
#pragma once

#include "dissimilarities.hpp"

namespace rigel::c {

template <class S, class Value>
std::span<const Kernel<Contraction>> compiled_kernels([[maybe_unused]] Space space) {
  static_assert(!in_zoo<S>);
#ifdef KOKKOS_ENABLE_CUDA
  if (space == Space::cuda) return detail::instantiated_kernels<Kokkos::Cuda, S, epilogue::Program, Value>();
#endif
  return detail::instantiated_kernels<Kokkos::DefaultHostExecutionSpace, S, epilogue::Program, Value>();
}

}  // namespace rigel::c

#define RIGEL_COMPILE(S, Value) \
  template std::span<const rigel::Kernel<rigel::Contraction>> rigel::c::compiled_kernels<S, Value>(rigel::Space)
#define RIGEL_COMPILE_NUMBERS(semiring)         \
  RIGEL_COMPILE(rigel::semiring<float>, float); \
  RIGEL_COMPILE(rigel::semiring<double>, double)
#define RIGEL_COMPILE_MEASURE(name)                                               \
  RIGEL_COMPILE(rigel::c::measure_of_codes<rigel::metric::measure::name>, float); \
  RIGEL_COMPILE(rigel::c::measure_of_codes<rigel::metric::measure::name>, double)
