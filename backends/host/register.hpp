// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/backends/host/grid.hpp>

namespace rigel::backends::host {

/// The loops of a zoo list at a level, in the list's order; defined, one list and level each, by instantiate.cpp.in.
template <class Level, class List>
const Loop* loops();

}  // namespace rigel::backends::host
