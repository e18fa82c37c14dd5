// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of rigel/kernel_matrix.hpp by name.
#pragma once

#include "distances.hpp"

#include <rigel/detail/kernel_matrix_gradient.hpp>
#include <rigel/kernel_matrix.hpp>

#include <array>

namespace rigel::c {

using KernelNumbers = std::array<double, detail::most_hyperparameters>;

/// A kernel: its facts, and its steps.
struct KernelFunction {
  std::string_view name;
  kernel::Takes takes;
  std::optional<detail::KernelFormula> formula;  // of its derivative
  std::span<const char* const> hyperparameters;
  std::span<const double> defaults;  // of the last hyperparameters
  epilogue::Program (*of)(const KernelNumbers& numbers, const epilogue::Program& own);
};

/// A kernel with the numbers of its hyperparameters, in their order.
struct NamedKernel {
  const KernelFunction* function;
  KernelNumbers numbers;
  epilogue::Program of(const epilogue::Program& own) const { return function->of(numbers, own); }
};

/// The place of a hyperparameter. Throws Error(not_found) if the kernel has none of this name.
std::size_t index_of(const KernelFunction& function, std::string_view hyperparameter);

/// Throws Error(not_found) for names that are no kernel's or no hyperparameter's, and Error(invalid_argument) if one without a default
/// is not named.
NamedKernel kernel_of(const char* name, std::span<const rigel_parameter> hyperparameters);

/// Throws Error(invalid_argument) unless the kernel is one of this metric.
void require_kernel_of(const NamedKernel& kernel, const Metric& metric, const char* name);

/// The steps that make kernels of the sums of a call, whose metric has this name and must be one of the kernel's.
epilogue::Program steps_of(const NamedKernel& kernel, const Distances& call, const char* metric_name);

}  // namespace rigel::c
