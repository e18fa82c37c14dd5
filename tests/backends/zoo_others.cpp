// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "zoo.hpp"

TEST_CASE_TEMPLATE("every kernel: max_times", Exec, RIGEL_TEST_SPACES) {
  backends::check_all<Exec>(rigel::zoo::max_times{});
}
TEST_CASE_TEMPLATE("every kernel: min_times", Exec, RIGEL_TEST_SPACES) {
  backends::check_all<Exec>(rigel::zoo::min_times{});
}
TEST_CASE_TEMPLATE("every kernel: linf", Exec, RIGEL_TEST_SPACES) { backends::check_all<Exec>(rigel::zoo::linf{}); }
TEST_CASE_TEMPLATE("every kernel: or_and", Exec, RIGEL_TEST_SPACES) { backends::check_all<Exec>(rigel::zoo::or_and{}); }
TEST_CASE_TEMPLATE("every kernel: xor_and", Exec, RIGEL_TEST_SPACES) { backends::check_all<Exec>(rigel::zoo::xor_and{}); }
TEST_CASE_TEMPLATE("every kernel: bit_hamming", Exec, RIGEL_TEST_SPACES) {
  backends::check_all<Exec>(rigel::zoo::bit_hamming{});
}
TEST_CASE_TEMPLATE("every kernel: bit_jaccard", Exec, RIGEL_TEST_SPACES) {
  backends::check_all<Exec>(rigel::zoo::bit_jaccard{});
}
TEST_CASE_TEMPLATE("every kernel: log_plus", Exec, RIGEL_TEST_SPACES) { backends::check_all<Exec>(rigel::zoo::log_plus{}); }
