// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: products of floats, cut to tf32 or split into two parts that tf32 holds. All need options.precision to allow it.
#include <backends/cuda/mma/contract.hpp>
#include <backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

void add_floats(Registry& registry) {
  using S = plus_times<float>;
  registry.add(kernel<S, float, Precision::promoted, Shape<2, 2, 64, 32, 3, 2>>());
  registry.add(kernel<S, float, Precision::promoted, Shape<2, 2, 32, 32, 3, 3>>());
  for (const Kernel& k : kernels<S, float, Precision::split>()) registry.add(k);
  for (const Kernel& k : kernels<S, float, Precision::tf32>()) registry.add(k);
}

}  // namespace rigel::backends::mma
