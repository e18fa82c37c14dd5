// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "listing.hpp"
#include "operands.hpp"
#include "semirings.hpp"
#include "texts.hpp"

#include <optional>

namespace rigel::c {
namespace {

// Requires that a call without the member `text` of args has no parameters of it.
template <class Parameter>
void require_none(std::span<const Parameter> list, const char* member, const char* text) {
  if (!list.empty())
    refuse("args." + std::string(member) + "_count is " + std::to_string(list.size()) + ", expected 0 without args." + text);
}

// The problem of a call, handed to `use`.
template <class Use>
rigel_code with_problem(const char* function, rigel_handle* handle, const rigel_contract_args* given, const rigel_matrix* a,
                        const rigel_matrix* b, const rigel_matrix* c, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_contract_args& args = checked(given, "args");
    require_zero(args.reserved, "args.reserved");
    Contraction p = problem_of(h, args.options, function);
    p.a = operand_of(a, "A");
    p.b = operand_of(b, "B");
    p.c = operand_of(c, "C");
    require_same_type(p.b, p.a);
    const epilogue::Program program = program_of(args.epilogue, h.execution.space);
    p.program = &program;
    p.epilogue_object = &program;
    p.accumulate = flag(args.accumulate, "args.accumulate");
    p.may_cancel = flag(args.may_cancel, "args.may_cancel");
    p.batch = p.c.batches;
    p.m = p.c.rows;
    p.n = p.c.columns;
    p.k = p.a.columns;
    const TextParameters parameters = {parameters_of(args.parameters, args.parameters_count),
                                       parameters_of(args.parameter_views, args.parameter_views_count, "parameter_views"),
                                       "parameter_views"};
    Semiring semiring;
    std::optional<runtime::Semiring> from_text;
    if (args.from_text) {
      if (args.semiring) refuse("args.semiring is '" + std::string(args.semiring) + "', expected NULL with args.from_text");
      from_text = semiring_of(*args.from_text, parameters, h.execution.space);
      set_in(p, *from_text, args.accumulator);
    } else {
      require_none(parameters.views, "parameter_views", "from_text");
      semiring = semiring_of(args.semiring, p.a.type, args.accumulator, parameters.numbers);
      semiring.set_in(p);
    }
    const TextParameters epilogue_parameters = {
        parameters_of(args.epilogue_parameters, args.epilogue_parameters_count, "epilogue_parameters"),
        parameters_of(args.epilogue_parameter_views, args.epilogue_parameter_views_count, "epilogue_parameter_views"),
        "epilogue_parameter_views"};
    std::optional<TextEpilogueOfCall> epilogue;
    if (args.epilogue_from_text) {
      if (!program.empty())
        refuse("args.epilogue has " + std::to_string(program.size()) + " steps, expected none with args.epilogue_from_text");
      epilogue.emplace(p, *args.epilogue_from_text, epilogue_parameters, from_text ? &*from_text : nullptr);
    } else {
      require_none(epilogue_parameters.numbers, "epilogue_parameters", "epilogue_from_text");
      require_none(epilogue_parameters.views, "epilogue_parameter_views", "epilogue_from_text");
    }
    use(p);
  });
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_contract(rigel_handle* handle, const rigel_contract_args* args, const rigel_matrix* a,
                          const rigel_matrix* b, const rigel_matrix* c) {
  return with_problem("rigel_contract", handle, args, a, b, c, [](const rigel::Contraction& p) { rigel::run(p); });
}

rigel_code rigel_contract_workspace_size(rigel_handle* handle, const rigel_contract_args* args, const rigel_matrix* a,
                                         const rigel_matrix* b, const rigel_matrix* c, std::size_t* bytes) {
  return with_problem("rigel_contract_workspace_size", handle, args, a, b, c,
                      [&](const rigel::Contraction& p) { result(bytes, "bytes") = rigel::workspace_size(p).bytes; });
}

rigel_code rigel_explain_contract(rigel_handle* handle, const rigel_contract_args* args, const rigel_matrix* a,
                                  const rigel_matrix* b, const rigel_matrix* c, char** json) {
  return with_problem("rigel_explain_contract", handle, args, a, b, c, [&](const rigel::Contraction& p) {
    p.check();
    result(json, "json") = text_of(json_of(p.summary(), rigel::candidates(p)));
  });
}

rigel_code rigel_result_type(const char* semiring, rigel_type element, rigel_type accumulator, rigel_type* type) {
  return guarded("rigel_result_type", [&] {
    const Semiring of = semiring_of(semiring, scalar_of(element, "element"), accumulator, {});
    result(type, "result") = static_cast<rigel_type>(of.info->result) + 1;
  });
}
