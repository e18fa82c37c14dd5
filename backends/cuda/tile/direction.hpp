// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The axis along which an operand's elements are contiguous.
#pragma once

#include <cstdint>

namespace rigel::tile {

/// `along_k`: K-major. `along_lines`: M-major (of A) or N-major (of B); a line is a row of A or a column of B.
enum class Direction : std::uint8_t { along_k, along_lines };

}  // namespace rigel::tile
