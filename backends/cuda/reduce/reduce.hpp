// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.reduce kernels of one semiring: their facts and their launches.
#pragma once

#include <rigel/backends/cuda/costs/reduce.hpp>
#include <rigel/backends/cuda/reduce/few.hpp>
#include <rigel/backends/cuda/reduce/kernel.hpp>
#include <rigel/backends/cuda/simt/contract.hpp>

#include <algorithm>
#include <limits>
#include <string>

namespace rigel::backends::reduce {

/// Semirings that have a kernel: the commonest of those whose scores are floats or doubles.
template <class S>
inline constexpr bool is_common = false;
template <class E, class A> inline constexpr bool is_common<plus_times<E, A>> = true;
template <class E, class A> inline constexpr bool is_common<min_plus<E, A>> = true;
template <class E, class A> inline constexpr bool is_common<max_plus<E, A>> = true;
template <class E, class A> inline constexpr bool is_common<l1<E, A>> = true;
template <class E, class A> inline constexpr bool is_common<l2_squared<E, A>> = true;
template <class E, class A> inline constexpr bool is_common<linf<E, A>> = true;
template <class S>
constexpr bool reduces_scores() {
  if constexpr (is_common<S>)
    return has_scores<S>;
  else
    return false;
}
template <class S>
inline constexpr bool reduces = reduces_scores<S>();

template <class S>
using ShapeOf = simt::LargeTile<S>;
template <class S>
using OutletsOf =
    Outlets<S, ShapeOf<S>,
            typename simt::TileSum<S, ShapeOf<S>, simt::StepsFor<S>, tile::Way::single, tile::Way::single>::Exchange>;

/// visit.operator()<Step, way of A, way of B>() with the steps of a problem's kernel.
template <class S, class Visit>
void with_steps(const Product& p, const Visit& visit) {
  using tile::Way;
  using Shape = ShapeOf<S>;
  if constexpr (simt::takes_vectors<S, Shape>) {
    const simt::Ways ways = simt::ways_for<S, Shape>(p);
    if constexpr (simt::widens<S>) {
      if (ways.a != Way::single) return visit.template operator()<simt::Steps<S>, Way::either, Way::either>();
    } else {
      const bool along_lines = ways.b == Way::along_lines;
      if (ways.a == Way::along_k && !along_lines && ways.b == Way::along_k)
        return visit.template operator()<simt::Steps<S>, Way::along_k, Way::along_k>();
      if (ways.a == Way::along_k && along_lines)
        return visit.template operator()<simt::Steps<S>, Way::along_k, Way::along_lines>();
      if constexpr (simt::takes_lines<S, Shape>) {
        if (ways.a == Way::along_lines && along_lines)
          return visit.template operator()<simt::Steps<S>, Way::along_lines, Way::along_lines>();
      }
    }
  }
  visit.template operator()<simt::StepsFor<S>, Way::single, Way::single>();
}

/// The shared memory of a block with these steps.
template <class S, class Step, tile::Way WayA, tile::Way WayB>
constexpr int shared_bytes(Reducer reducer) {
  using Sum = simt::TileSum<S, ShapeOf<S>, Step, WayA, WayB>;
  return (Sum::bytes + 15) / 16 * 16 + OutletsOf<S>::shared_bytes(reducer);
}
template <class S>
int shared_bytes_of(const Reduction& p) {
  int bytes = 0;
  with_steps<S>(p, [&]<class Step, tile::Way a, tile::Way b>() { bytes = shared_bytes<S, Step, a, b>(p.reducer); });
  return bytes;
}

/// Units of a call, and tiles of a row.
template <class S>
std::int64_t units_of(const Reduction& p) {
  return p.batch * simt::rows_of<ShapeOf<S>>(p);
}

/// What all kernels of S ask of a call.
template <class S>
Status takes(const Reduction& p) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() - ShapeOf<S>::n;
  if (const Status status = detail::computes_scores(p); !status) return status;
  if (!has_outlet(p.reducer)) return {Decline::other, std::string("has no ") + name(p.reducer)};
  if (detail::keeps_many(p) && p.count > most_best)
    return {Decline::extents, "keeps at most " + std::to_string(most_best) + " results of a row"};
  if (const Status status = simt::elements_are_aligned<S>(p); !status) return status;
  if (p.semiring_in_view) return {Decline::batches, "takes one semiring object"};
  if (p.m > most || p.n > most || p.k > most || units_of<S>(p) > most)
    return {Decline::extents, "a matrix of scores has more than 2^31 - 1 rows, columns or tiles of rows"};
  return {};
}
/// The dynamic shared memory that a block may take: all but static bytes of these kernels.
inline int most_dynamic_bytes(const Reduction& p) { return p.execution.shared_memory - 2048; }
inline Status fits(const Reduction& p, std::int64_t bytes) {
  if (bytes <= most_dynamic_bytes(p)) return {};
  return {Decline::memory, "needs " + std::to_string(bytes) + " bytes of dynamic shared memory"};
}

