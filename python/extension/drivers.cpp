// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel matrices and softmaxes times arrays, and iterations over reductions (k-means, Sinkhorn, conjugate gradients): a function for each of
// librigel_c's, as in module.cpp.
#include "drivers.hpp"

#include "calls.hpp"
#include "ranges.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace rigel::python {
namespace {

using Handle = nb::handle;

rigel_type float_type(const Array& array) {
  return array.type == RIGEL_F16 || array.type == RIGEL_BF16 || array.type == RIGEL_F32 ? RIGEL_F32 : RIGEL_F64;
}

// Points of a call of single matrices.
Array single(Handle given, const char* name) {
  Array array = input(given, name, 2);
  if (array.dimensions != 2) refuse(described(array, name) + ", expected a single matrix");
  return array;
}
// One number for each point, or a column for each of several.
Array of_points(Handle given, const char* name, int most) {
  Array array = input(given, name, 1);
  if (array.dimensions > most)
    refuse(described(array, name) + ", expected " + (most == 1 ? "one dimension" : "one or two dimensions"));
  return array;
}
const rigel_matrix* add_column(Matrices& matrices, const Array& array) {
  return matrices.add(array, array.dimensions == 1 ? 1 : 2, false, array.dimensions == 1);
}

// ---- sums weighted by kernels and softmaxes --------------------------------------------------------------------------

// Out of one of librigel_c's functions: M x D of each matrix, or M if v has one dimension.
template <auto function, auto size, auto explanation>
nb::object matvec(Handle x_given, Handle z_given, Handle v_given, Handle out, const Metric& named, Flag exclude_self,
                  Flag may_cancel, Handle epilogue_given, Handle ranges, Handle options) {
  const Array x = input(x_given, "x", 2), z = z_given.is_none() ? x : input(z_given, "z", 2), v = input(v_given, "v", 1);
  Epilogue epilogue(epilogue_given);
  const bool is_vector = v.dimensions == 1;
  Batch batch;
  batch.broadcast(x, "x", 2);
  batch.broadcast(z, "z", 2);
  batch.broadcast(v, "v", is_vector ? 1 : 2);
  epilogue.broadcast(batch);
  std::vector<std::int64_t> own = {x.rows()};
  if (!is_vector) own.push_back(v.columns());
  const rigel_type type = v.type == RIGEL_F64 ? rigel_type{RIGEL_F64} : float_type(x);
  Output result(out, "out", x, batch, own, type, false);
  Matrices matrices(batch);
  const auto add = [&](const Array& array) { return matrices.add(array, is_vector ? 1 : 2, false, is_vector); };
  const rigel_matrix *of_x = matrices.add(x), *of_z = matrices.add(z), *of_v = add(v), *of_out = add(result.array());
  epilogue.add_to(matrices);
  rigel_reduce_distances_args args = {};
  args.size = sizeof args;
  named.set(args, matrices);
  args.may_cancel = may_cancel;
  args.reduction.exclude_self = exclude_self;
  args.ranges = ranges_of(ranges, x);
  args.options = options_of(options);
  perform(
      matrices, args.options,
      [&](auto one, rigel_handle* h, auto... more) {
        epilogue.set(args.epilogue);
        return one(h, &args, of_x, of_z, of_v, of_out, more...);
      },
      function, size, explanation);
  return result.finished();
}

nb::object kernel_matvec(Handle x, Handle z, Handle v, Handle out, Handle kernel, Handle hyperparameters, Handle metric,
                         Handle parameters, Handle metric_matrix, Flag exclude_self, Flag may_cancel, Handle ranges,
                         Handle options) {
  text_of(kernel, "kernel");
  const Metric named(metric, parameters, metric_matrix, kernel, hyperparameters);
  return matvec<rigel_kernel_matvec, rigel_kernel_matvec_workspace_size, rigel_explain_kernel_matvec>(
      x, z, v, out, named, exclude_self, may_cancel, nb::none(), ranges, options);
}

nb::object softmax_matvec(Handle x, Handle z, Handle v, Handle out, Handle metric, Handle parameters, Handle metric_matrix,
                          Flag exclude_self, Flag may_cancel, Handle epilogue, Handle ranges, Handle options) {
  const Metric named(metric, parameters, metric_matrix);
  return matvec<rigel_softmax_matvec, rigel_softmax_matvec_workspace_size, rigel_explain_softmax_matvec>(
      x, z, v, out, named, exclude_self, may_cancel, epilogue, ranges, options);
}

// ---- iterations ------------------------------------------------------------------------------------------------------

// (centres, labels, inertia, iterations, converged). `centres`: K numbers each, where it starts with `from_centres`, and where results go.
nb::object kmeans(Handle x_given, Handle k, Handle centres_given, Flag from_centres, Handle seed, Handle iterations,
                  Handle tolerance, Flag may_cancel, Handle options) {
  const Array x = single(x_given, "x");
  const Batch batch;
  Output centres(centres_given, "centres", x, batch, {number_of<std::int64_t>(k, "k"), x.columns()}, x.type, false, true);
  Output labels(nb::none(), "labels", x, batch, {x.rows()}, RIGEL_I64, false);
  Matrices matrices(batch);
  const rigel_matrix *of_x = matrices.add(x), *of_centres = matrices.add(centres.array()),
                     *of_labels = add_column(matrices, labels.array());
  rigel_kmeans_args args = {};
  args.size = sizeof args;
  args.seed = number_of<std::uint64_t>(seed, "seed");
  args.tolerance = number_of<double>(tolerance, "tolerance");
  args.iterations = number_of<std::int32_t>(iterations, "iterations");
  args.from_centres = from_centres;
  args.may_cancel = may_cancel;
  args.options = options_of(options);
  rigel_kmeans_result result = {};
  result.size = sizeof result;
  perform(
      matrices, [&](rigel_handle* h) { return rigel_kmeans(h, &args, of_x, of_centres, of_labels, &result); },
      not_explained);
  return nb::make_tuple(centres.finished(), labels.finished(), result.inertia, result.iterations, result.converged != 0);
}

rigel_sinkhorn_args sinkhorn_args(Handle epsilon, Handle options, Flag may_cancel) {
  rigel_sinkhorn_args args = {};
  args.size = sizeof args;
  args.epsilon = number_of<double>(epsilon, "epsilon");
  args.may_cancel = may_cancel;
  args.options = options_of(options);
  return args;
}

// (f, g, error, value, iterations, converged).
nb::object sinkhorn(Handle x_given, Handle z_given, Handle a_given, Handle b_given, Handle metric, Handle parameters,
                    Handle metric_matrix, Handle epsilon, Handle tolerance, Handle iterations, Handle scaling,
                    Flag alternating, Flag may_cancel, Handle options) {
  const Array x = single(x_given, "x"), z = single(z_given, "z"), a = of_points(a_given, "a", 1),
              b = of_points(b_given, "b", 1);
  const Metric named(metric, parameters, metric_matrix);
  const Batch batch;
  Output f(nb::none(), "f", x, batch, {x.rows()}, RIGEL_F64, false),
      g(nb::none(), "g", x, batch, {z.rows()}, RIGEL_F64, false);
  Matrices matrices(batch);
  const rigel_matrix *of_x = matrices.add(x), *of_z = matrices.add(z), *of_a = add_column(matrices, a),
                     *of_b = add_column(matrices, b), *of_f = add_column(matrices, f.array()),
                     *of_g = add_column(matrices, g.array());
  rigel_sinkhorn_args args = sinkhorn_args(epsilon, options, may_cancel);
  named.set(args, matrices);
  args.tolerance = number_of<double>(tolerance, "tolerance");
  args.iterations = number_of<std::int32_t>(iterations, "iterations");
  args.scaling = number_of<double>(scaling, "scaling");
  args.alternating = alternating;
  rigel_sinkhorn_result result = {};
  result.size = sizeof result;
  perform(
      matrices, [&](rigel_handle* h) { return rigel_sinkhorn(h, &args, of_x, of_z, of_a, of_b, of_f, of_g, &result); },
      not_explained);
  return nb::make_tuple(f.finished(), g.finished(), result.error, result.value, result.iterations, result.converged != 0);
}

nb::object sinkhorn_barycentre(Handle x_given, Handle z_given, Handle b_given, Handle g_given, Handle v_given, Handle out,
                               Handle metric, Handle parameters, Handle metric_matrix, Handle epsilon, Flag may_cancel,
                               Handle options) {
  const Array x = single(x_given, "x"), z = single(z_given, "z"), b = of_points(b_given, "b", 1),
              g = of_points(g_given, "g", 1), v = of_points(v_given, "v", 2);
  const Metric named(metric, parameters, metric_matrix);
  const Batch batch;
  std::vector<std::int64_t> own = {x.rows()};
  if (v.dimensions == 2) own.push_back(v.columns());
  Output result(out, "out", x, batch, own, v.type == RIGEL_F64 ? rigel_type{RIGEL_F64} : float_type(x), false);
  Matrices matrices(batch);
  const rigel_matrix *of_x = matrices.add(x), *of_z = matrices.add(z), *of_b = add_column(matrices, b),
                     *of_g = add_column(matrices, g), *of_v = add_column(matrices, v),
                     *of_out = add_column(matrices, result.array());
  rigel_sinkhorn_args args = sinkhorn_args(epsilon, options, may_cancel);
  named.set(args, matrices);
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) {
        return function(h, &args, of_x, of_z, of_b, of_g, of_v, of_out, more...);
      },
      rigel_sinkhorn_barycentre, rigel_sinkhorn_barycentre_workspace_size, nullptr);
  return result.finished();
}

