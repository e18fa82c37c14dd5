// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gradient.hpp"

#include <rigel/detail/checks.hpp>
#include <rigel/detail/matvec_gradient.hpp>

namespace rigel::c {
namespace {

using detail::KernelMatrixGradient, detail::MatvecGradient;

// The matrices of a call as the caller gives them. A log-sum-exp has no v.
struct Given {
  const rigel_matrix *x, *z, *v, *g, *dx, *dz, *dv;
};
enum class Of { kernels, softmax, log_sums };

std::optional<Operand> optional_of(const rigel_matrix* given, const Operand& like, const char* argument) {
  if (!given) return {};
  Operand o = operand_of(given, argument);
  require_same_type(o, like);
  return o;
}

void set_matrices(MatvecGradient& call, const Given& given, Of of) {
  KernelMatrixGradient& base = call.of;
  base.x = operand_of(given.x, "X");
  require_f32_or_f64(base.x);
  base.z = operand_of(given.z, "Z");
  call.g = operand_of(given.g, of == Of::log_sums ? "g" : "G");
  if (of != Of::log_sums) call.v = operand_of(given.v, "V");
  for (const Operand* o : {&base.z, &call.g}) require_same_type(*o, base.x);
  if (of != Of::log_sums) require_same_type(call.v, base.x);
  if (of == Of::log_sums && call.g.columns != 1) refuse(detail::describe_argument(call.g, " is ") + ", expected one column");
  base.dx = optional_of(given.dx, base.x, "dX");
  base.dz = optional_of(given.dz, base.x, "dZ");
  call.dv = optional_of(given.dv, base.x, "dV");
}

// What scores have in addition to a metric, and where its gradients go.
void set_scores(MatvecGradient& call, const rigel_matvec_gradient_args& args) {
  const Operand& x = call.of.x;
  call.is_softmax = true;
  call.scale = {.number = args.scale};
  call.of_rows = optional_of(args.of_rows, x, "args.of_rows");
  call.of_columns = optional_of(args.of_columns, x, "args.of_columns");
  call.drows = optional_of(args.dof_rows, x, "args.dof_rows");
  call.dcolumns = optional_of(args.dof_columns, x, "args.dof_columns");
  for (int i = 0; i < args.gradients_count; ++i) {
    const rigel_hyperparameter_gradient& one = args.gradients[i];
    if (!one.name || std::string_view(one.name) != "scale" || call.dscale)
      refuse("args.gradients[" + std::to_string(i) + "].name is '" + (one.name ? one.name : "NULL") +
             "', expected 'scale', once");
    call.dscale = operand_of(&one.matrix, "the gradient by scale");
    require_f32_or_f64(*call.dscale);
  }
}

const rigel_matvec_gradient_args& checked_args(const rigel_matvec_gradient_args* given, Of of) {
  const rigel_matvec_gradient_args& args = checked(given, "args");
  require_zero(args.reserved, "args");
  require_zero(args.reserved_flags, "args.reserved_flags");
  require_no_kernel(args.options);
  require_epsilon(args.epsilon);
  if (args.gradients_count < 0 || (args.gradients_count > 0 && !args.gradients))
    refuse("args.gradients_count is " + std::to_string(args.gradients_count) + ", expected the number of gradients" +
           (args.gradients ? "" : ", which are NULL"));
  if (of == Of::kernels) {
    if (args.scale != 0 || args.of_rows || args.of_columns || args.dof_rows || args.dof_columns)
      refuse("args.scale, of_rows, of_columns, dof_rows or dof_columns is set, expected 0 and NULL: kernels have none");
  } else if (args.kernel || args.hyperparameters_count != 0) {
    refuse("args.kernel or args.hyperparameters is set, expected NULL: scores are linear in the metric");
  }
  return args;
}

template <class Use>
rigel_code with_call(const char* function, rigel_handle* handle, const rigel_matvec_gradient_args* given_args,
                     const Given& given, Of of, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_matvec_gradient_args& args = checked_args(given_args, of);
    MatvecGradient call;
    set_matrices(call, given, of);
    call.of.block_rows = args.block_rows;
    call.of.accumulate = flag(args.accumulate, "args.accumulate");
    call.limit = args.workspace_limit;
    call.is_squared = of != Of::kernels && args.metric && std::string_view(args.metric) == "squared_euclidean";
    Distances distances;
    set_gradient_distances(
        call.of, distances, h, args.options,
        {call.is_squared ? "euclidean" : args.metric, parameters_of(args.parameters, args.parameters_count)}, function);
    if (of == Of::kernels) {
      const NamedKernel kernel =
          kernel_of(args.kernel, parameters_of(args.hyperparameters, args.hyperparameters_count, "hyperparameters"));
      require_kernel_of(kernel, distances.metric, args.metric);
      set_hyperparameters(call.of, kernel, args.gradients, args.gradients_count);
    } else {
      set_scores(call, args);
    }
    const Semiring semiring = semiring_of("plus_times", call.of.x.type, 0, {});
    const epilogue::Program none;
    static_cast<Call&>(call.products) = call.of.distances;
    call.products.workspace = {};
    semiring.set_in(call.products);
    call.products.program = &none;
    call.products.epilogue_object = &none;
    with_sums(call.of, args.epsilon, flag(args.may_cancel, "args.may_cancel"), [&](const KernelMatrixGradient& whole) {
      call.of = whole;
      use(call);
    });
  });
}

