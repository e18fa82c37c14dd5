// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel_functions.hpp"

#include <rigel/kernel_matrix_gradient.hpp>

#include <utility>

namespace rigel::c {
namespace {

template <class K, std::size_t... i>
epilogue::Program steps_of(std::index_sequence<i...>, const KernelNumbers& numbers, const epilogue::Program& own) {
  return K{numbers[i]...}.of(own);
}

// A kernel with a derivative. `defaults`: of its last hyperparameters.
template <class K>
constexpr KernelFunction differentiable(std::string_view name, std::span<const double> defaults = {}) {
  using Formula = detail::DifferentiableKernel<K>;
  return {.name = name,
          .takes = K::takes,
          .formula = Formula::formula,
          .hyperparameters = Formula::names,
          .defaults = defaults,
          .of = [](const KernelNumbers& numbers, const epilogue::Program& own) {
            return steps_of<K>(std::make_index_sequence<std::size(Formula::names)>{}, numbers, own);
          }};
}

constexpr double of_polynomial[] = {kernel::polynomial<>{.degree = 1}.scale, kernel::polynomial<>{.degree = 1}.offset};
constexpr double of_sigmoid[] = {kernel::sigmoid<>{.scale = 1}.offset};

constexpr std::array functions = {
    differentiable<kernel::laplace<>>("laplace"),
    differentiable<kernel::gaussian<>>("gaussian"),
    differentiable<kernel::matern12<>>("matern12"),
    differentiable<kernel::matern32<>>("matern32"),
    differentiable<kernel::matern52<>>("matern52"),
    differentiable<kernel::rational_quadratic<>>("rational_quadratic"),
    differentiable<kernel::polynomial<>>("polynomial", of_polynomial),
    differentiable<kernel::sigmoid<>>("sigmoid", of_sigmoid),
    KernelFunction{.name = "cosine",
                   .takes = kernel::cosine::takes,
                   .formula = {},
                   .hyperparameters = {},
                   .defaults = {},
                   .of = [](const KernelNumbers&, const epilogue::Program& own) { return kernel::cosine{}.of(own); }}};

const KernelFunction& function_of(const char* name) {
  if (name)
    for (const KernelFunction& one : functions)
      if (one.name == name) return one;
  std::array<std::string_view, functions.size()> names;
  for (std::size_t i = 0; i < functions.size(); ++i) names[i] = functions[i].name;
  refuse_name(name, "kernel", names);
}

}  // namespace

std::size_t index_of(const KernelFunction& function, std::string_view hyperparameter) {
  const auto& names = function.hyperparameters;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == hyperparameter) return i;
  throw Error(Code::not_found, "kernel '" + std::string(function.name) + "' has no hyperparameter '" +
                                   std::string(hyperparameter) + "', expected " +
                                   (names.empty() ? "none" : listed(names, [](const char* one) { return one; })));
}

NamedKernel kernel_of(const char* name, std::span<const rigel_parameter> hyperparameters) {
  const KernelFunction& function = function_of(name);
  const std::size_t count = function.hyperparameters.size(), required = count - function.defaults.size();
  std::array<std::optional<double>, detail::most_hyperparameters> given;
  for (std::size_t i = required; i < count; ++i) given[i] = function.defaults[i - required];
  for (const rigel_parameter& one : hyperparameters) given[index_of(function, one.name)] = one.value;
  NamedKernel kernel{&function, {}};
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<double>& number = given[i];
    if (!number)
      refuse("args.hyperparameters have no '" + std::string(function.hyperparameters[i]) + "', expected one: kernel '" +
             std::string(function.name) + "' has no default for it");
    kernel.numbers[i] = *number;
  }
  return kernel;
}

void require_kernel_of(const NamedKernel& kernel, const Metric& metric, const char* name) {
  const auto refuse_metric = [&](const char* expected) {
    refuse("metric '" + std::string(name) + "' does not go with kernel '" + std::string(kernel.function->name) +
           "', expected " + expected);
  };
  switch (kernel.function->takes) {
    case kernel::Takes::product:
      if (!metric.is_product) refuse_metric("inner_product");
      break;
    case kernel::Takes::cosine:
      if (!metric.is_cosine) refuse_metric("cosine or correlation");
      break;
    case kernel::Takes::distance:
      if (metric.is_product || metric.is_square)
        refuse_metric("one of distances: with euclidean, kernels of its square take no root");
  }
}

epilogue::Program steps_of(const NamedKernel& kernel, const Distances& call, const char* metric_name) {
  require_kernel_of(kernel, call.metric, metric_name);
  // As in C++, kernels of distances take a cosine distance beyond 2 by roundings as it is.
  const bool needs_no_clamp =
      call.metric.is_cosine && kernel.function->takes == kernel::Takes::distance && call.problem.k > 0;
  return kernel.of(needs_no_clamp ? epilogue::Program{} : call.metric.own);
}

}  // namespace rigel::c
