// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear systems and eigenvectors of dense matrices, for the kernel methods that distances and kernel matrices serve: batched, of
// float and double, on Kokkos views of any layout.
//
//     cholesky_solve            X = A⁻¹·B        A symmetric positive definite
//     lu_solve                  X = A⁻¹·B        A any square matrix, by partial pivoting
//     cholesky_factor           A = L·Lᵀ         and with it
//     cholesky_solve_factored   X = (L·Lᵀ)⁻¹·B
//     log_determinant           d = log det(L·Lᵀ)
//     eigh                      A = V·diag(w)·Vᵀ A symmetric
//
// A matrix that has no such factorisation is data, not an error: its batch's info is not 0 and its results are NaN, while those
// of the other batches are right. Nothing waits for a device unless options.check asks for it.
#pragma once

#include <rigel/config.hpp>
#include <rigel/contract.hpp>
#include <rigel/detail/call.hpp>
#include <rigel/detail/capture.hpp>
#include <rigel/detail/checks.hpp>
#include <rigel/detail/refine.hpp>
#include <rigel/detail/vectors.hpp>
#include <rigel/solve.hpp>

#if RIGEL_BACKEND_REFERENCE
#include <rigel/backends/reference/solve.hpp>
#endif

#include <algorithm>
#include <vector>

namespace rigel {

/// Options of the solves, of factorisations and of eigh().
struct SolveOptions {
  Triangle triangle = Triangle::lower;  // of a symmetric A, or of its factor: the other one is not read
  bool overwrite_a =
      false;  // A's memory is used: a factor or eigenvectors may go to A itself, else A is unspecified afterwards
  bool overwrite_b = false;  // X may be B itself
  bool check =
      false;       // waits for the result, and throws if a matrix has no factorisation; not while a CUDA graph is captured
  int refine = 0;  // of float, cholesky_solve and lu_solve: sweeps of refinement in double
  Batch batch = Batch::first;
  Promise require = Promise::none;  // considers only kernels that promise this
  std::string_view kernel = {};     // a kernel's name or its leading part: "host.lapack", "cuda.solver"
  Workspace workspace = {};         // as …_workspace_size() says; without it, the call leases one from Rigel's pool
};

/// Stands for infos that a call does not want.
struct NoInfo {};

namespace detail {

template <class Exec, class View>
constexpr bool accessible = Kokkos::SpaceAccessibility<Exec, typename view_t<View>::memory_space>::accessible;
template <class View>
constexpr bool is_written = !std::is_const_v<typename view_t<View>::value_type>;
template <class View>
using element_of = typename view_t<View>::non_const_value_type;

// The Operand of a matrix of a solve.
template <class View>
Operand matrix_of(const View& v, Batch batch, const char* argument) {
  constexpr bool is_matrix = view_t<View>::rank() == 2 || view_t<View>::rank() == 3;
  static_assert(is_matrix, "solve: a matrix is a view of rank 2, or 3 with batches; a single right side is an n x 1 view");
  if constexpr (is_matrix)
    return operand_of(v, batch, argument);
  else
    return {};
}

// The problem of a call on views. `B` of a task that has no right sides is X.
template <class Exec, class A, class B, class X, class Info>
Solve solve_problem(const Exec& exec, Factorisation factorisation, Solve::Task task, const A& a, const B& b, const X& x,
                    const Info& info, const SolveOptions& options, const char* function) {
  using T = element_of<A>;
  static_assert(Kokkos::is_execution_space_v<Exec>, "solve: the first argument is a Kokkos execution space instance");
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "solve: matrices hold float or double");
  static_assert(std::is_same_v<element_of<B>, T> && std::is_same_v<element_of<X>, T>,
                "solve: all matrices have the same element type");
  static_assert(is_written<X>, "solve: X is written, its elements cannot be const");
  static_assert(accessible<Exec, A>, "solve: the execution space cannot access A");
  static_assert(accessible<Exec, B>, "solve: the execution space cannot access B");
  static_assert(accessible<Exec, X>, "solve: the execution space cannot access X");
  Solve p;
  p.function = function;
  p.execution = execution_of(exec);
  p.require = options.require;
  p.kernel = options.kernel;
  p.workspace = options.workspace;
  p.factorisation = factorisation;
  p.task = task;
  p.triangle = options.triangle;
  p.element = scalar_of<T>;
  p.a = matrix_of(a, options.batch, "A");
  p.x = matrix_of(x, options.batch, "X");
  if (task != Solve::Task::factor) p.b = matrix_of(b, options.batch, "B");
  p.batch = p.x.batches;
  p.n = p.a.rows;
  p.right_sides = task == Solve::Task::factor ? 0 : p.x.columns;
  if (options.overwrite_a && !is_written<A>)
    throw Error(Code::invalid_argument, std::string(function) + ": A's elements are const, and options.overwrite_a is set");
  p.overwrite_a = options.overwrite_a;
  p.overwrite_b = options.overwrite_b;
  p.refine = options.refine;
  if constexpr (!std::is_same_v<Info, NoInfo>) {
    static_assert(std::is_same_v<element_of<Info>, std::int32_t> && is_written<Info> && accessible<Exec, Info>,
                  "solve: infos are written to a view of std::int32_t that the execution space can access");
    p.infos = numbers_of(info, "info");
  }
#if RIGEL_BACKEND_REFERENCE
  if constexpr (space_of<Exec> == Space::other) {
    static const std::span<const Kernel<Solve>> kernels = keep(backends::reference::solve_kernels<T, type_list<Exec>>());
    p.instantiated = kernels;
    if constexpr (std::is_same_v<T, float>) {
      static const Refinement refinement{launch_refinement<type_list<Exec>>,
                                         instantiated_kernels<Exec, plus_times<double>, epilogue::Program, double>()};
      p.refinement = &refinement;
    }
  }
#endif
  return p;
}

// Runs a problem. With `check` it waits, and throws if a system failed.
template <class Exec>
void run_solve(const Exec& exec, Solve p, bool check) {
  if (!check) return run(p);
  require_no_capture(p.execution, p.function, "no check, which waits");
  using Infos = Kokkos::View<std::int32_t*, typename Exec::memory_space>;
  const Infos own(Kokkos::view_alloc("rigel::solve/infos", exec), p.infos.data ? 0 : static_cast<std::size_t>(p.batch));
  if (!p.infos.data) {
    p.infos = numbers_of(own, "info");
    p.infos.batches = p.batch;
  }
  run(p);
  if (p.is_empty()) return;
  const Kokkos::View<std::int32_t*, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged> infos(
      static_cast<std::int32_t*>(p.infos.data),
      Kokkos::LayoutStride(static_cast<std::size_t>(p.batch),
                           static_cast<std::size_t>(std::max<std::int64_t>(p.infos.batch_stride, 1))));
  const Infos dense(Kokkos::view_alloc("rigel::solve/infos", exec, Kokkos::WithoutInitializing), infos.extent(0));
  Kokkos::deep_copy(exec, dense, infos);
  const auto host = Kokkos::create_mirror_view(dense);
  Kokkos::deep_copy(exec, host, dense);
  exec.fence("rigel::solve: check");
  require_solved(p, host.data());
}

}  // namespace detail

