// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementary functions that semirings need inside the loop.
#pragma once

#include <rigel/numeric.hpp>

namespace rigel::math {

/// e^x.
template <Number T>
RIGEL_FUNCTION T exponential(T x) {
  if constexpr (Lanes<T>) {
    return __builtin_elementwise_exp(x);
  } else {
#if RIGEL_ON_DEVICE
    return ::exp(x);
#else
    return std::exp(x);
#endif
  }
}

/// Natural logarithm of x.
template <Number T>
RIGEL_FUNCTION T logarithm(T x) {
  if constexpr (Lanes<T>) {
    return __builtin_elementwise_log(x);
  } else {
#if RIGEL_ON_DEVICE
    return ::log(x);
#else
    return std::log(x);
#endif
  }
}

/// x^p for x ≥ 0 and p > 0; NaN for NaN.
template <Number T>
RIGEL_FUNCTION T power(T x, lane_t<T> p) {
  if constexpr (Lanes<T>) {
    return __builtin_elementwise_pow(x, T(p));
  } else {
#if RIGEL_ON_DEVICE
    return ::pow(x, p);
#else
    return std::pow(x, p);
#endif
  }
}

}  // namespace rigel::math
