// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/registry.hpp>

namespace rigel::backends::reference {

/// Adds the reference kernel of every semiring of a zoo list; defined, one list each, by instantiate.cpp.in.
template <class List>
void add(Registry& registry);

}  // namespace rigel::backends::reference
