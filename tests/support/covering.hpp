// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random.hpp"

#include <vector>

namespace support {

/// A covering design of strength two: rows with one level per factor, such that any two levels of any two factors occur
/// together in some row. It is built greedily; the random numbers break ties.
std::vector<std::vector<int>> covering_design(const std::vector<int>& levels, Random& random);

}  // namespace support