template <class S>
Status supports(const Kernel<Reduction>&, const Reduction& p) {
  const Status status = takes<S>(p);
  return status ? fits(p, shared_bytes_of<S>(p)) : status;
}

template <class S>
double cost(const Kernel<Reduction>&, const Reduction& p, Plan& plan) {
  using Shape = ShapeOf<S>;
  costs::Call call;
  call.units = static_cast<std::uint32_t>(units_of<S>(p));
  call.column_tiles = static_cast<int>(simt::columns_of<S, Shape>(p));
  call.scores = simt::tile_call<S, Shape>(p);
  call.join_blocks = Shape::m / rows_of_join(detail::keeps_many(p));
  call.shared_bytes = shared_bytes_of<S>(p);
  call.state_bytes = OutletsOf<S>::state_bytes(p.reducer, p.count);
  call.always_has_state = detail::keeps_many(p);
  const auto [cut, seconds] = costs::choose(p, simt::semiring_facts<S>, simt::tile_facts<S, Shape>, call);
  plan.keep(cut);
  return seconds;
}

/// Enqueues a kernel that takes the launch's arguments, and what joins its slices.
template <class T, class Enqueue>
void launch_units(const cuda::Launches& launches, const Reduction& p, const Cut& cut, Launch<T> launch, int rows_of_unit,
                  const Enqueue& enqueue) {
  const auto join = reinterpret_cast<const void*>(&join_slices<T>);
  static cuda::LaunchFacts facts;
  if (cut.slices > 1) facts.find(join, 0, launches);
  for (launch.first = 0; launch.first < cut.units; launch.first += launch.units) {
    launch.units = std::min(cut.launch_units, cut.units - launch.first);
    enqueue(launch, launch.units * static_cast<unsigned>(cut.slices));
    if (cut.slices == 1) continue;
    const auto blocks = launch.units * static_cast<unsigned>(rows_of_unit / rows_of_join(detail::keeps_many(p)));
    void* list[] = {&launch, &rows_of_unit};
    launches(join, blocks, join_threads, 0, list, facts.waits(launches.device()));
  }
}

/// The arguments of a call's kernels, and of its launches.
template <class S>
detail::Arguments<S, detail::ProgramFinish> arguments_of(const Reduction& p) {
  Contraction q = p.contraction();
  for (Operand* o : {&q.a, &q.b})
    if (o->batches == 1) o->batch_stride = 0;
  return detail::arguments_of<S, detail::ProgramFinish>(q);
}
template <class T>
Launch<T> launch_of(const Reduction& p, const Cut& cut, int rows_of_unit, const Workspace& workspace) {
  return {.outputs = detail::ReducedOutputs::of(p),
          .below = detail::Below<T>::of(p),
          .reducer = p.reducer,
          .exclude_self = p.exclude_self,
          .count = static_cast<std::int32_t>(p.count),
          .slices = cut.slices,
          .slice_tiles = cut.slice_tiles,
          .rows = p.m,
          .row_tiles = static_cast<std::uint32_t>((p.m + rows_of_unit - 1) / rows_of_unit),
          .first = 0,
          .units = 0,
          .states = static_cast<std::byte*>(workspace.data)};
}

template <class S>
void run(const Kernel<Reduction>& kernel, const Reduction& p, const Plan& plan, const Workspace& workspace) {
  using Shape = ShapeOf<S>;
  using T = score_of<S>;
  const auto cut = plan.get<Cut>();
  auto arguments = arguments_of<S>(p);
  const Launch<T> launch = launch_of<T>(p, cut, Shape::m, workspace);
  const cuda::Launches launches(p, kernel.info.name);
  with_steps<S>(p, [&]<class Step, tile::Way a, tile::Way b>() {
    static_assert(std::is_same_v<typename Step::Parameters, simt::NoParameters>);
    const auto function = reinterpret_cast<const void*>(&reduce_tiles<S, Shape, Step, a, b>);
    static cuda::LaunchFacts facts;
    constexpr int most_bytes =
        std::max(shared_bytes<S, Step, a, b>(Reducer::log_sum_exp), shared_bytes<S, Step, a, b>(Reducer::smallest));
    facts.find(function, std::min(most_bytes, most_dynamic_bytes(p)), launches);
    typename Step::Parameters parameters;
    launch_units(launches, p, cut, launch, Shape::m, [&](Launch<T>& units, unsigned blocks) {
      void* list[] = {&arguments, &units, &parameters};
      launches(function, blocks, Shape::threads, shared_bytes<S, Step, a, b>(p.reducer), list);
    });
  });
}

// ---- few rows ----------------------------------------------------------------------------------------------------------

/// visit.operator()<Few>() with the blocks of a call.
template <class S, class Visit>
void with_few(const Reduction& p, const Visit& visit) {
  if (p.m == 1)
    visit.template operator()<Few<S, 1>>();
  else
    visit.template operator()<Few<S, 8>>();
}

template <class Shape>
std::int64_t few_units_of(const Reduction& p) {
  return p.batch * ((p.m + Shape::rows - 1) / Shape::rows);
}

