// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract(): C(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ) on Kokkos views, for any semiring.
#pragma once

#include <rigel/detail/execution.hpp>
#include <rigel/detail/instantiate.hpp>
#include <rigel/epilogue.hpp>
#include <rigel/registry.hpp>
#include <rigel/semirings.hpp>

#include <Kokkos_Core.hpp>

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

template <class T, class Element>
inline constexpr bool holds =
    std::is_same_v<T, Element> || (scalar_of_value<T>() == scalar_of<Element> && scalar_of<Element> != Scalar::other);

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
  static_assert(holds<typename view_t<A>::non_const_value_type, typename S::element> &&
                    holds<typename view_t<B>::non_const_value_type, typename S::element>,
                "contract: A and B hold the semiring's element type");
  static_assert(!std::is_const_v<typename CView::value_type>, "contract: C is written, its elements cannot be const");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename view_t<A>::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename view_t<B>::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename CView::memory_space>::accessible,
                "contract: the execution space cannot access one of the views");

  Problem p;
  p.semiring = semiring_name<S>();
  p.element = scalar_of<typename S::element>;
  p.accumulator = scalar_of<typename S::accumulator>;
  p.exact = is_exact<S>;
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
    throw Error(Code::invalid_argument, "contract: accumulate is not defined for semiring '" + std::string(p.semiring) +
                                            "', whose accumulator is a struct that no value of C can be lifted into");

  constexpr Scalar c_type = scalar_of_value<typename CView::non_const_value_type>();
  constexpr bool closed = std::is_same_v<E, epilogue::Program>;
  if constexpr (closed) p.program = &epilogue;
  p.epilogue_object = &epilogue;
  if constexpr (closed && math::is_floating<result_t<S>>)
    static_assert(c_type == Scalar::other || c_type <= Scalar::f64,
                  "contract: the results are floating-point numbers, C cannot hold integers");
  // Compiled kernels take the zoo with epilogues of the closed set; all else is instantiated here.
  if constexpr (!(in_zoo<S> && closed && c_type != Scalar::other && space_of<Exec> != Space::other))
    p.instantiated = instantiated_kernels<Exec, S, E, typename CView::non_const_value_type>();
  return use(static_cast<const Problem&>(p));
}

}  // namespace detail

/// C(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ), asynchronously on `exec`.
///
/// exec       any execution space instance; every view must be accessible from it
/// semiring   a functor (rigel/semiring.hpp), or a contiguous rank-1 view of L of them, one for each batch
/// a, b, c    views of rank 2, or 3 with a batch index, of any layout, or transposed() ones: a is M × K, b is K × N,
///            c is M × N. A batch extent of 1, or a missing one, broadcasts a or b. c overlaps neither a nor b.
/// epilogue   a functor (value, m, n, batch) → value, applied once to each result (rigel/epilogue.hpp); of the zoo's integers
///            the closed set gives floating-point numbers, which c has to hold, but for one any_bit() or parity()
/// K = 0 gives the epilogue of the identity; M = 0, N = 0 or no batches is a no-op.
/// Throws Error(invalid_argument) for extents that do not fit or a C that overlaps, Error(unsupported) where no kernel
/// covers the call, Error(device) where the CUDA runtime fails. C is untouched when it throws.
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
