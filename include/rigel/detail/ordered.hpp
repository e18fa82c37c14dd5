// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shorter forms of minima and maxima, for operands whose products are not NaN, and how a kernel on a host finds out whether it
// may take them.
#pragma once

#include <rigel/semirings.hpp>

namespace rigel::detail {

template <class S>
inline constexpr bool has_ordered_add = requires(const S s, typename S::accumulator x) { s.add_if_ordered(x, x); };
template <class S>
inline constexpr bool has_ordered_multiply = requires(const S s, operand_t<S> a) { s.multiply_if_ordered(a, a); };

/// Whether S has shorter forms of its operations for operands and products that are not NaN. Only semirings of the zoo count. A
/// user's functor that inherits these forms may have another ⊗ or ⊕, and its ⊗ must not see infinities that no operand holds.
/// If minimum() is one instruction, no form is shorter.
template <class S>
inline constexpr bool has_ordered_form = in_zoo<S> && std::is_floating_point_v<operand_t<S>> &&
                                         (has_ordered_add<S> || has_ordered_multiply<S>) && !math::minimum_is_instruction;

/// x ⊕ (a ⊗ b) on numbers or vectors. If Ordered, neither a, b nor a ⊗ b is NaN; of an S with step_if_regular(), a and b are regular.
template <bool Ordered, class S, class X, class T>
RIGEL_FUNCTION X step_on(const S& s, const X& x, T a, T b, std::int64_t k) {
  if constexpr (Ordered && requires { s.step_if_regular(x, a, b); })
    return s.step_if_regular(x, a, b);
  else if constexpr (Ordered && has_ordered_multiply<S>)
    return s.add_if_ordered(x, s.multiply_if_ordered(a, b));
  else if constexpr (Ordered)
    return s.add_if_ordered(x, s.multiply(a, b));
  else
    return rigel::step(s, x, a, b, k);
}

/// Which values that could make a product NaN occur among operands.
struct Specials {
  bool nan = false, infinite = false, negative_infinite = false;
  RIGEL_FUNCTION Specials& operator|=(const Specials& other) {
    nan |= other.nan;
    infinite |= other.infinite;
    negative_infinite |= other.negative_infinite;
    return *this;
  }
};

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

}  // namespace rigel::detail
