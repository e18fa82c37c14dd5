// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA runtime with errors as exceptions.
#pragma once

#include <rigel/error.hpp>

#include <cuda_runtime_api.h>

namespace rigel::backends::cuda {

inline void check(cudaError_t status, const std::string& what) {
  if (status != cudaSuccess) throw Error(Code::device, what + ": " + cudaGetErrorString(status));
}

/// The same for a kernel's launch. It builds the message only on an error, since a launch takes microseconds.
inline void check_launch(cudaError_t status, const std::string& kernel) {
  if (status != cudaSuccess) check(status, "contract: launch of " + kernel);
}

/// Makes a device this thread's current one as long as the object lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : device_(device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != device_) check(cudaSetDevice(device_), "cudaSetDevice");
  }
  ~CurrentDevice() {
    if (before_ != device_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int device_, before_ = 0;
};

}  // namespace rigel::backends::cuda
