// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/registry.hpp>

namespace rigel::backends::portable {

/// Adds the portable kernels of every semiring of a zoo list. instantiate.cpp.in defines it for one list each.
template <class List>
void add(Registry<Contraction>& registry);

}  // namespace rigel::backends::portable
