// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gradient.hpp"
#include "named_points.hpp"

#include <rigel/sinkhorn.hpp>

namespace rigel::c {
namespace {

// What detail::PointCosts is in C++, of a metric by name.
struct NamedCosts {
  const NamedPoints& points;
  const Operand &x, &z;

  template <class Vector, class Use>
  auto largest(const Vector& values, const Workspace& workspace, const Use& use) const {
    return points.reduce(x, z, Reducer::maximum, operand(values), nullptr, {}, workspace, use);
  }
  template <class Vector, class Use>
  auto log_sum_exp(bool of_columns, const Vector& bias, double epsilon, const Vector& values, const Workspace& workspace,
                   const Use& use) const {
    return points.reduce(of_columns ? z : x, of_columns ? x : z, Reducer::log_sum_exp, operand(values), nullptr,
                         detail::exponents(bias, epsilon), workspace, use);
  }

 private:
  template <class Vector>
  static Operand operand(const Vector& values) {
    return detail::result_operand<false>(values, Batch::first, "values");
  }
};

SinkhornOptions options_of(const Call& call, const rigel_sinkhorn_args& args) {
  SinkhornOptions o;
  o.epsilon = args.epsilon;
  o.tolerance = or_default(args.tolerance, o.tolerance);
  o.iterations = or_default(args.iterations, o.iterations);
  o.scaling = or_default(args.scaling, o.scaling);
  o.symmetric = !flag(args.alternating, "args.alternating");
  o.workspace = call.workspace;
  return o;
}

// What both functions have: the call, its options, and the points.
struct Given {
  Call call;
  SinkhornOptions options;
  NamedPoints points;
};
Given given_of(const rigel_handle& handle, const rigel_sinkhorn_args* args_given, const char* function) {
  const rigel_sinkhorn_args& args = checked(args_given, "args");
  require_zero(args.reserved, "args");
  require_no_kernel(args.options);
  const Call call = call_of(handle, args.options, function);
  Given given{.call = {}, .options = options_of(call, args), .points = {}};
  given.call = detail::sinkhorn_call(call.execution, function, given.options);
  given.points = {.call = call,
                  .metric = {args.metric, parameters_of(args.parameters, args.parameters_count), args.metric_matrix},
                  .may_cancel = flag(args.may_cancel, "args.may_cancel"),
                  .score_kernel = args.score_kernel,
                  .workspace_limit = args.workspace_limit};
  return given;
}

Operand numbers_operand(const rigel_matrix* given, const char* name) {
  const Operand o = column_operand(given, name);
  require_f32_or_f64(o);
  return o;
}

void check_metric(const Given& given, const Operand& x, const Operand& z) {
  Distances call;
  static_cast<Call&>(call.problem) = given.points.call;
  set_scores(call, given.points.metric, x, z, 1);
  if (!call.metric.is_symmetric)
    refuse("metric '" + std::string(given.points.metric.name) + "' is not symmetric, expected one that is");
}

// use(exec, call, costs, operands, options) of a checked call.
template <class Use>
rigel_code with_call(const char* function, rigel_handle* handle, const rigel_sinkhorn_args* args,
                     const rigel_matrix* const (&matrices)[6], const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const Given given = given_of(h, args, function);
    const detail::SinkhornOperands operands{operand_of(matrices[0], "X"),      operand_of(matrices[1], "Z"),
                                            numbers_operand(matrices[2], "a"), numbers_operand(matrices[3], "b"),
                                            numbers_operand(matrices[4], "f"), numbers_operand(matrices[5], "g"),
                                            given.points.of_metric()};
    require_same_type(operands.b, operands.a);
    require_same_type(operands.g, operands.f);
    operands.check(given.call);
    check_metric(given, operands.x, operands.z);
    const NamedCosts costs{given.points, operands.x, operands.z};
    with_instance(h, [&](const auto& exec) { use(exec, given, costs, operands); });
  });
}

