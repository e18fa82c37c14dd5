// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of kernel_matvec(), softmax_matvec() and logsumexp() by recomputation: kernel_matvec_gradient(), softmax_matvec_gradient(),
// logsumexp_gradient(). Rows of X are taken in strips that fit the workspace; no matrix is stored as a whole.
#pragma once

#include <rigel/detail/matvec_gradient.hpp>
#include <rigel/detail/matvec_gradient_passes.hpp>
#include <rigel/kernel_matrix_gradient.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rigel {

/// Options of kernel_matvec_gradient(), softmax_matvec_gradient() and logsumexp_gradient().
struct MatvecGradientOptions {
  bool accumulate = false;          // adds to what is in the results
  double epsilon = 0;               // distances: differences |x_k − z_k| below it count as 0 in dX and dZ
  std::int64_t block_rows = 0;      // rows of X at a time; 0: as many as workspace_limit takes. Bits depend on it.
  std::size_t workspace_limit = 0;  // bytes of strips, of at least one row; 0: 64 MiB
  Batch batch = Batch::first;
  Precision precision =
      Precision::automatic;  // of distances, products and sums, as in cdist(), contract(), cdist_gradient()
  bool may_cancel = false;   // of gradients of Euclidean distances, as in cdist_gradient()
  Workspace workspace = {};  // …_gradient_workspace_size() bytes; else from Rigel's pool
};

/// Scores that are linear in values of a metric, for softmax_matvec() and logsumexp() and their gradients:
///
///     score(l,m,n) = scale·metric(X(l,m,:), Z(l,n,:)) + of_rows(l,m) + of_columns(l,n)
///
/// last() is what these functions take as last steps. scale is a number, or a view of rank 0, or of rank 1 with a number for each batch;
/// of_rows and of_columns are views of M and N numbers, with batches of rank 2, or no_gradient: there are none. As gradients, members are
/// views to be written; one that is a number or no_gradient is not wanted.
template <class Scale = double, class Rows = NoGradient, class Columns = NoGradient>
struct Scores {
  Scale scale = {};
  Rows of_rows = {};
  Columns of_columns = {};

  epilogue::Program last() const {
    epilogue::Program steps = epilogue::scale(scale);
    if constexpr (Kokkos::is_view_v<Rows>) steps = steps | epilogue::add_column(of_rows);
    if constexpr (Kokkos::is_view_v<Columns>) steps = steps | epilogue::add_row(of_columns);
    return steps;
  }
};

