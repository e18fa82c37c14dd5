// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gradient.hpp"
#include "winners.hpp"

#include <rigel/detail/checks.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace rigel::c {
namespace {

using detail::BackwardRule, detail::ContractBackward;

// The semirings that have gradients: how these are found, and of sums of |a − b|^p what p is; 0: a hyperparameter.
struct Rule {
  std::string_view semiring;
  BackwardRule rule;
  double p = 0;
};
constexpr Rule rules[] = {{"plus_times", BackwardRule::products}, {"log_plus", BackwardRule::exponentials},
                          {"min_plus", BackwardRule::winners},    {"max_plus", BackwardRule::winners},
                          {"max_min", BackwardRule::winners},     {"min_max", BackwardRule::winners},
                          {"l1", BackwardRule::differences, 1},   {"l2_squared", BackwardRule::differences, 2},
                          {"lp", BackwardRule::differences}};

const Rule& rule_of(const char* semiring) {
  const auto* found = std::ranges::find(rules, std::string_view(semiring), &Rule::semiring);
  if (found == std::end(rules))
    throw Error(Code::unsupported, "semiring '" + std::string(semiring) + "' has no gradient here, expected one of " +
                                       listed(rules, [](const Rule& rule) { return rule.semiring; }));
  return *found;
}
const Winners& winners_of(std::string_view semiring, Scalar element) {
  for (const auto& list : {least_sums(), largest_sums(), largest_minima(), least_maxima()})
    for (const Winners& one : list)
      if (one.semiring == semiring && one.element == element) return one;
  throw Error(Code::unsupported, "semiring '" + std::string(semiring) + "' has no gradient here");
}

// C, dC, dA and dB hold the elements' type or the one in which they are computed.
void require_type(const Operand& o, const ContractBackward& call) {
  if (o.type != call.a.type && o.type != call.computed)
    refuse(detail::describe_argument(o, " is ") + " of " + name(o.type) + ", expected " + name(call.a.type) +
           (call.computed == call.a.type ? "" : std::string(" or ") + name(call.computed)));
}

// The matrices of a call as the caller gives them.
struct Given {
  const rigel_matrix *a, *b, *c, *dc, *da, *db;
};
void set_matrices(ContractBackward& call, const Given& given) {
  call.a = operand_of(given.a, "A");
  call.b = operand_of(given.b, "B");
  call.dc = operand_of(given.dc, "dC");
  require_same_type(call.b, call.a);
  if (call.a.type > Scalar::f64)
    throw Error(Code::unsupported, std::string("A is of ") + name(call.a.type) + ", expected f16, bf16, f32 or f64");
  call.computed = call.a.type == Scalar::f64 ? Scalar::f64 : Scalar::f32;
  if (given.c)
    call.c = operand_of(given.c, "C");
  else if (call.rule == BackwardRule::exponentials)
    refuse("C is NULL, expected the result of log_plus");
  if (given.da) call.da = operand_of(given.da, "dA");
  if (given.db) call.db = operand_of(given.db, "dB");
  require_type(call.dc, call);
  if (given.c) require_type(call.c, call);
  for (const auto* o : {&call.da, &call.db})
    if (*o) require_type(**o, call);
}

// use(call) with the patterns of its parts, which have these options.
template <class Use>
void with_parts(const rigel_handle& handle, ContractBackward& call, const rigel_contract_backward_args& args, double p,
                const Use& use) {
  Call part = call.call;
  part.require = part.require | Promise::repeatable;
  part.workspace = {};
  if (call.rule == BackwardRule::products || call.rule == BackwardRule::exponentials) {
    const bool in_elements = call.rule == BackwardRule::products && call.dc.type == call.a.type;
    const Semiring semiring = semiring_of("plus_times", in_elements ? call.a.type : call.computed, 0, {});
    const epilogue::Program none;
    const auto pattern = [&](const Semiring& of) {
      Contraction products;
      static_cast<Call&>(products) = part;
      of.set_in(products);
      products.program = &none;
      products.epilogue_object = &none;
      return products;
    };
    call.products = pattern(semiring);
    const Semiring of_doubles = semiring_of("plus_times", Scalar::f64, 0, {});
    if (call.rule == BackwardRule::exponentials && call.computed == Scalar::f32) call.wide_products = pattern(of_doubles);
    return use(call);
  }
  if (call.rule == BackwardRule::winners) {
    const Winners& winners = winners_of(args.semiring, call.computed);
    call.slope = winners.slope;
    return winners.with(handle, call.call.function, [&](const Contraction& pattern) {
      call.winners = pattern;
      use(call);
    });
  }
  if (!(p > 0 && std::isfinite(p))) refuse("p is " + std::to_string(p) + ", expected a finite number above 0");
  call.factor = p;
  with_float_or_double(call.computed, [&]<class Element>() {
    detail::with_gradient_of<Kokkos::DefaultHostExecutionSpace, Element>(p, 0, 0, [&](const auto& functor) {
      Gradient differences;
      static_cast<Call&>(differences) = part;
      differences.may_cancel = flag(args.may_cancel, "args.may_cancel");
      call.differences = with_functor(differences, functor);
      use(call);
    });
  });
}

template <class Use>
rigel_code with_call(const char* function, rigel_handle* handle, const rigel_contract_backward_args* given_args,
                     const Given& given, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_contract_backward_args& args = checked(given_args, "args");
    require_zero(args.reserved, "args");
    require_zero(args.reserved_flags, "args.reserved_flags");
    if (args.options.kernel) refuse("args.options.kernel is not NULL: each part of a call has kernels of its own");
    const auto parameters = parameters_of(args.parameters, args.parameters_count);
    if (!args.semiring) refuse("args.semiring is NULL");
    // Refuses names and hyperparameters that there are not.
    const Scalar elements = operand_of(given.a, "A").type;
    static_cast<void>(semiring_of(args.semiring, elements, 0, parameters));
    const Rule& rule = rule_of(args.semiring);
    double p = rule.p == 0 ? 2 : rule.p;
    for (const rigel_parameter& parameter : parameters) p = parameter.value;  // lp's is the only one
    ContractBackward call;
    call.call = call_of(h, args.options, function);
    call.rule = rule.rule;
    set_matrices(call, given);
    call.accumulate = flag(args.accumulate, "args.accumulate");
    with_parts(h, call, args, p, use);
  });
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;
using rigel::detail::ContractBackward;

rigel_code rigel_contract_backward(rigel_handle* handle, const rigel_contract_backward_args* args, const rigel_matrix* a,
                                   const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* dc,
                                   const rigel_matrix* da, const rigel_matrix* db) {
  return with_call("rigel_contract_backward", handle, args, {a, b, c, dc, da, db},
                   [](const ContractBackward& call) { rigel::detail::run_contract_backward(call); });
}

rigel_code rigel_contract_backward_workspace_size(rigel_handle* handle, const rigel_contract_backward_args* args,
                                                  const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* c,
                                                  const rigel_matrix* dc, const rigel_matrix* da, const rigel_matrix* db,
                                                  std::size_t* bytes) {
  return with_call(
      "rigel_contract_backward_workspace_size", handle, args, {a, b, c, dc, da, db},
      [&](const ContractBackward& call) { result(bytes, "bytes") = rigel::detail::contract_backward_bytes(call); });
}
