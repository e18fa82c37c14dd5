// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of texts on GPUs: PTX of kernels in the bitcode of librigel_runtime.so becomes machine code by the driver's linker.
#pragma once

#include <rigel/detail/text.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace rigel::backends::cuda {

/// Lets this thread load code while streams are captured, as it does nothing to them.
class Relaxed {
 public:
  Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// PTX → machine code for the current device.
std::string link(const std::string& ptx);
/// The kernel of an image, for all contexts; nothing if the driver refuses it. It stays loaded: streams and graphs may run it later.
std::optional<detail::TextCode> load(const std::string& image);

/// work(i) for i from 0 to `count`, on several threads: a kernel takes a thread half a second.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

/// What an epilogue from text became in the kernels of a family, on each device that has used it.
class TextFunctions {
 public:
  /// `what`: the text's owner in messages. `family`: as in detail::TextGpu. `level`: the architecture for which PTX is made; empty: sm_90 or
  /// sm_80, whatever the device has.
  TextFunctions(std::string what, detail::TextTileCompiler compile, Scalar element, std::uint64_t layout, std::string family,
                std::string level = {})
      : what_(std::move(what)),
        compile_(std::move(compile)),
        element_(element),
        layout_(layout),
        family_(std::move(family)),
        level_(std::move(level)) {}

  /// The function of a kernel, which may take `bytes` of shared memory; compiled if it is not yet. Throws Error(unsupported) if that would
  /// have to be while the stream is captured.
  const void* operator()(int number, const Execution& execution, int bytes);

  /// A kernel's number, and the shared memory that it may take.
  struct Need {
    int number, bytes;
  };
  /// Compiles kernels, on several threads, and returns how many.
  int compile(std::span<const Need> needs, const Execution& execution);

 private:
  void require_no_capture(const Execution& execution) const;

  std::string what_;
  detail::TextTileCompiler compile_;
  Scalar element_;
  std::uint64_t layout_;
  std::string family_, level_;
  std::mutex mutex_;
  std::map<std::pair<int, int>, detail::TextCode> codes_;  // by the kernel's number and the device
};

/// Those of a kernel whose state they are.
inline TextFunctions& text_functions_of(const Kernel<Contraction>& kernel) {
  return *static_cast<TextFunctions*>(const_cast<void*>(kernel.state.get()));
}

}  // namespace rigel::backends::cuda
