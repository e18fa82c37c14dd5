// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The semiring that closure() computes in where ⊗ need not leave identity() as it is: min_times, whose 0 · ∞ is NaN, and functors that
// state neither annihilator() nor is_no_path().
#pragma once

#include <rigel/semirings.hpp>

namespace rigel::detail {

/// S, but the product of identity() and anything else is identity(), NaN included.
template <class S>
struct Absorbing : S {
  using self = Absorbing;
  using Accumulator = typename S::accumulator;
  static constexpr bool commutative = is_commutative<S>, idempotent = is_idempotent<S>, selective = is_selective<S>,
                        exact = is_exact<S>, transcendental = is_transcendental<S>, divides = rigel::divides<S>;
  static constexpr bool takes_lanes = rigel::takes_lanes<S> && std::is_same_v<operand_t<S>, Accumulator>;
  static constexpr Domain domain = domain_of<S>;
  static constexpr ErrorModel errors = error_model_of<S>;
  static constexpr Join join = join_of<S>;

  RIGEL_MEMBER Accumulator multiply(operand_t<S> a, operand_t<S> b) const {
    const auto none = static_cast<operand_t<S>>(convert<typename S::element>(Accumulator(S::identity())));
    return a == none || b == none ? Accumulator(S::identity()) : Accumulator(S::multiply(a, b));
  }
  template <Lanes T>
    requires takes_lanes
  RIGEL_MEMBER T multiply(T a, T b) const {
    const T none = T{} + lane_t<T>(convert<typename S::element>(Accumulator(S::identity())));
    return math::select((a == none) | (b == none), none, S::multiply(a, b));
  }
  void step() = delete;  // S's own, which multiplies by identity()
};

}  // namespace rigel::detail
