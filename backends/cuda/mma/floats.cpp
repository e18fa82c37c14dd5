// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: products of floats, cut to tf32, split into two parts of tf32, or cut into planes of bfloat16. options.precision
// says which of them a call admits.
#include <rigel/backends/cuda/mma/contract.hpp>
#include <rigel/backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

// If six products of planes are as precise as three of tf32, planes have the large tile; tf32, which needs no pass, has the
// others.
void add_floats(Registry<Contraction>& registry) {
  using S = plus_times<float>;
  constexpr Precision bf16x9 = Precision::exact_products, promoted = Precision::promoted, split = Precision::split,
                      bf16x3 = Precision::bf16x3;
  registry.add(kernel<S, bfloat16, bf16x9, Shape<2, 4, 64, 32, 3, 1>>());
  registry.add(kernel<S, bfloat16, bf16x9, Shape<2, 2, 64, 32, 2, 2>>());
  registry.add(kernel<S, bfloat16, promoted, Shape<2, 4, 64, 32, 3, 1>>());
  registry.add(kernel<S, float, promoted, Shape<2, 2, 64, 32, 3, 2>>());
  registry.add(kernel<S, float, promoted, Shape<2, 2, 32, 32, 3, 3>>());
  registry.add(kernel<S, bfloat16, split, Shape<2, 4, 64, 64, 2, 1>>());
  registry.add(kernel<S, bfloat16, split, Shape<2, 4, 64, 64, 2, 1>, Decomposition{3, 9}>());
  registry.add(kernel<S, float, split, Shape<2, 2, 64, 64, 3, 2>>());
  registry.add(kernel<S, float, split, Shape<2, 2, 64, 32, 3, 2>>());
  registry.add(kernel<S, float, split, Shape<2, 2, 32, 32, 3, 3>>());
  registry.add(kernel<S, bfloat16, bf16x3, Shape<2, 4, 64, 64, 3, 1>>());
  registry.add(kernel<S, bfloat16, bf16x3, Shape<2, 2, 64, 32, 3, 2>>());
  for (const Kernel<Contraction>& k : kernels<S, float, Precision::tf32>()) registry.add(k);
}

}  // namespace rigel::backends::mma
