// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "closures.hpp"

std::span<const rigel::c::Closed> rigel::c::products_along_paths() {
  static constexpr Closed all[] = {
      closed<max_times<half>>(),      closed<max_times<bfloat16>>(),     closed<max_times<float>>(),
      closed<max_times<double>>(),    closed<max_times<std::int32_t>>(), closed<max_times<std::int64_t>>(),
      closed<or_and<std::uint8_t>>(), closed<or_and<std::uint32_t>>(),   closed<or_and<std::uint64_t>>()};
  return all;
}
