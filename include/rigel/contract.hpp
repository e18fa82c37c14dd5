// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract(): C(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ) on Kokkos views, for any semiring.
#pragma once

#include <rigel/arguments.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/instantiate.hpp>
#include <rigel/epilogue_views.hpp>
#include <rigel/registry.hpp>
#include <rigel/semirings.hpp>

#include <Kokkos_Core.hpp>

#include <optional>

namespace rigel {

/// Options of contract().
struct ContractOptions {
  bool accumulate = false;  // C = epilogue(C ⊕ ⊕_k …): each chain starts with the value in C
  Batch batch = Batch::first;
  Promise require = Promise::none;             // considers only kernels that promise this
  Precision precision = Precision::automatic;  // the least precise terms that the call accepts
  bool may_cancel = false;                     // l2_squared: errors may be relative to the norms, see cdist()
  std::string_view kernel = {};                // a kernel's name or its leading part: "host", "cuda.simt"
  Workspace workspace = {};                    // workspace_size() bytes; without it, the call leases them from Rigel's pool
};

/// A view read with rows and columns exchanged.
template <class View>
struct Transposed {
  View view;
};
/// The transpose of a matrix, or of each matrix of a batch. It only exchanges strides.
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

// The Scalar of a view's elements. It includes Kokkos's half_t and bhalf_t if they have 16 bits; in a host-only Kokkos they are
// float.
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

// The same for C, where bool is Scalar::other: kernels then convert the result to bool (value ≠ 0) instead of storing a byte.
template <class T>
inline constexpr Scalar scalar_of_written = std::is_same_v<T, bool> ? Scalar::other : scalar_of_value<T>();

// Whether a semiring's Element can be read from a view of T. A view of bytes does not hold bools: its bytes may have any value.
template <class T, class Element>
inline constexpr bool holds =
    std::is_same_v<T, Element> ||
    (scalar_of_value<T>() == scalar_of<Element> && scalar_of<Element> != Scalar::other && !std::is_same_v<Element, bool>);

/// The Operand of a view of rank 2 or 3.
template <class View>
Operand operand_of(const View& v, Batch batch, const char* argument) {
  static_assert(Kokkos::is_view_v<View>, "contract: A, B and C are Kokkos views, or transposed() ones");
  static_assert(View::rank() == 2 || View::rank() == 3, "contract: a view has rank 2 (a matrix) or 3 (a batch of them)");
  static_assert(!View::memory_traits::is_atomic, "contract: views with the Atomic memory trait are not supported");
  using T = typename View::non_const_value_type;
  Operand o;
  o.data = const_cast<T*>(v.data());
  o.type = scalar_of_value<T>();
  o.size = sizeof(T);
  o.argument = argument;
  o.label = v.label();
  constexpr bool batched = View::rank() == 3;
  const std::size_t l = batch == Batch::first ? 0 : 2;
  const std::size_t i = batched && batch == Batch::first ? 1 : 0;
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
Operand operand_of(const Transposed<View>& t, Batch batch, const char* argument) {
  Operand o = operand_of(t.view, batch, argument);
  std::swap(o.rows, o.columns);
  std::swap(o.row_stride, o.column_stride);
  return o;
}

// The epilogue as kernels take it. arguments() becomes a functor with a pointer and strides, and its view goes to `indices`;
// other epilogues stay as they are.
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
  const Operand& o = indices.emplace(operand_of(epilogue.indices, batch, "the view of arguments()"));
  return epilogue::KeepIndex<Index>{{static_cast<Index*>(o.data), o.batch_stride, o.row_stride, o.column_stride}};
}
template <class Exec, class F, class G>
auto bound(const epilogue::Composed<F, G>& both, Batch batch, std::optional<Operand>& indices) {
  const auto& first = bound<Exec>(both.first, batch, indices);
  const auto& second = bound<Exec>(both.second, batch, indices);
  return epilogue::Composed<std::decay_t<decltype(first)>, std::decay_t<decltype(second)>>{first, second};
}

// Whether an epilogue can be called with the results of a semiring.
template <class Functor, class S>
concept TakesResults = requires(const Functor& functor, result_t<S> value, std::int64_t i) { functor(value, i, i, i); };

// The type of the semiring: the argument's own, or that of a view's elements.
template <class S>
struct semiring_argument {
  using type = S;
};
template <class S>
  requires Kokkos::is_view_v<S>
struct semiring_argument<S> {
  using type = typename S::non_const_value_type;
};

// What the concept Semiring requires, a message for each member.
template <class S>
constexpr void check_members() {
  constexpr bool has_element = requires { typename S::element; };
  static_assert(
      has_element,
      "contract: the second argument is a semiring (see rigel/semiring.hpp), or a view of them: a struct with a type "
      "`element`, that of A's and B's elements. A lambda cannot be a semiring: write a struct");
  if constexpr (has_element) {
    constexpr bool has_accumulator = requires { typename S::accumulator; };
    static_assert(has_accumulator, "contract: the semiring lacks a type `accumulator`, in which it adds");
    if constexpr (has_accumulator) {
      using X = typename S::accumulator;
      static_assert(
          requires {
            { S::identity() } -> std::convertible_to<X>;
          }, "contract: the semiring lacks `static accumulator identity()`, the identity of its add()");
      static_assert(MultipliesPairs<S> || MultipliesWithIndex<S>,
                    "contract: the semiring lacks `accumulator multiply(element a, element b) const`, or the same with the "
                    "index k as third argument");
      static_assert(
          requires(const S s, X x) {
            { s.add(x, x) } -> std::convertible_to<X>;
          }, "contract: the semiring lacks `accumulator add(accumulator x, accumulator y) const`");
      static_assert(std::is_trivially_copyable_v<S>,
                    "contract: a semiring is trivially copyable, since kernels get a copy: let it hold numbers, or an "
                    "unmanaged view (Kokkos::MemoryUnmanaged) or a pointer to memory of the execution space, but no "
                    "std::vector and no managed view");
    }
  }
}

// The compile-time checks of the operands and the epilogue of a semiring.
template <class Exec, class S, class A, class B, class C, class Functor>
constexpr void check_operands() {
  using CView = view_t<C>;
  static_assert(
      speaks_for_itself<S> || !HasStep<S>,
      "contract: this functor derives from one of Rigel's semirings and has a step. If that is the fused form of its own "
      "multiply and add, say `using self = <the functor>`, which also keeps the inherited flags; else declare another step");
  static_assert(holds<typename view_t<A>::non_const_value_type, typename S::element> &&
                    holds<typename view_t<B>::non_const_value_type, typename S::element>,
                "contract: A and B hold the semiring's element type");
  static_assert(!std::is_const_v<typename CView::value_type>, "contract: C is written, its elements cannot be const");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename view_t<A>::memory_space>::accessible,
                "contract: the execution space cannot access A (X of distances)");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename view_t<B>::memory_space>::accessible,
                "contract: the execution space cannot access B (Z of distances)");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename CView::memory_space>::accessible,
                "contract: the execution space cannot access C (D of distances)");
  static_assert(
      TakesResults<Functor, S>,
      "contract: the epilogue cannot be called with (result, m, n, batch) of this semiring. Results that are no numbers, as "
      "those of with_argument, need an epilogue that makes a value of C's type of them: epilogue::arguments(view), or a "
      "functor of yours");
  constexpr Scalar c_type = scalar_of_written<typename CView::non_const_value_type>;
  if constexpr (std::is_same_v<Functor, epilogue::Program> && math::is_floating<result_t<S>>)
    static_assert(c_type == Scalar::other || c_type <= Scalar::f64,
                  "contract: the results are floating-point numbers, C cannot hold integers");
}

