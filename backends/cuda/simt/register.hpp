// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/registry.hpp>

namespace rigel::backends::simt {

/// Adds the cuda.simt kernels of every semiring of a zoo list. instantiate.cu.in defines it, one list each.
template <class List>
void add(Registry<Contraction>& registry);

}  // namespace rigel::backends::simt
