// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: Euclidean distances of floats.
#include <backends/cuda/mma/distance.hpp>
#include <backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

void add_distances(Registry& registry) {
  registry.add(distance_kernel<Shape<2, 2, 64, 64, 3, 2>, 1>());
  registry.add(distance_kernel<Shape<2, 2, 64, 32, 3, 2>, 2>());
}

}  // namespace rigel::backends::mma
