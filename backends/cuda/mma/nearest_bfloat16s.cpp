// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: nearest points of bfloat16.
#include <rigel/backends/cuda/mma/nearest.hpp>
#include <rigel/backends/cuda/mma/register_reduce.hpp>

namespace rigel::backends::mma {

template void nearest::enqueue_listed(const nearest::Search<bfloat16>&, int, const cuda::Launches&);  // for cuda.hopper
void add_nearest_bfloat16s(Registry<Reduction>& registry) { registry.add(nearest::kernel<bfloat16>()); }

}  // namespace rigel::backends::mma
