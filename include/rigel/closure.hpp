// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// closure(): D(l,i,j) ← ⊕ over all paths from i to j of ⊗ along the path: all-pairs shortest, widest or most reliable
// paths, or reachability. In place, by blocked elimination on top of contract().
//
// Blocks K of b vertices are eliminated one after the other. If D(i,j) joins the paths whose inner vertices are in earlier
// blocks, then the paths that may also pass through K join to
//
//     D ⊕ D(:,K) ⊗ T ⊗ D(K,:),   T = D(K,K)* = 1 ⊕ D(K,K) ⊕ D(K,K)² ⊕ …
//
// Such a path is cut at its first entry into K and its last exit from K: into a piece before, a walk within K, and a piece
// after. This holds for the block's own rows and columns too: for i in K it joins D(K,:) and D(K,K) ⊗ T ⊗ D(K,:), which is
// T ⊗ D(K,:), because 1 ⊕ D(K,K) ⊗ T = T. So one accumulating contract() over all of D replaces the usual row panel, column
// panel and remainder. The empty path, D(i,i) ⊕ 1, is joined at the start; ⊕ is idempotent, so paths that are joined twice
// do no harm. For each block:
//
//     T = D(K,K)*, R = D(K,:)     one small kernel (detail/closure.hpp)
//     W = D(:,K) ⊗ T              contract, n × b × b
//     D = D ⊕ W ⊗ R               contract, n × n × b
//
// A block of all vertices needs no contractions: D = T.
//
// Graphs of at most 128 vertices do all of this in one launch on a device (detail/small_closure.hpp), in the same order.
//
// S. Warshall, A theorem on Boolean matrices, 1962; R. W. Floyd, Algorithm 97, 1962; D. J. Lehmann, Algebraic structures
// for transitive closure, 1977; G. Venkataraman, S. Sahni, S. Mukhopadhyaya, A blocked all-pairs shortest-paths
// algorithm, 2003.
#pragma once

#include <rigel/contract.hpp>
#include <rigel/detail/closure.hpp>

#include <concepts>
#include <utility>

