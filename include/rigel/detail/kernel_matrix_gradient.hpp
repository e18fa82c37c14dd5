// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kernel_matrix_gradient() on operands: what its front end hands to the compiled driver,
// src/operations/kernel_matrix_gradient.cpp.
#pragma once

#include <rigel/detail/arguments.hpp>
#include <rigel/gradient_problem.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace rigel::detail {

/// The formulas of rigel::kernel that have derivatives here; matern12 is laplace.
enum class KernelFormula : std::uint8_t { laplace, gaussian, matern32, matern52, rational_quadratic, polynomial, sigmoid };
inline constexpr int most_hyperparameters = 3;
/// Elements of a row that are summed by themselves.
inline constexpr std::int64_t kernel_weights_width = 1024;

/// A hyperparameter: a number, or numbers in memory of the execution space, one for all batches or one for each.
struct HyperparameterValue {
  double number = 0;
  const void* data = nullptr;
  Scalar type = Scalar::f64;
  std::int64_t stride = 0;
  RIGEL_MEMBER double at(std::int64_t l) const {
    if (!data) return number;
    double value = 0;
    with_type<double, true>(type, const_cast<void*>(data), [&](auto* typed) {
      using V = std::remove_cvref_t<decltype(*typed)>;
      if constexpr (ShortFloat<V>)
        value = static_cast<double>(static_cast<float>(typed[l * stride]));
      else
        value = static_cast<double>(typed[l * stride]);
    });
    return value;
  }
};

/// The pass over one block of rows (detail/kernel_derivatives.hpp). Operands without data are absent.
struct KernelWeightsPass {
  Operand values;       // distances or products before, weights after
  Operand left, right;  // of the upstream gradient
  HyperparameterValue hyperparameters[most_hyperparameters] = {};
  double p;                                    // values are p-th powers of distances; 0: products
  Operand parts, totals;                       // of sums for hyperparameters
  Operand results[most_hyperparameters] = {};  // these sums, f32 or f64
  Operand ones;
  bool first, last, accumulate;  // of the blocks; accumulate: to results
};
using LaunchKernelWeights = void (*)(const Execution&, const KernelWeightsPass&);

/// One call. The problems are patterns: the driver sets extents and operands in the workspace, block by block.
struct KernelMatrixGradient {
  Contraction distances;                // of X and transposed Z, without the metric's last step; it has the call's workspace
  std::optional<Gradient> of_distance;  // the sums of differences, or
  std::optional<Contraction> of_product;
  Operand x, z, left, right;
  std::optional<Operand> dx, dz;
  bool is_outer = false;  // G is left times right
  bool is_self = false;   // dX is dZ
  KernelFormula formula = KernelFormula::laplace;
  double p = 0;  // of the distances; 0: products
  HyperparameterValue values[most_hyperparameters];
  std::optional<Operand> value_operands[most_hyperparameters];  // those in memory
  std::optional<Operand> results[most_hyperparameters];
  std::int64_t block_rows = 0;
  bool accumulate = false;
  LaunchKernelWeights launch = nullptr;  // for an execution space that the library is not compiled for; else null
};

void run_kernel_matrix_gradient(const KernelMatrixGradient& call);
std::size_t kernel_matrix_gradient_bytes(const KernelMatrixGradient& call);
std::string explain_kernel_matrix_gradient(const KernelMatrixGradient& call);

/// The parts of a call, of the first block of rows, for candidates(). They point to what the call points to.
struct KernelMatrixGradientParts {
  struct Part {
    std::string name;
    std::variant<Contraction, Gradient> problem;
  };
  std::size_t bytes = 0;  // of workspace
  std::int64_t block_rows = 0;
  std::vector<Part> parts;  // none if there is nothing to compute
};
KernelMatrixGradientParts kernel_matrix_gradient_parts(const KernelMatrixGradient& call);

}  // namespace rigel::detail
