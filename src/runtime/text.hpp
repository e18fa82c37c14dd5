// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The language of semirings as text: texts become a C++ source that computes all lanes of a vector at once. Only what this
// grammar knows reaches the compiler; names and numbers are written out again, never copied.
#pragma once

#include <rigel/detail/text.hpp>
#include <rigel/runtime.hpp>

#include <string>

namespace rigel::runtime {

/// The body of a function, as C++ on vectors.
struct Body {
  std::string code;
  bool is_large = false;  // so that it is compiled once, and called
};

/// What the texts of a semiring say, once they are checked.
struct Parsed {
  Body multiply, add, identity, step, result;  // the step's is empty if there is none, and so is the result's
  rigel::detail::TextForm form = rigel::detail::TextForm::plain;
  bool is_minimum = false;  // of an ordered form: ⊕ is a minimum, else a maximum
  // Whether exponentials, logarithms, powers or other functions are called whose last bits differ between platforms.
  bool calls_functions = false;
  int long_operations = 0;  // operations of dozens of instructions: those functions, divisions and conversions to integers
};

/// Whether a name has a meaning in texts, so that no hyperparameter can have it.
bool is_reserved_name(std::string_view name);

/// Reads and checks texts. Throws Error(invalid_argument) as Semiring's constructor does.
Parsed parse(const Texts& texts, Scalar accumulator);

/// The C++ source of a semiring for vectors of `lanes` accumulators; of 0 lanes, for numbers on a GPU.
std::string source_of(const Parsed& parsed, Scalar accumulator, int lanes);

/// An Error about a place in a text: the text's name, line and column, the message, and the line with a caret under the place.
/// Lines and columns count from 1.
[[noreturn]] void refuse_text(std::string_view function, std::string_view text, int line, int column,
                              const std::string& message);

/// The line and the column of a place as source_of() writes them in #line directives.
inline constexpr int columns_per_line = 10000;

}  // namespace rigel::runtime
