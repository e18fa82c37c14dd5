// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference of reduce() on the execution spaces that the library is compiled for.
#include <rigel/backends/reference/reduce.hpp>

namespace rigel::backends {

void register_reference(Registry<Reduction>& registry);
void register_reference(Registry<Reduction>& registry) {
  registry.add(reference::reduction_kernel<detail::compiled_spaces>());
}

}  // namespace rigel::backends
