// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.hopper.nearest: the least Euclidean distance of rows of 16-bit floats, and where it is. One product by wgmma of the numbers as they
// are tells for certain which few distances can be the least; those are computed by subtraction, in a chain as the reference's.
#pragma once

#include <rigel/backends/cuda/costs/nearest.hpp>
#include <rigel/backends/cuda/hopper/nearest_kernel.hpp>
#include <rigel/backends/cuda/hopper/tensor_map.hpp>
#include <rigel/backends/cuda/mma/nearest_listed.hpp>
#include <rigel/backends/cuda/mma/nearest_problem.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>
#include <string>
#include <type_traits>

namespace rigel::backends::hopper::nearest {

inline constexpr std::int64_t largest_k = 128;

/// Calls use(std::integral_constant<int, steps>) with the least number of steps along K that a kernel exists for.
template <class Use>
auto with_steps(std::int64_t k, const Use& use) {
  if (k <= 64) return use(std::integral_constant<int, 4>{});
  return use(std::integral_constant<int, 8>{});
}

/// Where what the launches share lies in the workspace. Rows are searched so many at a time.
struct Memory {
  std::size_t norms = 0, list = 0, keys = 0, bytes = 0;
  std::int64_t rows = 0;

  static Memory of(const Reduction& p) {
    constexpr std::int64_t least = 1 << 16, largest = 1 << 30;
    constexpr std::size_t of_row = sizeof(unsigned) + sizeof(unsigned long long);
    const std::size_t limit = detail::workspace_limit(p);
    Memory at;
    at.norms = detail::aligned(sizeof(Found));
    at.list = at.norms + detail::aligned(static_cast<std::size_t>(Layout::tiles(p.n)) * Layout::columns * sizeof(float));
    const auto fit = static_cast<std::int64_t>((limit > at.list ? limit - at.list : 0) / of_row / 256 * 256);
    at.rows = std::min({p.m, std::max(fit, least), largest});
    at.keys = at.list + detail::aligned(static_cast<std::size_t>(at.rows) * sizeof(unsigned));
    at.bytes = at.keys + detail::aligned(static_cast<std::size_t>(at.rows) * sizeof(unsigned long long));
    return at;
  }
};

/// Whether tensor copies read these rows as they are.
template <class Element>
bool is_readable(const Operand& o, std::int64_t rows, std::int64_t row_stride, std::int64_t k, std::int64_t k_stride) {
  constexpr std::int64_t in_16_bytes = 16 / sizeof(Element), longest = std::int64_t{1} << 38;
  return (k == 1 || k_stride == 1) && reinterpret_cast<std::uintptr_t>(o.data) % 16 == 0 &&
         (rows == 1 || (row_stride % in_16_bytes == 0 && row_stride >= k && row_stride < longest));
}

template <class Element>
Status supports(const Kernel<Reduction>&, const Reduction& p) {
  if (p.reducer != Reducer::minimum) return {Decline::other, "finds the smallest only"};
  if (p.exclude_self) return {Decline::other, "does not leave out the scores of n = m"};
  if (const Status status = mma::nearest::takes_scores(p, largest_k); !status) return status;
  if (p.n < 1 || p.n > (std::int64_t{1} << 31) - Layout::columns)
    return {Decline::extents, "takes N from 1 to 2^31 - " + std::to_string(Layout::columns)};
  if (!is_readable<Element>(p.a, p.m, p.a.row_stride, p.k, p.a.column_stride) ||
      !is_readable<Element>(p.b, p.n, p.b.column_stride, p.k, p.b.row_stride))
    return {Decline::layout, "reads rows whose numbers are neighbours in memory, and which begin at multiples of 16 bytes"};
  const std::size_t limit = detail::workspace_limit(p), bytes = Memory::of(p).bytes;
  if (bytes > limit)
    return {Decline::extents, "norms of B and a part of the rows take " + std::to_string(bytes) + " bytes, more than the " +
                                  std::to_string(limit) + " of the workspace's limit"};
  return {};
}

template <class Element>
double cost(const Kernel<Reduction>&, const Reduction& p, Plan&) {
  return with_steps(p.k, [&](auto steps) {
    using G = Shape<Element, decltype(steps)::value>;
    return mma::costs::least_by_warpgroups_seconds(
        p, {.numbers = G::numbers, .group = G::classes, .rows = G::rows, .columns = G::columns});
  });
}

inline WorkspaceSize workspace(const Kernel<Reduction>&, const Reduction& p, const Plan&) {
  return {.bytes = Memory::of(p).bytes};
}

/// Rows for tensor copies of `box_rows` rows and 128 bytes.
template <class Element>
CUtensorMap map_of(const Points<Element>& rows, int box_rows, const cuda::Launches& launches) {
  return tensor_map({.data = rows.data,
                     .size = sizeof(Element),
                     .extent = rows.k,
                     .rows = rows.rows,
                     .count = 1,
                     .row_stride = rows.row_stride * static_cast<std::int64_t>(sizeof(Element)),
                     .stride = 0},
                    128 / sizeof(Element), box_rows, Permuted::bytes_128, launches);
}

template <class Element>
void run(const Kernel<Reduction>& kernel, const Reduction& p, const Plan&, const Workspace& workspace) {
  const cuda::Launches launches(p, kernel.info.name);
  const Memory at = Memory::of(p);
  auto* const memory = static_cast<unsigned char*>(workspace.data);
  auto* const norms = reinterpret_cast<float*>(memory + at.norms);
  Arguments<Element> g{};
  const int k = static_cast<int>(p.k);
  g.search.x = {static_cast<const Element*>(p.a.data), p.m, p.a.row_stride, 1, k, true};
  g.search.z = {static_cast<const Element*>(p.b.data), p.n, p.b.column_stride, 1, k, true};
  g.search.found = reinterpret_cast<Found*>(memory);
  g.search.list = reinterpret_cast<unsigned*>(memory + at.list);
  g.search.keys = reinterpret_cast<unsigned long long*>(memory + at.keys);
  g.search.outputs = detail::ReducedOutputs::of(p);
  g.search.tile_count = static_cast<unsigned>(Layout::tiles(p.n));
  g.search.root = !p.program->empty();
  g.norms = norms;
  const auto clear = [&](void* data, std::size_t bytes) {
    launches.check(cudaMemsetAsync(data, 0, bytes, launches.stream()), "cudaMemsetAsync before the launch");
  };
  with_steps(p.k, [&](auto steps) {
    using G = Shape<Element, decltype(steps)::value>;
    constexpr int bytes = sizeof(Storage<G>);
    static_assert(arch::holds(arch::shared_memory_of_sm_90, 1, bytes));
    static cuda::LaunchFacts facts;
    const auto function = &search_nearest<Element, G::steps>;
    facts.find(reinterpret_cast<const void*>(function), bytes, launches);  // before anything is enqueued
    clear(g.search.found, sizeof(Found));
    const unsigned columns = g.search.tile_count * G::columns;
    launches(&prepare_norms<Element>, columns / norms_of_block, pass_threads, 0, g.search.z, norms, g.search.found,
             G::numbers, columns);
    g.z = map_of(g.search.z, G::columns, launches);
    for (g.search.first_row = 0; g.search.first_row < p.m; g.search.first_row += at.rows) {
      const std::int64_t rows = std::min(at.rows, p.m - g.search.first_row);
      g.search.row_count = static_cast<unsigned>(rows);
      Points<Element> part = g.search.x;
      part.data += g.search.first_row * part.row_stride;
      part.rows = rows;
      g.x = map_of(part, G::quarter_rows, launches);
      if (g.search.first_row > 0) clear(&g.search.found->listed, sizeof g.search.found->listed);
      const std::int64_t blocks = std::min<std::int64_t>((rows + G::rows - 1) / G::rows, p.execution.multiprocessors);
      launches(function, static_cast<unsigned>(blocks), G::threads, bytes, g);
      mma::nearest::enqueue_listed(g.search, p.execution.multiprocessors, launches);
    }
  });
}

template <class Element>
Kernel<Reduction> kernel() {
  Kernel<Reduction> k = mma::nearest::search_of<Element>("cuda.hopper", 90, 90);
  k.supports = supports<Element>;
  k.cost = cost<Element>;
  k.workspace = workspace;
  k.run = run<Element>;
  return k;
}

}  // namespace rigel::backends::hopper::nearest
