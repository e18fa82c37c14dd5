// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract(): C(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ) on Kokkos views, for any semiring.
#pragma once

#include <rigel/arguments.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/instantiate.hpp>
#include <rigel/epilogue.hpp>
#include <rigel/registry.hpp>
#include <rigel/semirings.hpp>

#include <Kokkos_Core.hpp>

#include <optional>

namespace rigel {

/// Which index of a rank-3 view counts the batches.
enum class Batch { first, last };

struct ContractOptions {
  bool accumulate = false;  // C = epilogue(C ⊕ ⊕_k …), the chain starting with C
  Batch batch = Batch::first;
  Promise require = Promise::none;               // only kernels that promise this are considered
  Precision precision = Precision::accumulator;  // the least that terms are rounded to
  bool may_cancel = false;                       // l2_squared: errors may be relative to norms, see cdist()
  std::string_view kernel = {};                  // a kernel's name or the leading part of it: "host", "cuda.simt"
  Workspace workspace = {};                      // in memory of the execution space; else from Rigel's pool
};

/// A view read with rows and columns exchanged.
template <class View>
struct Transposed {
  View view;
};
/// The transpose of a matrix, or of each matrix of a batch: costs nothing.
template <class View>
Transposed<View> transposed(const View& view) {
  return {view};
}
template <class View>
View transposed(const Transposed<View>& t) {
  return t.view;
}

namespace detail {

template <class V>
struct underlying {
  using type = V;
};
template <class V>
struct underlying<Transposed<V>> {
  using type = V;
};
template <class V>
using view_t = typename underlying<V>::type;

// Kokkos's 16-bit types where they are 16 bits wide (in a host-only Kokkos they are float).
template <class T>
constexpr Scalar scalar_of_value() {
  if constexpr (scalar_of<T> != Scalar::other)
    return scalar_of<T>;
  else if constexpr (std::is_same_v<T, _Float16>)
    return Scalar::f16;
  else if constexpr (std::is_same_v<T, Kokkos::Experimental::half_t> && sizeof(T) == 2)
    return Scalar::f16;
  else if constexpr (std::is_same_v<T, Kokkos::Experimental::bhalf_t> && sizeof(T) == 2)
    return Scalar::bf16;
  else
    return Scalar::other;
}

// The same for C. A bool is no byte there: it gets ≠ 0, as any type that is none of Rigel's scalars gets what converts to it.
template <class T>
inline constexpr Scalar scalar_of_written = std::is_same_v<T, bool> ? Scalar::other : scalar_of_value<T>();

// Whether elements can be read from what is a view of T. Bytes of any value are no bools.
template <class T, class Element>
inline constexpr bool holds =
    std::is_same_v<T, Element> ||
    (scalar_of_value<T>() == scalar_of<Element> && scalar_of<Element> != Scalar::other && !std::is_same_v<Element, bool>);

/// The Operand of a view of rank 2 or 3.
template <class View>
Operand operand_of(const View& v, Batch batch) {
  static_assert(Kokkos::is_view_v<View>, "contract: A, B and C are Kokkos views, or transposed() ones");
  static_assert(View::rank() == 2 || View::rank() == 3, "contract: a view has rank 2 (a matrix) or 3 (a batch of them)");
  static_assert(!View::memory_traits::is_atomic, "contract: views with the Atomic memory trait are not supported");
  using T = typename View::non_const_value_type;
  Operand o;
  o.data = const_cast<T*>(v.data());
  o.type = scalar_of_value<T>();
  o.size = sizeof(T);
  o.label = v.label();
  constexpr bool batched = View::rank() == 3;
  const int l = batch == Batch::first ? 0 : 2;
  const int i = batched && batch == Batch::first ? 1 : 0;
  if constexpr (batched) {
    o.batches = static_cast<std::int64_t>(v.extent(l));
    if (o.batches != 1) o.batch_stride = static_cast<std::int64_t>(v.stride(l));
  }
  o.rows = static_cast<std::int64_t>(v.extent(i));
  o.columns = static_cast<std::int64_t>(v.extent(i + 1));
  o.row_stride = static_cast<std::int64_t>(v.stride(i));
  o.column_stride = static_cast<std::int64_t>(v.stride(i + 1));
  return o;
}
template <class View>
Operand operand_of(const Transposed<View>& t, Batch batch) {
  Operand o = operand_of(t.view, batch);
  std::swap(o.rows, o.columns);
  std::swap(o.row_stride, o.column_stride);
  return o;
}

// The epilogue as kernels take it: arguments() by pointer and strides, which leaves its view in `indices`; all others as they are.
template <class Exec, class E>
const E& bound(const E& epilogue, Batch, std::optional<Operand>&) {
  return epilogue;
}
template <class Exec, class View>
auto bound(const epilogue::Arguments<View>& epilogue, Batch batch, std::optional<Operand>& indices) {
  using Index = typename view_t<View>::non_const_value_type;
  static_assert(std::is_integral_v<Index> && std::is_signed_v<Index> && !std::is_const_v<typename view_t<View>::value_type>,
                "contract: epilogue::arguments() takes a view of signed integers that can be written");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename view_t<View>::memory_space>::accessible,
                "contract: the execution space cannot access the view of epilogue::arguments()");
  const Operand& o = indices.emplace(operand_of(epilogue.indices, batch));
  return epilogue::KeepIndex<Index>{{static_cast<Index*>(o.data), o.batch_stride, o.row_stride, o.column_stride}};
}
template <class Exec, class F, class G>
auto bound(const epilogue::Composed<F, G>& both, Batch batch, std::optional<Operand>& indices) {
  const auto& first = bound<Exec>(both.first, batch, indices);
  const auto& second = bound<Exec>(both.second, batch, indices);
  return epilogue::Composed<std::decay_t<decltype(first)>, std::decay_t<decltype(second)>>{first, second};
}

// The semiring itself, or the view's element where one object for each batch is given.
template <class S>
struct semiring_argument {
  using type = S;
};
template <class S>
  requires Kokkos::is_view_v<S>
struct semiring_argument<S> {
  using type = typename S::non_const_value_type;
};

// Builds the Problem of a call and hands it to `use`.
template <class Exec, class SemiringOrView, class A, class B, class C, class E, class Use>
auto with_problem(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c, const E& epilogue,
                  const ContractOptions& options, const Use& use, const Names& names = {}) {
  using S = typename semiring_argument<SemiringOrView>::type;
  using CView = view_t<C>;
  static_assert(Kokkos::is_execution_space_v<Exec>, "contract: the first argument is a Kokkos execution space instance");
  static_assert(Semiring<S>, "contract: the second argument is a semiring (see rigel/semiring.hpp), or a view of them");
  static_assert(speaks_for_itself<S> || !HasStep<S>,
                "contract: this functor derives from one of Rigel's semirings and has a step. If that is the fused form of its own "
                "multiply and add, say `using self = <the functor>`, which also keeps the inherited flags; else declare another step");
  static_assert(holds<typename view_t<A>::non_const_value_type, typename S::element> &&
                    holds<typename view_t<B>::non_const_value_type, typename S::element>,
                "contract: A and B hold the semiring's element type");
  static_assert(!std::is_const_v<typename CView::value_type>, "contract: C is written, its elements cannot be const");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename view_t<A>::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename view_t<B>::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename CView::memory_space>::accessible,
                "contract: the execution space cannot access one of the views");

