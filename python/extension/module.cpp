// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rigel_semirings._core: one function for each of librigel_c's, on arrays. The package has the arguments that people type, and defaults.
#include "calls.hpp"
#include "drivers.hpp"
#include "jax.hpp"
#include "ranges.hpp"
#include "texts.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

namespace rigel::python {
namespace {

using Handle = nb::handle;

bool is_float(rigel_type type) { return type <= RIGEL_F64; }
bool is_short_float(rigel_type type) { return type == RIGEL_F16 || type == RIGEL_BF16 || type == RIGEL_F32; }

// What products and their reductions read: factors, the semiring's hyperparameters and an epilogue.
struct Factors {
  Factors(Handle a_given, Handle b_given, Handle parameters, Handle epilogue_given)
      : a(input(a_given, "a", 2)), b(input(b_given, "b", 2)), hyperparameters(parameters), epilogue(epilogue_given) {
    batch.broadcast(a, "a", 2);
    batch.broadcast(b, "b", 2);
    epilogue.broadcast(batch);
  }
  template <class Args>
  Args args(Flag may_cancel, Handle options) const {
    Args args = {};
    args.size = sizeof args;
    args.parameters = hyperparameters.data();
    args.parameters_count = hyperparameters.count();
    args.may_cancel = may_cancel;
    args.options = options_of(options);
    return args;
  }

  Array a, b;
  Parameters hyperparameters;
  Epilogue epilogue;
  Batch batch;
};

// What a product of elements of a type makes before an epilogue, as arrays hold it: floating-point numbers have the elements' type.
rigel_type type_of_results(const rigel_contract_args& args, Handle semiring, rigel_type element) {
  if (const rigel_type type = text_result_type(semiring, element)) return type;
  if (is_float(element)) return element;
  rigel_type type = element;
  if (const rigel_code code = rigel_result_type(args.semiring, element, args.accumulator, &type); code != RIGEL_OK)
    raise_last_error(code, "contract");
  return type;
}

// What texts read in memory, of the part of the batch that a call is at.
void set_views(rigel_contract_args& args, TextParameters& hyperparameters, std::optional<TextEpilogueCall>& epilogue) {
  const auto views = hyperparameters.views();
  args.parameter_views = views.data();
  args.parameter_views_count = static_cast<std::int32_t>(views.size());
  if (!epilogue) return;
  const auto of_epilogue = epilogue->parameters().views();
  args.epilogue_parameter_views = of_epilogue.data();
  args.epilogue_parameter_views_count = static_cast<std::int32_t>(of_epilogue.size());
}

nb::object contract(Handle a, Handle b, Handle out, Handle semiring, Handle parameters, rigel_type accumulator,
                    Flag accumulate, Flag may_cancel, Handle epilogue, rigel_type type, Handle options) {
  std::optional<TextEpilogueCall> from_text;
  if (TextEpilogueCall::is(epilogue)) from_text.emplace(epilogue);
  const Handle none(Py_None);
  Factors f(a, b, is_text(semiring) ? none : parameters, from_text ? none : epilogue);
  auto args = f.args<rigel_contract_args>(may_cancel, options);
  TextParameters hyperparameters(is_text(semiring) ? parameters : none);
  hyperparameters.broadcast(f.batch);
  if (from_text) from_text->parameters().broadcast(f.batch);
  if (is_text(semiring)) {
    args.parameters = hyperparameters.numbers().data();
    args.parameters_count = hyperparameters.numbers().count();
  }
  set_semiring(args, semiring, f.a.type);
  args.accumulator = accumulator;
  args.accumulate = accumulate;
  const rigel_type results = from_text || (out.is_none() && type == 0) ? type_of_results(args, semiring, f.a.type) : 0;
  if (type == 0) type = !is_float(results) && f.epilogue.computes() ? RIGEL_F64 : results;
  Output c(out, "out", f.a, f.batch, {f.a.rows(), f.b.columns()}, type, f.a.is_bool && type == RIGEL_U8);
  if (from_text) from_text->set(args, results, c.array().type);
  Matrices matrices(f.batch);
  const rigel_matrix *of_a = matrices.add(f.a), *of_b = matrices.add(f.b), *of_c = matrices.add(c.array());
  f.epilogue.add_to(matrices);
  hyperparameters.add_to(matrices);
  if (from_text) from_text->parameters().add_to(matrices);
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) {
        f.epilogue.set(args.epilogue);
        set_views(args, hyperparameters, from_text);
        return function(h, &args, of_a, of_b, of_c, more...);
      },
      rigel_contract, rigel_contract_workspace_size, rigel_explain_contract);
  return c.finished();
}

