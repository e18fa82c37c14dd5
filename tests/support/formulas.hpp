// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The formulas of the zoo's semirings, written without Rigel: one row per semiring, found by name. All tests of the zoo use
// them.
#pragma once

#include <rigel/semiring_info.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace support {

/// An integer, and the type in which its sums and products wrap.
struct Whole {
  std::int64_t value;
  rigel::Scalar type;
};

/// ⊗ and ⊕ on doubles, on integers or on both; a function that does not apply is null.
struct Formula {
  std::string_view semiring = {};
  int identity = 0;                    // of ⊕, in infinities: 0, 1 or −1
  std::array<double, 4> by_hand = {};  // C = A·B for the matrices below, row by row
  double (*multiply)(double a, double b, const double* hyperparameters) = nullptr;
  double (*add)(double x, double y) = nullptr;
  Whole (*multiply_whole)(Whole a, Whole b) = nullptr;
  Whole (*add_whole)(Whole x, Whole y) = nullptr;
  double (*result)(std::int64_t x) = nullptr;  // the result of an integer accumulator, if it has another type
  bool few_values = false;                     // draw elements from few values, so that some are equal
  std::vector<double> hyperparameters = {};    // in their order, for the tests
};

/// A (2 × 3) and B (3 × 2) of by_hand. The pairs of the outputs are
///   (0,0): (1,2), (2,0), (3,5)     (0,1): (1,1), (2,3), (3,4)
///   (1,0): (4,2), (0,0), (2,5)     (1,1): (4,1), (0,3), (2,4)
inline const std::vector<double> hand_a = {1, 2, 3, 4, 0, 2}, hand_b = {2, 1, 0, 3, 5, 4};

/// The row of a semiring. Throws if there is none.
const Formula& formula(std::string_view semiring);

/// Sets the hyperparameters of a semiring object to those of its row. Throws if the semiring states another number of them.
void set_hyperparameters(const rigel::SemiringInfo& facts, void* object);

template <class S>
S with_hyperparameters() {
  const rigel::SemiringInfo& facts = rigel::semiring_info<S>();
  S s = *static_cast<const S*>(facts.sample);
  set_hyperparameters(facts, &s);
  return s;
}

/// An integer semiring's infinity.
std::int64_t infinity_of(rigel::Scalar type);

}  // namespace support
