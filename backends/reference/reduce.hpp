// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference of reduce(): the reference of contract() computes the scores of some whole rows, and one work item reduces one row, n
// ascending. It defines the right result on every execution space, and is not meant to be fast.
#pragma once

#include <rigel/cpu.hpp>
#include <rigel/detail/call.hpp>
#include <rigel/detail/reduction.hpp>

namespace rigel::backends::reference {

/// What one work item does with a row of n scores, that of matrix l and row m.
template <class T, Reducer reducer>
struct ReduceRow {
  detail::ReducedOutputs outputs;
  detail::Below<T> below;
  detail::Bins bins;
  std::int64_t count;
  detail::RowColumns columns;

  RIGEL_FUNCTION void operator()(const T* scores, std::int64_t l, std::int64_t m, detail::Found<T>* list) const {
    const auto for_each_score = [&](const auto& use) {
      columns.for_each(m, [&](std::int64_t n, int) { use(n, scores[n]); });
    };
    if constexpr (reducer == Reducer::minimum || reducer == Reducer::maximum) {
      constexpr bool largest = reducer == Reducer::maximum;
      detail::Found<T> best{0, detail::no_place};
      for_each_score([&](std::int64_t n, T score) { best = detail::extremum<largest>(best, {score, n}); });
      outputs.store<largest>(best, l, m);
    } else if constexpr (reducer == Reducer::smallest || reducer == Reducer::largest) {
      constexpr bool largest = reducer == Reducer::largest;
      for (std::int64_t i = 0; i < count; ++i) list[i] = {0, detail::no_place};
      for_each_score([&](std::int64_t n, T score) {
        detail::Found<T> next{score, n};
        for (std::int64_t i = 0; i < count; ++i)
          if (detail::precedes<largest>(next, list[i])) {
            const detail::Found<T> moved = list[i];
            list[i] = next;
            next = moved;
          }
      });
      for (std::int64_t i = 0; i < count; ++i) outputs.store<largest>(list[i], l, m, i);
    } else if constexpr (reducer == Reducer::count_below) {
      std::int64_t counted = 0;
      for_each_score([&](std::int64_t, T score) { counted += below(score); });
      outputs.store(counted, l, m);
    } else if constexpr (reducer == Reducer::histogram) {
      for (std::int64_t bin = 0; bin < count; ++bin) {
        std::int64_t counted = 0;
        for_each_score([&](std::int64_t, T score) { counted += bins(score) == bin; });
        outputs.store(counted, l, m, bin);
      }
    } else if constexpr (reducer == Reducer::all_below) {
      const detail::Range of_row = outputs.list_of(m);
      std::int64_t listed = 0;
      for_each_score([&](std::int64_t n, T score) {
        if (!below(score) || listed >= of_row.count) return;
        outputs.store<false>(detail::Found<T>{score, n}, l, of_row.first + listed++);
      });
    } else {
      using Lane = std::conditional_t<reducer == Reducer::sum, detail::LaneSum<T>, detail::LaneExponentials<T>>;
      Lane sums[detail::lanes];
      columns.for_each(m, [&](std::int64_t n, int lane) { sums[lane].add(scores[n]); });
      for (int half = detail::lanes / 2; half > 0; half /= 2)
        for (int j = 0; j < half; ++j) sums[j].add(sums[j + half]);
      outputs.store(sums[0].result(), l, m);
    }
  }
};

// Of internal linkage for the reason given at contract() in contract.hpp.
template <class T, Reducer reducer, class Exec>
static void reduce(const Exec& exec, const std::string& label, const Reduction& p, const detail::Strip& strip,
                   const T* scores, detail::Found<T>* lists) {
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  const ReduceRow<T, reducer> row{detail::ReducedOutputs::of(p), detail::Below<T>::of(p), detail::Bins::of(p), p.count,
                                  detail::RowColumns::of(p)};
  const std::int64_t rows = strip.rows, pitch = strip.pitch, l0 = strip.l, m0 = strip.m, count = p.count;
  Kokkos::parallel_for(
      label, detail::by_argument(Policy(exec, 0, strip.row_count())),
      KOKKOS_LAMBDA(const std::int64_t r) { row(scores + r * pitch, l0 + r / rows, m0 + r % rows, lists + r * count); });
}

/// The same for weighted reducers, with whole rows of scores: first they become weights, then one work item makes one result of a row,
/// n ascending, in double.
template <class T, class Exec>
static void reduce_weighted(const Exec& exec, const std::string& label, const Reduction& p, const detail::Strip& strip,
                            T* scores) {
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  const auto outputs = detail::ReducedOutputs::of(p);
  const auto v = detail::WeightReader::of(p.weights);
  const auto columns = detail::RowColumns::of(p);
  const std::int64_t rows = strip.rows, pitch = strip.pitch, l0 = strip.l, m0 = strip.m, count = p.count;
  const bool softmax = p.reducer == Reducer::softmax_weighted;
  if (softmax)
    Kokkos::parallel_for(
        label, detail::by_argument(Policy(exec, 0, strip.row_count())), KOKKOS_LAMBDA(const std::int64_t r) {
          T* const row = scores + r * pitch;
          const std::int64_t m = m0 + r % rows;
          T most = -std::numeric_limits<T>::infinity();
          columns.for_each(m, [&](std::int64_t n, int) { most = row[n] > most ? row[n] : most; });
          columns.for_each(m, [&](std::int64_t n, int) { row[n] = detail::softmax_weight(row[n], most); });
        });
  Kokkos::parallel_for(
      label, detail::by_argument(Policy(exec, 0, strip.row_count() * count)), KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t r = i / count, d = i % count, l = l0 + r / rows, m = m0 + r % rows;
        double sum = 0, total = 0;
        columns.for_each(m, [&](std::int64_t n, int) {
          const auto weight = static_cast<double>(scores[r * pitch + n]);
          sum = math::add(sum, math::multiply(weight, v(l, n, d)));
          total += weight;
        });
        outputs.store(softmax ? sum / total : sum, l, m, d);
      });
}

