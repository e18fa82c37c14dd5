// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "texts.hpp"

#include "handle.hpp"
#include "operands.hpp"
#include "semirings.hpp"

#include <algorithm>

namespace rigel::c {
namespace {

void set_parameter(runtime::Semiring& semiring, const char* name, double value) {
  if (!name) refuse("name is NULL");
  const std::vector<std::string> all = semiring.hyperparameters();
  if (std::find(all.begin(), all.end(), name) == all.end())
    throw Error(Code::not_found, "semiring '" + semiring.name() + "' has no hyperparameter '" + name + "', expected " +
                                     (all.empty() ? "none" : listed(all, [](const std::string& one) { return one; })));
  in_words_of_c([&] { semiring.set(name, value); });
}

std::string text_of_member(const char* given) { return given ? given : ""; }

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
  for (const rigel_parameter& one : parameters_of(args.parameters, args.parameters_count))
    texts.hyperparameters.push_back({one.name, one.value});
  return texts;
}

}  // namespace

runtime::Semiring semiring_of(const rigel_semiring& given, std::span<const rigel_parameter> parameters) {
  runtime::Semiring semiring = given.semiring;
  for (const rigel_parameter& one : parameters) set_parameter(semiring, one.name, one.value);
  return semiring;
}

void set_in(Contraction& p, const runtime::Semiring& semiring, rigel_type accumulator) {
  if (accumulator != 0 && scalar_of(accumulator, "args.accumulator") != semiring.accumulator())
    throw Error(Code::unsupported, "semiring '" + semiring.name() + "' accumulated in " +
                                       rigel::name(scalar_of(accumulator, "args.accumulator")) +
                                       " is not to be had, expected " + rigel::name(semiring.accumulator()));
  in_words_of_c([&] { runtime::detail::set_semiring(p, semiring); });
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
  return guarded("rigel_semiring_set", [&] { set_parameter(result(semiring, "semiring").semiring, name, value); });
}

rigel_code rigel_semiring_compile(rigel_semiring* semiring, rigel_handle* handle) {
  return on_handle("rigel_semiring_compile", handle, [&](const rigel_handle& h) {
    const rigel_semiring& given = result(semiring, "semiring");
    in_words_of_c([&] { given.semiring.compile(h.execution); });
  });
}

rigel_code rigel_semiring_statistics(rigel_statistics* statistics) {
  return guarded("rigel_semiring_statistics", [&] {
    checked(statistics, "statistics");
    const rigel::runtime::Statistics all = rigel::runtime::statistics();
    *statistics = {sizeof *statistics, all.compiled, all.from_disk, all.from_memory};
  });
}
