// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes JSON (RFC 8259): values, and objects and arrays of them.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <string>
#include <string_view>

namespace rigel::c::json {

inline std::string value(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}
inline std::string value(const char* text) { return value(std::string_view(text)); }
inline std::string value(bool b) { return b ? "true" : "false"; }
template <std::integral T>
  requires(!std::same_as<T, bool>)
std::string value(T number) {
  return std::to_string(number);
}
/// null if it is not finite.
inline std::string value(double number) {
  if (!std::isfinite(number)) return "null";
  char text[32];  // the shortest text that is read back as this number, in any locale
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

/// Values, or members of an object, with commas between them.
class List {
 public:
  explicit List(char open, char close) : text_(1, open), close_(close) {}
  List& add_text(const std::string& text) {
    if (text_.size() > 1) text_ += ", ";
    text_ += text;
    return *this;
  }
  std::string text() const { return text_ + close_; }

 private:
  std::string text_;
  char close_;
};

class Array {
 public:
  template <class T>
  Array& add(const T& element) {
    list_.add_text(value(element));
    return *this;
  }
  Array& add_json(const std::string& element) {
    list_.add_text(element);
    return *this;
  }
  std::string text() const { return list_.text(); }

 private:
  List list_{'[', ']'};
};

class Object {
 public:
  template <class T>
  Object& add(const char* name, const T& member) {
    list_.add_text(value(name) + ": " + value(member));
    return *this;
  }
  Object& add_json(const char* name, const std::string& member) {
    list_.add_text(value(name) + ": " + member);
    return *this;
  }
  std::string text() const { return list_.text(); }

 private:
  List list_{'{', '}'};
};

}  // namespace rigel::c::json
