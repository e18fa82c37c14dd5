// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: nearest points of halves.
#include <rigel/backends/cuda/mma/nearest.hpp>
#include <rigel/backends/cuda/mma/register_reduce.hpp>

namespace rigel::backends::mma {

template void nearest::enqueue_listed(const nearest::Search<half>&, int, const cuda::Launches&);  // for cuda.hopper
void add_nearest_halves(Registry<Reduction>& registry) { registry.add(nearest::kernel<half>()); }

}  // namespace rigel::backends::mma
