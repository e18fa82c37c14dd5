// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kernel_matrix_gradient(): vector-Jacobian products of kernel_matrix(). With K(l,m,n) = k(X(l,m,:), Z(l,n,:)) and G =
// ∂loss/∂K,
//
//     dX(l,m,:) = Σ_n G(l,m,n)·∂k/∂x     dZ(l,n,:) = Σ_m G(l,m,n)·∂k/∂z     dθ(l) = Σ_mn G(l,m,n)·∂k/∂θ
//
// Neither K nor a derivative of it is stored: rows of X are taken in blocks, whose weights G·k' are in the workspace.
#pragma once

#include <rigel/detail/kernel_derivatives.hpp>
#include <rigel/detail/kernel_matrix_gradient.hpp>
#include <rigel/detail/vectors.hpp>
#include <rigel/gradient.hpp>
#include <rigel/kernel_matrix.hpp>

#include <cmath>
#include <tuple>

namespace rigel {

/// Options of kernel_matrix_gradient().
struct KernelMatrixGradientOptions {
  bool accumulate = false;      // adds to what is in dX, dZ and the gradients of hyperparameters
  double epsilon = 0;           // distances: differences |x_k − z_k| below it count as 0 in dX and dZ
  std::int64_t block_rows = 0;  // rows of X at a time; 0: as many as 256 MiB of weights have. Bits depend on it.
  Batch batch = Batch::first;
  Precision precision =
      Precision::automatic;  // of distances, products and sums, as in cdist(), contract(), cdist_gradient()
  bool may_cancel = false;   // of gradients of Euclidean distances, as in cdist_gradient()
  Workspace workspace = {};  // kernel_matrix_gradient_workspace_size() bytes; else from Rigel's pool
};

/// The upstream gradient G(l,m,n) = g(l,m)·v(l,n), whose gradients are those of gᵀ·K·v: two views of vectors of M and N
/// numbers, of rank 1, or of rank 2 with a batch index.
template <class Left, class Right>
struct OuterProduct {
  Left g;
  Right v;
};

namespace detail {

template <class G>
inline constexpr bool is_outer_product = false;
template <class Left, class Right>
inline constexpr bool is_outer_product<OuterProduct<Left, Right>> = true;
template <class G>
concept UpstreamGradient = MatrixArgument<G> || is_outer_product<G>;
template <class D>
concept HyperparameterGradients = !std::is_same_v<D, KernelMatrixGradientOptions>;

// The formula of a kernel, and its hyperparameters.
template <class K>
struct DifferentiableKernel {
  static_assert(sizeof(K) == 0,
                "kernel_matrix_gradient: expected one of rigel::kernel with a derivative: laplace, gaussian, matern12, "
                "matern32, matern52, rational_quadratic, polynomial or sigmoid");
};
template <KernelFormula of>
struct DifferentiableFormula {
  static constexpr KernelFormula formula = of;
};
template <class L>
struct DifferentiableKernel<kernel::laplace<L>> : DifferentiableFormula<KernelFormula::laplace> {
  static constexpr const char* names[] = {"length"};
  static auto members(const kernel::laplace<L>& k) { return std::tie(k.length); }
};
template <class L>
struct DifferentiableKernel<kernel::matern12<L>> : DifferentiableFormula<KernelFormula::laplace> {
  static constexpr const char* names[] = {"length"};
  static auto members(const kernel::matern12<L>& k) { return std::tie(k.length); }
};
template <class B>
struct DifferentiableKernel<kernel::gaussian<B>> : DifferentiableFormula<KernelFormula::gaussian> {
  static constexpr const char* names[] = {"bandwidth"};
  static auto members(const kernel::gaussian<B>& k) { return std::tie(k.bandwidth); }
};
template <class L>
struct DifferentiableKernel<kernel::matern32<L>> : DifferentiableFormula<KernelFormula::matern32> {
  static constexpr const char* names[] = {"length"};
  static auto members(const kernel::matern32<L>& k) { return std::tie(k.length); }
};
template <class L>
struct DifferentiableKernel<kernel::matern52<L>> : DifferentiableFormula<KernelFormula::matern52> {
  static constexpr const char* names[] = {"length"};
  static auto members(const kernel::matern52<L>& k) { return std::tie(k.length); }
};
template <class L, class A>
struct DifferentiableKernel<kernel::rational_quadratic<L, A>> : DifferentiableFormula<KernelFormula::rational_quadratic> {
  static constexpr const char* names[] = {"length", "alpha"};
  static auto members(const kernel::rational_quadratic<L, A>& k) { return std::tie(k.length, k.alpha); }
};
template <class D, class S, class O>
struct DifferentiableKernel<kernel::polynomial<D, S, O>> : DifferentiableFormula<KernelFormula::polynomial> {
  static constexpr const char* names[] = {"degree", "scale", "offset"};
  static auto members(const kernel::polynomial<D, S, O>& k) { return std::tie(k.degree, k.scale, k.offset); }
};
template <class S, class O>
struct DifferentiableKernel<kernel::sigmoid<S, O>> : DifferentiableFormula<KernelFormula::sigmoid> {
  static constexpr const char* names[] = {"scale", "offset"};
  static auto members(const kernel::sigmoid<S, O>& k) { return std::tie(k.scale, k.offset); }
};

// p of a metric's distances; 0 of products.
inline double power_of(metric::manhattan) { return 1; }
inline double power_of(metric::euclidean) { return 2; }
inline double power_of(metric::inner_product) { return 0; }
template <class P>
double power_of(metric::minkowski<P> m) {
  const auto p = static_cast<double>(m.p);
  if (!(p > 0 && std::isfinite(p)))
    throw Error(Code::invalid_argument,
                "kernel_matrix_gradient: minkowski's p is " + std::to_string(p) + ", expected a finite number above 0");
  return p;
}
template <class M>
inline constexpr bool is_minkowski = false;
template <class P>
inline constexpr bool is_minkowski<metric::minkowski<P>> = std::is_arithmetic_v<P>;

// What a call reads or writes: checked when it is compiled.
template <class Exec, class T, class View>
constexpr void check_gradient_view() {
  static_assert(std::is_same_v<typename view_t<View>::non_const_value_type, T>,
                "kernel_matrix_gradient: X, Z, G, dX and dZ hold one type, float or double");
  static_assert(reads_from<Exec, View>, "kernel_matrix_gradient: the execution space cannot access one of the views");
}
template <class Exec, class T, class View>
std::optional<Operand> written_gradient(const View& v, Batch batch, const char* argument) {
  if constexpr (is_absent<View>) {
    return {};
  } else {
    check_gradient_view<Exec, T, View>();
    static_assert(!std::is_const_v<typename view_t<View>::value_type>,
                  "kernel_matrix_gradient: dX and dZ are written, their elements cannot be const");
    return operand_of(v, batch, argument);
  }
}

// A hyperparameter, and the operand of one in memory.
template <class Exec, class P>
HyperparameterValue hyperparameter_value(const P& given, std::optional<Operand>& operand, const char* name) {
  if constexpr (Kokkos::is_view_v<P>) {
    static_assert(reads_from<Exec, P>, "kernel_matrix_gradient: the execution space cannot access a hyperparameter");
    const epilogue::Source source = epilogue::detail::parameter(given, name);
    operand = numbers_of(given, name);
    return {0, source.data, source.type, source.batch_stride};
  } else {
    return {static_cast<double>(given)};
  }
}
template <class Exec, class P>
std::optional<Operand> hyperparameter_result(const P& given, const char* name) {
  if constexpr (Kokkos::is_view_v<P>) {
    using T = typename P::value_type;
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                  "kernel_matrix_gradient: gradients of hyperparameters are written to views of float or double");
    static_assert(reads_from<Exec, P>, "kernel_matrix_gradient: the execution space cannot access a gradient");
    return numbers_of(given, name);
  } else {
    return {};
  }
}

// Hands `use` the call with the patterns of its parts, on views without elements. T: the type of all.
template <class T, class Exec, class X, class Z, class M, class Use>
auto with_gradient_patterns(const Exec& exec, const X& x, const Z& z, const M& metric, KernelMatrixGradient call,
                            const KernelMatrixGradientOptions& options, const char* function, const Use& use) {
  using Pattern = Kokkos::View<T***, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
  const Pattern pattern(nullptr, 0, 0, 0);
  const CdistOptions of_distances{.skip_epilogue = true,
                                  .batch = options.batch,
                                  .require = Promise::repeatable,
                                  .precision = options.precision,
                                  .workspace = options.workspace};
  return with_cdist(
      exec, x, z, pattern, metric, epilogue::Program{}, of_distances,
      [&](Cdist distances) {
        call.distances = std::move(distances.distances);
        if constexpr (std::is_same_v<M, metric::inner_product>) {
          const plus_times<T> semiring;
          const epilogue::Program none;
          const Operand empty = operand_of(pattern, Batch::first, "");
          call.of_product =
              contraction_on<T>(exec, semiring, empty, empty, empty, none, {},
                                ContractOptions{.require = Promise::repeatable, .precision = options.precision}, function);
          return use(call);
        } else {
          const Kokkos::View<T****, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged> out(
              nullptr, 0, 0, 0, 0);
          return with_gradient_of<Exec, T>(call.p, options.epsilon, 0, [&](const auto& functor) {
            call.of_distance = gradient_on(
                exec, functor, pattern, pattern, pattern, pattern, out,
                GradientOptions{
                    .require = Promise::repeatable, .precision = options.precision, .may_cancel = options.may_cancel},
                function);
            return use(call);
          });
        }
      },
      function);
}

inline void require_epsilon(const KernelMatrixGradientOptions& options, const char* function) {
  if (!(options.epsilon >= 0 && std::isfinite(options.epsilon)))
    throw Error(Code::invalid_argument, std::string(function) + ": options.epsilon is " + std::to_string(options.epsilon) +
                                            ", expected a finite number, 0 or more");
}

// Hands `use` the call on operands, but for the upstream gradient, which set(call) sets.
template <class Exec, class X, class Z, class M, class K, class DX, class DZ, class DK, class Set, class Use>
auto with_kernel_gradient(const Exec& exec, const X& x, const Z& z, const M& metric, const K& kernel, const DX& dx,
                          const DZ& dz, const DK& dk, bool is_self, const KernelMatrixGradientOptions& options,
                          const char* function, const Set& set, const Use& use) {
  using T = typename view_t<X>::non_const_value_type;
  using Formula = DifferentiableKernel<K>;
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "kernel_matrix_gradient: X, Z, G, dX and dZ hold one type, float or double");
  static_assert(std::is_same_v<M, metric::inner_product> || std::is_same_v<M, metric::manhattan> ||
                    std::is_same_v<M, metric::euclidean> || is_minkowski<M>,
                "kernel_matrix_gradient: expected metric::manhattan, euclidean, minkowski of a number p or inner_product");
  check_kernel<M, K>();
  check_gradient_view<Exec, T, X>();
  check_gradient_view<Exec, T, Z>();
  static_cast<void>(kernel.of(epilogue::Program{}));  // refuses hyperparameters out of their ranges
  require_epsilon(options, function);
  KernelMatrixGradient call;
  call.x = operand_of(x, options.batch, "X");
  call.z = operand_of(z, options.batch, "Z");
  set(call);
  call.dx = written_gradient<Exec, T>(dx, options.batch, "dX");
  call.dz = is_self ? call.dx : written_gradient<Exec, T>(dz, options.batch, "dZ");
  call.is_self = is_self;
  call.formula = Formula::formula;
  call.p = power_of(metric);
  call.block_rows = options.block_rows;
  call.accumulate = options.accumulate;
  int count = 0;
  const auto add_value = [&](const auto& given) {
    call.values[count] = hyperparameter_value<Exec>(given, call.value_operands[count], Formula::names[count]);
    ++count;
  };
  std::apply([&](const auto&... given) { (add_value(given), ...); }, Formula::members(kernel));
  if constexpr (!is_absent<DK>) {
    static_assert(DifferentiableKernel<DK>::formula == Formula::formula,
                  "kernel_matrix_gradient: the gradients of hyperparameters are members of the same kernel");
    count = 0;
    const auto add_result = [&](const auto& given) {
      call.results[count] = hyperparameter_result<Exec>(given, Formula::names[count]);
      ++count;
    };
    std::apply([&](const auto&... given) { (add_result(given), ...); }, DifferentiableKernel<DK>::members(dk));
  }
  if constexpr (space_of<Exec> == Space::other) call.launch = launch_kernel_weights<type_list<Exec>, T, Formula::formula>;
  return with_gradient_patterns<T>(exec, x, z, metric, std::move(call), options, function, use);
}