// ---- problems: of a call, for its workspace and its choice of a kernel ---------------------------------------------------

/// The problem of a call with these arguments, for workspace_size(), explain(), candidates() and run(kernel, problem). It points to
/// `exec`, the views and options.kernel, which outlive it.
template <class Exec, class A, class B, class X, class Info = NoInfo>
Solve cholesky_solve_problem(const Exec& exec, const A& a, const B& b, const X& x, const Info& info = {},
                             const SolveOptions& options = {}) {
  return detail::solve_problem(exec, Factorisation::cholesky, Solve::Task::solve, a, b, x, info, options, "cholesky_solve");
}
template <class Exec, class A, class L, class Info = NoInfo>
Solve cholesky_factor_problem(const Exec& exec, const A& a, const L& factor, const Info& info = {},
                              const SolveOptions& options = {}) {
  Solve p = detail::solve_problem(exec, Factorisation::cholesky, Solve::Task::factor, a, factor, factor, info, options,
                                  "cholesky_factor");
  p.x.argument = "L";
  return p;
}
template <class Exec, class L, class B, class X, class Info = NoInfo>
Solve cholesky_solve_factored_problem(const Exec& exec, const L& factor, const B& b, const X& x, const Info& info = {},
                                      const SolveOptions& options = {}) {
  Solve p = detail::solve_problem(exec, Factorisation::cholesky, Solve::Task::substitute, factor, b, x, info, options,
                                  "cholesky_solve_factored");
  p.a.argument = "L";
  p.overwrite_a = false;  // L is never written
  return p;
}
template <class Exec, class A, class B, class X, class Info = NoInfo>
Solve lu_solve_problem(const Exec& exec, const A& a, const B& b, const X& x, const Info& info = {},
                       const SolveOptions& options = {}) {
  return detail::solve_problem(exec, Factorisation::lu, Solve::Task::solve, a, b, x, info, options, "lu_solve");
}
template <class Exec, class A, class W, class V, class Info = NoInfo>
Solve eigh_problem(const Exec& exec, const A& a, const W& w, const V& v, const Info& info = {},
                   const SolveOptions& options = {}) {
  static_assert(
      std::is_same_v<detail::element_of<W>, detail::element_of<A>> && detail::is_written<W> && detail::accessible<Exec, W>,
      "eigh: w is written, holds A's type, and the execution space can access it");
  Solve p = detail::solve_problem(exec, Factorisation::eigen, Solve::Task::factor, a, v, v, info, options, "eigh");
  p.x.argument = "V";
  p.values = detail::vectors_of(w, options.batch, "w");
  return p;
}

