// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: products of doubles.
#include <rigel/backends/cuda/mma/contract.hpp>
#include <rigel/backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

void add_doubles(Registry<Contraction>& registry) {
  using S = plus_times<double>;
  constexpr Precision as_they_are = Precision::accumulator;
  registry.add(kernel<S, double, as_they_are, Shape<4, 2, 32, 48, 4, 1>>());
  registry.add(kernel<S, double, as_they_are, Shape<2, 2, 32, 32, 3, 2>>());
}

}  // namespace rigel::backends::mma
