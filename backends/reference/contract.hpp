// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference: C(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ), one work item for each output, k ascending, one
// accumulator. It defines what is right, on every execution space; it is not meant to be fast.
#pragma once

#include <rigel/detail/arguments.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/kernel.hpp>

namespace rigel::backends::reference {

template <class S, class Finish, class Exec>
void contract(const Exec& exec, const std::string& label, const detail::Arguments<S, Finish>& g) {
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(
      label, Policy(exec, 0, g.batch * g.m * g.n), KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t n = i % g.n, m = i / g.n % g.m, l = i / g.n / g.m;
        const S s = g.semiring(l);
        typename S::accumulator x = g.start(s, l, m, n);
        for (std::int64_t k = 0; k < g.k; ++k)
          x = step(s, x, static_cast<operand_t<S>>(g.a.at(l, m, k)), static_cast<operand_t<S>>(g.b.at(l, k, n)), k);
        g.store(s, x, l, m, n);
      });
}

/// The reference for one semiring, on the spaces of the list.
template <class S, class Finish, class Spaces>
Kernel kernel() {
  Kernel k;
  k.info = detail::info_of<S>("reference", {}, detail::bits_of(Spaces{}));
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = detail::chain_accuracy<S>();
  k.supports = detail::finish_supports<Finish>;
  // Pairs per second and thread on a host, and on a GPU, as measured; far behind every other family.
  k.cost = [](const KernelInfo&, const Problem& p) {
    const double chain = p.execution.space == Space::cuda ? 4e-7 * static_cast<double>(p.k) : 0;
    return chain + detail::predicted_seconds(p, 2e8, is_transcendental<S> ? 1e11 : 3e11);
  };
  k.run = [](const KernelInfo& info, const Problem& p, void*) {
    detail::with_instance(Spaces{}, p.execution, [&](const auto& exec) {
      contract(exec, detail::label_of(info), detail::arguments_of<S, Finish>(p));
    });
  };
  return k;
}

}  // namespace rigel::backends::reference
