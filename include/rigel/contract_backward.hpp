// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract_backward(): vector-Jacobian products of contract(). With C = ⊕_k A(m,k) ⊗ B(k,n) and dC = ∂loss/∂C,
//
//     dA(l,m,k) = Σ_n dC(l,m,n)·∂C(l,m,n)/∂A(l,m,k)      dB(l,k,n) = Σ_m dC(l,m,n)·∂C(l,m,n)/∂B(l,k,n)
#pragma once

#include <rigel/detail/contract_backward.hpp>
#include <rigel/detail/contract_backward_passes.hpp>
#include <rigel/gradient.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

namespace rigel {

/// Options of contract_backward().
struct ContractBackwardOptions {
  bool accumulate = false;  // adds to what is in dA and dB
  Batch batch = Batch::first;
  Promise require = Promise::none;  // of products and sums of differences, which are repeatable in any case
  Precision precision =
      Precision::automatic;  // of them, as in contract() and cdist_gradient(); log_plus of floats: `automatic` also
                             // admits products of doubles
  bool may_cancel = false;   // l2_squared, and lp with p = 2: as in cdist_gradient()
  Workspace workspace = {};  // contract_backward_workspace_size() bytes; else from Rigel's pool
};

namespace detail {

// How a semiring's gradients are found.
template <class S>
struct Backward {
  static_assert(sizeof(S) == 0,
                "contract_backward: expected plus_times, log_plus, min_plus, max_plus, max_min, min_max, max_times, "
                "min_times, l1, l2_squared, lp or linf of floating-point numbers, with Rigel's accumulator");
};
template <BackwardRule of>
struct BackwardBy {
  static constexpr BackwardRule rule = of;
};
template <WinnerSlope of>
struct BackwardByWinners : BackwardBy<BackwardRule::winners> {
  static constexpr WinnerSlope slope = of;
};
template <class E>
struct Backward<plus_times<E>> : BackwardBy<BackwardRule::products> {};
template <class E>
struct Backward<log_plus<E>> : BackwardBy<BackwardRule::exponentials> {};
template <class E>
struct Backward<min_plus<E>> : BackwardByWinners<WinnerSlope::one> {};
template <class E>
struct Backward<max_plus<E>> : BackwardByWinners<WinnerSlope::one> {};
template <class E>
struct Backward<max_min<E>> : BackwardByWinners<WinnerSlope::lesser> {};
template <class E>
struct Backward<min_max<E>> : BackwardByWinners<WinnerSlope::larger> {};
template <class E>
struct Backward<max_times<E>> : BackwardByWinners<WinnerSlope::other_factor> {};
template <class E>
struct Backward<min_times<E>> : BackwardByWinners<WinnerSlope::other_factor> {};
template <class E>
struct Backward<linf<E>> : BackwardByWinners<WinnerSlope::sign> {};
template <class E>
struct Backward<l1<E>> : BackwardBy<BackwardRule::differences> {
  static double power(const l1<E>&) { return 1; }
};
template <class E>
struct Backward<l2_squared<E>> : BackwardBy<BackwardRule::differences> {
  static double power(const l2_squared<E>&) { return 2; }
};
template <class E>
struct Backward<lp<E>> : BackwardBy<BackwardRule::differences> {
  static double power(const lp<E>& s) { return static_cast<double>(s.p); }
};

// The k that won, as a result; −1 where C is the identity: nothing won.
template <class S>
struct WinningIndex {
  template <class T>
  RIGEL_MEMBER std::int32_t operator()(const argument<T>& x, std::int64_t, std::int64_t, std::int64_t) const {
    return x.value == S::identity() ? -1 : static_cast<std::int32_t>(x.index);
  }
};

// use(pattern) with the problem whose results are the winning k.
template <class Exec, class S, class Use>
auto with_winners(const Exec& exec, const S& semiring, const char* function, const Use& use) {
  using Pattern =
      Kokkos::View<typename S::element***, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
  const Operand empty = operand_of(Pattern(nullptr, 0, 0, 0), Batch::first, "");
  const with_argument<S> winners{semiring};
  const WinningIndex<S> index;
  return use(contraction_on<std::int32_t>(exec, winners, empty, empty, empty, index, {}, ContractOptions{}, function));
}

// What a call reads or writes: checked when it is compiled.
template <class Exec, class E, class View>
constexpr void check_backward_view() {
  using T = typename view_t<View>::non_const_value_type;
  static_assert(holds<T, E> || std::is_same_v<T, accumulator_for<E>>,
                "contract_backward: C, dC, dA and dB hold the semiring's elements, or numbers of its accumulator's type");
  static_assert(reads_from<Exec, View>, "contract_backward: the execution space cannot access one of the views");
}
template <class Exec, class E, class View>
std::optional<Operand> backward_result(const View& v, Batch batch, const char* argument) {
  if constexpr (is_absent<View>) {
    return {};
  } else {
    check_backward_view<Exec, E, View>();
    static_assert(!std::is_const_v<typename view_t<View>::value_type>,
                  "contract_backward: dA and dB are written, their elements cannot be const");
    return operand_of(v, batch, argument);
  }
}

// The parts of a call whose kernels depend on types, handed to `use`. T: the type in which it computes; E: the elements of its products.
template <class T, class E, class Exec, class S, class Use>
auto with_backward_parts(const Exec& exec, const S& semiring, ContractBackward call, const ContractBackwardOptions& options,
                         const Use& use) {
  constexpr BackwardRule rule = Backward<S>::rule;
  constexpr const char* function = "contract_backward";
  using Pattern = Kokkos::View<T***, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
  const Pattern pattern(nullptr, 0, 0, 0);
  const Operand empty = operand_of(pattern, Batch::first, "");
  const ContractOptions of_products{.require = options.require | Promise::repeatable, .precision = options.precision};
  call.computed = scalar_of<T>;
  if constexpr (rule == BackwardRule::products || rule == BackwardRule::exponentials) {
    const plus_times<E> products;
    const epilogue::Program none;
    call.products = contraction_on<T>(exec, products, empty, empty, empty, none, {}, of_products, function);
    const plus_times<double> of_doubles;
    if constexpr (rule == BackwardRule::exponentials && std::is_same_v<T, float>)
      call.wide_products = contraction_on<double>(exec, of_doubles, empty, empty, empty, none, {}, of_products, function);
    return use(call);
  } else if constexpr (rule == BackwardRule::winners) {
    call.slope = Backward<S>::slope;
    return with_winners(exec, semiring, function, [&](const Contraction& winners) {
      call.winners = winners;
      return use(call);
    });
  } else {
    const double p = Backward<S>::power(semiring);
    if (!(p > 0 && std::isfinite(p)))
      throw Error(Code::invalid_argument,
                  std::string(function) + ": p is " + std::to_string(p) + ", expected a finite number above 0");
    call.factor = p;
    const Kokkos::View<T****, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged> out(nullptr, 0, 0,
                                                                                                             0, 0);
    return with_gradient_of<Exec, T>(p, 0, 0, [&](const auto& functor) {
      call.differences = gradient_on(exec, functor, pattern, pattern, pattern, pattern, out,
                                     GradientOptions{.require = options.require | Promise::repeatable,
                                                     .precision = options.precision,
                                                     .may_cancel = options.may_cancel},
                                     function);
      return use(call);
    });
  }
}

template <class Exec, class S, class A, class B, class C, class DC, class DA, class DB, class Use>
auto with_contract_backward(const Exec& exec, const S& semiring, const A& a, const B& b, const C& c, const DC& dc,
                            const DA& da, const DB& db, const ContractBackwardOptions& options, const Use& use) {
  static_assert(Kokkos::is_execution_space_v<Exec>,
                "contract_backward: the first argument is a Kokkos execution space instance");
  static_assert(!Kokkos::is_view_v<S>, "contract_backward: the semiring is an object, not a view of them");
  constexpr BackwardRule rule = Backward<S>::rule;
  using E = typename S::element;
  using T = accumulator_for<E>;
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "contract_backward: semirings of f16, bf16, f32 or f64; integers have no gradients");
  static_assert(holds<typename view_t<A>::non_const_value_type, E> && holds<typename view_t<B>::non_const_value_type, E>,
                "contract_backward: A and B hold the semiring's element type");
  static_assert(reads_from<Exec, A> && reads_from<Exec, B>,
                "contract_backward: the execution space cannot access one of the views");
  check_backward_view<Exec, E, C>();
  check_backward_view<Exec, E, DC>();
  ContractBackward call;
  call.call = {.function = "contract_backward",
               .execution = execution_of(exec),
               .require = options.require,
               .precision = options.precision,
               .workspace = options.workspace};
  call.rule = rule;
  call.a = operand_of(a, options.batch, "A");
  call.b = operand_of(b, options.batch, "B");
  call.c = operand_of(c, options.batch, "C");
  call.dc = operand_of(dc, options.batch, "dC");
  call.da = backward_result<Exec, E>(da, options.batch, "dA");
  call.db = backward_result<Exec, E>(db, options.batch, "dB");
  call.accumulate = options.accumulate;
  if constexpr (space_of<Exec> == Space::other) call.passes = backward_passes<type_list<Exec>>();
  constexpr bool in_elements =
      rule == BackwardRule::products && holds<typename view_t<DC>::non_const_value_type, E>;  // else products widen them
  return with_backward_parts<T, std::conditional_t<in_elements, E, T>>(exec, semiring, std::move(call), options, use);
}

}  // namespace detail

