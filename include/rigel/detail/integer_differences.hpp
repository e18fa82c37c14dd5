// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The semirings of cdist() for integers of 64 bits: differences are taken as integers, and all else is computed in double.
#pragma once

#include <rigel/detail/keep.hpp>
#include <rigel/detail/wide_difference.hpp>
#include <rigel/semirings.hpp>

#include <algorithm>
#include <array>

namespace rigel::detail {

// "l1_of_differences".
template <class S>
inline constexpr auto name_of_differences = [] {
  constexpr std::string_view of = semiring_name<S>(), what = "_of_differences";
  std::array<char, of.size() + what.size() + 1> name{};
  std::ranges::copy(what, std::ranges::copy(of, name.begin()).out);
  return name;
}();

/// ⊕ of S, a semiring of doubles whose ⊗ depends on |a − b| alone, and that ⊗ of |a − b| and 0: of an exact difference, rounded once.
template <class S>
struct integer_differences {
  using element = std::int64_t;
  using accumulator = double;
  using self = integer_differences;
  static constexpr const char* name = name_of_differences<S>.data();
  static constexpr bool commutative = true, idempotent = is_idempotent<S>, selective = is_selective<S>, exact = is_exact<S>,
                        takes_lanes = rigel::takes_lanes<S>, transcendental = is_transcendental<S>;
  static constexpr ErrorModel errors = error_model_of<S>;
  S of;
  RIGEL_MEMBER static constexpr double identity() { return S::identity(); }
  template <Number T> RIGEL_MEMBER auto multiply(T a, T b) const {
    const auto distance = wide_distance(a, b);
    return of.multiply(distance, std::decay_t<decltype(distance)>{});
  }
  template <Number T> RIGEL_MEMBER T add(T x, T y) const { return of.add(x, y); }
  template <Number X, Number T>
    requires HasStep<S>
  RIGEL_MEMBER X step(X x, T a, T b) const {
    return of.step(x, wide_distance(a, b), X{});
  }
};

/// Those that the library has kernels for (src/operations/integer_differences.cpp).
using compiled_integer_differences = type_list<integer_differences<l1<double>>, integer_differences<l2_squared<double>>,
                                               integer_differences<lp<double>>, integer_differences<linf<double>>>;
template <class S>
  requires contains<S, compiled_integer_differences>
inline constexpr bool in_library<S> = true;

}  // namespace rigel::detail

namespace rigel {

// Addresses in the library: a program that hides its symbols means the same semirings by them.
template <> const void* semiring_type<detail::integer_differences<l1<double>>>();
template <> const void* semiring_type<detail::integer_differences<l2_squared<double>>>();
template <> const void* semiring_type<detail::integer_differences<lp<double>>>();
template <> const void* semiring_type<detail::integer_differences<linf<double>>>();

}  // namespace rigel
