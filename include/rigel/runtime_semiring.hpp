// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RIGEL_SEMIRING: one body that the C++ compiler checks now, and whose text travels for later.
#pragma once

#include <rigel/runtime.hpp>

#include <cmath>
#include <string_view>
#include <type_traits>

namespace rigel::runtime::language {

/// The functions of texts, as C++ on host and device. What texts define and C++ does not, as overflows of integers, is C++'s here.
template <class... T>
using common = std::common_type_t<T...>;
template <class... T>
concept Numbers = ((std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) && ...);

template <Numbers X>
RIGEL_FUNCTION X abs(X x) {
  return math::abs(x);
}
template <Numbers X, Numbers Y>
RIGEL_FUNCTION common<X, Y> min(X x, Y y) {
  return math::minimum<common<X, Y>>(x, y);
}
template <Numbers X, Numbers Y>
RIGEL_FUNCTION common<X, Y> max(X x, Y y) {
  return math::maximum<common<X, Y>>(x, y);
}
template <Numbers X, Numbers Y, Numbers Z>
RIGEL_FUNCTION common<X, Y, Z> fma(X x, Y y, Z z) {
  return math::fma<common<X, Y, Z>>(x, y, z);
}
template <class X, class Y>
RIGEL_FUNCTION common<X, Y> select(bool condition, X x, Y y) {
  return condition ? common<X, Y>(x) : common<X, Y>(y);
}
#define RIGEL_UNARY(name)          \
  template <std::floating_point X> \
  RIGEL_FUNCTION X name(X x) {     \
    return std::name(x);           \
  }
RIGEL_UNARY(sqrt)
RIGEL_UNARY(floor)
RIGEL_UNARY(ceil)
RIGEL_UNARY(trunc)
RIGEL_UNARY(exp)
RIGEL_UNARY(exp2)
RIGEL_UNARY(expm1)
RIGEL_UNARY(log)
RIGEL_UNARY(log2)
RIGEL_UNARY(log1p)
RIGEL_UNARY(sin)
RIGEL_UNARY(cos)
RIGEL_UNARY(tanh)
#undef RIGEL_UNARY
template <std::floating_point X>
RIGEL_FUNCTION X rsqrt(X x) {
  return 1 / std::sqrt(x);
}
template <std::floating_point X, Numbers Y>
RIGEL_FUNCTION common<X, Y> copysign(X x, Y y) {
  return std::copysign(common<X, Y>(x), common<X, Y>(y));
}
template <std::floating_point X, Numbers Y>
RIGEL_FUNCTION common<X, Y> pow(X x, Y y) {
  return std::pow(common<X, Y>(x), common<X, Y>(y));
}
template <std::floating_point X, Numbers Y>
RIGEL_FUNCTION common<X, Y> power(X x, Y y) {
  return math::power<common<X, Y>>(x, y);
}
template <std::floating_point X>
RIGEL_FUNCTION bool isnan(X x) {
  return x != x;
}
template <std::floating_point X>
RIGEL_FUNCTION bool isinf(X x) {
  return math::abs(x) == rigel::infinity<X>();
}
template <std::floating_point X>
RIGEL_FUNCTION bool isfinite(X x) {
  return math::abs(x) < rigel::infinity<X>();
}
namespace fast {
using language::exp2, language::log2, language::rsqrt, language::sqrt;
}  // namespace fast

/// Whether a number with a point or an exponent has no suffix: a double to C++, and of the accumulator's type to a text.
constexpr bool has_plain_reals(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_word = [&](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  for (std::size_t i = 0; i < text.size();) {
    const bool number = is_digit(text[i]) || (text[i] == '.' && i + 1 < text.size() && is_digit(text[i + 1]));
    if (!number && !is_word(text[i])) {
      ++i;
      continue;
    }
    const std::size_t first = i;
    bool real = false;
    const bool hexadecimal = text.substr(first, 2) == "0x" || text.substr(first, 2) == "0X";
    while (i < text.size() && (is_word(text[i]) || (number && text[i] == '.'))) {
      const char c = text[i++];
      const bool exponent = hexadecimal ? c == 'p' || c == 'P' : c == 'e' || c == 'E';
      real = real || c == '.' || exponent;
      if (number && exponent && i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    }
    if (number && real && (hexadecimal || text[i - 1] != 'f')) return true;
  }
  return false;
}

}  // namespace rigel::runtime::language

#define RIGEL_TEXT_BARE(...) __VA_ARGS__
#define RIGEL_TEXT_STRING(...) #__VA_ARGS__
#define RIGEL_TEXT_PARENTHESES ()
#define RIGEL_TEXT_5(...) __VA_ARGS__
#define RIGEL_TEXT_4(...) RIGEL_TEXT_5(RIGEL_TEXT_5(__VA_ARGS__))
#define RIGEL_TEXT_3(...) RIGEL_TEXT_4(RIGEL_TEXT_4(RIGEL_TEXT_4(__VA_ARGS__)))
#define RIGEL_TEXT_2(...) RIGEL_TEXT_3(RIGEL_TEXT_3(RIGEL_TEXT_3(__VA_ARGS__)))
#define RIGEL_TEXT_EACH(macro, ...) __VA_OPT__(RIGEL_TEXT_2(RIGEL_TEXT_ONE(macro, __VA_ARGS__)))
#define RIGEL_TEXT_ONE(macro, first, ...) macro first __VA_OPT__(RIGEL_TEXT_NEXT RIGEL_TEXT_PARENTHESES(macro, __VA_ARGS__))
#define RIGEL_TEXT_NEXT() RIGEL_TEXT_ONE
#define RIGEL_TEXT_MEMBER(name, value) accumulator name = value;
#define RIGEL_TEXT_PARAMETER(name, value) {#name, static_cast<double>(value)},
#define RIGEL_TEXT_SET(name, value) semiring.set(#name, static_cast<double>(name));

// The names of texts in a function's body.
#define RIGEL_TEXT_LANGUAGE                                                                                     \
  using ::rigel::runtime::language::abs, ::rigel::runtime::language::min, ::rigel::runtime::language::max,      \
      ::rigel::runtime::language::fma, ::rigel::runtime::language::select, ::rigel::runtime::language::sqrt,    \
      ::rigel::runtime::language::rsqrt, ::rigel::runtime::language::floor, ::rigel::runtime::language::ceil,   \
      ::rigel::runtime::language::trunc, ::rigel::runtime::language::copysign, ::rigel::runtime::language::exp, \
      ::rigel::runtime::language::exp2, ::rigel::runtime::language::expm1, ::rigel::runtime::language::log,     \
      ::rigel::runtime::language::log2, ::rigel::runtime::language::log1p, ::rigel::runtime::language::sin,     \
      ::rigel::runtime::language::cos, ::rigel::runtime::language::tanh, ::rigel::runtime::language::pow,       \
      ::rigel::runtime::language::power, ::rigel::runtime::language::isnan, ::rigel::runtime::language::isinf,  \
      ::rigel::runtime::language::isfinite;                                                                     \
  namespace fast = ::rigel::runtime::language::fast;                                                            \
  [[maybe_unused]] constexpr accumulator infinity = ::rigel::infinity<accumulator>();

/// A semiring whose bodies are compiled where this stands, and are text as well:
///
///     RIGEL_SEMIRING(soft_l1, float,
///                    (auto d = a - b; return sqrt(d * d + eps);),  // multiply, over a and b
///                    (return x + y;),                             // add, over x and y
///                    (0),                                         // identity
///                    (eps, 1e-6))                                 // hyperparameters, each with its first value
///
///     rigel::contract(exec, soft_l1{.eps = 1e-3f}, a, b, c);                         // compiled, on any space
///     const rigel::runtime::Semiring later(soft_l1::texts());                        // or compiled when it is needed
///
/// soft_l1 is a functor as contract() takes it, `texts()` the same as texts, and `semiring()` a Semiring of them with the object's values.
/// Bodies are statements of the language of docs/runtime.md that end with `return`, in parentheses. Where the accumulator is a float, numbers
/// with a point or an exponent have the suffix f, so that both take them for floats. Both give the same bits but for what the language defines
/// and C++ does not (overflows of integers, divisions by 0), for exponentials, powers and the like, and if the compiler fuses operations.
#define RIGEL_SEMIRING(Name, Element, Multiply, Add, Identity, ...)                                                      \
  struct Name {                                                                                                          \
    using self = Name;                                                                                                   \
    using element = Element;                                                                                             \
    using accumulator = ::rigel::accumulator_for<element>;                                                               \
    using operand = accumulator;                                                                                         \
    RIGEL_TEXT_EACH(RIGEL_TEXT_MEMBER __VA_OPT__(, ) __VA_ARGS__)                                                        \
    RIGEL_MEMBER static accumulator identity() {                                                                         \
      RIGEL_TEXT_LANGUAGE                                                                                                \
      return static_cast<accumulator>(RIGEL_TEXT_BARE Identity);                                                         \
    }                                                                                                                    \
    RIGEL_MEMBER accumulator multiply(accumulator a, accumulator b) const {                                              \
        RIGEL_TEXT_LANGUAGE RIGEL_TEXT_BARE Multiply} RIGEL_MEMBER accumulator add(accumulator x, accumulator y) const { \
      RIGEL_TEXT_LANGUAGE RIGEL_TEXT_BARE Add                                                                            \
    }                                                                                                                    \
    static ::rigel::runtime::Texts texts() {                                                                             \
      static_assert(!std::is_same_v<accumulator, float> ||                                                               \
                        !::rigel::runtime::language::has_plain_reals(                                                    \
                            RIGEL_TEXT_STRING Multiply ";" RIGEL_TEXT_STRING Add ";" RIGEL_TEXT_STRING Identity),        \
                    "RIGEL_SEMIRING: a number such as 0.1 is a double to C++ and a float to the text: write 0.1f");      \
      ::rigel::runtime::Texts all;                                                                                       \
      all.name = #Name;                                                                                                  \
      all.element = ::rigel::scalar_of<element>;                                                                         \
      all.multiply = RIGEL_TEXT_STRING Multiply;                                                                         \
      all.add = RIGEL_TEXT_STRING Add;                                                                                   \
      all.identity = RIGEL_TEXT_STRING Identity;                                                                         \
      all.hyperparameters = {RIGEL_TEXT_EACH(RIGEL_TEXT_PARAMETER __VA_OPT__(, ) __VA_ARGS__)};                          \
      return all;                                                                                                        \
    }                                                                                                                    \
    ::rigel::runtime::Semiring semiring() const {                                                                        \
      ::rigel::runtime::Semiring semiring(texts());                                                                      \
      RIGEL_TEXT_EACH(RIGEL_TEXT_SET __VA_OPT__(, ) __VA_ARGS__)                                                         \
      return semiring;                                                                                                   \
    }                                                                                                                    \
  }
