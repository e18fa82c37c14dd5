// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which pairs ⊗ sees if elements are numbers, loaded one by one or in vectors.
#include "marked.hpp"

TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: floats", Exec, RIGEL_TEST_SPACES) {
  support::check_pairs<float, float, false, Exec>();
}
