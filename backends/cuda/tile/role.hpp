// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

namespace rigel::tile {

/// Which of a semiring's tiles a shape is: the only one, or one of several (simt/tiles.hpp). `words`: the small one of sums that take
/// several k at a time (simt/words.hpp).
enum class Role : std::uint8_t { only, large, small, whole_powers, words };

}  // namespace rigel::tile
