// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/registry.hpp>

namespace rigel::backends::simt {

/// Adds the cuda.simt kernels of every semiring of a zoo list; defined, one list each, by instantiate.cu.in.
template <class List>
void add(Registry& registry);

}  // namespace rigel::backends::simt
