// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: products of half and bfloat16, summed in float.
#include <rigel/backends/cuda/mma/contract.hpp>
#include <rigel/backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

void add_short_floats(Registry<Contraction>& registry) {
  for (const Kernel<Contraction>& k : kernels<plus_times<half>>()) registry.add(k);
  for (const Kernel<Contraction>& k : kernels<plus_times<bfloat16>>()) registry.add(k);
  registry.add(kernel<plus_times<half>, half, Precision::accumulator, Deep>());
  registry.add(kernel<plus_times<bfloat16>, bfloat16, Precision::accumulator, Deep>());
  for (const Kernel<Contraction>& k : promoted_kernels<plus_times<half>>()) registry.add(k);
  for (const Kernel<Contraction>& k : promoted_kernels<plus_times<bfloat16>>()) registry.add(k);
}

}  // namespace rigel::backends::mma
