// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a semiring is to Rigel: a trivially copyable functor with two operations. Also the flags and facts that it may state,
// composition from two halves, and the helpers through which every kernel calls it.
#pragma once

#include <rigel/numeric.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
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

/// The type in which ⊗ reads its arguments: S::operand if S has one, to which elements convert exactly, else S::element.
template <class S>
using operand_t = typename detail::operand<S>::type;

/// ⊗ with the summation index: multiply(a, b, k).
template <class S>
concept MultipliesWithIndex = requires(const S s, operand_t<S> a, std::int64_t k) {
  { s.multiply(a, a, k) } -> std::convertible_to<typename S::accumulator>;
};

/// ⊗ without it: multiply(a, b).
template <class S>
concept MultipliesPairs = requires(const S s, operand_t<S> a) {
  { s.multiply(a, a) } -> std::convertible_to<typename S::accumulator>;
};

/// A semiring (⊕, ⊗) for C(m,n) = ⊕_k A(m,k) ⊗ B(k,n):
///   element                 the type of A's and B's elements
///   accumulator             the type in which ⊕ runs; may be a struct
///   identity()              static; the identity of ⊕
///   multiply(a, b[, k])     ⊗, with the summation index if it takes one
///   add(x, y)               ⊕
/// Optional members:
///   operand                 the type that ⊗ computes in (default: element)
///   step(x, a, b)           a fused add(x, multiply(a, b))
///   result(x)               what C receives from an accumulator (default: the accumulator itself)
///   lift(c)                 the accumulator for a value of C, for `accumulate`
///   one(), annihilator()    static; the identity of ⊗, and an operand that turns every product into identity()
///   is_no_path(x)           static; whether closure() takes x for "no path": identity(), and the products of an identity()
///                           that does not absorb (default: identity() alone, exactly)
///   commutative, idempotent, selective, exact, takes_lanes, transcendental, divides   flags, see below
///   domain, errors, join, hyperparameters(), sample()   facts for verify(), tools and bindings, see below
///   self                    the type itself, see speaks_for_itself
///   name                    its name in explain() and in messages; it never decides what is computed
/// Functors are trivially copyable. Hyperparameters are members, and unmanaged views may be. Element, operand and accumulator
/// are trivially copyable and default constructible.
///
/// In contract(), on every backend, your functor only sees elements that A and B hold: multiply() and step() get one of A and
/// one of B with the same k, 0 ≤ k < K, of the same batch. This also holds for conversions from element to operand. They never
/// see uninitialised, padded or zeroed values, since tiles repeat rows and columns beyond M and N. So ⊗ may trap on other
/// values, or look values up in a table without entries for others. Tiles may compute a pair more than once, and drop the
/// result.
template <class S>
concept Semiring = std::is_trivially_copyable_v<S> && requires(const S s, typename S::accumulator x) {
  typename S::element;
  { S::identity() } -> std::convertible_to<typename S::accumulator>;
  { s.add(x, x) } -> std::convertible_to<typename S::accumulator>;
} && (MultipliesPairs<S> || MultipliesWithIndex<S>);

/// Whether the members of S (flags, step, domain, …) describe S itself. Rigel's semirings say so by `using self = …`. A
/// functor that derives from one of them inherits members that describe its base, and need not hold for another ⊗ or ⊕. So
/// they count only if the functor says `using self = …` with its own type.
template <class S>
inline constexpr bool speaks_for_itself = true;
template <class S>
  requires requires { typename S::self; }
inline constexpr bool speaks_for_itself<S> = std::is_same_v<typename S::self, S>;

/// a ⊗ b = b ⊗ a; or they are accumulators that differ, but result() makes the same of Σ_k a ⊗ b and of Σ_k b ⊗ a.
template <class S>
inline constexpr bool is_commutative = false;
template <class S>
  requires requires { S::commutative; }
inline constexpr bool is_commutative<S> = S::commutative && speaks_for_itself<S>;

/// x ⊕ x = x.
template <class S>
inline constexpr bool is_idempotent = false;
template <class S>
  requires requires { S::idempotent; }
inline constexpr bool is_idempotent<S> = S::idempotent && speaks_for_itself<S>;

/// x ⊕ y is x or y.
template <class S>
inline constexpr bool is_selective = false;
template <class S>
  requires requires { S::selective; }
inline constexpr bool is_selective<S> = S::selective && speaks_for_itself<S>;

/// ⊕ gives the same value in any order, so every kernel must give the reference's bits.
template <class S>
inline constexpr bool is_exact = false;
template <class S>
  requires requires { S::exact; }
inline constexpr bool is_exact<S> = S::exact && speaks_for_itself<S>;

/// multiply, add and step also take Clang vectors in place of numbers, so that host kernels run them on whole registers.
/// Without the flag host kernels call the functor once for each lane, and the compiler vectorises that if it can.
template <class S>
inline constexpr bool takes_lanes = false;
template <class S>
  requires requires { S::takes_lanes; }
inline constexpr bool takes_lanes<S> = S::takes_lanes && speaks_for_itself<S>;

/// ⊗ or ⊕ call exponentials or powers, whose last bits differ between the host's scalar functions, its vector functions and the
/// GPU's. So only kernels that call the reference's own functions promise its bits.
template <class S>
inline constexpr bool is_transcendental = false;
template <class S>
  requires requires { S::transcendental; }
inline constexpr bool is_transcendental<S> = S::transcendental;

/// ⊗ divides, which takes a GPU as long as a dozen other operations. Predicted times alone depend on it.
template <class S>
inline constexpr bool divides = false;
template <class S>
  requires requires { S::divides; }
