// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The portable family's kernels for a semiring, on any execution space, in Kokkos alone: facts, predicted times, choice of a
// shape, launch. They serve what no tuned family covers.
#pragma once

#include <rigel/backends/portable/host.hpp>
#include <rigel/backends/portable/narrow.hpp>
#include <rigel/backends/portable/split_k.hpp>
#include <rigel/backends/portable/tiles.hpp>
#include <rigel/card.hpp>
#include <rigel/cpu.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/kernel.hpp>
#include <rigel/detail/waves.hpp>

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

/// Bytes per second that these kernels reach: those of memory, or what multiprocessors ask of it.
inline double bandwidth_of(const Execution& e) {
  constexpr double of_h200 = 2.5e12;
  return std::min(card_of(e).memory_bytes_per_second, of_h200 / detail::slowness(e));
}

/// Seconds in which memory brings both operands and takes C.
inline double memory_seconds(const Contraction& p) {
  const auto bytes = [&](const Operand& o) {
    return static_cast<double>(o.batch_stride == 0 ? 1 : p.batch) * static_cast<double>(o.rows) *
           static_cast<double>(o.columns) * static_cast<double>(o.size);
  };
  return (bytes(p.a) + bytes(p.b) + bytes(p.c)) / bandwidth_of(p.execution);
}

// Predicted seconds on a GPU. Constants are those of an H200, fitted to 705 measurements of these kernels (NOTES.md). Times of
// instructions grow with how slow the card's unit for them is, other times with its clock.
constexpr double issued_per_second = 4 * 32 * 1.7e9;  // instructions of threads, by a multiprocessor
constexpr double clock = 1.7e9;

/// A launch, with the first waits of its blocks.
inline double launch_seconds(const Execution& e) {
  constexpr double waits = 2.3e-6;
  return card_of(e).launch_seconds + waits * detail::slowness(e);
}

/// The unit that steps of S take most of.
template <class S>
inline constexpr detail::Unit unit_of =
    std::is_same_v<operand_t<S>, double> || std::is_same_v<typename S::accumulator, double> ? detail::Unit::of_doubles
    : std::is_integral_v<operand_t<S>>                                                      ? detail::Unit::of_integers
                                                                                            : detail::Unit::of_floats;

/// Whether ⊗ and ⊕ are minima or maxima both.
template <class S>
inline constexpr bool selects_twice = false;
template <class E, class A>
inline constexpr bool selects_twice<max_min<E, A>> = true;
template <class E, class A>
inline constexpr bool selects_twice<min_max<E, A>> = true;

/// Whether ⊗ takes the absolute value or the square of a difference.
template <class S>
inline constexpr bool measures = false;
template <class E, class A>
inline constexpr bool measures<l1<E, A>> = true;
template <class E, class A>
inline constexpr bool measures<l2_squared<E, A>> = true;
template <class E, class A>
inline constexpr bool measures<linf<E, A>> = true;
template <class S>
inline constexpr bool counts_differences = false;
template <class E, class A>
inline constexpr bool counts_differences<hamming<E, A>> = true;

/// Pairs per second of a multiprocessor whose threads hold 8 × 8 outputs each.
template <class S, class Chain>
constexpr double pairs_per_second() {
  using Accumulator = typename S::accumulator;
  constexpr bool wide = sizeof(operand_t<S>) > 4;
  if constexpr (std::is_same_v<Chain, PowerChain<S>>)
    return 1.15e10;
  else if constexpr (counts_bits<S>)
    return 1.5e10 * Chain::packed;
  else if constexpr (is_transcendental<S> && !std::is_arithmetic_v<Accumulator>)
    return wide ? 1.6e9 : 1.1e10;  // exponentials
  else if constexpr (is_transcendental<S>)
    return wide ? 0.6e9 : 3e9;  // powers
  else if constexpr (divides<S>)
    return wide ? 3.5e9 : 8e9;  // of float measured, of double computed from that and counts of instructions
  else if constexpr (ShortFloat<Accumulator> && std::is_same_v<typename Chain::Semiring, S>)
    return 1e10;
  else if constexpr (words_of<S> == 1)
    return (std::is_floating_point_v<Accumulator> || ShortFloat<Accumulator> ? 7.5e10 : 7e10) *
           (selects_twice<S> ? 0.7 : 1) * (std::is_integral_v<Accumulator> && measures<S> ? 0.7 : 1) *
           (std::is_integral_v<Accumulator> && counts_differences<S> ? 0.5 : 1);
  else if constexpr (std::is_same_v<Accumulator, double>)
    return is_selective<S> ? 1.3e10 : 4e10;
  else if constexpr (std::is_signed_v<Accumulator>)
    return 1.2e10;
  else
    return 4e10 / words_of<S>;
}

