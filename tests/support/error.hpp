// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a call threw.
#pragma once

#include <rigel/error.hpp>

#include <initializer_list>
#include <string>

namespace support {

struct Caught {
  rigel::Code code = rigel::Code::ok;
  std::string message = "nothing was thrown";
  rigel::Decline decline = rigel::Decline::none;

  /// The first of the texts that the message lacks; empty if it has them all.
  std::string lacks(std::initializer_list<const char*> texts) const {
    for (const char* text : texts)
      if (message.find(text) == std::string::npos) return std::string(text) + "   in   " + message;
    return {};
  }
};

template <class F>
Caught caught(const F& f) {
  try {
    f();
  } catch (const rigel::Error& e) {
    return {e.code(), e.what(), e.decline()};
  }
  return {};
}

}  // namespace support
