// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// exponential, logarithm, power, sine, cosine and arcsine compared with long double (64 bits of significand), for scalars and vectors.
#include <rigel/elementary.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace {

using Floats = float __attribute__((ext_vector_type(8)));
using Doubles = double __attribute__((ext_vector_type(4)));

constexpr int trials = 20000;
// The bounds of elementary.hpp, in unit roundoffs of the result. The platform's functions stay below two units in the last
// place, which are four unit roundoffs.
constexpr double exponential_bound = 4, logarithm_bound = 4, circular_bound = 4;
double power_bound(double p) { return 4 + 2 * std::fabs(p); }

// f(x) by a scalar, or by a vector that holds x in one lane and harmless numbers in the others.
template <class V, class F>
rigel::lane_t<V> in_lane(rigel::lane_t<V> x, int lane, const F& f) {
  if constexpr (rigel::Lanes<V>) {
    V v = V{} + 1;
    v[lane] = x;
    return f(v)[lane];
  } else {
    return f(x);
  }
}

template <class T>
bool close(T actual, long double exact, double bound) {
  using Limits = std::numeric_limits<T>;
  const long double relative = bound * Limits::epsilon() / 2;
  if (std::isnan(exact)) return std::isnan(actual);
  const long double tolerance = relative * std::fabs(exact) + Limits::denorm_min();
  if (std::fabs(exact) + tolerance >= Limits::max()) return std::isinf(actual) || actual >= Limits::max() * (1 - relative);
  return std::fabs(static_cast<long double>(actual) - exact) <= tolerance;
}

template <class V, class F, class Exact, class Draw>
void check(const F& f, const Exact& exact, double bound, const Draw& draw) {
  using T = rigel::lane_t<V>;
  support::Random random(7);
  int wrong = 0;
  T worst = 0;
  for (int i = 0; i < trials; ++i) {
    const T x = static_cast<T>(draw(random));
    if (!close(in_lane<V>(x, i % 4, f), exact(x), bound)) ++wrong, worst = x;
  }
  CAPTURE(worst);
  CHECK(wrong == 0);
}

template <class V>
void check_exponential() {
  using T = rigel::lane_t<V>;
  const auto f = [](auto x) { return rigel::math::exponential(x); };
  const double low = std::is_same_v<T, float> ? -105 : -750, high = std::is_same_v<T, float> ? 90 : 711;
  const auto exact = [](T x) { return std::exp(static_cast<long double>(x)); };
  check<V>(f, exact, exponential_bound, [=](auto& r) { return r.uniform(low, high); });
  check<V>(f, exact, exponential_bound, [](auto& r) { return r.uniform(-1, 1); });
  check<V>(f, exact, exponential_bound, [](auto& r) { return std::exp2(r.uniform(-140, 0)); });
  const T inf = std::numeric_limits<T>::infinity();
  CHECK(in_lane<V>(T(0), 1, f) == 1);
  CHECK(in_lane<V>(-inf, 1, f) == 0);
  CHECK(in_lane<V>(inf, 1, f) == inf);
  CHECK(in_lane<V>(T(1e30), 1, f) == inf);
  CHECK(in_lane<V>(T(-1e30), 1, f) == 0);
  CHECK(std::isnan(in_lane<V>(std::numeric_limits<T>::quiet_NaN(), 1, f)));
}

template <class V>
void check_logarithm() {
  using T = rigel::lane_t<V>;
  const auto f = [](auto x) { return rigel::math::logarithm(x); };
  const auto exact = [](T x) { return std::log(static_cast<long double>(x)); };
  const double range = std::is_same_v<T, float> ? 149 : 1074;  // subnormals too
  check<V>(f, exact, logarithm_bound, [=](auto& r) { return std::exp2(r.uniform(-range, 127)); });
  check<V>(f, exact, logarithm_bound, [](auto& r) { return r.uniform(0.5, 2); });
  const T inf = std::numeric_limits<T>::infinity();
  CHECK(in_lane<V>(T(1), 1, f) == 0);
  CHECK(in_lane<V>(T(0), 1, f) == -inf);
  CHECK(in_lane<V>(inf, 1, f) == inf);
  CHECK(std::isnan(in_lane<V>(std::numeric_limits<T>::quiet_NaN(), 1, f)));
  CHECK(std::isnan(in_lane<V>(T(-1), 1, f)));
}

