// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's functions, and when texts are compiled.
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/text_code.hpp>
#include <rigel/detail/capture.hpp>
#include <rigel/detail/shared_work.hpp>

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <system_error>
#include <thread>

namespace rigel::backends::cuda {
namespace {

// A function of the driver, which is not linked.
struct DriverFunction {
  void* function = nullptr;

  DriverFunction(const char* name, [[maybe_unused]] unsigned version) {
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
#else
    const cudaError_t status = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
    cuda::check(status, std::string("cudaGetDriverEntryPoint: ") + name);
    if (found != cudaDriverEntryPointSuccess || !function)
      throw Error(Code::unsupported, std::string("semirings from text: the CUDA driver has no ") + name);
  }
  template <class Function>
  operator Function*() const {
    return reinterpret_cast<Function*>(function);
  }
};
// Each with the version of CUDA that introduced it.
struct Driver {
  decltype(&cuLinkCreate) link_create = DriverFunction("cuLinkCreate", 6050);
  decltype(&cuLinkAddData) link_add = DriverFunction("cuLinkAddData", 6050);
  decltype(&cuLinkComplete) link_complete = DriverFunction("cuLinkComplete", 5050);
  decltype(&cuLinkDestroy) link_destroy = DriverFunction("cuLinkDestroy", 5050);
  decltype(&cuLibraryLoadData) load = DriverFunction("cuLibraryLoadData", 12000);
  decltype(&cuLibraryGetKernel) kernel = DriverFunction("cuLibraryGetKernel", 12000);
};
const Driver& driver() {
  static const Driver one;
  return one;
}

// Lets this thread load code while streams are captured, as it does nothing to them.
class Relaxed {
 public:
  Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// PTX → machine code for the current device.
std::string link(const std::string& ptx) {
  char log[4096] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  struct Linker {
    CUlinkState state = nullptr;
    ~Linker() {
      if (state) driver().link_destroy(state);
    }
  } linker;
  void* image = nullptr;
  std::size_t size = 0;
  CUresult status = driver().link_create(2, options, values, &linker.state);
  if (status == CUDA_SUCCESS)
    status = driver().link_add(linker.state, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()), ptx.size() + 1, "text", 0,
                               nullptr, nullptr);
  if (status == CUDA_SUCCESS) status = driver().link_complete(linker.state, &image, &size);
  if (status != CUDA_SUCCESS)
    throw Error(Code::device, "semirings from text: the CUDA driver cannot compile a kernel, CUresult " +
                                  std::to_string(static_cast<int>(status)) + ": " + log);
  return {static_cast<const char*>(image), size};
}

std::string as_it_is(const std::string& ptx) { return ptx; }

// The driver opens its compiler for the first PTX of a process, whatever that is. Without a thread, and if it fails, link() does all.
std::future<void> open_compiler() {
  static std::atomic_flag opened;
  int device = 0;
  if (opened.test_and_set() || cudaGetDevice(&device) != cudaSuccess) return {};
  try {
    return std::async(std::launch::async, [device] {
      const Relaxed relaxed;
      if (cudaSetDevice(device) == cudaSuccess)
        link(".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry empty() { ret; }\n");
    });
  } catch (const std::system_error&) {
    return {};
  }
}

// Loads a kernel into the current context, which a captured launch could not: asking for its attributes does.
cudaError_t load_here(const void* kernel) {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel);
}

// The kernel of an image, for all contexts; nothing if the driver refuses it. It stays loaded: streams and graphs may run it later.
std::optional<detail::TextCode> load(const std::string& image) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  if (driver().load(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) != CUDA_SUCCESS ||
      driver().kernel(&kernel, library, "rigel_text_kernel") != CUDA_SUCCESS)
    return std::nullopt;
  if (load_here(kernel) != cudaSuccess) {
    cudaGetLastError();
    return std::nullopt;
  }
  return detail::TextCode{{kernel, nullptr}, nullptr};
}

}  // namespace

const void* TextCodes::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = codes_.find(key);
  return found == codes_.end() ? nullptr : found->second.functions[0];
}

const void* TextCodes::add(const Key& key, const Execution& execution,
                           const std::function<detail::TextCode(const detail::TextGpu&)>& compile) {
  require_no_capture(execution);
  const Relaxed relaxed;
  const CurrentDevice current(execution.device);
  check(cudaSetDevice(execution.device), "cudaSetDevice");  // which makes its context current, also a new thread's
  int version = 0;
  check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  const detail::TextGpu gpu{!level_.empty()                      ? level_.c_str()
                            : execution.compute_capability >= 90 ? "sm_90"
                                                                 : "sm_80",
                            "compute capability " + std::to_string(execution.compute_capability) + ", driver " +
                                std::to_string(version) + (image_ == TextImage::loaded ? ", PTX" : ""),
                            &open_compiler,
                            image_ == TextImage::loaded ? &as_it_is : &link,
                            &load,
                            family_};
  detail::TextCode code = compile(gpu);
  // Code from memory may be loaded into another device's context alone.
  check(load_here(code.functions[0]), what_ + ": cudaFuncGetAttributes");
  const std::lock_guard lock(mutex_);
  return codes_.emplace(key, std::move(code)).first->second.functions[0];
}

void TextCodes::require_no_capture(const Execution& execution) const {
  // To the legacy stream, while another one is captured, loading does nothing.
  if (detail::capture_of(execution, "contract") == detail::Capture::own)
    throw Error(Code::unsupported, what_ +
                                       ": its kernel is not compiled yet, and nothing is compiled while a stream is "
                                       "captured; expected such a call before, or compile()");
}

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
  detail::share_work(count, static_cast<int>(threads), work);
}

const void* TextFunctions::operator()(int number, const Execution& execution, int bytes) {
  return codes_.function(number, {}, execution, [&](const detail::TextGpu& gpu) {
    detail::TextCode code = compile_(element_, static_cast<std::size_t>(number), layout_, gpu);
    check(cudaFuncSetAttribute(code.functions[0], cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          codes_.what() + ": cudaFuncSetAttribute");
    return code;
  });
}

int TextFunctions::compile(std::span<const Need> needs, const Execution& execution) {
  in_parallel(needs.size(), [&](std::size_t i) { (*this)(needs[i].number, execution, needs[i].bytes); });
  return static_cast<int>(needs.size());
}

}  // namespace rigel::backends::cuda
