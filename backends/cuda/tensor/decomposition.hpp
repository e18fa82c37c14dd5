// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How kernels on tensor cores multiply numbers and sum the products. Names of variants, bit classes and error bounds follow
// from it.
#pragma once

#include <rigel/call.hpp>

#include <string>
#include <type_traits>

namespace rigel::backends::tensor {

struct Decomposition {
  /// Numbers in memory whose sum an element is, each in a plane of its own; 1 for the element itself.
  int planes = 1;
  /// Products of parts for one product of elements, the smallest left out. If there is one plane, but several products, the
  /// kernel splits elements in registers.
  int products = 1;
  /// Elements along K whose products tensor cores sum by themselves; these sums are then added in the accumulator's type. 0: all of K.
  int promoted = 0;
  /// Elements along K whose promoted sums are added to each other first, then to the previous ones. 0: all of K.
  int grouping = 0;

  bool operator==(const Decomposition&) const = default;
};

/// How floats are multiplied at a precision: as tf32, or in planes if kernels multiply numbers of type bfloat16. Other elements
/// are multiplied as they are.
template <class Element, class Multiplied>
constexpr Decomposition decomposition_at(Precision precision) {
  constexpr bool in_planes = !std::is_same_v<Element, Multiplied>;
  switch (precision) {
    case Precision::exact_products: return {3, 9, 32};
    case Precision::promoted: return in_planes ? Decomposition{3, 6, 32} : Decomposition{1, 3, 32};
    case Precision::split: return in_planes ? Decomposition{3, 6} : Decomposition{1, 3};
    case Precision::bf16x3: return {2, 3};
    default: return {};
  }
}

/// The name of a variant whose precision has others: those in three planes, and promoted sums of elements as they are. All
/// others have the name of their precision.
inline std::string variant_of(Decomposition d) {
  if (d.products == 1 && d.promoted > 0) return "promoted";
  if (d.planes < 3) return {};
  const std::string planes = "bf16x" + std::to_string(d.products);
  return planes + (d.promoted == 0 ? "_split" : d.products < 9 ? "_promoted" : "");
}

}  // namespace rigel::backends::tensor
