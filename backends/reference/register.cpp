// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the reference family offers.
#include <backends/reference/register.hpp>
#include <rigel/semirings.hpp>

namespace rigel::backends {

void register_reference(Registry& registry) {
  using namespace reference;
  add<zoo::plus_times>(registry);
  add<zoo::min_plus>(registry);
  add<zoo::max_plus>(registry);
  add<zoo::max_min>(registry);
  add<zoo::min_max>(registry);
  add<zoo::max_times>(registry);
  add<zoo::min_times>(registry);
  add<zoo::or_and>(registry);
  add<zoo::xor_and>(registry);
  add<zoo::log_plus>(registry);
  add<zoo::l1>(registry);
  add<zoo::l2_squared>(registry);
  add<zoo::lp>(registry);
  add<zoo::linf>(registry);
  add<zoo::hamming>(registry);
  add<zoo::bit_hamming>(registry);
  add<zoo::bit_jaccard>(registry);
}

}  // namespace rigel::backends
