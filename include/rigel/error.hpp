// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors: an exception with a code and a message. The message names the argument, its extents and what was expected.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace rigel {

enum class Code {
  ok,
  invalid_argument,  // extents, layouts, aliasing, or an option
  unsupported,       // no kernel covers the problem, or the named one does not
  not_found,         // no kernel has that name
  duplicate,         // a registered kernel has that name already
  out_of_memory,
  device  // the CUDA runtime reported a failure; the message carries its text
};

/// Why a kernel does not cover a problem.
enum class Decline : std::uint8_t {
  none,          // it covers the problem
  key,           // it is for another semiring or other types
  name,          // the call names another kernel
  space,         // it does not run on the execution space
  architecture,  // it does not run on this GPU
  processor,     // it does not run on this host's processor
  promises,      // it promises less than the call requires
  precision,     // it rounds terms more than the call accepts
  accuracy,      // its error bound is too large for this problem
  bit_class,     // it is not of the bit class that this batch_invariant call gets
  accumulate,    // it cannot start from a value of C
  epilogue,      // it does not take this epilogue
  result,        // it does not store C's type
  layout,        // it does not take operands with these strides or at these addresses
  extents,       // it does not take these extents
  batches,       // it does not take a batch, or a semiring per batch
  memory,        // it needs more shared memory than a block can have
  other          // the reason of a user's kernel: see the text
};

/// The answer to "does this kernel cover that problem?": yes, or why not, as a code and in words.
struct Status {
  Decline decline = Decline::none;
  std::string reason = {};
  explicit operator bool() const { return decline == Decline::none; }
};

/// Base of all of Rigel's exceptions.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message, Decline decline = Decline::none)
      : std::runtime_error(message), code_(code), decline_(decline) {}
  Code code() const noexcept { return code_; }
  /// For Code::unsupported of a kernel that the call chose by its full name: why it does not cover the problem. Else none.
  Decline decline() const noexcept { return decline_; }

 private:
  Code code_;
  Decline decline_;
};

}  // namespace rigel
