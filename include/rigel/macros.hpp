// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two function qualifiers that every operation of Rigel carries. This header needs no Kokkos, so that the tuned
// loops can be compiled without it.
#pragma once

// A function that runs on the host and, in a CUDA translation unit, on the device. Always inlined: host kernels are
// compiled for several instruction sets, and an out-of-line copy could end up in the wrong one.
#if defined(__CUDACC__)
#define RIGEL_FUNCTION __host__ __device__ __attribute__((always_inline)) inline
#define RIGEL_MEMBER __host__ __device__ __attribute__((always_inline))
#else
#define RIGEL_FUNCTION __attribute__((always_inline)) inline
#define RIGEL_MEMBER __attribute__((always_inline))
#endif

// True while code for the GPU is being compiled.
#if defined(__CUDA_ARCH__)
#define RIGEL_ON_DEVICE 1
#else
#define RIGEL_ON_DEVICE 0
#endif
