// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients that are computed by hand, on every execution space. All numbers are small integers, so nothing rounds.
#include <rigel/gradient.hpp>

#include <tests/gradient/problems.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using support::matrix;
using support::values;
using Values = std::vector<double>;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

// Two points x = (1, 5), (4, 2), one a column of D; three training points z = (0, 5), (3, 3), (4, 0), one a column of B.
//
//     t(n, m, k):  n = 0: m = 0: 1 −2 −3   m = 1: 4  1  0
//                  n = 1: m = 0: 0  2  5   m = 1: −3 −1 2
//
// A(k, m) = (1 2; 3 4; 5 6), C = (1 1 1; 2 0 −1).
template <class T, class Exec>
struct Points {
  Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space> a = matrix<T, Exec>(3, 2, {1, 2, 3, 4, 5, 6}),
                                                                      b = matrix<T, Exec>(2, 3, {0, 3, 4, 5, 3, 0}),
                                                                      c = matrix<T, Exec>(2, 3, {1, 1, 1, 2, 0, -1}),
                                                                      d = matrix<T, Exec>(2, 2, {1, 4, 5, 2});
  Kokkos::View<T***, Kokkos::LayoutRight, typename Exec::memory_space> out = support::batch<T, Exec>(2, 2, 2, Values(8, -7));
};

/// A power that is NaN, or that an infinite difference has, in a number or a view.
template <class T, class Exec>
void check_special_powers() {
  const Exec exec;
  constexpr auto most = static_cast<double>(std::numeric_limits<T>::max());
  // One term each: t = d − b, a = 2 or 0.
  const auto term = [&](double power, double difference, double weight, bool in_view) {
    const bool overflows = difference == infinity;
    const auto a = matrix<T, Exec>(1, 1, {weight}), b = matrix<T, Exec>(1, 1, {overflows ? -most : 0}),
               c = matrix<T, Exec>(1, 1, {1}), d = matrix<T, Exec>(1, 1, {overflows ? most : difference});
    const auto out = support::batch<T, Exec>(1, 1, 1, {-7});
    if (in_view) {
      const Kokkos::View<T, typename Exec::memory_space> p_view("p");
      Kokkos::deep_copy(p_view, T(power));
      rigel::cdist_gradient(exec, p_view, a, b, c, d, out);
    } else {
      rigel::cdist_gradient(exec, power, a, b, c, d, out);
    }
    return values(out)[0];
  };
  for (const bool in_view : {false, true}) {
    CAPTURE(in_view);
    CHECK(term(0.5, infinity, 2, in_view) == 0);
    CHECK(term(1, infinity, 2, in_view) == 2);
    CHECK(term(1.5, infinity, 2, in_view) == infinity);
    CHECK(std::abs(term(0.5, 4, 2, in_view) - 1) <= 20 * gradient::unit<T>);
    for (const double power : {0.5, 1., 1.5, 2., 3.}) {
      CAPTURE(power);
      CHECK(term(power, infinity, 0, in_view) == 0);
      CHECK(term(power, 0, infinity, in_view) == 0);
      if (in_view || power != 1) CHECK(std::isnan(term(power, nan, 2, in_view)));
      if (power != 1) CHECK(std::isnan(term(power, nan, 0, in_view)));
    }
  }
  for (const double difference : {1., 2., -3., infinity}) CHECK(std::isnan(term(nan, difference, 2, true)));
  CHECK(term(nan, 0, 2, true) == 0);
  CHECK(std::isnan(term(1, nan, 2, true)));
}

