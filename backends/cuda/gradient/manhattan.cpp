// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.gradient.manhattan.*: floats and doubles.
#include <rigel/backends/cuda/gradient/gradient.hpp>
#include <rigel/backends/cuda/gradient/register.hpp>

namespace rigel::backends::gradient {

void add_manhattan(Registry<Gradient>& registry) {
  for (const Kernel<Gradient>& kernel : kernels<gradient_of::manhattan<float>>()) registry.add(kernel);
  for (const Kernel<Gradient>& kernel : kernels<gradient_of::manhattan<double>>()) registry.add(kernel);
}

}  // namespace rigel::backends::gradient
