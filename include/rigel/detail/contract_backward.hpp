// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract_backward() on operands: what its front end hands to the compiled driver, src/operations/contract_backward.cpp.
#pragma once

#include <rigel/contraction.hpp>
#include <rigel/gradient_problem.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace rigel::detail {

/// How gradients of a semiring's products are found: by other products, by products of exponentials, by the k that won, or by sums of
/// differences.
enum class BackwardRule : std::uint8_t { products, exponentials, winners, differences };

/// The derivatives of a ⊗ b by a and by b at the k that won.
enum class WinnerSlope : std::uint8_t {
  one,           // of a + b
  lesser,        // of min(a, b): 1 for the lesser factor, for a if they are equal
  larger,        // of max(a, b), likewise
  other_factor,  // of a·b
  sign           // of |a − b|: 0 if they are equal
};

/// Whether an element (m,n) of log_plus is in the products of exponentials: α + β − C, its distance from the largest that it could be, and
/// dC are within these limits, so that exp(α + β − C)·dC and sums of it are finite. All others are summed term by term.
template <class T>
struct ExponentialLimits;
template <>
struct ExponentialLimits<float> {
  static constexpr double exponent = 40, gradient = 0x1p40;
};
template <>
struct ExponentialLimits<double> {
  static constexpr double exponent = 320, gradient = 0x1p500;
};

/// to = from, or `value` if there is no `from`; with `accumulate` it is added to what is there.
struct CopyPass {
  Operand to, from;
  double value = 0;
  bool accumulate = false;
};
/// to(l,i,k) = Σ of slope·g(l,i,j) over the j with winner(l,i,j) = k, in ascending order. a(l,i,k) and b(l,k,j) are what was multiplied.
struct ScatterPass {
  Operand winners, g, a, b, to;
  WinnerSlope slope = WinnerSlope::one;
  bool is_first = true;  // a is the first factor of ⊗, which wins a tie with the second one
  bool accumulate = false;
};
/// maxima(l,i) = max_j of the finite numbers of x(l,i,:), 0 if there are none.
struct MaximaPass {
  Operand x, maxima;
};
/// to(l,i,j) = exp(x(l,i,j) − maxima(l,i)), 0 if x is not finite.
struct ExponentialsPass {
  Operand x, maxima, to;
};
/// to(l,m,n) = g·exp(α(m) + β(n) − c) of elements within the limits, else 0; `rejected` (f32) of its row and column become 1.
struct ExponentialWeightsPass {
  Operand g, c, of_rows, of_columns, to, rejected_rows, rejected_columns;
};
/// to(l,i,k) = exp(x(l,i,k) − maxima(l,i))·sums(l,i,k), and the terms of what the limits rejected: g(l,i,j)·exp(x(l,i,k) + y(l,k,j) − c(l,i,j)).
struct ExponentialResultPass {
  Operand x, y, g, c, of_rows, of_columns, rejected, sums, to;
  bool accumulate = false;
};

/// The launches of a driver, compiled for some execution spaces. Numbers are of f16, bf16, f32 or f64; what is summed is of `type`.
struct BackwardPasses {
  void (*copy)(const Execution&, const CopyPass&) = nullptr;
  void (*scatter)(const Execution&, Scalar type, const ScatterPass&) = nullptr;
  void (*maxima)(const Execution&, const MaximaPass&) = nullptr;
  void (*exponentials)(const Execution&, Scalar type, const ExponentialsPass&) = nullptr;
  void (*weights)(const Execution&, Scalar type, const ExponentialWeightsPass&) = nullptr;
  void (*result)(const Execution&, Scalar type, const ExponentialResultPass&) = nullptr;
};

/// One call. The problems are patterns: the driver sets extents and operands.
struct ContractBackward {
  Call call;
  BackwardRule rule = BackwardRule::products;
  // plus_times of the type in which the call computes; and of double, for exponentials of floats where double is fast.
  std::optional<Contraction> products, wide_products;
  // with_argument, whose epilogue makes the winning k of each result, −1 of the identity.
  std::optional<Contraction> winners;
  std::optional<Gradient> differences;
  double factor = 1;  // of differences
  WinnerSlope slope = WinnerSlope::one;
  Scalar computed = Scalar::f32;  // f32 or f64: sums of winners, exponentials and differences
  Operand a, b, c, dc;
  std::optional<Operand> da, db;
  bool accumulate = false;
  BackwardPasses passes;  // of an execution space that the library is not compiled for; else none
};

void run_contract_backward(const ContractBackward& call);
std::size_t contract_backward_bytes(const ContractBackward& call);
std::string explain_contract_backward(const ContractBackward& call);

}  // namespace rigel::detail
