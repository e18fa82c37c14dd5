// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tiles of with_argument<S>: C(m,n) = ⊕_k A(m,k) ⊗ B(k,n) and the k that won. The main loop keeps no k. Within a slab a
// thread computes only S's ⊕; after the slab it compares the result with the best of earlier slabs, and keeps the slab's number
// if it is better. The store then evaluates the winning slab's products again, from A and B in global memory, by
// with_argument's own ⊕. So value and k are the reference's, whatever ties, NaN and infinities there are.
#pragma once

#include <rigel/backends/cuda/simt/contract.hpp>
#include <rigel/backends/cuda/simt/lanes.hpp>
#include <rigel/backends/cuda/simt/slices.hpp>

#include <limits>

namespace rigel::backends::simt {

/// Of one output: the best product of the current slab, that of all slabs before, and the slab from which this one came.
template <class Value>
struct SlabWinner {
  Value current, best;
  std::int32_t slab;
};

/// Whether A is with_argument of a semiring on numbers of 32 or 64 bits, whose ⊗ is short enough to be unrolled.
template <class A>
inline constexpr bool wins_by_slabs = false;
template <class S>
inline constexpr bool wins_by_slabs<with_argument<S>> =
    std::is_arithmetic_v<typename S::accumulator> &&
    (sizeof(typename S::accumulator) == 4 || sizeof(typename S::accumulator) == 8) && sizeof(operand_t<S>) <= 8 &&
    std::is_arithmetic_v<operand_t<S>> && !is_transcendental<S>;

/// x ⊕ y of S, NaN if either is NaN. The zoo's operations are so themselves; a user's may drop a NaN.
template <class S, class Value>
__device__ __forceinline__ Value add_or_nan(const S& s, Value x, Value y) {
  const Value sum = s.add(x, y);
  if constexpr (std::is_floating_point_v<Value> && !in_zoo<S>)
    return __builtin_isunordered(x, y) ? x + y : sum;
  else
    return sum;
}

/// What the main loop computes for A = with_argument<S>: the slab that holds the winner.
template <class A>
struct WinningSlab {
  using S = decltype(A::semiring);
  using Value = typename S::accumulator;
  using element = typename A::element;
  using operand = operand_t<A>;
  using accumulator = SlabWinner<Value>;
  static constexpr int depth = 8;  // k of a slab
  // A thread keeps three registers for each output, or five. It needs others to convert elements, and for a user's ⊗.
  static constexpr bool is_wide = sizeof(Value) > 4 || sizeof(operand) > 4;
  static constexpr bool is_light = in_zoo<S> && std::is_same_v<element, tile::stored_t<operand>>;
  using LargeTile = Large<16, 8, 4, is_wide ? 4 : 8, depth, !is_wide && is_light ? 3 : 2, true>;
  using SmallTile = Small<8, 8, 4, 4, depth, 4, true>;

  A argument;

  RIGEL_MEMBER static constexpr accumulator identity() { return {S::identity(), S::identity(), 0}; }
  __device__ __forceinline__ auto multiply(operand a, operand b, std::int64_t k) const { return argument.multiply(a, b, k); }
  __device__ __forceinline__ accumulator add(accumulator x, typename A::accumulator term) const {
    const auto in_slab = static_cast<std::uint64_t>(term.index) % depth;  // known to the compiler in unrolled slabs
    x.current = in_slab == 0 ? term.value : add_or_nan(argument.semiring, x.current, term.value);
    return in_slab == depth - 1 ? joined(x, term.index) : x;
  }
  /// x after the slab of k: the earlier slab wins a tie, and the first NaN over later ones.
  __device__ __forceinline__ accumulator joined(accumulator x, std::int64_t k) const {
    const Value best = add_or_nan(argument.semiring, x.best, x.current);
    const bool better = best != x.best && x.best == x.best;
    return {x.current, best, better ? static_cast<std::int32_t>(k / depth) : x.slab};
  }
  /// The winner of two ranges of slabs, in any order: with_argument's ⊕ of values and slabs.
  __device__ __forceinline__ accumulator winner(accumulator x, accumulator y) const {
    const typename A::accumulator best = argument.add({x.best, x.slab}, {y.best, y.slab});
    return {x.current, best.value, static_cast<std::int32_t>(best.index)};
  }
};

/// What tiles.hpp and contract.hpp need to know: which elements come in vectors, and that whole slabs are unrolled, so that
/// each step knows its place in the slab.
template <class A>
inline constexpr bool in_vectors<WinningSlab<A>> =
    (std::is_same_v<typename A::element, float> || std::is_same_v<typename A::element, std::int32_t> ||
     std::is_same_v<typename A::element, std::uint32_t>) &&
    std::is_same_v<operand_t<A>, typename A::element>;
template <class A, class Shape>
inline constexpr bool takes_vectors<WinningSlab<A>, Shape> = in_vectors<WinningSlab<A>> && Shape::role == tile::Role::large;
template <class A>
inline constexpr bool unrolls_singles<WinningSlab<A>> = true;

/// Finds value and k in the winning slab, and gives them to the epilogue.
template <class A, class Finish>
struct WinnerFinish : Finish {
  detail::Strided<const typename A::element> a, b;
  std::int64_t k;