namespace detail {

// A batch of matrices, or of vectors as matrices of one column.
template <class Exec, class T, class View>
Operand matvec_operand(const View& v, Batch batch, const char* argument, bool vectors) {
  check_gradient_view<Exec, T, View>();
  if constexpr (view_t<View>::rank() == 1) {
    return vectors_of(v, batch, argument);
  } else if constexpr (Kokkos::is_view_v<View> && view_t<View>::rank() == 2) {
    return vectors ? vectors_of(v, batch, argument) : operand_of(v, batch, argument);
  } else {
    return operand_of(v, batch, argument);
  }
}
template <class Exec, class T, class View>
std::optional<Operand> matvec_result(const View& v, Batch batch, const char* argument, bool vectors) {
  if constexpr (Kokkos::is_view_v<view_t<View>>) {
    static_assert(!std::is_const_v<typename view_t<View>::value_type>,
                  "matvec_gradient: results are written, their elements cannot be const");
    return matvec_operand<Exec, T>(v, batch, argument, vectors);
  } else {
    return {};
  }
}
// What scores read.
template <class Exec, class T, class View>
std::optional<Operand> bias_operand(const View& v, Batch batch, const char* argument) {
  if constexpr (is_absent<View>)
    return {};
  else
    return matvec_operand<Exec, T>(v, batch, argument, true);
}
inline KernelMatrixGradientOptions options_of_parts(const MatvecGradientOptions& options) {
  return {.accumulate = options.accumulate,
          .epsilon = options.epsilon,
          .block_rows = options.block_rows,
          .batch = options.batch,
          .precision = options.precision,
          .may_cancel = options.may_cancel,
          .workspace = options.workspace};
}

// Hands `use` the call with its products.
template <class T, class Exec, class Use>
auto with_matvec_products(const Exec& exec, MatvecGradient call, const KernelMatrixGradient& of,
                          const MatvecGradientOptions& options, const char* function, const Use& use) {
  using Pattern = Kokkos::View<T***, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
  const Operand empty = operand_of(Pattern(nullptr, 0, 0, 0), Batch::first, "");
  const plus_times<T> semiring;
  const epilogue::Program none;
  call.of = of;
  call.products =
      contraction_on<T>(exec, semiring, empty, empty, empty, none, {},
                        ContractOptions{.require = Promise::repeatable, .precision = options.precision}, function);
  call.limit = options.workspace_limit;
  if constexpr (space_of<Exec> == Space::other) call.passes = matvec_gradient_passes<type_list<Exec>>();
  return use(call);
}

template <class Exec, class X, class Z, class V, class G, class M, class K, class DX, class DZ, class DV, class DK,
          class Use>
auto with_kernel_matvec_gradient(const Exec& exec, const X& x, const Z& z, const V& v, const G& g, const M& metric,
                                 const K& kernel, const DX& dx, const DZ& dz, const DV& dv, const DK& dk,
                                 const MatvecGradientOptions& options, const Use& use) {
  using T = typename view_t<X>::non_const_value_type;
  constexpr const char* function = "kernel_matvec_gradient";
  MatvecGradient call;
  call.v = matvec_operand<Exec, T>(v, options.batch, "V", false);
  call.g = matvec_operand<Exec, T>(g, options.batch, "G", false);
  call.dv = matvec_result<Exec, T>(dv, options.batch, "dV", false);
  return with_kernel_gradient(
      exec, x, z, metric, kernel, dx, dz, dk, false, options_of_parts(options), function, [](KernelMatrixGradient&) {},
      [&](const KernelMatrixGradient& of) {
        return with_matvec_products<T>(exec, std::move(call), of, options, function, use);
      });
}

// The metrics of scores, and their powers.
inline double power_of(metric::squared_euclidean) { return 2; }

// v: views, or no_gradient for a log-sum-exp.
template <class Exec, class X, class Z, class V, class G, class M, class S, class DX, class DZ, class DV, class DS,
          class Use>
auto with_softmax_gradient(const Exec& exec, const X& x, const Z& z, const V& v, const G& g, const M& metric,
                           const S& scores, const DX& dx, const DZ& dz, const DV& dv, const DS& dscores,
                           const MatvecGradientOptions& options, const char* function, const Use& use) {
  using T = typename view_t<X>::non_const_value_type;
  static_assert(std::is_same_v<M, metric::inner_product> || std::is_same_v<M, metric::manhattan> ||
                    std::is_same_v<M, metric::euclidean> || std::is_same_v<M, metric::squared_euclidean> || is_minkowski<M>,
                "softmax_matvec_gradient, logsumexp_gradient: expected metric::manhattan, euclidean, squared_euclidean, "
                "minkowski of a number p or inner_product");
  check_gradient_view<Exec, T, X>();
  check_gradient_view<Exec, T, Z>();
  const KernelMatrixGradientOptions of_parts = options_of_parts(options);
  require_epsilon(of_parts, function);
  MatvecGradient call;
  call.is_softmax = true;
  call.is_squared = std::is_same_v<M, metric::squared_euclidean>;
  if constexpr (is_absent<V>) {
    call.g = matvec_operand<Exec, T>(g, options.batch, "g", true);
  } else {
    call.v = matvec_operand<Exec, T>(v, options.batch, "V", false);
    call.g = matvec_operand<Exec, T>(g, options.batch, "G", false);
    call.dv = matvec_result<Exec, T>(dv, options.batch, "dV", false);
  }
  call.scale = hyperparameter_value<Exec>(scores.scale, call.scale_operand, "scale");
  call.of_rows = bias_operand<Exec, T>(scores.of_rows, options.batch, "of_rows");
  call.of_columns = bias_operand<Exec, T>(scores.of_columns, options.batch, "of_columns");
  if constexpr (!is_absent<DS>) {
    call.dscale = hyperparameter_result<Exec>(dscores.scale, "scale");
    call.drows = matvec_result<Exec, T>(dscores.of_rows, options.batch, "the gradient by of_rows", true);
    call.dcolumns = matvec_result<Exec, T>(dscores.of_columns, options.batch, "the gradient by of_columns", true);
  }
  KernelMatrixGradient of;
  of.x = operand_of(x, options.batch, "X");
  of.z = operand_of(z, options.batch, "Z");
  of.dx = written_gradient<Exec, T>(dx, options.batch, "dX");
  of.dz = written_gradient<Exec, T>(dz, options.batch, "dZ");
  of.p = power_of(metric);
  of.block_rows = options.block_rows;
  of.accumulate = options.accumulate;
  return with_gradient_patterns<T>(
      exec, x, z, metric, std::move(of), of_parts, function, [&](const KernelMatrixGradient& with_patterns) {
        return with_matvec_products<T>(exec, std::move(call), with_patterns, options, function, use);
      });
}

inline constexpr auto run_matvec = [](const MatvecGradient& call) { run_matvec_gradient(call); };
inline constexpr auto bytes_of_matvec = [](const MatvecGradient& call) { return matvec_gradient_bytes(call); };

}  // namespace detail

