// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RIGEL_DEBUG=runtime: what becomes of texts, on stderr.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace rigel::runtime {

/// Whether RIGEL_DEBUG, words with commas between them, has `runtime`.
inline bool is_debugging() {
  const char* const variable = std::getenv("RIGEL_DEBUG");
  std::string_view words = variable ? variable : "";
  while (!words.empty()) {
    const auto end = words.find(',');
    if (words.substr(0, end) == "runtime") return true;
    words = end == words.npos ? std::string_view() : words.substr(end + 1);
  }
  return false;
}

/// A line on stderr, if is_debugging(). One call writes it: lines of several processes do not mix.
inline void say(const std::string& text) {
  if (is_debugging()) std::fputs(("rigel runtime: " + text + '\n').c_str(), stderr);
}

/// Milliseconds since it was made, in words.
class Stopwatch {
 public:
  std::string text() const {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.1f ms",
                  std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_).count());
    return digits;
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Milliseconds of one step after the other, in words: "LLVM 61.0 ms, driver 230.1 ms".
class Steps {
 public:
  /// The step that ends now.
  void end(const char* step) {
    text_ += (text_.empty() ? "" : ", ") + (step + (' ' + since_.text()));
    since_ = {};
  }
  const std::string& text() const { return text_; }

 private:
  Stopwatch since_;
  std::string text_;
};

}  // namespace rigel::runtime
