// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.simt kernels of semirings from text: which one a problem gets, its code, and its launch.
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/simt/text.hpp>
#include <rigel/backends/cuda/text_code.hpp>
#include <rigel/detail/text.hpp>

#include <map>
#include <mutex>
#include <vector>

namespace rigel::backends::simt {
namespace {

using cuda::Relaxed, cuda::link, cuda::load;

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

// As narrow_kernel() says, which would instantiate the kernel itself.
template <class S>
Kernel<Contraction> text_narrow_kernel() {
  Kernel<Contraction> k;
  k.info = tile_info<S, SmallTile<S>>("narrow");
  k.info.tile = {1 << Narrow::threads / 2, 1 << Narrow::threads / 2, 128};
  k.info.stages = 2;
  k.info.threads = 1 << Narrow::threads;
  k.info.shared_memory = 2 * NarrowSlab<operand_t<S>>::bytes;
  k.supports = text_supports<text_narrow_fits<S>>;
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
    const Narrow shape = narrow_for(p, slab_values<S>);
    plan.keep(shape);
    const tile::Raster raster = raster_of(p, shape);
    return costs::narrow_seconds(p, semiring_facts<S>,
                                 {static_cast<double>(p.batch) * raster.rows * raster.columns, 1 << shape.outputs(),
                                  (1 << shape.m) + (1 << shape.n), 1 << shape.depth});
  };
  k.run = text_narrow_run<S>;
  return k;
}

// As small_kernel() says.
template <class S>
Kernel<Contraction> text_small_kernel() {
  Kernel<Contraction> k;
  k.info = tile_info<S, SmallTile<S>>("small");
  k.info.tile = {16 * SmallTypes<S>::outputs, 16 * SmallTypes<S>::outputs, 64};
  k.info.stages = 1;
  k.info.threads = 256;
  k.info.shared_memory = static_cast<int>(small_most_bytes);
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
    k.info = tile_info<S, Shape>(Shape::role == tile::Role::wide ? "wide" : "");
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
  cuda::in_parallel(numbers.size(), [&](std::size_t i) { state.function(numbers[i], execution); });
}

}  // namespace rigel::backends::simt
