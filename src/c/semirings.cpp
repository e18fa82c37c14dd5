// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "semirings.hpp"

#include "operands.hpp"

#include <cstring>
#include <vector>

namespace rigel::c {
namespace {

struct Named {
  std::string_view name;
  std::vector<const SemiringInfo*> types;  // those whose accumulator is the usual one come first
};

template <class S>
const SemiringInfo* info_of() {
  static_assert(sizeof(S) <= Semiring::capacity);
  return &semiring_info<S>();
}

// The zoo, in the order of its list.
const std::vector<Named>& zoo() {
  static const std::vector<Named> all = [] {
    std::vector<Named> list;
    detail::for_each_of_zoo([&]<class List>() {
      [&]<class... S>(type_list<S...>) { list.push_back({detail::name_of(List{}), {info_of<S>()...}}); }(List{});
    });
    return list;
  }();
  return all;
}

const Named& named(const char* name) {
  if (name)
    for (const Named& one : zoo())
      if (one.name == name) return one;
  std::vector<std::string_view> names;
  for (const Named& one : zoo()) names.push_back(one.name);
  refuse_name(name, "semiring", names);
}

const SemiringInfo& typed(const Named& semiring, Scalar element, rigel_type accumulator) {
  const bool any = accumulator == 0;
  const Scalar wanted = any ? Scalar::other : scalar_of(accumulator, "accumulator");
  for (const SemiringInfo* info : semiring.types)
    if (info->element == element && (any || info->accumulator == wanted)) return *info;
  throw Error(Code::unsupported, "semiring '" + std::string(semiring.name) + "' of " + rigel::name(element) +
                                     (any ? "" : std::string(" accumulated in ") + rigel::name(wanted)) +
                                     " is not to be had, expected one of " +
                                     listed(semiring.types, [](const SemiringInfo* info) {
                                       const bool is_struct = info->accumulator == Scalar::other;
                                       return std::string(rigel::name(info->element)) +
                                              (is_struct ? "" : std::string(" in ") + rigel::name(info->accumulator));
                                     }));
}

void set_parameter(Semiring& s, const rigel_parameter& given) {
  const auto& all = s.info->hyperparameters;
  for (const Hyperparameter& h : all)
    if (h.name == given.name) return h.set(s.object, given.value);
  throw Error(Code::not_found, "semiring '" + std::string(s.info->name) + "' has no hyperparameter '" + given.name +
                                   "', expected " +
                                   (all.empty() ? "none" : listed(all, [](const Hyperparameter& h) { return h.name; })));
}

}  // namespace

void refuse_name(const char* given, const char* what, std::span<const std::string_view> names) {
  throw Error(Code::not_found, (given ? '\'' + std::string(given) + "' is no " : "NULL is the name of no ") + what +
                                   ", expected one of " + listed(names, [](std::string_view name) { return name; }));
}

Semiring semiring_of(const char* name, Scalar element, rigel_type accumulator, std::span<const rigel_parameter> parameters) {
  Semiring s{.info = &typed(named(name), element, accumulator)};
  std::memcpy(s.object, s.info->sample, s.info->size);
  for (const Hyperparameter& h : s.info->hyperparameters) h.set(s.object, h.default_value);
  for (const rigel_parameter& p : parameters) set_parameter(s, p);
  return s;
}

}  // namespace rigel::c
