// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host family's kernel record for a semiring, from a loop that was compiled for one level. For a user's functor the
// loop is instantiated here, for the instruction set of the user's own translation unit.
#pragma once

#include <rigel/backends/host/finish_loops.hpp>
#include <rigel/backends/host/launch.hpp>
#include <rigel/backends/host/pack_loops.hpp>
#include <rigel/backends/host/work.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/kernel.hpp>

namespace rigel::backends::host {

/// Gives the Loop of one semiring at a level, here from the header.
template <class Level, class S, class Finish>
struct Instantiated {
  static const Loop& get() { return loop<Level, S, Finish>; }
};

/// The kernel of semiring S at a level, whose loop `Source::get()` returns.
template <class Level, class S, class Finish, class Source>
Kernel kernel_from(Spaces spaces) {
  Kernel k;
  k.info = detail::info_of<S>("host", Level::name, spaces);
  k.info.tile = {Source::get().geometry.rows, Source::get().geometry.columns, 0};
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = detail::chain_accuracy<S>();
  if (!is_transcendental<S>)
    k.info.promises = k.info.promises | Promise::reference_bits;
  else
    k.info.accuracy.constant += 18;  // of a power with p ≤ 8, rigel/elementary.hpp
  k.supports = detail::finish_supports<Finish>;
  k.cost = [](const KernelInfo&, const Problem& p) {
    // Pairs per second and thread, on f32; a transcendental functor takes several times as long.
    const double rate = 2e10 * Level::vector_bytes / 64 / (is_transcendental<S> ? 4 : 1);
    return detail::predicted_seconds(p, rate * 4 / sizeof(operand_t<S>), 0);
  };
  k.workspace = [](const KernelInfo&, const Problem& p) { return grid_of(p, Source::get().geometry).workspace(); };
  k.run = [](const KernelInfo& info, const Problem& p, void* workspace) {
    const auto arguments = detail::arguments_of<S, Finish>(p);
    launch(p.execution, detail::label_of(info), Source::get(), &arguments, grid_of(p, Source::get().geometry), workspace);
  };
  return k;
}

/// The host kernel for a semiring, on the spaces of the list.
template <class S, class Finish, class Spaces>
Kernel kernel() {
  return kernel_from<native, S, Finish, Instantiated<native, S, Finish>>(detail::bits_of(Spaces{}));
}

}  // namespace rigel::backends::host
