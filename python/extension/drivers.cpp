// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel matrices and softmaxes times arrays, iterations over reductions (k-means, Sinkhorn, conjugate gradients), and gradients of kernel
// matrices: a function for each of librigel_c's, as in module.cpp.
#include "drivers.hpp"

#include "calls.hpp"

#include <algorithm>
#include <exception>
#include <type_traits>
#include <utility>

namespace rigel::python {
namespace {

using Handle = nb::handle;

// What a call says of its metric, and of a kernel over it or None.
struct Named {
  Named(Handle metric, Handle parameters, Handle metric_matrix, Handle kernel, Handle hyperparameters)
      : name(text_of(metric, "metric")),
        kernel_name(optional_text_of(kernel, "kernel")),
        of_metric(parameters),
        of_kernel(hyperparameters) {
    if (metric_matrix.is_none()) return;
    matrix = input(metric_matrix, "the metric's matrix", 1);
    if (matrix->dimensions > 2) refuse(described(*matrix, "the metric's matrix") + ", expected one or two dimensions");
  }
  // One of one dimension is a row.
  template <class Args>
  void set(Args& args, Matrices& matrices) const {
    args.metric = name;
    args.parameters = of_metric.data();
    args.parameters_count = of_metric.count();
    if (matrix) args.metric_matrix = matrices.add(*matrix, matrix->dimensions);
    if constexpr (requires { args.kernel; }) {
      args.kernel = kernel_name;
      args.hyperparameters = of_kernel.data();
      args.hyperparameters_count = of_kernel.count();
    }
  }