/// Instructions of a step by itself.
template <class S>
constexpr double instructions_of_step() {
  using Chain = ReferenceChain<S>;
  constexpr double light = 6 * words_of<S>;
  if constexpr (is_transcendental<S> || divides<S> || ShortFloat<typename Chain::Sum>)
    return issued_per_second / pairs_per_second<S, Chain>();
  else if constexpr (counts_bits<S>)
    return 2 * light;  // bits are counted at a quarter of the rate of logic
  else
    return light;
}

/// Tiles of one slice.
template <class Shape>
std::int64_t tiles_of(const Contraction& p) {
  return p.batch * ((p.m + Shape::m - 1) / Shape::m) * ((p.n + Shape::n - 1) / Shape::n);
}

/// Seconds of the second launch of `teams` teams, each of which joins the slices of a block. The host enqueues it while the first
/// one runs.
template <class S>
double join_seconds(const Contraction& p, Slices slices) {
  constexpr bool wide = sizeof(operand_t<S>) > 4;
  constexpr double tree = 4e-6 * (!is_transcendental<S> ? 1 : wide ? 4 : 1.5), resident = 8, cached_bytes_per_second = 2e12;
  const double rounds = std::ceil(static_cast<double>(SliceBlocks::of(p).count) / (multiprocessors_of(p) * resident));
  return (rounds * tree + static_cast<double>(slices_workspace<S>(p, slices)) / cached_bytes_per_second) *
         detail::slowness(p.execution);
}
inline double second_launch_seconds(const Execution& e) {
  constexpr double waits = 2.5e-6;
  return card_of(e).next_launch_seconds + waits * detail::slowness(e);
}

/// Seconds of an epilogue's steps on bits, in tiles.
inline double bits_seconds(const Contraction& p) {
  constexpr double output = 4.5e-10;  // of a multiprocessor
  if (!p.program || p.program->bit_steps() == 0) return 0;
  return output * static_cast<double>(p.batch * p.m) * static_cast<double>(p.n) / multiprocessors_of(p) *
         detail::slowness(p.execution);
}

/// The multiprocessor that gets the most tiles computes them `teams` at a time. A slab takes at least the time of its way from
/// memory. Partial tiles take as long as full ones.
template <class S, class Shape, class Chain>
double tiles_seconds(const Contraction& p, Slices slices) {
  constexpr double area = Shape::m * Shape::n, outputs = Shape::outputs_m * Shape::outputs_n;
  constexpr double efficiency = is_transcendental<S> ? 1 : outputs / (outputs + 4);
  constexpr double slab = words_of<S> > 1 ? 1.7e-6 : 1.3e-6, fill = 2.5e-6, store = 4e-8 * outputs * Shape::teams;
  const detail::Waves waves(static_cast<double>(tiles_of<Shape>(p) * slices.count), multiprocessors_of(p), Shape::teams);
  const double rounds = waves.rounds(), rest = waves.last();
  const double busy = 0.4 + 0.6 * rest / Shape::teams;
  const double k = static_cast<double>(slices.length);
  const double cycle = detail::slowness(p.execution);
  const double tile = k * area / (pairs_per_second<S, Chain>() * efficiency) * detail::slowness(p.execution, unit_of<S>),
               wait = std::ceil(k / (Shape::depth * Chain::packed)) * slab * cycle;
  const double first = (rounds - 1) * std::max(tile * Shape::teams, wait) + std::max(tile * rest / busy, wait) +
                       rounds * (fill + store) * cycle;
  return launch_seconds(p.execution) +
         (slices.count > 1 ? std::max(first, second_launch_seconds(p.execution)) + join_seconds<S>(p, slices) : first) +
         bits_seconds(p);
}

