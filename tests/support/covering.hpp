// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random.hpp"

#include <vector>

namespace support {

/// A covering design of strength two: rows of levels, one for each factor, such that any two levels of any two factors
/// meet in some row. Built greedily; the random numbers break ties.
std::vector<std::vector<int>> covering_design(const std::vector<int>& levels, Random& random);

}  // namespace support
