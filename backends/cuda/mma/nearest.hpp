// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma.nearest: the least or the k least Euclidean distances, and where they are, by one product of halves on tensor cores that tells
// for certain which few distances can be the least. Those are computed by subtraction, in a chain as the reference's.
#pragma once

#include <rigel/backends/cuda/costs/nearest.hpp>
#include <rigel/backends/cuda/mma/nearest_launch.hpp>
#include <rigel/detail/kernel.hpp>

namespace rigel::backends::mma::nearest {

/// Parts of a row's columns that have some, from whose least bounds the limit of the k smallest follows.
inline std::int64_t parts_of(const Reduction& p) {
  return with_steps(
      p.k, [&](auto steps) { return Layout<decltype(steps)::value>::filled_parts(p.n) - (p.exclude_self ? 1 : 0); });
}

/// The shared memory of a block of the search.
inline int shared_bytes_of(const Reduction& p) {
  return with_steps(p.k, [&](auto steps) {
    constexpr int of_least = Shape<decltype(steps)::value>::bytes, of_many = ManyShape<decltype(steps)::value>::bytes;
    return p.reducer == Reducer::smallest ? of_many : of_least;
  });
}

template <class Element>
Status supports(const Kernel<Reduction>&, const Reduction& p) {
  if (p.reducer != Reducer::minimum && p.reducer != Reducer::smallest) return {Decline::other, "finds the smallest only"};
  if (p.reducer == Reducer::smallest && p.count > most_results)
    return {Decline::extents, "finds the " + std::to_string(most_results) + " smallest at most"};
  if (const Status status = detail::computes_scores(p); !status) return status;
  const bool root = p.program->size() == 1 && p.program->begins_with_root();
  if (!(p.program->empty() || root)) return {Decline::epilogue, "takes scores as they are, or their square roots"};
  if (p.batch != 1) return {Decline::batches, "takes single matrices"};
  if (p.k < 1 || p.k > largest_numbers) return {Decline::extents, "takes K from 1 to " + std::to_string(largest_numbers)};
  if (p.n < 1 || p.n > (std::int64_t{1} << 31) - 1) return {Decline::extents, "takes N from 1 to 2^31 - 1"};
  if (p.reducer == Reducer::smallest && p.n > listed_columns && parts_of(p) < p.count * 5 / 4)
    return {Decline::extents, "N is too small for its sample of bounds"};
  if (const int bytes = shared_bytes_of(p); bytes > p.execution.shared_memory)
    return {Decline::memory, "needs " + std::to_string(bytes) + " bytes of shared memory"};
  const std::size_t limit = detail::workspace_limit(p), bytes = Memory::of(p.m, p.n, p.k, limit).bytes;
  if (bytes > limit)
    return {Decline::extents, "B as halves and a part of the rows take " + std::to_string(bytes) + " bytes, more than the " +
                                  std::to_string(limit) + " of the workspace's limit"};
  return {};
}

inline int results_of(const Reduction& p) { return p.reducer == Reducer::smallest ? static_cast<int>(p.count) : 0; }

template <class Element>
double cost(const Kernel<Reduction>&, const Reduction& p, Plan&) {
  return with_steps(p.k, [&](auto steps) {
    using G = Shape<decltype(steps)::value>;
    return costs::nearest_seconds(
        p, {.numbers = G::numbers, .group = G::group, .rows = G::rows, .blocks = G::blocks, .results = results_of(p)});
  });
}

inline Memory memory_of(const Reduction& p) { return Memory::of(p.m, p.n, p.k, detail::workspace_limit(p)); }
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
  g.count = results_of(p);
  g.root = !p.program->empty();
  g.exclude_self = p.exclude_self;
  enqueue(g, memory_of(p), workspace.data, p.execution.multiprocessors, cuda::Launches(p, kernel.info.name));
}

template <class Element>
Kernel<Reduction> kernel_of() {
  Kernel<Reduction> k;
  k.info = detail::info_of<l2_squared<Element>>("cuda.mma", "nearest", "", bit(Space::cuda));
  k.info.min_compute_capability = 80;
  k.info.promises = Promise::repeatable | Promise::batch_invariant | Promise::reference_bits;
  k.info.raw_launch = true;
  k.supports = supports<Element>;
  k.cost = cost<Element>;
  k.workspace = workspace;
  k.run = run<Element>;
  return k;
}

}  // namespace rigel::backends::mma::nearest
