// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() by a user's monoid, by strips as in reduce.hpp. A row keeps a state for each lane, from chunk to chunk. Instantiated in the user's
// translation unit, for one execution space, one type of scores and one functor.
#pragma once

#include <rigel/backends/portable/reduce.hpp>

namespace rigel::backends::portable {

/// What becomes of row r of a strip: on a host by one work item, on a device by a team with a thread for each lane.
template <class T, class M>
struct MonoidRows {
  using State = detail::monoid_state<M>;
  static constexpr int threads = detail::lanes;
  static constexpr int alignment = alignof(State) > 16 ? alignof(State) : 16;
  static constexpr std::size_t shared_bytes = sizeof(State) * threads;
  static constexpr std::size_t scratch = shared_bytes + alignment;

  detail::ReducedOutputs outputs;
  M monoid;
  bool exclude_self;
  detail::Strip strip;
  const T* scores;
  State* states;

  RIGEL_FUNCTION void operator()(std::int64_t r) const {
    State lanes[threads];
    for (int j = 0; j < threads; ++j) lanes[j] = former(r, j);
    for (int j = 0; j < threads; ++j) lanes[j] = joined(r, j, lanes[j]);
    if (!strip.is_last) {
      for (int j = 0; j < threads; ++j) states[r * threads + j] = lanes[j];
      return;
    }
    detail::join_lanes(monoid, lanes);
    store(r, lanes[0]);
  }

  template <class Team>
    requires requires(const Team& team) { team.team_barrier(); }
  RIGEL_FUNCTION void operator()(const Team& team) const {
    auto* const shared = static_cast<State*>(team.team_scratch(0).get_shmem_aligned(shared_bytes, alignment));
    if (shared == nullptr) return;  // as in tiles.hpp
    const int rank = team.team_rank();
    for (std::int64_t r = team.league_rank(); r < strip.row_count(); r += team.league_size()) {
      const State mine = joined(r, rank, former(r, rank));
      if (!strip.is_last) {
        states[r * threads + rank] = mine;
        continue;
      }
      shared[rank] = mine;
      team.team_barrier();
      for (int half = threads / 2; half > 0; half /= 2) {
        if (rank < half) shared[rank] = monoid.join(shared[rank], shared[rank + half]);
        team.team_barrier();
      }
      if (rank == 0) store(r, shared[0]);
      team.team_barrier();
    }
  }

 private:
  RIGEL_FUNCTION State former(std::int64_t r, int lane) const {
    return strip.is_first ? monoid.identity() : states[r * threads + lane];
  }
  /// A lane's state with its scores of this strip, whose first column is a multiple of the lanes.
  RIGEL_FUNCTION State joined(std::int64_t r, int lane, State state) const {
    const std::int64_t m = strip.m + r % strip.rows;
    for (std::int64_t n = lane; n < strip.columns; n += threads)
      if (!exclude_self || strip.n + n != m) state = monoid.join(state, monoid.of(scores[r * strip.pitch + n], strip.n + n));
    return state;
  }
  RIGEL_FUNCTION void store(std::int64_t r, State state) const {
    outputs.store(static_cast<detail::monoid_result<M>>(monoid.result(state)), strip.l + r / strip.rows,
                  strip.m + r % strip.rows);
  }
};

template <class Spaces, class T, class M>
struct MonoidStripsKernel {
  using Rows = MonoidRows<T, M>;
  static constexpr std::size_t bytes_of_row = sizeof(typename Rows::State) * Rows::threads;

  static Strips strips_of(const Reduction& p) {
    bool on_device = false;
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec&) { on_device = !detail::runs_on_host<Exec>; });
    return {p, on_device, bytes_of_row};
  }
  static Status supports(const Kernel<Reduction>&, const Reduction& p) { return strips_of(p).needs().status; }
  static double cost(const Kernel<Reduction>&, const Reduction& p, Plan& plan) {
    Strips strips = strips_of(p);
    const detail::PartNeeds needs = strips.fit();
    const detail::StripShape& s = strips.shape();
    plan.keep(s);
    if (!needs.status) return std::numeric_limits<double>::infinity();
    return needs.seconds * detail::strips_of(p, s) + reducing_seconds(p, s);
  }
  static void run(const Kernel<Reduction>& kernel, const Reduction& p, const Plan& plan, const Workspace& workspace) {
    const auto shape = plan.get<detail::StripShape>();
    const std::string label = "rigel::reduce/" + kernel.info.name;
    auto* const states =
        reinterpret_cast<typename Rows::State*>(static_cast<std::byte*>(workspace.data) + shape.score_bytes);
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
      detail::for_each_strip(p, shape, workspace, [&](const detail::Strip& strip) {
        const Rows work{detail::ReducedOutputs::of(p),
                        *static_cast<const M*>(p.monoid),
                        p.exclude_self,
                        strip,
                        static_cast<const T*>(workspace.data),
                        states};
        if constexpr (detail::runs_on_host<Exec>)
          Kokkos::parallel_for(
              label,
              detail::by_argument(Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, strip.row_count())),
              work);
        else
          launch<Kokkos::LaunchBounds<Rows::threads>>(exec, label, work, strip.row_count(), Rows::threads, Rows::scratch);
      });
    });
  }

  static Kernel<Reduction> make() {
    Kernel<Reduction> k = StripsKernel<Spaces, false>::make("strips");
    k.supports = supports;
    k.cost = cost;
    k.run = run;
    return k;
  }
};

}  // namespace rigel::backends::portable