// The result of distances: floats of X's, but for 16 bits and integers.
rigel_type distance_type(const Array& x) { return is_short_float(x.type) ? RIGEL_F32 : RIGEL_F64; }

nb::object cdist(Handle x_given, Handle z_given, Handle out, Handle metric, Handle parameters, Handle metric_matrix,
                 Flag may_cancel, Flag skip_epilogue, Handle epilogue_given, rigel_type type, Handle options) {
  const Array x = input(x_given, "x", 2), z = z_given.is_none() ? x : input(z_given, "z", 2);
  const Metric of(metric, parameters, metric_matrix);
  Epilogue epilogue(epilogue_given);
  Batch batch;
  batch.broadcast(x, "x", 2);
  batch.broadcast(z, "z", 2);
  epilogue.broadcast(batch);
  rigel_cdist_args args = {};
  args.size = sizeof args;
  args.skip_epilogue = skip_epilogue;
  args.may_cancel = may_cancel;
  args.options = options_of(options);
  Output d(out, "out", x, batch, {x.rows(), z.rows()}, type != 0 ? type : distance_type(x), false);
  Matrices matrices(batch);
  const rigel_matrix *of_x = matrices.add(x), *of_z = matrices.add(z), *of_d = matrices.add(d.array());
  epilogue.add_to(matrices);
  of.set(args, matrices);
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) {
        epilogue.set(args.epilogue);
        return function(h, &args, of_x, of_z, of_d, more...);
      },
      rigel_cdist, rigel_cdist_workspace_size, rigel_explain_cdist);
  return d.finished();
}

nb::object kernel_matrix(Handle x_given, Handle z_given, Handle out, Handle kernel, Handle hyperparameters, Handle metric,
                         Handle parameters, Handle metric_matrix, Handle regularisation, Handle threshold, Flag may_cancel,
                         rigel_type type, Handle options) {
  const bool is_self = z_given.is_none();
  const Array x = input(x_given, "x", 2), z = is_self ? x : input(z_given, "z", 2);
  text_of(kernel, "kernel");
  const Metric of(metric, parameters, metric_matrix, kernel, hyperparameters);
  Batch batch;
  batch.broadcast(x, "x", 2);
  batch.broadcast(z, "z", 2);
  rigel_kernel_matrix_args args = {};
  args.size = sizeof args;
  args.regularisation = number_of<double>(regularisation, "regularisation");
  args.threshold = number_of<double>(threshold, "threshold");
  args.may_cancel = may_cancel;
  args.options = options_of(options);
  Output d(out, "out", x, batch, {x.rows(), z.rows()}, type != 0 ? type : distance_type(x), false);
  Matrices matrices(batch);
  const rigel_matrix *of_x = matrices.add(x), *of_z = is_self ? nullptr : matrices.add(z), *of_d = matrices.add(d.array());
  of.set(args, matrices);
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) { return function(h, &args, of_x, of_z, of_d, more...); },
      rigel_kernel_matrix, rigel_kernel_matrix_workspace_size, rigel_explain_kernel_matrix);
  return d.finished();
}

// (reducer, k, threshold, or_equal, exclude_self).
rigel_reduction reduction_of(Handle given) {
  rigel_reduction r = {};
  r.reducer = nb::cast<std::int32_t>(given[0]);
  r.k = number_of<std::int64_t>(given[1], "k");
  r.threshold = number_of<double>(given[2], "threshold");
  r.or_equal = nb::cast<Flag>(given[3]);
  r.exclude_self = nb::cast<Flag>(given[4]);
  return r;
}

