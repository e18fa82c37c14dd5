// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts of semirings, as far as the C++ source that the compiler gets. An input is a digit for the element type, then multiply, add, identity,
// step and result with '`' between them; p and q are hyperparameters.
#include "fuzz.hpp"

#include <src/runtime/lexer.hpp>
#include <src/runtime/text.hpp>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace {

using rigel::Scalar, rigel::runtime::Texts;

constexpr Scalar accumulators[] = {Scalar::f32, Scalar::f64, Scalar::i32, Scalar::i64};

// The source of texts; nothing if they are refused, in which case the message has a place in the text.
std::optional<std::string> source_of(const Texts& texts, Scalar accumulator) {
  try {
    const int lanes = accumulator == Scalar::f64 || accumulator == Scalar::i64 ? 8 : 16;
    return rigel::runtime::source_of(rigel::runtime::parse(texts, accumulator), accumulator, lanes);
  } catch (const rigel::Error& e) {
    const std::string_view message = e.what();
    fuzz::require(e.code() == rigel::Code::invalid_argument, "a text that is refused is an invalid argument");
    fuzz::require(message.starts_with("runtime::Semiring: ") && message.find(", line ") != message.npos &&
                      message.find(", column ") != message.npos && message.ends_with("^"),
                  "a message has a line, a column and a caret");
    fuzz::require(message.size() < 4096, "a message is short");
    for (std::size_t i = 0; i < message.size(); ++i) {
      constexpr std::string_view ellipsis = "…";  // of messages' own words
      if (message.substr(i).starts_with(ellipsis)) i += ellipsis.size();
      fuzz::require(message[i] == '\n' || (message[i] >= ' ' && message[i] != 127), "a message can be printed");
    }
    return std::nullopt;
  }
}

// Without the lines that say where in the text something stands.
std::string without_places(std::string_view source) {
  std::string rest;
  while (!source.empty()) {
    const auto end = std::min(source.find('\n'), source.size() - 1);
    if (!source.starts_with("#line ")) rest += source.substr(0, end + 1);
    source.remove_prefix(end + 1);
  }
  return rest;
}

// What stands around every text. Nothing of the kind comes from a text itself.
std::size_t count_of(std::string_view source, std::string_view word) {
  std::size_t count = 0;
  for (auto at = source.find(word); at != source.npos; at = source.find(word, at + 1)) ++count;
  return count;
}

// The same tokens, each in a line of its own.
std::string spread(const std::string& text) {
  std::string all;
  for (const auto& token : rigel::runtime::tokens_of("text", text)) all += token.text + "  // a comment\n";
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Scalar accumulator = accumulators[data[0] % 4];
  std::array<std::string, 5> parts;
  std::size_t part = 0;
  for (std::size_t i = 1; i < size && part < parts.size(); ++i)
    if (data[i] == '`')
      ++part;
    else
      parts[part] += static_cast<char>(data[i]);
  Texts texts;
  texts.hyperparameters = {{"p", 1}, {"q", 2}};
  std::string* const members[] = {&texts.multiply, &texts.add, &texts.identity, &texts.step, &texts.result};
  for (std::size_t i = 0; i < parts.size(); ++i) *members[i] = parts[i];

  const std::optional<std::string> source = source_of(texts, accumulator);
  if (!source) return 0;
  fuzz::require(source == source_of(texts, accumulator), "equal texts have equal sources");

  static const std::string plain =
      source_of({.multiply = "a * b", .add = "x + y", .hyperparameters = {{"p", 1}, {"q", 2}}}, Scalar::f32).value_or("");
  for (const char* const word :
       {"asm", "#include", "#define", "#pragma", "import", "goto", "operator", "new ", "delete", "std::", "\\", "//", "/*"})
    fuzz::require(count_of(*source, word) == count_of(plain, word),
                  "a text brings nothing of C++'s that the language lacks");
  long depth = 0;
  for (const char c : *source) {
    fuzz::require(c == '\n' || (c >= ' ' && c < 127), "a source is ASCII");
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    fuzz::require(depth >= 0, "braces match");
  }
  fuzz::require(depth == 0, "braces match");

  Texts spread_out = texts;
  std::string* const spread_members[] = {&spread_out.multiply, &spread_out.add, &spread_out.identity, &spread_out.step,
                                         &spread_out.result};
  bool fits = true;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!parts[i].empty()) {
      *spread_members[i] = spread(parts[i]);
      fits = fits && spread_members[i]->size() <= 4096;
    }
  if (!fits) return 0;
  const std::optional<std::string> again = source_of(spread_out, accumulator);
  fuzz::require(again && without_places(*again) == without_places(*source), "blanks and comments change no source");
  return 0;
}
