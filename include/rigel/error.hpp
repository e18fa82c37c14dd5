// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors: an exception with a code, and a message that names the argument, its extents and what was expected.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace rigel {

enum class Code {
  ok,
  invalid_argument,  // extents, layouts, aliasing, a bad option
  unsupported,       // no kernel covers the problem, or the one that was named does not
  not_found,         // no kernel of that name
  duplicate,         // a kernel of that name is registered already
  out_of_memory,
  device             // the CUDA runtime reported a failure; the message carries its text
};

/// The answer to "does this kernel cover that problem?": yes, or a code and the reason.
struct Status {
  Code code = Code::ok;
  std::string reason = {};
  explicit operator bool() const { return code == Code::ok; }
};

/// Base of all of Rigel's exceptions.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const noexcept { return code_; }

 private:
  Code code_;
};

}  // namespace rigel
