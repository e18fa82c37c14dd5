// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference of the solves on the execution spaces that the library is compiled for.
#include <rigel/backends/reference/solve.hpp>

namespace rigel::backends {

void register_reference(Registry<Solve>& registry);
void register_reference(Registry<Solve>& registry) {
  for (const Kernel<Solve>& kernel : reference::solve_kernels<float, detail::compiled_spaces>()) registry.add(kernel);
  for (const Kernel<Solve>& kernel : reference::solve_kernels<double, detail::compiled_spaces>()) registry.add(kernel);
}

}  // namespace rigel::backends
