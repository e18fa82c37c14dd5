// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every semiring and element type on one 2 × 3 × 2 product. With
//
//     A = 1 2 3    B = 2 1
//         4 0 2        0 3
//                      5 4
//
// the products of output (0,0) are those of (1,2), (2,0), (3,5), of (0,1) those of (1,1), (2,3), (3,4), of (1,0) those of
// (4,2), (0,0), (2,5), of (1,1) those of (4,1), (0,3), (2,4).
#include <rigel/contract.hpp>

#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

// A hundred calls that each run once.
#pragma clang optimize off
#include "call.hpp"

using by_hand::Values;

namespace {

template <class S, class Exec>
Values product(S s) {
  using T = typename S::element;
  const auto a = support::matrix<T, Exec>(2, 3, {1, 2, 3, 4, 0, 2}), b = support::matrix<T, Exec>(3, 2, {2, 1, 0, 3, 5, 4});
  const auto c = support::matrix<rigel::result_t<S>, Exec>(2, 2, {-9, -9, -9, -9});
  return by_hand::contracted(Exec{}, s, a, b, c);
}

template <class Exec, class... S>
void check(rigel::type_list<S...>, const Values& expected) {
  const auto one = [&]<class T>(T s) {
    CAPTURE(std::string(rigel::name(rigel::scalar_of<typename T::element>)));
    CHECK(product<T, Exec>(s) == expected);
  };
  (one(S{}), ...);
}

// Within some units of what double gives: for functions that round.
template <class Exec, class... S>
void check_close(rigel::type_list<S...>, const Values& expected, double p) {
  const auto one = [&]<class T>(T s) {
    if constexpr (requires { s.p; }) s.p = static_cast<typename T::accumulator>(p);
    CAPTURE(std::string(rigel::name(rigel::scalar_of<typename T::element>)));
    const Values actual = product<T, Exec>(s);
    const double u = support::roundoff(sizeof(rigel::result_t<T>) == 4 ? 24 : 53);
    for (int i = 0; i < 4; ++i) CHECK(std::fabs(actual[i] - expected[i]) <= 16 * u * std::fabs(expected[i]));
  };
  (one(S{}), ...);
}

}  // namespace

TEST_CASE_TEMPLATE("by hand: the zoo", Exec, RIGEL_TEST_SPACES) {
  namespace zoo = rigel::zoo;
  SUBCASE("plus_times") { check<Exec>(zoo::plus_times{}, {17, 19, 18, 12}); }
  SUBCASE("min_plus") { check<Exec>(zoo::min_plus{}, {2, 2, 0, 3}); }
  SUBCASE("max_plus") { check<Exec>(zoo::max_plus{}, {8, 7, 7, 6}); }
  SUBCASE("max_min") { check<Exec>(zoo::max_min{}, {3, 3, 2, 2}); }
  SUBCASE("min_max") { check<Exec>(zoo::min_max{}, {2, 1, 0, 3}); }
  SUBCASE("max_times") { check<Exec>(zoo::max_times{}, {15, 12, 10, 8}); }
  SUBCASE("min_times") { check<Exec>(zoo::min_times{}, {0, 1, 0, 0}); }
  SUBCASE("l1") { check<Exec>(zoo::l1{}, {5, 2, 5, 8}); }
  SUBCASE("l2_squared") { check<Exec>(zoo::l2_squared{}, {9, 2, 13, 22}); }
  SUBCASE("linf") { check<Exec>(zoo::linf{}, {2, 1, 3, 3}); }
  SUBCASE("hamming") { check<Exec>(zoo::hamming{}, {3, 2, 2, 3}); }
  SUBCASE("lp") {
    check_close<Exec>(zoo::lp{}, {17, 2, 35, 62}, 3);
    check_close<Exec>(zoo::lp{}, {9, 2, 13, 22}, 2);
    check_close<Exec>(zoo::lp{},
                      {1 + 2 * std::sqrt(2.), 2, std::sqrt(2.) + std::sqrt(3.), 2 * std::sqrt(3.) + std::sqrt(2.)}, 0.5);
  }
  SUBCASE("log_plus") {
    const auto sum = [](double x, double y, double z) { return std::log(std::exp(x) + std::exp(y) + std::exp(z)); };
    check_close<Exec>(zoo::log_plus{}, {sum(3, 2, 8), sum(2, 5, 7), sum(6, 0, 7), sum(5, 3, 6)}, 0);
  }
  // Bit by bit: 1∧2 = 0, 2∧0 = 0, 3∧5 = 1; 1∧1 = 1, 2∧3 = 2, 3∧4 = 0; 4∧2 = 0, 0, 2∧5 = 0; 4∧1 = 0, 0, 2∧4 = 0.
  SUBCASE("or_and") { check<Exec>(zoo::or_and{}, {1, 3, 0, 0}); }
  SUBCASE("xor_and") { check<Exec>(zoo::xor_and{}, {1, 3, 0, 0}); }
  // 1⊻2 has 2 bits, 2⊻0 one, 3⊻5 2; 1⊻1 none, 2⊻3 one, 3⊻4 3; 4⊻2 has 2, 0⊻0 none, 2⊻5 3; 4⊻1, 0⊻3 and 2⊻4 2 each.
  SUBCASE("bit_hamming") { check<Exec>(zoo::bit_hamming{}, {5, 4, 5, 6}); }
  // One bit in both of 6 in either; two of 6; none in both, twice.
  SUBCASE("bit_jaccard") { check<Exec>(zoo::bit_jaccard{}, {5.f / 6, 4.f / 6, 1, 1}); }
}

TEST_CASE_TEMPLATE("by hand: Boolean semirings of bytes", Exec, RIGEL_TEST_SPACES) {
  const auto a = support::matrix<std::uint8_t, Exec>(2, 3, {1, 1, 0, 0, 1, 0}),
             b = support::matrix<std::uint8_t, Exec>(3, 2, {1, 0, 1, 0, 1, 1});
  const auto c = support::matrix<std::uint8_t, Exec>(2, 2);
  CHECK(by_hand::contracted(Exec{}, rigel::or_and<std::uint8_t>{}, a, b, c) == Values{1, 0, 1, 0});
  CHECK(by_hand::contracted(Exec{}, rigel::xor_and<std::uint8_t>{}, a, b, c) == Values{0, 0, 1, 0});
}