// The same of a barycentre: use(exec, given, operands, softmax).
template <class Use>
rigel_code with_barycentre(const char* function, rigel_handle* handle, const rigel_sinkhorn_args* args,
                           const rigel_matrix* const (&matrices)[6], const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const Given given = given_of(h, args, function);
    const detail::BarycentreOperands operands{operand_of(matrices[0], "X"),      operand_of(matrices[1], "Z"),
                                              numbers_operand(matrices[2], "b"), numbers_operand(matrices[3], "g"),
                                              operand_of(matrices[4], "V"),      operand_of(matrices[5], "out"),
                                              given.points.of_metric()};
    require_same_type(operands.g, operands.b);
    operands.check(given.call);
    check_metric(given, operands.x, operands.z);
    with_instance(h, [&](const auto& exec) {
      use(exec, given, operands, [&](const auto& bias, const Workspace& workspace, const auto& use_points) {
        return given.points.reduce(operands.x, operands.z, Reducer::softmax_weighted, operands.out, &operands.v,
                                   detail::exponents(bias, given.options.epsilon), workspace, use_points);
      });
    });
  });
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_sinkhorn(rigel_handle* handle, const rigel_sinkhorn_args* args, const rigel_matrix* x,
                          const rigel_matrix* z, const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* f,
                          const rigel_matrix* g, rigel_sinkhorn_result* result) {
  return with_call("rigel_sinkhorn", handle, args, {x, z, a, b, f, g},
                   [&](const auto& exec, const auto& given, const auto& costs, const auto& o) {
                     if (result) checked(result, "result");
                     with_float_or_double(o.a.type, [&]<class Weight>() {
                       with_float_or_double(o.f.type, [&]<class Potential>() {
                         const rigel::SinkhornResult r =
                             rigel::detail::run_sinkhorn(exec, given.call, costs, o, column_of<const Weight>(exec, o.a),
                                                         column_of<const Weight>(exec, o.b), column_of<Potential>(exec, o.f),
                                                         column_of<Potential>(exec, o.g), given.options);
                         if (result) *result = {sizeof *result, r.error, r.value, r.iterations, r.converged};
                       });
                     });
                   });
}

rigel_code rigel_sinkhorn_workspace_size(rigel_handle* handle, const rigel_sinkhorn_args* args, const rigel_matrix* x,
                                         const rigel_matrix* z, const rigel_matrix* a, const rigel_matrix* b,
                                         const rigel_matrix* f, const rigel_matrix* g, std::size_t* bytes) {
  return with_call("rigel_sinkhorn_workspace_size", handle, args, {x, z, a, b, f, g},
                   [&](const auto& exec, const auto& given, const auto& costs, const auto& o) {
                     result(bytes, "bytes") = rigel::detail::sinkhorn_bytes(exec, costs, o.a.rows, o.b.rows, given.options);
                   });
}

rigel_code rigel_sinkhorn_barycentre(rigel_handle* handle, const rigel_sinkhorn_args* args, const rigel_matrix* x,
                                     const rigel_matrix* z, const rigel_matrix* b, const rigel_matrix* g,
                                     const rigel_matrix* v, const rigel_matrix* out) {
  return with_barycentre("rigel_sinkhorn_barycentre", handle, args, {x, z, b, g, v, out},
                         [&](const auto& exec, const auto& given, const auto& o, const auto& softmax) {
                           with_float_or_double(o.b.type, [&]<class T>() {
                             rigel::detail::run_barycentre(exec, given.call, o, column_of<const T>(exec, o.b),
                                                           column_of<const T>(exec, o.g), given.options.epsilon, softmax);
                           });
                         });
}

rigel_code rigel_sinkhorn_barycentre_workspace_size(rigel_handle* handle, const rigel_sinkhorn_args* args,
                                                    const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* b,
                                                    const rigel_matrix* g, const rigel_matrix* v, const rigel_matrix* out,
                                                    std::size_t* bytes) {
  return with_barycentre("rigel_sinkhorn_barycentre_workspace_size", handle, args, {x, z, b, g, v, out},
                         [&](const auto& exec, const auto&, const auto& o, const auto& softmax) {
                           using Exec = std::decay_t<decltype(exec)>;
                           result(bytes, "bytes") = rigel::detail::barycentre_bytes<Exec>(o.b.rows, softmax);
                         });
}
