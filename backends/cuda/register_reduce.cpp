// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the CUDA backend offers for reductions.
#include <rigel/backends/cuda/mma/register_reduce.hpp>

namespace rigel::backends {

void register_cuda(Registry<Reduction>& registry);
void register_cuda(Registry<Reduction>& registry) {
  mma::add_nearest_floats(registry);
  mma::add_nearest_halves(registry);
  mma::add_nearest_bfloat16s(registry);
}

}  // namespace rigel::backends
