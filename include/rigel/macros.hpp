// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two function qualifiers of all functions that kernels call. This header needs no Kokkos, so the tuned loops compile
// without it.
#pragma once

// A function that runs on the host and, in a CUDA or HIP translation unit, on the device. It is always inlined: host kernels are
// compiled for several instruction sets, and the linker could pick an out-of-line copy of the wrong one.
#if defined(__CUDACC__) || defined(__HIP__)
#define RIGEL_FUNCTION __host__ __device__ __attribute__((always_inline)) inline
#define RIGEL_MEMBER __host__ __device__ __attribute__((always_inline))
#else
#define RIGEL_FUNCTION __attribute__((always_inline)) inline
#define RIGEL_MEMBER __attribute__((always_inline))
#endif

// 1 while the compiler compiles CUDA's device code, else 0: HIP's takes the host's formulas.
#if defined(__CUDA_ARCH__)
#define RIGEL_ON_DEVICE 1
#else
#define RIGEL_ON_DEVICE 0
#endif