// The compile-time checks of contract()'s arguments. `Functor` is the epilogue as kernels take it. What is no semiring is
// instantiated no further.
template <class Exec, class SemiringOrView, class A, class B, class C, class Functor>
constexpr void check_types() {
  using S = typename semiring_argument<SemiringOrView>::type;
  static_assert(Kokkos::is_execution_space_v<Exec>, "contract: the first argument is a Kokkos execution space instance");
  if constexpr (Semiring<S>)
    check_operands<Exec, S, A, B, C, Functor>();
  else
    check_members<S>();
}

// Puts the semiring into the problem: its object, or a view of objects, one for each batch or one for all.
template <class Exec, class SemiringOrView>
void set_semiring(Contraction& p, const SemiringOrView& semiring) {
  using S = typename semiring_argument<SemiringOrView>::type;
  p.semiring = {semiring_name<S>(), semiring_type<S>()};
  p.element = scalar_of<typename S::element>;
  p.accumulator = scalar_of<typename S::accumulator>;
  if constexpr (Kokkos::is_view_v<SemiringOrView>) {
    static_assert(SemiringOrView::rank() <= 1, "contract: a view of semirings has rank 0 or 1");
    static_assert(Kokkos::SpaceAccessibility<Exec, typename SemiringOrView::memory_space>::accessible,
                  "contract: the execution space cannot access the view of semirings");
    const auto objects = static_cast<std::int64_t>(semiring.size());
    if ((objects != 1 && objects != p.batch) || !semiring.span_is_contiguous())
      throw Error(Code::invalid_argument, "contract: the view of semirings '" + semiring.label() + "' has " +
                                              std::to_string(objects) + " objects, expected " + std::to_string(p.batch) +
                                              " contiguous ones, one for each batch of C, or one for all");
    if (!semiring.data() && !p.is_empty())
      throw Error(Code::invalid_argument, "contract: the view of semirings '" + semiring.label() + "' has no data");
    p.semiring_object = semiring.data();
    p.semiring_in_view = true;
    p.semiring_stride = objects == 1 ? 0 : 1;
  } else {
    p.semiring_object = &semiring;
  }
  if (p.accumulate && !can_accumulate<S>)
    throw Error(Code::invalid_argument, "contract: accumulate is not defined for semiring '" + std::string(p.semiring.name) +
                                            "', whose accumulator is a struct that no value of C can be lifted into");
}

