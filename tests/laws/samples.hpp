// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operands on which laws are tested: small and large numbers, zeros, subnormals, infinities and NaN, for each semiring
// within its domain.
#pragma once

#include <rigel/semirings.hpp>

#include <limits>
#include <vector>

namespace laws {

template <class Element>
std::vector<float> sixteen_bit(float smallest, float smallest_normal, float largest) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> list;
  for (const float v : {0.f, -0.f, 1.f, -1.f, .5f, -2.5f, 3.f, 1e-3f, 100.f, smallest, -smallest, smallest_normal, largest,
                        -largest, inf, -inf, nan})
    list.push_back(Element(v));
  return list;
}

/// Values of an element type, in the type that ⊗ computes in.
template <class Element>
std::vector<rigel::accumulator_for<Element>> elements() {
  using Limits = std::numeric_limits<Element>;
  if constexpr (std::is_same_v<Element, rigel::half>) {
    return sixteen_bit<Element>(0x1p-24f, 0x1p-14f, 65504.f);
  } else if constexpr (std::is_same_v<Element, rigel::bfloat16>) {
    return sixteen_bit<Element>(0x1p-133f, 0x1p-126f, 0x1.fep127f);
  } else if constexpr (std::is_floating_point_v<Element>) {
    return {0,
            Element(-0.),
            1,
            -1,
            Element(.5),
            Element(-2.5),
            3,
            Element(.1),
            Element(1e5),
            Limits::denorm_min(),
            -Limits::denorm_min(),
            Limits::min(),
            Limits::max(),
            Limits::lowest(),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN()};
  } else {
    const auto low = Limits::lowest(), high = Limits::max();
    std::vector<rigel::accumulator_for<Element>> list = {0, 1, 2, 3, 7, 100, high};
    if (std::is_signed_v<Element>)
      for (const int v : {-1, -2, -100}) list.push_back(static_cast<Element>(v));
    list.push_back(low);
    return list;
  }
}

/// Values within the domain of S.
template <class S>
std::vector<rigel::operand_t<S>> samples() {
  using T = rigel::operand_t<S>;
  using enum rigel::Domain;
  constexpr rigel::Domain domain = rigel::domain_of<S>;
  const bool bounded =
      rigel::is_selective<S> && std::is_integral_v<T> && domain != truth_values;  // integers within ±infinity
  std::vector<T> list;
  for (const auto v : elements<typename S::element>()) {
    if (domain == truth_values && v > 1) continue;
    if (domain == non_negative && (v < 0 || v > T(1e5))) continue;  // 1e5: products of integers that do not wrap
    if (bounded && (v > rigel::infinity<T>() || v < rigel::negative_infinity<T>())) continue;
    list.push_back(v);
  }
  if (bounded && domain != non_negative && std::is_same_v<T, typename S::element>) {
    list.push_back(rigel::infinity<T>());
    list.push_back(rigel::negative_infinity<T>());
  }
  return list;
}

}  // namespace laws
