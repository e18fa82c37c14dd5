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

/// The kernel of semiring S at a level, whose loop `Source::get()` returns.
template <class Level, class S, class Finish, class Source>
Kernel<Contraction> kernel_from(Spaces spaces) {
  Kernel<Contraction> k;
  k.info = detail::info_of<S>("host", Level::name, {}, spaces);
  k.info.tile = {Source::get().geometry.rows, Source::get().geometry.columns, 0};
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.bit_class = std::string("host.") + Level::name;
  k.info.accuracy = detail::chain_accuracy<S>();
  if (!is_transcendental<S> && !has_regular_step<Level, S>) k.info.promises = k.info.promises | Promise::reference_bits;
  if (has_regular_step<Level, S>) k.info.accuracy.constant += 2;  // a reciprocal
  if (is_transcendental<S>)
    k.info.accuracy.constant += 18;  // the error of a power for p ≤ 8 (rigel/elementary.hpp), less two roundings of ⊗
  k.supports = detail::supports_by<detail::finish_supports<Finish>>;
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) {
    // Pairs per second and thread for f32; a transcendental semiring takes several times as long.
    const double rate = 2e10 * Level::vector_bytes / 64 / (is_transcendental<S> ? 4 : 1);
    return detail::host_seconds(p, rate * 4 / sizeof(operand_t<computed_t<S>>));
  };
  k.workspace = [](const Kernel<Contraction>&, const Contraction& p, const Plan&) -> WorkspaceSize {
    return {.bytes = grid_of(p, Source::get().geometry).workspace()};
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace& workspace) {
    const auto arguments = detail::arguments_of<computed_t<S>, Finish>(p);
    launch(p.execution, detail::label_of(kernel.info), Source::get(), &arguments, grid_of(p, Source::get().geometry),
           workspace.data);
  };
  return k;
}

/// The host kernel for a semiring, on the spaces of the list.
template <class S, class Finish, class Spaces>
Kernel<Contraction> kernel() {
  return kernel_from<native, S, Finish, Instantiated<native, S, Finish>>(detail::bits_of(Spaces{}));
}

}  // namespace rigel::backends::host