/// The longer of two times: of the instructions, and of the waits of one team after the other.
template <class S>
double narrow_seconds(const Contraction& p, NarrowShape shape) {
  constexpr double resident_threads = 2048, resident_teams = 32, step = instructions_of_step<S>();
  constexpr double copy = 60, wait_for_copy = 0.18e-6, wait = 1.5e-6, step_latency = std::max(25e-9, 4 * step / clock);
  const double threads = 1 << shape.threads(), lines = shape.lines_a() + shape.lines_b();
  const double teams = static_cast<double>(shape.teams(p)), k = static_cast<double>(std::max<std::int64_t>(p.k, 1));
  const double depth = std::min<double>(1 << shape.depth, k), slabs = std::ceil(k / depth);
  const double throughput = teams * k * (std::max(threads, 32.) * step + lines * copy) /
                            (issued_per_second * multiprocessors_of(p)) * detail::slowness(p.execution, unit_of<S>);
  const double rounds = std::ceil(teams / (multiprocessors_of(p) * std::min(resident_threads / threads, resident_teams)));
  const double waiting = rounds *
                         (slabs * (wait + std::ceil(lines * depth / threads) * wait_for_copy) + k * step_latency + wait) *
                         detail::slowness(p.execution);
  constexpr double over = 1.3;  // how much longer an H200 takes, the median of random problems where it matters
  return launch_seconds(p.execution) + over * std::max({throughput, waiting, memory_seconds(p)});
}

/// Whether neighbouring k lie in different sectors of memory.
inline bool is_scattered(std::int64_t k_stride, std::int64_t line_stride, const Operand& o) {
  constexpr std::int64_t sector = 32;
  return k_stride > line_stride && k_stride * static_cast<std::int64_t>(o.size) > sector;
}

/// As for narrow. Threads that read scattered k wait for more of memory, and take a sector of the cache for each k.
/// Chains of logarithms leave multiprocessors waiting, of which a tile's thread has more.
template <class S>
double split_k_seconds(const Contraction& p, Slices slices) {
  constexpr double chained = std::is_same_v<S, log_plus<typename S::element, float>> ? 3.3 : 1;
  constexpr double step = instructions_of_step<S>() * chained, outputs = SliceBlocks::outputs;
  constexpr double sector = 32, sector_bytes_per_second = 4e12, cache = 2.5e7, uncached = 0.68;
  constexpr double tree = 4e-6 * (!is_transcendental<S> ? 1 : sizeof(operand_t<S>) > 4 ? 4 : 1.5);
  const int scattered =
      is_scattered(p.a.column_stride, p.a.row_stride, p.a) + is_scattered(p.b.row_stride, p.b.column_stride, p.b);
  const double loads = 8 + 10 * scattered, wait = 0.17e-6 * (1 + scattered);
  const double blocks = static_cast<double>(SliceBlocks::of(p).count), k = static_cast<double>(p.k);
  const double cycle = detail::slowness(p.execution);
  const double throughput = blocks * k * outputs * (step + loads) / (issued_per_second * multiprocessors_of(p)) *
                            detail::slowness(p.execution, unit_of<S>);
  const double sectors = blocks * k * scattered * sector / sector_bytes_per_second * cycle;
  // Blocks read their lines again from memory if the operands exceed the L2 cache.
  const double bytes = static_cast<double>(p.batch * (p.m + p.n)) * k * static_cast<double>(p.a.size);
  const double lines = SliceBlocks::rows + SliceBlocks::columns;
  const double again =
      bytes > cache ? blocks * k * lines * static_cast<double>(p.a.size) / (uncached * bandwidth_of(p.execution)) : 0;
  const double rounds = std::ceil(blocks * static_cast<double>(slices.count) / (multiprocessors_of(p) * SplitK::resident));
  const double steps = std::ceil(static_cast<double>(slices.length) / SplitK::threads);
  const double waiting = rounds * (steps * std::max(wait, 2 * outputs * step / clock) + tree) * cycle;
  const double one = std::max({throughput, sectors, again, waiting, memory_seconds(p)});
  return launch_seconds(p.execution) +
         (slices.count > 1 ? std::max(one, second_launch_seconds(p.execution)) + join_seconds<S>(p, slices) : one);
}

