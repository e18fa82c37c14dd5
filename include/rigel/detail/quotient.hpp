// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/macros.hpp>

#include <cstdint>

namespace rigel::detail {

/// i / n of numbers that are not negative: a division of 32 bits, which is shorter on a GPU, if both fit.
RIGEL_FUNCTION std::int64_t quotient(std::int64_t i, std::int64_t n) {
  if (((i | n) >> 32) == 0) return static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(n);
  return i / n;
}

}  // namespace rigel::detail
