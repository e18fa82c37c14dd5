// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host family's kernels of contract_gradient(), made from loops that were compiled for one level. For a user's functor the loop
// is instantiated here, for the instruction set of the user's translation unit.
#pragma once

#include <rigel/backends/host/gradient_work.hpp>
#include <rigel/cpu.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/workspace.hpp>

namespace rigel::backends::host {

template <class Level, class G>
struct InstantiatedGradient {
  static const GradientLoop& get() { return gradient_loop<Level, G>; }
};

/// Predicted seconds of a loop of accumulators A with vectors of `vector_bytes`, whose multiply() takes powers or the like.
template <class A>
double gradient_seconds(const Gradient& p, int vector_bytes, bool takes_powers) {
  const Cpu& cpu = cpu_of(p.execution);
  constexpr double of_vector = 0.375;  // of the speed of a step on vectors
  const double of_cycle = of_vector * cpu.vectors(vector_bytes) * vector_bytes / sizeof(A);  // terms of a thread
  const double terms = detail::evaluations(p) * (static_cast<double>(p.outputs) + (takes_powers ? 30 : 3));
  return 2 * cpu.launch_seconds + cpu.seconds(terms / of_cycle / p.execution.concurrency);
}
inline WorkspaceSize gradient_workspace(const Gradient& p, const GradientLoop& loop) {
  const GradientGrid grid = gradient_grid(p, loop.geometry);
  return {.bytes = grid.scratch() * static_cast<std::size_t>(grid.workers)};
}
/// Runs a loop, whose arguments these are, on a host space of the list. It is complete when this returns, as host launches are.
template <class Spaces>
void run_gradient(const std::string& kernel, const Gradient& p, const GradientLoop& loop, const void* arguments,
                  const Workspace& workspace) {
  const GradientGrid grid = gradient_grid(p, loop.geometry);
  detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Static>, Kokkos::IndexType<int>>;
    Kokkos::parallel_for("rigel::gradient/" + kernel, Policy(exec, 0, grid.workers, Kokkos::ChunkSize(1)),
                         [work = loop.work, arguments, cut = &grid, base = workspace.data](const int worker) {
                           work(arguments, *cut, worker,
                                static_cast<std::byte*>(base) + static_cast<std::size_t>(worker) * cut->scratch());
                         });
  });
}

/// The kernel of functor G at a level, whose loop `Source::get()` returns, on host spaces of the list.
template <class Level, class G, class Source, class Spaces>
Kernel<Gradient> gradient_kernel() {
  Kernel<Gradient> k;
  k.info = detail::gradient_info<G>("host", Level::name, detail::bits_of(Spaces{}));
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.bit_class = std::string("host.") + Level::name;
  // Powers of vectors are not those of the C library (rigel/elementary.hpp).
  if (detail::takes_powers<G>)
    k.info.accuracy.constant += 18;
  else
    k.info.promises = k.info.promises | Promise::reference_bits;
  k.info.tile = {Source::get().geometry.lanes, 1, 0};
  k.cost = [](const Kernel<Gradient>&, const Gradient& p, Plan&) {
    return gradient_seconds<typename G::accumulator>(p, Level::vector_bytes, detail::takes_powers<G>);
  };
  k.workspace = [](const Kernel<Gradient>&, const Gradient& p, const Plan&) { return gradient_workspace(p, Source::get()); };
  k.run = [](const Kernel<Gradient>& kernel, const Gradient& p, const Plan&, const Workspace& workspace) {
    const detail::GradientArguments<G> arguments = detail::gradient_arguments<G>(p);
    run_gradient<Spaces>(kernel.info.name, p, Source::get(), &arguments, workspace);
  };
  return k;
}

}  // namespace rigel::backends::host
