// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether work on a stream runs, or becomes part of a CUDA graph.
#pragma once

#include <rigel/call.hpp>

#include <cstdint>

namespace rigel::detail {

enum class Capture : std::uint8_t {
  none,       // it runs. So it does on hosts
  own,        // the stream is being captured
  of_another  // it is the legacy stream, which takes no work while a blocking stream of its device is being captured
};

/// The state of an execution's stream. Throws Error(device), whose message begins with `function`, if CUDA's runtime fails, or if an earlier
/// error has made the capture invalid: then the stream takes nothing until the capture is ended. CUDA forgets its error.
Capture capture_of(const Execution& execution, const char* function);

/// Whether the stream is being captured, for calls that then use it. Throws as capture_of() does, and Error(invalid_argument) for
/// Capture::of_another.
bool is_captured(const Execution& execution, const char* function);

/// For calls that wait for their stream, or whose copies a graph would repeat: throws Error(invalid_argument) if it is being captured, and as
/// is_captured() does. `expected` ends the message.
void require_no_capture(const Execution& execution, const char* function, const char* expected);

}  // namespace rigel::detail
