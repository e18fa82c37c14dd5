// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The portable family's kernels for a semiring, on any execution space, in Kokkos alone: facts, predicted times, choice of a
// shape, launch. They serve what no tuned family covers.
#pragma once

#include <rigel/backends/portable/host.hpp>
#include <rigel/backends/portable/narrow.hpp>
#include <rigel/backends/portable/split_k.hpp>
#include <rigel/backends/portable/tiles.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/kernel.hpp>

#include <cmath>
#include <vector>

namespace rigel::backends::portable {

/// Those execution spaces of a list that are not the host's.
template <class List>
struct devices_among;
template <class... Exec>
struct devices_among<type_list<Exec...>> {
  using type =
      typename detail::concatenated<type_list<>, std::conditional_t<on_host<Exec>, type_list<>, type_list<Exec>>...>::type;
};
template <class List>
using devices_of = typename devices_among<List>::type;

/// Multiprocessors, or what is like them.
inline double multiprocessors_of(const Contraction& p) {
  constexpr int threads_each = 2048;
  const Execution& e = p.execution;
  return std::max(e.multiprocessors > 0 ? e.multiprocessors : e.concurrency / threads_each, 1);
}

/// Seconds in which memory brings both operands and takes C, at an H200's rate.
inline double memory_seconds(const Contraction& p) {
  constexpr double bandwidth = 4.1e12;
  const auto bytes = [&](const Operand& o) {
    return static_cast<double>(o.batch_stride == 0 ? 1 : p.batch) * static_cast<double>(o.rows) *
           static_cast<double>(o.columns) * static_cast<double>(o.size);
  };
  return (bytes(p.a) + bytes(p.b) + bytes(p.c)) / bandwidth;
}

// Predicted seconds on a GPU, with constants for an H200.
constexpr double launch_seconds = 5e-6;

/// Pairs per second of a multiprocessor whose threads hold 8 × 8 outputs each.
template <class S, class Step>
constexpr double pairs_per_second() {
  constexpr bool wide = sizeof(operand_t<S>) > 4;
  if constexpr (std::is_same_v<Step, PowerStep>)
    return 1.1e10;
  else if constexpr (is_transcendental<S> && !std::is_arithmetic_v<typename S::accumulator>)
    return wide ? 1.6e9 : 5e9;  // exponentials
  else if constexpr (is_transcendental<S>)
    return wide ? 0.8e9 : 3e9;  // powers
  else
    return 7e10 / words_of<S>;
}

/// The multiprocessor that gets the most tiles computes them `teams` at a time. Partial tiles take as long as full ones.
template <class S, class Shape, class Step>
double tiles_seconds(const Contraction& p) {
  constexpr double area = Shape::m * Shape::n, outputs = Shape::outputs_m * Shape::outputs_n;
  constexpr double efficiency = is_transcendental<S> ? 1 : outputs / (outputs + 4), fill_and_store = 3e-6;
  const double tiles = static_cast<double>(p.batch) * std::ceil(static_cast<double>(p.m) / Shape::m) *
                       std::ceil(static_cast<double>(p.n) / Shape::n);
  const double each = std::ceil(tiles / multiprocessors_of(p)), rounds = std::ceil(each / Shape::teams);
  const double last = each - (rounds - 1) * Shape::teams;  // tiles of the last round
  const double busy = 0.4 + 0.6 * last / Shape::teams;
  const double tile = static_cast<double>(p.k) * area / (pairs_per_second<S, Step>() * efficiency);
  return launch_seconds + tile * ((rounds - 1) * Shape::teams + last / busy) + rounds * fill_and_store;
}

/// A thread's step is a few instructions and takes some clocks before the next one can begin; to copy an element takes dozens.
template <class S>
double narrow_seconds(const Contraction& p, NarrowShape shape) {
  constexpr double issued_per_second = 4 * 32 * 1.7e9, resident_threads = 2048, latency = 25e-9, wait = 1.5e-6;
  constexpr double copy = 25, of_step = is_transcendental<S> ? issued_per_second / pairs_per_second<S, ReferenceStep>() : 6;
  const double threads = 1 << shape.threads(), lines = shape.lines_a() + shape.lines_b();
  const double teams = static_cast<double>(shape.teams(p)), k = static_cast<double>(std::max<std::int64_t>(p.k, 1));
  const double slabs = std::ceil(k / (1 << shape.depth));
  const double throughput = teams * k * (threads * of_step + lines * copy) / (issued_per_second * multiprocessors_of(p));
  const double rounds = std::ceil(teams / (multiprocessors_of(p) * std::min(resident_threads / threads, 32.)));
  const double waiting = rounds * (slabs * wait + k * std::max(latency, of_step / 1.7e9 * 4) + wait);
  return launch_seconds + std::max({throughput, waiting, memory_seconds(p)});
}

template <class S>
double split_k_seconds(const Contraction& p) {
  constexpr double issued_per_second = 4 * 32 * 1.7e9, resident = 4, wait = 0.3e-6, join = 5e-6;
  constexpr double of_step = is_transcendental<S> ? issued_per_second / pairs_per_second<S, ReferenceStep>() : 6;
  const double teams = static_cast<double>(p.batch * SplitK::tiles_m(p) * SplitK::tiles_n(p)), k = static_cast<double>(p.k);
  const double steps = std::ceil(k / SplitK::threads);
  const double throughput = teams * k * (SplitK::outputs * (of_step + 10)) / (issued_per_second * multiprocessors_of(p));
  const double rounds = std::ceil(teams / (multiprocessors_of(p) * resident));
  const double waiting = rounds * (steps * std::max(wait, SplitK::outputs * of_step / 1.7e9 * 2) + join);
  return launch_seconds + std::max({throughput, waiting, memory_seconds(p)});
}

/// Facts and promises of one chain in ascending k.
template <class S, class Finish, class Spaces>
Kernel<Contraction> chain_kernel(std::string_view variant) {
  Kernel<Contraction> k;
  k.info = detail::info_of<S>("portable", variant, {}, detail::bits_of(Spaces{}));
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = detail::chain_accuracy<S>();
  k.supports = detail::supports_by<detail::finish_supports<Finish>>;
  return k;
}

/// Calls visit.operator()<Shape>() with the tile that is predicted to be faster.
template <class Exec, class S, class Step, class Visit>
void with_shape(const Contraction& p, const Visit& visit) {
  using Large = LargeShape<Exec, S>;
  using Small = SmallShape<Exec, S>;
  if (tiles_seconds<S, Large, Step>(p) <= tiles_seconds<S, Small, Step>(p))
    visit.template operator()<Large>();
  else
    visit.template operator()<Small>();
}

template <class S, class Step, class Devices>
double device_seconds(const Contraction& p) {
  double seconds = 0;
  detail::with_instance(Devices{}, p.execution, [&]<class Exec>(const Exec&) {
    with_shape<Exec, S, Step>(p, [&]<class Shape>() { seconds = tiles_seconds<S, Shape, Step>(p); });
  });
  return std::max(seconds, launch_seconds + memory_seconds(p));
}
template <class S, class Finish, class Step, class Exec>
void run_tiles(const Exec& exec, const std::string& label, const Contraction& p) {
  with_shape<Exec, S, Step>(
      p, [&]<class Shape>() { contract_tiles<Shape, Step>(exec, label, detail::arguments_of<S, Finish>(p)); });
}

template <class S>
NarrowShape narrow_shape_of(const Contraction& p) {
  return narrow_shape(p, sizeof(word_of<operand_t<S>>));
}

template <class Devices>
bool is_device(const Contraction& p) {
  return (detail::bits_of(Devices{}) & bit(p.execution.space)) != 0;
}

/// Tiles, on the spaces of the list; on devices the narrow kernel's, if slabs of larger tiles would not fit.
template <class S, class Finish, class Spaces>
Kernel<Contraction> tiles_kernel() {
  using Devices = devices_of<Spaces>;
  Kernel<Contraction> k = chain_kernel<S, Finish, Spaces>("tiles");
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) {
    constexpr double pairs_per_host_thread = 2e9;
    if (!is_device<Devices>(p)) return detail::host_seconds(p, pairs_per_host_thread / (is_transcendental<S> ? 20 : 1));
    if constexpr (has_tiles<S>)
      return device_seconds<S, ReferenceStep, Devices>(p);
    else
      return narrow_seconds<S>(p, narrow_shape_of<S>(p));
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
      const std::string label = detail::label_of(kernel.info);
      if constexpr (on_host<Exec>)
        contract_on_host(exec, label, detail::arguments_of<S, Finish>(p));
      else if constexpr (has_tiles<S>)
        run_tiles<S, Finish, ReferenceStep>(exec, label, p);
      else
        contract_narrow<S, Finish>(exec, label, p, narrow_shape_of<S>(p));
    });
  };
  return k;
}

