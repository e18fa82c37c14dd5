// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of distances, kernel matrices and products.
#include "calls.hpp"
#include "derivatives.hpp"
#include "texts.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace rigel::python {
namespace {

using Handle = nb::handle;

// The operands of a gradient: a is K x M, b N x K, c O x K, d N x M. Out is O x N x M of a type.
struct Operands {
  Operands(Handle a_given, Handle b_given, Handle c_given, Handle d_given, Handle out_given,
           rigel_type (*type_of_out)(rigel_type))
      : a(input(a_given, "a", 2)), b(input(b_given, "b", 2)), c(input(c_given, "c", 2)), d(input(d_given, "d", 2)) {
    batch.broadcast(a, "a", 2);
    batch.broadcast(b, "b", 2);
    batch.broadcast(c, "c", 2);
    batch.broadcast(d, "d", 2);
    out.emplace(out_given, "out", a, batch, std::vector<std::int64_t>{c.rows(), d.rows(), d.columns()}, type_of_out(a.type),
                false);
    // The matrix of o = 0; those of other o follow at a stride.
    first = out->array();
    const int outputs = first.dimensions - 3;
    output_stride = first.strides[static_cast<std::size_t>(outputs)];
    for (auto* numbers : {&first.shape, &first.strides})
      std::copy(numbers->begin() + outputs + 1, numbers->begin() + first.dimensions, numbers->begin() + outputs);
    --first.dimensions;
  }
  // Runs or explains a call, as perform() does.
  template <class Args, class Function, class Size, class Explain>
  nb::object perform(Args& args, Function function, Size size, Explain explain) {
    args.output_stride = output_stride;
    Matrices matrices(batch);
    const rigel_matrix *of_a = matrices.add(a), *of_b = matrices.add(b), *of_c = matrices.add(c), *of_d = matrices.add(d),
                       *of_out = matrices.add(first);
    python::perform(
        matrices, args.options,
        [&](auto called, rigel_handle* h, auto... more) {
          return called(h, &args, of_a, of_b, of_c, of_d, of_out, more...);
        },
        function, size, explain);
    return out->finished();
  }

  Array a, b, c, d, first;
  Batch batch;
  std::optional<Output> out;
  std::int64_t output_stride = 0;
};

// Out(l,o,n,m) of rigel_cdist_gradient().
nb::object cdist_gradient(Handle a, Handle b, Handle c, Handle d, Handle out, Handle p, Handle epsilon, Flag may_cancel) {
  Operands operands(a, b, c, d, out, [](rigel_type type) { return type; });
  rigel_cdist_gradient_args args = {};
  args.size = sizeof args;
  args.p = number_of<double>(p, "p");
  args.epsilon = number_of<double>(epsilon, "epsilon");
  args.may_cancel = may_cancel;
  return operands.perform(args, rigel_cdist_gradient, rigel_cdist_gradient_workspace_size, rigel_explain_cdist_gradient);
}

// The same of rigel_contract_gradient(), of a TextDerivative.
nb::object contract_gradient(Handle a, Handle b, Handle c, Handle d, Handle out, Handle derivative, Handle parameters_given,
                             Flag accumulate, Handle options) {
  const Parameters parameters(parameters_given);
  Operands operands(a, b, c, d, out, number_type);
  rigel_contract_gradient_args args = {};
  args.size = sizeof args;
  args.derivative = nb::cast<TextDerivative&>(derivative).of(operands.a.type);
  args.parameters = parameters.data();
  args.parameters_count = parameters.count();
  args.accumulate = accumulate;
  args.options = options_of(options);
  return operands.perform(args, rigel_contract_gradient, rigel_contract_gradient_workspace_size,
                          rigel_explain_contract_gradient);
}

// (dX or None, dZ or None, {name: gradient}) of G, M x N; of a batch a gradient for each matrix.
nb::object kernel_matrix_gradient(Handle x_given, Handle z_given, Handle g_given, Handle kernel, Handle hyperparameters,
                                  Handle metric, Handle parameters, Flag wants_x, Flag wants_z, nb::list names,
                                  Handle epsilon, Flag may_cancel) {
  const bool is_self = z_given.is_none();
  const Array x = input(x_given, "x", 2), z = is_self ? x : input(z_given, "z", 2), g = input(g_given, "g", 2);
  text_of(kernel, "kernel");
  const Metric named(metric, parameters, nb::none(), kernel, hyperparameters);
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
  named.set(args, matrices);
  args.epsilon = number_of<double>(epsilon, "epsilon");
  args.may_cancel = may_cancel;
  std::vector<rigel_hyperparameter_gradient> gradients(texts.size());
  args.gradients = gradients.data();
  args.gradients_count = static_cast<std::int32_t>(gradients.size());
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) {
        for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = {texts[i].c_str(), *places[i]};
        const rigel_matrix* const none = nullptr;
        return function(h, &args, of_x, of_z, of_g, none, of_dx, of_dz, more...);
      },
      rigel_kernel_matrix_gradient, rigel_kernel_matrix_gradient_workspace_size, nullptr);
  nb::dict by_name;
  for (std::size_t i = 0; i < texts.size(); ++i) by_name[texts[i].c_str()] = outputs[i].finished();
  nb::object of_points_x = nb::none(), of_points_z = nb::none();
  if (dx) of_points_x = dx->finished();
  if (dz) of_points_z = dz->finished();
  return nb::make_tuple(of_points_x, of_points_z, by_name);
}