/// Whether calls may take slices: not on spaces that the pool of workspaces does not serve, so that no call there fails for want
/// of a workspace.
inline bool may_slice(const Contraction& p) { return p.execution.space != Space::other; }

/// The faster way of split_k: one slice, or as many as fill the device.
template <class S>
Slices fastest_slices(const Contraction& p) {
  const Slices one{1, p.k};
  if (!may_slice(p)) return one;
  const Slices many = SplitK::cut(p.k, SliceBlocks::of(p).count, static_cast<std::int64_t>(multiprocessors_of(p)));
  return split_k_seconds<S>(p, many) < split_k_seconds<S>(p, one) ? many : one;
}

/// Whether a kernel takes K whole, or in as many slices as are predicted to be the fastest.
enum class Cut { whole, slices };

/// The slices of a call in tiles: as many as fill the device.
template <class Shape, class Chain>
Slices slices_of_tiles(const Contraction& p, Cut cut) {
  constexpr std::int64_t unit = Shape::depth * Chain::packed, least = 8 * unit, most = 1024;
  if (cut == Cut::whole || !may_slice(p)) return {1, p.k};
  const auto teams = static_cast<std::int64_t>(Shape::teams * multiprocessors_of(p));
  return cut_k(p.k, std::min(teams / std::max<std::int64_t>(tiles_of<Shape>(p), 1), most), least, unit);
}

/// Facts and promises of one chain in ascending k.
template <class S, class Finish, class Spaces>
Kernel<Contraction> chain_kernel(std::string_view variant) {
  Kernel<Contraction> k;
  k.info = detail::info_of<S>("portable", variant, {}, detail::bits_of(Spaces{}));
  k.info.timed_on = 90;
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = detail::chain_accuracy<S>();
  k.supports = detail::supports_by<detail::finish_supports<Finish>>;
  return k;
}

/// Calls visit.operator()<Shape>(slices) with the tile that is predicted to be faster.
template <class Exec, class S, class Chain, class Visit>
void with_shape(const Contraction& p, Cut cut, const Visit& visit) {
  using Large = LargeShape<Exec, S>;
  using Small = SmallShape<Exec, S>;
  const Slices large = slices_of_tiles<Large, Chain>(p, cut), small = slices_of_tiles<Small, Chain>(p, cut);
  if (tiles_seconds<S, Large, Chain>(p, large) <= tiles_seconds<S, Small, Chain>(p, small))
    visit.template operator()<Large>(large);
  else
    visit.template operator()<Small>(small);
}

template <class S, class Chain, class Devices>
double device_seconds(const Contraction& p, Cut cut) {
  double seconds = 0;
  detail::with_instance(Devices{}, p.execution, [&]<class Exec>(const Exec&) {
    with_shape<Exec, S, Chain>(p, cut,
                               [&]<class Shape>(Slices slices) { seconds = tiles_seconds<S, Shape, Chain>(p, slices); });
  });
  return std::max(seconds, launch_seconds(p.execution) + memory_seconds(p));
}
template <class S, class Finish, class Chain, class Exec>
void run_tiles(const Exec& exec, const std::string& label, const Contraction& p, Cut cut, void* workspace) {
  with_shape<Exec, S, Chain>(p, cut, [&]<class Shape>(Slices slices) {
    contract_sliced_tiles<Shape, Chain, S, Finish>(exec, label, p, slices, workspace);
  });
}

template <class S>
NarrowShape narrow_shape_of(const Contraction& p) {
  return narrow_shape(p, sizeof(typename ReferenceChain<S>::Stored));
}

template <class Devices>
bool is_device(const Contraction& p) {
  return (detail::bits_of(Devices{}) & bit(p.execution.space)) != 0;
}