inline constexpr bool divides<S> = S::divides && speaks_for_itself<S>;

/// The operands on which a semiring's laws hold.
enum class Domain : std::uint8_t {
  any,           // all values of the element's type
  non_negative,  // numbers ≥ 0
  truth_values,  // 0 and 1
  words          // words of bits
};

/// The scale to which errors are relative: a kernel's results are within γ · scale of the exact ones, where its Accuracy gives
/// γ = (constant + per_term·K)·u.
enum class ErrorModel : std::uint8_t {
  unknown,             // not stated
  exact,               // nothing rounds, errors are 0
  products,            // Σ_k |a| ⊗ |b|, which is Σ_k |a ⊗ b|: terms have either sign
  non_negative_terms,  // Σ_k a ⊗ b: no term is negative
  logarithmic          // 1 + max |a| + max |b| + max |c|: logarithms of sums of exponentials
};

/// The epilogue that joins the bits of a word as ⊕ joins words: any_bit() if ⊕ is a bitwise or, parity() if it is a bitwise
/// xor.
enum class Join : std::uint8_t { none, any_bit, parity };

/// A hyperparameter of a semiring: a number at `offset` bytes in the object.
struct Hyperparameter {
  std::string_view name;
  Scalar type = Scalar::other;
  std::size_t offset = 0;
  double default_value = 0;

  /// Reads its value from a semiring object, and writes it, rounded to `type`.
  double get(const void* object) const;
  void set(void* object, double value) const;
};

/// Describes the hyperparameter that a member of S holds: `hyperparameter("p", &lp::p)`. Its default is the member's value in
/// S{}.
/// A functor that derives from S and says `using self` states hyperparameters of its own.
template <class S, Number T>
Hyperparameter hyperparameter(std::string_view name, T S::* member) {
  const S object{};
  const auto first = reinterpret_cast<std::uintptr_t>(&object);
  const auto value = reinterpret_cast<std::uintptr_t>(&(object.*member));
  return {name, scalar_of<T>, value - first, static_cast<double>(object.*member)};
}

/// The domain of S: S::domain, or all values.
template <class S>
inline constexpr Domain domain_of = Domain::any;
template <class S>
  requires requires {
    { S::domain } -> std::same_as<const Domain&>;
  }
inline constexpr Domain domain_of<S> = speaks_for_itself<S> ? S::domain : Domain::any;

/// The error model of S: exact if S is exact, else S::errors, else unknown.
template <class S>
inline constexpr ErrorModel error_model_of = is_exact<S> ? ErrorModel::exact : ErrorModel::unknown;
template <class S>
  requires requires {
    { S::errors } -> std::same_as<const ErrorModel&>;
  }
inline constexpr ErrorModel error_model_of<S> = is_exact<S>            ? ErrorModel::exact
                                                : speaks_for_itself<S> ? S::errors
                                                                       : ErrorModel::unknown;

/// The join of S: S::join, or none.
template <class S>
inline constexpr Join join_of = Join::none;
template <class S>
  requires requires {
    { S::join } -> std::same_as<const Join&>;
  }
inline constexpr Join join_of<S> = speaks_for_itself<S> ? S::join : Join::none;

namespace detail {

// "::" and the name of a type as the compiler prints it.
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

// Its address identifies the type. It is not const, because a linker may merge constants of equal value.
template <class T>
inline char type_tag = 0;

}  // namespace detail

/// Whether S has a fused form of add(x, multiply(a, b)).
template <class S>
concept HasStep = requires(const S s, typename S::accumulator x, operand_t<S> a) { s.step(x, a, a); };

/// x ⊕ (a ⊗ b), by S::step if there is one. Operands and accumulators may be vectors if S takes them.
template <class S, class X, class T>
RIGEL_FUNCTION X step(const S& s, X x, T a, T b, [[maybe_unused]] std::int64_t k) {
  if constexpr (requires { s.step(x, a, b); })
    return s.step(x, a, b);
  else if constexpr (requires { s.multiply(a, b, k); })
    return s.add(x, s.multiply(a, b, k));
  else
    return s.add(x, s.multiply(a, b));
}

/// The result that C receives from an accumulator: S::result(x), or the accumulator itself.
template <class S>
RIGEL_FUNCTION auto result(const S& s, typename S::accumulator x) {
  if constexpr (requires { s.result(x); })
    return s.result(x);
  else
    return x;
}
template <class S>
using result_t = decltype(result(std::declval<const S&>(), std::declval<typename S::accumulator>()));

/// The accumulator with which a chain starts that accumulates into the value c of C.
template <class S, class Value>
RIGEL_FUNCTION typename S::accumulator lift(const S& s, Value c) {
  if constexpr (requires { s.lift(c); })
    return s.lift(c);
  else
    return static_cast<typename S::accumulator>(c);
}

/// Whether `accumulate` is defined: the accumulator is a number, or the semiring can lift a value of C into it.
template <class S>
inline constexpr bool can_accumulate = Number<typename S::accumulator> || requires(const S s, result_t<S> c) { s.lift(c); };

/// A commutative monoid: the ⊕ of a composed semiring.
template <class M, class T>
concept Monoid = requires(T x) {
  { M::template identity<T>() } -> std::convertible_to<T>;
  { M::apply(x, x) } -> std::convertible_to<T>;
};

/// A semiring from its two halves: `Multiply` offers `static T apply(T, T)`, and `Add` the same and `static T identity<T>()`.
/// With addition and the minimum as halves it is min_plus.
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
