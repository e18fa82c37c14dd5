// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of kernel_matvec(), softmax_matvec() and logsumexp() on operands: what their front end hands to the compiled driver,
// src/operations/matvec_gradient.cpp.
#pragma once

#include <rigel/detail/contract_backward.hpp>
#include <rigel/detail/kernel_matrix_gradient.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace rigel::detail {

/// values(l,m,n) holds p-th powers of distances, or products; to(l,m,n) = the kernel of each.
struct KernelValuesPass {
  Operand values, to;
  KernelFormula formula = KernelFormula::gaussian;
  HyperparameterValue hyperparameters[most_hyperparameters] = {};
  double p = 0;  // 0: products
};

/// For each row of scores s(n) = scale·value(n) + of_row(m) + of_columns(n) and their softmax P(n): the derivatives by scores are
///
///     dS(n) = P(n)·(U(n) − Σ_n P(n)·U(n)) of a softmax-weighted sum, U = `upstream`;      g(m)·P(n) of a log-sum-exp
///
/// values(n) becomes the weight of what is summed for X and Z, upstream(n) P(n), and scores(n) dS(n). Operands without data are absent.
struct SoftmaxPass {
  Operand values, upstream, scores, g, of_rows, of_columns;
  HyperparameterValue scale;
  double p = 0;                   // values are p-th powers of distances; 0: products
  bool is_squared = false;        // scores are of the squares themselves
  Operand rows;                   // Σ_n dS(n) of each row, added to what is there if `accumulate`
  Operand parts, totals, result;  // of Σ_mn dS·value, as in KernelWeightsPass
  bool first = false, last = false, accumulate = false;
};

/// The launches of the driver, compiled for some execution spaces.
struct MatvecGradientPasses {
  void (*copy)(const Execution&, const CopyPass&) = nullptr;
  void (*kernels)(const Execution&, Scalar type, const KernelValuesPass&) = nullptr;
  void (*softmax)(const Execution&, Scalar type, const SoftmaxPass&) = nullptr;
};

/// One call. `of` has X, Z, their gradients and the patterns of distances and sums; of kernels also what is theirs.
struct MatvecGradient {
  KernelMatrixGradient of;
  Contraction products;  // a pattern of plus_times
  bool is_softmax = false;
  bool is_squared = false;
  Operand v, g;  // N × D and M × D; a log-sum-exp has no v, and M × 1 numbers g
  HyperparameterValue scale;
  std::optional<Operand> scale_operand, of_rows, of_columns;  // what scores read
  std::optional<Operand> dv, drows, dcolumns, dscale;         // results
  std::size_t limit = 0;                                      // bytes of strips
  MatvecGradientPasses passes;  // of an execution space that the library is not compiled for; else none
};

void run_matvec_gradient(const MatvecGradient& call);
std::size_t matvec_gradient_bytes(const MatvecGradient& call);

}  // namespace rigel::detail