template <class Exec, class X, class Z, class G, class M, class K, class DX, class DZ, class DK, class Use>
auto with_kernel_matrix_gradient(const Exec& exec, const X& x, const Z& z, const G& g, const M& metric, const K& kernel,
                                 const DX& dx, const DZ& dz, const DK& dk, bool is_self,
                                 const KernelMatrixGradientOptions& options, const Use& use) {
  using T = typename view_t<X>::non_const_value_type;
  const auto set_upstream = [&](KernelMatrixGradient& call) {
    if constexpr (is_outer_product<G>) {
      check_gradient_view<Exec, T, decltype(g.g)>();
      check_gradient_view<Exec, T, decltype(g.v)>();
      call.left = vectors_of(g.g, options.batch, "g");
      call.right = vectors_of(g.v, options.batch, "v");
      std::swap(call.right.rows, call.right.columns);
      std::swap(call.right.row_stride, call.right.column_stride);
    } else {
      check_gradient_view<Exec, T, G>();
      call.left = operand_of(g, options.batch, "G");
    }
    call.is_outer = is_outer_product<G>;
  };
  return with_kernel_gradient(exec, x, z, metric, kernel, dx, dz, dk, is_self, options, "kernel_matrix_gradient",
                              set_upstream, use);
}

inline constexpr auto run_kernel_gradient = [](const KernelMatrixGradient& call) { run_kernel_matrix_gradient(call); };
inline constexpr auto bytes_of_kernel_gradient = [](const KernelMatrixGradient& call) {
  return kernel_matrix_gradient_bytes(call);
};
inline constexpr auto explain_kernel_gradient = [](const KernelMatrixGradient& call) {
  return explain_kernel_matrix_gradient(call);
};

}  // namespace detail

