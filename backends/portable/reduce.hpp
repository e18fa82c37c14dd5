// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() by strips: the scores of some rows and a chunk of columns are computed into the workspace by whatever contraction kernel
// the engine chooses for them, and then reduced into what each row keeps. Chunks go in ascending order of columns, so results do not
// depend on their size.
#pragma once

#include <rigel/backends/portable/launch.hpp>
#include <rigel/backends/portable/strip_rows_host.hpp>
#include <rigel/backends/portable/strip_rows_team.hpp>
#include <rigel/backends/portable/strips.hpp>
#include <rigel/cpu.hpp>
#include <rigel/detail/call.hpp>

#include <cmath>

namespace rigel::backends::portable {

template <class T, Reducer reducer, bool by_teams>
using RowsOf = std::conditional_t<by_teams, TeamRows<T, reducer>, HostRow<T, reducer>>;

/// Bytes that a row keeps from one chunk to the next.
template <bool by_teams>
std::size_t state_bytes(const Reduction& p) {
  std::size_t bytes = 0;
  detail::with_scores(p, [&]<class T>() {
    detail::with_reducer(p, [&]<Reducer reducer>() { bytes = RowsOf<T, reducer, by_teams>::bytes(p.count); });
  });
  return bytes;
}

/// Reduces a strip.
template <class T, Reducer reducer, class Exec>
static void reduce_strip(const Exec& exec, const std::string& label, const Reduced<T, reducer>& all) {
  if constexpr (detail::runs_on_host<Exec>) {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    const HostRow<T, reducer> work{all};
    Kokkos::parallel_for(label, detail::by_argument(Policy(exec, 0, all.strip.row_count())), work);
  } else {
    using Work = TeamRows<T, reducer>;
    const Work work{all};
    launch<Kokkos::LaunchBounds<Work::threads>>(exec, label, work, all.strip.row_count(), Work::threads, Work::scratch);
  }
}

/// Predicted seconds of the reducing launches.
inline double reducing_seconds(const Reduction& p, const detail::StripShape& s) {
  const auto number = [](std::int64_t i) { return static_cast<double>(i); };
  const double scores = detail::scores_of(p), rows = number(s.matrices) * number(s.rows);
  const double strips = p.ranges
                            ? detail::strips_of(p, s)
                            : std::ceil(number(p.batch) / number(s.matrices)) * std::ceil(number(p.m) / number(s.rows)) *
                                  std::max(std::ceil(number(p.n) / number(s.columns)), 1.);
  const bool exponentials = p.reducer == Reducer::log_sum_exp;
  if (p.execution.space == Space::cuda) {
    // A launch; a row's thread waits for memory at each of its scores; bytes, of which the L2 cache delivers so many.
    constexpr double launch = 5e-6, wait = 4e-7, bytes_per_second = 3e12;
    const double steps = number(s.columns) / (detail::keeps_many(p) ? 512 : detail::lanes);
    const double waves = std::ceil(rows / (32. * std::max(p.execution.multiprocessors, 1)));
    return strips * std::max(launch, waves * steps * wait * (exponentials ? 2 : 1) / (detail::keeps_many(p) ? 1 : 8)) +
           scores * number(static_cast<std::int64_t>(size_of(p.scores.type))) / bytes_per_second;
  }
  constexpr double launches = 2, exponential = 20, score = 1.2;  // the latter in cycles of a thread
  const Cpu& cpu = cpu_of(p.execution);
  return strips * launches * cpu.launch_seconds +
         cpu.seconds(scores * (exponentials ? exponential : score) / std::max(p.execution.concurrency, 1));
}

/// Strips for all semirings and reducers, on the spaces of the list. `chains`: with scores that have the reference's bits, for calls that ask
/// for these.
template <class Spaces, bool chains>
struct StripsKernel {
  /// The problem as this kernel computes it.
  static Reduction form(const Reduction& p) {
    Reduction q = p;
    if (chains) q.require = q.require | Promise::reference_bits;
    return q;
  }

  static Strips strips_of(const Reduction& p) {
    std::size_t bytes = 0;
    bool on_device = false;
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec&) {
      on_device = !detail::runs_on_host<Exec>;
      bytes = state_bytes<!detail::runs_on_host<Exec>>(p);
    });
    return {p, on_device, bytes};
  }

  static Status supports(const Kernel<Reduction>&, const Reduction& p) {
    if (chains && !covers(p.require, Promise::reference_bits))
      return {Decline::promises, "serves calls that require reference_bits"};
    if (is_weighted(p.reducer)) return {Decline::other, "reduces scores alone, not rows of V"};
    if (p.reducer == Reducer::monoid) return {Decline::other, "has no functors of yours"};
    const Reduction q = form(p);
    return strips_of(q).needs().status;
  }

  static double cost(const Kernel<Reduction>&, const Reduction& p, Plan& plan) {
    const Reduction q = form(p);
    Strips strips = strips_of(q);
    const detail::PartNeeds needs = strips.fit();
    const detail::StripShape& s = strips.shape();
    plan.keep(s);
    if (!needs.status) return std::numeric_limits<double>::infinity();
    return needs.seconds * detail::strips_of(p, s) + reducing_seconds(p, s);
  }

  static WorkspaceSize workspace(const Kernel<Reduction>&, const Reduction&, const Plan& plan) {
    return {.bytes = plan.get<detail::StripShape>().bytes()};
  }

  static void run(const Kernel<Reduction>& kernel, const Reduction& given, const Plan& plan, const Workspace& workspace) {
    const Reduction p = form(given);
    const auto shape = plan.get<detail::StripShape>();
    const std::string label = "rigel::reduce/" + kernel.info.name;
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
      detail::with_scores(p, [&]<class T>() {
        detail::with_reducer(p, [&]<Reducer reducer>() {
          Reduced<T, reducer> all{.outputs = detail::ReducedOutputs::of(p),
                                  .below = detail::Below<T>::of(p),
                                  .count = p.count,
                                  .exclude_self = p.exclude_self,
                                  .strip = {},
                                  .scores = static_cast<const T*>(workspace.data),
                                  .states = static_cast<std::byte*>(workspace.data) + shape.score_bytes,
                                  .state_bytes = RowsOf<T, reducer, !detail::runs_on_host<Exec>>::bytes(p.count),
                                  .bins = detail::Bins::of(p)};
          detail::for_each_strip(p, shape, workspace, [&](const detail::Strip& strip) {
            all.strip = strip;
            reduce_strip(exec, label, all);
          });
        });
      });
    });
  }

  static Kernel<Reduction> make(const char* variant) {
    Kernel<Reduction> k;
    k.info.family = "portable";
    k.info.variant = variant;
    k.info.name = k.info.family + '.' + variant;
    k.info.spaces = detail::bits_of(Spaces{});
    k.info.promises = Promise::repeatable | Promise::batch_invariant;
    if (chains) k.info.promises = k.info.promises | Promise::reference_bits;
    k.supports = supports;
    k.cost = cost;
    k.workspace = workspace;
    k.run = run;
    return k;
  }
};

}  // namespace rigel::backends::portable
