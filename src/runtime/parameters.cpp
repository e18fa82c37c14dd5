// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "parameters.hpp"

#include "text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace rigel::runtime {

void refuse(const char* owner, const std::string& message) {
  throw Error(Code::invalid_argument, std::string(owner) + ": " + message);
}

Scalar accumulator_of(Scalar element) { return element == Scalar::f16 || element == Scalar::bf16 ? Scalar::f32 : element; }

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > 64 || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  return true;
}

void check_hyperparameters(const char* owner, const std::vector<Hyperparameter>& list,
                           std::initializer_list<std::string_view> taken) {
  if (list.size() > rigel::detail::most_text_parameters)
    refuse(owner, std::to_string(list.size()) + " hyperparameters, expected at most " +
                      std::to_string(rigel::detail::most_text_parameters));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string& name = list[i].name;
    if (!is_name(name) || is_reserved_name(name, taken))
      refuse(owner, "hyperparameter " + std::to_string(i + 1) + " is called '" + name +
                        "', expected letters, digits and '_', and no name that has a meaning in texts");
    for (std::size_t j = 0; j < i; ++j)
      if (list[j].name == name) refuse(owner, "two hyperparameters are called '" + name + "'");
  }
}

std::vector<std::string> names_of(const std::vector<Hyperparameter>& list) {
  std::vector<std::string> names;
  for (const Hyperparameter& one : list) names.push_back(one.name);
  return names;
}

namespace {

bool has_bytes_of(Scalar number, Scalar type) {
  return size_of(number) == 4 ? type == Scalar::f32 || type == Scalar::i32 : type == Scalar::f64 || type == Scalar::i64;
}
std::string expected_types(const FieldWords& words, Scalar number, Scalar element) {
  return std::string(size_of(number) == 4 ? "f32 or i32" : "f64 or i64") + " for " + words.elements + " of " +
         rigel::name(element);
}

}  // namespace

void check_fields(const char* owner, const FieldWords& words, const std::vector<Field>& fields, Scalar number,
                  Scalar element) {
  const std::string of = std::string(" of the ") + words.accumulator;
  if (fields.size() == 1 || fields.size() > rigel::detail::most_text_fields)
    refuse(owner, std::string("the ") + words.accumulator + " has " + std::to_string(fields.size()) +
                      (fields.size() == 1 ? " field" : " fields") + ", expected 2 to 4, or a type in their place");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!is_name(fields[i].name))
      refuse(owner, "field " + std::to_string(i + 1) + of + " is called '" + fields[i].name +
                        "', expected at most 64 letters, digits and '_'");
    if (!has_bytes_of(number, fields[i].type))
      refuse(owner, "field '" + fields[i].name + "'" + of + " has type " + rigel::name(fields[i].type) + ", expected " +
                        expected_types(words, number, element));
    for (std::size_t j = 0; j < i; ++j)
      if (fields[j].name == fields[i].name) refuse(owner, "two fields" + of + " are called '" + fields[i].name + "'");
  }
}

void check_result_type(const char* owner, const FieldWords& words, Scalar type, Scalar number, Scalar element) {
  if (type != Scalar::other && !has_bytes_of(number, type))
    refuse(owner,
           std::string("the result type is ") + rigel::name(type) + ", expected " + expected_types(words, number, element));
}

namespace {

std::size_t index_of(const Owner& owner, std::string_view name) {
  std::string names;
  for (std::size_t i = 0; i < owner.list.size(); ++i) {
    if (owner.list[i].name == name) return i;
    names += (i ? ", " : "") + owner.list[i].name;
  }
  refuse(owner.owner, "'" + owner.name + "' has no hyperparameter '" + std::string(name) + "', expected " +
                          (names.empty() ? "none, as it has none" : "one of " + names));
}

// Reads and writes a number of a type.
template <class T>
double read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}
template <class T>
bool write(std::byte* to, double value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr double limit = sizeof(T) == 4 ? 0x1p31 : 0x1p63;
    if (!(value >= -limit && value < limit && value == std::floor(value))) return false;
  }
  const T converted = static_cast<T>(value);
  std::memcpy(to, &converted, sizeof converted);
  return true;
}

}  // namespace