/// dX(l,m,:) = Σ_n G(l,m,n)·∂k(x,z)/∂x, dZ(l,n,:) = Σ_m G(l,m,n)·∂k(x,z)/∂z with x = X(l,m,:), z = Z(l,n,:), and dθ(l) = Σ_mn
/// G(l,m,n)·∂k/∂θ for hyperparameters θ of k, asynchronously on `exec`: the gradients of a loss whose gradient by
/// kernel_matrix() is G.
///
/// exec     any execution space instance that can access every view
/// x, z     M × K and N × K, of float or double, of any layout, or transposed() ones; of rank 3 with a batch index
/// g        G, M × N of the same type, or OuterProduct{g, v} for G(l,m,n) = g(l,m)·v(l,n): gradients of gᵀ·k(X, Z)·v
/// metric   euclidean, manhattan or minkowski{p}, p a number, for kernels of distances; inner_product for polynomial and sigmoid
/// kernel   laplace, gaussian, matern12, matern32, matern52, rational_quadratic, polynomial or sigmoid, as in kernel_matrix()
/// dx, dz   M × K and N × K, of x's type; or no_gradient
/// dk       a kernel of the same name whose members are views to be written, of float or double, of rank 1 with L numbers, or
///          of rank 0 if L is 1: kernel::gaussian{dbandwidth}. A member that is a number is not wanted: kernel::polynomial{0,
///          dscale, doffset}. Or no_gradient.
/// L is the number of batches of the inputs that have more than one; others serve all batches. Results have L batches.
///
/// Distances: terms are W(m,n)·sign(t)·|t|^(p−1) of differences t = x_k − z_k, W = G·k'(d)·d^(1−p), so that points far from the
/// origin lose nothing; W is 0 if d is, and a term is 0 if t is: the subgradient 0 of points that coincide. With options.may_cancel
/// sums of Euclidean terms may be matrix products, see cdist_gradient(): their errors grow with |W|, which laplace's and matern12's
/// does without bound as d → 0. Products: dX = W·Z, dZ = Wᵀ·X. polynomial's gradient by the degree is Σ G·b^degree·ln b,
/// b = scale·x·z + offset: 0 if b = 0, NaN if b < 0.
/// Two runs give the same bits. docs/numerics.md has bounds.
///
/// Throws Error(invalid_argument) if extents or batches do not match, results overlap each other or an input, epsilon is
/// negative, p is not a finite number above 0, block_rows is negative, or a hyperparameter is out of its range; the rest as
/// cdist() does. Nothing is written when it throws. N = 0 gives dX = 0, M = 0 gives dZ = 0.
template <class Exec, class X, class Z, detail::UpstreamGradient G, class M, class K, class DX, class DZ,
          detail::HyperparameterGradients DK>
