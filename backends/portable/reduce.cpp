// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() by strips on the execution spaces that the library is compiled for.
#include <rigel/backends/portable/weighted.hpp>

namespace rigel::backends {

void register_portable(Registry<Reduction>& registry);
void register_portable(Registry<Reduction>& registry) {
  portable::add_reductions<detail::compiled_spaces>([&](const Kernel<Reduction>& k) { registry.add(k); });
}

}  // namespace rigel::backends
