// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.points: weighted sums.
#include <rigel/backends/cuda/reduce/points_call.hpp>
#include <rigel/backends/cuda/reduce/register.hpp>

namespace rigel::backends::points {

void add_weighted_sums(Registry<Reduction>& registry) { add_kernels<false>(registry); }

}  // namespace rigel::backends::points
