// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: products of bfloat16, summed in float.
#include <rigel/backends/cuda/mma/contract.hpp>
#include <rigel/backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

void add_bfloat16s(Registry<Contraction>& registry) {
  using S = plus_times<bfloat16>;
  for (const Kernel<Contraction>& k : kernels<S>()) registry.add(k);
  registry.add(kernel<S, bfloat16, Precision::accumulator, Deep>());
  for (const Kernel<Contraction>& k : promoted_kernels<S>()) registry.add(k);
}

}  // namespace rigel::backends::mma
