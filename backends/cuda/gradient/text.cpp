// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of cuda.gradient for functors from text: which one a problem gets, its code, and its launch.
#include <rigel/backends/cuda/gradient/gradient.hpp>
#include <rigel/backends/cuda/gradient/text.hpp>
#include <rigel/backends/cuda/text_code.hpp>
#include <rigel/detail/text_gradient.hpp>

#include <cstring>
#include <vector>

namespace rigel::backends::gradient {
namespace {

// What both kernels of a functor share: its facts and the code of its CUDA kernels.
struct TextState {
  TextState(const detail::TextGradientFacts& of, const detail::TextCompiler& by, std::uint64_t of_arguments)
      : facts(of), compile(by), layout(of_arguments), codes("runtime::Derivative '" + of.name + "'", "gradient_") {}

  detail::TextGradientFacts facts;
  detail::TextCompiler compile;
  std::uint64_t layout;
  cuda::TextCodes codes;

  // The function of a kernel of the table, compiled if it is not yet.
  const void* function(int number, const Execution& execution) {
    return codes.function(number, {}, execution, [&](const detail::TextGpu& gpu) {
      return compile(static_cast<std::size_t>(number), layout, gpu, nullptr);
    });
  }
};
TextState& state_of(const Kernel<Gradient>& kernel) {
  return *static_cast<TextState*>(const_cast<void*>(kernel.state.get()));
}

// The functor with the values of its hyperparameters. Kernels read views themselves, so that a replayed graph sees what they hold then.
template <class G>
G functor_of(const detail::TextValues& values) {
  G functor = {};
  std::memcpy(functor.numbers, values.numbers.data(), sizeof functor.numbers);
  for (const detail::TextView& view : values.views) {
    functor.memory[view.index] = static_cast<const typename G::accumulator*>(view.data);
    functor.stride[view.index] = view.count > 1 ? view.stride : 0;
  }
  return functor;
}

template <class G, bool split>
void text_run(const Kernel<Gradient>& kernel, const Gradient& p, const Plan&, const Workspace& workspace) {
  using A = typename G::accumulator;
  TextState& state = state_of(kernel);
  const G functor = functor_of<G>(*static_cast<const detail::TextValues*>(p.functor_object));
  Gradient own = p;
  own.functor_object = &functor;
  detail::GradientArguments<G> arguments = detail::gradient_arguments<G>(own);
  with_cut<G>(p.outputs, [&]<class C>(C) {
    const cuda::Launches launches(p, kernel.info.name);
    // Both are there before anything is enqueued.
    const void* const tile = state.function(text_tile<G, C>, p.execution);
    const void* const join = split ? state.function(text_join<G>, p.execution) : nullptr;
    Grid grid = grid_of<C>(p, split);
    A* parts = split ? static_cast<A*>(workspace.data) : nullptr;
    Marks none = {};
    void* list[] = {&arguments, &grid, &parts, &none};
    launches(tile, dim3(static_cast<unsigned>(blocks_of(p, grid))), C::threads, 0, list);
    if (!split) return;
    void* of_join[] = {&arguments, &grid.slices, &parts};
    launches(join, dim3(static_cast<unsigned>((p.batch * p.outputs * p.n * p.m + 255) / 256)), 256, 0, of_join);
  });
}

template <class G, bool split>
Kernel<Gradient> text_kernel(const std::shared_ptr<TextState>& state) {
  const detail::TextGradientFacts& facts = state->facts;
  Kernel<Gradient> k;
  k.info = detail::text_gradient_info<G>(facts, "cuda.gradient", split ? "split_k" : "tiles", bit(Space::cuda));
  k.info.min_compute_capability = 80;
  k.info.timed_on = 90;
  k.info.raw_launch = true;
  if (facts.calls_functions && sizeof(typename G::accumulator) <= 4) k.info.accuracy = {120, 1};  // as of compiled powers
  if (!split) k.info.promises = k.info.promises | Promise::batch_invariant;
  if (!split && !facts.calls_functions) k.info.promises = k.info.promises | Promise::reference_bits;
  if (split) k.info.accuracy.constant += 2;  // as in kernel()
  k.state = state;
  k.supports = supports<G, split>;
  k.cost = cost<G, split>;
  if (split)
    k.workspace = [](const Kernel<Gradient>&, const Gradient& p, const Plan&) {
      return with_cut<G>(
          p.outputs, [&]<class C>(C) { return WorkspaceSize{.bytes = bytes_of_parts<G>(p, grid_of<C>(p, true).slices)}; });
    };
  k.run = text_run<G, split>;
  return k;
}

// Visits the functor whose element type and functions are those of `facts`.
template <class Visit>
auto with_text(const detail::TextGradientFacts& facts, const Visit& visit) {
  const auto with = [&]<class E>() {
    return facts.has_long_operations ? visit.template operator()<TextFunctor<E, true>>()
                                     : visit.template operator()<TextFunctor<E, false>>();
  };
  switch (facts.element) {
    case Scalar::f64: return with.template operator()<double>();
    case Scalar::f16: return with.template operator()<half>();
    case Scalar::bf16: return with.template operator()<bfloat16>();
    case Scalar::i32: return with.template operator()<std::int32_t>();
    case Scalar::i64: return with.template operator()<std::int64_t>();
    default: return with.template operator()<float>();
  }
}

}  // namespace

/// The kernels of a functor from text. Each compiles its CUDA kernels when a call first needs them.
std::vector<Kernel<Gradient>> text_kernels(const detail::TextGradientFacts& facts, const detail::TextCompiler& compile);
std::vector<Kernel<Gradient>> text_kernels(const detail::TextGradientFacts& facts, const detail::TextCompiler& compile) {
  return with_text(facts, [&]<class G>() {
    const auto state = std::make_shared<TextState>(facts, compile, text_layout<G>);
    std::vector<Kernel<Gradient>> list{text_kernel<G, false>(state)};
    if (facts.joins) list.push_back(text_kernel<G, true>(state));
    return list;
  });
}

/// Compiles all CUDA kernels of the functor of which `kernel` is one, for a device.
void compile_text_kernels(const Kernel<Gradient>& kernel, const Execution& execution);
void compile_text_kernels(const Kernel<Gradient>& kernel, const Execution& execution) {
  TextState& state = state_of(kernel);
  const auto [first, count] = with_text(state.facts, [&]<class G>() {
    return std::pair(first_text_kernel<G>, text_kernel_count<G> - (state.facts.joins ? 0 : 1));
  });
  cuda::in_parallel(static_cast<std::size_t>(count),
                    [&](std::size_t i) { state.function(first + static_cast<int>(i), execution); });
}

}  // namespace rigel::backends::gradient
