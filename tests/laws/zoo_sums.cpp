// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The laws of the semirings whose ⊕ adds.
#include "zoo.hpp"

TEST_CASE("laws: plus_times") { laws::check_all(rigel::zoo::plus_times{}); }
TEST_CASE("laws: l1") { laws::check_all(rigel::zoo::l1{}); }
TEST_CASE("laws: l2_squared") { laws::check_all(rigel::zoo::l2_squared{}); }
TEST_CASE("laws: lp") { laws::check_all(rigel::zoo::lp{}); }
TEST_CASE("laws: hamming") { laws::check_all(rigel::zoo::hamming{}); }
TEST_CASE("laws: bit_hamming") { laws::check_all(rigel::zoo::bit_hamming{}); }
TEST_CASE("laws: bit_jaccard") { laws::check_all(rigel::zoo::bit_jaccard{}); }
TEST_CASE("laws: log_plus") { laws::check_all(rigel::zoo::log_plus{}); }
TEST_CASE("laws: xor_and") { laws::check_all(rigel::zoo::xor_and{}); }