namespace rigel {

/// Options of closure().
struct ClosureOptions {
  std::int64_t block = 64;  // vertices eliminated at a time
  bool report = true;       // wait for the result and look for cycles; false: asynchronous, an empty report
  Batch batch = Batch::first;
  Promise require = Promise::none;  // of the contractions
  std::string_view kernel = {};     // of the contractions: a kernel's name or the leading part of it; or "closure.small"
  Workspace workspace = {};         // closure_workspace_size() bytes; else from Rigel's pool
};

/// What closure() found in addition to the paths.
struct ClosureReport {
  bool negative_cycle = false;  // some closed walk is better than one(): in min_plus, a cycle of negative weight
  std::int64_t vertex = -1;     // on such a cycle: the first that closes one with vertices before it
  std::int64_t batch = -1;      // its graph
};

/// A semiring with closures: idempotent, with an identity of ⊗, its accumulators numbers.
template <class S>
concept ClosedSemiring =
    Semiring<S> && is_idempotent<S> && MultipliesPairs<S> && std::is_arithmetic_v<typename S::accumulator> && requires {
      { S::one() } -> std::convertible_to<typename S::accumulator>;
    };

namespace detail {

// Builds the call of the driver and hands it to `use`. Index: no_index without predecessors.
template <class Index, class Exec, class S, class Use>
auto with_closure_on(const Exec& exec, const S& semiring, Operand d, const Operand& p, const ClosureOptions& options,
                     const Use& use) {
  using Element = typename S::element;
  using Closed = closed_t<S>;
  using Data = ClosureData<Closed, Index>;
  using Launches = ClosureLaunches<Exec, Closed, Index>;
  const Closed s{semiring};
  d.type = scalar_of_value<Element>();
  ClosureCall call{.arrays = {.semiring = &s, .d = std::move(d), .p = p},
                   .steps = Launches::steps(),
                   .block = options.block,
                   .report = options.report,
                   .kernel = options.kernel,
                   .semiring = semiring_name<S>(),
                   .identity_is_no_path = Data::is_no_path(Data::identity())};
  if constexpr (!KnowsNoPath<S> && requires { S::annihilator(); })
    call.identity_absorbs = typename S::accumulator(S::annihilator()) == typename S::accumulator(S::identity());
  const auto with_update = [&]<class Semiring, class Functor>(const Semiring& semiring, const Functor& functor) {
    using Matrix = Kokkos::View<Element**, typename Exec::memory_space>;
    check_types<Exec, Semiring, Matrix, Matrix, Matrix, Functor>();
    call.update = contraction_on<Element>(
        exec, semiring, {}, {}, {}, functor, {},
        {.accumulate = !Data::tracks, .require = options.require, .kernel = options.kernel, .workspace = options.workspace},
        "contract");
    return use(std::move(call));
  };
  if constexpr (Data::tracks) {
    Improve<Closed, Index> improve{Launches::data_of(call.arrays), 0, 0};
    call.epilogue = &improve;
    return with_update(with_argument<Closed>{s}, improve);
  } else {
    return with_update(s, epilogue::Program{});
  }
}

// What closure() takes, checked when it is compiled.
template <class Exec, class S, class DView>
constexpr void check_closure_types() {
  using Element = typename S::element;
  static_assert(Kokkos::is_execution_space_v<Exec>, "closure: the first argument is a Kokkos execution space instance");
  static_assert(ClosedSemiring<S>, "closure: the second argument is an idempotent semiring with one(), on numbers");
  static_assert(!std::is_integral_v<Element> || std::is_same_v<Element, typename S::accumulator>,
                "closure: integer elements are the semiring's accumulator too: a narrower type has no room for infinity");
  static_assert(
      !std::is_integral_v<Element> || KnowsNoPath<S> || requires { S::annihilator(); },
      "closure: a semiring of integers has to say what no path is: by annihilator() where identity() absorbs, else by "
      "is_no_path(x) (rigel/semiring.hpp). min_times of integers has neither, for its infinity wraps: use float or double");
  static_assert(
      !std::is_final_v<S> || KnowsNoPath<S> || requires { S::annihilator(); },
      "closure: a semiring that is final has to say what no path is, by annihilator() or is_no_path(x); closure() "
      "derives from others to see to it");
  static_assert(holds<typename view_t<DView>::non_const_value_type, Element>,
                "closure: D holds the semiring's element type");
  static_assert(!std::is_same_v<typename view_t<DView>::non_const_value_type, bool> || std::is_same_v<Element, bool> ||
                    std::is_same_v<S, or_and<std::uint8_t>>,
                "closure: D of bool is read and written as bytes, which only or_and<std::uint8_t> keeps 0 or 1");
  static_assert(!std::is_const_v<typename view_t<DView>::value_type>, "closure: D is written, its elements cannot be const");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename view_t<DView>::memory_space>::accessible,
                "closure: the execution space cannot access D");
}

template <class Exec, class S, class DView, class Use>
auto with_closure(const Exec& exec, const S& s, const DView& d, const ClosureOptions& options, const Use& use) {
  check_closure_types<Exec, S, DView>();
  return with_closure_on<no_index>(exec, s, operand_of(d, options.batch, "D"), {}, options, use);
}
template <class Exec, class S, class DView, class PView, class Use>
auto with_closure(const Exec& exec, const S& s, const DView& d, const PView& p, const ClosureOptions& options,
                  const Use& use) {
  using Index = typename view_t<PView>::non_const_value_type;
  check_closure_types<Exec, S, DView>();
  static_assert(is_selective<S>, "closure: predecessors need a selective semiring, whose sums are one of their terms");
  static_assert(std::is_integral_v<Index> && std::is_signed_v<Index> && !std::is_const_v<typename view_t<PView>::value_type>,
                "closure: P holds signed integers that can be written");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename view_t<PView>::memory_space>::accessible,
                "closure: the execution space cannot access P");
  return with_closure_on<Index>(exec, s, operand_of(d, options.batch, "D"), operand_of(p, options.batch, "P"), options, use);
}

template <class V>
inline constexpr bool is_matrix_argument = Kokkos::is_view_v<view_t<V>>;

}  // namespace detail