void set_number(const Owner& owner, rigel::detail::TextValues& values, std::string_view name, double value) {
  const std::size_t index = index_of(owner, name);
  std::byte* const to = values.numbers.data() + index * size_of(owner.type);
  bool held = false;
  switch (owner.type) {
    case Scalar::f64: held = write<double>(to, value); break;
    case Scalar::i32: held = write<std::int32_t>(to, value); break;
    case Scalar::i64: held = write<std::int64_t>(to, value); break;
    default: held = write<float>(to, value); break;
  }
  if (held) {
    std::erase_if(values.views, [&](const auto& view) { return view.index == index; });
    return;
  }
  char digits[64];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  refuse(owner.owner, "hyperparameter '" + std::string(name) + "' of '" + owner.name + "' cannot be " +
                          std::string(digits, end) + ", expected a whole number that " + rigel::name(owner.type) + " holds");
}

double number_of(const Owner& owner, const rigel::detail::TextValues& values, std::string_view name) {
  const std::size_t index = index_of(owner, name);
  const std::byte* from = values.numbers.data() + index * size_of(owner.type);
  for (const rigel::detail::TextView& view : values.views)
    if (view.index == index) {
      if (view.count > 1)
        refuse(owner.owner, "hyperparameter '" + std::string(name) + "' of '" + owner.name + "' is a view of " +
                                std::to_string(view.count) + " numbers, expected one to get");
      if ((view.spaces & host_spaces) == 0)
        refuse(owner.owner, "hyperparameter '" + std::string(name) + "' of '" + owner.name +
                                "' is in memory that the host cannot read, expected memory that it can read to get it");
      from = static_cast<const std::byte*>(view.data);
    }
  switch (owner.type) {
    case Scalar::f64: return read<double>(from);
    case Scalar::i32: return read<std::int32_t>(from);
    case Scalar::i64: return read<std::int64_t>(from);
    default: return read<float>(from);
  }
}

void set_view(const Owner& owner, rigel::detail::TextValues& values, std::string_view name, Scalar type,
              rigel::detail::TextView view) {
  view.index = index_of(owner, name);
  const std::string what = "the view that is hyperparameter '" + std::string(name) + "' of '" + owner.name + "'";
  if (type != owner.type)
    refuse(owner.owner, what + " holds elements of type " + rigel::name(type) + ", expected " + rigel::name(owner.type));
  if (view.count < 1 || !view.data)
    refuse(owner.owner, what + " has " + std::to_string(view.count) + " elements" + (view.data ? "" : " and no data") +
                            ", expected one, or one for each matrix of a batch");
  std::erase_if(values.views, [&](const auto& other) { return other.index == view.index; });
  values.views.push_back(std::move(view));
}

void require_views(const Owner& owner, const rigel::detail::TextValues& values, Space space, std::int64_t batches,
                   const char* batch) {
  for (const rigel::detail::TextView& view : values.views) {
    const std::string what =
        "the view that is hyperparameter '" + owner.list[view.index].name + "' of '" + owner.name + "' ";
    if ((view.spaces & bit(space)) == 0)
      refuse(owner.owner, what + "is in memory that space " + rigel::name(space) +
                              " cannot read, expected memory that the call's execution space can access");
    if (view.count != 1 && view.count != batches)
      refuse(owner.owner, what + "has " + std::to_string(view.count) + " elements, expected " + std::to_string(batches) +
                              ", one for each " + batch + ", or one for all");
  }
}

}  // namespace rigel::runtime

namespace rigel::detail {

std::vector<std::byte> TextValues::read(std::size_t bytes, std::int64_t first, std::int64_t batches) const {
  const std::size_t size = bytes / most_text_parameters;
  const std::int64_t count = differ() ? batches : 1;
  std::vector<std::byte> all(static_cast<std::size_t>(count) * bytes);
  for (std::int64_t l = 0; l < count; ++l) {
    std::byte* const to = all.data() + static_cast<std::size_t>(l) * bytes;
    std::memcpy(to, numbers.data(), bytes);
    for (const TextView& view : views) {
      const std::int64_t element = view.count > 1 ? (first + l) * view.stride : 0;
      std::memcpy(to + view.index * size,
                  static_cast<const std::byte*>(view.data) + element * static_cast<std::int64_t>(size), size);
    }
  }
  return all;
}

}  // namespace rigel::detail
