// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rigel_handle is: a Kokkos instance, and how the engine knows it.
#pragma once

#include "guard.hpp"

#include <rigel/detail/call.hpp>
#include <rigel/detail/execution.hpp>

#include <optional>

struct rigel_handle {
  rigel::Execution execution;  // points to one of these:
  std::optional<Kokkos::DefaultHostExecutionSpace> host;
#ifdef KOKKOS_ENABLE_CUDA
  std::optional<Kokkos::Cuda> cuda;
#endif
};

namespace rigel::c {

/// use(instance) with the handle's Kokkos instance.
template <class Use>
auto with_instance(const rigel_handle& handle, const Use& use) {
#ifdef KOKKOS_ENABLE_CUDA
  if (handle.execution.space == Space::cuda) return use(detail::instance<Kokkos::Cuda>(handle.execution));
#endif
  return use(detail::instance<Kokkos::DefaultHostExecutionSpace>(handle.execution));
}

/// While it lives, the handle's device is the calling thread's current one.
class OnDevice {
 public:
#ifdef KOKKOS_ENABLE_CUDA
  explicit OnDevice(int device) : device_(device) {
    if (device_ < 0) return;
    cudaGetDevice(&before_);
    if (before_ != device_) cudaSetDevice(device_);
  }
  ~OnDevice() {
    if (device_ >= 0 && before_ != device_) cudaSetDevice(before_);
  }
#else
  explicit OnDevice(int) {}
#endif
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

#ifdef KOKKOS_ENABLE_CUDA
 private:
  int device_, before_ = 0;
#endif
};

/// guarded(), with the device of a handle that must not be NULL.
template <class Body>
rigel_code on_handle(const char* function, rigel_handle* handle, const Body& body) noexcept {
  return guarded(function, [&] {
    const OnDevice current(result(handle, "handle").execution.device);
    body(*handle);
  });
}

}  // namespace rigel::c
