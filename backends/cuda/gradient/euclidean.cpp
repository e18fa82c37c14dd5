// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.gradient.euclidean.*: floats and doubles.
#include <rigel/backends/cuda/gradient/gradient.hpp>
#include <rigel/backends/cuda/gradient/register.hpp>

namespace rigel::backends::gradient {

void add_euclidean(Registry<Gradient>& registry) {
  for (const Kernel<Gradient>& kernel : kernels<gradient_of::euclidean<float>>()) registry.add(kernel);
  for (const Kernel<Gradient>& kernel : kernels<gradient_of::euclidean<double>>()) registry.add(kernel);
}

}  // namespace rigel::backends::gradient
