// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For few outputs and long K, or about as many tiles as the card holds: K is cut into slices, which the kernels of
// contract.hpp compute as a batch, or `small` if tiles would be mostly empty. A second launch joins the slices' accumulators in
// a fixed order. So the result is the same in every run; but sums that round do not have the reference's bits. So these kernels
// are registered separately.
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

template <class S>
Status split_supports(const Contraction& p) {
  const Status status = slices_fit(p);
  return status ? supports<S, detail::ProgramFinish, SmallTile<S>>(p) : status;
}

template <class S>
double split_cost(const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
  const Slices slices = slices_of<S>(p);
  plan.keep(slices);
  return slices_seconds<S>(p, slices, false);
}

template <class S>
WorkspaceSize split_workspace(const Kernel<Contraction>&, const Contraction& p, const Plan& plan) {
  return workspace_of_slices<typename S::accumulator>(p, plan.get<Slices>().count());
}

template <class S>
void split_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace& workspace) {
  const auto slices = plan.get<Slices>();
  auto* const first = static_cast<typename S::accumulator*>(workspace.data);
  for_each_slice(p, slices, first, [&](const Contraction& batch) {
    run<S, detail::ProgramFinish, SmallTile<S>>(kernel.info, batch, nullptr);
  });
  launch_join(kernel.info, p, join_parts<S>, 256, 256, detail::arguments_of<S, detail::ProgramFinish>(p), first,
              slices.count());
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

// ---- small_split_k ---------------------------------------------------------------------------------------------------------
//
// The same for any type and layout, by batches of small matrices. The join takes the last k, which make no slice, itself.

/// Whether a semiring has this kernel: C may hold an accumulator as it is.
template <class S>
inline constexpr bool splits_into_small =
    has_small<S> && in_zoo<S> && Number<typename S::accumulator> && std::is_same_v<result_t<S>, typename S::accumulator>;

/// A block joins `outputs` neighbours; `groups` threads of each take neighbouring slices, and every groups-th of the last k.
struct Join {
  static constexpr int outputs = 16, groups = 64, threads = outputs * groups;
};

/// epilogue( C ⊕ slice 0 ⊕ … ⊕ the products from k = `whole` on ). Slices are row-major M × N matrices.
template <class S>
__global__ void __launch_bounds__(Join::threads, 1)
    join_slices(const __grid_constant__ detail::Arguments<S, detail::ProgramFinish> g,
                const typename S::accumulator* __restrict__ slices, int count, std::int64_t whole) {
  using Accumulator = typename S::accumulator;
  using Operand = operand_t<S>;
  __shared__ Accumulator sums[Join::groups][Join::outputs];
  const int output = static_cast<int>(threadIdx.x) % Join::outputs, group = static_cast<int>(threadIdx.x) / Join::outputs;
  const std::int64_t size = g.m * g.n, at = std::int64_t{blockIdx.x} * Join::outputs + output, m = at / g.n, n = at % g.n;
  const int each = (count + Join::groups - 1) / Join::groups, first = group * each, last = std::min(first + each, count);
  const S s = g.semiring(0);
  Accumulator x = S::identity();
  if (at < size) {
    if (first < last) x = slices[first * size + at];
#pragma unroll 4
    for (int slice = first + 1; slice < last; ++slice) x = s.add(x, slices[slice * size + at]);
    if (whole + group < g.k) {
      const auto product = [&](Accumulator before, std::int64_t k) {
        return step(s, before, static_cast<Operand>(g.a.at(0, m, k)), static_cast<Operand>(g.b.at(0, k, n)), k);
      };
      Accumulator rest = S::identity();
#pragma unroll 1
      for (std::int64_t k = whole + group; k < g.k; k += Join::groups) rest = product(rest, k);
      x = first < last ? s.add(x, rest) : rest;
    }
  }
  sums[group][output] = x;
  __syncthreads();
  if (group > 0 || at >= size) return;
  const int joined = std::max(std::min((count + each - 1) / std::max(each, 1), Join::groups),
                              static_cast<int>(std::min<std::int64_t>(g.k - whole, Join::groups)));
#pragma unroll 4
  for (int other = 1; other < joined; ++other) x = s.add(x, sums[other][output]);
  g.store(s, added_to_c(g, s, x, 0, m, n), 0, m, n);
}

/// Slices of whole multiples of 64 k, about a thousand of them at most: the cut, and with it the bits, depend on K alone.
inline Slices small_slices_of(std::int64_t k) { return slices_of_slabs(k, 64, 1024); }

template <class S>
Status small_split_k_supports(const Contraction& p) {
  if (const Status status = slices_fit(p, 1 << 14); !status) return status;
  const Slices slices = small_slices_of(p.k);
  if (slices.whole < 2) return {Decline::extents, "K is too short for several slices"};
  if (const Status status = detail::counts_exactly<S>(p); !status) return status;
  const Status status = small_supports<S, detail::ProgramFinish>(
      as_batch<typename S::accumulator>(p, 0, slices.length, slices.whole, p.c.data));
  return status ? detail::finish_supports<detail::ProgramFinish>(p) : status;
}

template <class S>
double small_split_k_cost(const Kernel<Contraction>& kernel, const Contraction& p, Plan& plan) {
  const Slices slices = small_slices_of(p.k);
  const Contraction batch = as_batch<typename S::accumulator>(p, 0, slices.length, slices.whole, p.c.data);
  return small_cost<S, detail::ProgramFinish>(kernel, batch, plan) +
         costs::small_join_seconds(p, static_cast<double>((p.m * p.n + Join::outputs - 1) / Join::outputs),
                                   static_cast<double>(p.m * p.n * slices.whole) * sizeof(typename S::accumulator),
                                   slices.rest > 0);
}

template <class S>
void small_split_k_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan,
                       const Workspace& workspace) {
  if (p.m == 0 || p.n == 0) return;
  const Slices slices = small_slices_of(p.k);
  auto* const memory = static_cast<typename S::accumulator*>(workspace.data);
  small_run<S, detail::ProgramFinish>(kernel, as_batch<typename S::accumulator>(p, 0, slices.length, slices.whole, memory),
                                      plan, {});
  launch_join(kernel.info, p, join_slices<S>, Join::outputs, Join::threads,
              detail::arguments_of<S, detail::ProgramFinish>(p), memory, static_cast<int>(slices.whole),
              slices.length * slices.whole);
}

template <class S>
Kernel<Contraction> small_split_k_kernel() {
  Kernel<Contraction> k = small_kernel<S, detail::ProgramFinish>();
  set_slices<S>(k.info, "small_split_k");
  k.info.accumulates = k.info.accumulates && detail::exact_counts<S> == 0;
  k.supports = detail::supports_by<small_split_k_supports<S>>;
  k.cost = small_split_k_cost<S>;
  k.workspace = [](const Kernel<Contraction>&, const Contraction& p, const Plan&) {
    return workspace_of_slices<typename S::accumulator>(p, small_slices_of(p.k).whole);
  };
  k.run = small_split_k_run<S>;
  return k;
}

}  // namespace rigel::backends::simt
