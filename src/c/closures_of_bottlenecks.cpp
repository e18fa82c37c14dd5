// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "closures.hpp"

std::span<const rigel::c::Closed> rigel::c::bottlenecks() {
  static constexpr Closed all[] = {
      closed<max_min<half>>(),   closed<max_min<bfloat16>>(),     closed<max_min<float>>(),
      closed<max_min<double>>(), closed<max_min<std::int32_t>>(), closed<max_min<std::int64_t>>(),
      closed<min_max<half>>(),   closed<min_max<bfloat16>>(),     closed<min_max<float>>(),
      closed<min_max<double>>(), closed<min_max<std::int32_t>>(), closed<min_max<std::int64_t>>()};
  return all;
}
