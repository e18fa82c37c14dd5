// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.simt kernels of semirings from text: which one a problem gets, its code from PTX by the driver's linker, and its launch.
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/simt/text.hpp>
#include <rigel/detail/text.hpp>

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace rigel::backends::simt {
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

// The kernel of an image, for all contexts; nothing if the driver refuses it. It stays loaded: streams and graphs may run it later.
std::optional<detail::TextCode> load(const std::string& image) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  if (driver().load(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) != CUDA_SUCCESS ||
      driver().kernel(&kernel, library, "rigel_text_kernel") != CUDA_SUCCESS)
    return std::nullopt;
  cudaFuncAttributes attributes;  // asking for them loads it into this context, which a captured launch could not
  if (cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)) != cudaSuccess) {
    cudaGetLastError();
    return std::nullopt;
  }
  return detail::TextCode{{kernel, nullptr}, nullptr};
}

// What a kernel keeps: the semiring's facts, and of each of its CUDA kernels the code on each device that has used it. All kernels of a
// semiring share it.
struct TextState {
  detail::TextFacts facts;
  detail::TextCompiler compile;
  std::uint64_t layout;
  std::mutex mutex;
  std::map<std::pair<int, int>, detail::TextCode> codes;  // by the kernel's number and the device

  // The function of a kernel, compiled if it is not yet.
  const void* function(int number, const Execution& execution) {
    {
      const std::lock_guard lock(mutex);
      if (const auto found = codes.find({number, execution.device}); found != codes.end()) return found->second.functions[0];
    }
    require_no_capture(execution);
    const Relaxed relaxed;
    cuda::check(cudaSetDevice(execution.device), "cudaSetDevice");  // which makes its context current
    int version = 0;
    cuda::check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
    const detail::TextGpu gpu{
        execution.compute_capability >= 90 ? "sm_90" : "sm_80",
        "compute capability " + std::to_string(execution.compute_capability) + ", driver " + std::to_string(version), &link,
        &load};
    detail::TextCode code = compile(static_cast<std::size_t>(number), layout, gpu);
    const std::lock_guard lock(mutex);
    return codes.emplace(std::pair(number, execution.device), std::move(code)).first->second.functions[0];
  }
  void require_no_capture(const Execution& execution) const {
    cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
    cuda::check(cudaStreamIsCapturing(static_cast<cudaStream_t>(execution.stream), &captured),
                "contract: cudaStreamIsCapturing");
    if (captured != cudaStreamCaptureStatusNone)
      throw Error(Code::unsupported, "runtime::Semiring '" + std::string(facts.info->name) +
                                         "': its kernel is not compiled yet, and nothing is compiled while a stream is "
                                         "captured; expected such a call before, or compile()");
  }
};
TextState& state_of(const Kernel<Contraction>& kernel) {
  return *static_cast<TextState*>(const_cast<void*>(kernel.state.get()));
}

template <class S, class Shape>
void text_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
  const tile::Raster raster{0, static_cast<unsigned>(rows_of<Shape>(p)), static_cast<unsigned>(columns_of<S, Shape>(p))};
  const Ways ways = text_ways<S, Shape>(p);
  const bool copies = CopyFinish<S>::supports(p);
  const auto try_one = [&]<class Tile>() {
    if constexpr (requires { typename Tile::Shape; })
      if constexpr (std::is_same_v<typename Tile::Shape, Shape>) {
        constexpr bool is_copy = std::is_same_v<typename Tile::Finish, CopyFinish<S>>;
        if (is_copy != copies || Tile::ways.a != ways.a || Tile::ways.b != ways.b) return;
        const cuda::CurrentDevice current(p.execution.device);
        const void* const function = state_of(kernel).function(text_kernel_index<S, Tile>, p.execution);
        if constexpr (is_copy)
          launch_tiles(kernel.info, p, function, raster, Shape::threads, copy_arguments<S>(p), NoParameters{});
        else
          launch_tiles(kernel.info, p, function, raster, Shape::threads, detail::arguments_of<S, detail::ProgramFinish>(p),
                       NoParameters{});
      }
  };
  detail::for_each(TextKernels<S>{}, try_one);
}

template <class S>
void text_small_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& kept, const Workspace&) {
  using Finish = detail::ProgramFinish;
  constexpr SmallFacts facts = small_facts<S>();
  const auto plan = kept.get<SmallPlan>();
  SmallShape shape = small_shape(p, plan, facts, small_vector_bits_of_c<S, Finish>(p));
  detail::Arguments<S, Finish> arguments = detail::arguments_of<S, Finish>(p);
  const auto bytes = static_cast<std::size_t>(boxes_of(p, plan, facts).bytes);
  const cuda::Launches launches(p, kernel.info.name);
  const void* const function = state_of(kernel).function(text_kernel_index<S, TextSmall>, p.execution);
  void* list[] = {&arguments, &shape};
  cuda::for_each_launch(plan.groups(p), max_grid / shape.parts, [&](std::int64_t first, std::int64_t count) {
    shape.first_group = static_cast<unsigned>(first);
    launches(function, dim3(static_cast<unsigned>(count * shape.parts)), plan.threads, bytes, list);
  });
}

