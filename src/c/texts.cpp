// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "texts.hpp"

#include "handle.hpp"
#include "operands.hpp"
#include "semirings.hpp"

#include <rigel/detail/checks.hpp>

#include <algorithm>

namespace rigel::c {
namespace {

// Requires that a semiring or an epilogue, which `what` says, has a hyperparameter of this name.
template <class Text>
void require_parameter(const Text& text, const char* what, const char* name) {
  const std::vector<std::string> all = text.hyperparameters();
  if (std::find(all.begin(), all.end(), name) == all.end())
    throw Error(Code::not_found, std::string(what) + " '" + text.name() + "' has no hyperparameter '" + name +
                                     "', expected " +
                                     (all.empty() ? "none" : listed(all, [](const std::string& one) { return one; })));
}

template <class Text>
void set_parameter(Text& text, const char* what, const char* name, double value) {
  if (!name) refuse("name is NULL");
  require_parameter(text, what, name);
  in_words_of_c([&] { text.set(name, value); });
}

template <class Text>
void set_parameters(Text& text, const char* what, const TextParameters& parameters, Space space) {
  for (const rigel_parameter& one : parameters.numbers) set_parameter(text, what, one.name, one.value);
  for (std::size_t i = 0; i < parameters.views.size(); ++i) {
    const rigel_parameter_view& one = parameters.views[i];
    require_parameter(text, what, one.name);
    const std::string name = std::string(parameters.name_of_views) + '[' + std::to_string(i) + "].matrix";
    const Operand o = operand_of(&one.matrix, name.c_str());
    if (o.rows != 1 || o.columns != 1)
      refuse(detail::describe_argument(o, " is ") + ", expected 1x1 for each matrix of C, or for all");
    in_words_of_c([&] { text.set_view(one.name, o.type, {0, o.data, o.batches, o.batch_stride, bit(space), nullptr}); });
  }
}

std::string text_of_member(const char* given) { return given ? given : ""; }

std::vector<runtime::Field> fields_of(const rigel_semiring_args& args) {
  if (args.fields_count < 0 || (args.fields_count > 0 && !args.fields))
    refuse("args.fields_count is " + std::to_string(args.fields_count) + ", expected the number of fields" +
           (args.fields ? "" : ", which are NULL"));
  std::vector<runtime::Field> fields;
  for (int i = 0; i < args.fields_count; ++i) {
    const std::string name = "args.fields[" + std::to_string(i) + ']';
    const rigel_field& one = args.fields[i];
    if (!one.name) refuse(name + ".name is NULL");
    require_zero(one.reserved, name + ".reserved");
    fields.push_back({one.name, scalar_of(one.type, name + ".type")});
  }
  return fields;
}

std::vector<runtime::Hyperparameter> hyperparameters_of(const rigel_parameter* parameters, std::int32_t count) {
  std::vector<runtime::Hyperparameter> list;
  for (const rigel_parameter& one : parameters_of(parameters, count)) list.push_back({one.name, one.value});
  return list;
}

runtime::Texts texts_of(const rigel_semiring_args& args) {
  require_zero(args.reserved_flags, "args.reserved_flags");
  require_zero(args.reserved, "args");
  runtime::Texts texts;
  if (args.name) texts.name = args.name;
  if (args.element != 0) texts.element = scalar_of(args.element, "args.element");
  texts.commutative = flag(args.commutative, "args.commutative");
  texts.multiply = text_of_member(args.multiply);
  texts.add = text_of_member(args.add);
  texts.identity = text_of_member(args.identity);
  texts.step = text_of_member(args.step);
  texts.result = text_of_member(args.result);
  if (const auto fields = fields_of(args); !fields.empty()) texts.accumulator = runtime::Accumulator(fields);
  if (args.result_type != 0) texts.result_type = scalar_of(args.result_type, "args.result_type");
  texts.hyperparameters = hyperparameters_of(args.parameters, args.parameters_count);
  return texts;
}

runtime::EpilogueTexts texts_of(const rigel_epilogue_args& args) {
  require_zero(args.reserved_flags, "args.reserved_flags");
  require_zero(args.reserved, "args");
  runtime::EpilogueTexts texts;
  if (args.name) texts.name = args.name;
  if (args.argument != 0) texts.argument = scalar_of(args.argument, "args.argument");
  if (args.result != 0) texts.result = scalar_of(args.result, "args.result");
  texts.body = text_of_member(args.body);
  texts.hyperparameters = hyperparameters_of(args.parameters, args.parameters_count);
  return texts;
}

runtime::DerivativeTexts texts_of(const rigel_derivative_args& args) {
  require_zero(args.reserved, "args");
  runtime::DerivativeTexts texts;
  if (args.name) texts.name = args.name;
  if (args.element != 0) texts.element = scalar_of(args.element, "args.element");
  texts.multiply = text_of_member(args.multiply);
  texts.accumulate = text_of_member(args.accumulate);
  texts.add = text_of_member(args.add);
  texts.identity = text_of_member(args.identity);
  texts.result = text_of_member(args.result);
  texts.hyperparameters = hyperparameters_of(args.parameters, args.parameters_count);
  return texts;
}

// Requires a semiring of the zoo that takes epilogues from text. Those of other types have no text.
void require_plus_times(const Contraction& p) {
  const bool is_text = p.element == Scalar::f32 || p.element == Scalar::f64 || p.element == Scalar::f16 ||
                       p.element == Scalar::bf16 || p.element == Scalar::i32 || p.element == Scalar::i64;
  if (p.semiring.name == "plus_times" && is_text && p.accumulator == runtime::detail::product_of(p.element).accumulator())
    return;
  throw Error(Code::unsupported, "an epilogue from text does not go with semiring '" + std::string(p.semiring.name) +
                                     "' of " + rigel::name(p.element) +
                                     ", expected one from text, or plus_times of f32, f64, f16, bf16, i32 or i64 with its "
                                     "usual accumulator");
}

void compile_products(const rigel_handle& handle, const runtime::Epilogue& epilogue, Scalar element) {
#ifdef KOKKOS_ENABLE_CUDA
  if (handle.cuda) return epilogue.compile(*handle.cuda, element);
#endif
  runtime::detail::product_of(element).compile(handle.execution, &epilogue);
}

}  // namespace

runtime::Semiring semiring_of(const rigel_semiring& given, const TextParameters& parameters, Space space) {
  runtime::Semiring semiring = given.semiring;
  set_parameters(semiring, "semiring", parameters, space);
  return semiring;
}

TextEpilogueOfCall::TextEpilogueOfCall(Contraction& p, const rigel_epilogue& given, const TextParameters& parameters,
                                       const runtime::Semiring* from_text)
    : epilogue_(given.epilogue) {
  set_parameters(epilogue_, "epilogue", parameters, p.execution.space);
  if (!from_text) require_plus_times(p);
  in_words_of_c([&] {
    const runtime::Semiring& semiring = from_text ? *from_text : runtime::detail::product_of(p.element);
    call_.emplace(epilogue_, p.execution.space, semiring.result(), p.c, p.function);
    p.program = nullptr;
    p.epilogue_object = &call_->text;
    if (from_text) return;
    if (p.execution.space == Space::cuda)
      runtime::detail::set_products(p, epilogue_);
    else
      runtime::detail::set_semiring(p, semiring);
  });
}

void set_in(Contraction& p, const runtime::Semiring& semiring, rigel_type accumulator) {
  if (accumulator != 0 && semiring.accumulator() == Scalar::other)
    refuse("args.accumulator is " + std::to_string(accumulator) + ", expected 0: semiring '" + semiring.name() +
           "' has an accumulator of several fields");
  if (accumulator != 0 && scalar_of(accumulator, "args.accumulator") != semiring.accumulator())
    throw Error(Code::unsupported, "semiring '" + semiring.name() + "' accumulated in " +
                                       rigel::name(scalar_of(accumulator, "args.accumulator")) +
                                       " is not to be had, expected " + rigel::name(semiring.accumulator()));
  in_words_of_c([&] { runtime::detail::set_semiring(p, semiring); });
}

runtime::Derivative derivative_of(const rigel_derivative& given, std::span<const rigel_parameter> parameters) {
  runtime::Derivative derivative = given.derivative;
  for (const rigel_parameter& one : parameters) set_parameter(derivative, "derivative", one.name, one.value);
  return derivative;
}

}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_semiring_create(const rigel_semiring_args* args, rigel_semiring** semiring) {
  return guarded("rigel_semiring_create", [&] {
    rigel_semiring*& made = result(semiring, "semiring");
    made = nullptr;
    const rigel::runtime::Texts texts = texts_of(checked(args, "args"));
    made = in_words_of_c([&] { return new rigel_semiring{rigel::runtime::Semiring(texts)}; });
  });
}

