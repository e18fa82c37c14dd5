// The pre-13 signatures of two CUDA runtime functions, as overloads that call the new ones.
//
// CUDA 13 changed cudaGraphAddDependencies and cudaMemPrefetchAsync; Kokkos 4.7.00 calls both as they were, in
// Kokkos_Cuda_Instance.hpp too. So this header is force-included (-include) where Kokkos is built for CUDA, and
// by everything that includes Kokkos: it travels with the exported targets. Elsewhere it says nothing.
// (Its guard is a macro, not a pragma: Kokkos's and Rigel's installations may each hold a copy.)
#ifndef RIGEL_KOKKOS_CUDA13_HPP
#define RIGEL_KOKKOS_CUDA13_HPP

#if defined(__CUDACC__) || defined(__CUDA__)

#include <cuda_runtime_api.h>

#if CUDART_VERSION >= 13000

inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                            size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}

inline cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device, cudaStream_t stream = nullptr) {
  cudaMemLocation location{};
  location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  location.id = device == cudaCpuDeviceId ? 0 : device;
  return cudaMemPrefetchAsync(pointer, bytes, location, 0u, stream);
}

#endif
#endif
#endif
