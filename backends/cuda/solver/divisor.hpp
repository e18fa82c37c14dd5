// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dividing by pivots, as a multiplication by reciprocals. Those of the least subnormal numbers are infinite.
#pragma once

#include <cmath>
#include <limits>

namespace rigel::backends::solver {

/// Whether a pivot's reciprocal serves to divide by it.
template <class T>
__device__ __forceinline__ bool serves(T reciprocal) {
  return abs(reciprocal) <= std::numeric_limits<T>::max();
}

/// A pivot. A subnormal one, and what it divides, is multiplied by a power of two first, which makes it a normal number.
template <class T>
struct Divisor {
  T scale, reciprocal;
  __device__ __forceinline__ explicit Divisor(T pivot)
      : scale(abs(pivot) < std::numeric_limits<T>::min() ? 1 / std::numeric_limits<T>::epsilon() : T(1)),
        reciprocal(T(1) / (pivot * scale)) {}
  /// The reciprocal is known, but need not serve.
  __device__ __forceinline__ Divisor(T pivot, T known) : scale(1), reciprocal(known) {
    if (!serves(known)) *this = Divisor(pivot);
  }
  __device__ __forceinline__ T divide(T x) const { return x * scale * reciprocal; }
};

}  // namespace rigel::backends::solver
