// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference of the gradients on the execution spaces that the library is compiled for.
#include <rigel/backends/reference/gradient.hpp>
#include <rigel/detail/kernel.hpp>

namespace rigel::backends {

void register_reference(Registry<Gradient>& registry);
void register_reference(Registry<Gradient>& registry) {
  detail::for_each(detail::gradient_functors{},
                   [&]<class G>() { registry.add(reference::gradient_kernel<G, detail::compiled_spaces>()); });
}

}  // namespace rigel::backends