template <class S>
void text_narrow_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace&) {
  const auto shape = plan.get<Narrow>();
  const cuda::CurrentDevice current(p.execution.device);
  launch_tiles(kernel.info, p, state_of(kernel).function(text_kernel_index<S, TextNarrow>, p.execution), raster_of(p, shape),
               1 << shape.outputs(), detail::arguments_of<S, detail::ProgramFinish>(p), shape);
}

// Whether a kernel covers a problem, if its tile does.
template <Status (*fits)(const Contraction&)>
Status text_supports(const Kernel<Contraction>& kernel, const Contraction& p) {
  const detail::TextFacts& facts = state_of(kernel).facts;
  if (const Status status = detail::text_gpu_supports(facts.form, p); !status) return status;
  const Status status = detail::text_finish_supports(p, facts.info->result);
  return status ? fits(p) : status;
}
template <class S>
Status text_narrow_fits(const Contraction& p) {
  return narrow_fits(p, slab_values<S>);
}

// Without the CUDA kernel that narrow_kernel() instantiates.
template <class S>
Kernel<Contraction> text_narrow_kernel() {
  Kernel<Contraction> k;
  k.info = narrow_info<S>();
  k.supports = text_supports<text_narrow_fits<S>>;
  k.cost = narrow_cost<S>;
  k.run = text_narrow_run<S>;
  return k;
}

// The same of small_kernel().
template <class S>
Kernel<Contraction> text_small_kernel() {
  Kernel<Contraction> k;
  k.info = small_info<S>();
  k.supports = text_supports<small_supports<S, detail::ProgramFinish>>;
  k.cost = small_cost<S, detail::ProgramFinish>;
  k.run = text_small_run<S>;
  return k;
}

template <class S>
std::vector<Kernel<Contraction>> text_kernels_of(const detail::TextFacts& facts, const detail::TextCompiler& compile) {
  auto state = std::make_shared<TextState>();
  state->facts = facts;
  state->compile = compile;
  state->layout = text_layout<typename S::element>;
  std::vector<Kernel<Contraction>> list;
  const auto add = [&](Kernel<Contraction> k, std::string_view tile) {
    k.info.semiring = facts.info->name;
    k.info.semiring_type = facts.info->type;
    k.info.facts = facts.info;
    detail::set_name(k.info, tile);
    k.info.accuracy = detail::chain_accuracy<S>();
    k.info.promises = Promise::repeatable | Promise::batch_invariant;
    if (!facts.calls_functions) k.info.promises = k.info.promises | Promise::reference_bits;
    k.state = state;
    list.push_back(std::move(k));
  };
  detail::for_each(Tiles<S>{}, [&]<class Shape>() {
    Kernel<Contraction> k;
    k.info = tile_info<S, Shape>();
    k.info.shared_memory = shared_memory_of<S, Shape>();
    k.supports = text_supports<supports<S, detail::ProgramFinish, Shape>>;
    k.cost = detail::cost_by<cost<S, Shape>>;
    k.run = text_run<S, Shape>;
    const Tile& tile = k.info.tile;
    add(std::move(k), std::to_string(tile.m) + 'x' + std::to_string(tile.n) + 'x' + std::to_string(tile.k));
  });
  add(text_narrow_kernel<S>(), {});
  add(text_small_kernel<S>(), {});
  return list;
}

// Visits the semiring from text of an element type.
template <class Visit>
auto with_text(Scalar element, bool calls, const Visit& visit) {
  const auto with = [&]<class E>() {
    return calls ? visit.template operator()<TextSemiring<E, accumulator_for<E>, true>>()
                 : visit.template operator()<TextSemiring<E, accumulator_for<E>, false>>();
  };
  switch (element) {
    case Scalar::f64: return with.template operator()<double>();
    case Scalar::f16: return with.template operator()<half>();
    case Scalar::bf16: return with.template operator()<bfloat16>();
    case Scalar::i32: return with.template operator()<std::int32_t>();
    case Scalar::i64: return with.template operator()<std::int64_t>();
    default: return with.template operator()<float>();
  }
}

}  // namespace

std::vector<Kernel<Contraction>> text_kernels(const detail::TextFacts& facts, const detail::TextCompiler& compile) {
  return with_text(facts.info->element, facts.has_long_operations,
                   [&]<class S>() { return text_kernels_of<S>(facts, compile); });
}

void compile_text_kernels(const Kernel<Contraction>& kernel, const Execution& execution) {
  TextState& state = state_of(kernel);
  if (const Status status = detail::text_gpu_supports(state.facts.form); !status)
    throw Error(Code::unsupported, "runtime::Semiring '" + std::string(state.facts.info->name) + "': " + status.reason);
  std::vector<int> numbers;
  with_text(state.facts.info->element, state.facts.has_long_operations, [&]<class S>() {
    detail::for_each(TextKernels<S>{}, [&]<class Of>() { numbers.push_back(text_kernel_index<S, Of>); });
  });
  // Each takes a thread half a second.
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < numbers.size(); i = next++) state.function(numbers[i], execution);
    } catch (...) {
      next = numbers.size();
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::jthread> others;
  try {
    for (unsigned i = 1; i < std::clamp(std::thread::hardware_concurrency(), 1u, 16u); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // Those that began do the work, and this one.
  }
  work();
  others.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rigel::backends::simt
