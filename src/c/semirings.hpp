// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings of the zoo by name.
#pragma once

#include "guard.hpp"

#include <rigel/contraction.hpp>
#include <rigel/semiring_info.hpp>

#include <span>

namespace rigel::c {

/// A semiring's object, and its facts.
struct Semiring {
  static constexpr std::size_t capacity = 32;

  const SemiringInfo* info = nullptr;
  alignas(16) std::byte object[capacity] = {};

  /// Makes it the problem's; it outlives the problem.
  void set_in(Contraction& p) const {
    p.semiring = {info->name, info->type};
    p.element = info->element;
    p.accumulator = info->accumulator;
    p.semiring_object = object;
  }
};

/// The parameters that a caller names, which must be `count` with names. `member` is their name in messages.
template <class Parameter>
std::span<const Parameter> parameters_of(const Parameter* parameters, std::int32_t count,
                                         const char* member = "parameters") {
  if (count < 0 || (count > 0 && !parameters))
    refuse(std::string(member) + "_count is " + std::to_string(count) + ", expected the number of " + member +
           (parameters ? "" : ", which are NULL"));
  for (int i = 0; i < count; ++i)
    if (!parameters[i].name) refuse(std::string(member) + '[' + std::to_string(i) + "].name is NULL");
  return {parameters, static_cast<std::size_t>(count)};
}

/// The semiring of this name for these elements, its hyperparameters as `parameters` says, and their defaults for the rest.
/// `accumulator` is a code, 0 for the usual one of the elements. Throws Error(not_found) for a name that it does not know, and
/// Error(unsupported) for types that the semiring does not take; the message lists those that there are.
Semiring semiring_of(const char* name, Scalar element, rigel_type accumulator, std::span<const rigel_parameter> parameters);

/// "'x' is no semiring, expected one of a, b, c": the message of Error(not_found).
[[noreturn]] void refuse_name(const char* given, const char* what, std::span<const std::string_view> names);

/// "f32, f64".
template <class List, class Name>
std::string listed(const List& list, const Name& name) {
  std::string text;
  for (const auto& one : list) text += (text.empty() ? "" : ", ") + std::string(name(one));
  return text;
}

}  // namespace rigel::c
