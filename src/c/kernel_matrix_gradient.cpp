// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gradient.hpp"
#include "json.hpp"
#include "kernel_functions.hpp"
#include "listing.hpp"

#include <rigel/detail/checks.hpp>
#include <rigel/gradient.hpp>

#include <cmath>
#include <utility>

namespace rigel::c {

using detail::KernelMatrixGradient;

void require_no_kernel(const rigel_options& options) {
  require_zero(options.require, "args.options.require");
  if (options.kernel) refuse("args.options.kernel is not NULL: each part of a call has kernels of its own");
}

void set_hyperparameters(KernelMatrixGradient& call, const NamedKernel& kernel,
                         const rigel_hyperparameter_gradient* gradients, std::int32_t count) {
  const KernelFunction& function = *kernel.function;
  if (!function.formula)
    throw Error(Code::unsupported,
                "kernel '" + std::string(function.name) + "' has no gradient here, expected any other one");
  static_cast<void>(kernel.of({}));  // refuses hyperparameters out of their ranges
  call.formula = *function.formula;
  for (std::size_t i = 0; i < function.hyperparameters.size(); ++i) call.values[i] = {.number = kernel.numbers[i]};
  if (count < 0 || (count > 0 && !gradients))
    refuse("args.gradients_count is " + std::to_string(count) + ", expected the number of gradients" +
           (gradients ? "" : ", which are NULL"));
  for (int i = 0; i < count; ++i) {
    const rigel_hyperparameter_gradient& one = gradients[i];
    if (!one.name) refuse("args.gradients[" + std::to_string(i) + "].name is NULL");
    const std::size_t place = index_of(function, one.name);
    auto& wanted = call.results[place];
    if (wanted) refuse("args.gradients name '" + std::string(one.name) + "' twice");
    wanted = operand_of(&one.matrix, function.hyperparameters[place]);
    require_f32_or_f64(*wanted);
    if (wanted->rows != 1 || wanted->columns != 1)
      refuse("the gradient by " + detail::describe_argument(*wanted, " is ") + ", expected 1x1 for each batch");
  }
}

void set_gradient_distances(KernelMatrixGradient& call, Distances& distances, const rigel_handle& handle,
                            const rigel_options& options, const MetricName& metric, const char* function) {
  Contraction& p = distances.problem = problem_of(handle, options, function);
  p.require = Promise::repeatable;
  const std::string_view name = metric.name ? metric.name : "";
  const auto no_gradient = [&] {
    return Error(Code::unsupported, "metric '" + std::string(name) +
                                        "' has no gradient here, expected euclidean, manhattan, minkowski or inner_product");
  };
  // Those that would ask for a matrix first.
  for (const std::string_view of_matrix : {"mahalanobis", "seuclidean", "weighted_minkowski"})
    if (name == of_matrix) throw no_gradient();
  const Operand pattern{.type = call.x.type, .size = call.x.size, .argument = "D"};
  set_distances(distances, metric, call.x, call.z, pattern);
  set_steps(distances, {});
  const auto& power = distances.metric.power;
  if (!power) throw no_gradient();
  if (!std::isfinite(*power)) refuse("minkowski's p is " + std::to_string(*power) + ", expected a finite number above 0");
  call.p = *power;
  call.distances = p;
}

namespace {

// The matrices of a call as the caller gives them.
struct Given {
  const rigel_matrix *x, *z, *g, *v, *dx, *dz;
};

void set_matrices(KernelMatrixGradient& call, const Given& given) {
  call.is_self = !given.z;
  call.is_outer = given.v != nullptr;
  call.x = operand_of(given.x, "X");
  call.z = call.is_self ? call.x : operand_of(given.z, "Z");
  call.left = operand_of(given.g, call.is_outer ? "g" : "G");
  if (call.is_outer) {
    call.right = operand_of(given.v, "v");
    require_same_type(call.right, call.x);
    std::swap(call.right.rows, call.right.columns);
    call.right.column_stride = call.right.row_stride;
    call.left.column_stride = call.right.row_stride = 0;  // each number serves all of the other vector
  }
  if (given.dx) call.dx = operand_of(given.dx, "dX");
  if (given.dz) {
    if (call.is_self) refuse("dZ is not NULL, and Z is: expected dX alone, the sum of both gradients");
    call.dz = operand_of(given.dz, "dZ");
  }
  require_f32_or_f64(call.x);
  for (const Operand* o : {&std::as_const(call.z), &std::as_const(call.left)}) require_same_type(*o, call.x);
  for (const auto* o : {&call.dx, &call.dz})
    if (*o) require_same_type(**o, call.x);
  if (call.is_self) call.dz = call.dx;
}

// What the driver takes, handed to `use`.
template <class Use>
rigel_code with_call(const char* function, rigel_handle* handle, const rigel_kernel_matrix_gradient_args* given_args,
                     const Given& given, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_kernel_matrix_gradient_args& args = checked(given_args, "args");
    require_zero(args.reserved, "args");
    require_zero(args.reserved_flags, "args.reserved_flags");
    require_no_kernel(args.options);
    require_epsilon(args.epsilon);
    KernelMatrixGradient call;
    set_matrices(call, given);
    const NamedKernel kernel =
        kernel_of(args.kernel, parameters_of(args.hyperparameters, args.hyperparameters_count, "hyperparameters"));
    Distances distances;
    set_gradient_distances(call, distances, h, args.options,
                           {args.metric, parameters_of(args.parameters, args.parameters_count)}, function);
    require_kernel_of(kernel, distances.metric, args.metric);
    set_hyperparameters(call, kernel, args.gradients, args.gradients_count);
    call.block_rows = args.block_rows;
    call.accumulate = flag(args.accumulate, "args.accumulate");
    with_sums(call, args.epsilon, flag(args.may_cancel, "args.may_cancel"), use);
  });
}

