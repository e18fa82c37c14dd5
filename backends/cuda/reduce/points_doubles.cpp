// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.points: weighted sums, softmax-weighted sums and log-sum-exp of doubles.
#include <rigel/backends/cuda/reduce/points_call.hpp>
#include <rigel/backends/cuda/reduce/register.hpp>

namespace rigel::backends::points {

void add_doubles(Registry<Reduction>& registry) {
  registry.add(kernel_of<double, false>());
  registry.add(kernel_of<double, true>());
}

}  // namespace rigel::backends::points
