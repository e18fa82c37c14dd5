// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA runtime with errors as exceptions.
#pragma once

#include <rigel/error.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

namespace rigel::backends::cuda {

inline void check(cudaError_t status, const std::string& what) {
  if (status != cudaSuccess) throw Error(Code::device, what + ": " + cudaGetErrorString(status));
}

/// The same for a kernel's launch. It builds the message only on an error, since a launch takes microseconds.
inline void check_launch(cudaError_t status, const std::string& kernel) {
  if (status != cudaSuccess) check(status, "contract: launch of " + kernel);
}

/// Allows a kernel more than 48 KB of shared memory, once per device: `allowed` is the kernel's own.
inline void allow_shared_memory(const void* function, int bytes, std::atomic<std::uint64_t>& allowed, int device,
                                const std::string& kernel) {
  const std::uint64_t mine = device >= 0 && device < 64 ? std::uint64_t{1} << device : 0;
  if (allowed.load(std::memory_order_acquire) & mine) return;
  check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "contract: shared memory of " + kernel);
  allowed.fetch_or(mine, std::memory_order_release);
}

/// Blocks of a launch along x, and along y or z (CUDA C++ Programming Guide, table of limits).
inline constexpr std::int64_t max_grid = 2147483647, max_grid_yz = 65535;

/// use(first, count) for what a launch can take of `all`: at most `most` at a time.
template <class Use>
void for_each_launch(std::int64_t all, std::int64_t most, const Use& use) {
  for (std::int64_t first = 0; first < all; first += most) use(first, std::min(all - first, most));
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
