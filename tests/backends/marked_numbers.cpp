// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which pairs ⊗ sees of elements that are numbers, one by one and in vectors.
#include "marked.hpp"

TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: floats", Exec, RIGEL_TEST_SPACES) {
  support::check_pairs<float, float, false, Exec>();
}
