// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gradient.hpp"
#include "listing.hpp"

#include <rigel/detail/checks.hpp>
#include <rigel/gradient.hpp>

#include <optional>

namespace rigel::c {

void require_epsilon(double epsilon) {
  if (!(epsilon >= 0 && std::isfinite(epsilon)))
    refuse("args.epsilon is " + std::to_string(epsilon) + ", expected a finite number, 0 or more");
}

namespace {

// Out's matrices of all o, which must not span more bytes than can be counted.
void set_out(Gradient& p, const rigel_matrix* out, std::int64_t stride) {
  p.out = operand_of(out, "Out");
  if (stride < 0) refuse("args.output_stride is " + std::to_string(stride) + ", expected 0 or more");
  p.outputs = p.c.rows;
  if (stride == 0 && __builtin_mul_overflow(out->rows, out->columns, &stride))
    refuse(detail::describe_argument(p.out, " is ") + ", expected fewer elements, or args.output_stride");
  p.out_stride = stride;
  // As many matrices as there are outputs, each with one column of two elements, the first and the last one.
  const auto reach = [](std::int64_t extent, std::int64_t step) { return extent > 1 ? (extent - 1) * step : 0; };
  rigel_matrix all = *out;
  all.batches = std::max<std::int64_t>(p.outputs, 1);
  all.batch_stride = stride;
  all.rows = 2;
  all.columns = 1;
  all.row_stride =
      reach(out->batches, out->batch_stride) + reach(out->rows, out->row_stride) + reach(out->columns, out->column_stride);
  operand_of(&all, "Out with all outputs");
}

}  // namespace

void set_operands(Gradient& p, const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d,
                  const rigel_matrix* out, std::int64_t output_stride) {
  p.a = operand_of(a, "A");
  p.b = operand_of(b, "B");
  p.c = operand_of(c, "C");
  p.d = operand_of(d, "D");
  set_out(p, out, output_stride);
  p.batch = p.out.batches;
  p.n = p.out.rows;
  p.m = p.out.columns;
  p.k = p.a.rows;
}

namespace {

// p of each batch, or one for all.
std::optional<Operand> powers_of(const rigel_cdist_gradient_args& args, const Gradient& p) {
  if (!args.powers) return {};
  Operand o = operand_of(args.powers, "args.powers");
  if (args.p != 0) refuse("args.p is " + std::to_string(args.p) + ", expected 0: args.powers has it");
  require_same_type(o, p.out);
  if (o.rows != 1 || o.columns != 1 || (o.batches != 1 && o.batches != p.batch))
    refuse(detail::describe_argument(o, " is ") + ", expected 1x1, one for each of " + std::to_string(p.batch) +
           " batches of Out, or one for all");
  if (!p.is_empty()) detail::require_data(p, o);
  return o;
}

// use(functor) with the functor of a call.
template <class Element, class Use>
void for_functor(const rigel_cdist_gradient_args& args, const Gradient& p, const Use& use) {
  if (const auto powers = powers_of(args, p))
    return use(gradient_of::minkowski<Element>(static_cast<const Element*>(powers->data), powers->batch_stride,
                                               static_cast<Element>(args.epsilon)));
  detail::with_gradient_of<Kokkos::DefaultHostExecutionSpace, Element>(args.p == 0 ? 2 : args.p, args.epsilon, p.batch, use);
}

// The problem of a call, handed to `use`.
template <class Use>
rigel_code with_problem(const char* function, rigel_handle* handle, const rigel_cdist_gradient_args* given,
                        const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d,
                        const rigel_matrix* out, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_cdist_gradient_args& args = checked(given, "args");
    require_zero(args.reserved, "args");
    Gradient p;
    static_cast<Call&>(p) = call_of(h, args.options, function);
    set_operands(p, a, b, c, d, out, args.output_stride);
    require_f32_or_f64(p.a);
    for (const Operand* o : {&p.b, &p.c, &p.d, &p.out}) require_same_type(*o, p.a);
    require_epsilon(args.epsilon);
    p.accumulate = flag(args.accumulate, "args.accumulate");
    p.may_cancel = flag(args.may_cancel, "args.may_cancel");
    with_float_or_double(p.a.type, [&]<class Element>() {
      for_functor<Element>(args, p, [&](const auto& functor) { use(with_functor(p, functor)); });
    });
  });
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;
using rigel::Gradient;

rigel_code rigel_cdist_gradient(rigel_handle* handle, const rigel_cdist_gradient_args* args, const rigel_matrix* a,
                                const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d,
                                const rigel_matrix* out) {
  return with_problem("rigel_cdist_gradient", handle, args, a, b, c, d, out, [](const Gradient& p) { rigel::run(p); });
}

rigel_code rigel_cdist_gradient_workspace_size(rigel_handle* handle, const rigel_cdist_gradient_args* args,
                                               const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* c,
                                               const rigel_matrix* d, const rigel_matrix* out, std::size_t* bytes) {
  return with_problem("rigel_cdist_gradient_workspace_size", handle, args, a, b, c, d, out,
                      [&](const Gradient& p) { result(bytes, "bytes") = rigel::workspace_size(p).bytes; });
}

rigel_code rigel_explain_cdist_gradient(rigel_handle* handle, const rigel_cdist_gradient_args* args, const rigel_matrix* a,
                                        const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d,
                                        const rigel_matrix* out, char** json) {
  return with_problem("rigel_explain_cdist_gradient", handle, args, a, b, c, d, out, [&](const Gradient& p) {
    p.check();
    result(json, "json") = text_of(json_of(p.summary(), rigel::candidates(p)));
  });
}
