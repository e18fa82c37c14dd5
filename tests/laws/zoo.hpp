// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A hundred semirings, each checked once: not worth optimising, and three times as long to compile if it were.
#pragma once

#include <rigel/semirings.hpp>

#include <doctest/doctest.h>

#pragma clang optimize off
#include "checker.hpp"
#include "samples.hpp"

namespace laws {

/// Every semiring of a zoo list keeps the laws and its claims.
template <class... S>
void check_all(rigel::type_list<S...>) {
  const auto one = []<class T>(T s) {
    if constexpr (requires { s.p; }) s.p = 1.5;
    CAPTURE(std::string(rigel::semiring_name<T>()));
    CAPTURE(std::string(rigel::name(rigel::scalar_of<typename T::element>)));
    CHECK(broken_laws(s, samples<T>()) == "");
  };
  (one(S{}), ...);
}

}  // namespace laws
