// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activation functions of a linear layer and, next to each, its derivative. They consist of additions, multiplications, fused
// multiply-adds and divisions alone, each rounded once to float, so their bits are the same on every host and every GPU. The
// steps of the same names in rigel/epilogue.hpp call the platform's exp instead.
#pragma once

#include <rigel/elementary.hpp>
#include <rigel/epilogue.hpp>

#include <cstdint>

namespace rigel {

/// The activation function of a layer. `none` is the identity.
enum class Activation : std::uint8_t { none, relu, gelu, gelu_tanh, silu };
constexpr const char* name(Activation a) {
  constexpr const char* names[] = {"none", "relu", "gelu", "gelu_tanh", "silu"};
  return names[static_cast<int>(a)];
}

namespace activation {
namespace detail {

/// c0 + x·(c1 + x·(…)). Coefficients are arguments, not an array, which a GPU would keep in memory.
RIGEL_FUNCTION float polynomial(float, float c0) { return c0; }
template <class... Rest>
RIGEL_FUNCTION float polynomial(float x, float c0, Rest... rest) {
  return math::fma(polynomial(x, rest...), x, c0);
}

/// e^x; within 2 units in the last place, 0 below −104 and infinity above 89. x = n·ln 2 + r with |r| ≤ ln(2)/2, e^x = 2^n·e^r.
RIGEL_FUNCTION float exponential(float x) {
  using F = math::detail::format<float>;
  constexpr float to_integer = math::detail::round_to_integer<float>;
  const float t = x < F::exp_lowest ? F::exp_lowest : x > F::exp_highest ? F::exp_highest : x;
  const float n = math::subtract(math::fma(t, 1.44269504f, to_integer), to_integer);
  const float r = math::fma(n, -F::ln2_low, math::fma(n, -F::ln2_high, t));
  const float y = polynomial(r, F::exp[0], F::exp[1], F::exp[2], F::exp[3], F::exp[4], F::exp[5], F::exp[6]);
  return math::detail::scaled(y, n);
}

/// x limited to ±20: beyond that, logistic functions and Φ are 0 or 1 to the last bit.
RIGEL_FUNCTION float limited(float x) { return x > 20 ? 20.f : x < -20 ? -20.f : x; }

/// The logistic function σ(x) = 1 / (1 + e^−x), and σ(−x) = 1 − σ(x) without cancellation.
struct Logistic {
  float of_x, of_minus_x;
};
RIGEL_FUNCTION Logistic logistic(float x) {
  const float e = exponential(-math::abs(x)), s = 1 / math::add(1.f, e), t = math::multiply(e, s);
  return x < 0 ? Logistic{t, s} : Logistic{s, t};
}

/// Φ(x), the distribution function of the standard normal distribution, and e^(−x²/2); |x| ≤ 20. For z ≥ 0,
/// Φ(−z) = e^(−z²/2)·G(z), and (z + 7/2)·G(z) is a polynomial in (z − 7/2)/(z + 7/2), fitted up to z = 14.5 in double, relative error
/// 8e-9. epilogue::gelu() has a shorter one.
struct Normal {
  float distribution, exponential;
};
RIGEL_FUNCTION Normal normal(float x) {
  const float z = math::abs(x), above = math::add(z, 3.5f), s = math::subtract(z, 3.5f) / above;
  const float g = polynomial(s, 0.744416058f, -0.565561771f, 0.315425038f, -0.116053037f, 0.0174063779f, 0.0064931158f,
                             -0.00317530939f, -0.000494943059f, 0.000421896199f, 0.000110688228f);
  const float e = exponential(math::multiply(math::multiply(-0.5f, z), z)), beyond = math::multiply(g / above, e);
  return {x < 0 ? beyond : math::subtract(1.f, beyond), e};
}

}  // namespace detail

/// z.
struct none {
  static epilogue::Program program() { return {}; }
  RIGEL_FUNCTION static float value(float z) { return z; }
  RIGEL_FUNCTION static float derivative(float) { return 1; }
};

/// max(z, 0); derivative 1 for z > 0, else 0. NaN stays NaN in both.
struct relu {
  static epilogue::Program program() { return epilogue::relu(); }
  RIGEL_FUNCTION static float value(float z) { return z < 0 ? 0.f : z; }
  RIGEL_FUNCTION static float derivative(float z) { return z > 0 ? 1.f : z == z ? 0.f : z; }
};

/// z·Φ(z); derivative Φ(z) + z·φ(z), φ(z) = e^(−z²/2)/√(2π).
struct gelu {
  static epilogue::Program program() { return epilogue::gelu(); }
  RIGEL_FUNCTION static float value(float z) { return math::multiply(z, detail::normal(detail::limited(z)).distribution); }
  RIGEL_FUNCTION static float derivative(float z) {
    const float x = detail::limited(z);
    const detail::Normal n = detail::normal(x);
    return math::fma(math::multiply(x, 0.398942280f), n.exponential, n.distribution);
  }
};

/// z·σ(q), q = 2√(2/π)·(z + 0.044715·z³); derivative σ(q) + z·q'·σ(q)·σ(−q).
struct gelu_tanh {
  static epilogue::Program program() { return epilogue::gelu_tanh(); }
  RIGEL_FUNCTION static float value(float z) { return math::multiply(z, detail::logistic(q(detail::limited(z))).of_x); }
  RIGEL_FUNCTION static float derivative(float z) {
    const float x = detail::limited(z);
    const detail::Logistic s = detail::logistic(q(x));
    const float slope = math::multiply(scale, math::fma(math::multiply(0.134145f, x), x, 1.f));
    return math::fma(math::multiply(math::multiply(x, slope), s.of_x), s.of_minus_x, s.of_x);
  }

 private:
  static constexpr float scale = 1.59576912f;  // 2·√(2/π)
  RIGEL_FUNCTION static float q(float z) {
    return math::multiply(math::multiply(scale, z), math::fma(math::multiply(0.044715f, z), z, 1.f));
  }
};

/// z·σ(z); derivative σ(z) + z·σ(z)·σ(−z). Below −87 σ(z) is σ(z/2)² to the last bit, and may be subnormal where its product with z is
/// not: its factors are multiplied one after the other.
struct silu {
  static epilogue::Program program() { return epilogue::silu(); }
  RIGEL_FUNCTION static float value(float z) {
    const bool halves = z < -87;
    const float s = detail::logistic(halves ? z / 2 : z).of_x, v = math::multiply(z, s);
    return halves ? math::multiply(v, s) : v;
  }
  RIGEL_FUNCTION static float derivative(float z) {
    const float x = z < -110 ? -110.f : z > 110 ? 110.f : z;  // σ(±110) is 0 or 1 to the last bit
    const bool halves = x < -87;
    const detail::Logistic s = detail::logistic(halves ? x / 2 : x);
    const float slope = math::fma(math::multiply(x, s.of_x), s.of_minus_x, s.of_x);
    return halves ? math::multiply(slope, s.of_x) : slope;
  }
};

/// use.operator()<F>() with the struct of an activation that is known at run time.
template <class Use>
auto with(Activation a, const Use& use) {
  switch (a) {
    case Activation::relu: return use.template operator()<relu>();
    case Activation::gelu: return use.template operator()<gelu>();
    case Activation::gelu_tanh: return use.template operator()<gelu_tanh>();
    case Activation::silu: return use.template operator()<silu>();
    default: return use.template operator()<none>();
  }
}

}  // namespace activation
}  // namespace rigel