  Problem p;
  p.semiring = {semiring_name<S>(), semiring_type<S>()};
  p.element = scalar_of<typename S::element>;
  p.accumulator = scalar_of<typename S::accumulator>;
  p.a = operand_of(a, options.batch);
  p.b = operand_of(b, options.batch);
  p.c = operand_of(c, options.batch);
  p.batch = p.c.batches;
  p.m = p.c.rows;
  p.n = p.c.columns;
  p.k = p.a.columns;
  p.accumulate = options.accumulate;
  p.require = options.require;
  p.precision = options.precision;
  p.may_cancel = options.may_cancel;
  p.kernel = options.kernel;
  p.execution = execution_of(exec);
  p.names = names;
  if constexpr (Kokkos::is_view_v<SemiringOrView>) {
    static_assert(SemiringOrView::rank() == 1, "contract: a view of semirings has rank 1, one object for each batch");
    static_assert(Kokkos::SpaceAccessibility<Exec, typename SemiringOrView::memory_space>::accessible,
                  "contract: the execution space cannot access the view of semirings");
    if (static_cast<std::int64_t>(semiring.extent(0)) != p.batch || !semiring.span_is_contiguous())
      throw Error(Code::invalid_argument, "contract: the view of semirings '" + semiring.label() + "' has " +
                                              std::to_string(semiring.extent(0)) + " objects, expected " +
                                              std::to_string(p.batch) + " contiguous ones, one for each batch of C");
    p.semiring_object = semiring.data();
    p.semiring_per_batch = true;
  } else {
    p.semiring_object = &semiring;
  }
  if (p.accumulate && !can_accumulate<S>)
    throw Error(Code::invalid_argument, "contract: accumulate is not defined for semiring '" + std::string(p.semiring.name) +
                                            "', whose accumulator is a struct that no value of C can be lifted into");

