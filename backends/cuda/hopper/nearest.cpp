// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.hopper: nearest points of half and bfloat16.
#include <rigel/backends/cuda/hopper/nearest.hpp>
#include <rigel/backends/cuda/hopper/register_reduce.hpp>

namespace rigel::backends::hopper {

void add_nearest(Registry<Reduction>& registry) {
  registry.add(nearest::kernel<half>());
  registry.add(nearest::kernel<bfloat16>());
}

}  // namespace rigel::backends::hopper
