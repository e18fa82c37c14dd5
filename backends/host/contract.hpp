// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host family's Kernel for a semiring, made from a loop that was compiled for one level. For a user's functor the loop is
// instantiated here, for the instruction set of the user's translation unit.
#pragma once

#include <rigel/backends/host/finish_loops.hpp>
#include <rigel/backends/host/launch.hpp>
#include <rigel/backends/host/pack_loops.hpp>
#include <rigel/backends/host/work.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/kernel.hpp>

namespace rigel::backends::host {

/// Source of the Loop of one semiring at a level: here the header's template.
template <class Level, class S, class Finish>
struct Instantiated {
  static const Loop& get() { return loop<Level, S, Finish>; }
};

/// Sets what a kernel does that runs the loop of `Source::get()` in a way.
template <class S, class Finish, class Source>
void set_functions(Kernel<Contraction>& k) {
  k.supports = detail::supports_by<detail::finish_supports<Finish>>;
  k.workspace = [](const Kernel<Contraction>&, const Contraction& p, const Plan& plan) -> WorkspaceSize {
    return {.bytes = grid_of(plan.get<Way>(), p, Source::get().geometry).workspace()};
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace& workspace) {
    const auto arguments = detail::arguments_of<computed_t<S>, Finish>(p);
    const Loop& loop = Source::get();
    const Way way = plan.get<Way>();
    launch(p.execution, detail::label_of(kernel.info), loop.work[static_cast<std::size_t>(way)], &arguments,
           grid_of(way, p, loop.geometry), workspace.data);
  };
}

/// The kernel of semiring S at a level, whose loop `Source::get()` returns.
template <class Level, class S, class Finish, class Source>
Kernel<Contraction> kernel_from(Spaces spaces) {
  Kernel<Contraction> k;
  k.info = detail::info_of<S>("host", Level::name, {}, spaces);
  k.info.tile = {Source::get().geometry.rows, Source::get().geometry.columns, 0};
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.bit_class = std::string("host.") + Level::name;
  k.info.accuracy = detail::chain_accuracy<S>();
  if (!is_transcendental<S> && !rounds_regular_step<Level, S>) k.info.promises = k.info.promises | Promise::reference_bits;
  if (rounds_regular_step<Level, S>) k.info.accuracy.constant += 2;  // a reciprocal
  if (is_transcendental<S>)
    k.info.accuracy.constant += 18;  // the error of a power for p ≤ 8 (rigel/elementary.hpp), less two roundings of ⊗
  set_functions<S, Finish, Source>(k);
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
    const bool any_order =
        is_exact<S> && reorders<S> && detail::counts_exactly<S>(p) && !(p.accumulate && detail::exact_counts<S> > 0);
    const auto [way, seconds] = way_of(p, Source::get().geometry, any_order);
    plan.keep(way);
    return seconds;
  };
  return k;
}

/// The kernel for few outputs of a semiring whose ⊕ rounds: slices of K.
template <class Level, class S, class Finish, class Source>
Kernel<Contraction> slices_kernel_from(Spaces spaces) {
  Kernel<Contraction> k = kernel_from<Level, S, Finish, Source>(spaces);
  detail::set_variant(k.info, std::string("split_k.") + Level::name);
  k.info.tile = {slice_tile, slice_tile, 0};
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.bit_class = std::string("host.split_k.") + Level::name;
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
    plan.keep(Way::slices);
    return seconds_of(Way::slices, p, Source::get().geometry);
  };
  return k;
}

/// Calls add(kernel) for the kernels of a semiring at a level.
template <class Level, class S, class Finish, class Source, class Add>
void add_kernels_from(Spaces spaces, const Add& add) {
  add(kernel_from<Level, S, Finish, Source>(spaces));
  if constexpr (reorders<S> && !is_exact<S>) add(slices_kernel_from<Level, S, Finish, Source>(spaces));
}

/// The host kernels for a semiring, on the spaces of the list.
template <class S, class Finish, class Spaces, class Add>
void add_kernels(const Add& add) {
  add_kernels_from<native, S, Finish, Instantiated<native, S, Finish>>(detail::bits_of(Spaces{}), add);
}

}  // namespace rigel::backends::host