/// Sums of powers in float, by PowerStep.
template <class S, class Finish, class Devices>
Kernel<Contraction> powers_kernel() {
  Kernel<Contraction> k = chain_kernel<S, Finish, Devices>("powers");
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.bit_class = "portable.powers";
  k.info.accuracy = {120, 1};  // for p ≤ 8: (4 + 3p + 0.7·126)·u
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) { return device_seconds<S, PowerStep, Devices>(p); };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
    detail::with_instance(Devices{}, p.execution, [&](const auto& exec) {
      run_tiles<S, Finish, PowerStep>(exec, detail::label_of(kernel.info), p);
    });
  };
  return k;
}

template <class S, class Finish, class Devices>
Kernel<Contraction> narrow_kernel() {
  Kernel<Contraction> k = chain_kernel<S, Finish, Devices>("narrow");
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
    const NarrowShape shape = narrow_shape_of<S>(p);
    plan.keep(shape);
    return narrow_seconds<S>(p, shape);
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace&) {
    detail::with_instance(Devices{}, p.execution, [&](const auto& exec) {
      contract_narrow<S, Finish>(exec, detail::label_of(kernel.info), p, plan.get<NarrowShape>());
    });
  };
  return k;
}

template <class S, class Finish, class Devices>
Kernel<Contraction> split_k_kernel() {
  Kernel<Contraction> k = chain_kernel<S, Finish, Devices>("split_k");
  if constexpr (!is_exact<S>) {
    constexpr double joins = 8;  // of 256 sums
    k.info.promises = Promise::repeatable | Promise::batch_invariant;
    k.info.bit_class = "portable.split_k";
    // Additions in any order keep the bound of a chain; to join two log_sums rounds six times.
    if constexpr (is_transcendental<S>) k.info.accuracy.constant += 6 * joins;
  }
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) { return split_k_seconds<S>(p); };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
    detail::with_instance(Devices{}, p.execution,
                          [&](const auto& exec) { contract_split_k<S, Finish>(exec, detail::label_of(kernel.info), p); });
  };
  return k;
}

/// Sums of powers whose operands are floats.
template <class S>
inline constexpr bool sums_powers = false;
template <class E>
inline constexpr bool sums_powers<lp<E, float>> = true;

/// Calls add(kernel) for each kernel of one semiring on the spaces of the list, that for tiles first.
template <class S, class Finish, class Spaces, class Add>
void add_kernels(const Add& add) {
  using Devices = devices_of<Spaces>;
  add(tiles_kernel<S, Finish, Spaces>());
  if constexpr (!std::is_same_v<Devices, type_list<>>) {
    if constexpr (sums_powers<S>) add(powers_kernel<S, Finish, Devices>());
    if constexpr (has_tiles<S>) add(narrow_kernel<S, Finish, Devices>());
    if constexpr (splits_k<S>) add(split_k_kernel<S, Finish, Devices>());
  }
}

}  // namespace rigel::backends::portable
