// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the CUDA backend offers for the gradients.
#include <rigel/backends/cuda/gradient/register.hpp>

namespace rigel::backends {

void register_cuda(Registry<Gradient>& registry);
void register_cuda(Registry<Gradient>& registry) {
  gradient::add_manhattan(registry);
  gradient::add_euclidean(registry);
  gradient::add_minkowski(registry);
  gradient::add_of_points(registry);
}

}  // namespace rigel::backends
