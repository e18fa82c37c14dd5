// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/reduction_problem.hpp>

namespace rigel::backends::mma {

/// cuda.mma.*: reductions of Euclidean distances.
void add_nearest_floats(Registry<Reduction>& registry);
void add_nearest_halves(Registry<Reduction>& registry);
void add_nearest_bfloat16s(Registry<Reduction>& registry);

}  // namespace rigel::backends::mma
