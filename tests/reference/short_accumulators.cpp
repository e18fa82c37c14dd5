// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings with 16-bit accumulators: rounding and range.
#include "call.hpp"

#include <limits>

using by_hand::contracted;
using by_hand::Values;
using support::matrix;

TEST_CASE_TEMPLATE("by hand: sums in half and bfloat16 round before they are compared", Exec, RIGEL_TEST_SPACES) {
  // 2048 + 1 and 2048 + 3 are halfway between neighbours in half, which are 2 apart there, and round to even.
  const auto a = matrix<rigel::half, Exec>(1, 1, {2048}), b = matrix<rigel::half, Exec>(1, 4, {1, 3, 5, 6});
  const auto c = matrix<float, Exec>(1, 4);
  CHECK(contracted(Exec{}, rigel::min_plus<rigel::half, rigel::half>{}, a, b, c) == Values{2048, 2052, 2052, 2054});
  CHECK(contracted(Exec{}, rigel::min_plus<rigel::half>{}, a, b, c) == Values{2049, 2051, 2053, 2054});
  // bfloat16 has 8 bits: 257 and 259 are halfway between numbers that are 2 apart.
  const auto d = matrix<rigel::bfloat16, Exec>(1, 1, {256}), e = matrix<rigel::bfloat16, Exec>(1, 4, {1, 3, 5, 6});
  CHECK(contracted(Exec{}, rigel::max_plus<rigel::bfloat16, rigel::bfloat16>{}, d, e, c) == Values{256, 260, 260, 262});
}

TEST_CASE_TEMPLATE("by hand: half overflows to infinity", Exec, RIGEL_TEST_SPACES) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto a = matrix<rigel::half, Exec>(1, 2, {65504, -65504}), b = matrix<rigel::half, Exec>(2, 2, {16, 8, 0, -16});
  const auto c = matrix<rigel::half, Exec>(1, 2);
  CHECK(contracted(Exec{}, rigel::max_plus<rigel::half, rigel::half>{}, a, b, c) == Values{inf, 65504});
  CHECK(contracted(Exec{}, rigel::min_plus<rigel::half, rigel::half>{}, a, b, c) == Values{-65504, -inf});
}

TEST_CASE_TEMPLATE("by hand: int16 has an infinity of 16383", Exec, RIGEL_TEST_SPACES) {
  const auto none = matrix<std::int16_t, Exec>(1, 0), nothing = matrix<std::int16_t, Exec>(0, 1);
  const auto one = matrix<std::int16_t, Exec>(1, 1);
  CHECK(contracted(Exec{}, rigel::min_plus<std::int16_t>{}, none, nothing, one) == Values{16383});
  CHECK(contracted(Exec{}, rigel::max_min<std::int16_t>{}, none, nothing, one) == Values{-16383});
  // Two infinities add without wrapping, and no sum of numbers within them wraps.
  const auto a = matrix<std::int16_t, Exec>(1, 2, {16383, 16383}),
             b = matrix<std::int16_t, Exec>(2, 2, {16383, 5, 16383, -7});
  const auto c = matrix<std::int16_t, Exec>(1, 2);
  CHECK(contracted(Exec{}, rigel::min_plus<std::int16_t>{}, a, b, c) == Values{16383, 16376});
  CHECK(contracted(Exec{}, rigel::max_plus<std::int16_t>{}, a, b, c) == Values{32766, 16388});
}

TEST_CASE_TEMPLATE("by hand: what C holds continues a chain of 16 bits", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<rigel::half, Exec>(2, 1, {1, 2}), b = matrix<rigel::half, Exec>(1, 2, {0.5, 4});
  const auto c = matrix<rigel::half, Exec>(2, 2, {1, 9, 1, 9});
  CHECK(contracted(Exec{}, rigel::min_plus<rigel::half, rigel::half>{}, a, b, c, {}, by_hand::accumulating) ==
        Values{1, 5, 1, 6});
  CHECK(contracted(Exec{}, rigel::min_plus<rigel::half, rigel::half>{}, a, b, c, rigel::epilogue::scale(0.5)) ==
        Values{0.75, 2.5, 1.25, 3});
}