/// D ← D*: D(l,i,j) = ⊕ over the paths from i to j in graph l, the empty path from i to i included.
///
/// exec      any execution space instance
/// s         a closed semiring; D(l,i,j) holds the arc from i to j, identity() if there is none
/// d         view of rank 2 (n × n) or 3 (with a batch of graphs) of any layout, or a transposed() one, of the semiring's
///           elements; or_and<std::uint8_t> takes bool too
/// returns   whether a cycle is better than one() (min_plus: of negative weight), found during the elimination; D is then
///           unspecified. The call waits for this. With options.report = false it is asynchronous and reports nothing.
/// Sums are rounded to D's element type whenever they are stored (16-bit floats: once for each block that a path crosses).
/// Every kernel gives the same values for the same options.block; another block may associate, hence round, differently.
/// On a device, graphs of at most 128 vertices (64 if elements have 8 bytes) take one launch, a team for each graph, if
/// options.block or n is at most 64. It needs a workspace for the report only. options.kernel = "closure.small" forces it, on a host too;
/// the name of any other kernel forces contractions.
/// D(l,i,j) means no path if it equals identity() exactly, or is_no_path() says so, if the semiring has that. It then counts as
/// identity(). Of a semiring without is_no_path() the product of identity() and anything else is identity(): ⊗ sees to it if the
/// semiring has an annihilator(), which must equal identity(); else closure() does, with two comparisons a product. So 0 next to a missing
/// arc of min_times is no path, where 0·∞ would be NaN. Semirings of integers must have one of the two members.
/// Integers of min_plus and max_plus have is_no_path(): weights of paths must stay within ± infinity()/4. Pairs without a path
/// end as exactly ± infinity(), even with negative arcs.
/// NaN spreads to every path through it, also from an arc to the vertex itself. Where ∞ + NaN is NaN, as in min_plus, that is all of D(l).
/// Throws Error(invalid_argument) for a D that is not square, for an annihilator() other than identity() without is_no_path(),
/// Error(unsupported) if "closure.small" does not cover the call, and as contract() does; D is then unchanged.
template <class Exec, class S, class DView>
ClosureReport closure(const Exec& exec, const S& s, const DView& d, const ClosureOptions& options = {}) {
  return detail::with_closure(exec, s, d, options, detail::run_closure);
}

/// The same for a selective semiring, with the predecessors: P(l,i,j) is the vertex before j on an optimal path from i
/// to j, −1 if i = j, there is no path, or D(l,i,j) is NaN. P holds signed integers, has the extents of D and any layout, and is written only.
///
/// Following P(i,·) from j leads to i if no arc is better than one() (min_plus: no negative weight), whatever ties there are,
/// cycles of weight one() included, and however sums round. With such arcs it does if sums are exact (integers, or floats
/// that hold them). The reason: P(i,j) changes only when D(i,j) strictly improves, and then to the predecessor in a row that is
/// final for this step; of equally good rows the one of the smallest vertex is taken. Assume that the predecessors of row i
/// formed a cycle after a step. D(i,·) never improves along it, so it is a constant x. No vertex of the cycle kept its value in
/// this step next to one that improved to x, for that one would have been worse before. So all of them improved. The row that
/// gave b its predecessor a is one of the best for a too, so the smallest best vertex never grows from b to a, and it is the
/// same all around the cycle. But then the cycle was in that row already.
/// To this end the block's own rows are eliminated vertex by vertex, not by a product, which could break ties differently.
/// "closure.small" keeps no predecessors.
template <class Exec, class S, class DView, class PView>
  requires detail::is_matrix_argument<PView>
ClosureReport closure(const Exec& exec, const S& s, const DView& d, const PView& p, const ClosureOptions& options = {}) {
  return detail::with_closure(exec, s, d, p, options, detail::run_closure);
}

/// Bytes of workspace that the same call of closure() needs, in memory of the execution space, aligned to 256.
template <class Exec, class S, class DView>
std::size_t closure_workspace_size(const Exec& exec, const S& s, const DView& d, const ClosureOptions& options = {}) {
  return detail::with_closure(exec, s, d, options, detail::closure_bytes);
}
template <class Exec, class S, class DView, class PView>
  requires detail::is_matrix_argument<PView>
std::size_t closure_workspace_size(const Exec& exec, const S& s, const DView& d, const PView& p,
                                   const ClosureOptions& options = {}) {
  return detail::with_closure(exec, s, d, p, options, detail::closure_bytes);
}

}  // namespace rigel
