// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.hopper: the single-tile kernels of products of half, summed in float.
#include <rigel/backends/cuda/hopper/once.hpp>
#include <rigel/backends/cuda/hopper/register.hpp>

namespace rigel::backends::hopper {

void add_halves_once(Registry<Contraction>& registry) {
  for (const Kernel<Contraction>& k : once_kernels<plus_times<half>>()) registry.add(k);
}

}  // namespace rigel::backends::hopper