void rigel_semiring_destroy(rigel_semiring* semiring) { delete semiring; }

rigel_code rigel_semiring_set(rigel_semiring* semiring, const char* name, double value) {
  return guarded("rigel_semiring_set",
                 [&] { set_parameter(result(semiring, "semiring").semiring, "semiring", name, value); });
}

rigel_code rigel_semiring_compile(rigel_semiring* semiring, rigel_handle* handle) {
  return on_handle("rigel_semiring_compile", handle, [&](const rigel_handle& h) {
    const rigel_semiring& given = result(semiring, "semiring");
    in_words_of_c([&] { given.semiring.compile(h.execution); });
  });
}

rigel_code rigel_epilogue_create(const rigel_epilogue_args* args, rigel_epilogue** epilogue) {
  return guarded("rigel_epilogue_create", [&] {
    rigel_epilogue*& made = result(epilogue, "epilogue");
    made = nullptr;
    const rigel::runtime::EpilogueTexts texts = texts_of(checked(args, "args"));
    made = in_words_of_c([&] { return new rigel_epilogue{rigel::runtime::Epilogue(texts)}; });
  });
}

void rigel_epilogue_destroy(rigel_epilogue* epilogue) { delete epilogue; }

rigel_code rigel_epilogue_set(rigel_epilogue* epilogue, const char* name, double value) {
  return guarded("rigel_epilogue_set",
                 [&] { set_parameter(result(epilogue, "epilogue").epilogue, "epilogue", name, value); });
}

