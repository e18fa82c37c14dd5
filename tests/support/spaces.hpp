// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The execution spaces of this build: TEST_CASE_TEMPLATE("…", Exec, RIGEL_TEST_SPACES) runs a test on each of them.
#pragma once

#include <doctest/doctest.h>
#include <Kokkos_Core.hpp>

#if defined(KOKKOS_ENABLE_SERIAL) && (defined(KOKKOS_ENABLE_OPENMP) || defined(KOKKOS_ENABLE_THREADS))
#define RIGEL_TEST_AND_SERIAL , Kokkos::Serial
#else
#define RIGEL_TEST_AND_SERIAL
#endif
#ifdef KOKKOS_ENABLE_CUDA
#define RIGEL_TEST_AND_CUDA , Kokkos::Cuda
#else
#define RIGEL_TEST_AND_CUDA
#endif
#define RIGEL_TEST_SPACES Kokkos::DefaultHostExecutionSpace RIGEL_TEST_AND_SERIAL RIGEL_TEST_AND_CUDA

namespace support {

template <class Exec>
inline constexpr bool on_host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Exec::memory_space>::accessible;

}  // namespace support
