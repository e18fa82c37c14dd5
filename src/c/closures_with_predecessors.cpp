// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "closures.hpp"

std::span<const rigel::c::Closed> rigel::c::with_predecessors() {
  static constexpr Closed all[] = {closed<min_plus<float>, std::int32_t>(), closed<min_plus<double>, std::int32_t>(),
                                   closed<min_plus<std::int32_t>, std::int32_t>()};
  return all;
}
