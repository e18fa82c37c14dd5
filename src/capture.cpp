// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture.hpp"

#include <Kokkos_Core.hpp>

namespace rigel::detail {

#ifdef KOKKOS_ENABLE_CUDA
namespace {

/// A stream as CUDA knows it. The legacy stream is that of the current device.
struct CudaStream {
  using Error = cudaError_t;
  using Status = cudaStreamCaptureStatus;
  static constexpr Error success = cudaSuccess, implicit = cudaErrorStreamCaptureImplicit;
  static constexpr Status none = cudaStreamCaptureStatusNone, invalid = cudaStreamCaptureStatusInvalidated;

  int device;
  cudaStream_t stream;

  Error is_capturing(Status& status) const {
    int before = device;
    if (const Error error = cudaGetDevice(&before); error != success) return error;
    if (before == device) return cudaStreamIsCapturing(stream, &status);
    if (const Error error = cudaSetDevice(device); error != success) return error;
    const Error error = cudaStreamIsCapturing(stream, &status);
    cudaSetDevice(before);
    return error;
  }
  void clear_error() const { cudaGetLastError(); }
  const char* text(Error error) const { return cudaGetErrorString(error); }
};

}  // namespace
#endif

Capture capture_of([[maybe_unused]] const Execution& execution, [[maybe_unused]] const char* function) {
#ifdef KOKKOS_ENABLE_CUDA
  if (execution.space == Space::cuda)
    return capture_by(CudaStream{execution.device, static_cast<cudaStream_t>(execution.stream)}, function);
#endif
  return Capture::none;
}

bool is_captured(const Execution& execution, const char* function) {
  return is_captured(capture_of(execution, function), function);
}

void require_no_capture(const Execution& execution, const char* function, const char* expected) {
  require_no_capture(capture_of(execution, function), function, expected);
}

}  // namespace rigel::detail
