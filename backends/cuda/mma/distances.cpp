// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: Euclidean distances of floats, as pairs of halves or as doubles, and of doubles.
#include <rigel/backends/cuda/mma/distance.hpp>
#include <rigel/backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

void add_distances(Registry<Contraction>& registry) {
  registry.add(distance_kernel<float, half, Shape<2, 2, 64, 64, 3, 2>, 1>());
  registry.add(distance_kernel<float, half, Shape<2, 2, 64, 32, 3, 2>, 2>());
  registry.add(distance_kernel<float, double, Shape<4, 2, 32, 48, 4, 1>>());
  registry.add(distance_kernel<float, double, Shape<2, 2, 32, 32, 3, 2>>());
  registry.add(distance_kernel<double, double, Shape<4, 2, 32, 48, 4, 1>>());
  registry.add(distance_kernel<double, double, Shape<2, 2, 32, 32, 3, 2>>());
}

}  // namespace rigel::backends::mma
