// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packing: a block of A or B becomes panels of a fixed width, each with its values for one k side by side, converted to
// the type in which ⊗ computes. At the edge the last valid row is repeated; those outputs are never stored.
#pragma once

#include <rigel/backends/host/lanes.hpp>

namespace rigel::backends::host {

/// `count` rows of `steps` elements each, as panels of Width rows. Defined in pack_loops.hpp.
template <class Level, int Width, class From, class To>
void pack(const From* source, std::int64_t row_stride, std::int64_t k_stride, int count, int steps, To* panel);

/// What packed values contain that could make a product NaN.
struct Specials {
  bool nan = false, infinite = false, negative_infinite = false;
};

/// Looks through packed values. Defined in pack_loops.hpp.
template <class Level, class T>
Specials specials_of(const T* values, std::int64_t count);

/// Whether no product of the one side's values with the other's is NaN. Finite values make none; the infinities that
/// occur are tried against each other and against zero.
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