/// Whole rows of the scores, in as much memory as the call allows, at least one.
inline detail::StripShape reduction_shape(const Reduction& p) {
  constexpr std::size_t most = 8 << 20;
  constexpr std::int64_t vector = 64;  // scores by which rows are aligned
  detail::StripShape s;
  const std::size_t size = size_of(p.scores.type), limit = p.workspace_limit ? p.workspace_limit : most;
  s.columns = std::max<std::int64_t>(p.n, 1);
  s.pitch = (s.columns + vector - 1) / vector * vector;
  const std::size_t state = detail::keeps_many(p) ? static_cast<std::size_t>(p.count) * 2 * sizeof(std::int64_t) : 0;
  const auto fit = static_cast<std::int64_t>(limit / (static_cast<std::size_t>(s.pitch) * size + state));
  s.rows = std::clamp<std::int64_t>(fit, 1, std::max<std::int64_t>(p.m, 1));
  s.score_bytes = detail::aligned(static_cast<std::size_t>(s.rows * s.pitch) * size);
  s.state_bytes = detail::aligned(static_cast<std::size_t>(s.rows) * state);
  return s;
}

/// The problem with scores of the reference, of whole rows: what ranges leave out is computed, but not looked at.
inline Reduction of_reference(const Reduction& p) {
  Reduction q = p;
  q.score_kernel = "reference";
  q.ranges = nullptr;
  return q;
}

/// Whether it covers a problem whose reducer it has.
inline Status reduction_supports(const Reduction& p) {
  if (!p.score_kernel.empty() && p.score_kernel != "reference")
    return {Decline::name, "takes scores of the reference only, the call names '" + std::string(p.score_kernel) + "'"};
  const detail::StripShape shape = reduction_shape(p);
  if (p.kernel.empty() && shape.rows == 1 && shape.bytes() > detail::workspace_limit(p))
    return {Decline::extents, "takes whole rows of scores, of which one has " + std::to_string(shape.bytes()) +
                                  " bytes, more than the workspace's limit, only for calls that name it"};
  return detail::needs_of_strips(of_reference(p), shape).status;
}

