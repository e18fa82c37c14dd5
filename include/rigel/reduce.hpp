// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce(): ⊞_n of the scores epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ) of each row m, for any semiring, without a matrix of scores.
#pragma once

#include <rigel/contract.hpp>
#include <rigel/detail/reduction_front.hpp>
#include <rigel/ranges.hpp>
#include <rigel/reduction_problem.hpp>

namespace rigel {

/// What reduce() makes of a row of scores s(n), n = 0 … N − 1. docs/reductions.md has their table.
namespace reducer {

/// min_n s(n), and the n where it is: the smallest of several. NaN counts as smaller than all numbers, so that it shows, as in NumPy's min
/// and argmin; the first NaN wins. Of no scores: ∞ and −1.
struct minimum {
  static constexpr Reducer kind = Reducer::minimum;
};
/// max_n s(n) and its n; the same rules. Of no scores: −∞ (of unsigned integers 0) and −1.
struct maximum {
  static constexpr Reducer kind = Reducer::maximum;
};
/// The k smallest s(n) in ascending order, and their n; equal ones by ascending n. NaN counts as larger than all numbers, as in NumPy's
/// sort and PyTorch's topk. If there are fewer than k scores, ∞ and −1 follow them. 1 ≤ k ≤ 4096.
struct smallest {
  static constexpr Reducer kind = Reducer::smallest;
  std::int64_t k;
};
/// The k largest s(n) in descending order, NaN first; equal ones by ascending n. −∞ (0) and −1 follow if there are fewer.
struct largest {
  static constexpr Reducer kind = Reducer::largest;
  std::int64_t k;
};
/// Σ_n s(n), in double; of integers in 64 bits, which wrap. Of no scores: 0.
struct sum {
  static constexpr Reducer kind = Reducer::sum;
};
/// log Σ_n exp(s(n)), relative to the maximum, so that nothing overflows; docs/numerics.md. Of no scores, and of −∞ alone: −∞.
struct log_sum_exp {
  static constexpr Reducer kind = Reducer::log_sum_exp;
};
/// How many s(n) < threshold, or ≤ with or_equal. NaN does not count.
struct count_below {
  static constexpr Reducer kind = Reducer::count_below;
  double threshold;
  bool or_equal = false;
};

/// All s(n) < threshold (≤ with or_equal) by ascending n, and their n, of all rows one after the other, as a compressed sparse row matrix
/// has them: values and indices, of rank 1, get row m's from offsets(m) to offsets(m + 1) − 1. offsets is a view of M + 1 int64, ascending,
/// which is read when the kernel runs: the counts of count_below, added up. What a row has in addition is left out, and what has no score
/// is not written. Of single matrices.
template <class Offsets>
struct all_below {
  static constexpr Reducer kind = Reducer::all_below;
  double threshold;
  Offsets offsets;
  bool or_equal = false;
};

/// How many s(n) lie in each of B bins: bin b has those with edges(b) ≤ s(n) < edges(b + 1), the last one those at its end, too, as in NumPy's
/// histogram; NaN and others are in none. edges is a view of B + 1 doubles, ascending, which is read when the kernel runs; 1 ≤ B ≤ 4096. values
/// are M × B numbers that hold N. Scores are compared in double.
template <class Edges>
struct histogram {
  static constexpr Reducer kind = Reducer::histogram;
  Edges edges;
};
template <class Edges>
histogram(Edges) -> histogram<Edges>;
/// Σ_n s(n)·V(n,d) for each column d of V: a matrix of scores times V. In chunks of up to 1024 columns, each by a kernel of contract() in the
/// scores' type, which are added in double (docs/numerics.md). v is N × D, of f16, bf16, f32 or f64 in any layout, transposed() or with a
/// batch index, 1 ≤ D ≤ 512; or of rank 1, one column. If it holds f64, so do the scores. Of no scores: 0.
template <class V>
struct weighted_sum {
  static constexpr Reducer kind = Reducer::weighted_sum;
  V v;
};
template <class V>
weighted_sum(V) -> weighted_sum<V>;
/// Σ_n w(n)·V(n,d) / Σ_n w(n) with w(n) = exp(s(n)), relative to the maximum, so that nothing overflows: V's rows weighted by the softmax of
/// the scores. v as for weighted_sum. Scores of −∞ weigh nothing, those of +∞ all, equally; a row of −∞ alone, of NaN, or of no scores is NaN.
template <class V>
struct softmax_weighted {
  static constexpr Reducer kind = Reducer::softmax_weighted;
  V v;
};
template <class V>
softmax_weighted(V) -> softmax_weighted<V>;

/// ⊞ of a commutative monoid of yours, a trivially copyable functor:
///
///     struct SumOfSquares {
///       RIGEL_MEMBER double identity() const { return 0; }                                              // the state of no scores
///       RIGEL_MEMBER double of(float score, std::int64_t n) const { return double(score) * score; }    // of one
///       RIGEL_MEMBER double join(double x, double y) const { return x + y; }                            // of two parts
///       RIGEL_MEMBER double result(double x) const { return x; }                                        // a number for values
///     };
///     rigel::reduce(exec, s, a, b, rigel::reducer::monoid{SumOfSquares{}}, values);
///
/// A state is any trivially copyable type of at most 256 bytes. of() takes scores as float, double, or of integers as int32, int64 or uint64.
/// Values are floating-point numbers unless result() returns integers. It is joined in the order of sums (docs/numerics.md), and its kernels are
/// instantiated in your file.
template <class M>
struct monoid {
  static constexpr Reducer kind = Reducer::monoid;
  M functor;
};
template <class M>
monoid(M) -> monoid<M>;

}  // namespace reducer

/// In place of values or indices that a call does not want.
struct NoOutput {};
inline constexpr NoOutput no_output;

/// Options of reduce().
struct ReduceOptions {
  bool exclude_self = false;  // leaves out the score of n = m, of a set with itself: M = N
  Ranges ranges = {};         // which pairs (m, n) are taken, of each matrix of a batch (rigel/ranges.hpp); by default all
  Batch batch = Batch::first;
  Promise require = Promise::none;             // considers only kernels that promise this
  Precision precision = Precision::automatic;  // the least precise terms that the call accepts
  bool may_cancel = false;                     // l2_squared: as in ContractOptions
  std::string_view kernel = {};        // a kernel of reduce() by name or its leading part: "reference", "portable.strips"
  std::string_view score_kernel = {};  // the same for the kernel of contract() that computes the scores
  std::size_t workspace_limit = 0;     // bytes that the workspace should not exceed; 0: 64 MiB, of a host less
  Workspace workspace = {};            // reduce_workspace_size() bytes; without it, the call leases them from Rigel's pool
};

namespace detail {

template <class R>
concept ReducerObject = requires {
  { R::kind } -> std::convertible_to<Reducer>;
};

template <class V>
inline constexpr bool is_output = Kokkos::is_view_v<view_t<V>> || std::is_same_v<V, NoOutput>;

// The compile-time checks of reduce() beyond those of contract().
template <class Exec, class R, class V, class I>
constexpr void check_reducer() {
  static_assert(ReducerObject<R>, "reduce: the reducer is one of rigel::reducer, such as reducer::smallest{10}");
  static_assert(is_output<V> && is_output<I>, "reduce: values and indices are Kokkos views, or rigel::no_output");
  if constexpr (ReducerObject<R>) {
    constexpr bool finds = R::kind <= Reducer::largest || R::kind == Reducer::all_below;
    static_assert(finds || std::is_same_v<I, NoOutput>,
                  "reduce: this reducer has no indices, expected rigel::no_output or none");
  }
  if constexpr (requires(const R r) { r.offsets; }) {
    using View = std::decay_t<decltype(std::declval<R>().offsets)>;
    static_assert(View::rank() == 1 && std::is_same_v<typename View::non_const_value_type, std::int64_t>,
                  "reduce: offsets are a view of rank 1 of int64");
    static_assert(Kokkos::SpaceAccessibility<Exec, typename View::memory_space>::accessible,
                  "reduce: the execution space cannot access the offsets");
  }
  if constexpr (requires(const R r) { r.functor; }) {
    using M = std::decay_t<decltype(std::declval<R>().functor)>;
    static_assert(std::is_trivially_copyable_v<M>, "reduce: a monoid is trivially copyable");
    static_assert(
        requires(const M m) {
          m.join(m.identity(), m.identity());
          m.result(m.identity());
        }, "reduce: a monoid has identity(), of(score, n), join(x, y) and result(x), all const");
    static_assert(std::is_trivially_copyable_v<monoid_state<M>> && sizeof(monoid_state<M>) <= 256,
                  "reduce: a monoid's state is trivially copyable and has at most 256 bytes");
  }
  if constexpr (requires(const R r) { r.edges; }) {
    using View = std::decay_t<decltype(std::declval<R>().edges)>;
    static_assert(View::rank() == 1 && std::is_same_v<typename View::non_const_value_type, double>,
                  "reduce: edges are a view of rank 1 of double");
    static_assert(Kokkos::SpaceAccessibility<Exec, typename View::memory_space>::accessible,
                  "reduce: the execution space cannot access the edges");
  }
  if constexpr (requires(const R r) { r.v; }) {
    using View = view_t<std::decay_t<decltype(std::declval<R>().v)>>;
    static_assert(Kokkos::is_view_v<View>, "reduce: V is a Kokkos view, or a transposed() one");
    static_assert(scalar_of_value<typename View::non_const_value_type>() <= Scalar::f64,
                  "reduce: V holds floating-point numbers: f16, bf16, f32 or f64");
    static_assert(Kokkos::SpaceAccessibility<Exec, typename View::memory_space>::accessible,
                  "reduce: the execution space cannot access V");
  }
  static_assert(!(std::is_same_v<V, NoOutput> && std::is_same_v<I, NoOutput>), "reduce: no results are wanted");
  if constexpr (!std::is_same_v<V, NoOutput>) {
    using View = view_t<V>;
    static_assert(!std::is_const_v<typename View::value_type>, "reduce: values are written, their elements cannot be const");
    static_assert(scalar_of_written<typename View::non_const_value_type> != Scalar::other,
                  "reduce: values are numbers: f16, bf16, f32, f64 or integers");
    static_assert(Kokkos::SpaceAccessibility<Exec, typename View::memory_space>::accessible,
                  "reduce: the execution space cannot access the values");
  }
  if constexpr (!std::is_same_v<I, NoOutput>) {
    using View = view_t<I>;
    using Index = typename View::non_const_value_type;
    static_assert(!std::is_const_v<typename View::value_type>,
                  "reduce: indices are written, their elements cannot be const");
    static_assert(std::is_integral_v<Index> && std::is_signed_v<Index> && sizeof(Index) >= 4,
                  "reduce: indices are int32 or int64");
    static_assert(Kokkos::SpaceAccessibility<Exec, typename View::memory_space>::accessible,
                  "reduce: the execution space cannot access the indices");
  }
}

// Whether V is a matrix, and so are the results.
template <class R>
constexpr bool has_columns() {
  if constexpr (has_weights<R>)
    return view_t<weights_view<R>>::rank() > 1;
  else
    return R::kind == Reducer::smallest || R::kind == Reducer::largest || R::kind == Reducer::histogram;
}

// The reducer and the call's own options.
template <class Exec, class R>
void set_reducer(const Exec& exec, Reduction& p, const R& reducer, const ReduceOptions& options) {
  p.reducer = R::kind;
  p.ranges = ranges_on<Exec>(options.ranges, gpu_of(exec), p.function);
  if constexpr (requires { reducer.k; }) p.count = reducer.k;
  if constexpr (requires { reducer.threshold; }) {
    p.threshold = reducer.threshold;
    p.or_equal = reducer.or_equal;
  }
  if constexpr (requires { reducer.offsets; }) p.offsets = result_operand<false>(reducer.offsets, Batch::first, "offsets");
  if constexpr (requires { reducer.functor; }) {
    p.monoid = &reducer.functor;
    p.whole_results = std::is_integral_v<monoid_result<std::decay_t<decltype(reducer.functor)>>>;
  }
  if constexpr (requires { reducer.edges; }) {
    p.edges = result_operand<false>(reducer.edges, Batch::first, "edges");
    p.count = p.edges.rows - 1;
  }
  if constexpr (has_weights<R>) {
    p.weights = result_operand<has_columns<R>()>(reducer.v, options.batch, "V");
    p.count = p.weights.columns;
  }
  p.exclude_self = options.exclude_self;
  p.require = options.require;
  p.precision = options.precision;
  p.kernel = options.kernel;
  p.workspace = options.workspace;
  p.workspace_limit = options.workspace_limit;
}
inline ContractOptions options_of_scores(const ReduceOptions& options) {
  return {.batch = options.batch,
          .require = options.require,
          .precision = options.precision,
          .may_cancel = options.may_cancel,
          .kernel = options.score_kernel};
}

// Puts the outputs into a problem.
template <ReducerObject R, class V, class I>
void set_outputs(Reduction& p, const V& values, const I& indices, Batch batch) {
  constexpr bool many = has_columns<R>();
  if constexpr (!std::is_same_v<V, NoOutput>) p.values = result_operand<many>(values, batch, "values");
  if constexpr (!std::is_same_v<I, NoOutput>) p.indices = result_operand<many>(indices, batch, "indices");
}

// Builds the problem of a call and hands it to `use`.
template <class Exec, class SemiringOrView, class A, class B, class R, class V, class I, class E, class Use>
auto with_reduction(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const R& reducer,
                    const V& values, const I& indices, const E& epilogue, const ReduceOptions& options, const Use& use) {
  check_reducer<Exec, R, V, I>();
  using S = typename semiring_argument<SemiringOrView>::type;
  if constexpr (!Semiring<S>) {
    check_members<S>();
  } else {
    Reduction p;
    p.function = "reduce";
    set_reducer(exec, p, reducer, options);
    set_outputs<R>(p, values, indices, options.batch);
    const Operand& output = p.values.size > 0 ? p.values : p.indices;
    return with_score_type<S>(epilogue, [&]<class Given>(std::type_identity<Given>) {
      using Score = typename decltype(kept_score<R, Given>())::type;
      using C = Kokkos::View<Score**, typename Exec::memory_space>;
      const auto& functor = placed(epilogue);
      check_types<Exec, SemiringOrView, A, B, C, std::decay_t<decltype(functor)>>();
      Operand of_a = operand_of(a, options.batch, "A"), of_b = operand_of(b, options.batch, "B");
      const Operand scores = score_operand<Score>(output.batches, of_a.rows, of_b.columns);
      p.set_contraction(contraction_on<Score>(exec, semiring, std::move(of_a), std::move(of_b), scores, functor, {},
                                              options_of_scores(options), "reduce"));
      set_scores<Exec, S>(p, epilogue, functor);
      set_monoid<Exec, Score>(p, reducer);
      return use(p);
    });
  }
}

template <class E>
concept NotOptions = !std::is_same_v<E, ReduceOptions> && !is_output<E>;

}  // namespace detail

/// For each row of scores, which are never stored as a whole, asynchronously on `exec`,
///
///     values(l,m), indices(l,m) = ⊞_n score(l,m,n),      score(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) )
///
/// exec, semiring, a, b   as in contract(): a is M × K, b is K × N, in any layout, transposed() or with a batch index
/// reducer   ⊞, one of rigel::reducer: minimum, maximum, smallest{k}, largest{k}, sum, log_sum_exp, count_below{t},
///           all_below{t, offsets}, weighted_sum{V}, softmax_weighted{V}, histogram{edges}, monoid{yours}
/// values    the results: a view of rank 1 with M numbers, and of batches of rank 2, L × M (M × L with Batch::last). Of smallest and
///           largest M × k, of weighted ones M × D if V is N × D, of histogram M × B, and of batches of rank 3. Of floating-point numbers if the scores are
///           such, for log_sum_exp and for weighted ones; counts go to any numbers that hold N exactly, results of integers to any numbers.
///           Or no_output.
/// indices   of minimum, maximum, smallest and largest the n of each value, with the extents of values: a view of int32 or int64
///           that holds N − 1. Or no_output.
/// epilogue  as in contract(), but without arguments(): a Program, or a functor (score, m, n, batch) → score. A mask, for instance, is
///           one that returns ∞ for what a minimum should not see.
/// Columns are reduced instead of rows by reduce(exec, s, transposed(b), transposed(a), …), if ⊗ commutes.
///
/// values and indices overlap neither a, b, V, the workspace, each other nor themselves. M = 0 is a no-op; N = 0 gives the reducer's identity; K = 0 makes
/// each score the epilogue of the semiring's identity. Scores are computed in their accumulator's type (f16 and bf16 in f32), after an
/// epilogue of the closed set those of integers in f64.
///
/// Memory: strips of scores, in a workspace of at most 64 MiB (options.workspace_limit), unless one row's 64 scores, its k best and what a
/// contraction's kernel needs for them take more.
///
/// options.ranges leave out pairs of row and column intervals: what they have is ⊞ of the others, in time that is proportional to these.
///
/// Throws Error(invalid_argument) if extents, types or k do not fit, ranges are not of M × N scores, exclude_self is asked for and M ≠ N, or outputs overlap;
/// Error(not_found) if no kernel of reduce() has the name of options.kernel; Error(unsupported) with each kernel's reason if none covers
/// the call, as when no kernel of contract() computes the scores; and as contract() does. Outputs are untouched when it throws.
template <class Exec, class SemiringOrView, class A, class B, class R, class V, class I, detail::NotOptions E>
void reduce(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const R& reducer, const V& values,
            const I& indices, const E& epilogue, const ReduceOptions& options = {}) {
  detail::with_reduction(exec, semiring, a, b, reducer, values, indices, epilogue, options,
                         [](const Reduction& p) { run(p); });
}
/// The same without an epilogue.
template <class Exec, class SemiringOrView, class A, class B, class R, class V, class I>
  requires(detail::is_output<I>)
void reduce(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const R& reducer, const V& values,
            const I& indices, const ReduceOptions& options = {}) {
  reduce(exec, semiring, a, b, reducer, values, indices, epilogue::Program{}, options);
}
/// The same without indices.
template <class Exec, class SemiringOrView, class A, class B, class R, class V>
void reduce(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const R& reducer, const V& values,
            const ReduceOptions& options = {}) {
  reduce(exec, semiring, a, b, reducer, values, no_output, epilogue::Program{}, options);
}

/// Lists every candidate kernel of the same call of reduce(), a line each: its predicted time, or why it does not cover the call. '*'
/// marks the choice.
template <class Exec, class SemiringOrView, class A, class B, class R, class V, class I = NoOutput,
          class E = epilogue::Program>
std::string explain_reduce(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const R& reducer,
                           const V& values, const I& indices = {}, const E& epilogue = {},
                           const ReduceOptions& options = {}) {
  return detail::with_reduction(exec, semiring, a, b, reducer, values, indices, epilogue, options,
                                [](const Reduction& p) { return explain(p); });
}

/// Bytes of workspace, in memory of the execution space, that the same call of reduce() needs.
template <class Exec, class SemiringOrView, class A, class B, class R, class V, class I = NoOutput,
          class E = epilogue::Program>
std::size_t reduce_workspace_size(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const R& reducer,
                                  const V& values, const I& indices = {}, const E& epilogue = {},
                                  const ReduceOptions& options = {}) {
  return detail::with_reduction(exec, semiring, a, b, reducer, values, indices, epilogue, options,
                                [](const Reduction& p) { return workspace_size(p).bytes; });
}

}  // namespace rigel
