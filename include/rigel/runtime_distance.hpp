// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cdist() with a metric from text: D(l,m,n) = epilogue( ⊕_k X(l,m,k) ⊗ Z(l,n,k) ), the distances between the rows of two matrices.
#pragma once

#include <rigel/distance.hpp>
#include <rigel/runtime.hpp>

#include <optional>

namespace rigel::runtime {

/// A metric from text: what is accumulated over the coordinates, and what then makes a distance of it. One that depends on both rows'
/// distance alone, as a kernel function does, is an epilogue as well.
struct Metric {
  Semiring semiring;
  std::optional<Epilogue> epilogue = {};  // none: the semiring's result
};

namespace detail {

/// Hands the problem of cdist() to `use`.
template <class Exec, class X, class Z, class D, class Use>
auto with_distances(const Exec& exec, const X& x, const Z& z, const D& d, const Metric& metric, const CdistOptions& options,
                    const Use& use) {
  constexpr Names names{"cdist", "X", "Z", "D"};
  const ContractOptions own{.batch = options.batch,
                            .require = options.require,
                            .precision = options.precision,
                            .may_cancel = options.may_cancel,
                            .kernel = options.kernel,
                            .workspace = options.workspace};
  if (metric.epilogue && !options.skip_epilogue)
    return with_problem(exec, metric.semiring, x, transposed(z), d, *metric.epilogue, own, use, names);
  const epilogue::Program none;
  return use(contraction_of(exec, metric.semiring, x, transposed(z), d, &none, own, names));
}

}  // namespace detail

}  // namespace rigel::runtime

namespace rigel {

/// cdist() with a metric from text, and explain_cdist() and cdist_workspace_size() of such a call. `x` is M × K, `z` is N × K, `d` is M × N,
/// with a batch index in addition or not. Throws as contract() with a semiring from text does.
template <class Exec, class X, class Z, class D>
void cdist(const Exec& exec, const X& x, const Z& z, const D& d, const runtime::Metric& metric,
           const CdistOptions& options = {}) {
  runtime::detail::with_distances(exec, x, z, d, metric, options, [](const Contraction& p) { run(p); });
}
template <class Exec, class X, class Z, class D>
std::string explain_cdist(const Exec& exec, const X& x, const Z& z, const D& d, const runtime::Metric& metric,
                          const CdistOptions& options = {}) {
  return runtime::detail::with_distances(exec, x, z, d, metric, options, [](const Contraction& p) { return explain(p); });
}
template <class Exec, class X, class Z, class D>
std::size_t cdist_workspace_size(const Exec& exec, const X& x, const Z& z, const D& d, const runtime::Metric& metric,
                                 const CdistOptions& options = {}) {
  return runtime::detail::with_distances(exec, x, z, d, metric, options,
                                         [](const Contraction& p) { return workspace_size(p).bytes; });
}

}  // namespace rigel
