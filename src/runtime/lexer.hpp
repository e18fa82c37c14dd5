// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tokens of the language of texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rigel::runtime {

enum class Kind { name, integer, real, sign, end };

/// A token, and where it stands in the text.
struct Token {
  Kind kind = Kind::end;
  std::string text;
  int line = 1, column = 1;
};

/// The tokens of a text; the last one is its end. Throws Error(invalid_argument) at what is none. `function` and `owner` name
/// the text in messages.
std::vector<Token> tokens_of(std::string_view function, std::string_view text, const char* owner = "runtime::Semiring");

/// The tokens of a text, without blanks and comments.
std::string joined_tokens(std::string_view text);

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace rigel::runtime
