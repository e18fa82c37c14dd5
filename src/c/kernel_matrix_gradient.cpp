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
namespace {

using detail::KernelMatrixGradient;

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

// The hyperparameters, and where their gradients go.
void set_hyperparameters(KernelMatrixGradient& call, const NamedKernel& kernel,
                         const rigel_kernel_matrix_gradient_args& args) {
  const KernelFunction& function = *kernel.function;
  if (!function.formula)
    throw Error(Code::unsupported,
                "kernel '" + std::string(function.name) + "' has no gradient here, expected any other one");
  static_cast<void>(kernel.of({}));  // refuses hyperparameters out of their ranges
  call.formula = *function.formula;
  for (std::size_t i = 0; i < function.hyperparameters.size(); ++i) call.values[i] = {.number = kernel.numbers[i]};
  if (args.gradients_count < 0 || (args.gradients_count > 0 && !args.gradients))
    refuse("args.gradients_count is " + std::to_string(args.gradients_count) + ", expected the number of gradients" +
           (args.gradients ? "" : ", which are NULL"));
  for (int i = 0; i < args.gradients_count; ++i) {
    const rigel_hyperparameter_gradient& one = args.gradients[i];
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

// What the driver takes, handed to `use`.
template <class Use>
rigel_code with_call(const char* function, rigel_handle* handle, const rigel_kernel_matrix_gradient_args* given_args,
                     const Given& given, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_kernel_matrix_gradient_args& args = checked(given_args, "args");
    require_zero(args.reserved, "args");
    require_zero(args.reserved_flags, "args.reserved_flags");
    require_zero(args.options.require, "args.options.require");
    if (args.options.kernel) refuse("args.options.kernel is not NULL: each part of a call has kernels of its own");
    require_epsilon(args.epsilon);
    KernelMatrixGradient call;
    set_matrices(call, given);
    const NamedKernel kernel =
        kernel_of(args.kernel, parameters_of(args.hyperparameters, args.hyperparameters_count, "hyperparameters"));
    Distances distances;
    Contraction& p = distances.problem = problem_of(h, args.options, function);
    p.require = Promise::repeatable;
    const std::string_view metric = args.metric ? args.metric : "";
    const auto refuse_metric = [&] {
      throw Error(Code::unsupported,
                  "metric '" + std::string(metric) +
                      "' has no gradient here, expected euclidean, manhattan, minkowski or inner_product");
    };
    // Those that would ask for a matrix first.
    for (const std::string_view of_matrix : {"mahalanobis", "seuclidean", "weighted_minkowski"})
      if (metric == of_matrix) refuse_metric();
    const Operand pattern{.type = call.x.type, .size = call.x.size, .argument = "D"};
    set_distances(distances, {args.metric, parameters_of(args.parameters, args.parameters_count)}, call.x, call.z, pattern);
    set_steps(distances, {});
    require_kernel_of(kernel, distances.metric, args.metric);
    const auto& power = distances.metric.power;
    if (!power) refuse_metric();
    if (!std::isfinite(*power)) refuse("minkowski's p is " + std::to_string(*power) + ", expected a finite number above 0");
    set_hyperparameters(call, kernel, args);
    call.distances = p;
    call.p = *power;
    call.block_rows = args.block_rows;
    call.accumulate = flag(args.accumulate, "args.accumulate");
    const bool may_cancel = flag(args.may_cancel, "args.may_cancel");
    // Patterns: the driver sets operands and workspaces.
    Call pattern_of_part = p;
    pattern_of_part.workspace = {};
    if (call.p == 0) {
      const Semiring semiring = semiring_of("plus_times", call.x.type, 0, {});
      const epilogue::Program none;
      Contraction& product = call.of_product.emplace();
      static_cast<Call&>(product) = pattern_of_part;
      semiring.set_in(product);
      product.program = &none;
      product.epilogue_object = &none;
      return use(call);
    }
    with_float_or_double(call.x.type, [&]<class Element>() {
      detail::with_gradient_of<Kokkos::DefaultHostExecutionSpace, Element>(
          call.p, args.epsilon, 0, [&](const auto& functor) {
            Gradient differences;
            static_cast<Call&>(differences) = pattern_of_part;
            differences.may_cancel = may_cancel;
            KernelMatrixGradient whole = call;
            whole.of_distance = with_functor(differences, functor);
            use(whole);
          });
    });
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