std::string json_of_parts(const detail::KernelMatrixGradientParts& all) {
  json::Array parts;
  for (const auto& part : all.parts)
    std::visit(
        [&](const auto& problem) {
          parts.add_json(json_of(problem.summary(), rigel::candidates(problem), part.name.c_str()));
        },
        part.problem);
  return json::Object().add("bytes", all.bytes).add("block_rows", all.block_rows).add_json("parts", parts.text()).text();
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;
using rigel::detail::KernelMatrixGradient;

rigel_code rigel_kernel_matrix_gradient(rigel_handle* handle, const rigel_kernel_matrix_gradient_args* args,
                                        const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* g,
                                        const rigel_matrix* v, const rigel_matrix* dx, const rigel_matrix* dz) {
  return with_call("rigel_kernel_matrix_gradient", handle, args, {x, z, g, v, dx, dz},
                   [](const KernelMatrixGradient& call) { rigel::detail::run_kernel_matrix_gradient(call); });
}

rigel_code rigel_kernel_matrix_gradient_workspace_size(rigel_handle* handle, const rigel_kernel_matrix_gradient_args* args,
                                                       const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* g,
                                                       const rigel_matrix* v, const rigel_matrix* dx, const rigel_matrix* dz,
                                                       std::size_t* bytes) {
  return with_call(
      "rigel_kernel_matrix_gradient_workspace_size", handle, args, {x, z, g, v, dx, dz},
      [&](const KernelMatrixGradient& call) { result(bytes, "bytes") = rigel::detail::kernel_matrix_gradient_bytes(call); });
}

rigel_code rigel_explain_kernel_matrix_gradient(rigel_handle* handle, const rigel_kernel_matrix_gradient_args* args,
                                                const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* g,
                                                const rigel_matrix* v, const rigel_matrix* dx, const rigel_matrix* dz,
                                                char** json) {
  return with_call("rigel_explain_kernel_matrix_gradient", handle, args, {x, z, g, v, dx, dz},
                   [&](const KernelMatrixGradient& call) {
                     result(json, "json") = text_of(json_of_parts(rigel::detail::kernel_matrix_gradient_parts(call)));
                   });
}
