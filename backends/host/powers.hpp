// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of powers: exponents 1/2, 1, 3/2, … 4 take products and at most one root, a sixth of the time of a power. That depends on the
// exponent alone, so that all loops of a call do the same.
#pragma once

#include <rigel/backends/host/lanes.hpp>
#include <rigel/detail/ordered.hpp>

namespace rigel::backends::host {

template <class S>
inline constexpr bool sums_powers = false;
template <class E, class A>
inline constexpr bool sums_powers<lp<E, A>> = std::is_floating_point_v<A>;
template <class S>
  requires requires(const S s) { s.has_short_powers(); }
inline constexpr bool sums_powers<S> = true;

/// Whether short_power() computes powers of this exponent.
template <class T>
RIGEL_FUNCTION bool has_short_power(T p) {
  return p == T(0.5) || p == 1 || p == T(1.5) || p == 2 || p == T(2.5) || p == 3 || p == T(3.5) || p == 4;
}
/// d^p for d ≥ 0 and such a p, within 4u.
template <class V>
RIGEL_FUNCTION V short_power(V d, lane_t<V> p) {
  switch (static_cast<int>(2 * p)) {
    case 1: return __builtin_elementwise_sqrt(d);
    case 2: return d;
    case 3: return math::multiply(d, __builtin_elementwise_sqrt(d));
    case 4: return math::multiply(d, d);
    case 5: return math::multiply(math::multiply(d, d), __builtin_elementwise_sqrt(d));
    case 6: return math::multiply(math::multiply(d, d), d);
    case 7: return math::multiply(math::multiply(d, d), math::multiply(d, __builtin_elementwise_sqrt(d)));
    default: return math::multiply(math::multiply(d, d), math::multiply(d, d));
  }
}

/// detail::step_on(). If Ordered, the exponents of S have a short_power().
template <bool Ordered, class S, class X, class T>
RIGEL_FUNCTION X step_on(const S& s, const X& x, T a, T b, std::int64_t k) {
  if constexpr (Ordered && requires { s.step_by_short_powers(x, a, b); })
    return s.step_by_short_powers(x, a, b);
  else if constexpr (Ordered && sums_powers<S>)
    return s.add(x, short_power(math::abs(math::subtract(a, b)), s.p));
  else
    return detail::step_on<Ordered>(s, x, a, b, k);
}

}  // namespace rigel::backends::host
