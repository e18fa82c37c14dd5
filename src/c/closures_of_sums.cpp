// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "closures.hpp"

std::span<const rigel::c::Closed> rigel::c::sums_of_paths() {
  static constexpr Closed all[] = {
      closed<min_plus<half>>(),   closed<min_plus<bfloat16>>(),     closed<min_plus<float>>(),
      closed<min_plus<double>>(), closed<min_plus<std::int32_t>>(), closed<min_plus<std::int64_t>>(),
      closed<max_plus<half>>(),   closed<max_plus<bfloat16>>(),     closed<max_plus<float>>(),
      closed<max_plus<double>>(), closed<max_plus<std::int32_t>>(), closed<max_plus<std::int64_t>>()};
  return all;
}
