// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// epilogue::arguments(): from the results of with_argument<S> to two matrices, values in C and the k that won in another. No
// Kokkos here: contract() turns the view into pointer and strides.
#pragma once

#include <rigel/detail/arguments.hpp>
#include <rigel/epilogue.hpp>
#include <rigel/semirings.hpp>

namespace rigel::epilogue {

/// What arguments() returns.
template <class View>
struct Arguments {
  View indices;
};

/// The functor that kernels get for it.
template <class Index>
struct KeepIndex {
  rigel::detail::Strided<Index> indices;
  template <class T>
  RIGEL_MEMBER T operator()(const argument<T>& x, std::int64_t m, std::int64_t n, std::int64_t batch) const {
    indices.at(batch, m, n) = static_cast<Index>(x.index);
    return x.value;
  }
};

/// For with_argument<S>: I(l,m,n) = the k that won, and the value goes to C, or by `|` to further steps:
///
///     C(l,m,n) = ⊕_k A(l,m,k) ⊗ B(l,k,n) = A(l,m,i) ⊗ B(l,i,n),   i = I(l,m,n)
///
/// indices   view of signed integers that hold K − 1, of any layout, or a transposed() one; M × N, with C's batches, their
///           index where options.batch says. It overlaps neither A, B, C nor itself.
/// The smallest k wins a tie. A NaN wins over any number, the first NaN over later ones. I = −1 if K = 0.
/// contract() throws Error(invalid_argument) for other extents, an overlap or too narrow integers, before anything is written.
template <class View>
Arguments<View> arguments(const View& indices) {
  return {indices};
}

template <class View>
inline constexpr bool is_composable<Arguments<View>> = true;

}  // namespace rigel::epilogue