void kernel_matrix_gradient(const Exec& exec, const X& x, const Z& z, const G& g, const M& metric, const K& kernel,
                            const DX& dx, const DZ& dz, const DK& dk, const KernelMatrixGradientOptions& options = {}) {
  detail::with_kernel_matrix_gradient(exec, x, z, g, metric, kernel, dx, dz, dk, false, options,
                                      detail::run_kernel_gradient);
}
template <class Exec, class X, class Z, detail::UpstreamGradient G, class M, class K, class DX, class DZ>
void kernel_matrix_gradient(const Exec& exec, const X& x, const Z& z, const G& g, const M& metric, const K& kernel,
                            const DX& dx, const DZ& dz, const KernelMatrixGradientOptions& options = {}) {
  kernel_matrix_gradient(exec, x, z, g, metric, kernel, dx, dz, no_gradient, options);
}
/// The gradients of the kernel matrix of x with itself: dx is the sum of the gradients by its two arguments.
template <class Exec, class X, detail::UpstreamGradient G, class M, class K, class DX, detail::HyperparameterGradients DK>
  requires(!detail::UpstreamGradient<M>)
void kernel_matrix_gradient(const Exec& exec, const X& x, const G& g, const M& metric, const K& kernel, const DX& dx,
                            const DK& dk, const KernelMatrixGradientOptions& options = {}) {
  detail::with_kernel_matrix_gradient(exec, x, x, g, metric, kernel, dx, no_gradient, dk, true, options,
                                      detail::run_kernel_gradient);
}
template <class Exec, class X, detail::UpstreamGradient G, class M, class K, class DX>
  requires(!detail::UpstreamGradient<M>)
