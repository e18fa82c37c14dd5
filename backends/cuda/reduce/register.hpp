// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/reduction_problem.hpp>

namespace rigel::backends::reduce {

/// Adds the cuda.reduce kernels of the semirings of a zoo list. instantiate.cu.in defines it, one list each.
template <class List>
void add(Registry<Reduction>& registry);

}  // namespace rigel::backends::reduce
