// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packing: copies a block of A or B into panels of a fixed width, in which the values for one k are contiguous, and converts
// them to the type in which ⊗ computes. At the edge the last valid row is repeated; the outputs of the copies are never stored.
#pragma once

#include <rigel/backends/host/lanes.hpp>

namespace rigel::backends::host {

/// Packs `count` rows of `steps` elements each into panels of Width rows. pack_loops.hpp defines it.
template <class Level, int Width, class From, class To>
void pack(const From* source, std::int64_t row_stride, std::int64_t k_stride, int count, int steps, To* panel);

/// Which values that could make a product NaN occur among packed values.
struct Specials {
  bool nan = false, infinite = false, negative_infinite = false;
};

/// Searches packed values for them. pack_loops.hpp defines it.
template <class Level, class T>
Specials specials_of(const T* values, std::int64_t count);

/// Whether no product of values of A and B is NaN. Finite values give none, so this tries the infinities that occur, with each
/// other and with zero.
template <class S>
RIGEL_FUNCTION bool products_are_ordered(const S& s, const Specials& a, const Specials& b) {
  using T = operand_t<S>;
  if (a.nan || b.nan) return false;
  const T values_a[] = {T(0), a.infinite ? infinity<T>() : T(0), a.negative_infinite ? -infinity<T>() : T(0)};
  const T values_b[] = {T(0), b.infinite ? infinity<T>() : T(0), b.negative_infinite ? -infinity<T>() : T(0)};
  for (const T x : values_a)
    for (const T y : values_b) {
      const T product = s.multiply(x, y);
      if (product != product) return false;
    }
  return true;
}

}  // namespace rigel::backends::host