// The results of a reduction, M or M x k of each matrix.
struct Results {
  Results(const Array& like, const Batch& batch, const rigel_reduction& r, rigel_type type, bool wants_values,
          bool wants_indices)
      : many(r.reducer == RIGEL_SMALLEST || r.reducer == RIGEL_LARGEST) {
    std::vector<std::int64_t> own = {like.rows()};
    if (many) own.push_back(std::clamp<std::int64_t>(r.k, 0, 4097));  // more is refused
    if (wants_values) values.emplace(nb::none(), "values", like, batch, own, type, false);
    if (wants_indices) indices.emplace(nb::none(), "indices", like, batch, own, rigel_type{RIGEL_I64}, false);
  }
  void add_to(Matrices& matrices) {
    const auto add = [&](std::optional<Output>& output) {
      return output ? matrices.add(output->array(), many ? 2 : 1, false, !many) : nullptr;
    };
    of_values = add(values);
    of_indices = add(indices);
  }
  nb::object finished() {
    nb::object v = nb::none(), i = nb::none();
    if (values) v = values->finished();
    if (indices) i = indices->finished();
    return nb::make_tuple(v, i);
  }
  bool many;
  std::optional<Output> values, indices;
  const rigel_matrix *of_values = nullptr, *of_indices = nullptr;
};

nb::object reduce(Handle a, Handle b, Handle semiring, Handle parameters, Handle reduction, Flag wants_values,
                  Flag wants_indices, Flag may_cancel, Handle epilogue, Handle ranges, Handle options) {
  Factors f(a, b, parameters, epilogue);
  auto args = f.args<rigel_reduce_args>(may_cancel, options);
  args.semiring = text_of(semiring, "semiring");
  args.reduction = reduction_of(reduction);
  args.ranges = ranges_of(ranges, f.a);
  rigel_type type = 0;
  if (const rigel_code code = rigel_result_type(args.semiring, f.a.type, 0, &type); code != RIGEL_OK)
    raise_last_error(code, "reduce");
  const std::int32_t reducer = args.reduction.reducer;
  const bool sums_integers = reducer == RIGEL_SUM && !is_float(type);
  if (reducer == RIGEL_COUNT_BELOW)
    type = RIGEL_I64;
  else if (!is_float(type) && (reducer == RIGEL_LOG_SUM_EXP || f.epilogue.computes()))
    type = RIGEL_F64;
  else if (sums_integers)
    type = type == RIGEL_U64 ? RIGEL_U64 : RIGEL_I64;
  Results results(f.a, f.batch, args.reduction, type, wants_values, wants_indices);
  Matrices matrices(f.batch);
  const rigel_matrix *of_a = matrices.add(f.a), *of_b = matrices.add(f.b);
  results.add_to(matrices);
  f.epilogue.add_to(matrices);
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) {
        f.epilogue.set(args.epilogue);
        return function(h, &args, of_a, of_b, results.of_values, results.of_indices, more...);
      },
      rigel_reduce, rigel_reduce_workspace_size, rigel_explain_reduce);
  return results.finished();
}

// A reduction of distances with its operands.
struct Points {
  Points(Handle x_given, Handle z_given, Handle metric, Handle parameters, Handle metric_matrix, Handle kernel,
         Handle hyperparameters, Handle reduction, Flag may_cancel, Handle epilogue_given, Handle ranges, Handle options)
      : x(input(x_given, "x", 2)),
        z(z_given.is_none() ? x : input(z_given, "z", 2)),
        of(metric, parameters, metric_matrix, kernel, hyperparameters),
        epilogue(epilogue_given) {
    batch.broadcast(x, "x", 2);
    batch.broadcast(z, "z", 2);
    epilogue.broadcast(batch);
    args.size = sizeof args;
    args.may_cancel = may_cancel;
    args.reduction = reduction_of(reduction);
    args.ranges = ranges_of(ranges, x);
    args.options = options_of(options);
  }
  const rigel_reduce_distances_args* current() {
    epilogue.set(args.epilogue);
    return &args;
  }

  Array x, z;
  Metric of;
  Epilogue epilogue;
  Batch batch;
  rigel_reduce_distances_args args = {};
};