constexpr auto run = [](const MatvecGradient& call) { detail::run_matvec_gradient(call); };
auto bytes_to(std::size_t* bytes) {
  return [bytes](const MatvecGradient& call) { result(bytes, "bytes") = detail::matvec_gradient_bytes(call); };
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_kernel_matvec_gradient(rigel_handle* handle, const rigel_matvec_gradient_args* args, const rigel_matrix* x,
                                        const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* g,
                                        const rigel_matrix* dx, const rigel_matrix* dz, const rigel_matrix* dv) {
  return with_call("rigel_kernel_matvec_gradient", handle, args, {x, z, v, g, dx, dz, dv}, Of::kernels, run);
}

rigel_code rigel_kernel_matvec_gradient_workspace_size(rigel_handle* handle, const rigel_matvec_gradient_args* args,
                                                       const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* v,
                                                       const rigel_matrix* g, const rigel_matrix* dx, const rigel_matrix* dz,
                                                       const rigel_matrix* dv, std::size_t* bytes) {
  return with_call("rigel_kernel_matvec_gradient_workspace_size", handle, args, {x, z, v, g, dx, dz, dv}, Of::kernels,
                   bytes_to(bytes));
}

rigel_code rigel_softmax_matvec_gradient(rigel_handle* handle, const rigel_matvec_gradient_args* args, const rigel_matrix* x,
                                         const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* g,
                                         const rigel_matrix* dx, const rigel_matrix* dz, const rigel_matrix* dv) {
  return with_call("rigel_softmax_matvec_gradient", handle, args, {x, z, v, g, dx, dz, dv}, Of::softmax, run);
}

rigel_code rigel_softmax_matvec_gradient_workspace_size(rigel_handle* handle, const rigel_matvec_gradient_args* args,
                                                        const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* v,
                                                        const rigel_matrix* g, const rigel_matrix* dx,
                                                        const rigel_matrix* dz, const rigel_matrix* dv, std::size_t* bytes) {
  return with_call("rigel_softmax_matvec_gradient_workspace_size", handle, args, {x, z, v, g, dx, dz, dv}, Of::softmax,
                   bytes_to(bytes));
}

rigel_code rigel_logsumexp_gradient(rigel_handle* handle, const rigel_matvec_gradient_args* args, const rigel_matrix* x,
                                    const rigel_matrix* z, const rigel_matrix* g, const rigel_matrix* dx,
                                    const rigel_matrix* dz) {
  return with_call("rigel_logsumexp_gradient", handle, args, {x, z, nullptr, g, dx, dz, nullptr}, Of::log_sums, run);
}

rigel_code rigel_logsumexp_gradient_workspace_size(rigel_handle* handle, const rigel_matvec_gradient_args* args,
                                                   const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* g,
                                                   const rigel_matrix* dx, const rigel_matrix* dz, std::size_t* bytes) {
  return with_call("rigel_logsumexp_gradient_workspace_size", handle, args, {x, z, nullptr, g, dx, dz, nullptr},
                   Of::log_sums, bytes_to(bytes));
}