// The problem of a call on operands; C holds `Value`. It points to `exec`, `semiring`, `functor` (the epilogue as kernels take it),
// `indices` and options.kernel, which outlive it.
template <class Value, class Exec, class SemiringOrView, class Functor>
Contraction contraction_on(const Exec& exec, const SemiringOrView& semiring, Operand a, Operand b, Operand c,
                           const Functor& functor, const std::optional<Operand>& indices, const ContractOptions& options,
                           const char* function) {
  using S = typename semiring_argument<SemiringOrView>::type;
  constexpr bool closed = std::is_same_v<Functor, epilogue::Program>;
  Contraction p;
  p.function = function;
  p.execution = execution_of(exec);
  p.require = options.require;
  p.precision = options.precision;
  p.kernel = options.kernel;
  p.workspace = options.workspace;
  p.a = std::move(a);
  p.b = std::move(b);
  p.c = std::move(c);
  p.c.type = scalar_of_written<Value>;
  p.batch = p.c.batches;
  p.m = p.c.rows;
  p.n = p.c.columns;
  p.k = p.a.columns;
  p.accumulate = options.accumulate;
  p.may_cancel = options.may_cancel;
  set_semiring<Exec>(p, semiring);
  if (indices) p.indices = &*indices;
  if constexpr (closed)
    p.program = &functor;
  else
    epilogue::for_each_program(functor, [&](const epilogue::Program& program) { p.check_sources(program); });
  p.epilogue_object = &functor;
  // Compiled kernels take the zoo with epilogues of the closed set; kernels for anything else are instantiated here.
  constexpr bool suits_compiled = closed && scalar_of_written<Value> != Scalar::other && space_of<Exec> != Space::other;
  if constexpr (in_library<S> && suits_compiled)
    p.instantiated = kernels_in_library<S>();
  else if constexpr (TakesResults<Functor, S> && !(in_zoo<S> && suits_compiled))
    p.instantiated = instantiated_kernels<Exec, S, Functor, Value>();
  return p;
}

