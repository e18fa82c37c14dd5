// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: products of bytes, summed in 32 bits, hence exact.
#include <rigel/backends/cuda/mma/contract.hpp>
#include <rigel/backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

void add_bytes(Registry<Contraction>& registry) {
  for (const Kernel<Contraction>& k : kernels<plus_times<std::int8_t>>()) registry.add(k);
  for (const Kernel<Contraction>& k : kernels<plus_times<std::uint8_t>>()) registry.add(k);
}

}  // namespace rigel::backends::mma
