// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/reduction_problem.hpp>

namespace rigel::backends::hopper {

/// cuda.hopper.*: minima of Euclidean distances of half and bfloat16.
void add_nearest(Registry<Reduction>& registry);

}  // namespace rigel::backends::hopper
