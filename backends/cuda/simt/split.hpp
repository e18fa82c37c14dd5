// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For few outputs and long K, or about as many tiles as the card holds: K is cut into slices, which the kernels of
// contract.hpp compute as a batch. A second launch joins the slices' accumulators in ascending order. Each slice is one
// chain, so the result is the same in every run; but sums that round do not have the reference's bits. So these kernels are
// registered separately.
#pragma once

#include <rigel/backends/cuda/simt/narrow.hpp>
#include <rigel/backends/cuda/simt/slices.hpp>

namespace rigel::backends::simt {

/// Whether slices can be joined: C may hold an accumulator as it is.
template <class S>
inline constexpr bool splits =
    std::is_arithmetic_v<typename S::accumulator> && sizeof(typename S::element) >= 4 &&
    std::is_same_v<result_t<S>, typename S::accumulator> && in_zoo<S> && detail::exact_counts<S> == 0;

/// epilogue( C ⊕ slice 0 ⊕ slice 1 ⊕ … ), a thread per output. Slices are row-major M × N matrices.
template <class S>
__global__ void __launch_bounds__(256) join_parts(const __grid_constant__ detail::Arguments<S, detail::ProgramFinish> g,
                                                  const typename S::accumulator* __restrict__ parts, int count) {
  const std::int64_t size = g.m * g.n, at = std::int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (at >= size) return;
  const S s = g.semiring(0);
  auto x = g.start(s, 0, at / g.n, at % g.n);
  for (int p = 0; p < count; ++p) x = s.add(x, parts[p * size + at]);
  g.store(s, x, 0, at / g.n, at % g.n);
}

/// Predicted time of all slices and of joining them. `free`: as if copies took no time.
template <class S>
double slices_seconds(const Contraction& p, const Slices& slices, bool free) {
  using Shape = SmallTile<S>;
  costs::TileCall call = tile_call<S, Shape>(p);
  if (free) call.copies = costs::Copies::free;
  return costs::split_seconds(p, semiring_facts<S>, tile_facts<S, Shape>, call, slices);
}

/// As many slices of whole slabs as fill the card with small tiles. If there are about as many tiles as the card holds, or a
/// few times more: the number of least predicted time, which leaves the fewest multiprocessors idle at the end, as long as
/// the accumulators fit into a workspace that the pool keeps. So the cut, and with it the bits, depend on extents and card
/// alone.
template <class S>
Slices slices_of(const Contraction& p) {
  using Shape = SmallTile<S>;
  constexpr std::int64_t most = 256, few = 4, slab = Shape::depth;
  constexpr std::size_t most_bytes = 128 << 20;
  const std::int64_t multiprocessors = std::max(p.execution.multiprocessors, 1);
  const std::int64_t tiles = std::max<std::int64_t>(rows_of<Shape>(p) * columns_of<S, Shape>(p), 1);
  const std::int64_t filling = std::clamp<std::int64_t>(Shape::blocks * multiprocessors / tiles, 1, most);
  Slices best = slices_of_slabs(p.k, slab, filling);
  if (filling > few || tiles > 2 * few * Shape::blocks * multiprocessors || p.k < few * few * slab) return best;
  double least = slices_seconds<S>(p, best, true);
  for (std::int64_t count = 2; count <= few; ++count) {
    const std::int64_t length = p.k / (count * slab) * slab;
    const Slices slices{length, p.k / length, p.k % length};
    if (workspace_of_slices<typename S::accumulator>(p, slices.count()).bytes > most_bytes) break;
    const double seconds = slices_seconds<S>(p, slices, true);
    if (seconds < least) least = seconds, best = slices;
  }
  return best;
}

/// The last rows or columns of C, if only few reach into a last row or column of tiles. narrow_split_k computes them faster
/// than tiles that are mostly empty.
struct Rest {
  std::int64_t lines = 0;
  bool are_rows = false;
};

inline Contraction lines_of(const Contraction& p, bool rows, detail::Range lines) {
  return detail::part_of(p, {0, p.batch}, rows ? lines : detail::Range{0, p.m}, rows ? detail::Range{0, p.n} : lines);
}

/// visit(the problem without its rest). Usually there is no rest; the problem and its labels are then not copied.
template <class Visit>
auto with_tiles(const Contraction& p, Rest rest, const Visit& visit) {
  return rest.lines == 0 ? visit(p) : visit(lines_of(p, rest.are_rows, {0, (rest.are_rows ? p.m : p.n) - rest.lines}));
}
inline Contraction alone(const Contraction& p, Rest rest) {
  return lines_of(p, rest.are_rows, {(rest.are_rows ? p.m : p.n) - rest.lines, rest.lines});
}

/// The predicted time of the tiles and of the rest, back to back.
template <class S>
double seconds_with(const Contraction& p, Rest rest, bool free) {
  const double seconds =
      with_tiles(p, rest, [&](const Contraction& tiles) { return slices_seconds<S>(tiles, slices_of<S>(tiles), free); });
  if constexpr (narrows<S>)
    if (rest.lines > 0)
      return seconds + costs::split_k_choice(alone(p, rest), semiring_facts<S>, split_k_threads<S>()).second -
             costs::hidden_seconds(p);
  return seconds;
}

/// The rest of least predicted time, for any layout of the operands, since the workspace depends on it. There is one only if
/// ⊕ is exact, so that bits do not change.
template <class S>
Rest rest_of(const Contraction& p) {
  using Shape = SmallTile<S>;
  constexpr std::int64_t most = 4;
  Rest best;
  if constexpr (is_exact<S> && narrows<S>) {
    double least = -1;  // computed if there is a choice
    for (const bool rows : {false, true}) {
      const std::int64_t lines = rows ? p.m : p.n;
      const Rest rest{lines % (rows ? Shape::m : outputs_of<S> * Shape::n), rows};
      if (rest.lines == 0 || rest.lines > most || rest.lines == lines || p.k > max_grid) continue;
      if (least < 0) least = seconds_with<S>(p, best, true);
      if (const double seconds = seconds_with<S>(p, rest, true); seconds < least) least = seconds, best = rest;
    }
  }
  return best;
}

template <class S>
Status split_supports(const Contraction& p) {
  const Status status = slices_fit(p);
  return status ? supports<S, detail::ProgramFinish, SmallTile<S>>(p) : status;
}

/// What split_cost() finds out about a problem.
struct SplitPlan {
  Rest rest;
  Slices slices;  // of the tiles
};

template <class S>
double split_cost(const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
  const Rest rest = rest_of<S>(p);
  plan.keep(SplitPlan{rest, with_tiles(p, rest, slices_of<S>)});
  return seconds_with<S>(p, rest, false);
}

template <class S>
WorkspaceSize split_workspace(const Kernel<Contraction>&, const Contraction& p, const Plan& plan) {
  const auto found = plan.get<SplitPlan>();
  return with_tiles(p, found.rest, [&](const Contraction& tiles) {
    return workspace_of_slices<typename S::accumulator>(tiles, found.slices.count());
  });
}

template <class S>
void run_slices(const KernelInfo& info, const Contraction& p, const Slices& slices, void* workspace) {
  auto* const first = static_cast<typename S::accumulator*>(workspace);
  for_each_slice(p, slices, first,
                 [&](const Contraction& batch) { run<S, detail::ProgramFinish, SmallTile<S>>(info, batch, nullptr); });
  launch_join(info, p, join_parts<S>, 256, 256, detail::arguments_of<S, detail::ProgramFinish>(p), first, slices.count());
}

template <class S>
void split_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace& workspace) {
  const auto found = plan.get<SplitPlan>();
  if constexpr (is_exact<S> && narrows<S>)
    if (found.rest.lines > 0) {
      const Contraction rest = alone(p, found.rest);
      split_k_run<S, detail::ProgramFinish>(kernel.info, rest, split_k_plan<S, detail::ProgramFinish>(rest).first);
    }
  with_tiles(p, found.rest,
             [&](const Contraction& tiles) { run_slices<S>(kernel.info, tiles, found.slices, workspace.data); });
}

template <class S>
Kernel<Contraction> split_kernel() {
  Kernel<Contraction> k = kernel<S, detail::ProgramFinish, SmallTile<S>>();
  set_slices<S>(k.info, "split_k");
  // A slice has 16 k or more, and a join takes 6 u.
  if constexpr (sums_exponentials<S> && sizeof(operand_t<S>) == 8) k.info.accuracy = {72, 1};
  k.supports = detail::supports_by<split_supports<S>>;
  k.cost = split_cost<S>;
  k.workspace = split_workspace<S>;
  k.run = split_run<S>;
  return k;
}

}  // namespace rigel::backends::simt