/// dA(l,m,k) = Σ_n dC(l,m,n)·∂C(l,m,n)/∂A(l,m,k) and dB(l,k,n) = Σ_m dC(l,m,n)·∂C(l,m,n)/∂B(l,k,n) for C = contract(exec, semiring, A, B),
/// asynchronously on `exec`: the gradients of a loss whose gradient by C is dC.
///
/// exec      any execution space instance that can access every view
/// semiring  of floating-point numbers, with t = A(m,k) − B(k,n):
///           plus_times    dA = dC·Bᵀ, dB = Aᵀ·dC
///           log_plus      Σ_n dC(m,n)·exp(A(m,k) + B(k,n) − C(m,n)), as products of exponentials relative to maxima of rows of A and columns of
///                         B, of doubles where these are fast; elements of C far below these maxima are summed term by term, so that nothing
///                         overflows
///           min_plus, max_plus, max_min, min_max, max_times, min_times, linf   the k that won, the smallest one of a tie, has the derivative
///                         of A(m,k) ⊗ B(k,n), all others 0. max_min and min_max: 1 for the factor that ⊗ took, for A if both are equal
///           l1, l2_squared, lp   Σ_n dC(m,n)·p·sign(t)·|t|^(p−1), a term being 0 if t = 0 (or, unless p = 1, dC = 0)
/// a, b      M × K and K × N, as in contract(); one batch serves all of dC's
/// c         contract()'s result without an epilogue, M × N with dC's batches. Only log_plus reads it.
/// dc        M × N
/// da, db    as a and b, or no_gradient. Of a factor that serves all batches it is the sum of their gradients.
/// All are views of any layout, or transposed() ones; those of rank 3 have a batch index. a and b hold the semiring's elements, the others
/// these or numbers of its accumulator's type: f32 for elements of 16 bits.
///
/// log_plus: where A(m,k) + B(k,n) is −∞, or the exponential 0, the term is 0, whatever dC is; so rows of −∞ have gradients of 0. Where C is +∞,
/// terms with A + B = +∞ are NaN. Where C is NaN, all terms with A + B > −∞ are.
/// Winners: where C is the semiring's identity, as for min_plus's rows without a path, nothing has won: gradients are 0. A NaN wins, the
/// first of them.
/// dC that is infinite or NaN makes the same of what it is a term of.
///
/// Sums of winners are added in ascending n or m, sums of batches in ascending l. Two runs give the same bits; docs/numerics.md has bounds. K = 0,
/// M = 0 or N = 0 gives gradients of 0 where these have elements.
/// Workspace: log_plus keeps M × N weights, exponentials of A and B, and sums of the size of A or B; winners M × N integers of 32 bits; what is
/// computed of elements of 16 bits, copies in f32.
///
/// Throws Error(invalid_argument) if extents or batches do not match, dA and dB overlap each other, themselves or an input, or lp's p is not a
/// finite number above 0; the rest as contract() and contract_gradient() do. Nothing is written when it throws.
template <class Exec, class S, class A, class B, class C, class DC, class DA, class DB>
void contract_backward(const Exec& exec, const S& semiring, const A& a, const B& b, const C& c, const DC& dc, const DA& da,
                       const DB& db, const ContractBackwardOptions& options = {}) {
  detail::with_contract_backward(exec, semiring, a, b, c, dc, da, db, options,
                                 [](const detail::ContractBackward& call) { detail::run_contract_backward(call); });
}

/// Bytes of workspace that the same call needs.
template <class Exec, class S, class A, class B, class C, class DC, class DA, class DB>
std::size_t contract_backward_workspace_size(const Exec& exec, const S& semiring, const A& a, const B& b, const C& c,
                                             const DC& dc, const DA& da, const DB& db,
                                             const ContractBackwardOptions& options = {}) {
  return detail::with_contract_backward(
      exec, semiring, a, b, c, dc, da, db, options,
      [](const detail::ContractBackward& call) { return detail::contract_backward_bytes(call); });
}

/// The parts of the same call and their kernels, as explain() prints them.
template <class Exec, class S, class A, class B, class C, class DC, class DA, class DB>
std::string explain_contract_backward(const Exec& exec, const S& semiring, const A& a, const B& b, const C& c, const DC& dc,
                                      const DA& da, const DB& db, const ContractBackwardOptions& options = {}) {
  return detail::with_contract_backward(
      exec, semiring, a, b, c, dc, da, db, options,
      [](const detail::ContractBackward& call) { return detail::explain_contract_backward(call); });
}

}  // namespace rigel
