// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hyperparameters of semirings and epilogues from text: names, numbers, and views that are read when a kernel runs.
#pragma once

#include <rigel/runtime.hpp>

namespace rigel::runtime {

/// Throws unless an accumulator has no fields, or 2 to 4 with names and as many bytes as `number`, the type of numbers for `element`.
/// `words`: what messages call the accumulator, and what elements are.
struct FieldWords {
  const char *accumulator, *elements;
};
void check_fields(const char* owner, const FieldWords& words, const std::vector<Field>& fields, Scalar number,
                  Scalar element);
/// The same of the type of what a text makes of such an accumulator.
void check_result_type(const char* owner, const FieldWords& words, Scalar type, Scalar number, Scalar element);

/// What has hyperparameters, and their type.
struct Owner {
  const char* owner;  // "runtime::Semiring"
  const std::string& name;
  const std::vector<Hyperparameter>& list;
  Scalar type;
};

/// Throws Error(invalid_argument): "runtime::Semiring: …".
[[noreturn]] void refuse(const char* owner, const std::string& message);
/// The type of the numbers in which texts compute for elements of a type: float for those of 16 bits.
Scalar accumulator_of(Scalar element);
/// Whether a name is one of a semiring, a field or a hyperparameter.
bool is_name(std::string_view name);
/// Throws unless there are at most 16 hyperparameters, whose names differ and have no meaning in texts, of itself or as one of `taken`.
void check_hyperparameters(const char* owner, const std::vector<Hyperparameter>& list,
                           std::initializer_list<std::string_view> taken);
/// The names of hyperparameters, in their order.
std::vector<std::string> names_of(const std::vector<Hyperparameter>& list);

void set_number(const Owner& owner, rigel::detail::TextValues& values, std::string_view name, double value);
double number_of(const Owner& owner, const rigel::detail::TextValues& values, std::string_view name);
/// Makes a view of numbers of type `type` a hyperparameter's value.
void set_view(const Owner& owner, rigel::detail::TextValues& values, std::string_view name, Scalar type,
              rigel::detail::TextView view);
/// Throws unless each view is in memory that the space can read, and has one number, or one for each of `batches`, which `batch` names.
void require_views(const Owner& owner, const rigel::detail::TextValues& values, Space space, std::int64_t batches,
                   const char* batch = "matrix of C");

}  // namespace rigel::runtime