void kernel_matrix_gradient(const Exec& exec, const X& x, const G& g, const M& metric, const K& kernel, const DX& dx,
                            const KernelMatrixGradientOptions& options = {}) {
  kernel_matrix_gradient(exec, x, g, metric, kernel, dx, no_gradient, options);
}

/// Bytes of workspace that the same call needs.
template <class Exec, class X, class Z, detail::UpstreamGradient G, class M, class K, class DX, class DZ,
          detail::HyperparameterGradients DK>
std::size_t kernel_matrix_gradient_workspace_size(const Exec& exec, const X& x, const Z& z, const G& g, const M& metric,
                                                  const K& kernel, const DX& dx, const DZ& dz, const DK& dk,
                                                  const KernelMatrixGradientOptions& options = {}) {
  return detail::with_kernel_matrix_gradient(exec, x, z, g, metric, kernel, dx, dz, dk, false, options,
                                             detail::bytes_of_kernel_gradient);
}
template <class Exec, class X, detail::UpstreamGradient G, class M, class K, class DX, detail::HyperparameterGradients DK>
  requires(!detail::UpstreamGradient<M>)
std::size_t kernel_matrix_gradient_workspace_size(const Exec& exec, const X& x, const G& g, const M& metric, const K& kernel,
                                                  const DX& dx, const DK& dk,
                                                  const KernelMatrixGradientOptions& options = {}) {
  return detail::with_kernel_matrix_gradient(exec, x, x, g, metric, kernel, dx, no_gradient, dk, true, options,
                                             detail::bytes_of_kernel_gradient);
}

/// The parts of the same call and their kernels, as explain() prints them: the distances or products of the first block of rows, then
/// what makes dZ and dX of their weights.
template <class Exec, class X, class Z, detail::UpstreamGradient G, class M, class K, class DX, class DZ,
          detail::HyperparameterGradients DK>
std::string explain_kernel_matrix_gradient(const Exec& exec, const X& x, const Z& z, const G& g, const M& metric,
                                           const K& kernel, const DX& dx, const DZ& dz, const DK& dk,
                                           const KernelMatrixGradientOptions& options = {}) {
  return detail::with_kernel_matrix_gradient(exec, x, z, g, metric, kernel, dx, dz, dk, false, options,
                                             detail::explain_kernel_gradient);
}
template <class Exec, class X, detail::UpstreamGradient G, class M, class K, class DX, detail::HyperparameterGradients DK>
  requires(!detail::UpstreamGradient<M>)
std::string explain_kernel_matrix_gradient(const Exec& exec, const X& x, const G& g, const M& metric, const K& kernel,
                                           const DX& dx, const DK& dk, const KernelMatrixGradientOptions& options = {}) {
  return detail::with_kernel_matrix_gradient(exec, x, x, g, metric, kernel, dx, no_gradient, dk, true, options,
                                             detail::explain_kernel_gradient);
}

}  // namespace rigel