  __device__ __forceinline__ void store(const WinningSlab<A>& s, typename WinningSlab<A>::accumulator x, void* c,
                                        std::int64_t offset, std::int64_t m, std::int64_t n, std::int64_t l) const {
    if (k % WinningSlab<A>::depth != 0) x = s.joined(x, k);  // the last slab
    store_winner(s, x.slab, c, offset, m, n, l);
  }

  __device__ __forceinline__ void store_winner(const WinningSlab<A>& s, std::int32_t slab, void* c, std::int64_t offset,
                                               std::int64_t m, std::int64_t n, std::int64_t l) const {
    constexpr int depth = WinningSlab<A>::depth;
    typename A::accumulator best = A::identity();
    const auto join = [&](std::int64_t i) __attribute__((always_inline)) {
      best = s.argument.add(
          best, s.argument.multiply(static_cast<operand_t<A>>(a.at(l, m, i)), static_cast<operand_t<A>>(b.at(l, i, n)), i));
    };
    const std::int64_t first = std::int64_t{slab} * depth;
    if (first + depth <= k) {
#pragma unroll
      for (int i = 0; i < depth; ++i) join(first + i);
    } else {
#pragma unroll 1
      for (std::int64_t i = first; i < k; ++i) join(i);
    }
    // The slab's products all lose against the identity, as they can outside of the semiring's domain. A later slab's product may
    // be equal to it.
    if (best.index < 0)
#pragma unroll 1
      for (std::int64_t i = 0; i < k; ++i) join(i);
    Finish::store(s.argument, best, c, offset, m, n, l);
  }
};

template <class A>
inline constexpr Tuning tuning<WinningSlab<A>> = {.work = WinningSlab<A>::is_wide ? costs::Work::wide_winners
                                                                                  : costs::Work::winners};

/// The arguments of A's kernels as those of WinningSlab<A>, with another Finish.
template <class A, class Finish, class F>
detail::Arguments<WinningSlab<A>, F> winning_arguments(const detail::Arguments<A, Finish>& g, const F& finish) {
  using W = WinningSlab<A>;
  static_assert(sizeof(W) == sizeof(A));  // a view of A serves as one of W
  return {g, g.c, g.c_strides, {g.one_semiring}, reinterpret_cast<const W*>(g.semirings), finish, false, g.shares_semiring};
}

/// Those of a call that stores the winners themselves.
template <class A, class Finish>
auto winner_arguments(const Contraction& p) {
  const auto g = detail::arguments_of<A, Finish>(p);
  return winning_arguments(g, WinnerFinish<A, Finish>{{g.finish}, g.a, g.b, g.k});
}

template <class A, class F, class Shape>
void launch_winners(const KernelInfo& info, const Contraction& p, const detail::Arguments<WinningSlab<A>, F>& arguments) {
  using W = WinningSlab<A>;
  with_function<W, F, Shape>(p, [&](const void* function, const auto& parameters) {
    launch_tiles(info, p, function, raster_of<W, Shape>(p), Shape::threads, arguments, parameters);
  });
}

template <class A, class Finish, class Shape>
void winners_run(const KernelInfo& info, const Contraction& p, void*) {
  launch_winners<A, WinnerFinish<A, Finish>, Shape>(info, p, winner_arguments<A, Finish>(p));
}

template <class A, class Shape>
double winners_cost(const Contraction& p) {
  using W = WinningSlab<A>;
  return costs::winners_seconds(p, semiring_facts<W>, tile_facts<W, Shape>, tile_call<W, Shape>(p));
}

template <class A, class Finish, class Shape>
Status winners_supports(const Contraction& p) {
  if (p.k / Shape::depth > std::numeric_limits<std::int32_t>::max())
    return {Decline::extents, "K has more than 2^31 - 1 slabs"};
  return supports<WinningSlab<A>, Finish, Shape>(p);
}

/// Stores the winning slabs of a slice of K.
template <class A, class Finish>
struct SlabFinish : Finish {
  std::int64_t k;  // of the slice

