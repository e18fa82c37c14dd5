// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel_functions.hpp"
#include "listing.hpp"

namespace rigel::c {
namespace {

// The call, handed to `use`.
template <class Use>
rigel_code with_problem(const char* function, rigel_handle* handle, const rigel_kernel_matrix_args* given,
                        const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* d, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_kernel_matrix_args& args = checked(given, "args");
    require_zero(args.reserved, "args");
    require_zero(args.reserved_flags, "args.reserved_flags");
    const KernelMatrixOptions<> options{
        .regularisation = args.regularisation, .m0 = args.m0, .n0 = args.n0, .threshold = args.threshold};
    Distances call;
    Contraction& p = call.problem = problem_of(h, args.options, function);
    const MetricName metric{args.metric, parameters_of(args.parameters, args.parameters_count), args.metric_matrix};
    const NamedKernel kernel =
        kernel_of(args.kernel, parameters_of(args.hyperparameters, args.hyperparameters_count, "hyperparameters"));
    const Operand of_x = operand_of(x, "X");
    if (!z) detail::check_self(options);
    set_distances(call, metric, of_x, z ? operand_of(z, "Z") : of_x, operand_of(d, "D"));
    if (p.c.type > Scalar::f64) refuse(std::string("D.type is ") + name(p.c.type) + ", expected f16, bf16, f32 or f64");
    set_steps(call, steps_of(kernel, call, args.metric) | detail::after_kernel(options));
    p.may_cancel = flag(args.may_cancel, "args.may_cancel");
    use(detail::Cdist{std::move(p), call.metric.pass});
  });
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;
using rigel::detail::Cdist;

rigel_code rigel_kernel_matrix(rigel_handle* handle, const rigel_kernel_matrix_args* args, const rigel_matrix* x,
                               const rigel_matrix* z, const rigel_matrix* d) {
  return with_problem("rigel_kernel_matrix", handle, args, x, z, d,
                      [](Cdist call) { rigel::detail::run_cdist(std::move(call)); });
}

rigel_code rigel_kernel_matrix_workspace_size(rigel_handle* handle, const rigel_kernel_matrix_args* args,
                                              const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* d,
                                              std::size_t* bytes) {
  return with_problem("rigel_kernel_matrix_workspace_size", handle, args, x, z, d,
                      [&](Cdist call) { result(bytes, "bytes") = rigel::detail::cdist_bytes(std::move(call)); });
}

rigel_code rigel_explain_kernel_matrix(rigel_handle* handle, const rigel_kernel_matrix_args* args, const rigel_matrix* x,
                                       const rigel_matrix* z, const rigel_matrix* d, char** json) {
  return with_problem("rigel_explain_kernel_matrix", handle, args, x, z, d, [&](Cdist call) {
    const std::string summary = call.distances.summary();
    result(json, "json") = text_of(json_of(summary, rigel::detail::cdist_candidates(std::move(call))));
  });
}