nb::object reduce_distances(Handle x, Handle z, Handle metric, Handle parameters, Handle metric_matrix, Handle kernel,
                            Handle hyperparameters, Handle reduction, Flag wants_values, Flag wants_indices, Flag may_cancel,
                            Handle epilogue, Handle ranges, Handle options) {
  Points p(x, z, metric, parameters, metric_matrix, kernel, hyperparameters, reduction, may_cancel, epilogue, ranges,
           options);
  const rigel_type type = p.args.reduction.reducer == RIGEL_COUNT_BELOW ? rigel_type{RIGEL_I64} : distance_type(p.x);
  Results results(p.x, p.batch, p.args.reduction, type, wants_values, wants_indices);
  Matrices matrices(p.batch);
  const rigel_matrix *of_x = matrices.add(p.x), *of_z = matrices.add(p.z);
  results.add_to(matrices);
  p.epilogue.add_to(matrices);
  p.of.set(p.args, matrices);
  perform(
      matrices, p.args.options,
      [&](auto function, rigel_handle* h, auto... more) {
        return function(h, p.current(), of_x, of_z, results.of_values, results.of_indices, more...);
      },
      rigel_reduce_distances, rigel_reduce_distances_workspace_size, rigel_explain_reduce_distances);
  return results.finished();
}

// offsets, indices and distances of the rows of z within a radius.
nb::object radius_neighbors(Handle x, Handle z, Handle metric, Handle parameters, Handle metric_matrix, Handle radius,
                            Flag exclude_self, Flag wants_distances, Flag may_cancel, Handle ranges, Handle options) {
  const nb::object reduction = nb::make_tuple(0, 0, number_of<double>(radius, "radius"), false, exclude_self.value);
  Points p(x, z, metric, parameters, metric_matrix, nb::none(), nb::none(), reduction, may_cancel, nb::none(), ranges,
           options);
  if (p.batch.dimensions > 0) refuse(described(p.x, "x") + " with " + described(p.z, "z") + ", expected single matrices");
  Output offsets(nb::none(), "offsets", p.x, p.batch, {p.x.rows() + 1}, RIGEL_I64, false);
  Matrices counting(p.batch);
  const rigel_matrix *of_x = counting.add(p.x), *of_z = counting.add(p.z),
                     *of_offsets = counting.add(offsets.array(), 1, false, true);
  p.of.set(p.args, counting);
  perform(
      counting, [&](rigel_handle* h) { return rigel_radius_offsets(h, p.current(), of_x, of_z, of_offsets); },
      [&](rigel_handle* h, char** json) {
        rigel_reduce_distances_args args = *p.current();
        rigel_matrix counts = *of_offsets;
        --counts.rows;
        args.reduction.reducer = RIGEL_COUNT_BELOW;
        args.reduction.or_equal = 1;
        return rigel_explain_reduce_distances(h, &args, of_x, of_z, &counts, nullptr, json);
      });
  if (Explaining::is_active()) return nb::make_tuple(nb::none(), nb::none(), nb::none());
  const std::int64_t total = nb::cast<std::int64_t>(package().last(offsets.finished()));  // waits for it
  Output indices(nb::none(), "indices", p.x, p.batch, {total}, RIGEL_I64, false);
  std::optional<Output> distances;
  if (wants_distances)
    distances.emplace(nb::none(), "distances", p.x, p.batch, std::vector<std::int64_t>{total}, distance_type(p.x), false);
  Matrices listing(p.batch);
  of_x = listing.add(p.x);
  of_z = listing.add(p.z);
  const rigel_matrix *of_indices = listing.add(indices.array(), 1, false, true),
                     *of_distances = distances ? listing.add(distances->array(), 1, false, true) : nullptr;
  p.of.set(p.args, listing);
  p.args.reduction.offsets = listing.add(offsets.array(), 1, false, true);
  perform(
      listing, [&](rigel_handle* h) { return rigel_radius_neighbors(h, p.current(), of_x, of_z, of_indices, of_distances); },
      not_explained);
  nb::object of_caller = nb::none();
  if (distances) of_caller = distances->finished();
  return nb::make_tuple(offsets.finished(), indices.finished(), of_caller);
}

