// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA runtime with errors as exceptions.
#pragma once

#include <rigel/call.hpp>
#include <rigel/error.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>

namespace rigel::backends::cuda {

inline void check(cudaError_t status, const std::string& what) {
  if (status != cudaSuccess) throw Error(Code::device, what + ": " + cudaGetErrorString(status));
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

/// The launches of a call's kernel, on the call's stream. Its device is this thread's current one as long as the object lives. Errors name
/// the function that was called, and the kernel; text is built only for them, since a launch takes microseconds.
class Launches {
 public:
  Launches(const Call& call, const std::string& kernel) : current_(call.execution.device), call_(call), kernel_(kernel) {}

  int device() const { return call_.execution.device; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(call_.execution.stream); }
  std::string text(const char* what) const { return std::string(call_.function) + ": " + what + " of " + kernel_; }
  void check(cudaError_t status, const char* what = "launch") const {
    if (status != cudaSuccess) cuda::check(status, text(what));
  }

  template <class... Parameters>
  void operator()(void (*kernel)(Parameters...), dim3 grid, int threads, std::size_t bytes,
                  std::type_identity_t<Parameters>... arguments) const {
    void* list[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    (*this)(reinterpret_cast<const void*>(kernel), grid, threads, bytes, list);
  }
  /// The same by a kernel's address, in clusters of `cluster` neighbouring blocks. With `early`, it may start before the previous launch is
  /// complete, and waits for that itself. Not so in a captured graph: that would make an edge of a special kind, which not every reader of
  /// graphs knows.
  void operator()(const void* function, dim3 grid, int threads, std::size_t bytes, void** arguments, bool early = false,
                  unsigned cluster = 1) const {
    if (!early && cluster == 1)
      return check(cudaLaunchKernel(function, grid, dim3(static_cast<unsigned>(threads)), arguments, bytes, stream()));
    cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
    if (early) check(cudaStreamIsCapturing(stream(), &captured), "cudaStreamIsCapturing before the launch");
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = early && captured == cudaStreamCaptureStatusNone;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = cluster;
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = bytes;
    config.stream = stream();
    config.attrs = attributes;
    config.numAttrs = cluster > 1 ? 2 : 1;
    check(cudaLaunchKernelExC(&config, function, arguments));
  }

 private:
  CurrentDevice current_;
  const Call& call_;
  const std::string& kernel_;
};

/// What the launches of one kernel know of it on each device, found once: a static object of the function that launches it.
class LaunchFacts {
 public:
  /// Allows the kernel `bytes` of shared memory, which may be more than 48 KB, and finds out whether its code waits for the launches
  /// before it.
  void find(const void* function, int bytes, const Launches& launches) {
    const std::uint64_t mine = bit(launches.device());
    if (found_.load(std::memory_order_acquire) & mine) return;
    launches.check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "shared memory");
    cudaFuncAttributes attributes{};
    launches.check(cudaFuncGetAttributes(&attributes, function), "attributes");
    if (attributes.ptxVersion >= 90) waits_.fetch_or(mine, std::memory_order_relaxed);
    found_.fetch_or(mine, std::memory_order_release);
  }
  /// Whether it calls arch::wait_for_launches_before(), if its source does: code for older architectures does not.
  bool waits(int device) const { return waits_.load(std::memory_order_relaxed) & bit(device); }

 private:
  static std::uint64_t bit(int device) { return device >= 0 && device < 64 ? std::uint64_t{1} << device : 0; }

  std::atomic<std::uint64_t> found_{0}, waits_{0};
};

/// Blocks of a launch along x, and along y or z (CUDA C++ Programming Guide, table of limits).
inline constexpr std::int64_t max_grid = 2147483647, max_grid_yz = 65535;

/// use(first, count) for what a launch can take of `all`: at most `most` at a time.
template <class Use>
void for_each_launch(std::int64_t all, std::int64_t most, const Use& use) {
  for (std::int64_t first = 0; first < all; first += most) use(first, std::min(all - first, most));
}

}  // namespace rigel::backends::cuda