template <class T, class Exec>
void check_by_hand() {
  const Exec exec;
  const Points<T, Exec> p;
  const auto gradient = [&](const auto& power, double epsilon = 0, const rigel::GradientOptions& options = {}) {
    rigel::cdist_gradient(exec, power, p.a, p.b, p.c, p.d, p.out, epsilon, options);
    return values(p.out);
  };
  SUBCASE("p = 1: the sums of weights with signs") {
    // o = 0: n = 0: 1 − 3 − 5, 2 + 4 + 0;  n = 1: 0 + 3 + 5, −2 − 4 + 6.   o = 1: 2·1 + 5, 2·2 − 0;  −5, −4 − 6.
    CHECK(gradient(1) == Values{-7, 6, 8, 0, 7, 4, -5, -10});
  }
  SUBCASE("p = 2: the sums of weighted differences") {
    // o = 0: n = 0: 1 − 6 − 15, 8 + 4 + 0;  n = 1: 0 + 6 + 25, −6 − 4 + 12.   o = 1: 2 + 15, 16 − 0;  −25, −12 − 12.
    CHECK(gradient(2) == Values{-20, 12, 31, 2, 17, 16, -25, -24});
  }
  SUBCASE("p = 3 in a view of rank 0") {
    // o = 0: n = 0: 1 − 12 − 45, 32 + 4;  n = 1: 12 + 125, −18 − 4 + 24.   o = 1: 2 + 45, 64;  −125, −36 − 24.
    const Kokkos::View<T, typename Exec::memory_space> power("p");
    Kokkos::deep_copy(power, T(3));
    const Values found = gradient(power), expected{-56, 36, 137, 2, 47, 64, -125, -60},
                 sizes{58, 36, 137, 46, 47, 64, 125, 60};
    for (std::size_t i = 0; i < found.size(); ++i) {  // powers are not exact
      CAPTURE(i);
      CHECK(std::abs(found[i] - expected[i]) <= 20 * gradient::unit<T> * sizes[i]);
    }
  }
  SUBCASE("accumulate starts from Out") {
    CHECK(gradient(1, 0, {.accumulate = true}) == Values{-14, -1, 1, -7, 0, -3, -12, -17});
  }
  SUBCASE("differences below epsilon count as 0, and those of epsilon do not") {
    // Below 2: t is 0 −2 −3, 4 0 0, 0 2 5, −3 0 2.
    CHECK(gradient(1, 2) == Values{-8, 2, 8, 4, 5, 4, -5, -10});
  }
  SUBCASE("a coordinate in which points coincide gives 0 whatever their weight") {
    support::fill(p.a, {infinity, 2, 3, 4, 5, nan});  // t(1, 0, 0) = 0 and t(0, 1, 2) = 0
    for (const double power : {1., 2., 1.5, 0.5}) {
      CAPTURE(power);
      const Values found = gradient(power);
      CHECK(found[2] == found[2]);
      CHECK(std::abs(found[2]) < infinity);
      CHECK(found[1] == found[1]);
      CHECK(found[6] == found[6]);
      CHECK(found[5] == found[5]);
      CHECK(found[3] != found[3]);  // where these two do not coincide in n = 1
    }
  }
  SUBCASE("K = 0 gives 0, or leaves Out") {
    const auto none_a = matrix<T, Exec>(0, 2), none_b = matrix<T, Exec>(2, 0), none_c = matrix<T, Exec>(2, 0);
    rigel::cdist_gradient(exec, 1.5, none_a, none_b, none_c, p.d, p.out, {.accumulate = true});
    CHECK(values(p.out) == Values(8, -7));
    rigel::cdist_gradient(exec, 1, none_a, none_b, none_c, p.d, p.out);
    CHECK(values(p.out) == Values(8, 0));
  }
  SUBCASE("no points, coordinates or outputs: nothing happens") {
    const auto out = support::batch<T, Exec>(0, 2, 2);
    rigel::cdist_gradient(exec, 1, p.a, p.b, matrix<T, Exec>(0, 3), p.d, out);
    rigel::cdist_gradient(exec, 1, matrix<T, Exec>(3, 0), p.b, p.c, matrix<T, Exec>(2, 0), support::batch<T, Exec>(2, 2, 0));
    rigel::cdist_gradient(exec, 2, p.a, matrix<T, Exec>(0, 3), p.c, matrix<T, Exec>(0, 2), support::batch<T, Exec>(2, 0, 2));
  }
  SUBCASE("transposed() inputs") {
    const auto a = matrix<T, Exec>(2, 3, {1, 3, 5, 2, 4, 6}), b = matrix<T, Exec>(3, 2, {0, 5, 3, 3, 4, 0}),
               c = matrix<T, Exec>(3, 2, {1, 2, 1, 0, 1, -1}), d = matrix<T, Exec>(2, 2, {1, 5, 4, 2});
    using rigel::transposed;
    rigel::cdist_gradient(exec, 2, transposed(a), transposed(b), transposed(c), transposed(d), p.out);
    CHECK(values(p.out) == Values{-20, 12, 31, 2, 17, 16, -25, -24});
  }
}

}  // namespace

TEST_CASE_TEMPLATE("gradients by hand, f32", Exec, RIGEL_TEST_SPACES) { check_by_hand<float, Exec>(); }
TEST_CASE_TEMPLATE("gradients by hand, f64", Exec, RIGEL_TEST_SPACES) { check_by_hand<double, Exec>(); }
TEST_CASE_TEMPLATE("gradients by hand, special powers", Exec, RIGEL_TEST_SPACES) {
  check_special_powers<float, Exec>();
  check_special_powers<double, Exec>();
}
