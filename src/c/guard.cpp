// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "guard.hpp"

#include <rigel/config.hpp>

namespace rigel::c {
namespace {

static_assert(RIGEL_OK == int(Code::ok) && RIGEL_INVALID_ARGUMENT == int(Code::invalid_argument) &&
              RIGEL_UNSUPPORTED == int(Code::unsupported) && RIGEL_NOT_FOUND == int(Code::not_found) &&
              RIGEL_DUPLICATE == int(Code::duplicate) && RIGEL_OUT_OF_MEMORY == int(Code::out_of_memory) &&
              RIGEL_DEVICE == int(Code::device));

struct LastError {
  std::string text;
  const char* message = "";  // `text`, or a constant if there is no memory for it
};
thread_local LastError last;

}  // namespace

rigel_code failed(rigel_code code, const char* function, const char* message) noexcept {
  try {
    // Messages of Rigel's own begin with the function's name, or with that in C++.
    constexpr std::string_view prefix = "rigel_";
    const std::string_view given = message, of_cpp = std::string_view(function).substr(prefix.size());
    last.text = given.starts_with(function) ? std::string(given)
                : given.starts_with(of_cpp) ? std::string(prefix).append(given)
                                            : std::string(function) + ": " + message;
    last.message = last.text.c_str();
  } catch (...) {
    last.message = "out of memory, also for the message";
  }
  return code;
}

}  // namespace rigel::c

const char* rigel_last_error() { return rigel::c::last.message; }

std::int32_t rigel_version() { return 10000 * RIGEL_VERSION_MAJOR + 100 * RIGEL_VERSION_MINOR + RIGEL_VERSION_PATCH; }