// ---- positive definite systems ---------------------------------------------------------------------------------------

/// X(l) = A(l)⁻¹·B(l) for symmetric positive definite A, by Cholesky's factorisation, asynchronously on `exec`.
///
/// exec   any execution space instance that can access every view
/// a      n × n, of float or double, any layout, or a transposed() view; of rank 3 with a batch index. Only options.triangle is
///        read. It is untouched unless options.overwrite_a is set; then it is unspecified afterwards.
/// b, x   n × m with the same batches. x is b itself (options.overwrite_b), or overlaps nothing.
/// info   view of std::int32_t of rank 1 with a number for each batch, or of rank 0: 0, or the order of the first leading minor
///        that is not positive and finite. X is then NaN.
///
/// The computed X satisfies |A·X − B| ≤ γ·d·(dᵀ·|X|) element by element, with d = √diag(A) and γ = (3n + 4)u/(1 − (3n + 4)u) (N. J.
/// Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., theorem 10.4; docs/numerics.md).
///
/// Of float, options.refine sweeps of iterative refinement follow: b − A·X in double, its solution in float by the same factor,
/// added to X in double; X is rounded to float at the end. A correction that is not less than half of the one before (the
/// first: of X) is left out, and so are those after it. If n·u times A's condition number is well below 1, X is then off by
/// little more than u·|X| (docs/numerics.md). A is not written. It takes about 12 more bytes of workspace for each element of A,
/// 20 for each of B.
///
/// Throws Error(invalid_argument) if extents do not match or X overlaps, options.refine is negative, or not 0 for double, and
/// with options.check if a matrix is not positive definite; the rest as contract() does. Unless it is options.check that
/// throws, nothing is written.
template <class Exec, class A, class B, class X, class Info>
  requires(!std::is_same_v<Info, SolveOptions>)
void cholesky_solve(const Exec& exec, const A& a, const B& b, const X& x, const Info& info,
                    const SolveOptions& options = {}) {
  detail::run_solve(exec, cholesky_solve_problem(exec, a, b, x, info, options), options.check);
}
template <class Exec, class A, class B, class X>
void cholesky_solve(const Exec& exec, const A& a, const B& b, const X& x, const SolveOptions& options = {}) {
  cholesky_solve(exec, a, b, x, NoInfo{}, options);
}

/// L(l)·L(l)ᵀ = A(l) for symmetric positive definite A, asynchronously on `exec`. L is lower triangular with zeros above the
/// diagonal; with Triangle::upper it is U = Lᵀ. It is n × n like A, and may be A itself (options.overwrite_a). Otherwise as
/// cholesky_solve(): info is the order of the first leading minor that is not positive and finite, L is then NaN.
template <class Exec, class A, class L, class Info>
  requires(!std::is_same_v<Info, SolveOptions>)
void cholesky_factor(const Exec& exec, const A& a, const L& factor, const Info& info, const SolveOptions& options = {}) {
  detail::run_solve(exec, cholesky_factor_problem(exec, a, factor, info, options), options.check);
}
template <class Exec, class A, class L>
void cholesky_factor(const Exec& exec, const A& a, const L& factor, const SolveOptions& options = {}) {
  cholesky_factor(exec, a, factor, NoInfo{}, options);
}

/// X(l) = (L(l)·L(l)ᵀ)⁻¹·B(l), L from cholesky_factor() with the same options.triangle. L is never written. info is 0, or the
/// place, from 1, of the first element on L's diagonal that is not positive and finite; X is then NaN.
template <class Exec, class L, class B, class X, class Info>
  requires(!std::is_same_v<Info, SolveOptions>)
void cholesky_solve_factored(const Exec& exec, const L& factor, const B& b, const X& x, const Info& info,
                             const SolveOptions& options = {}) {
  detail::run_solve(exec, cholesky_solve_factored_problem(exec, factor, b, x, info, options), options.check);
}
template <class Exec, class L, class B, class X>
void cholesky_solve_factored(const Exec& exec, const L& factor, const B& b, const X& x, const SolveOptions& options = {}) {
  cholesky_solve_factored(exec, factor, b, x, NoInfo{}, options);
}

