// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every semiring and element type on one 2 × 3 × 2 product, whose results were worked out by hand (tests/support/formulas.hpp).
#include <rigel/contract.hpp>

#include <tests/support/formulas.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

// A hundred calls that each run once.
#pragma clang optimize off
#include "call.hpp"

using by_hand::Values;

namespace {

template <class S, class Exec>
Values product(const S& s) {
  using T = typename S::element;
  const auto a = support::matrix<T, Exec>(2, 3, support::hand_a), b = support::matrix<T, Exec>(3, 2, support::hand_b);
  const auto c = support::matrix<rigel::result_t<S>, Exec>(2, 2, {-9, -9, -9, -9});
  return by_hand::contracted(Exec{}, s, a, b, c);
}

// Checks results: exactly, or within some units of those in double if the semiring's functions round.
template <class Exec, class S>
void check(const S& s, const std::array<double, 4>& expected) {
  CAPTURE(std::string(S::name));
  CAPTURE(std::string(rigel::name(rigel::scalar_of<typename S::element>)));
  const Values actual = product<S, Exec>(s);
  const double u = rigel::is_transcendental<S> ? support::roundoff(sizeof(rigel::result_t<S>) == 4 ? 24 : 53) : 0;
  for (int i = 0; i < 4; ++i) CHECK(std::fabs(actual[i] - expected[i]) <= 16 * u * std::fabs(expected[i]));
}

template <class Exec, class... S>
void check_all(rigel::type_list<S...>) {
  (check<Exec>(support::with_hyperparameters<S>(), support::formula(S::name).by_hand), ...);
}

template <class Exec, class... S>
void check_powers(rigel::type_list<S...>, double p, const std::array<double, 4>& expected) {
  (check<Exec>(S{{}, static_cast<typename S::accumulator>(p)}, expected), ...);
}

}  // namespace

TEST_CASE_TEMPLATE("by hand: the zoo", Exec, RIGEL_TEST_SPACES) {
  rigel::detail::for_each_of_zoo([]<class List>() { check_all<Exec>(List{}); });
}

TEST_CASE_TEMPLATE("by hand: sums of powers", Exec, RIGEL_TEST_SPACES) {
  const double root_of_2 = std::sqrt(2.), root_of_3 = std::sqrt(3.);
  check_powers<Exec>(rigel::zoo::lp{}, 3, {17, 2, 35, 62});
  check_powers<Exec>(rigel::zoo::lp{}, 2, {9, 2, 13, 22});
  check_powers<Exec>(rigel::zoo::lp{}, 0.5, {1 + 2 * root_of_2, 2, root_of_2 + root_of_3, 2 * root_of_3 + root_of_2});
}

TEST_CASE_TEMPLATE("by hand: Boolean semirings of bytes", Exec, RIGEL_TEST_SPACES) {
  const auto a = support::matrix<std::uint8_t, Exec>(2, 3, {1, 1, 0, 0, 1, 0}),
             b = support::matrix<std::uint8_t, Exec>(3, 2, {1, 0, 1, 0, 1, 1});
  const auto c = support::matrix<std::uint8_t, Exec>(2, 2);
  CHECK(by_hand::contracted(Exec{}, rigel::or_and<std::uint8_t>{}, a, b, c) == Values{1, 0, 1, 0});
  CHECK(by_hand::contracted(Exec{}, rigel::xor_and<std::uint8_t>{}, a, b, c) == Values{0, 0, 1, 0});
}
