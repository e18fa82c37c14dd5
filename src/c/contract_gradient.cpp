// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract_gradient() with a functor from text.
#include "gradient.hpp"
#include "listing.hpp"
#include "texts.hpp"

namespace rigel::c {
namespace {

// The problem of a call, handed to `use`.
template <class Use>
rigel_code with_problem(const char* function, rigel_handle* handle, const rigel_contract_gradient_args* given,
                        const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d,
                        const rigel_matrix* out, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_contract_gradient_args& args = checked(given, "args");
    require_zero(args.reserved, "args");
    if (!args.derivative) refuse("args.derivative is NULL");
    Gradient p;
    static_cast<Call&>(p) = call_of(h, args.options, function);
    set_operands(p, a, b, c, d, out, args.output_stride);
    p.accumulate = flag(args.accumulate, "args.accumulate");
    const runtime::Derivative derivative =
        derivative_of(*args.derivative, parameters_of(args.parameters, args.parameters_count));
    in_words_of_c([&] { runtime::detail::set_derivative(p, derivative); });
    use(p);
  });
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;
using rigel::Gradient;

rigel_code rigel_contract_gradient(rigel_handle* handle, const rigel_contract_gradient_args* args, const rigel_matrix* a,
                                   const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d,
                                   const rigel_matrix* out) {
  return with_problem("rigel_contract_gradient", handle, args, a, b, c, d, out, [](const Gradient& p) { rigel::run(p); });
}

rigel_code rigel_contract_gradient_workspace_size(rigel_handle* handle, const rigel_contract_gradient_args* args,
                                                  const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* c,
                                                  const rigel_matrix* d, const rigel_matrix* out, std::size_t* bytes) {
  return with_problem("rigel_contract_gradient_workspace_size", handle, args, a, b, c, d, out,
                      [&](const Gradient& p) { result(bytes, "bytes") = rigel::workspace_size(p).bytes; });
}

rigel_code rigel_explain_contract_gradient(rigel_handle* handle, const rigel_contract_gradient_args* args,
                                           const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* c,
                                           const rigel_matrix* d, const rigel_matrix* out, char** json) {
  return with_problem("rigel_explain_contract_gradient", handle, args, a, b, c, d, out, [&](const Gradient& p) {
    p.check();
    result(json, "json") = text_of(json_of(p.summary(), rigel::candidates(p)));
  });
}
