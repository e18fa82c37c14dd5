// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.hopper: products of half, summed in float.
#include <rigel/backends/cuda/hopper/contract.hpp>
#include <rigel/backends/cuda/hopper/register.hpp>

namespace rigel::backends::hopper {

void add_halves(Registry<Contraction>& registry) {
  for (const Kernel<Contraction>& k : kernels<plus_times<half>>()) registry.add(k);
}

}  // namespace rigel::backends::hopper