  constexpr Scalar c_type = scalar_of_written<typename CView::non_const_value_type>;
  p.c.type = c_type;
  constexpr bool closed = std::is_same_v<E, epilogue::Program>;
  std::optional<Operand> indices;
  const auto& functor = bound<Exec>(epilogue, options.batch, indices);
  using Functor = std::decay_t<decltype(functor)>;
  constexpr bool is_taken = requires(result_t<S> value, std::int64_t i) { functor(value, i, i, i); };
  static_assert(
      is_taken,
      "contract: the epilogue cannot be called with (result, m, n, batch) of this semiring. Results that are no numbers, as "
      "those of with_argument, need an epilogue that makes a value of C's type of them: epilogue::arguments(view), or a "
      "functor of yours");
  if constexpr (closed) p.program = &epilogue;
  p.epilogue_object = &functor;
  if (indices) p.indices = &*indices;
  if constexpr (closed && math::is_floating<result_t<S>>)
    static_assert(c_type == Scalar::other || c_type <= Scalar::f64,
                  "contract: the results are floating-point numbers, C cannot hold integers");
  // Compiled kernels take the zoo with epilogues of the closed set; all else is instantiated here.
  if constexpr (is_taken && !(in_zoo<S> && closed && c_type != Scalar::other && space_of<Exec> != Space::other))
    p.instantiated = instantiated_kernels<Exec, S, Functor, typename CView::non_const_value_type>();
  return use(static_cast<const Problem&>(p));
}

}  // namespace detail

/// C(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ), asynchronously on `exec`.
///
/// exec       any execution space instance; every view must be accessible from it. Kokkos::Threads takes calls only in the host
///            thread that initialised Kokkos
/// semiring   a functor (rigel/semiring.hpp), or a contiguous rank-1 view of L of them, one for each batch
/// a, b, c    views of rank 2, or 3 with a batch index, of any layout, or transposed() ones: a is M × K, b is K × N,
///            c is M × N. A batch extent of 1, or a missing one, broadcasts a or b. c overlaps neither a nor b. A c of bool
///            gets whether the epilogue's value is not 0, as NaN is not.
/// epilogue   a functor (value, m, n, batch) → value, applied once to each result (rigel/epilogue.hpp); of the zoo's integers
///            the closed set gives floating-point numbers, which c has to hold, but for one any_bit() or parity(). Results that are
///            no numbers need one: with_argument<S> takes epilogue::arguments(view), which keeps the k that won
/// K = 0 gives the epilogue of the identity; M = 0, N = 0 or no batches is a no-op.
/// It is not to be called inside a parallel region: Kokkos does not launch from there.
/// Throws Error(invalid_argument) for extents that do not fit or a C that overlaps, Error(unsupported) where no kernel
/// covers the call or Kokkos::Threads does not launch from here, Error(device) where the CUDA runtime fails. C is untouched when it throws.
template <class Exec, class SemiringOrView, class A, class B, class C, class E = epilogue::Program>
void contract(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c, const E& epilogue = {},
              const ContractOptions& options = {}) {
  detail::with_problem(exec, semiring, a, b, c, epilogue, options, [&](const Problem& p) { run(p, options.workspace); });
}

/// Every kernel that the same call of contract() could use: predicted time, or the reason why not; '*' marks the choice.
template <class Exec, class SemiringOrView, class A, class B, class C, class E = epilogue::Program>
std::string explain(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
                    const E& epilogue = {}, const ContractOptions& options = {}) {
  return detail::with_problem(exec, semiring, a, b, c, epilogue, options, [](const Problem& p) { return explain(p); });
}

/// Bytes of workspace that the same call of contract() needs.
template <class Exec, class SemiringOrView, class A, class B, class C, class E = epilogue::Program>
std::size_t workspace_size(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
                           const E& epilogue = {}, const ContractOptions& options = {}) {
  return detail::with_problem(exec, semiring, a, b, c, epilogue, options,
                              [](const Problem& p) { return workspace_size(p); });
}

}  // namespace rigel
