// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts to tokens, and Errors about places in texts.
#include "lexer.hpp"

#include "text.hpp"

#include <algorithm>

namespace rigel::runtime {

void refuse_text(std::string_view function, std::string_view text, int line, int column, const std::string& message,
                 const char* owner) {
  std::string_view row = text;
  for (int i = 1; i < line && row.find('\n') != row.npos; ++i) row.remove_prefix(row.find('\n') + 1);
  row = row.substr(0, row.find('\n'));
  // Of a long line, what is near.
  constexpr std::size_t near = 60;
  std::size_t at = static_cast<std::size_t>(column > 1 ? column - 1 : 0);
  std::string before, after;
  if (at > near && row.size() > 2 * near) {
    row.remove_prefix(std::min(at - near, row.size()));
    before = "...";
    at = before.size() + near;
  }
  if (row.size() > at + near && row.size() > 2 * near) {
    row = row.substr(0, at + near - before.size());
    after = "...";
  }
  std::string shown = before;
  for (const char c : row) shown += c >= ' ' && c < 127 ? c : ' ';
  throw Error(Code::invalid_argument, std::string(owner) + ": " + std::string(function) + ", line " + std::to_string(line) +
                                          ", column " + std::to_string(column) + ": " + message + "\n  " + shown + after +
                                          "\n  " + std::string(at, ' ') + "^");
}

namespace {

constexpr std::size_t most_characters = 4096;

class Lexer {
 public:
  Lexer(std::string_view function, std::string_view text, const char* owner)
      : owner_(owner), function_(function), text_(text) {}

  std::vector<Token> all() {
    if (text_.size() > most_characters)
      refuse_text(function_, text_, 1, 1,
                  "the text has " + std::to_string(text_.size()) + " characters, expected at most " +
                      std::to_string(most_characters),
                  owner_);
    std::vector<Token> tokens;
    for (;;) {
      tokens.push_back(next());
      if (tokens.back().kind == Kind::end) return tokens;
    }
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void take() {
    if (text_[at_++] == '\n') {
      ++line_;
      column_ = 1;
    } else {
      ++column_;
    }
  }
  [[noreturn]] void refuse(const std::string& message) const {
    refuse_text(function_, text_, line_, column_, message, owner_);
  }

  void skip() {
    for (;;) {
      const char c = peek();
      if (at_ < text_.size() && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
        take();
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < text_.size() && peek() != '\n') take();
      } else if (c == '/' && peek(1) == '*') {
        refuse("'/*' is no sign of the language, whose comments begin with '//'");
      } else {
        return;
      }
    }
  }

  Token next() {
    skip();
    Token token{Kind::end, {}, line_, column_};
    if (at_ == text_.size()) return token;
    const char c = peek();
    if (is_letter(c)) {
      token.kind = Kind::name;
      while (is_letter(peek()) || is_digit(peek())) add(token);
      if ((token.text == "rigel" || token.text == "fast") && peek() == ':' && peek(1) == ':') {
        add(token), add(token);
        if (!is_letter(peek())) refuse("expected a function's name after '" + token.text + "'");
        while (is_letter(peek()) || is_digit(peek())) add(token);
      }
      return token;
    }
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number(token);
    static constexpr std::string_view two[] = {"==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "+=", "-=", "*=", "/=", "++"};
    static constexpr std::string_view one = "+-*/%<>=!&|^~?:(){},;.";
    token.kind = Kind::sign;
    for (const std::string_view sign : two)
      if (text_.substr(at_, 2) == sign) {
        add(token), add(token);
        return token;
      }
    if (one.find(c) != one.npos) {
      add(token);
      return token;
    }
    if (c == '#') refuse("'#' is no sign of the language, which has no preprocessor");
    if (c == '[') refuse("'[' is no sign of the language, which has neither arrays nor lambdas nor attributes");
    if (c >= ' ' && c < 127) refuse(std::string("'") + c + "' is no sign of the language");
    refuse("a character outside ASCII, or one that cannot be printed");
  }

  Token number(Token token) {
    bool real = false;
    const bool hexadecimal = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
    if (hexadecimal) add(token), add(token);
    const auto is_digit_here = [&](char c) {
      return is_digit(c) || (hexadecimal && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
    };
    for (;;) {
      const char c = peek();
      const bool exponent = hexadecimal ? c == 'p' || c == 'P' : c == 'e' || c == 'E';
      if (is_digit_here(c)) {
        add(token);
      } else if (c == '.') {
        real = true;
        add(token);
      } else if (exponent) {
        real = true;
        add(token);
        if (peek() == '+' || peek() == '-') add(token);
        if (!is_digit(peek())) refuse("expected the digits of an exponent");
        while (is_digit(peek())) add(token);
        break;
      } else {
        break;
      }
    }
    if (real && !hexadecimal && peek() == 'f') add(token);
    if (is_letter(peek()) || is_digit(peek()) || peek() == '.')
      refuse("this does not belong to the number '" + token.text + "'");
    token.kind = real ? Kind::real : Kind::integer;
    return token;
  }

  void add(Token& token) {
    token.text += peek();
    take();
  }

  const char* owner_;
  std::string_view function_, text_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view function, std::string_view text, const char* owner) {
  return Lexer(function, text, owner).all();
}

std::string joined_tokens(std::string_view text) {
  std::string all;
  for (const Token& token : tokens_of("", text)) all += token.text;
  return all;
}

}  // namespace rigel::runtime
