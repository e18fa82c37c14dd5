// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference: C(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ). One work item computes one output, with k ascending and one
// accumulator. It defines the right result on every execution space, and is not meant to be fast.
#pragma once

#include <rigel/card.hpp>
#include <rigel/cpu.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/detail/call.hpp>
#include <rigel/detail/kernel.hpp>

#include <algorithm>

namespace rigel::backends::reference {

// Of internal linkage, as are then Kokkos's functions for this functor: Clang inlines those that are called once, however long they
// are. Otherwise each thread of a GPU would copy the arguments to local memory.
template <class S, class Finish, class Exec>
static void contract(const Exec& exec, const std::string& label, const detail::Arguments<S, Finish>& g) {
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(
      label, detail::by_argument(Policy(exec, 0, g.batch * g.m * g.n)), KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t n = i % g.n, m = i / g.n % g.m, l = i / g.n / g.m;
        const S s = g.semiring(l);
        typename S::accumulator x = g.start(s, l, m, n);
        for (std::int64_t k = 0; k < g.k; ++k)
          x = step(s, x, static_cast<operand_t<S>>(g.a.at(l, m, k)), static_cast<operand_t<S>>(g.b.at(l, k, n)), k);
        g.store(s, x, l, m, n);
      });
}

/// Predicted seconds on a GPU, with constants measured on an H200: a launch, and the longer of two times, which grow
/// with how slow the card's unit for the steps is.
///   - Throughput: for each k-step of a warp, a multiprocessor spends time on its operations and on the cache lines that hold
///     the operands of 32 neighbouring outputs; at the end it spends time on the cache lines of C.
///   - Latency: a thread waits at each of its steps, for the cache, or for memory if the operands do not fit into the cache.
template <class S>
double device_seconds(const Contraction& p) {
  constexpr double waits = 1.3e-6, step = 1.6e-9, line = 2e-10, output = 29e-9,
                   output_line = 7.8e-10;  // after a launch; per warp
  using Accumulator = typename S::accumulator;
  constexpr double wide = sizeof(operand_t<S>) > 4 ? 1.9e-9 : 0;
  constexpr double narrow = std::is_same_v<Accumulator, bfloat16> ? 5e-9 : sizeof(Accumulator) < 4 ? 1.8e-9 : 0;
  constexpr double structs = std::is_class_v<Accumulator> && !ShortFloat<Accumulator> && !is_transcendental<S> ? 5e-9 : 0;
  constexpr double transcendental = !is_transcendental<S> ? 0 : sizeof(operand_t<S>) > 4 ? 24.5e-9 : 7.2e-9;
  constexpr double of_division = sizeof(operand_t<S>) > 4 ? 8e-9 : 3e-9;  // computed from counts of instructions
  constexpr double division = divides<S> ? of_division : 0;
  constexpr double cached = sizeof(typename S::element) == 1 ? 4e-8 : 6e-8,
                   uncached = 17e-8;            // seconds per step of a thread
  constexpr double cache = 4e7, resident = 64;  // bytes; resident warps per multiprocessor
  const auto lines_of = [](double count, std::int64_t stride, std::size_t size) {
    return std::clamp(count * static_cast<double>(stride) * static_cast<double>(size) / 128, 1.0, count);
  };
  const auto number = [](std::int64_t i) { return static_cast<double>(i); };
  const auto bytes_of = [&](const Operand& o) {
    return number(o.batch_stride == 0 ? 1 : o.batches) * number(o.rows) * number(o.columns) * static_cast<double>(o.size);
  };
  const double columns = std::clamp(number(p.n), 1.0, 32.0),
               rows = std::clamp(32 / columns, 1.0, std::max(number(p.m), 1.0));
  const double a = lines_of(rows, p.a.row_stride, p.a.size), b = lines_of(columns, p.b.column_stride, p.b.size);
  const double c =
      p.n > 1 ? rows * lines_of(columns, p.c.column_stride, p.c.size) : lines_of(rows, p.c.row_stride, p.c.size);
  const double warps = number(p.batch) * number(p.m) * number(p.n) / 32 / std::max(p.execution.multiprocessors, 1);
  const double k = number(p.k), wait = bytes_of(p.a) + bytes_of(p.b) > cache ? uncached : cached;
  constexpr bool of_doubles = std::is_same_v<operand_t<S>, double> || std::is_same_v<Accumulator, double>;
  constexpr detail::Unit unit = of_doubles                         ? detail::Unit::of_doubles
                                : std::is_integral_v<operand_t<S>> ? detail::Unit::of_integers
                                                                   : detail::Unit::of_floats;
  return card_of(p.execution).launch_seconds + waits * detail::slowness(p.execution) +
         detail::slowness(p.execution, unit) *
             std::max(warps * (k * (step + line * (a + b) + wide + narrow + structs + transcendental + division) + output +
                               output_line * c),
                      std::max(warps / resident, 1.0) * k * (wait + 8 * transcendental));
}

/// The reference for one semiring, on the spaces of the list.
template <class S, class Finish, class Spaces>
Kernel<Contraction> kernel() {
  Kernel<Contraction> k;
  k.info = detail::info_of<S>("reference", {}, {}, detail::bits_of(Spaces{}));
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = detail::chain_accuracy<S>();
  k.supports = detail::supports_by<detail::finish_supports<Finish>>;
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) {
    return p.execution.space == Space::cuda ? device_seconds<S>(p) : detail::seconds_on_host(p, 0.1);
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
    detail::with_instance(Spaces{}, p.execution, [&](const auto& exec) {
      contract(exec, detail::label_of(kernel.info), detail::arguments_of<S, Finish>(p));
    });
  };
  return k;
}

}  // namespace rigel::backends::reference
