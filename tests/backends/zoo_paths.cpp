// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "zoo.hpp"

TEST_CASE_TEMPLATE("every kernel: min_plus", Exec, RIGEL_TEST_SPACES) { backends::check_all<Exec>(rigel::zoo::min_plus{}); }
TEST_CASE_TEMPLATE("every kernel: max_plus", Exec, RIGEL_TEST_SPACES) { backends::check_all<Exec>(rigel::zoo::max_plus{}); }
TEST_CASE_TEMPLATE("every kernel: max_min", Exec, RIGEL_TEST_SPACES) { backends::check_all<Exec>(rigel::zoo::max_min{}); }
TEST_CASE_TEMPLATE("every kernel: min_max", Exec, RIGEL_TEST_SPACES) { backends::check_all<Exec>(rigel::zoo::min_max{}); }
