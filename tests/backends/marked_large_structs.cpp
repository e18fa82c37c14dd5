// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Like marked_structs.cpp, from 16 bytes on.
#include "marked.hpp"

using support::Marked, support::Tally, support::check_pairs;

TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: structs of 16 bytes", Exec, RIGEL_TEST_SPACES) {
  check_pairs<Marked<16, 16>, Tally, true, Exec>();
}
TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: structs of 24 bytes", Exec, RIGEL_TEST_SPACES) {
  check_pairs<Marked<24, 8>, Tally, true, Exec>();
}
TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: structs of 32 bytes, aligned to as many", Exec, RIGEL_TEST_SPACES) {
  check_pairs<Marked<32, 32>, std::int32_t, false, Exec>();
}
TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: structs too large for a GPU's tiles", Exec, RIGEL_TEST_SPACES) {
  check_pairs<Marked<320, 64>, std::int32_t, true, Exec>();
}
