// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tiles of with_argument<S>: C(m,n) = ⊕_k A(m,k) ⊗ B(k,n) and the k that won. The main loop keeps no k. Within a slab a
// thread computes only S's ⊕; after the slab it compares the result with the best of earlier slabs, and keeps the slab's number
// if it is better. The store then evaluates the winning slab's products again, from A and B in global memory, by
// with_argument's own ⊕. So value and k are the reference's, whatever ties, NaN and infinities there are.
#pragma once

#include <rigel/backends/cuda/simt/contract.hpp>

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
  using LargeTile = std::conditional_t<
      is_wide, tile::Shape<16, 8, 4, 4, depth, 2, true>,
      std::conditional_t<is_light, tile::Shape<16, 8, 4, 8, depth, 3, true>, tile::Shape<16, 8, 4, 8, depth, 2, true>>>;
  using SmallTile = tile::Shape<8, 8, 4, 4, depth, 4, true>;

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
};

/// What tiles.hpp and contract.hpp need to know: which elements come in vectors, and that whole slabs are unrolled, so that
/// each step knows its place in the slab.
template <class A>
inline constexpr bool in_vectors<WinningSlab<A>> =
    (std::is_same_v<typename A::element, float> || std::is_same_v<typename A::element, std::int32_t> ||
     std::is_same_v<typename A::element, std::uint32_t>) &&
    std::is_same_v<operand_t<A>, typename A::element>;
template <class A, class Shape>
inline constexpr bool takes_vectors<WinningSlab<A>, Shape> =
    in_vectors<WinningSlab<A>> && std::is_same_v<Shape, typename WinningSlab<A>::LargeTile>;
template <class A>
inline constexpr bool unrolls_singles<WinningSlab<A>> = true;

/// Finds value and k in the winning slab, and gives them to the epilogue.
template <class A, class Finish>
struct WinnerFinish : Finish {
  detail::Strided<const typename A::element> a, b;
  std::int64_t k;

  __device__ __forceinline__ void store(const WinningSlab<A>& s, typename WinningSlab<A>::accumulator x, void* c,
                                        std::int64_t offset, std::int64_t m, std::int64_t n, std::int64_t l) const {
    constexpr int depth = WinningSlab<A>::depth;
    if (k % depth != 0) x = s.joined(x, k);  // the last slab
    std::int64_t first = std::int64_t{x.slab} * depth, last = first + depth < k ? first + depth : k;
    typename A::accumulator best = A::identity();
    for (;;) {
#pragma unroll 8
      for (std::int64_t i = first; i < last; ++i)
        best = s.argument.add(best, s.argument.multiply(static_cast<operand_t<A>>(a.at(l, m, i)),
                                                        static_cast<operand_t<A>>(b.at(l, i, n)), i));
      if (best.index >= 0 || last - first == k) break;
      // The slab's products all lose against the identity, as they can outside of the semiring's domain. A later slab's product
      // may be equal to it.
      first = 0, last = k;
    }
    Finish::store(s.argument, best, c, offset, m, n, l);
  }
};

/// Speeds, as contract.hpp predicts times with them. Estimates from the instructions, not measured.
template <class A>
inline constexpr Pace pace<WinningSlab<A>> = {.step = 1.35};
template <class A>
inline constexpr double relative_speed<WinningSlab<A>> = WinningSlab<A>::is_wide ? 1.3 : 2.2;

template <class A, class Finish, class Shape>
void winners_run(const KernelInfo& info, const Contraction& p, void*) {
  using W = WinningSlab<A>;
  using F = WinnerFinish<A, Finish>;
  const auto g = detail::arguments_of<A, Finish>(p);
  const detail::Arguments<W, F> arguments{g.batch,
                                          g.m,
                                          g.n,
                                          g.k,
                                          g.a,
                                          g.b,
                                          g.c,
                                          g.c_strides,
                                          {g.one_semiring},
                                          reinterpret_cast<const W*>(g.semirings),
                                          {{g.finish}, g.a, g.b, g.k},
                                          false,
                                          g.shares_semiring};
  const tile::Raster raster{0, static_cast<unsigned>(rows_of<Shape>(p)), static_cast<unsigned>(columns_of<W, Shape>(p))};
  with_function<W, F, Shape>(p, [&](const void* function, const auto& parameters) {
    launch_tiles(info, p, function, raster, Shape::threads, arguments, parameters);
  });
}

/// A multiprocessor's time to find the winner in its slab: 16 scattered reads for an output. An estimate, too.
inline constexpr double winner_seconds = 7e-9;

template <class A, class Shape>
double winners_cost(const Contraction& p) {
  const double outputs = static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n);
  return cost<WinningSlab<A>, Shape>(p) + winner_seconds * outputs / std::max(p.execution.multiprocessors, 1);
}

template <class A, class Finish, class Shape>
Status winners_supports(const Contraction& p) {
  if (p.k / Shape::depth > std::numeric_limits<std::int32_t>::max())
    return {Decline::extents, "K has more than 2^31 - 1 slabs"};
  return supports<WinningSlab<A>, Finish, Shape>(p);
}

/// Adds the kernels of A's tiles.
template <class A, class Finish>
void add_winner_kernels(std::vector<Kernel<Contraction>>& list) {
  using W = WinningSlab<A>;
  static_assert(sizeof(W) == sizeof(A));  // a view of A serves as one of W
  detail::for_each(type_list<typename W::LargeTile, typename W::SmallTile>{}, [&]<class Shape>() {
    Kernel<Contraction> k;
    k.info = tile_info<A, Shape>();
    k.info.shared_memory = shared_memory_of<W, Shape>();
    k.supports = detail::supports_by<winners_supports<A, Finish, Shape>>;
    k.cost = detail::cost_by<winners_cost<A, Shape>>;
    k.run = detail::run_by<winners_run<A, Finish, Shape>>;
    list.push_back(k);
  });
}

}  // namespace rigel::backends::simt