  __device__ __forceinline__ void store(const WinningSlab<A>& s, typename WinningSlab<A>::accumulator x, void* c,
                                        std::int64_t offset, std::int64_t, std::int64_t, std::int64_t) const {
    if (k % WinningSlab<A>::depth != 0) x = s.joined(x, k);
    static_cast<typename WinningSlab<A>::accumulator*>(c)[offset] = x;
  }
};

/// Joins the slices' winners, `slabs` slabs apart, and gives an output's value and k to the epilogue; a warp per output.
template <class A, class Finish>
__global__ void __launch_bounds__(256)
    join_winners(const __grid_constant__ detail::Arguments<WinningSlab<A>, WinnerFinish<A, Finish>> g,
                 const typename WinningSlab<A>::accumulator* __restrict__ slices, int count, std::int32_t slabs) {
  using W = WinningSlab<A>;
  const std::int64_t size = g.m * g.n, at = std::int64_t{blockIdx.x} * 8 + threadIdx.x / 32;
  if (at >= size) return;
  const W s = g.semiring(0);
  typename W::accumulator x = W::identity();
  for (int i = static_cast<int>(threadIdx.x) % 32; i < count; i += 32) {
    typename W::accumulator next = slices[i * size + at];
    next.slab += i * slabs;
    x = i < 32 ? next : s.winner(x, next);
  }
  if (static_cast<int>(threadIdx.x) % 32 >= count) x.slab = std::numeric_limits<std::int32_t>::max();
#pragma unroll
  for (int lane = 1; lane < 32; lane *= 2) x = s.winner(x, of_lane(x, lane));
  if (threadIdx.x % 32 != 0) return;
  const std::int64_t m = at / g.n, n = at % g.n;
  g.finish.store_winner(s, count > 0 ? x.slab : 0, g.c, g.c_offset(0, m, n), m, n, 0);
}

/// For few outputs and long K: the small tile computes slices of K as a batch, and a second launch joins their winners.
template <class A, class Finish>
struct SplitWinners {
  using W = WinningSlab<A>;
  using Shape = typename W::SmallTile;
  using Slice = typename W::accumulator;

  static std::int64_t tiles_of(const Product& p) { return rows_of<Shape>(p) * columns_of<W, Shape>(p); }

  /// As many slices as fill the card.
  static Slices slices_of(const Product& p) {
    constexpr std::int64_t most = 1024;
    const std::int64_t resident = Shape::blocks * std::int64_t{std::max(p.execution.multiprocessors, 1)};
    return slices_of_slabs(p.k, Shape::depth,
                           std::clamp<std::int64_t>(resident / std::max<std::int64_t>(tiles_of(p), 1), 1, most));
  }

  static Status supports(const Contraction& p) {
    const Status status = slices_fit(p);
    return status ? winners_supports<A, Finish, Shape>(p) : status;
  }

  static double cost(const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
    const Slices slices = slices_of(p);
    plan.keep(slices);
    costs::TileCall call = tile_call<W, Shape>(p);
    call.tiles = tiles_of(p);
    return costs::split_winners_seconds(p, semiring_facts<W>, tile_facts<W, Shape>, call, slices);
  }

  static WorkspaceSize workspace(const Kernel<Contraction>&, const Contraction& p, const Plan& plan) {
    return workspace_of_slices<Slice>(p, plan.get<Slices>().count());
  }

  static void run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace& workspace) {
    const auto slices = plan.get<Slices>();
    auto* const winners = static_cast<Slice*>(workspace.data);
    for_each_slice(p, slices, winners, [&](const Contraction& batch) {
      using F = SlabFinish<A, Finish>;
      const auto g = detail::arguments_of<A, Finish>(batch);
      launch_winners<A, F, Shape>(kernel.info, batch, winning_arguments(g, F{{g.finish}, batch.k}));
    });
    launch_join(kernel.info, p, join_winners<A, Finish>, 8, 256, winner_arguments<A, Finish>(p), winners, slices.count(),
                static_cast<std::int32_t>(slices.length / Shape::depth));
  }

  static Kernel<Contraction> kernel() {
    Kernel<Contraction> k;
    k.info = tile_info<A, Shape>("split_k");
    k.info.shared_memory = shared_memory_of<W, Shape>();
    k.supports = detail::supports_by<supports>;
    k.cost = cost;
    k.workspace = workspace;
    k.run = run;
    return k;
  }
};

/// Adds the kernels of A's tiles.
template <class A, class Finish>
void add_winner_kernels(std::vector<Kernel<Contraction>>& list) {
  using W = WinningSlab<A>;
  detail::for_each(type_list<typename W::LargeTile, typename W::SmallTile>{}, [&]<class Shape>() {
    Kernel<Contraction> k;
    k.info = tile_info<A, Shape>();
    k.info.shared_memory = shared_memory_of<W, Shape>();
    k.supports = detail::supports_by<winners_supports<A, Finish, Shape>>;
    k.cost = detail::cost_by<winners_cost<A, Shape>>;
    k.run = detail::run_by<winners_run<A, Finish, Shape>>;
    list.push_back(k);
  });
  // A ⊕ that depends on the order keeps it.
  if constexpr (in_zoo<decltype(A::semiring)> || is_exact<A>) list.push_back(SplitWinners<A, Finish>::kernel());
}

}  // namespace rigel::backends::simt
