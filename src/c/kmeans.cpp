// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gradient.hpp"
#include "named_points.hpp"

#include <rigel/kmeans.hpp>

namespace rigel::c {
namespace {

KMeansOptions options_of(const Call& call, const rigel_kmeans_args& args) {
  KMeansOptions o;
  o.seed = args.seed;
  o.iterations = or_default(args.iterations, o.iterations);
  o.tolerance = or_default(args.tolerance, o.tolerance);
  o.from_centres = flag(args.from_centres, "args.from_centres");
  o.require = call.require;
  o.precision = call.precision;
  o.may_cancel = flag(args.may_cancel, "args.may_cancel");
  o.kernel = call.kernel;
  if (args.score_kernel) o.score_kernel = args.score_kernel;
  o.workspace_limit = args.workspace_limit;
  o.workspace = call.workspace;
  return o;
}

// use(exec, x, centres, labels, options) with views of a call.
template <class Use>
rigel_code with_views(const char* function, rigel_handle* handle, const rigel_kmeans_args* given, const rigel_matrix* x,
                      const rigel_matrix* centres, const rigel_matrix* labels, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_kmeans_args& args = checked(given, "args");
    require_zero(args.reserved, "args");
    require_zero(args.reserved_flags, "args.reserved_flags");
    const KMeansOptions options = options_of(call_of(h, args.options, function), args);
    const Operand of_x = operand_of(x, "X"), of_centres = operand_of(centres, "centres"),
                  of_labels = column_operand(labels, "labels");
    require_f32_or_f64(of_x);
    require_same_type(of_centres, of_x);
    for (const Operand* o : {&of_x, &of_centres})
      if (o->batches != 1) refuse(detail::describe_argument(*o, " is ") + ", expected a single matrix");
    if (of_labels.type != Scalar::i32 && of_labels.type != Scalar::i64)
      refuse("labels.type is " + std::string(name(of_labels.type)) + ", expected i32 or i64");
    with_instance(h, [&](const auto& exec) {
      with_float_or_double(of_x.type, [&]<class T>() {
        const auto points = matrix_of<const T>(exec, of_x);
        const auto means = matrix_of<T>(exec, of_centres);
        if (of_labels.type == Scalar::i32)
          use(exec, points, means, column_of<std::int32_t>(exec, of_labels), options);
        else
          use(exec, points, means, column_of<std::int64_t>(exec, of_labels), options);
      });
    });
  });
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_kmeans(rigel_handle* handle, const rigel_kmeans_args* args, const rigel_matrix* x,
                        const rigel_matrix* centres, const rigel_matrix* labels, rigel_kmeans_result* result) {
  return with_views("rigel_kmeans", handle, args, x, centres, labels,
                    [&](const auto& exec, const auto& points, const auto& means, const auto& to, const auto& options) {
                      if (result) checked(result, "result");
                      const rigel::KMeansResult r =
                          rigel::kmeans(exec, points, static_cast<std::int64_t>(means.extent(0)), means, to, options);
                      if (result) *result = {sizeof *result, r.inertia, r.iterations, r.converged};
                    });
}

rigel_code rigel_kmeans_workspace_size(rigel_handle* handle, const rigel_kmeans_args* args, const rigel_matrix* x,
                                       const rigel_matrix* centres, const rigel_matrix* labels, std::size_t* bytes) {
  return with_views("rigel_kmeans_workspace_size", handle, args, x, centres, labels,
                    [&](const auto& exec, const auto& points, const auto& means, const auto& to, const auto& options) {
                      result(bytes, "bytes") = rigel::kmeans_workspace_size(exec, points, means, to, options);
                    });
}
