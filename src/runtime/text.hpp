// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The language of semirings as text: texts become a C++ source that computes all lanes of a vector at once. Only what this
// grammar knows reaches the compiler; names and numbers are written out again, never copied.
#pragma once

#include <rigel/detail/text.hpp>
#include <rigel/runtime.hpp>
#include <rigel/runtime_monoid.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace rigel::runtime {

struct DerivativeTexts;

/// The types of the language: a number's, or an accumulator of several fields.
enum class Type { boolean, i32, i64, f32, f64, fields };
/// The vector of a type in the C++ that the parser writes.
inline const char* vector(Type t) {
  static constexpr const char* all[] = {"M", "IV", "LV", "FV", "DV", "X"};
  return all[static_cast<int>(t)];
}

/// A field of an accumulator.
struct TypedField {
  std::string name;
  Type type = Type::f32;
};

/// The body of a function, as C++ on vectors.
struct Body {
  std::string code;
  bool is_large = false;  // so that it is compiled once, and called
};

/// The exponent of one of Rigel's powers: as C++, and its value if the text has it, or else which hyperparameter it is, if it is one.
struct Exponent {
  std::string code;
  std::optional<double> value = {};
  int hyperparameter = -1;
  /// Whether it is known to be one of 1/2, 1, 3/2, … 4, whose powers are products and a root, or a whole one of them.
  bool is_short() const {
    const double twice = 2 * value.value_or(0);
    return twice > 0 && twice <= 8 && twice == std::floor(twice);
  }
  bool is_whole() const { return is_short() && std::fmod(value.value_or(0), 1) == 0; }
};

/// What texts call.
struct Counts {
  // Whether exponentials, logarithms, powers or other functions are called whose last bits differ between platforms.
  bool calls_functions = false;
  std::vector<Exponent> exponents;  // that are numbers or made of hyperparameters
  bool powers_vary = false;         // whether there are others, which the text computes
  int long_operations = 0;  // operations of dozens of instructions: those functions, divisions and conversions to integers

  /// Those on GPUs, where powers of known whole exponents up to 4 are products.
  int long_operations_on_gpus() const {
    return long_operations - static_cast<int>(std::ranges::count_if(exponents, &Exponent::is_whole));
  }
  /// Those of a part, but for its exponents.
  void add(const Counts& part) {
    calls_functions = calls_functions || part.calls_functions;
    long_operations += part.long_operations;
  }
};

/// What the texts of a semiring say, once they are checked.
struct Parsed : Counts {
  Body multiply, add, identity, step, result;  // the step's is empty if there is none, and so is the result's
  rigel::detail::TextForm form = rigel::detail::TextForm::plain;
  bool is_minimum = false;  // of an ordered form: ⊕ is a minimum, else a maximum
  rigel::detail::TextJoin join = rigel::detail::TextJoin::none;
  std::vector<TypedField> fields;  // of the accumulator; none: it is a number
  Type result_type = Type::f32;
  bool reads_k = false;
  bool is_sum = false;  // ⊕ is x + y
  // The exponent of all powers of a GPU's tiles, which compute them by products or a table; without code if terms are not made so.
  Exponent exponent;
};

/// What the texts of a derivative say.
struct ParsedDerivative : Counts {
  Body multiply, accumulate, add, identity,
      result;  // the result's is empty if there is none, and so is add's if sums of parts cannot be joined
};

/// What the text of an epilogue says.
struct ParsedEpilogue : Counts {
  Body body;
  Type argument = Type::f32, result = Type::f32;
  Scalar element = Scalar::f32;  // of C
};

/// What the texts of a monoid say.
struct ParsedMonoid : Counts {
  Body of, join, identity, result;  // the result's is empty if there is none
  std::vector<TypedField> fields;   // of a state; none: it is a number
  Type result_type = Type::f32;
};

/// Whether a name has a meaning in texts, of itself or as one of `more`, so that no hyperparameter can have it.
bool is_reserved_name(std::string_view name, std::initializer_list<std::string_view> more);

/// Reads and checks texts. Throws Error(invalid_argument) as Semiring's constructor does.
Parsed parse(const Texts& texts, Scalar accumulator);
/// The same of a derivative.
ParsedDerivative parse(const DerivativeTexts& texts, Scalar accumulator);
/// The same of an epilogue, whose numbers and hyperparameters have type `number`, and which returns `result` for elements of type `element`.
ParsedEpilogue parse(const EpilogueTexts& texts, Scalar number, Scalar result, Scalar element);
/// The same of a monoid.
ParsedMonoid parse(const MonoidTexts& texts);

/// The C++ source of a semiring for vectors of `lanes` accumulators; of 0 lanes, for numbers on a GPU.
std::string source_of(const Parsed& parsed, Scalar accumulator, int lanes);
/// That of a derivative.
std::string source_of(const ParsedDerivative& parsed, Scalar accumulator, int lanes);
/// That of an epilogue: a function that takes rows; on a GPU one that stores a number, and one that gives it.
std::string source_of(const ParsedEpilogue& parsed, Scalar number, int lanes);
/// That of a monoid, for hosts: the functions of rigel/detail/text_monoid.hpp.
std::string source_of(const ParsedMonoid& parsed, Scalar number, int lanes);
/// What stores results of this type on a GPU where there is no epilogue from text.
std::string store_of_results(Type result);

/// An Error about a place in a text: the text's name, line and column, the message, and the line with a caret under the place.
/// Lines and columns count from 1.
[[noreturn]] void refuse_text(std::string_view function, std::string_view text, int line, int column,
                              const std::string& message, const char* owner = "runtime::Semiring");

/// The line and the column of a place as source_of() writes them in #line directives.
inline constexpr int columns_per_line = 10000;

}  // namespace rigel::runtime
