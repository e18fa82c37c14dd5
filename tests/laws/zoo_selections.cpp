// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The laws of the semirings whose ⊕ selects, and of or_and.
#include "zoo.hpp"

TEST_CASE("laws: min_plus") { laws::check_all(rigel::zoo::min_plus{}); }
TEST_CASE("laws: max_plus") { laws::check_all(rigel::zoo::max_plus{}); }
TEST_CASE("laws: max_min") { laws::check_all(rigel::zoo::max_min{}); }
TEST_CASE("laws: min_max") { laws::check_all(rigel::zoo::min_max{}); }
TEST_CASE("laws: max_times") { laws::check_all(rigel::zoo::max_times{}); }
TEST_CASE("laws: min_times") { laws::check_all(rigel::zoo::min_times{}); }
TEST_CASE("laws: linf") { laws::check_all(rigel::zoo::linf{}); }
TEST_CASE("laws: or_and") { laws::check_all(rigel::zoo::or_and{}); }
