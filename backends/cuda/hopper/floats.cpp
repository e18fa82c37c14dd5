// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.hopper: products of floats, cut to tf32 or into planes of bfloat16. options.precision says which of them a call
// admits.
#include <rigel/backends/cuda/hopper/once.hpp>
#include <rigel/backends/cuda/hopper/register.hpp>

namespace rigel::backends::hopper {

void add_floats(Registry<Contraction>& registry) {
  using S = plus_times<float>;
  for (const Kernel<Contraction>& k : kernels<S, Precision::exact_products>()) registry.add(k);
  for (const Kernel<Contraction>& k : kernels<S, Precision::promoted>()) registry.add(k);
  for (const Kernel<Contraction>& k : kernels<S, Precision::split>()) registry.add(k);
  registry.add(kernel<S, Precision::split, Shape<Tiles::shared, 1, 256, 3, 1>, true>());
  for (const Kernel<Contraction>& k : kernels<S, Precision::bf16x3>()) registry.add(k);
  for (const Kernel<Contraction>& k : kernels<S, Precision::tf32>()) registry.add(k);
  for (const Kernel<Contraction>& k : once_kernels<S, Precision::tf32>()) registry.add(k);
}

}  // namespace rigel::backends::hopper
