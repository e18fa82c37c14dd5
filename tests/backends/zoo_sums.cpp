// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "zoo.hpp"

TEST_CASE_TEMPLATE("every kernel: plus_times", Exec, RIGEL_TEST_SPACES) {
  backends::check_all<Exec>(rigel::zoo::plus_times{});
}
TEST_CASE_TEMPLATE("every kernel: l1", Exec, RIGEL_TEST_SPACES) { backends::check_all<Exec>(rigel::zoo::l1{}); }
TEST_CASE_TEMPLATE("every kernel: l2_squared", Exec, RIGEL_TEST_SPACES) {
  backends::check_all<Exec>(rigel::zoo::l2_squared{});
}
TEST_CASE_TEMPLATE("every kernel: lp", Exec, RIGEL_TEST_SPACES) { backends::check_all<Exec>(rigel::zoo::lp{}); }
TEST_CASE_TEMPLATE("every kernel: hamming", Exec, RIGEL_TEST_SPACES) { backends::check_all<Exec>(rigel::zoo::hamming{}); }