rigel_code rigel_epilogue_compile(rigel_epilogue* epilogue, rigel_handle* handle, const rigel_semiring* semiring,
                                  rigel_type element) {
  return on_handle("rigel_epilogue_compile", handle, [&](const rigel_handle& h) {
    const rigel::runtime::Epilogue& given = result(epilogue, "epilogue").epilogue;
    if (semiring && element != 0) refuse("element is " + std::to_string(element) + ", expected 0 with a semiring");
    in_words_of_c([&] {
      if (semiring)
        semiring->semiring.compile(h.execution, &given);
      else
        compile_products(h, given, scalar_of(element, "element"));
    });
  });
}

rigel_code rigel_derivative_create(const rigel_derivative_args* args, rigel_derivative** derivative) {
  return guarded("rigel_derivative_create", [&] {
    rigel_derivative*& made = result(derivative, "derivative");
    made = nullptr;
    const rigel::runtime::DerivativeTexts texts = texts_of(checked(args, "args"));
    made = in_words_of_c([&] { return new rigel_derivative{rigel::runtime::Derivative(texts)}; });
  });
}

void rigel_derivative_destroy(rigel_derivative* derivative) { delete derivative; }

rigel_code rigel_derivative_set(rigel_derivative* derivative, const char* name, double value) {
  return guarded("rigel_derivative_set",
                 [&] { set_parameter(result(derivative, "derivative").derivative, "derivative", name, value); });
}

rigel_code rigel_derivative_compile(rigel_derivative* derivative, rigel_handle* handle) {
  return on_handle("rigel_derivative_compile", handle, [&](const rigel_handle& h) {
    const rigel_derivative& given = result(derivative, "derivative");
    in_words_of_c([&] { given.derivative.compile(h.execution); });
  });
}

rigel_code rigel_semiring_statistics(rigel_statistics* statistics) {
  return guarded("rigel_semiring_statistics", [&] {
    checked(statistics, "statistics");
    const rigel::runtime::Statistics all = rigel::runtime::statistics();
    *statistics = {sizeof *statistics, all.compiled, all.from_disk, all.from_memory};
  });
}