// The same on views.
template <class Exec, class SemiringOrView, class A, class B, class C, class Functor>
Contraction contraction_of(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
                           const Functor& functor, const std::optional<Operand>& indices, const ContractOptions& options) {
  check_types<Exec, SemiringOrView, A, B, C, Functor>();
  if constexpr (!Semiring<typename semiring_argument<SemiringOrView>::type>)
    return {};
  else
    return contraction_on<typename view_t<C>::non_const_value_type>(
        exec, semiring, operand_of(a, options.batch, "A"), operand_of(b, options.batch, "B"),
        operand_of(c, options.batch, "C"), functor, indices, options, "contract");
}

// Builds the problem of a call and hands it to `use`.
template <class Exec, class SemiringOrView, class A, class B, class C, class E, class Use>
auto with_problem(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c, const E& epilogue,
                  const ContractOptions& options, const Use& use) {
  std::optional<Operand> indices;
  const auto& functor = bound<Exec>(epilogue, options.batch, indices);
  return use(contraction_of(exec, semiring, a, b, c, functor, indices, options));
}

}  // namespace detail

/// A Contraction that owns what it points to: copies of the execution space instance, the semiring (or the view of semirings),
/// the views, the epilogue and the kernel's name. It can be neither copied nor moved.
template <class Exec, class SemiringOrView, class A, class B, class C, class E>
class OwningContraction : public Contraction {
  using Functor = std::decay_t<decltype(detail::bound<Exec>(std::declval<const E&>(), Batch{},
                                                            std::declval<std::optional<Operand>&>()))>;

 public:
  OwningContraction(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c, const E& epilogue,
                    const ContractOptions& options)
      : exec_(exec),
        semiring_(semiring),
        a_(a),
        b_(b),
        c_(c),
        epilogue_(epilogue),
        functor_(detail::bound<Exec>(epilogue_, options.batch, indices_)),
        kernel_(options.kernel) {
    static_cast<Contraction&>(*this) = detail::contraction_of(exec_, semiring_, a_, b_, c_, functor_, indices_, options);
    kernel = kernel_;
  }
  OwningContraction(const OwningContraction&) = delete;
  OwningContraction& operator=(const OwningContraction&) = delete;

 private:
  Exec exec_;
  SemiringOrView semiring_;
  A a_;
  B b_;
  C c_;
  E epilogue_;
  std::optional<Operand> indices_;
  Functor functor_;
  std::string kernel_;
};

/// The problem of a call of contract() with the same arguments. candidates(), explain(), select(), workspace_size() and run()
/// take it:
///
///     const auto problem = rigel::problem_of(exec, rigel::min_plus<float>{}, a, b, c);
///     for (const auto& candidate : rigel::candidates(problem))
///       if (candidate.status) rigel::run(*candidate.kernel, problem);
///
/// It keeps managed views alive. Throws Error(invalid_argument) if a view of semirings has neither one object nor as many as C
/// has batches, or if the semiring does not define accumulate. run() checks extents and overlaps.
template <class Exec, class SemiringOrView, class A, class B, class C, class E = epilogue::Program>
OwningContraction<Exec, SemiringOrView, A, B, C, E> problem_of(const Exec& exec, const SemiringOrView& semiring, const A& a,
                                                               const B& b, const C& c, const E& epilogue = {},
                                                               const ContractOptions& options = {}) {
  return {exec, semiring, a, b, c, epilogue, options};
}
/// The same without an epilogue.
template <class Exec, class SemiringOrView, class A, class B, class C>
OwningContraction<Exec, SemiringOrView, A, B, C, epilogue::Program> problem_of(const Exec& exec,
                                                                               const SemiringOrView& semiring, const A& a,
                                                                               const B& b, const C& c,
                                                                               const ContractOptions& options) {
  return {exec, semiring, a, b, c, {}, options};
}

