// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Terms of the metrics' semirings compared with long double, of numbers and of lanes: any magnitudes and signs, zeros, subnormals,
// infinities, NaN.
#include <rigel/dissimilarities.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

template <class T>
using Limits = std::numeric_limits<T>;
template <class T>
using Vector = T __attribute__((ext_vector_type(64 / sizeof(T))));  // for which AVX-512 has reciprocals
template <class T>
using Short = T __attribute__((ext_vector_type(4)));

/// identity() ⊕ (a ⊗ b), in lane 1 of a vector V or as numbers.
template <class V, class S>
auto term(rigel::lane_t<V> a, rigel::lane_t<V> b) {
  const S s;
  if constexpr (rigel::Lanes<V>) {
    V x = V{} + 1, y = V{} + 2;
    x[1] = a;
    y[1] = b;
    return rigel::lane_t<V>(rigel::step(s, V{}, x, y, 0)[1]);
  } else {
    return rigel::step(s, V(0), a, b, 0);
  }
}

/// Numbers of all magnitudes, and those at which formulas change.
template <class T>
std::vector<T> magnitudes(bool negative) {
  support::Random random(5);
  std::vector<T> list = {
      0, Limits<T>::denorm_min(), Limits<T>::min() / 8, Limits<T>::min(), 1, 4, std::nextafter(T(4), T(5)), 5, 1e9};
  const double range = Limits<T>::max_exponent - 4;
  for (int i = 0; i < 60; ++i) list.push_back(static_cast<T>(std::exp2(random.uniform(-range, range))));
  for (int i = 0; i < 60; ++i) list.push_back(static_cast<T>(random.uniform(0.01, 1)));
  if (negative)
    for (std::size_t i = 0; i < list.size(); i += 2) list.push_back(-list[i]);
  return list;
}

/// Terms of all pairs of numbers within bound(a, b, exact).
template <class V, class S, class Exact, class Bound>
void check(bool negative, const Exact& exact, const Bound& bound) {
  using T = rigel::lane_t<V>;
  const std::vector<T> numbers = magnitudes<T>(negative);
  int wrong = 0;
  T a_of_wrong = 0, b_of_wrong = 0;
  for (const T a : numbers)
    for (const T b : numbers) {
      const long double e = exact(static_cast<long double>(a), static_cast<long double>(b));
      const T found = term<V, S>(a, b);
      const long double off = std::fabs(found - e),
                        allowed = bound(a, b, e) * Limits<T>::epsilon() / 2 + Limits<T>::denorm_min();
      if (support::same(found, static_cast<T>(e)) || off <= allowed) continue;
      ++wrong;
      a_of_wrong = a;
      b_of_wrong = b;
    }
  CAPTURE(a_of_wrong);
  CAPTURE(b_of_wrong);
  CHECK(wrong == 0);
}

/// The same class of value, infinities by sign, for pairs with values that are not finite.
template <class V, class S>
void check_special(const std::vector<rigel::lane_t<V>>& operands) {
  using T = rigel::lane_t<V>;
  for (const T a : operands)
    for (const T b : operands) {
      if (std::isfinite(a) && std::isfinite(b)) continue;
      const T expected = term<T, S>(a, b);
      CAPTURE(a);
      CAPTURE(b);
      CHECK(support::same(term<V, S>(a, b), expected));
    }
}

template <class T>
const std::vector<T> special_values = {
    0, 1, -1, Limits<T>::infinity(), -Limits<T>::infinity(), Limits<T>::quiet_NaN(), Limits<T>::max()};

long double canberra(long double a, long double b) {
  return a == 0 && b == 0 ? 0 : std::fabs(a - b) / (std::fabs(a) + std::fabs(b));
}
long double entropy(long double a, long double b) { return a == 0 ? 0 : a * std::log(a / b); }
long double divergence(long double a, long double b) {
  if (a < 0 || b < 0) return Limits<double>::infinity();
  const long double mean = (a + b) / 2, t = (a - b) / (a + b);
  const auto part = [&](long double x, long double of) {
    return x == 0 ? 0 : x * (std::fabs(t) < 0.5L ? std::log1p(of) : std::log(x / mean));
  };
  return part(a, t) + part(b, -t);
}