// (dA or None, dB or None) of contract() for the gradient dc of its results c, which log_plus needs.
nb::object contract_backward(Handle a_given, Handle b_given, Handle c_given, Handle dc_given, Handle semiring,
                             Handle parameters, Flag wants_da, Flag wants_db) {
  const Array a = input(a_given, "a", 2), b = input(b_given, "b", 2), dc = input(dc_given, "dc", 2);
  std::optional<Array> c;
  if (!c_given.is_none()) c = input(c_given, "c", 2);
  const Parameters hyperparameters(parameters);
  Batch batch;
  batch.broadcast(a, "a", 2);
  batch.broadcast(b, "b", 2);
  batch.broadcast(dc, "dc", 2);
  rigel_contract_backward_args args = {};
  args.size = sizeof args;
  args.semiring = text_of(semiring, "semiring");
  args.parameters = hyperparameters.data();
  args.parameters_count = hyperparameters.count();
  std::optional<Output> da, db;
  if (wants_da) da.emplace(nb::none(), "da", a, batch, std::vector<std::int64_t>{a.rows(), a.columns()}, dc.type, false);
  if (wants_db) db.emplace(nb::none(), "db", a, batch, std::vector<std::int64_t>{b.rows(), b.columns()}, dc.type, false);
  Matrices matrices(batch, true);
  const rigel_matrix *of_a = matrices.add(a), *of_b = matrices.add(b), *of_c = c ? matrices.add(*c) : nullptr,
                     *of_dc = matrices.add(dc), *of_da = da ? matrices.add(da->array()) : nullptr,
                     *of_db = db ? matrices.add(db->array()) : nullptr;
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) {
        return function(h, &args, of_a, of_b, of_c, of_dc, of_da, of_db, more...);
      },
      rigel_contract_backward, rigel_contract_backward_workspace_size, nullptr);
  nb::object of_first = nb::none(), of_second = nb::none();
  if (da) of_first = da->finished();
  if (db) of_second = db->finished();
  return nb::make_tuple(of_first, of_second);
}

}  // namespace

void define_gradients(nb::module_& m) {
  define_derivatives(m);
  define(m, "cdist_gradient", cdist_gradient);
  define(m, "contract_gradient", contract_gradient);
  define(m, "kernel_matrix_gradient", kernel_matrix_gradient);
  define(m, "contract_backward", contract_backward);
}

}  // namespace rigel::python
