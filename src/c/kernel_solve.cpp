// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gradient.hpp"
#include "named_points.hpp"

#include <rigel/kernel_solve.hpp>

namespace rigel::c {
namespace {

// What detail::PointKernels is in C++, of a kernel and a metric by name.
struct NamedKernels {
  const NamedPoints& points;
  const Operand& x;

  template <class V, class Product>
  void multiply(const V& v, const Product& product, const Workspace& workspace) const {
    reduce(v, product, workspace, detail::run_reduction);
  }
  template <class V, class Product>
  std::size_t multiply_bytes(const V& v, const Product& product) const {
    return reduce(v, product, {}, detail::bytes_of_reduction);
  }
  template <class Row>
  void diagonal(const Row& row, const Workspace& workspace) const {
    matrix(each_point(), each_point(), of_each_point(row), workspace, run_matrix);
  }
  template <class Row>
  std::size_t diagonal_bytes(const Row& row) const {
    return matrix(each_point(), each_point(), of_each_point(row), {}, bytes_of_matrix);
  }
  template <class Row>
  void row(std::int64_t i, const Row& row, const Workspace& workspace) const {
    matrix(point(i), x, operand(row, "K"), workspace, run_matrix);
  }
  template <class Row>
  std::size_t row_bytes(std::int64_t i, const Row& row) const {
    return matrix(point(i), x, operand(row, "K"), {}, bytes_of_matrix);
  }

 private:
  static constexpr auto run_matrix = [](detail::Cdist call) { detail::run_cdist(std::move(call)); };
  static constexpr auto bytes_of_matrix = [](detail::Cdist call) { return detail::cdist_bytes(std::move(call)); };

  template <class View>
  static Operand operand(const View& view, const char* name) {
    return detail::operand_of(view, Batch::first, name);
  }
  Operand point(std::int64_t i) const {
    Operand one = x;
    one.data = static_cast<std::byte*>(x.data) + i * x.row_stride * static_cast<std::int64_t>(x.size);
    one.rows = 1;
    return one;
  }
  /// A batch of matrices of one point each, and of one number.
  Operand each_point() const {
    Operand each = x;
    each.batches = x.rows;
    each.batch_stride = x.rows == 1 ? 0 : x.row_stride;
    each.rows = 1;
    return each;
  }
  template <class Row>
  Operand of_each_point(const Row& row) const {
    Operand each = operand(row, "K");
    each.batches = x.rows;
    each.batch_stride = x.rows == 1 ? 0 : 1;
    each.columns = 1;
    each.row_stride = 1;
    return each;
  }
  template <class V, class Product, class Use>
  auto reduce(const V& v, const Product& product, const Workspace& workspace, const Use& use) const {
    const Operand weights = operand(v, "V");
    return points.reduce(x, x, Reducer::weighted_sum, operand(product, "values"), &weights, {}, workspace, use);
  }
  template <class Use>
  auto matrix(const Operand& from, const Operand& to, const Operand& d, const Workspace& workspace, const Use& use) const {
    return points.matrix(from, to, d, workspace, use);
  }
};

KernelSolveOptions options_of(const Call& call, const rigel_kernel_solve_args& args) {
  KernelSolveOptions o;
  o.tolerance = or_default(args.tolerance, o.tolerance);
  o.iterations = or_default(args.iterations, o.iterations);
  o.rank = args.rank == -1 ? 0 : or_default(args.rank, o.rank);
  if (args.progress)
    o.progress = [&args](int iteration, double residual) { return args.progress(iteration, residual, args.user) != 0; };
  o.workspace = call.workspace;
  return o;
}

// use.operator()<T>(exec, call, kernels, operands, args, options) of a checked call, T being alpha's type.
template <class Use>
rigel_code with_call(const char* function, rigel_handle* handle, const rigel_kernel_solve_args* given, const rigel_matrix* x,
                     const rigel_matrix* y, const rigel_matrix* alpha, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_kernel_solve_args& args = checked(given, "args");
    require_zero(args.reserved, "args");
    require_zero(args.reserved_flags, "args.reserved_flags");
    require_no_kernel(args.options);
    const Call call = call_of(h, args.options, function);
    const KernelSolveOptions options = options_of(call, args);
    const NamedKernel kernel =
        kernel_of(args.kernel, parameters_of(args.hyperparameters, args.hyperparameters_count, "hyperparameters"));
    const NamedPoints points{
        .call = call,
        .metric = {args.metric, parameters_of(args.parameters, args.parameters_count), args.metric_matrix},
        .kernel = &kernel,
        .may_cancel = flag(args.may_cancel, "args.may_cancel"),
        .score_kernel = args.score_kernel,
        .workspace_limit = args.workspace_limit};
    const detail::KernelSolveOperands operands{operand_of(x, "X"), operand_of(y, "y"), operand_of(alpha, "alpha"),
                                               points.of_metric()};
    for (const Operand* o : {&operands.y, &operands.alpha})
      if (o->batches != 1) refuse(detail::describe_argument(*o, " is ") + ", expected a single matrix");
    require_f32_or_f64(operands.alpha);
    require_same_type(operands.y, operands.alpha);
    operands.check(call, args.regularisation, options);
    const NamedKernels kernels{points, operands.x};
    with_instance(h, [&](const auto& exec) {
      with_float_or_double(operands.alpha.type, [&]<class T>() {
        use.template operator()<T>(exec, call, kernels, operands, args.regularisation, options);
      });
    });
  });
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_kernel_solve(rigel_handle* handle, const rigel_kernel_solve_args* args, const rigel_matrix* x,
                              const rigel_matrix* y, const rigel_matrix* alpha, rigel_kernel_solve_result* result) {
  return with_call("rigel_kernel_solve", handle, args, x, y, alpha,
                   [&]<class T>(const auto& exec, const auto& call, const auto& kernels, const auto& operands,
                                double regularisation, const auto& options) {
                     if (result) checked(result, "result");
                     const rigel::KernelSolveResult r =
                         rigel::detail::run_kernel_solve<T>(exec, call, kernels, operands, regularisation, options);
                     if (result) *result = {sizeof *result, r.residual, r.iterations, r.rank, r.converged, 0};
                   });
}

rigel_code rigel_kernel_solve_workspace_size(rigel_handle* handle, const rigel_kernel_solve_args* args,
                                             const rigel_matrix* x, const rigel_matrix* y, const rigel_matrix* alpha,
                                             std::size_t* bytes) {
  return with_call("rigel_kernel_solve_workspace_size", handle, args, x, y, alpha,
                   [&]<class T>(const auto& exec, const auto&, const auto& kernels, const auto& operands,
                                double regularisation, const auto& options) {
                     result(bytes, "bytes") =
                         rigel::detail::kernel_solve_bytes<T>(exec, kernels, operands, regularisation, options);
                   });
}