template <class V>
void check_circular() {
  using T = rigel::lane_t<V>;
  const auto sine = [](auto x) { return rigel::math::sine(x); };
  const auto cosine = [](auto x) { return rigel::math::cosine(x); };
  const auto exact_sine = [](T x) { return std::sin(static_cast<long double>(x)); };
  const auto exact_cosine = [](T x) { return std::cos(static_cast<long double>(x)); };
  check<V>(sine, exact_sine, circular_bound, [](auto& r) { return r.uniform(-6.28, 6.28); });
  check<V>(cosine, exact_cosine, circular_bound, [](auto& r) { return r.uniform(-6.28, 6.28); });
  check<V>(sine, exact_sine, circular_bound, [](auto& r) { return std::exp2(r.uniform(-120, 0)); });
  check<V>(cosine, exact_cosine, circular_bound, [](auto& r) { return 1.5707963267948966 - std::exp2(r.uniform(-60, 0)); });
  check<V>(sine, exact_sine, circular_bound, [](auto& r) { return std::exp2(r.uniform(30, 60)); });
  check<V>(cosine, exact_cosine, circular_bound, [](auto& r) { return -std::exp2(r.uniform(30, 60)); });
  // Between: absolute errors, since long double's own reduction is exact.
  support::Random random(9);
  for (int i = 0; i < trials; ++i) {
    const T x = static_cast<T>(random.uniform(-255, 255));
    const double bound = circular_bound * std::numeric_limits<T>::epsilon() / 2;
    CHECK(std::fabs(in_lane<V>(x, 1, sine) - exact_sine(x)) <= bound);
    CHECK(std::fabs(in_lane<V>(x, 1, cosine) - exact_cosine(x)) <= bound);
  }
  CHECK(in_lane<V>(T(0), 1, sine) == 0);
  CHECK(in_lane<V>(T(0), 1, cosine) == 1);
  for (const T x : {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()}) {
    CHECK(std::isnan(in_lane<V>(x, 1, sine)));
    CHECK(std::isnan(in_lane<V>(x, 1, cosine)));
  }
}

template <class T>
void check_arcsine() {
  const auto f = [](T v) { return rigel::math::arcsine_of_root(v); };
  const auto exact = [](T v) {
    return std::atan2(std::sqrt(static_cast<long double>(v)), std::sqrt(1 - static_cast<long double>(v)));
  };
  check<T>(f, exact, 4, [](auto& r) { return r.uniform(0, 1); });
  check<T>(f, exact, 4, [](auto& r) { return std::exp2(r.uniform(-100, 0)); });
  check<T>(f, exact, 4, [](auto& r) { return 1 - std::exp2(r.uniform(-40, 0)); });
  CHECK(f(0) == 0);
  CHECK(f(1) == std::asin(T(1)));
  CHECK(std::isnan(f(std::numeric_limits<T>::quiet_NaN())));
}

