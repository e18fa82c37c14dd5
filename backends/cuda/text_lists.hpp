// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of the kernels for texts, in the order of the bitcode's tables.
#pragma once

#include <rigel/semirings.hpp>

#include <type_traits>

namespace rigel::backends::cuda {

template <class... X, class... Y>
constexpr type_list<X..., Y...> operator+(type_list<X...>, type_list<Y...>) {
  return {};
}

/// Where a type stands in a list.
template <class T, class... All>
constexpr int text_place(type_list<All...>) {
  int place = 0, found = -1;
  ((std::is_same_v<All, T> ? void(found = place) : void(), ++place), ...);
  return found;
}

}  // namespace rigel::backends::cuda