/// The gradients of a loss whose gradient by out = kernel_matvec(exec, X, Z, V, metric, kernel) is G, asynchronously on `exec`:
///
///     dX(l,m,:) = Σ_n U(m,n)·∂k/∂x      dZ(l,n,:) = Σ_m U(m,n)·∂k/∂z      dθ(l) = Σ_mn U(m,n)·∂k/∂θ,      U(m,n) = Σ_d G(l,m,d)·V(l,n,d)
///     dV(l,n,d) = Σ_m k(X(l,m,:), Z(l,n,:))·G(l,m,d)
///
/// exec, x, z, metric, kernel, dx, dz, dk   as in kernel_matrix_gradient()
/// v, g      N × D and M × D of x's type; or both of rank 1, one right side
/// dv        as v; or no_gradient
/// Kernels are computed again for each strip of rows of X, in an order that depends on options and extents alone: two runs give the same bits.
/// docs/numerics.md has bounds. Throws as kernel_matrix_gradient() does. M = 0 or N = 0 gives gradients of 0.
template <class Exec, class X, class Z, class V, class G, class M, class K, class DX, class DZ, class DV,
          class DK = NoGradient>
void kernel_matvec_gradient(const Exec& exec, const X& x, const Z& z, const V& v, const G& g, const M& metric,
                            const K& kernel, const DX& dx, const DZ& dz, const DV& dv, const DK& dk = {},
                            const MatvecGradientOptions& options = {}) {
  detail::with_kernel_matvec_gradient(exec, x, z, v, g, metric, kernel, dx, dz, dv, dk, options, detail::run_matvec);
}
/// Bytes of workspace that the same call needs.
template <class Exec, class X, class Z, class V, class G, class M, class K, class DX, class DZ, class DV,
          class DK = NoGradient>
std::size_t kernel_matvec_gradient_workspace_size(const Exec& exec, const X& x, const Z& z, const V& v, const G& g,
                                                  const M& metric, const K& kernel, const DX& dx, const DZ& dz, const DV& dv,
                                                  const DK& dk = {}, const MatvecGradientOptions& options = {}) {
  return detail::with_kernel_matvec_gradient(exec, x, z, v, g, metric, kernel, dx, dz, dv, dk, options,
                                             detail::bytes_of_matvec);
}

