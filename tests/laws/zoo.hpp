// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks a hundred semirings, each once. It is not optimised, since that would triple the time to compile it.
#pragma once

#include <rigel/semiring_info.hpp>

#include <tests/support/formulas.hpp>

#include <doctest/doctest.h>

#pragma clang optimize off
#include "checker.hpp"
#include "samples.hpp"

namespace laws {

/// Checks that every semiring of a zoo list keeps the laws and its claims.
template <class... S>
void check_all(rigel::type_list<S...>) {
  const auto one = []<class T>(const T& s) {
    CAPTURE(std::string(rigel::semiring_name<T>()));
    CAPTURE(std::string(rigel::name(rigel::scalar_of<typename T::element>)));
    CHECK(broken_laws(s, samples<T>()) == "");
  };
  (one(support::with_hyperparameters<S>()), ...);
}

}  // namespace laws