/// d(l) = log det(L(l)·L(l)ᵀ) = 2·Σ_i log L(l,i,i), asynchronously on `exec`, from a factor of cholesky_factor(). d is a view of
/// rank 1 with a number for each batch, or of rank 0, of L's type. The sum runs over ascending i in double. A factor that is NaN
/// gives NaN, n = 0 gives 0.
///
/// Throws Error(invalid_argument) if L is not square, d has another number of batches, one of them has no data, or d overlaps L or
/// itself; Error(unsupported) if this host thread cannot launch on `exec`. Then nothing is written.
template <class Exec, class L, class D>
void log_determinant(const Exec& exec, const L& factor, const D& d, Batch batch = Batch::first) {
  using T = detail::element_of<L>;
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "log_determinant: L holds float or double");
  static_assert(std::is_same_v<detail::element_of<D>, T> && detail::is_written<D>,
                "log_determinant: d is written, and holds L's type");
  static_assert(detail::accessible<Exec, L> && detail::accessible<Exec, D>,
                "log_determinant: the execution space cannot access one of the views");
  const Operand l = detail::operand_of(factor, batch, "L"), numbers = detail::numbers_of(d, "d");
  Call call;
  call.function = "log_determinant";
  call.execution = detail::execution_of(exec);
  if (l.rows != l.columns) detail::refuse(call, detail::describe_argument(l, " is ") + ", expected a square matrix");
  if (numbers.batches != l.batches)
    detail::refuse(call, "d '" + numbers.label + "' has " + std::to_string(numbers.batches) + " numbers, expected " +
                             std::to_string(l.batches) + ", one for each batch of L '" + l.label + "'");
  if (l.batches == 0) return;
  detail::require_data(call, numbers);
  detail::require_distinct(call, numbers);
  if (l.rows > 0) {
    detail::require_data(call, l);
    detail::require_disjoint(call, numbers, l);
  }
  detail::require_launch(call.function, call.execution);
  const auto from = detail::typed<const T>(l);
  const auto to = detail::typed<T>(numbers);
  const std::int64_t n = l.rows;
  Kokkos::parallel_for(
      "rigel::log_determinant",
      detail::by_argument(Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, l.batches)),
      KOKKOS_LAMBDA(const std::int64_t batch_index) {
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += Kokkos::log(static_cast<double>(from.at(batch_index, i, i)));
        to.at(batch_index, 0, 0) = static_cast<T>(2 * sum);
      });
}

// ---- general systems -------------------------------------------------------------------------------------------------

/// X(l) = A(l)⁻¹·B(l) for any square A, by LU with partial pivoting, asynchronously on `exec`. Arguments are those of
/// cholesky_solve(), but all of A is read. info is 0, or the number, from 1, of a pivot that is 0 or not finite; X is then NaN. NaN
/// and infinities in A are found by the time that they reach a pivot, so the number depends on the kernel.
///
/// The computed X satisfies |A·X − B| ≤ γ·Pᵀ|L||U||X| with γ = (3n + 4)u/(1 − (3n + 4)u) (Higham, theorem 9.4).
/// options.refine is as in cholesky_solve(), but each sweep factorises A again.
template <class Exec, class A, class B, class X, class Info>
  requires(!std::is_same_v<Info, SolveOptions>)
void lu_solve(const Exec& exec, const A& a, const B& b, const X& x, const Info& info, const SolveOptions& options = {}) {
  detail::run_solve(exec, lu_solve_problem(exec, a, b, x, info, options), options.check);
}
template <class Exec, class A, class B, class X>
void lu_solve(const Exec& exec, const A& a, const B& b, const X& x, const SolveOptions& options = {}) {
  lu_solve(exec, a, b, x, NoInfo{}, options);
}

// ---- symmetric matrices ----------------------------------------------------------------------------------------------

/// A(l) = V(l)·diag(w(l))·V(l)ᵀ for symmetric A, asynchronously on `exec`: eigenvalues in ascending order, and the orthonormal
/// eigenvectors in the columns of V, in the same order. The sign of an eigenvector is unspecified, and so is the basis of an
/// eigenspace of several dimensions.
///
/// a      as in cholesky_solve(): only options.triangle is read
/// w      view of rank 1, n numbers, or of rank 2 with a batch index, of A's type
/// v      n × n, may be A itself (options.overwrite_a)
/// info   0; else the matrix is not finite or the iteration did not converge, and w and V are NaN
///
/// ‖A − V·diag(w)·Vᵀ‖ and ‖A‖·‖VᵀV − 1‖ are small multiples of n·u·‖A‖; docs/numerics.md has what the tests require.
template <class Exec, class A, class W, class V, class Info>
  requires(!std::is_same_v<Info, SolveOptions>)
void eigh(const Exec& exec, const A& a, const W& w, const V& v, const Info& info, const SolveOptions& options = {}) {
  detail::run_solve(exec, eigh_problem(exec, a, w, v, info, options), options.check);
}
template <class Exec, class A, class W, class V>
void eigh(const Exec& exec, const A& a, const W& w, const V& v, const SolveOptions& options = {}) {
  eigh(exec, a, w, v, NoInfo{}, options);
}

}  // namespace rigel