/// Predicted seconds of tiles on a host, which compute whole blocks of outputs.
template <class S>
double seconds_on_host(const Contraction& p) {
  using Cut = HostShape<typename ReferenceChain<S>::Semiring>;
  // In cycles of a thread.
  constexpr double pair = is_transcendental<S> ? 20 : std::is_arithmetic_v<typename S::accumulator> ? 1 : 8;
  constexpr double launches = 2, of_output = 16, of_tile = 2000;
  const auto blocks = [](std::int64_t extent, int block) {
    const std::int64_t whole = (extent + block - 1) / block;
    return static_cast<double>(whole);
  };
  const double batch = static_cast<double>(p.batch), k = static_cast<double>(p.k < 1 ? 1 : p.k);
  const double outputs = blocks(p.m, Cut::rows) * Cut::rows * blocks(p.n, Cut::columns) * Cut::columns;
  const double tiles = batch * blocks(p.m, Cut::m) * blocks(p.n, Cut::n);
  const double threads = std::clamp<double>(tiles, 1, std::max(1, p.execution.concurrency));
  const Cpu& cpu = cpu_of(p.execution);
  return launches * cpu.launch_seconds + cpu.seconds((batch * outputs * (k * pair + of_output) + tiles * of_tile) / threads);
}

/// Tiles, on the spaces of the list; on devices the narrow kernel's, if slabs of larger tiles would not fit.
template <class S, class Finish, class Spaces>
Kernel<Contraction> tiles_kernel() {
  using Devices = devices_of<Spaces>;
  Kernel<Contraction> k = chain_kernel<S, Finish, Spaces>("tiles");
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) {
    if (!is_device<Devices>(p)) return seconds_on_host<S>(p);
    if constexpr (has_tiles<S>)
      return device_seconds<S, TileChain<S>, Devices>(p, Cut::whole);
    else
      return narrow_seconds<S>(p, narrow_shape_of<S>(p));
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
      const std::string label = detail::label_of(kernel.info);
      if constexpr (on_host<Exec>)
        contract_on_host(exec, label, detail::arguments_of<S, Finish>(p));
      else if constexpr (has_tiles<S>)
        run_tiles<S, Finish, TileChain<S>>(exec, label, p, Cut::whole, nullptr);
      else
        contract_narrow<S, Finish>(exec, label, p, narrow_shape_of<S>(p));
    });
  };
  return k;
}