/// The gradients of a loss whose gradient by out = softmax_matvec(exec, X, Z, V, metric, scores.last()) is G, asynchronously on `exec`. With
/// P(m,n) the softmax of a row of scores, the derivatives by scores are
///
///     dS(m,n) = P(m,n)·(U(m,n) − Σ_j P(m,j)·U(m,j)),      U(m,n) = Σ_d G(l,m,d)·V(l,n,d)
///     dX(l,m,:) = Σ_n dS(m,n)·scale·∂metric/∂x      dZ(l,n,:) = Σ_m dS(m,n)·scale·∂metric/∂z      dV(l,n,d) = Σ_m P(m,n)·G(l,m,d)
///     dscale(l) = Σ_mn dS(m,n)·metric      dof_columns(l,n) = Σ_m dS(m,n)      dof_rows(l,m) = Σ_n dS(m,n), which is 0 but for roundings
///
/// exec, x, z   M × K and N × K of float or double; of rank 3 with a batch index
/// v, g      N × D and M × D of the same type; or both of rank 1, one right side
/// metric    inner_product, squared_euclidean, euclidean, manhattan or minkowski{p}, p a number
/// scores    Scores; of_rows and of_columns hold x's type
/// dx, dz, dv   as x, z and v; or no_gradient
/// dscores   Scores whose views are written: scale of float or double, the others of x's type; or no_gradient
/// A coordinate in which points coincide has the derivative 0, and so have scores whose P is 0: those of −∞, and rows of them. Rows with NaN or
/// +∞ have NaN.
/// Batches, throws and bits are as in kernel_matvec_gradient().
template <class Exec, class X, class Z, class V, class G, class M, class S, class DX, class DZ, class DV,
          class DS = NoGradient>
void softmax_matvec_gradient(const Exec& exec, const X& x, const Z& z, const V& v, const G& g, const M& metric,
                             const S& scores, const DX& dx, const DZ& dz, const DV& dv, const DS& dscores = {},
                             const MatvecGradientOptions& options = {}) {
  detail::with_softmax_gradient(exec, x, z, v, g, metric, scores, dx, dz, dv, dscores, options, "softmax_matvec_gradient",
                                detail::run_matvec);
}
/// Bytes of workspace that the same call needs.
template <class Exec, class X, class Z, class V, class G, class M, class S, class DX, class DZ, class DV,
          class DS = NoGradient>
std::size_t softmax_matvec_gradient_workspace_size(const Exec& exec, const X& x, const Z& z, const V& v, const G& g,
                                                   const M& metric, const S& scores, const DX& dx, const DZ& dz,
                                                   const DV& dv, const DS& dscores = {},
                                                   const MatvecGradientOptions& options = {}) {
  return detail::with_softmax_gradient(exec, x, z, v, g, metric, scores, dx, dz, dv, dscores, options,
                                       "softmax_matvec_gradient", detail::bytes_of_matvec);
}

/// The gradients of a loss whose gradient by values = logsumexp(exec, X, Z, metric, scores.last()) is g, M numbers: those of
/// softmax_matvec_gradient() with dS(m,n) = g(l,m)·P(m,n); so dof_rows is g.
template <class Exec, class X, class Z, class G, class M, class S, class DX, class DZ, class DS = NoGradient>
void logsumexp_gradient(const Exec& exec, const X& x, const Z& z, const G& g, const M& metric, const S& scores, const DX& dx,
                        const DZ& dz, const DS& dscores = {}, const MatvecGradientOptions& options = {}) {
  detail::with_softmax_gradient(exec, x, z, no_gradient, g, metric, scores, dx, dz, no_gradient, dscores, options,
                                "logsumexp_gradient", detail::run_matvec);
}
/// Bytes of workspace that the same call needs.
template <class Exec, class X, class Z, class G, class M, class S, class DX, class DZ, class DS = NoGradient>
std::size_t logsumexp_gradient_workspace_size(const Exec& exec, const X& x, const Z& z, const G& g, const M& metric,
                                              const S& scores, const DX& dx, const DZ& dz, const DS& dscores = {},
                                              const MatvecGradientOptions& options = {}) {
  return detail::with_softmax_gradient(exec, x, z, no_gradient, g, metric, scores, dx, dz, no_gradient, dscores, options,
                                       "logsumexp_gradient", detail::bytes_of_matvec);
}

}  // namespace rigel
