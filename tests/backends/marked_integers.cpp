// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Like marked_numbers.cpp, for a ⊗ that takes k; sums of integers may also use split K.
#include "marked.hpp"

TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: integers, with k", Exec, RIGEL_TEST_SPACES) {
  support::check_pairs<std::int32_t, std::int32_t, true, Exec>();
}
