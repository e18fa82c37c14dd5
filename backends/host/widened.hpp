// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings whose accumulators are half or bfloat16, on lanes of float.
#pragma once

#include <rigel/semirings.hpp>

namespace rigel::backends::host {

/// S<T, T> with operands and accumulators in float, whose outputs are rounded once, at their end. They equal those of S<T, T> if its ⊕
/// is a minimum or a maximum and its ⊗ a sum, a minimum or a maximum: rounding is monotonic, so the minimum of rounded numbers is the
/// rounded minimum.
template <template <class, class> class S, ShortFloat T>
struct Widened : S<T, float> {
  using self = Widened;
  RIGEL_MEMBER static T result(float x) { return x; }
};

/// What the loops of a semiring compute: itself, or the same widened.
template <class S>
struct computed {
  using type = S;
};
template <template <class, class> class S, ShortFloat T>
  requires rigel::detail::contains<S<T, T>, type_list<min_plus<T, T>, max_plus<T, T>, min_max<T, T>, max_min<T, T>>>
struct computed<S<T, T>> {
  using type = Widened<S, T>;
};
template <class S>
using computed_t = typename computed<S>::type;

}  // namespace rigel::backends::host

namespace rigel {
/// It has the shorter forms of the semiring that it is of.
template <template <class, class> class S, class T>
inline constexpr bool in_zoo<backends::host::Widened<S, T>> = in_zoo<S<T, T>>;
}  // namespace rigel
