// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the portable family.
#include <rigel/backends/portable/register.hpp>
#include <rigel/semirings.hpp>

namespace rigel::backends {

void register_portable(Registry<Contraction>& registry) {
  detail::for_each_of_zoo([&]<class List>() { portable::add<List>(registry); });
}

}  // namespace rigel::backends
