// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/backends/host/grid.hpp>

namespace rigel::backends::host {

/// The loops of a zoo list at a level, in the list's order. instantiate.cpp.in defines it for one list and level each.
template <class Level, class List>
const Loop* loops();

}  // namespace rigel::backends::host
