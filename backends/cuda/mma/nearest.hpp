// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma.nearest: the least or the k least Euclidean distances, and where they are, by one product of halves on tensor cores that tells
// for certain which few distances can be the least. Those are computed by subtraction, in a chain as the reference's.
#pragma once

#include <rigel/backends/cuda/costs/nearest.hpp>
#include <rigel/backends/cuda/mma/nearest_launch.hpp>
#include <rigel/backends/cuda/mma/nearest_problem.hpp>

#include <cmath>
#include <string>

namespace rigel::backends::mma::nearest {

inline int results_of(const Reduction& p) { return p.reducer == Reducer::smallest ? static_cast<int>(p.count) : 0; }
/// The shared memory of a block of the search.
inline int shared_bytes_of(const Reduction& p, const Memory& at) {
  return with_steps(p.k, [&](auto steps) {
    constexpr int of_least = Shape<decltype(steps)::value>::bytes, of_many = ManyShape<decltype(steps)::value>::list_bytes;
    return at.lists.all ? 0 : at.many ? of_many : of_least;
  });
}

inline bool has_parts(const Reduction& p, const Memory& at) {
  return with_steps(p.k, [&](auto steps) { return at.lists.has_parts(Layout<decltype(steps)::value>::group); });
}

/// The predicted time of a search with this memory.
inline double seconds_of(const Reduction& p, const Memory& at) {
  return with_steps(p.k, [&](auto steps) {
    using G = Shape<decltype(steps)::value>;
    const costs::NearestCall call{.numbers = G::numbers, .group = G::group, .rows = G::rows, .blocks = G::blocks};
    if (!at.many) return costs::nearest_seconds(p, call);
    const double pieces = std::ceil(static_cast<double>(p.m) / static_cast<double>(at.rows));
    return costs::nearest_many_seconds(
        p, {call, std::max(results_of(p), 1), at.lists.pitch, pieces, at.lists.all ? 0. : at.lists.strips.count()});
  });
}

/// The minimum of few rows takes the sweeps of the k smallest if all multiprocessors are faster with two than a few of them with one.
inline Memory memory_of(const Reduction& p) {
  const auto with = [&](bool by_lists) {
    return Memory::of(p.m, p.n, p.k, results_of(p), p.exclude_self, detail::workspace_limit(p), by_lists);
  };
  const Memory at = with(false);
  if (at.many || 4 * p.m > std::int64_t{3} * Shape<1>::rows * p.execution.multiprocessors) return at;
  const Memory by_lists = with(true);
  const bool fits = by_lists.bytes <= detail::workspace_limit(p) &&
                    shared_bytes_of(p, by_lists) <= p.execution.shared_memory && has_parts(p, by_lists);
  return fits && seconds_of(p, by_lists) < seconds_of(p, at) ? by_lists : at;
}

template <class Element>
Status supports(const Kernel<Reduction>&, const Reduction& p) {
  if (p.reducer != Reducer::minimum && p.reducer != Reducer::smallest) return {Decline::other, "finds the smallest only"};
  if (p.reducer == Reducer::smallest && p.count > most_results)
    return {Decline::extents, "finds the " + std::to_string(most_results) + " smallest at most"};
  if (const Status status = takes_scores(p, largest_numbers); !status) return status;
  if (p.n < 1 || p.n > (std::int64_t{1} << 31) - 1) return {Decline::extents, "takes N from 1 to 2^31 - 1"};
  const Memory at = memory_of(p);
  if (const int bytes = shared_bytes_of(p, at); bytes > p.execution.shared_memory)
    return {Decline::memory, "needs " + std::to_string(bytes) + " bytes of shared memory"};
  if (const std::size_t limit = detail::workspace_limit(p); at.bytes > limit)
    return {Decline::extents, "lists of 128 rows and a tile of B take " + std::to_string(at.bytes) +
                                  " bytes, more than the " + std::to_string(limit) + " of the workspace's limit"};
  if (at.many && !at.lists.all && !has_parts(p, at))
    return {Decline::extents, "N, or what of it fits into the workspace's limit, is too small for a sample of bounds"};
  return {};
}

template <class Element>
double cost(const Kernel<Reduction>&, const Reduction& p, Plan&) {
  return seconds_of(p, memory_of(p));
}

inline WorkspaceSize workspace(const Kernel<Reduction>&, const Reduction& p, const Plan&) {
  return {.bytes = memory_of(p).bytes};
}

template <class Element>
Points<Element> points(const Operand& o, std::int64_t rows, std::int64_t row_stride, std::int64_t k_stride, std::int64_t k) {
  const bool in_fours =
      k_stride == 1 && row_stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(o.data) % (4 * sizeof(Element)) == 0;
  return {static_cast<const Element*>(o.data), rows, row_stride, k_stride, static_cast<int>(k), in_fours};
}

template <class Element>
void run(const Kernel<Reduction>& kernel, const Reduction& p, const Plan&, const Workspace& workspace) {
  Search<Element> g{};
  g.x = points<Element>(p.a, p.m, p.a.row_stride, p.a.column_stride, p.k);
  g.z = points<Element>(p.b, p.n, p.b.column_stride, p.b.row_stride, p.k);
  g.outputs = detail::ReducedOutputs::of(p);
  g.count = std::max(results_of(p), 1);
  g.root = !p.program->empty();
  g.exclude_self = p.exclude_self;
  const Memory memory = memory_of(p);
  const cuda::Launches launches(p, kernel.info.name);
  SearchLaunches<Element>(g, memory, workspace.data, p.execution.multiprocessors, launches).enqueue();
}

template <class Element>
Kernel<Reduction> kernel() {
  Kernel<Reduction> k = search_of<Element>("cuda.mma", 80, 0);
  k.supports = supports<Element>;
  k.cost = cost<Element>;
  k.workspace = workspace;
  k.run = run<Element>;
  return k;
}

}  // namespace rigel::backends::mma::nearest
