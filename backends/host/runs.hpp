// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of the levels this processor runs. Files that are compiled for any processor ask it before they hand out code of a level.
#pragma once

#include <rigel/backends/host/level.hpp>

#include <optional>

namespace rigel::backends::host {

/// Whether this processor can run code of a level. register.cpp defines it for the levels of the kind of processor that Rigel is built for.
template <class Level>
bool runs();
#if defined(__x86_64__)
template <> bool runs<v2>();
template <> bool runs<v3>();
template <> bool runs<v4>();
#elif defined(__aarch64__) && defined(__linux__)
template <> bool runs<neon>();
template <> bool runs<sve256>();
template <> bool runs<sve512>();
#else
template <> bool runs<native>();
#endif

/// make.operator()<L>() of the widest level L that this processor runs, or nothing if it runs none. Level: those of this build (CMake's
/// RIGEL_HOST_LEVELS), the widest first.
template <class Made, class... Level, class Make>
std::optional<Made> of_widest(const Make& make) {
  std::optional<Made> made;
  ((made || !runs<Level>() ? void() : void(made = make.template operator()<Level>())), ...);
  return made;
}

}  // namespace rigel::backends::host
