// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: nearest points of floats.
#include <rigel/backends/cuda/mma/nearest.hpp>
#include <rigel/backends/cuda/mma/register_reduce.hpp>

namespace rigel::backends::mma {

void add_nearest_floats(Registry<Reduction>& registry) { registry.add(nearest::kernel<float>()); }

}  // namespace rigel::backends::mma
