// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a semiring is to Rigel: a trivially copyable functor with two operations. Composition of new ones, and the
// helpers through which every kernel calls them.
#pragma once

#include <rigel/numeric.hpp>

#include <array>
#include <concepts>
#include <string_view>

namespace rigel {

namespace detail {
template <class S>
struct operand {
  using type = typename S::element;
};
template <class S>
  requires requires { typename S::operand; }
struct operand<S> {
  using type = typename S::operand;
};
}  // namespace detail

/// The type in which ⊗ reads its arguments: S::operand if there is one (elements convert to it exactly), else S::element.
template <class S>
using operand_t = typename detail::operand<S>::type;

/// ⊗ that asks for the summation index: multiply(a, b, k).
template <class S>
concept MultipliesWithIndex = requires(const S s, operand_t<S> a, std::int64_t k) {
  { s.multiply(a, a, k) } -> std::convertible_to<typename S::accumulator>;
};

/// ⊗ of two operands alone: multiply(a, b).
template <class S>
concept MultipliesPairs = requires(const S s, operand_t<S> a) {
  { s.multiply(a, a) } -> std::convertible_to<typename S::accumulator>;
};

/// A semiring (⊕, ⊗) for C(m,n) = ⊕_k A(m,k) ⊗ B(k,n):
///   element                 what A and B hold
///   accumulator             what ⊕ runs in; a struct if need be
///   identity()              static; the identity of ⊕
///   multiply(a, b[, k])     ⊗; with k if it takes one
///   add(x, y)               ⊕
/// Optional members:
///   operand                 the type that ⊗ computes in (default: element)
///   step(x, a, b)           a fused add(x, multiply(a, b))
///   result(x)               what C receives from an accumulator (default: the accumulator itself)
///   lift(c)                 the accumulator of a value of C, for `accumulate`
///   one(), annihilator()    static; identity of ⊗, and an operand that turns every product into identity()
///   commutative, idempotent, selective, exact, takes_lanes, transcendental   flags, see below
///   name                    its name in the registry
/// Functors are trivially copyable; hyperparameters are members; unmanaged views may be members. Element, operand and accumulator
/// are trivially copyable and default constructible.
///
/// In contract() multiply() and step() of your functor, and conversions from its element to its operand, only see elements that A
/// and B hold, on every backend: one of A and one of B with the same k, 0 ≤ k < K, of the same batch. They never see uninitialised,
/// padded or zeroed values: beyond M and N tiles repeat rows and columns. So ⊗ may trap on other values, or look values up in a
/// table that has no entry for others. Tiles may compute a pair more than once, and drop the result.
template <class S>
concept Semiring = std::is_trivially_copyable_v<S> && requires(const S s, typename S::accumulator x) {
  typename S::element;
  { S::identity() } -> std::convertible_to<typename S::accumulator>;
  { s.add(x, x) } -> std::convertible_to<typename S::accumulator>;
} && (MultipliesPairs<S> || MultipliesWithIndex<S>);

/// a ⊗ b = b ⊗ a.
template <class S>
inline constexpr bool is_commutative = false;
template <class S>
  requires requires { S::commutative; }
inline constexpr bool is_commutative<S> = S::commutative;

/// x ⊕ x = x.
template <class S>
inline constexpr bool is_idempotent = false;
template <class S>
  requires requires { S::idempotent; }
inline constexpr bool is_idempotent<S> = S::idempotent;

/// x ⊕ y is x or y.
template <class S>
inline constexpr bool is_selective = false;
template <class S>
  requires requires { S::selective; }
inline constexpr bool is_selective<S> = S::selective;

/// ⊕ does not round differently under any order, so that every kernel must give the reference's bits.
template <class S>
inline constexpr bool is_exact = false;
template <class S>
  requires requires { S::exact; }
inline constexpr bool is_exact<S> = S::exact;

/// multiply, add and step also take Clang vectors in place of numbers, so that host kernels run them a register at a time.
/// Without the flag they call the functor once for each lane, and the compiler joins the lanes where it can.
template <class S>
inline constexpr bool takes_lanes = false;
template <class S>
  requires requires { S::takes_lanes; }
inline constexpr bool takes_lanes<S> = S::takes_lanes;

/// ⊗ or ⊕ call exponentials or powers, whose last bits differ between the host's scalars, its vectors and the GPU: no
/// kernel but the reference promises the reference's bits.
template <class S>
inline constexpr bool is_transcendental = false;
template <class S>
  requires requires { S::transcendental; }
inline constexpr bool is_transcendental<S> = S::transcendental;

namespace detail {

// The text of a type as the compiler prints it, after "::".
template <class T>
constexpr auto make_qualified_name() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr auto begin = text.find("T = ") + 4;
  constexpr auto size = text.rfind(']') - begin;
  std::array<char, size + 2> name = {':', ':'};
  for (std::size_t i = 0; i < size; ++i) name[i + 2] = text[begin + i];
  return name;
}
template <class T>
inline constexpr auto qualified_characters = make_qualified_name<T>();
template <class T>
inline constexpr std::string_view qualified_name{qualified_characters<T>.data(), qualified_characters<T>.size()};

}  // namespace detail