  const char *name, *kernel_name;
  Parameters of_metric, of_kernel;
  std::optional<Array> matrix;
};

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

// Out of `function`: M x D of each matrix, or M if v has one dimension.
nb::object matvec(decltype(rigel_kernel_matvec) function, decltype(rigel_explain_kernel_matvec) explain, Handle x_given,
                  Handle z_given, Handle v_given, Handle out, const Named& named, Flag exclude_self, Flag may_cancel,
                  Handle epilogue_given, Handle options) {
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
  args.options = options_of(options);
  const auto current = [&] {
    epilogue.set(args.epilogue);
    return &args;
  };
  perform(
      matrices, [&](rigel_handle* h) { return function(h, current(), of_x, of_z, of_v, of_out); },
      [&](rigel_handle* h, char** json) { return explain(h, current(), of_x, of_z, of_v, of_out, json); });
  return result.finished();
}

nb::object kernel_matvec(Handle x, Handle z, Handle v, Handle out, Handle kernel, Handle hyperparameters, Handle metric,
                         Handle parameters, Handle metric_matrix, Flag exclude_self, Flag may_cancel, Handle options) {
  const Named named(metric, parameters, metric_matrix, kernel, hyperparameters);
  return matvec(rigel_kernel_matvec, rigel_explain_kernel_matvec, x, z, v, out, named, exclude_self, may_cancel, nb::none(),
                options);
}

nb::object softmax_matvec(Handle x, Handle z, Handle v, Handle out, Handle metric, Handle parameters, Handle metric_matrix,
                          Flag exclude_self, Flag may_cancel, Handle epilogue, Handle options) {
  const Named named(metric, parameters, metric_matrix, nb::none(), nb::none());
  return matvec(rigel_softmax_matvec, rigel_explain_softmax_matvec, x, z, v, out, named, exclude_self, may_cancel, epilogue,
                options);
}

// ---- iterations ------------------------------------------------------------------------------------------------------

// (centres, labels, inertia, iterations, converged). `centres`: K numbers each, where it starts with `from_centres`, and where results go.
nb::object kmeans(Handle x_given, Handle k, Handle centres_given, Flag from_centres, Handle seed, Handle iterations,
                  Handle tolerance, Flag may_cancel, Handle options) {
  const Array x = single(x_given, "x");
  const Batch batch;
  Output centres(centres_given, "centres", x, batch, {number_of<std::int64_t>(k, "k"), x.columns()}, x.type, false);
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
  const Named named(metric, parameters, metric_matrix, nb::none(), nb::none());
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
  const Named named(metric, parameters, metric_matrix, nb::none(), nb::none());
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
      matrices, [&](rigel_handle* h) { return rigel_sinkhorn_barycentre(h, &args, of_x, of_z, of_b, of_g, of_v, of_out); },
      not_explained);
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
      return answer.is_none() || nb::cast<bool>(answer);
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
  const Named named(metric, parameters, metric_matrix, kernel, hyperparameters);
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

// ---- gradients -------------------------------------------------------------------------------------------------------

// (dX or None, dZ or None, {name: gradient}) of G, M x N; of a batch a gradient for each matrix.
nb::object kernel_matrix_gradients(Handle x_given, Handle z_given, Handle g_given, Handle kernel, Handle hyperparameters,
                                   Handle metric, Handle parameters, Flag wants_x, Flag wants_z, nb::list names,
                                   Handle epsilon, Flag may_cancel) {
  const bool is_self = z_given.is_none();
  const Array x = input(x_given, "x", 2), z = is_self ? x : input(z_given, "z", 2), g = input(g_given, "g", 2);
  const Named named(metric, parameters, nb::none(), kernel, hyperparameters);
  Batch batch;
  batch.broadcast(x, "x", 2);
  batch.broadcast(z, "z", 2);
  batch.broadcast(g, "g", 2);
  std::optional<Output> dx, dz;
  if (wants_x) dx.emplace(nb::none(), "dX", x, batch, std::vector<std::int64_t>{x.rows(), x.columns()}, x.type, false);
  if (wants_z) dz.emplace(nb::none(), "dZ", z, batch, std::vector<std::int64_t>{z.rows(), z.columns()}, z.type, false);
  Matrices matrices(batch, true);
  const rigel_matrix *of_x = matrices.add(x), *of_z = is_self ? nullptr : matrices.add(z), *of_g = matrices.add(g),
                     *of_dx = dx ? matrices.add(dx->array()) : nullptr, *of_dz = dz ? matrices.add(dz->array()) : nullptr;
  std::vector<std::string> texts;
  std::vector<Output> outputs;
  std::vector<const rigel_matrix*> places;
  for (const Handle name : names) texts.emplace_back(text_of(name, "a hyperparameter's name"));
  outputs.reserve(texts.size());
  for (const std::string& text : texts) {
    outputs.emplace_back(nb::none(), text.c_str(), x, batch, std::vector<std::int64_t>{}, x.type, false);
    places.push_back(matrices.add(outputs.back().array(), 0));
  }
  rigel_kernel_matrix_gradient_args args = {};
  args.size = sizeof args;
  args.kernel = named.kernel_name;
  args.hyperparameters = named.of_kernel.data();
  args.hyperparameters_count = named.of_kernel.count();
  args.metric = named.name;
  args.parameters = named.of_metric.data();
  args.parameters_count = named.of_metric.count();
  args.epsilon = number_of<double>(epsilon, "epsilon");
  args.may_cancel = may_cancel;
  std::vector<rigel_hyperparameter_gradient> gradients(texts.size());
  args.gradients = gradients.data();
  args.gradients_count = static_cast<std::int32_t>(gradients.size());
  const auto current = [&] {
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = {texts[i].c_str(), *places[i]};
    return &args;
  };
  perform(
      matrices,
      [&](rigel_handle* h) { return rigel_kernel_matrix_gradient(h, current(), of_x, of_z, of_g, nullptr, of_dx, of_dz); },
      not_explained);
  nb::dict by_name;
  for (std::size_t i = 0; i < texts.size(); ++i) by_name[texts[i].c_str()] = outputs[i].finished();
  nb::object of_points_x = nb::none(), of_points_z = nb::none();
  if (dx) of_points_x = dx->finished();
  if (dz) of_points_z = dz->finished();
  return nb::make_tuple(of_points_x, of_points_z, by_name);
}

// Out(l,o,n,m) of rigel_cdist_gradient(): a is K x M, b N x K, c O x K, d N x M.
nb::object cdist_gradients(Handle a_given, Handle b_given, Handle c_given, Handle d_given, Handle out, Handle p,
                           Handle epsilon) {
  const Array a = input(a_given, "a", 2), b = input(b_given, "b", 2), c = input(c_given, "c", 2), d = input(d_given, "d", 2);
  Batch batch;
  batch.broadcast(a, "a", 2);
  batch.broadcast(b, "b", 2);
  batch.broadcast(c, "c", 2);
  batch.broadcast(d, "d", 2);
  if (batch.dimensions > 1) refuse(described(a, "a") + ", expected a batch of one dimension at most");
  Output result(out, "out", a, batch, {c.rows(), d.rows(), d.columns()}, a.type, false);
  // The matrix of o = 0; those of other o follow at a stride.
  Array first = result.array();
  const int outputs = first.dimensions - 3;
  const std::int64_t stride = first.strides[static_cast<std::size_t>(outputs)];
  for (auto* numbers : {&first.shape, &first.strides})
    std::copy(numbers->begin() + outputs + 1, numbers->begin() + first.dimensions, numbers->begin() + outputs);
  --first.dimensions;
  Matrices matrices(batch);
  const rigel_matrix *of_a = matrices.add(a), *of_b = matrices.add(b), *of_c = matrices.add(c), *of_d = matrices.add(d),
                     *of_out = matrices.add(first);
  rigel_cdist_gradient_args args = {};
  args.size = sizeof args;
  args.p = number_of<double>(p, "p");
  args.epsilon = number_of<double>(epsilon, "epsilon");
  args.output_stride = stride;
  perform(
      matrices, [&](rigel_handle* h) { return rigel_cdist_gradient(h, &args, of_a, of_b, of_c, of_d, of_out); },
      [&](rigel_handle* h, char** json) {
        return rigel_explain_cdist_gradient(h, &args, of_a, of_b, of_c, of_d, of_out, json);
      });
  return result.finished();
}

// Defines a function whose arguments may be None.
template <class Result, class... Argument>
void add(nb::module_& m, const char* name, Result (*function)(Argument...)) {
  m.def(name, function, (static_cast<void>(sizeof(std::type_identity<Argument>)), nb::arg().none())...);
}

}  // namespace

void define_drivers(nb::module_& m) {
  add(m, "kernel_matvec", kernel_matvec);
  add(m, "softmax_matvec", softmax_matvec);
  add(m, "kmeans", kmeans);
  add(m, "sinkhorn", sinkhorn);
  add(m, "sinkhorn_barycentre", sinkhorn_barycentre);
  add(m, "kernel_solve", kernel_solve);
  add(m, "kernel_matrix_gradients", kernel_matrix_gradients);
  add(m, "cdist_gradients", cdist_gradients);
}

}  // namespace rigel::python