/// sin((a − b)/2) of a difference that rounds, for a next to 2π or π, b next to 0 or −π; the test of haversine has more.
template <class V>
void check_half_difference() {
  using T = rigel::lane_t<V>;
  constexpr long double pi = 3.14159265358979323846264338327950288L;
  for (const bool around_zero : {false, true}) {
    const T near = static_cast<T>(around_zero ? 2 * pi : pi), other = static_cast<T>(around_zero ? 0 : -pi);
    for (const double size : {0.25, 0x1p-9}) {
      support::Random random(9);
      int wrong = 0;
      for (int i = 0; i < trials; ++i) {
        const auto a = static_cast<T>(near - random.uniform(size / 2, size)),
                   b = static_cast<T>(other + random.uniform(0, size / 4));
        const long double turn = around_zero ? (a - 2 * pi) - b : (a - pi) - (b + pi);
        const T found = in_lane<V>(a, i % 4, [b](auto x) { return rigel::math::sine_of_half_difference(x, x * 0 + b); });
        const long double exact = std::sin(std::fabs(turn) / 2);
        // The long double π is off by 2^-64.
        if (!(std::fabs(std::fabs(static_cast<long double>(found)) - exact) <=
              (circular_bound + 1) * std::numeric_limits<T>::epsilon() / 2 * exact + 0x1p-62L))
          ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
  const T big = 1000000, found = in_lane<V>(big, 1, [](auto x) { return rigel::math::sine_of_half_difference(x, x * 0); });
  CHECK(close<T>(std::fabs(found), std::fabs(std::sin(500000.L)), circular_bound));
}

template <class V>
void check_power() {
  using T = rigel::lane_t<V>;
  const double range = std::is_same_v<T, float> ? 148 : 1073;
  for (const T p : {T(0.1), T(0.5), T(1), T(1.3), T(2), T(2.5), T(7), T(30), T(1e4)}) {
    CAPTURE(p);
    const auto f = [p](auto x) { return rigel::math::power(x, p); };
    const auto exact = [p](T x) { return std::pow(static_cast<long double>(x), static_cast<long double>(p)); };
    check<V>(f, exact, power_bound(p), [=](auto& r) { return std::exp2(r.uniform(-range, 127)); });
    check<V>(f, exact, power_bound(p), [](auto& r) { return r.uniform(0, 3); });
    const T inf = std::numeric_limits<T>::infinity();
    CHECK(in_lane<V>(T(0), 1, f) == 0);
    CHECK(in_lane<V>(T(1), 1, f) == 1);
    CHECK(in_lane<V>(inf, 1, f) == inf);
    CHECK(std::isnan(in_lane<V>(std::numeric_limits<T>::quiet_NaN(), 1, f)));
  }
  // Exponents of 0 and less, and NaN, which is no power of 1, and has none.
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (const T p : {T(-0.1), T(-0.5), T(-1), T(-3), T(0)}) {
    CAPTURE(p);
    const auto f = [p](auto x) { return rigel::math::power(x, p); };
    const auto exact = [p](T x) { return std::pow(static_cast<long double>(x), static_cast<long double>(p)); };
    check<V>(f, exact, power_bound(p), [](auto& r) { return std::exp2(r.uniform(-30, 30)); });
    CHECK(in_lane<V>(T(0), 1, f) == (p == 0 ? 1 : inf));
    CHECK(in_lane<V>(T(1), 1, f) == 1);
    CHECK(in_lane<V>(inf, 1, f) == (p == 0 ? 1 : 0));
    CHECK(std::isnan(in_lane<V>(nan, 1, f)));
  }
  for (const T x : {T(0), T(1), T(2), inf})
    CHECK(std::isnan(in_lane<V>(x, 1, [nan](auto v) { return rigel::math::power(v, nan); })));
  // Exponents too large for any accuracy still give a result of the right class.
  const T below = std::nextafter(T(1), T(0)), above = std::nextafter(T(1), T(2));
  for (const T p : {T(1e20), T(1e30), std::numeric_limits<T>::max()}) {
    CAPTURE(p);
    const auto f = [p](auto x) { return rigel::math::power(x, p); };
    for (const T x : {T(0), std::numeric_limits<T>::denorm_min(), T(1e-30), T(0.5), below}) CHECK(in_lane<V>(x, 1, f) == 0);
    CHECK(in_lane<V>(T(1), 1, f) == 1);
    for (const T x : {above, T(2), T(1e30), std::numeric_limits<T>::max()})
      CHECK(in_lane<V>(x, 1, f) == std::numeric_limits<T>::infinity());
  }
}

}  // namespace

TEST_CASE("exponential") {
  check_exponential<float>();
  check_exponential<double>();
  check_exponential<Floats>();
  check_exponential<Doubles>();
}
TEST_CASE("logarithm") {
  check_logarithm<float>();
  check_logarithm<double>();
  check_logarithm<Floats>();
  check_logarithm<Doubles>();
}
TEST_CASE("sine and cosine") {
  check_circular<float>();
  check_circular<double>();
  check_circular<Floats>();
  check_circular<Doubles>();
}
TEST_CASE("sine of half a difference") {
  check_half_difference<float>();
  check_half_difference<double>();
  check_half_difference<Floats>();
  check_half_difference<Doubles>();
}
TEST_CASE("arcsine") {
  check_arcsine<float>();
  check_arcsine<double>();
}
TEST_CASE("power") {
  check_power<float>();
  check_power<double>();
  check_power<Floats>();
  check_power<Doubles>();
}
