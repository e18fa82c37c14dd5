// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients, which rigel_semirings.torch registers.
#include "calls.hpp"

#include <optional>

namespace rigel::python {
namespace {

using Handle = nb::handle;

// dX(m,:) = sum_n A(m,n) sign(t) |t|^(p-1), t = X(m,:) - Z(n,:): rigel_cdist_gradient() on transposed matrices, with one output. `ones`
// are as many as Z has rows.
nb::object cdist_gradient(Handle a_given, Handle x_given, Handle z_given, Handle ones_given, Handle p, Flag may_cancel) {
  const Array a = input(a_given, "a", 2), x = input(x_given, "x", 2), z = input(z_given, "z", 2),
              ones = input(ones_given, "ones", 1);
  Batch batch;
  batch.broadcast(a, "a", 2);
  batch.broadcast(x, "x", 2);
  batch.broadcast(z, "z", 2);
  rigel_cdist_gradient_args args = {};
  args.size = sizeof args;
  args.p = number_of<double>(p, "p");
  args.may_cancel = may_cancel;
  Output out(nb::none(), "out", x, batch, {x.rows(), x.columns()}, x.type, false);
  Matrices matrices(batch);
  const rigel_matrix *of_a = matrices.add(a, 2, true), *of_z = matrices.add(z, 2, true), *of_ones = matrices.add(ones, 1),
                     *of_x = matrices.add(x, 2, true), *of_out = matrices.add(out.array(), 2, true);
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) {
        return function(h, &args, of_a, of_z, of_ones, of_x, of_out, more...);
      },
      rigel_cdist_gradient, rigel_cdist_gradient_workspace_size, rigel_explain_cdist_gradient);
  return out.finished();
}

// (dX or None, dZ or None) of kernel_matrix() for the gradient g.
nb::object kernel_matrix_gradient(Handle g_given, Handle x_given, Handle z_given, Handle kernel, Handle hyperparameters,
                                  Handle metric, Handle parameters, Flag wants_dx, Flag wants_dz, Flag may_cancel) {
  const Array g = input(g_given, "g", 2), x = input(x_given, "x", 2), z = input(z_given, "z", 2);
  const Parameters of_kernel(hyperparameters), of_metric(parameters);
  Batch batch;
  batch.broadcast(g, "g", 2);
  batch.broadcast(x, "x", 2);
  batch.broadcast(z, "z", 2);
  rigel_kernel_matrix_gradient_args args = {};
  args.size = sizeof args;
  args.kernel = text_of(kernel, "kernel");
  args.hyperparameters = of_kernel.data();
  args.hyperparameters_count = of_kernel.count();
  args.metric = text_of(metric, "metric");
  args.parameters = of_metric.data();
  args.parameters_count = of_metric.count();
  args.may_cancel = may_cancel;
  std::optional<Output> dx, dz;
  if (wants_dx) dx.emplace(nb::none(), "dx", x, batch, std::vector<std::int64_t>{x.rows(), x.columns()}, x.type, false);
  if (wants_dz) dz.emplace(nb::none(), "dz", x, batch, std::vector<std::int64_t>{z.rows(), z.columns()}, z.type, false);
  Matrices matrices(batch, true);
  const rigel_matrix *of_x = matrices.add(x), *of_z = matrices.add(z), *of_g = matrices.add(g),
                     *of_dx = dx ? matrices.add(dx->array()) : nullptr, *of_dz = dz ? matrices.add(dz->array()) : nullptr;
  perform(
      matrices, args.options,
      [&](auto function, rigel_handle* h, auto... more) {
        const rigel_matrix* const none = nullptr;
        return function(h, &args, of_x, of_z, of_g, none, of_dx, of_dz, more...);
      },
      rigel_kernel_matrix_gradient, rigel_kernel_matrix_gradient_workspace_size, rigel_explain_kernel_matrix_gradient);
  nb::object of_first = nb::none(), of_second = nb::none();
  if (dx) of_first = dx->finished();
  if (dz) of_second = dz->finished();
  return nb::make_tuple(of_first, of_second);
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
  define(m, "cdist_gradient", cdist_gradient);
  define(m, "kernel_matrix_gradient", kernel_matrix_gradient);
  define(m, "contract_backward", contract_backward);
}

}  // namespace rigel::python
