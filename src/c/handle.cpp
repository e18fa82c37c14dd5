// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "handle.hpp"

#include <rigel/detail/pool.hpp>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace rigel::c {
namespace {

// Initialises Kokkos if nobody has; it is then finalised when the program ends, or when this library is unloaded.
void initialise_kokkos(int device) {
  static constinit std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (Kokkos::is_finalized()) refuse("Kokkos has been finalised, expected a call before that");
  if (Kokkos::is_initialized()) return;
  Kokkos::InitializationSettings settings;
  settings.set_disable_warnings(true);  // such as that OMP_PROC_BIND is not set: a library prints nothing
  if (device >= 0) settings.set_device_id(device);
  Kokkos::initialize(settings);
  std::atexit([] {
    if (Kokkos::is_initialized()) Kokkos::finalize();
  });
}

#ifdef KOKKOS_ENABLE_CUDA

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw Error(Code::device, std::string(what) + ": " + cudaGetErrorString(status));
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

int compute_capability(int device) {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) + attribute(cudaDevAttrComputeCapabilityMinor, device);
}

// Whether this library holds code for a GPU shows with any kernel of it.
__global__ void probe() {}

// Throws unless the library runs on a GPU. Kokkos would end the program.
void require_gpu(int device) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "the library was built with CUDA, and Kokkos needs a GPU to start");
  if (device >= count)
    refuse("device is " + std::to_string(device) + ", expected -1 for the host, or less than " + std::to_string(count) +
           ", the number of GPUs");
  constexpr int least = 80;
  const int gpu = device < 0 ? 0 : device, capability = compute_capability(gpu);
  const std::string name = "GPU " + std::to_string(gpu) + " is an sm_" + std::to_string(capability);
  if (capability < least) throw UnsupportedArchitecture(name + ", expected sm_80 or newer");
  const OnDevice current(gpu);
  cudaFuncAttributes attributes;
  const cudaError_t status = cudaFuncGetAttributes(&attributes, probe);
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();
    throw UnsupportedArchitecture(name + ", and this library was built for other architectures");
  }
  check(status, "cudaFuncGetAttributes");
}

void create_on_gpu(rigel_handle& handle, int device, cudaStream_t stream) {
  const OnDevice current(device);
  handle.cuda.emplace(stream);
  const int actual = handle.cuda->cuda_device();
  check(cudaSetDevice(device), "cudaSetDevice");  // Kokkos has made the stream's own device the current one
  if (actual != device)
    refuse("the stream is of device " + std::to_string(actual) + ", expected one of device " + std::to_string(device));
  handle.execution = detail::execution_of(*handle.cuda);
}

#endif

void create(std::int32_t device, void* stream, rigel_handle*& result) {
  if (device < -1) refuse("device is " + std::to_string(device) + ", expected -1 for the host, or a GPU's ordinal");
  if (device == -1 && stream) refuse("stream is not NULL, expected NULL for the host");
#ifdef KOKKOS_ENABLE_CUDA
  require_gpu(device);
#else
  if (device >= 0)
    throw Error(Code::unsupported, "device is " + std::to_string(device) + ", and this library was built without CUDA");
#endif
  initialise_kokkos(device);
  auto handle = std::make_unique<rigel_handle>();
  if (device == -1) handle->execution = detail::execution_of(handle->host.emplace());
#ifdef KOKKOS_ENABLE_CUDA
  if (device >= 0) create_on_gpu(*handle, device, static_cast<cudaStream_t>(stream));
#endif
  result = handle.release();
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_create(std::int32_t device, void* stream, rigel_handle** handle) {
  return guarded("rigel_create", [&] {
    result(handle, "handle") = nullptr;
    create(device, stream, *handle);
  });
}

void rigel_destroy(rigel_handle* handle) {
  if (!handle) return;
  guarded("rigel_destroy", [&] {
    // Without Kokkos an instance cannot be destroyed.
    if (!Kokkos::is_initialized()) return;
    const OnDevice current(handle->execution.device);
    delete handle;
  });
}

rigel_code rigel_synchronize(rigel_handle* handle) {
  return on_handle("rigel_synchronize", handle, [](rigel_handle& h) {
    if (h.host) h.host->fence("rigel_synchronize");
#ifdef KOKKOS_ENABLE_CUDA
    if (h.cuda) check(cudaStreamSynchronize(h.cuda->cuda_stream()), "cudaStreamSynchronize");
#endif
  });
}

rigel_code rigel_presize(rigel_handle* handle, std::size_t bytes) {
  return on_handle("rigel_presize", handle, [&](rigel_handle& h) { rigel::detail::presize(h.execution, bytes); });
}

rigel_code rigel_release_presized(rigel_handle* handle) {
  return on_handle("rigel_release_presized", handle, [](rigel_handle& h) { rigel::detail::release_presized(h.execution); });
}

void rigel_release_workspaces() { rigel::release_workspaces(); }
