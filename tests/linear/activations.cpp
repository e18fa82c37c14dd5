// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activations and their derivatives against double, over a range of arguments, and at the ends of it.
#include "layer.hpp"

#include <tests/support/compare.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace {

constexpr double u = 0x1p-24, least = 0x1p-148;
using layer::Activation;

template <class Use>
void for_each_argument(const Use& use) {
  for (int i = -20000; i <= 20000; ++i) use(static_cast<float>(i) / 1000);
  for (float z = 1; z > 1e-38f; z *= 0.37f) use(z), use(-z);
}

}  // namespace

TEST_CASE("activations: values and derivatives are within their bounds") {
  for (const Activation a : layer::activations) {
    const std::string activation = rigel::name(a);
    CAPTURE(activation);
    int wrong = 0;
    for_each_argument([&](float z) {
      const layer::Exact exact = layer::exact(a, z);
      const double units = layer::value_units(a, z);
      const float value = rigel::activation::with(a, [&]<class A>() { return A::value(z); });
      const float derivative = rigel::activation::with(a, [&]<class A>() { return A::derivative(z); });
      wrong += !(std::fabs(value - exact.value) <= units * u * std::fabs(exact.value) + (1 + std::fabs(z)) * least);
      // The derivative is a sum of two terms, the factor of z in the value, and the rest.
      const double first = z == 0 ? exact.derivative : exact.value / z, second = exact.derivative - first;
      const double sum = std::fabs(first) + std::fabs(second);
      const bool known = a == Activation::none || a == Activation::relu;
      wrong += !(std::fabs(derivative - exact.derivative) <=
                 (known ? 0 : (8 + units) * u * sum + (2 + z * z * std::fabs(z)) * least));
    });
    CHECK(wrong == 0);
  }
}

// Where e^z is subnormal, z·e^z is not, down to z = −91.8.
TEST_CASE("activations: silu of every float whose value and slope are small and normal") {
  double worst_value = 0, worst_derivative = 0;
  for (float z = -80;; z = std::nextafter(z, -100.f)) {
    const long double e = std::exp(static_cast<long double>(z)), s = e / (1 + e), value = z * s, second = value / (1 + e);
    if (-value < std::numeric_limits<float>::min()) break;
    const auto off = [](float found, long double exact) { return static_cast<double>(std::fabs(found - exact)); };
    worst_value = support::larger(worst_value, off(rigel::activation::silu::value(z), value) / static_cast<double>(-value));
    worst_derivative = support::larger(
        worst_derivative, off(rigel::activation::silu::derivative(z), s + second) / static_cast<double>(s - second));
  }
  CHECK(worst_value <= 10 * u);
  CHECK(worst_derivative <= 18 * u);
  // −90·σ(−90) and its derivative, in 50 digits
  CHECK(std::fabs(rigel::activation::silu::value(-90) + 7.374611361591463887e-38) <= 10 * u * 7.4e-38);
  CHECK(std::fabs(rigel::activation::silu::derivative(-90) + 7.292671235351558733e-38) <= 18 * u * 7.5e-38);
}

TEST_CASE("activations: infinities, NaN and large numbers") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const Activation a : layer::activations) {
    const std::string activation = rigel::name(a);
    CAPTURE(activation);
    rigel::activation::with(a, [&]<class A>() {
      CHECK(A::value(infinity) == infinity);
      CHECK(A::value(1e30f) == 1e30f);
      CHECK(std::isnan(A::value(nan)));
      CHECK(A::derivative(infinity) == 1);
      CHECK(A::derivative(1e30f) == 1);
      CHECK(A::derivative(-1e30f) == (a == Activation::none ? 1 : 0));
      CHECK(A::derivative(-infinity) == (a == Activation::none ? 1 : 0));
      CHECK((std::isnan(A::derivative(nan)) || a == Activation::none));
      CHECK(A::value(-1e30f) == (a == Activation::none ? -1e30f : 0));
      CHECK(A::value(0) == 0);
    });
  }
  CHECK(rigel::activation::relu::value(-infinity) == 0);
  CHECK(std::isnan(rigel::activation::gelu::value(-infinity)));
  CHECK(std::isnan(rigel::activation::gelu_tanh::value(-infinity)));
  CHECK(std::isnan(rigel::activation::silu::value(-infinity)));
}
