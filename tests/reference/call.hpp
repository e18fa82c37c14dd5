// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract() by the reference, which the tests of this folder compare with results worked out by hand.
#pragma once

#include <rigel/contract.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

namespace by_hand {

inline const rigel::ContractOptions reference{.kernel = "reference"};
inline const rigel::ContractOptions accumulating{.accumulate = true, .kernel = "reference"};

/// C after a call on `exec`, in the order of its memory.
template <class Exec, class S, class A, class B, class C, class E = rigel::epilogue::Program>
std::vector<double> contracted(const Exec& exec, const S& s, const A& a, const B& b, const C& c, const E& epilogue = {},
                               const rigel::ContractOptions& options = reference) {
  rigel::contract(exec, s, a, b, c, epilogue, options);
  exec.fence();
  return support::values(c);
}

using Values = std::vector<double>;

}  // namespace by_hand