template <class S>
Status few_supports(const Kernel<Reduction>&, const Reduction& p) {
  constexpr std::int64_t most_rows = 64;
  if (const Status status = takes<S>(p); !status) return status;
  if (p.reducer == Reducer::sum || p.reducer == Reducer::log_sum_exp)
    return {Decline::other, "has no sums, whose order is the reference's"};
  if (p.m > most_rows) return {Decline::extents, "serves at most " + std::to_string(most_rows) + " rows"};
  constexpr std::int64_t width = 16 / sizeof(typename S::element);
  const bool aligned = reinterpret_cast<std::uintptr_t>(p.b.data) % 16 == 0 && p.b.column_stride % width == 0 &&
                       p.b.batch_stride % width == 0;
  if (p.k < width || p.k % width != 0 || p.b.row_stride != 1 || !aligned)
    return {Decline::layout, "takes a B whose columns are contiguous along K, whole vectors of 16 bytes"};
  Status status;
  with_few<S>(p, [&]<class Shape>() {
    status = few_units_of<Shape>(p) > std::numeric_limits<std::int32_t>::max()
                 ? Status{Decline::extents, "there are more than 2^31 - 1 parts of rows"}
             : Shape::row_bytes(p.k) > Shape::most_row_bytes
                 ? Status{Decline::extents, "K is too large for the rows in shared memory"}
                 : fits(p, Shape::shared_bytes(p.reducer, p.count, p.k));
  });
  return status;
}

template <class S>
double few_cost(const Kernel<Reduction>&, const Reduction& p, Plan& plan) {
  double seconds = 0;
  with_few<S>(p, [&]<class Shape>() {
    costs::FewCall call;
    call.rows = Shape::rows;
    call.columns = Shape::threads;
    call.state_rows = Shape::states;
    call.units = static_cast<std::uint32_t>(few_units_of<Shape>(p));
    call.join_blocks = Shape::states / rows_of_join(detail::keeps_many(p));
    call.shared_bytes = Shape::shared_bytes(p.reducer, p.count, p.k);
    call.state_bytes = OutletsOf<S>::state_bytes(p.reducer, p.count);
    const auto [cut, predicted] = costs::choose(p, simt::semiring_facts<S>, call);
    plan.keep(cut);
    seconds = predicted;
  });
  return seconds;
}

template <class S>
void few_run(const Kernel<Reduction>& kernel, const Reduction& p, const Plan& plan, const Workspace& workspace) {
  using T = score_of<S>;
  const auto cut = plan.get<Cut>();
  auto arguments = arguments_of<S>(p);
  const cuda::Launches launches(p, kernel.info.name);
  with_few<S>(p, [&]<class Shape>() {
    const auto function = reinterpret_cast<const void*>(&reduce_few<S, Shape>);
    static cuda::LaunchFacts facts;
    facts.find(function, std::min(Shape::most_shared_bytes, most_dynamic_bytes(p)), launches);
    launch_units(launches, p, cut, launch_of<T>(p, cut, Shape::rows, workspace), Shape::states,
                 [&](Launch<T>& units, unsigned blocks) {
                   void* list[] = {&arguments, &units};
                   launches(function, blocks, Shape::threads, Shape::shared_bytes(p.reducer, p.count, p.k), list);
                 });
  });
}

// ---- the kernels -------------------------------------------------------------------------------------------------------

/// Facts of a kernel: sums of K are those of cuda.simt's tiles.
template <class S>
KernelInfo info_of(std::string_view variant, std::string_view tile) {
  const KernelInfo tiles = simt::tile_info<S, ShapeOf<S>>();
  KernelInfo info = detail::info_of<S>("cuda.reduce", variant, tile, bit(Space::cuda));
  info.timed_on = 90;
  info.min_compute_capability = 80;
  info.raw_launch = true;
  info.promises = tiles.promises;
  info.accuracy = tiles.accuracy;
  info.bit_class = tiles.bit_class;
  return info;
}

/// Adds the kernels of S.
template <class S, class Registry>
void add_kernels(Registry& registry) {
  using Shape = ShapeOf<S>;
  Kernel<Reduction> k;
  k.info = info_of<S>("", std::to_string(Shape::m) + 'x' + std::to_string(Shape::n) + 'x' + std::to_string(Shape::depth));
  k.info.tile = {Shape::m, Shape::n, Shape::depth};
  k.info.threads = Shape::threads;
  k.supports = supports<S>;
  k.cost = cost<S>;
  k.workspace = [](const Kernel<Reduction>&, const Reduction&, const Plan& plan) {
    return WorkspaceSize{.bytes = plan.get<Cut>().bytes()};
  };
  k.run = run<S>;
  registry.add(k);
  k.info = info_of<S>("few", "");
  k.info.threads = Few<S, 1>::threads;
  k.supports = few_supports<S>;
  k.cost = few_cost<S>;
  k.run = few_run<S>;
  registry.add(k);
}

}  // namespace rigel::backends::reduce
