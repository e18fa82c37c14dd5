// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.points: softmax-weighted sums and log-sum-exp.
#include <rigel/backends/cuda/reduce/points_call.hpp>
#include <rigel/backends/cuda/reduce/register.hpp>

namespace rigel::backends::points {

void add_softmax(Registry<Reduction>& registry) { add_kernels<true>(registry); }

}  // namespace rigel::backends::points