// Of arcs in `d`, which becomes the paths: (predecessors or None, vertex or -1, batch index). `d` has a batch of at most one dimension.
nb::object closure(Handle d_given, Handle semiring, Flag wants_predecessors, Flag reports, Handle block, Handle options) {
  const Array like = input(d_given, "weights", 2);
  Batch batch;
  batch.broadcast(like, "weights", 2);
  Output d(d_given, "weights", like, batch, {like.rows(), like.columns()}, like.type, like.is_bool, true);
  std::optional<Output> predecessors;
  if (wants_predecessors)
    predecessors.emplace(nb::none(), "predecessors", like, batch, std::vector<std::int64_t>{like.rows(), like.columns()},
                         rigel_type{RIGEL_I32}, false);
  rigel_closure_args args = {};
  args.size = sizeof args;
  args.semiring = text_of(semiring, "semiring");
  args.block = number_of<std::int64_t>(block, "block");
  args.options = options_of(options);
  rigel_closure_report report = {};
  report.size = sizeof report;
  report.vertex = report.batch = -1;
  Matrices matrices(batch);
  const rigel_matrix *of_d = matrices.add(d.array()),
                     *of_predecessors = predecessors ? matrices.add(predecessors->array()) : nullptr;
  std::int64_t vertex = -1, part = 0, graph = -1;
  perform(
      matrices, args.options,
      [&](rigel_handle* h) {
        const rigel_code code = rigel_closure(h, &args, of_d, of_predecessors, reports ? &report : nullptr);
        if (code == RIGEL_OK && vertex < 0 && report.negative_cycle) {
          vertex = report.vertex;
          graph = part + report.batch;
        }
        part += of_d->batches;
        return code;
      },
      [&](rigel_handle* h, std::size_t* bytes) {
        return rigel_closure_workspace_size(h, &args, of_d, of_predecessors, bytes);
      },
      not_explained);
  nb::object p = nb::none();
  if (predecessors) p = predecessors->finished();
  return nb::make_tuple(d.finished(), p, vertex, graph);
}

// ---- linear systems ----

template <class... More>
using SolveFunction = rigel_code (*)(rigel_handle*, const rigel_solve_args*, const rigel_matrix*, const rigel_matrix*,
                                     const rigel_matrix*, const rigel_matrix*, More...);

rigel_solve_args solve_args(Flag upper, Flag check, Handle refine, Handle options) {
  rigel_solve_args args = {};
  args.size = sizeof args;
  args.triangle = upper ? RIGEL_UPPER : RIGEL_LOWER;
  args.check = check;
  args.refine = number_of<std::int32_t>(refine, "refine");
  args.options = options_of(options);
  return args;
}

// (x, info or None) of n x n matrices a and right sides b: of one dimension, or matrices.
template <SolveFunction<> function, SolveFunction<std::size_t*> size, SolveFunction<char**> explanation>
nb::object solve(Handle a_given, Handle b_given, Handle out, Flag upper, Flag check, Flag wants_info, Handle refine,
                 Handle options) {
  const Array a = input(a_given, "a", 2), b = input(b_given, "b", 1);
  const bool is_vector = b.dimensions == 1;
  Batch batch;
  batch.broadcast(a, "a", 2);
  batch.broadcast(b, "b", is_vector ? 1 : 2);
  rigel_solve_args args = solve_args(upper, check, refine, options);
  std::vector<std::int64_t> own = {a.columns()};
  if (!is_vector) own.push_back(b.columns());
  Output x(out, "out", b, batch, own, a.type, false);
  std::optional<Output> info;
  if (wants_info) info.emplace(nb::none(), "info", a, batch, std::vector<std::int64_t>{}, rigel_type{RIGEL_I32}, false);
  Matrices matrices(batch, true);
  const rigel_matrix *of_a = matrices.add(a), *of_b = matrices.add(b, is_vector ? 1 : 2, false, is_vector),
                     *of_x = matrices.add(x.array(), is_vector ? 1 : 2, false, is_vector),
                     *of_info = info ? matrices.add(info->array(), 0) : nullptr;
  perform(
      matrices, args.options,
      [&](auto one, rigel_handle* h, auto... more) { return one(h, &args, of_a, of_b, of_x, of_info, more...); }, function,
      size, explanation);
  nb::object infos = nb::none();
  if (info) infos = info->finished();
  return nb::make_tuple(x.finished(), infos);
}

nb::object cholesky_factor(Handle a_given, Handle out, Flag upper, Flag check, Flag wants_info, Handle options) {
  const Array a = input(a_given, "a", 2);
  Batch batch;
  batch.broadcast(a, "a", 2);
  rigel_solve_args args = solve_args(upper, check, nb::int_(0), options);
  Output l(out, "out", a, batch, {a.rows(), a.columns()}, a.type, false);
  std::optional<Output> info;
  if (wants_info) info.emplace(nb::none(), "info", a, batch, std::vector<std::int64_t>{}, rigel_type{RIGEL_I32}, false);
  Matrices matrices(batch, true);
  const rigel_matrix *of_a = matrices.add(a), *of_l = matrices.add(l.array()),
                     *of_info = info ? matrices.add(info->array(), 0) : nullptr;
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) { return function(h, &args, of_a, of_l, of_info, more...); },
      rigel_cholesky_factor, rigel_cholesky_factor_workspace_size, rigel_explain_cholesky_factor);
  nb::object infos = nb::none();
  if (info) infos = info->finished();
  return nb::make_tuple(l.finished(), infos);
}

