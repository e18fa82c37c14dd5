// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel matrices times vectors, and softmax-weighted means, without the matrix: kernel_matvec(), softmax_matvec(). Both are
// reduce_distances() with a weighted reducer.
#pragma once

#include <rigel/neighbors.hpp>

namespace rigel {

namespace detail {

template <class Exec, class X, class Z, class V, class M, class K, class Out, class Use>
auto with_kernel_matvec(const Exec& exec, const X& x, const Z& z, const V& v, const M& metric, const K& kernel,
                        const Out& out, const ReduceOptions& options, const Use& use) {
  return with_points(exec, x, z, kernel_over(metric, kernel), reducer::weighted_sum<V>{v}, out, no_output,
                     epilogue::Program{}, options, "kernel_matvec", use);
}
template <class Exec, class X, class Z, class V, class M, class Out, class E, class Use>
auto with_softmax_matvec(const Exec& exec, const X& x, const Z& z, const V& v, const M& metric, const Out& out,
                         const E& last, const ReduceOptions& options, const Use& use) {
  return with_points(exec, x, z, metric, reducer::softmax_weighted<V>{v}, out, no_output, last, options, "softmax_matvec",
                     use);
}

}  // namespace detail

/// A kernel matrix times V, without the matrix, asynchronously on `exec`:
///
///     out(l,m,d) = Σ_n k(X(l,m,:), Z(l,n,:))·V(l,n,d)
///
/// exec, x, z, metric, kernel   as in kernel_matrix(): every kernel over every metric that suits it
/// v, out    N × D and M × D, 1 ≤ D ≤ 512; with batches L × N × D, or one for all, and L × M × D. Or both of rank 1, one right side. v holds
///           f16, bf16, f32 or f64 in any layout, out floating-point numbers. Kernels are in f32 if x holds f16, bf16 or f32 and v no f64, else
///           in f64, and so are products with v.
/// options   as in reduce(); options.exclude_self leaves out n = m of a set with itself
/// Errors: those of kernel_matrix(), and those of a weighted sum (docs/numerics.md). It is a call of reduce_distances() with
/// reducer::weighted_sum, has its memory, and throws as that and kernel_matrix() do.
template <class Exec, class X, class Z, class V, class M, class K, class Out>
void kernel_matvec(const Exec& exec, const X& x, const Z& z, const V& v, const M& metric, const K& kernel, const Out& out,
                   const ReduceOptions& options = {}) {
  detail::with_kernel_matvec(exec, x, z, v, metric, kernel, out, options,
                             [](Reduction p, const detail::RowPass* pass) { detail::run_points(std::move(p), pass); });
}
/// Every kernel that the same call of kernel_matvec() could use; '*' marks the choice.
template <class Exec, class X, class Z, class V, class M, class K, class Out>
std::string explain_kernel_matvec(const Exec& exec, const X& x, const Z& z, const V& v, const M& metric, const K& kernel,
                                  const Out& out, const ReduceOptions& options = {}) {
  return detail::with_kernel_matvec(
      exec, x, z, v, metric, kernel, out, options,
      [](Reduction p, const detail::RowPass* pass) { return detail::explain_points(std::move(p), pass); });
}
/// Bytes of workspace that the same call of kernel_matvec() needs.
template <class Exec, class X, class Z, class V, class M, class K, class Out>
std::size_t kernel_matvec_workspace_size(const Exec& exec, const X& x, const Z& z, const V& v, const M& metric,
                                         const K& kernel, const Out& out, const ReduceOptions& options = {}) {
  return detail::with_kernel_matvec(
      exec, x, z, v, metric, kernel, out, options,
      [](Reduction p, const detail::RowPass* pass) { return detail::points_bytes(std::move(p), pass); });
}

/// The rows of V weighted by a softmax of scores that are not stored, asynchronously on `exec`:
///
///     out(l,m,d) = Σ_n w(n)·V(l,n,d) / Σ_n w(n),      w(n) = exp( last( metric(X(l,m,:), Z(l,n,:)) ) )
///
/// relative to the row's maximum, so that nothing overflows. Attention, for instance, is metric::inner_product with last =
/// epilogue::scale(1 / √K); kernel smoothing metric::squared_euclidean with a negative factor.
///
/// exec, x, z, metric, last   as in reduce_distances()
/// v, out    as in kernel_matvec()
/// Scores of −∞ weigh nothing; rows of −∞ alone, and those with NaN, are NaN. It is a call of reduce_distances() with
/// reducer::softmax_weighted, and throws as that does.
template <class Exec, class X, class Z, class V, class M, class Out, class E = epilogue::Program>
void softmax_matvec(const Exec& exec, const X& x, const Z& z, const V& v, const M& metric, const Out& out,
                    const E& last = {}, const ReduceOptions& options = {}) {
  detail::with_softmax_matvec(exec, x, z, v, metric, out, last, options,
                              [](Reduction p, const detail::RowPass* pass) { detail::run_points(std::move(p), pass); });
}
/// Every kernel that the same call of softmax_matvec() could use; '*' marks the choice.
template <class Exec, class X, class Z, class V, class M, class Out, class E = epilogue::Program>
std::string explain_softmax_matvec(const Exec& exec, const X& x, const Z& z, const V& v, const M& metric, const Out& out,
                                   const E& last = {}, const ReduceOptions& options = {}) {
  return detail::with_softmax_matvec(
      exec, x, z, v, metric, out, last, options,
      [](Reduction p, const detail::RowPass* pass) { return detail::explain_points(std::move(p), pass); });
}
/// Bytes of workspace that the same call of softmax_matvec() needs.
template <class Exec, class X, class Z, class V, class M, class Out, class E = epilogue::Program>
std::size_t softmax_matvec_workspace_size(const Exec& exec, const X& x, const Z& z, const V& v, const M& metric,
                                          const Out& out, const E& last = {}, const ReduceOptions& options = {}) {
  return detail::with_softmax_matvec(
      exec, x, z, v, metric, out, last, options,
      [](Reduction p, const detail::RowPass* pass) { return detail::points_bytes(std::move(p), pass); });
}

}  // namespace rigel
