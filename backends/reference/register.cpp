// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the reference family.
#include <rigel/backends/reference/register.hpp>
#include <rigel/semirings.hpp>

namespace rigel::backends {

void register_reference(Registry<Contraction>& registry) {
  detail::for_each_of_zoo([&]<class List>() { reference::add<List>(registry); });
}

}  // namespace rigel::backends