/// Sums of powers in float, by PowerChain.
template <class S, class Finish, class Devices>
Kernel<Contraction> powers_kernel() {
  Kernel<Contraction> k = chain_kernel<S, Finish, Devices>("powers");
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.bit_class = "portable.powers";
  k.info.accuracy = {120, 1};  // for p ≤ 8: (4 + 3p + 0.7·126)·u
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) {
    return device_seconds<S, PowerChain<S>, Devices>(p, Cut::whole);
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
    detail::with_instance(Devices{}, p.execution, [&](const auto& exec) {
      run_tiles<S, Finish, PowerChain<S>>(exec, detail::label_of(kernel.info), p, Cut::whole, nullptr);
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

/// A kernel that joins parts of K. Rounding sums of it are a bit class of their own, and `joins` is the height of the trees.
template <class S, class Finish, class Devices>
Kernel<Contraction> joining_kernel(std::string_view variant, Promise promises, double joins) {
  Kernel<Contraction> k = chain_kernel<S, Finish, Devices>(variant);
  k.info.accumulates = k.info.accumulates && detail::exact_counts<S> == 0;
  k.supports = [](const Kernel<Contraction>&, const Contraction& p) {
    const Status status = detail::counts_exactly<S>(p);
    return status ? detail::finish_supports<Finish>(p) : status;
  };
  if constexpr (!is_exact<S>) {
    k.info.promises = promises;
    // Additions in any order keep the bound of a chain; to join two log_sums rounds six times.
    if constexpr (is_transcendental<S>) k.info.accuracy.constant += 6 * joins;
  }
  return k;
}

/// If ⊕ rounds, the number of slices changes bits. It depends on C's extents and the device, so slices are then a kernel of their
/// own, which does not promise batch_invariant.
template <class S, class Finish, class Devices, Cut cut>
Kernel<Contraction> split_k_kernel() {
  constexpr bool own = cut == Cut::slices && !is_exact<S>;
  Kernel<Contraction> k =
      own ? joining_kernel<S, Finish, Devices>("split_k_slices", Promise::repeatable, 8 + 8 + 1)  // 256 sums, 256 slices, C
          : joining_kernel<S, Finish, Devices>("split_k", Promise::repeatable | Promise::batch_invariant, 8);
  if (!own && !is_exact<S>) k.info.bit_class = "portable.split_k";
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
    const Slices slices = cut == Cut::slices ? fastest_slices<S>(p) : Slices{1, p.k};
    plan.keep(slices);
    return split_k_seconds<S>(p, slices);
  };
  k.workspace = [](const Kernel<Contraction>&, const Contraction& p, const Plan& plan) {
    return WorkspaceSize{.bytes = slices_workspace<S>(p, plan.get<Slices>())};
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace& workspace) {
    detail::with_instance(Devices{}, p.execution, [&](const auto& exec) {
      contract_split_k<S, Finish>(exec, detail::label_of(kernel.info), p, plan.get<Slices>(), workspace.data);
    });
  };
  return k;
}

/// Tiles of slices of K. A thread of the second launch takes up to 4 of 1024 slices.
template <class S, class Finish, class Devices>
Kernel<Contraction> sliced_tiles_kernel() {
  Kernel<Contraction> k = joining_kernel<S, Finish, Devices>("split_k_tiles", Promise::repeatable, 3 + 8 + 1);
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) {
    return device_seconds<S, TileChain<S>, Devices>(p, Cut::slices);
  };
  k.workspace = [](const Kernel<Contraction>&, const Contraction& p, const Plan&) {
    WorkspaceSize size;
    detail::with_instance(Devices{}, p.execution, [&]<class Exec>(const Exec&) {
      with_shape<Exec, S, TileChain<S>>(p, Cut::slices,
                                        [&]<class Shape>(Slices slices) { size.bytes = slices_workspace<S>(p, slices); });
    });
    return size;
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace& workspace) {
    detail::with_instance(Devices{}, p.execution, [&](const auto& exec) {
      run_tiles<S, Finish, TileChain<S>>(exec, detail::label_of(kernel.info), p, Cut::slices, workspace.data);
    });
  };
  return k;
}

/// Sums of powers whose operands are floats.
template <class S>
inline constexpr bool sums_powers = false;
template <class E>
inline constexpr bool sums_powers<lp<E, float>> = true;

/// Whether a semiring has the narrow kernel on its own: on CUDA not those of the zoo, whose problems cuda.simt's kernels cover as well,
/// and faster.
template <class S, class Devices>
inline constexpr bool has_narrow = false;
template <class S, class... Exec>
inline constexpr bool has_narrow<S, type_list<Exec...>> =
    has_tiles<S> && !(in_zoo<S> && ((detail::space_of<Exec> == Space::cuda) || ...));

/// Calls add(kernel) for each kernel of one semiring on the spaces of the list, that for tiles first.
template <class S, class Finish, class Spaces, class Add>
void add_kernels(const Add& add) {
  using Devices = devices_of<Spaces>;
  add(tiles_kernel<S, Finish, Spaces>());
  if constexpr (!std::is_same_v<Devices, type_list<>>) {
    if constexpr (sums_powers<S>) add(powers_kernel<S, Finish, Devices>());
    if constexpr (has_narrow<S, Devices>) add(narrow_kernel<S, Finish, Devices>());
    if constexpr (splits_k<S> && !is_exact<S>) add(split_k_kernel<S, Finish, Devices, Cut::whole>());
    if constexpr (splits_k<S>) add(split_k_kernel<S, Finish, Devices, Cut::slices>());
    if constexpr (splits_k<S> && has_tiles<S>) add(sliced_tiles_kernel<S, Finish, Devices>());
  }
}

}  // namespace rigel::backends::portable