nb::object eigh(Handle a_given, Flag upper, Flag check, Flag wants_info, Handle options) {
  const Array a = input(a_given, "a", 2);
  Batch batch;
  batch.broadcast(a, "a", 2);
  rigel_solve_args args = solve_args(upper, check, nb::int_(0), options);
  Output w(nb::none(), "w", a, batch, {a.rows()}, a.type, false),
      v(nb::none(), "v", a, batch, {a.rows(), a.columns()}, a.type, false);
  std::optional<Output> info;
  if (wants_info) info.emplace(nb::none(), "info", a, batch, std::vector<std::int64_t>{}, rigel_type{RIGEL_I32}, false);
  Matrices matrices(batch, true);
  const rigel_matrix *of_a = matrices.add(a), *of_w = matrices.add(w.array(), 1, false, true),
                     *of_v = matrices.add(v.array()), *of_info = info ? matrices.add(info->array(), 0) : nullptr;
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) { return function(h, &args, of_a, of_w, of_v, of_info, more...); },
      rigel_eigh, rigel_eigh_workspace_size, rigel_explain_eigh);
  nb::object infos = nb::none();
  if (info) infos = info->finished();
  return nb::make_tuple(w.finished(), v.finished(), infos);
}

nb::object log_determinant(Handle l_given) {
  const Array l = input(l_given, "l", 2);
  if (l.rows() != l.columns()) refuse(described(l, "l") + ", expected square matrices");
  if (l.type != RIGEL_F32 && l.type != RIGEL_F64) refuse("l holds other numbers, expected float32 or float64");
  Batch batch;
  batch.broadcast(l, "l", 2);
  Output d(nb::none(), "d", l, batch, {}, l.type, false);
  Matrices matrices(batch, true);
  const rigel_matrix *of_l = matrices.add(l), *of_d = matrices.add(d.array(), 0);
  perform(matrices, [&](rigel_handle* h) { return rigel_log_determinant(h, of_l, of_d); }, not_explained);
  return d.finished();
}

// ---- the linear layer: weights are N x K ----

rigel_linear_args linear_args(std::int32_t tier, std::int32_t activation, Handle options) {
  rigel_linear_args args = {};
  args.size = sizeof args;
  args.tier = tier;
  args.activation = activation;
  args.options = options_of(options);
  return args;
}

nb::object linear_forward(Handle x_given, Handle w_given, Handle bias_given, Handle out, Flag wants_z, std::int32_t tier,
                          std::int32_t activation, Handle options) {
  const Array x = input(x_given, "x", 2), w = input(w_given, "weight", 2);
  std::optional<Array> bias;
  if (!bias_given.is_none()) bias = input(bias_given, "bias", 1);
  Batch batch;
  batch.broadcast(x, "x", 2);
  batch.broadcast(w, "weight", 2);
  if (bias) batch.broadcast(*bias, "bias", 1);
  rigel_linear_args args = linear_args(tier, activation, options);
  Output y(out, "out", x, batch, {x.rows(), w.rows()}, x.type, false);
  std::optional<Output> z;
  if (wants_z) z.emplace(nb::none(), "z", x, batch, std::vector<std::int64_t>{x.rows(), w.rows()}, x.type, false);
  Matrices matrices(batch);
  const rigel_matrix *of_x = matrices.add(x), *of_w = matrices.add(w, 2, true),
                     *of_bias = bias ? matrices.add(*bias, 1) : nullptr, *of_y = matrices.add(y.array()),
                     *of_z = z ? matrices.add(z->array()) : nullptr;
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) {
        return function(h, &args, of_x, of_w, of_bias, of_y, of_z, more...);
      },
      rigel_linear_forward, rigel_linear_forward_workspace_size, nullptr);
  nb::object before = nb::none();
  if (z) before = z->finished();
  return nb::make_tuple(y.finished(), before);
}