/// C(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ), asynchronously on `exec`.
///
/// exec       any execution space instance that can access every view. Kokkos::Threads takes calls only from the host thread
///            that initialised Kokkos.
/// semiring   a functor (rigel/semiring.hpp), or a view of functors in memory of the execution space, which kernels read when
///            they run. The view has rank 0, or is contiguous of rank 1 with one functor, or with L, one for each batch.
/// a, b, c    views of any layout, or transposed() ones: a is M × K, b is K × N, c is M × N. Views of rank 3 have a batch index
///            in addition. A batch extent of 1, or rank 2, broadcasts a or b. c overlaps neither a nor b. A c of bool receives
///            whether the epilogue's value differs from 0, which NaN does.
/// epilogue   a functor (value, m, n, batch) → value, applied once to each result (rigel/epilogue.hpp). The closed set turns
///            the zoo's integers into floating-point numbers, which c must be able to hold; any_bit() or parity() as the only
///            step keeps them integers. A result that is not a number needs an epilogue that makes one of it: for
///            with_argument<S> that is epilogue::arguments(view), which stores the k that won.
///
/// K = 0 gives the epilogue of the identity. If M = 0, N = 0 or there are no batches, nothing happens. Do not call it inside a
/// parallel region: Kokkos does not launch from there.
///
/// Throws Error(invalid_argument) if extents do not match or C overlaps, Error(not_found) if no kernel has the name that
/// options.kernel asks for, Error(unsupported) if no kernel covers the call, Kokkos is not initialised, or Kokkos::Threads cannot
/// launch from here, Error(out_of_memory) if the pool gets no memory, and Error(device) if the CUDA runtime fails. C is untouched
/// when it throws.
template <class Exec, class SemiringOrView, class A, class B, class C, class E = epilogue::Program>
void contract(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c, const E& epilogue = {},
              const ContractOptions& options = {}) {
  detail::with_problem(exec, semiring, a, b, c, epilogue, options, [](const Contraction& p) { run(p); });
}
/// The same without an epilogue: `contract(exec, s, a, b, c, {.accumulate = true})`.
template <class Exec, class SemiringOrView, class A, class B, class C>
void contract(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
              const ContractOptions& options) {
  contract(exec, semiring, a, b, c, epilogue::Program{}, options);
}

/// Lists every candidate kernel of a call of contract() with the same arguments, a line each: its predicted time, or why it
/// does not cover the call. '*' marks the choice.
template <class Exec, class SemiringOrView, class A, class B, class C, class E = epilogue::Program>
std::string explain(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
                    const E& epilogue = {}, const ContractOptions& options = {}) {
  return detail::with_problem(exec, semiring, a, b, c, epilogue, options, [](const Contraction& p) { return explain(p); });
}
template <class Exec, class SemiringOrView, class A, class B, class C>
std::string explain(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
                    const ContractOptions& options) {
  return explain(exec, semiring, a, b, c, epilogue::Program{}, options);
}

/// Bytes of workspace, in memory of the execution space, that a call of contract() with the same arguments needs.
template <class Exec, class SemiringOrView, class A, class B, class C, class E = epilogue::Program>
std::size_t workspace_size(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
                           const E& epilogue = {}, const ContractOptions& options = {}) {
  return detail::with_problem(exec, semiring, a, b, c, epilogue, options,
                              [](const Contraction& p) { return workspace_size(p).bytes; });
}
template <class Exec, class SemiringOrView, class A, class B, class C>
std::size_t workspace_size(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
                           const ContractOptions& options) {
  return workspace_size(exec, semiring, a, b, c, epilogue::Program{}, options);
}

}  // namespace rigel
