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

/// What the launches of one kernel know of it on each device, found once: a static object of the function that launches it.
class LaunchFacts {
 public:
  /// Allows the kernel `bytes` of shared memory, which may be more than 48 KB, and finds out whether its code waits for the launches
  /// before it.
  void find(const void* function, int bytes, int device, const std::string& kernel) {
    const std::uint64_t mine = bit(device);
    if (found_.load(std::memory_order_acquire) & mine) return;
    check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          "contract: shared memory of " + kernel);
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, function), "contract: attributes of " + kernel);
    if (attributes.ptxVersion >= 90) waits_.fetch_or(mine, std::memory_order_relaxed);
    found_.fetch_or(mine, std::memory_order_release);
  }
  /// Whether it calls arch::wait_for_launches_before(), if its source does: code for older architectures does not.
  bool waits(int device) const { return waits_.load(std::memory_order_relaxed) & bit(device); }

 private:
  static std::uint64_t bit(int device) { return device >= 0 && device < 64 ? std::uint64_t{1} << device : 0; }

  std::atomic<std::uint64_t> found_{0}, waits_{0};
};

/// Enqueues a kernel, in clusters of `cluster` neighbouring blocks. With `early`, it may start before the previous launch is complete,
/// and waits for that itself. Not so in a captured graph: that would make an edge of a special kind, which not every reader of graphs
/// knows.
inline void launch(const void* function, dim3 grid, int threads, int bytes, void** arguments, cudaStream_t stream,
                   bool early, const std::string& kernel, unsigned cluster = 1) {
  cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
  if (early) check(cudaStreamIsCapturing(stream, &captured), "contract: cudaStreamIsCapturing");
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = early && captured == cudaStreamCaptureStatusNone;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = cluster;
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = cluster > 1 ? 2 : 1;
  check_launch(cudaLaunchKernelExC(&config, function, arguments), kernel);
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
