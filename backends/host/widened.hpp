// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings whose accumulators are half or bfloat16, on lanes of float.
#pragma once

#include <rigel/semirings.hpp>

namespace rigel::backends::host {

/// S with operands and accumulators in float, whose outputs are rounded once, at their end. They have S's bits if its ⊕ is a
/// minimum or a maximum and its ⊗ a sum, a minimum or a maximum: rounding is monotonic, so the minimum of rounded numbers is the
/// rounded minimum. No sum rounds to 0, whose sign would depend on the order. (Products may.)
template <class S, class OfFloat>
struct Widened : OfFloat {
  using self = Widened;
  RIGEL_MEMBER static typename S::accumulator result(float x) { return x; }
};

/// What the loops of S compute: S, or S widened.
template <class S>
struct computed {
  using type = S;
};
template <ShortFloat T>
struct computed<min_plus<T, T>> {
  using type = Widened<min_plus<T, T>, min_plus<T, float>>;
};
template <ShortFloat T>
struct computed<max_plus<T, T>> {
  using type = Widened<max_plus<T, T>, max_plus<T, float>>;
};
template <ShortFloat T>
struct computed<min_max<T, T>> {
  using type = Widened<min_max<T, T>, min_max<T, float>>;
};
template <ShortFloat T>
struct computed<max_min<T, T>> {
  using type = Widened<max_min<T, T>, max_min<T, float>>;
};
template <class S>
using computed_t = typename computed<S>::type;

}  // namespace rigel::backends::host

namespace rigel {
/// It has the shorter forms of the semiring that it is of.
template <class S, class OfFloat>
inline constexpr bool in_zoo<backends::host::Widened<S, OfFloat>> = in_zoo<OfFloat>;
}  // namespace rigel
