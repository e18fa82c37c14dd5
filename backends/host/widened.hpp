// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings whose accumulators are half or bfloat16, on lanes of float.
#pragma once

#include <rigel/backends/host/lanes.hpp>

namespace rigel::backends::host {

/// Floats rounded to half or bfloat16, as their constructors do.
template <class To, class V>
RIGEL_FUNCTION auto shortened(V v) {
  constexpr int lanes = sizeof(V) / sizeof(float);
  if constexpr (std::is_same_v<To, half>) {
    return __builtin_convertvector(v, vector<_Float16, lanes>);
  } else {
    using Bits = vector<std::uint32_t, lanes>;
    const Bits u = __builtin_bit_cast(Bits, v), nan = (u >> 16) | 0x40u;
    return __builtin_convertvector(v == v ? (u + 0x7fffu + ((u >> 16) & 1u)) >> 16 : nan, vector<std::uint16_t, lanes>);
  }
}

/// The same, as floats.
template <class To, class V>
RIGEL_FUNCTION V rounded_to(V v) {
  constexpr int lanes = sizeof(V) / sizeof(float);
  if constexpr (std::is_same_v<To, half>)
    return __builtin_convertvector(shortened<To>(v), V);
  else
    return __builtin_bit_cast(V, __builtin_convertvector(shortened<To>(v), vector<std::uint32_t, lanes>) << 16);
}

/// S<T, T> with operands and accumulators in float, whose outputs are rounded once, at their end. They equal those of S<T, T> if its ⊕
/// is a minimum or a maximum and its ⊗ a sum, a minimum or a maximum: rounding is monotonic, so the minimum of rounded numbers is the
/// rounded minimum.
template <template <class, class> class S, ShortFloat T>
struct Widened : S<T, float> {
  using self = Widened;
  RIGEL_MEMBER static T result(float x) { return x; }
  template <Lanes V> RIGEL_MEMBER static V result(V x) { return rounded_to<T>(x); }
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

namespace rigel::backends::host {

/// The semiring of the zoo that the innermost loops see: that of the operands' type, since packing converts the elements. So
/// float, half and bfloat16 share their loops, and int32 shares its own with bytes.
template <class S>
struct of_operands {
  using type = S;
};
template <template <class, class> class S, class E, class A>
  requires in_zoo<S<E, A>> && in_zoo<S<A, A>> && std::is_same_v<operand_t<S<E, A>>, A>
struct of_operands<S<E, A>> {
  using type = S<A, A>;
};
template <template <class, class> class S, class T>
struct of_operands<Widened<S, T>> {
  using type = S<float, float>;
};
template <template <class> class S, class Word>
  requires in_zoo<S<Word>> && in_zoo<S<operand_t<S<Word>>>>
struct of_operands<S<Word>> {
  using type = S<operand_t<S<Word>>>;
};
template <class S>
using of_operands_t = typename of_operands<S>::type;

/// The same object.
template <class S>
RIGEL_FUNCTION of_operands_t<S> as_of_operands(const S& s) {
  if constexpr (std::is_same_v<S, of_operands_t<S>>)
    return s;
  else
    return __builtin_bit_cast(of_operands_t<S>, s);
}

}  // namespace rigel::backends::host
