// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of sums of distances, without the N × M × K derivatives that they are sums of.
//
//     contract_gradient   Out(l,o,n,m) = ⊕_k accumulate(C(l,o,k), multiply(D(l,n,m), B(l,n,k), A(l,k,m)))
//     cdist_gradient      Out(l,o,n,m) = Σ_k C(l,o,k)·A(l,k,m)·sign(D(l,n,m) − B(l,n,k))·|D(l,n,m) − B(l,n,k)|^(p−1)
//
// The letters are those of kermac's cdist_grad. In a kernel machine D holds M points and B holds K training points, one coordinate
// a row; A holds a weight for each pair of points, C the coefficients of O outputs; Out is the gradient of each output at each point.
#pragma once

#include <rigel/config.hpp>
#include <rigel/contract.hpp>
#include <rigel/gradient_of.hpp>
#include <rigel/gradient_problem.hpp>

#if RIGEL_BACKEND_REFERENCE
#include <rigel/backends/reference/gradient.hpp>
#endif
#if RIGEL_BACKEND_HOST
#include <rigel/backends/host/gradient.hpp>
#endif
#if RIGEL_BACKEND_CUDA_SIMT
#include <rigel/backends/cuda/gradient/gradient.hpp>
#endif

#include <cmath>
#include <vector>