// Adds to dw, N x K, and db, N, of each matrix of the batch, or overwrites them.
void linear_backward_weight(Handle x_given, Handle dy_given, Handle dw_given, Handle db_given, Flag overwrite,
                            std::int32_t tier, Handle options) {
  const Array x = input(x_given, "x", 2), dy = input(dy_given, "dy", 2);
  Batch batch;
  batch.broadcast(x, "x", 2);
  batch.broadcast(dy, "dy", 2);
  rigel_linear_args args = linear_args(tier, RIGEL_ACTIVATION_NONE, options);
  args.overwrite = overwrite;
  Output dw(dw_given, "dw", dy, batch, {dy.columns(), x.columns()}, RIGEL_F32, false, true);
  std::optional<Output> db;
  if (!db_given.is_none())
    db.emplace(db_given, "db", dy, batch, std::vector<std::int64_t>{dy.columns()}, rigel_type{RIGEL_F32}, false, true);
  Matrices matrices(batch);
  const rigel_matrix *of_x = matrices.add(x), *of_dy = matrices.add(dy), *of_dw = matrices.add(dw.array(), 2, true),
                     *of_db = db ? matrices.add(db->array(), 1) : nullptr;
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) { return function(h, &args, of_x, of_dy, of_dw, of_db, more...); },
      rigel_linear_backward_weight, rigel_linear_backward_weight_workspace_size, nullptr);
  dw.finished();
  if (db) db->finished();
}

nb::object linear_backward_input(Handle dy_given, Handle w_given, Handle z_given, Handle out, std::int32_t tier,
                                 std::int32_t activation, Handle options) {
  const Array dy = input(dy_given, "dy", 2), w = input(w_given, "weight", 2);
  std::optional<Array> z;
  if (!z_given.is_none()) z = input(z_given, "z", 2);
  Batch batch;
  batch.broadcast(dy, "dy", 2);
  batch.broadcast(w, "weight", 2);
  if (z) batch.broadcast(*z, "z", 2);
  rigel_linear_args args = linear_args(tier, activation, options);
  Output dx(out, "out", dy, batch, {dy.rows(), w.columns()}, dy.type, false);
  Matrices matrices(batch);
  const rigel_matrix *of_dy = matrices.add(dy), *of_w = matrices.add(w, 2, true), *of_dx = matrices.add(dx.array()),
                     *of_z = z ? matrices.add(*z) : nullptr;
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) { return function(h, &args, of_dy, of_w, of_dx, of_z, more...); },
      rigel_linear_backward_input, rigel_linear_backward_input_workspace_size, nullptr);
  return dx.finished();
}

// (dX, dW, db) of a layer without an activation: of each what is wanted, else None; a type of db that is 0 wants none. Of single matrices.
nb::object linear_gradients(Handle x_given, Handle w_given, Handle dy_given, Flag wants_dx, Flag wants_dw,
                            rigel_type of_bias, std::int32_t tier, Handle options) {
  const Array x = input(x_given, "x", 2), w = input(w_given, "weight", 2), dy = input(dy_given, "dy", 2);
  for (const Array* one : {&x, &w, &dy})
    if (one->dimensions != 2) refuse(described(*one, one->name) + ", expected single matrices");
  Batch batch;
  batch.broadcast(x, "x", 2);
  batch.broadcast(w, "weight", 2);
  batch.broadcast(dy, "dy", 2);
  rigel_linear_args args = linear_args(tier, RIGEL_ACTIVATION_NONE, options), of_weight = args;
  of_weight.overwrite = 1;
  std::optional<Output> dx, dw, db;
  if (wants_dx) dx.emplace(nb::none(), "dX", dy, batch, std::vector<std::int64_t>{dy.rows(), w.columns()}, dy.type, false);
  if (wants_dw || of_bias != 0)
    dw.emplace(nb::none(), "dW", dy, batch, std::vector<std::int64_t>{dy.columns(), x.columns()}, w.type, false);
  if (of_bias != 0) db.emplace(nb::none(), "db", dy, batch, std::vector<std::int64_t>{dy.columns()}, of_bias, false);
  Matrices matrices(batch);
  const rigel_matrix *of_x = matrices.add(x), *of_w = matrices.add(w, 2, true), *of_dy = matrices.add(dy),
                     *of_dx = dx ? matrices.add(dx->array()) : nullptr,
                     *of_dw = dw ? matrices.add(dw->array(), 2, true) : nullptr,
                     *of_db = db ? matrices.add(db->array(), 1) : nullptr;
  perform(
      matrices, args.options,
      [&](rigel_handle* h) {
        of_weight.options = args.options;
        const rigel_code code = dx ? rigel_linear_backward_input(h, &args, of_dy, of_w, of_dx, nullptr) : RIGEL_OK;
        return code == RIGEL_OK && dw ? rigel_linear_backward_weight(h, &of_weight, of_x, of_dy, of_dw, of_db) : code;
      },
      [&](rigel_handle* h, std::size_t* bytes) {
        std::size_t first = 0, second = 0;
        rigel_code code =
            dx ? rigel_linear_backward_input_workspace_size(h, &args, of_dy, of_w, of_dx, nullptr, &first) : RIGEL_OK;
        if (code == RIGEL_OK && dw)
          code = rigel_linear_backward_weight_workspace_size(h, &of_weight, of_x, of_dy, of_dw, of_db, &second);
        *bytes = std::max(first, second);
        return code;
      },
      not_explained);
  const auto finished = [](std::optional<Output>& one) { return one ? one->finished() : nb::object(nb::none()); };
  return nb::make_tuple(finished(dx), wants_dw ? finished(dw) : nb::object(nb::none()), finished(db));
}

