// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings from text.
#pragma once

#include "guard.hpp"

#include <rigel/contraction.hpp>
#include <rigel/runtime.hpp>

#include <span>
#include <string>
#include <string_view>

struct rigel_semiring {
  rigel::runtime::Semiring semiring;
};

namespace rigel::c {

/// A copy of a semiring from text, with these hyperparameters. Throws Error(not_found) for a name that it does not have.
runtime::Semiring semiring_of(const rigel_semiring& given, std::span<const rigel_parameter> parameters);

/// Makes a semiring from text, which outlives the problem, the problem's: A and B must hold its elements, and `accumulator`, 0 for its own, be its
/// accumulator. Compiles it if it is not yet.
void set_in(Contraction& p, const runtime::Semiring& semiring, rigel_type accumulator);

/// Runs `body`, whose errors name the class of C++ where those of C name the struct or nothing.
template <class Body>
auto in_words_of_c(const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    constexpr std::string_view prefix = "runtime::Semiring";
    const std::string_view message = e.what();
    if (!message.starts_with(prefix)) throw;
    const std::string_view rest = message.substr(prefix.size());
    throw Error(e.code(), rest.starts_with(": ") ? std::string(rest.substr(2)) : "semiring" + std::string(rest));
  }
}

}  // namespace rigel::c
