// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// with_argument over the types whose tiles differ: 64 bits, and elements that are converted.
#include "winners.hpp"

#include <doctest/doctest.h>

TEST_CASE_TEMPLATE("with_argument: doubles and 64-bit integers", Exec, RIGEL_TEST_SPACES) {
  winners::check<rigel::max_plus<double>, Exec>(-std::numeric_limits<double>::infinity(), 0.5);
  winners::check<rigel::min_max<std::int64_t>, Exec>(9, 0);
}

TEST_CASE_TEMPLATE("with_argument: 16-bit floats, bytes and 32-bit integers", Exec, RIGEL_TEST_SPACES) {
  winners::check<rigel::min_plus<rigel::half>, Exec>(std::numeric_limits<float>::infinity(), -0.5);
  winners::check<rigel::linf<std::int8_t>, Exec>(3, 2);
  winners::check<rigel::max_min<std::int32_t>, Exec>(std::numeric_limits<std::int32_t>::lowest(), 1);
}