template <class V>
void check_terms() {
  using T = rigel::lane_t<V>;
  check<V, rigel::canberra<T>>(true, canberra, [](T, T, long double e) { return 4.2L * e; });
  // A quotient beyond the type's range is 0 or infinite.
  check<V, rigel::relative_entropy<T>>(false, entropy, [](T a, T b, long double e) {
    const T quotient = a / b;
    return std::isnormal(quotient) ? 4 * std::fabs(e) + 2 * a : Limits<T>::infinity();
  });
  // log1p of long double loses what t does by its rounding, 2^-63 of the mean.
  check<V, rigel::divergence_from_mean<T>>(true, divergence, [](T a, T b, long double e) {
    return 18 * e + 4e-19L * (std::fabs(a) + std::fabs(b)) / Limits<T>::epsilon();
  });
  check_special<V, rigel::canberra<T>>(special_values<T>);
  check_special<V, rigel::relative_entropy<T>>(special_values<T>);
  check_special<V, rigel::divergence_from_mean<T>>(special_values<T>);
}

template <class V>
void check_great_circle() {
  using T = rigel::lane_t<V>;
  using S = rigel::great_circle<T>;
  support::Random random(3);
  const auto lane = [](T x) {
    V v = V{} + T(0.25);
    v[1] = x;
    return v;
  };
  const auto close = [](T found, long double exact, double bound) {
    CHECK(std::fabs(found - exact) <= bound * exact * Limits<T>::epsilon() / 2);
  };
  for (int i = 0; i < 5000; ++i) {
    // Latitudes near a pole, too.
    const T a = static_cast<T>(i % 2 == 0 ? random.uniform(-1.57, 1.57) : 1.5707963 - std::exp2(random.uniform(-20, 0))),
            b = static_cast<T>(a - (a < 0 ? -1 : 1) * std::exp2(random.uniform(-30, 0.5)));
    const auto at = S::multiply(lane(a), lane(b), 0), around = S::multiply(lane(a), lane(b), 1);
    const long double s = std::sin((static_cast<long double>(a) - b) / 2),
                      cosines = std::cos(static_cast<long double>(a)) * std::cos(static_cast<long double>(b));
    close(at.latitudes[1], s * s, 9);
    CHECK(std::fabs(at.cosines[1] - cosines) <= 7 * std::fabs(cosines) * Limits<T>::epsilon() / 2);
    close(around.longitudes[1], s * s, 9);
    CHECK(around.cosines[1] == 0);
  }
  // h is off by a rounding, which the arcsine multiplies near 1.
  for (int i = 0; i <= 5000; ++i) {
    const T h = static_cast<T>(i / 5000.0 * (i % 3 == 0 ? 1e-6 : 1));
    close(S::result({h, 0, 0}),
          2 * std::atan2(std::sqrt(static_cast<long double>(h)), std::sqrt(1 - static_cast<long double>(h))), 4);
  }
  CHECK(S::result({T(1.5), 0, 0}) == 2 * std::asin(T(1)));
  CHECK(std::isnan(S::result({Limits<T>::quiet_NaN(), 0, 0})));
}

}  // namespace

TEST_CASE("terms of dissimilarities") {
  check_terms<float>();
  check_terms<double>();
  check_terms<Short<float>>();
  check_terms<Short<double>>();
  check_terms<Vector<float>>();
  check_terms<Vector<double>>();
}

TEST_CASE("terms of dissimilarities: the great circle") {
  check_great_circle<Short<float>>();
  check_great_circle<Short<double>>();
  check_great_circle<Vector<float>>();
  check_great_circle<Vector<double>>();
}

// A row's bits must not depend on whether other rows are regular.
TEST_CASE("terms of dissimilarities: canberra's step of regular numbers has the bits of its step of any") {
  const auto check_bits = [&]<class T>(T) {
    using V = Vector<T>;
    using S = rigel::canberra<T>;
    if constexpr (requires(V v) { S::step_if_regular(v, v, v); }) {
      for (const T a : magnitudes<T>(true))
        for (const T b : magnitudes<T>(true)) {
          const V x = V{} + a, y = V{} + b;
          if (!S::is_regular(x)[0] || !S::is_regular(y)[0]) continue;
          CHECK(S::step_if_regular(V{} + 1, x, y)[0] == rigel::step(S{}, V{} + 1, x, y, 0)[0]);
        }
    }
  };
  check_bits(float{});
  check_bits(double{});
}