// A function of Python's that is told of steps; an exception of its ends them.
struct Progress {
  nb::object function;
  std::exception_ptr failure;

  static std::int32_t call(std::int32_t iteration, double residual, void* user) {
    auto& self = *static_cast<Progress*>(user);
    const nb::gil_scoped_acquire gil;
    try {
      const nb::object answer = self.function(iteration, residual);
      const int truth = answer.is_none() ? 1 : PyObject_IsTrue(answer.ptr());
      if (truth < 0) throw nb::python_error();
      return truth;
    } catch (...) {
      self.failure = std::current_exception();
      return 0;
    }
  }
};

// (alpha, residual, iterations, rank, converged).
nb::object kernel_solve(Handle x_given, Handle y_given, Handle out, Handle kernel, Handle hyperparameters, Handle metric,
                        Handle parameters, Handle metric_matrix, Handle regularisation, Handle tolerance, Handle iterations,
                        Handle rank, Handle progress, Flag may_cancel, Handle options) {
  const Array x = single(x_given, "x"), y = of_points(y_given, "y", 2);
  text_of(kernel, "kernel");
  const Metric named(metric, parameters, metric_matrix, kernel, hyperparameters);
  const Batch batch;
  const std::vector<std::int64_t> own(y.shape.begin(), y.shape.begin() + y.dimensions);
  Output alpha(out, "out", y, batch, own, y.type, false);
  Matrices matrices(batch);
  const rigel_matrix *of_x = matrices.add(x), *of_y = add_column(matrices, y),
                     *of_alpha = add_column(matrices, alpha.array());
  rigel_kernel_solve_args args = {};
  args.size = sizeof args;
  named.set(args, matrices);
  args.regularisation = number_of<double>(regularisation, "regularisation");
  args.tolerance = number_of<double>(tolerance, "tolerance");
  args.iterations = number_of<std::int32_t>(iterations, "iterations");
  args.rank = number_of<std::int32_t>(rank, "rank");
  args.may_cancel = may_cancel;
  args.options = options_of(options);
  Progress told{nb::borrow(progress), {}};
  if (!progress.is_none()) {
    args.progress = Progress::call;
    args.user = &told;
  }
  rigel_kernel_solve_result result = {};
  result.size = sizeof result;
  perform(
      matrices, [&](rigel_handle* h) { return rigel_kernel_solve(h, &args, of_x, of_y, of_alpha, &result); }, not_explained);
  if (told.failure) std::rethrow_exception(told.failure);
  return nb::make_tuple(alpha.finished(), result.residual, result.iterations, result.rank, result.converged != 0);
}

}  // namespace

void define_drivers(nb::module_& m) {
  define(m, "kernel_matvec", kernel_matvec);
  define(m, "softmax_matvec", softmax_matvec);
  define(m, "kmeans", kmeans);
  define(m, "sinkhorn", sinkhorn);
  define(m, "sinkhorn_barycentre", sinkhorn_barycentre);
  define(m, "kernel_solve", kernel_solve);
}

}  // namespace rigel::python
