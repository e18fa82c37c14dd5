// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference of contract_gradient(): one work item computes one output Out(l,o,n,m), with k ascending and one accumulator. It
// defines the right result on every execution space, and is not meant to be fast.
#pragma once

#include <rigel/card.hpp>
#include <rigel/cpu.hpp>
#include <rigel/detail/call.hpp>
#include <rigel/detail/gradient.hpp>

#include <algorithm>

namespace rigel::backends::reference {

// Of internal linkage for the reason given at contract() in contract.hpp.
template <class G, class Exec>
static void gradient(const Exec& exec, const std::string& label, const detail::GradientArguments<G>& g) {
  using A = typename G::accumulator;
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(
      label, detail::by_argument(Policy(exec, 0, g.batch * g.outputs * g.n * g.m)), KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t m = i % g.m, n = i / g.m % g.n, o = i / g.m / g.n % g.outputs, l = i / g.m / g.n / g.outputs;
        const G functor = detail::functor_at(g.functor, l);
        const A d = static_cast<A>(g.d.at(l, n, m));
        A x = g.start(functor, l, o, n, m);
        for (std::int64_t k = 0; k < g.k; ++k)
          x = functor.accumulate(
              x, static_cast<A>(g.c.at(l, o, k)),
              static_cast<A>(functor.multiply(d, static_cast<A>(g.b.at(l, n, k)), static_cast<A>(g.a.at(l, k, m)))));
        g.store(functor, x, l, o, n, m);
      });
}

/// The reference for one functor, on the spaces of the list.
template <class G, class Spaces>
Kernel<Gradient> gradient_kernel() {
  Kernel<Gradient> k;
  k.info = detail::gradient_info<G>("reference", {}, detail::bits_of(Spaces{}));
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  // Each output evaluates multiply() again. Cycles per term of a host's thread; on a GPU seconds per term of a multiprocessor, by some 20
  // instructions, and per k of a chain, which waits for memory.
  k.cost = [](const Kernel<Gradient>&, const Gradient& p, Plan&) {
    const double terms = detail::evaluations(p) * static_cast<double>(p.outputs);
    if (p.execution.space == Space::cuda) {
      constexpr double waits = 3.3e-6;  // seconds after a launch, on an H200
      constexpr detail::Unit unit = sizeof(typename G::accumulator) > 4 ? detail::Unit::of_doubles : detail::Unit::of_floats;
      return card_of(p.execution).launch_seconds + waits * detail::slowness(p.execution) +
             detail::slowness(p.execution, unit) *
                 (static_cast<double>(p.k) * 9e-8 +
                  terms * (detail::takes_powers<G> ? 5e-10 : 1e-10) / std::max(p.execution.multiprocessors, 1));
    }
    const Cpu& cpu = cpu_of(p.execution);
    constexpr double term = detail::takes_powers<G> ? 40 : 10;  // cycles of a thread
    return cpu.launch_seconds + cpu.seconds(terms * term / p.execution.concurrency);
  };
  k.run = [](const Kernel<Gradient>& kernel, const Gradient& p, const Plan&, const Workspace&) {
    detail::with_instance(Spaces{}, p.execution, [&](const auto& exec) {
      gradient(exec, "rigel::gradient/" + kernel.info.name, detail::gradient_arguments<G>(p));
    });
  };
  return k;
}

}  // namespace rigel::backends::reference
