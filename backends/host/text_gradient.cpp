// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host family's kernels of contract_gradient() for functors from text. This file is compiled for any processor, so it must not
// instantiate the loop of a level.
#include <rigel/backends/host/gradient.hpp>
#include <rigel/backends/host/runs.hpp>
#include <rigel/backends/host/text_gradient.hpp>

#include <optional>

namespace rigel::backends::host {

namespace {

/// What a kernel keeps.
struct State {
  GradientLoop loop;
  bool has_long_operations;
  std::shared_ptr<const void> code;
};
const State& state_of(const Kernel<Gradient>& kernel) { return *static_cast<const State*>(kernel.state.get()); }

// Calls use(arguments) with what a kernel gets. Views of hyperparameters are read now: hosts' spaces run one call after the other.
template <class G, class Use>
void with_arguments(const Gradient& p, const Use& use) {
  using A = typename G::accumulator;
  const auto& values = *static_cast<const detail::TextValues*>(p.functor_object);
  const std::vector<std::byte> numbers = values.read(detail::most_text_parameters * sizeof(A), 0, p.batch);
  const G functor{reinterpret_cast<const A*>(numbers.data()), values.differ() ? detail::most_text_parameters : 0};
  Gradient own = p;
  own.functor_object = &functor;
  use(detail::gradient_arguments<G>(own));
}

template <class Level, class G>
Kernel<Gradient> kernel_of(const detail::TextGradientFacts& facts, const detail::TextCode& code) {
  using A = typename G::accumulator;
  using Spaces = detail::compiled_host_spaces;
  Kernel<Gradient> k;
  k.info = detail::text_gradient_info<G>(facts, "host", Level::name, detail::bits_of(Spaces{}));
  k.info.promises = k.info.promises | Promise::batch_invariant;
  if (!facts.calls_functions) k.info.promises = k.info.promises | Promise::reference_bits;
  k.info.bit_class = std::string("host.") + Level::name;
  const GradientLoop loop{reinterpret_cast<decltype(GradientLoop::work)>(code.functions[0]),
                          GradientWorker<Level, G>::geometry};
  k.info.tile = {loop.geometry.lanes, 1, 0};
  k.state = std::make_shared<const State>(State{loop, facts.has_long_operations, code.code});
  k.cost = [](const Kernel<Gradient>& kernel, const Gradient& p, Plan&) {
    return gradient_seconds<A>(p, Level::vector_bytes, state_of(kernel).has_long_operations);
  };
  k.workspace = [](const Kernel<Gradient>& kernel, const Gradient& p, const Plan&) {
    return gradient_workspace(p, state_of(kernel).loop);
  };
  k.run = [](const Kernel<Gradient>& kernel, const Gradient& p, const Plan&, const Workspace& workspace) {
    with_arguments<G>(p, [&](const detail::GradientArguments<G>& arguments) {
      run_gradient<Spaces>(kernel.info.name, p, state_of(kernel).loop, &arguments, workspace);
    });
  };
  return k;
}

// The kernel of rigel_text_gradient_reference(), which runs on the thread of the call.
template <class G>
Kernel<Gradient> reference_of(const detail::TextGradientFacts& facts, const detail::TextCode& code) {
  Kernel<Gradient> k;
  k.info = detail::text_gradient_info<G>(facts, "reference", {}, detail::bits_of(detail::compiled_host_spaces{}));
  k.info.promises = k.info.promises | Promise::batch_invariant | Promise::reference_bits;
  k.info.bit_class = "reference";
  k.state = std::make_shared<const detail::TextCode>(code);
  k.cost = [](const Kernel<Gradient>&, const Gradient& p, Plan&) {
    return detail::evaluations(p) * static_cast<double>(p.outputs) * 1e-8;
  };
  k.run = [](const Kernel<Gradient>& kernel, const Gradient& p, const Plan&, const Workspace&) {
    using Compute = void (*)(const void*);
    const auto* const of = static_cast<const detail::TextCode*>(kernel.state.get());
    with_arguments<G>(
        p, [&](const detail::GradientArguments<G>& arguments) { reinterpret_cast<Compute>(of->functions[0])(&arguments); });
  };
  return k;
}

template <class Level, class E>
detail::TextGradientLoops loops_of() {
  using G = TextFunctor<Level, E>;
  constexpr int lanes = Level::vector_bytes / static_cast<int>(sizeof(typename G::accumulator));
  return {{Level::name,
           lanes,
           {"rigel_text_gradient", "rigel_text_gradient"},
           nullptr,
           text_gradient_layout<Level, G>,
           "gradient_"},
          &kernel_of<Level, G>,
          "rigel_text_gradient_reference",
          &reference_of<G>};
}

template <class Level>
detail::TextGradientLoops loops_of(Scalar element) {
  switch (element) {
    case Scalar::f64: return loops_of<Level, double>();
    case Scalar::f16: return loops_of<Level, half>();
    case Scalar::bf16: return loops_of<Level, bfloat16>();
    case Scalar::i32: return loops_of<Level, std::int32_t>();
    case Scalar::i64: return loops_of<Level, std::int64_t>();
    default: return loops_of<Level, float>();
  }
}

}  // namespace

/// The loop of the widest level that this processor runs, of those of this build.
std::optional<detail::TextGradientLoops> text_gradient_loops(Scalar element);
std::optional<detail::TextGradientLoops> text_gradient_loops(Scalar element) {
  return of_widest<detail::TextGradientLoops, RIGEL_HOST_LEVELS>([&]<class L>() { return loops_of<L>(element); });
}

}  // namespace rigel::backends::host
