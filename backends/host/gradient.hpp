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
    const Cpu& cpu = cpu_of(p.execution);
    constexpr double of_vector = 0.375;  // of the speed of a step on vectors
    const double of_cycle = of_vector * cpu.vectors(Level::vector_bytes) * Level::vector_bytes /
                            sizeof(typename G::accumulator);  // terms of a thread
    const double terms = detail::evaluations(p) * (static_cast<double>(p.outputs) + (detail::takes_powers<G> ? 30 : 3));
    return 2 * cpu.launch_seconds + cpu.seconds(terms / of_cycle / p.execution.concurrency);
  };
  k.workspace = [](const Kernel<Gradient>&, const Gradient& p, const Plan&) {
    const GradientGrid grid = gradient_grid(p, Source::get().geometry);
    return WorkspaceSize{.bytes = grid.scratch() * static_cast<std::size_t>(grid.workers)};
  };
  k.run = [](const Kernel<Gradient>& kernel, const Gradient& p, const Plan&, const Workspace& workspace) {
    const detail::GradientArguments<G> arguments = detail::gradient_arguments<G>(p);
    const GradientGrid grid = gradient_grid(p, Source::get().geometry);
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
      using Policy = Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Static>, Kokkos::IndexType<int>>;
      // A host launch is complete when Kokkos returns from it, so the pointers stay valid.
      Kokkos::parallel_for(
          "rigel::gradient/" + kernel.info.name, Policy(exec, 0, grid.workers, Kokkos::ChunkSize(1)),
          [work = Source::get().work, g = &arguments, cut = &grid, base = workspace.data](const int worker) {
            work(g, *cut, worker, static_cast<std::byte*>(base) + static_cast<std::size_t>(worker) * cut->scratch());
          });
    });
  };
  return k;
}

}  // namespace rigel::backends::host