// ---- listings ----

// The type of a semiring's results.
rigel_type result_type(Handle semiring, rigel_type element) {
  rigel_type type = 0;
  if (const rigel_code code = rigel_result_type(text_of(semiring, "semiring"), element, 0, &type); code != RIGEL_OK)
    raise_last_error(code);
  return type;
}

nb::str kernels(Handle name) {
  char* json = nullptr;
  thread_handle();  // registers them
  if (const rigel_code code = rigel_kernels(optional_text_of(name, "name"), &json); code != RIGEL_OK) raise_last_error(code);
  const nb::str text(json);
  rigel_free(json);
  return text;
}

// The package's module _arrays, and {code: exception class}.
void configure(Handle arrays, Handle errors) {
  package() = {.empty = arrays.attr("empty"),
               .convert = arrays.attr("convert"),
               .copy = arrays.attr("copy"),
               .traits_of = arrays.attr("traits_of"),
               .stream_of = arrays.attr("stream_of"),
               .is_capturing = arrays.attr("is_capturing"),
               .capture_streams = arrays.attr("capture_streams"),
               .last = arrays.attr("last"),
               .errors = nb::borrow(errors)};
}

}  // namespace
}  // namespace rigel::python

NB_MODULE(_core, m) {
  using namespace rigel::python;
  nb::set_leak_warnings(false);  // a daemon thread keeps its objects when the process ends
  define(m, "configure", configure);
  m.def("version", rigel_version);
  define(m, "kernels", kernels);
  define(m, "result_type", result_type);
  define(m, "begin_explaining", &Explaining::begin);
  define(m, "end_explaining", &Explaining::end);
  define_texts(m);
  define_ranges(m);
  define(m, "contract", contract);
  define(m, "cdist", cdist);
  define(m, "kernel_matrix", kernel_matrix);
  define(m, "reduce", reduce);
  define(m, "reduce_distances", reduce_distances);
  define(m, "radius_neighbors", radius_neighbors);
  define_drivers(m);
  define(m, "closure", closure);
  define(m, "cholesky_solve",
         solve<rigel_cholesky_solve, rigel_cholesky_solve_workspace_size, rigel_explain_cholesky_solve>);
  define(m, "cholesky_solve_factored",
         solve<rigel_cholesky_solve_factored, rigel_cholesky_solve_factored_workspace_size,
               rigel_explain_cholesky_solve_factored>);
  define(m, "lu_solve", solve<rigel_lu_solve, rigel_lu_solve_workspace_size, rigel_explain_lu_solve>);
  define(m, "cholesky_factor", cholesky_factor);
  define(m, "eigh", eigh);
  define(m, "log_determinant", log_determinant);
  define(m, "linear_forward", linear_forward);
  define(m, "linear_backward_weight", linear_backward_weight);
  define(m, "linear_backward_input", linear_backward_input);
  define(m, "linear_gradients", linear_gradients);
  define_gradients(m);
  define_jax(m);
}
