// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.hopper: the single-tile kernels of products of bfloat16, summed in float.
#include <rigel/backends/cuda/hopper/once.hpp>
#include <rigel/backends/cuda/hopper/register.hpp>

namespace rigel::backends::hopper {

void add_bfloat16s_once(Registry<Contraction>& registry) {
  for (const Kernel<Contraction>& k : once_kernels<plus_times<bfloat16>>()) registry.add(k);
}

}  // namespace rigel::backends::hopper