/// Name of a semiring in the registry: S::name, or the type's own name after "::", so that a user's `l1` is never taken
/// for Rigel's.
template <class S>
constexpr std::string_view semiring_name() {
  if constexpr (requires { std::string_view(S::name); })
    return S::name;
  else
    return detail::qualified_name<S>;
}

/// x ⊕ (a ⊗ b), by S::step where there is one. Operands and accumulators may be vectors where S takes them.
template <class S, class X, class T>
RIGEL_FUNCTION X step(const S& s, X x, T a, T b, [[maybe_unused]] std::int64_t k) {
  if constexpr (requires { s.step(x, a, b); })
    return s.step(x, a, b);
  else if constexpr (requires { s.multiply(a, b, k); })
    return s.add(x, s.multiply(a, b, k));
  else
    return s.add(x, s.multiply(a, b));
}

/// What C receives: S::result(x), or the accumulator itself.
template <class S>
RIGEL_FUNCTION auto result(const S& s, typename S::accumulator x) {
  if constexpr (requires { s.result(x); })
    return s.result(x);
  else
    return x;
}
template <class S>
using result_t = decltype(result(std::declval<const S&>(), std::declval<typename S::accumulator>()));

/// The accumulator with which a chain starts that continues the value c of C.
template <class S, class Value>
RIGEL_FUNCTION typename S::accumulator lift(const S& s, Value c) {
  if constexpr (requires { s.lift(c); })
    return s.lift(c);
  else
    return static_cast<typename S::accumulator>(c);
}

/// Whether `accumulate` is defined: the accumulator is a number, or the semiring can lift a value of C into it.
template <class S>
inline constexpr bool can_accumulate =
    Number<typename S::accumulator> || requires(const S s, result_t<S> c) { s.lift(c); };

/// A commutative monoid: the ⊕ of a composed semiring.
template <class M, class T>
concept Monoid = requires(T x) {
  { M::template identity<T>() } -> std::convertible_to<T>;
  { M::apply(x, x) } -> std::convertible_to<T>;
};

/// A semiring from its two halves: `compose<multiplies::plus, monoids::minimum, float>` is min_plus<float>. `Multiply`
/// offers `static T apply(T, T)`, `Add` the same and `static T identity<T>()`.
template <class Multiply, class Add, class Element, class Accumulator = Element>
  requires Monoid<Add, Accumulator>
struct compose {
  using element = Element;
  using operand = Accumulator;
  using accumulator = Accumulator;
  static constexpr bool commutative = is_commutative<Multiply>;
  static constexpr bool idempotent = is_idempotent<Add>;
  static constexpr bool selective = is_selective<Add>;
  RIGEL_MEMBER static constexpr accumulator identity() { return Add::template identity<Accumulator>(); }
  template <Number T>
  RIGEL_MEMBER static T multiply(T a, T b) {
    return Multiply::apply(a, b);
  }
  template <Number T>
  RIGEL_MEMBER static T add(T x, T y) {
    return Add::apply(x, y);
  }
};

}  // namespace rigel
