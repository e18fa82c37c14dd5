// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the answers of CUDA's runtime mean for a stream's capture.
#pragma once

#include <rigel/detail/capture.hpp>
#include <rigel/error.hpp>

#include <string>

namespace rigel::detail {

/// capture_of() by a runtime, CUDA's or a test's, that asks about one stream:
///     Error is_capturing(Status&), success and implicit     cudaStreamIsCapturing() and two of its results
///     none, invalid                                         two values of Status; the third is that of a capture
///     clear_error(), text(Error)
template <class Runtime>
Capture capture_by(const Runtime& runtime, const char* function) {
  typename Runtime::Status status = Runtime::none;
  const typename Runtime::Error error = runtime.is_capturing(status);
  if (error != Runtime::success) {
    runtime.clear_error();  // or the next launch reports it
    if (error == Runtime::implicit) return Capture::of_another;
    throw Error(Code::device, std::string(function) + ": cudaStreamIsCapturing: " + runtime.text(error));
  }
  if (status == Runtime::invalid)
    throw Error(Code::device,
                std::string(function) +
                    ": the capture of the stream is invalid because of an earlier error; expected the end of the "
                    "capture, and another one");
  return status == Runtime::none ? Capture::none : Capture::own;
}

/// is_captured() of a stream in this state.
inline bool is_captured(Capture capture, const char* function) {
  if (capture == Capture::of_another)
    throw Error(Code::invalid_argument, std::string(function) +
                                            ": the legacy stream takes no work while another stream of its device is being "
                                            "captured; expected another stream, or a call after the capture");
  return capture == Capture::own;
}

/// require_no_capture() of a stream in this state.
inline void require_no_capture(Capture capture, const char* function, const char* expected) {
  if (is_captured(capture, function))
    throw Error(Code::invalid_argument,
                std::string(function) + ": the stream of the execution space is being captured, expected " + expected);
}

}  // namespace rigel::detail
