// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// epilogue::arguments(): splits the results of with_argument<S> into two matrices, the values in C and the winning k in another
// one. No Kokkos here: contract() turns the view into a pointer and strides.
#pragma once

#include <rigel/detail/arguments.hpp>
#include <rigel/epilogue.hpp>
#include <rigel/semirings.hpp>

namespace rigel::epilogue {

/// What arguments() returns: the view that receives the winning k.
template <class View>
struct Arguments {
  View indices;
};

/// The functor that kernels get for arguments(): it stores the index and returns the value.
template <class Index>
struct KeepIndex {
  rigel::detail::Strided<Index> indices;
  template <class T>
  RIGEL_MEMBER T operator()(const argument<T>& x, std::int64_t m, std::int64_t n, std::int64_t batch) const {
    indices.at(batch, m, n) = static_cast<Index>(x.index);
    return x.value;
  }
};

/// The epilogue for with_argument<S>. It stores the k that won in I. The value goes on to C, or after `|` to the next step:
///
///     C(l,m,n) = ⊕_k A(l,m,k) ⊗ B(l,k,n) = A(l,m,i) ⊗ B(l,i,n),   i = I(l,m,n)
///
/// indices   I, a view of signed integers that can hold K − 1, of any layout, or a transposed() one. It is M × N and has C's
///           batches; options.batch says which index counts them. It overlaps neither A, B, C nor itself.
/// The smallest k wins a tie. A NaN wins over any number, the first NaN over later ones. I = −1 if K = 0.
/// contract() throws Error(invalid_argument), before anything is written, if the extents are not C's, if I overlaps an operand
/// or itself, or if its integers are too narrow.
template <class View>
Arguments<View> arguments(const View& indices) {
  return {indices};
}

template <class View>
inline constexpr bool is_composable<Arguments<View>> = true;

}  // namespace rigel::epilogue