/// The reference for all semirings and reducers, on the spaces of the list.
template <class Spaces>
Kernel<Reduction> reduction_kernel() {
  Kernel<Reduction> k;
  k.info.family = "reference";
  k.info.name = "reference.reduce";
  k.info.spaces = detail::bits_of(Spaces{});
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.supports = [](const Kernel<Reduction>&, const Reduction& p) -> Status {
    if (p.reducer == Reducer::monoid) return {Decline::other, "has no functors of yours"};
    return reduction_supports(p);
  };
  k.cost = [](const Kernel<Reduction>&, const Reduction& p, Plan& plan) {
    detail::StripShape shape = reduction_shape(p);
    const detail::PartNeeds needs = detail::needs_of_strips(of_reference(p), shape);
    shape.kernel_bytes = needs.bytes;
    plan.keep(shape);
    // A launch, and each score of a host's thread; on a GPU seconds of one of its threads, whose row is scattered in memory.
    const auto number = [](std::int64_t i) { return static_cast<double>(i); };
    const double launches = number(p.batch) * std::ceil(number(p.m) / number(shape.rows));
    const double scores = number(p.batch) * number(p.m) * number(p.n);
    const bool device = p.execution.space == Space::cuda;
    if (device) return launches * (needs.seconds + 6e-6 + 1e-7 * number(p.n));
    constexpr double score = 10;  // cycles of a host's thread
    const Cpu& cpu = cpu_of(p.execution);
    return launches * (needs.seconds + cpu.launch_seconds) +
           cpu.seconds(score * scores * number(p.count) / p.execution.concurrency);
  };
  k.workspace = [](const Kernel<Reduction>&, const Reduction&, const Plan& plan) {
    return WorkspaceSize{.bytes = plan.get<detail::StripShape>().bytes()};
  };
  k.run = [](const Kernel<Reduction>& kernel, const Reduction& p, const Plan& plan, const Workspace& workspace) {
    const auto shape = plan.get<detail::StripShape>();
    const std::string label = "rigel::reduce/" + kernel.info.name;
    detail::with_scores(p, [&]<class T>() {
      auto* const scores = static_cast<T*>(workspace.data);
      if (is_weighted(p.reducer)) {
        if constexpr (std::is_floating_point_v<T>)
          detail::with_instance(Spaces{}, p.execution, [&](const auto& exec) {
            detail::for_each_strip(of_reference(p), shape, workspace,
                                   [&](const detail::Strip& strip) { reduce_weighted(exec, label, p, strip, scores); });
          });
        return;
      }
      auto* const lists = reinterpret_cast<detail::Found<T>*>(static_cast<std::byte*>(workspace.data) + shape.score_bytes);
      detail::with_reducer(p, [&]<Reducer reducer>() {
        detail::with_instance(Spaces{}, p.execution, [&](const auto& exec) {
          detail::for_each_strip(of_reference(p), shape, workspace, [&](const detail::Strip& strip) {
            reduce<T, reducer>(exec, label, p, strip, static_cast<const T*>(scores), lists);
          });
        });
      });
    });
  };
  return k;
}

/// The reference for a user's monoid over scores of T: a work item reduces a row, in the order of sums.
template <class Spaces, class T, class M>
Kernel<Reduction> monoid_kernel() {
  Kernel<Reduction> k = reduction_kernel<Spaces>();
  k.supports = [](const Kernel<Reduction>&, const Reduction& p) -> Status { return reduction_supports(p); };
  k.run = [](const Kernel<Reduction>& kernel, const Reduction& p, const Plan& plan, const Workspace& workspace) {
    const std::string label = "rigel::reduce/" + kernel.info.name;
    const auto outputs = detail::ReducedOutputs::of(p);
    const M monoid = *static_cast<const M*>(p.monoid);
    const auto* const scores = static_cast<const T*>(workspace.data);
    const auto columns = detail::RowColumns::of(p);
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
      using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
      detail::for_each_strip(of_reference(p), plan.get<detail::StripShape>(), workspace, [&](const detail::Strip& strip) {
        Kokkos::parallel_for(
            label, detail::by_argument(Policy(exec, 0, strip.row_count())), KOKKOS_LAMBDA(const std::int64_t r) {
              const std::int64_t l = strip.l + r / strip.rows, m = strip.m + r % strip.rows;
              detail::monoid_state<M> states[detail::lanes];
              for (auto& state : states) state = monoid.identity();
              columns.for_each(m, [&](std::int64_t n, int lane) {
                states[lane] = monoid.join(states[lane], monoid.of(scores[r * strip.pitch + n], n));
              });
              detail::join_lanes(monoid, states);
              outputs.store(static_cast<detail::monoid_result<M>>(monoid.result(states[0])), l, m);
            });
      });
    });
  };
  return k;
}

}  // namespace rigel::backends::reference