namespace rigel {

/// Options of contract_gradient() and cdist_gradient().
struct GradientOptions {
  bool accumulate = false;  // Out = Out ⊕ …: each sum starts with the value in Out
  Batch batch = Batch::first;
  Promise require = Promise::none;             // considers only kernels that promise this
  Precision precision = Precision::automatic;  // the least precise terms that the call accepts
  bool may_cancel = false;                     // p = 2 of floats: matrix products, see cdist_gradient()
  std::string_view kernel = {};                // a kernel's name or its leading part: "host", "cuda.gradient"
  Workspace workspace = {};  // gradient_workspace_size() bytes; without it, the call leases them from Rigel's pool
};

/// Stands for a gradient that a call does not want.
struct NoGradient {};
inline constexpr NoGradient no_gradient;

namespace detail {

template <class D>
inline constexpr bool is_absent = std::is_same_v<D, NoGradient>;

/// Out: views of rank 3, or 4 with a batch index, as the operand of the matrices of one o; `outputs` and `stride` count these.
template <class View>
Operand gradient_out(const View& v, Batch batch, std::int64_t& outputs, std::int64_t& stride) {
  static_assert(Kokkos::is_view_v<View>, "contract_gradient: Out is a Kokkos view");
  static_assert(View::rank() == 3 || View::rank() == 4,
                "contract_gradient: Out has rank 3 (outputs x N x M), or 4 with a batch index");
  static_assert(!View::memory_traits::is_atomic, "contract_gradient: views with the Atomic memory trait are not supported");
  using T = typename View::non_const_value_type;
  Operand o{.data = const_cast<T*>(v.data()), .type = scalar_of_value<T>(), .size = sizeof(T), .argument = "Out"};
  o.label = v.label();
  constexpr bool batched = View::rank() == 4;
  const std::size_t first = batched && batch == Batch::first ? 1 : 0;
  if constexpr (batched) {
    const std::size_t l = batch == Batch::first ? 0 : 3;
    o.batches = static_cast<std::int64_t>(v.extent(l));
    if (o.batches != 1) o.batch_stride = static_cast<std::int64_t>(v.stride(l));
  }
  outputs = static_cast<std::int64_t>(v.extent(first));
  stride = static_cast<std::int64_t>(v.stride(first));
  o.rows = static_cast<std::int64_t>(v.extent(first + 1));
  o.columns = static_cast<std::int64_t>(v.extent(first + 2));
  o.row_stride = static_cast<std::int64_t>(v.stride(first + 1));
  o.column_stride = static_cast<std::int64_t>(v.stride(first + 2));
  return o;
}

/// The kernels of every family for functor G on Exec.
template <class Exec, class G>
std::span<const Kernel<Gradient>> instantiated_gradient_kernels() {
  static const std::span<const Kernel<Gradient>> kernels = keep([] {
    [[maybe_unused]] constexpr Spaces here = bit(space_of<Exec>);
    std::vector<Kernel<Gradient>> list;
#if RIGEL_BACKEND_REFERENCE
    list.push_back(backends::reference::gradient_kernel<G, type_list<Exec>>());
#endif
#if RIGEL_BACKEND_HOST
    if constexpr ((here & host_spaces) != 0)
      list.push_back(backends::host::gradient_kernel<backends::host::native, G,
                                                     backends::host::InstantiatedGradient<backends::host::native, G>,
                                                     type_list<Exec>>());
#endif
#if RIGEL_BACKEND_CUDA_SIMT
    if constexpr (here == bit(Space::cuda))
      for (Kernel<Gradient>& kernel : backends::gradient::kernels<G>()) list.push_back(std::move(kernel));
#endif
    return list;
  }());
  return kernels;
}

template <class Exec, class View>
inline constexpr bool reads_from = Kokkos::SpaceAccessibility<Exec, typename view_t<View>::memory_space>::accessible;

/// A problem of a call on views, without a functor. It points to `exec` and options.kernel, which outlive it.
template <class Exec, class A, class B, class C, class D, class Out>
Gradient gradient_of_views(const Exec& exec, const A& a, const B& b, const C& c, const D& d, const Out& out,
                           const GradientOptions& options, const char* function) {
  static_assert(Kokkos::is_execution_space_v<Exec>,
                "contract_gradient: the first argument is a Kokkos execution space instance");
  static_assert(!std::is_const_v<typename Out::value_type>,
                "contract_gradient: Out is written, its elements cannot be const");
  static_assert(
      reads_from<Exec, A> && reads_from<Exec, B> && reads_from<Exec, C> && reads_from<Exec, D> && reads_from<Exec, Out>,
      "contract_gradient: the execution space cannot access one of the views");
  Gradient p;
  p.function = function;
  p.execution = execution_of(exec);
  p.require = options.require;
  p.precision = options.precision;
  p.may_cancel = options.may_cancel;
  p.kernel = options.kernel;
  p.workspace = options.workspace;
  p.a = operand_of(a, options.batch, "A");
  p.b = operand_of(b, options.batch, "B");
  p.c = operand_of(c, options.batch, "C");
  p.d = operand_of(d, options.batch, "D");
  p.out = gradient_out(out, options.batch, p.outputs, p.out_stride);
  p.batch = p.out.batches;
  p.n = p.out.rows;
  p.m = p.out.columns;
  p.k = p.a.rows;
  p.accumulate = options.accumulate;
  return p;
}

/// The problem of a call on views. It points to `exec`, `functor` and options.kernel, which outlive it.
template <class Exec, class G, class A, class B, class C, class D, class Out>
Gradient gradient_on(const Exec& exec, const G& functor, const A& a, const B& b, const C& c, const D& d, const Out& out,
                     const GradientOptions& options, const char* function) {
  using E = typename G::element;
  static_assert(GradientFunctor<G>, "contract_gradient: the second argument is a functor (see rigel/gradient_of.hpp)");
  static_assert(holds<typename view_t<A>::non_const_value_type, E> && holds<typename view_t<B>::non_const_value_type, E> &&
                    holds<typename view_t<C>::non_const_value_type, E> && holds<typename view_t<D>::non_const_value_type, E>,
                "contract_gradient: A, B, C and D hold the functor's element type");
  static_assert(std::is_same_v<typename Out::value_type, typename G::accumulator>,
                "contract_gradient: Out is written, and holds the functor's accumulator type");
  Gradient p = gradient_of_views(exec, a, b, c, d, out, options, function);
  p.functor = {gradient_name<G>(), gradient_type<G>()};
  p.element = scalar_of<E>;
  p.accumulator = scalar_of<typename G::accumulator>;
  p.functor_object = &functor;
  if constexpr (!(is_compiled_gradient<G> && space_of<Exec> != Space::other))
    p.instantiated = instantiated_gradient_kernels<Exec, G>();
  return p;
}

/// Throws Error(invalid_argument) unless `value` is fit for the argument.
inline void require_number(const char* argument, double value, bool valid, const char* expected) {
  if (!valid)
    throw Error(Code::invalid_argument,
                std::string("cdist_gradient: ") + argument + " is " + std::to_string(value) + ", expected " + expected);
}

}  // namespace detail

// ---- any functor -----------------------------------------------------------------------------------------------------

/// The problem of a call of contract_gradient() with these arguments, for workspace_size(), explain(), candidates() and
/// run(kernel, problem). It points to `exec`, `g` and options.kernel, which outlive it.
template <class Exec, class G, class A, class B, class C, class D, class Out>
Gradient gradient_problem(const Exec& exec, const G& g, const A& a, const B& b, const C& c, const D& d, const Out& out,
                          const GradientOptions& options = {}) {
  return detail::gradient_on(exec, g, a, b, c, d, out, options, "contract_gradient");
}
// A temporary functor would be gone when the problem is used.
template <class Exec, class G, class... Rest>
Gradient gradient_problem(const Exec& exec, const G&& g, const Rest&... rest) = delete;

/// Out(l,o,n,m) = result( ⊕_k accumulate(C(l,o,k), multiply(D(l,n,m), B(l,n,k), A(l,k,m))) ), asynchronously on `exec`.
///
/// exec         any execution space instance that can access every view
/// g            a functor with multiply, accumulate, add and identity (rigel/gradient_of.hpp), for instance one of gradient_of;
///              multiply() is evaluated once per (n, m, k) and used for all o, or at least for 8 of them. What it reads itself,
///              by pointers, is read when the kernel runs.
/// a, b, c, d   views of any layout, or transposed() ones, of g's element type: a is K × M, b is N × K, c is O × K, d is N × M.
///              Views of rank 3 have a batch index in addition; a batch extent of 1, or rank 2, broadcasts.
/// out          O × N × M, of rank 3, or 4 with a batch index, of any layout, of g's accumulator type. It overlaps no input.
///
/// Each output is one chain with k ascending, unless a kernel without Promise::reference_bits cuts K into slices. K = 0 gives the
/// identity, or with options.accumulate leaves Out as result() of itself. If O, N, M or the batch is 0, nothing happens.
///
/// Throws Error(invalid_argument) if extents do not match or Out overlaps; the rest as contract() does. Out is untouched when it
/// throws.
template <class Exec, class G, class A, class B, class C, class D, class Out>
  requires GradientFunctor<G>
void contract_gradient(const Exec& exec, const G& g, const A& a, const B& b, const C& c, const D& d, const Out& out,
                       const GradientOptions& options = {}) {
  run(gradient_problem(exec, g, a, b, c, d, out, options));
}

/// Every kernel that the same call could use: its predicted time, or why it does not cover the call. '*' marks the choice.
template <class Exec, class G, class A, class B, class C, class D, class Out>
  requires GradientFunctor<G>
std::string explain_gradient(const Exec& exec, const G& g, const A& a, const B& b, const C& c, const D& d, const Out& out,
                             const GradientOptions& options = {}) {
  return explain(gradient_problem(exec, g, a, b, c, d, out, options));
}

/// Bytes of workspace, in memory of the execution space, that the same call needs.
template <class Exec, class G, class A, class B, class C, class D, class Out>
  requires GradientFunctor<G>
std::size_t gradient_workspace_size(const Exec& exec, const G& g, const A& a, const B& b, const C& c, const D& d,
                                    const Out& out, const GradientOptions& options = {}) {
  return workspace_size(gradient_problem(exec, g, a, b, c, d, out, options)).bytes;
}

// ---- Minkowski's distances -------------------------------------------------------------------------------------------

namespace detail {

/// Calls use(functor) with the functor for p, a number or a view of numbers. `batches`: those of Out.
template <class Exec, class E, class P, class Use>
auto with_gradient_of(const P& p, double epsilon, std::int64_t batches, const Use& use) {
  using Number = accumulator_for<E>;
  require_number("epsilon", epsilon, epsilon >= 0 && std::isfinite(epsilon), "a finite number, 0 or more");
  const auto least = static_cast<Number>(epsilon);
  if constexpr (Kokkos::is_view_v<P>) {
    static_assert(P::rank() <= 1, "cdist_gradient: a view of p has rank 0 or 1");
    static_assert(std::is_same_v<typename P::non_const_value_type, Number>,
                  "cdist_gradient: a view of p holds the type of Out");
    static_assert(reads_from<Exec, P>, "cdist_gradient: the execution space cannot access the view of p");
    const auto numbers = static_cast<std::int64_t>(p.size());
    if (numbers != 1 && numbers != batches)
      throw Error(Code::invalid_argument, "cdist_gradient: the view of p '" + p.label() + "' has " +
                                              std::to_string(numbers) + " numbers, expected " + std::to_string(batches) +
                                              ", one for each batch of Out, or one for all");
    if (!p.data() && batches > 0)
      throw Error(Code::invalid_argument, "cdist_gradient: the view of p '" + p.label() + "' has no data");
    std::int64_t stride = 0;
    if constexpr (P::rank() == 1) stride = numbers == 1 ? 0 : static_cast<std::int64_t>(p.stride(0));
    return use(gradient_of::minkowski<E>(p.data(), stride, least));
  } else {
    const auto number = static_cast<double>(p);
    require_number("p", number, number > 0 && std::isfinite(number), "a finite number above 0");
    if (number == 1) return use(gradient_of::manhattan<E>(least));
    if (number == 2) return use(gradient_of::euclidean<E>(least));
    return use(gradient_of::minkowski<E>(number, least));
  }
}

template <class Exec, class P, class A, class B, class C, class D, class Out, class Use>
auto with_cdist_gradient(const Exec& exec, const P& p, const A& a, const B& b, const C& c, const D& d, const Out& out,
                         double epsilon, const GradientOptions& options, const Use& use) {
  using T = typename view_t<A>::non_const_value_type;
  static_assert(scalar_of_value<T>() <= Scalar::f64, "cdist_gradient: A, B, C and D hold floating-point numbers");
  using E = std::conditional_t<scalar_of_value<T>() == Scalar::f16, half,
                               std::conditional_t<scalar_of_value<T>() == Scalar::bf16, bfloat16, T>>;
  std::int64_t outputs = 0, stride = 0;
  const std::int64_t batches = gradient_out(out, options.batch, outputs, stride).batches;
  return with_gradient_of<Exec, E>(p, epsilon, batches, [&](const auto& functor) {
    return use(gradient_on(exec, functor, a, b, c, d, out, options, "cdist_gradient"));
  });
}

}  // namespace detail

/// Out(l,o,n,m) = Σ_k C(l,o,k)·A(l,k,m)·sign(t)·|t|^(p−1), t = D(l,n,m) − B(l,n,k), asynchronously on `exec`: the gradient by
/// coordinate n of point m of Σ_k C(o,k)·f(|x_m − z_k|_p), if column m of D is x_m, column k of B is z_k and
///
///     A(k,m) = f'(δ)·δ^(1−p), δ = |x_m − z_k|_p        (A = f'(δ) for p = 1)
///
/// exec           as for contract_gradient()
/// p              a number above 0, or a view of rank 0 or 1, read when the kernel runs, of the type of Out: one for all batches, or
///                one for each. NaN in a view gives NaN, and p ≤ 0 what the formula gives.
/// a, b, c, d     as for contract_gradient(): K × M, N × K, O × K, N × M, of float or double; of half or bfloat16, which are
///                computed in float by kernels that the caller's translation unit compiles
/// out            O × N × M, of the same type; float for half and bfloat16
/// epsilon        differences |t| below it count as 0
/// Where t is 0, the term is 0, even if A(k,m) is infinite or NaN: the subgradient 0 of points that coincide in a coordinate. Where
/// A(k,m) is 0, the term is 0, even if t or its power is infinite.
///
/// Float and double, with u the unit roundoff and (c + t·K)·u the bound of the kernel (KernelInfo::accuracy):
/// |error| ≤ (c + t·K)·u·Σ_k |C(o,k)·A(k,m)|·|t|^(p−1), for p ≤ 8 (docs/numerics.md).
///
/// With options.may_cancel, p = 2 of floats on NVIDIA GPUs may be matrix products, one and a half to three times as fast. With c(n)
/// the mean of B's row n over all k, |D(n,m) − c(n)| + |B(n,k) − c(n)| then stands for |t| in the bound: results lose digits where
/// points with large weights are much nearer to each other than to the mean.
///
/// Throws Error(invalid_argument) for p ≤ 0 or not finite, a view of p of another length, a negative epsilon, and as
/// contract_gradient() does. K = 0 gives 0.
template <class Exec, class P, class A, class B, class C, class D, class Out>
void cdist_gradient(const Exec& exec, const P& p, const A& a, const B& b, const C& c, const D& d, const Out& out,
                    double epsilon, const GradientOptions& options = {}) {
  detail::with_cdist_gradient(exec, p, a, b, c, d, out, epsilon, options, [](const Gradient& problem) { run(problem); });
}
template <class Exec, class P, class A, class B, class C, class D, class Out>
void cdist_gradient(const Exec& exec, const P& p, const A& a, const B& b, const C& c, const D& d, const Out& out,
                    const GradientOptions& options = {}) {
  cdist_gradient(exec, p, a, b, c, d, out, 0, options);
}

}  // namespace rigel
