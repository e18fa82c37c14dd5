// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// log_plus compared with a log-sum-exp in double: huge exponents, infinities, NaN; by steps, by add(multiply), in lanes.
#include <rigel/semirings.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

double log_sum_exp(const std::vector<double>& terms) {
  double largest = -infinity<double>;
  for (const double t : terms) {
    if (t != t) return t;
    largest = std::fmax(largest, t);
  }
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (const double t : terms) sum += std::exp(t - largest);
  return largest + std::log(sum);
}

template <class T>
T by_steps(const std::vector<T>& a, const std::vector<T>& b) {
  using S = rigel::log_plus<T>;
  auto x = S::identity();
  for (std::size_t k = 0; k < a.size(); ++k) x = S::step(x, a[k], b[k]);
  return S::result(x);
}
template <class T>
T by_additions(const std::vector<T>& a, const std::vector<T>& b) {
  using S = rigel::log_plus<T>;
  auto x = S::identity();
  for (std::size_t k = 0; k < a.size(); ++k) x = S::add(x, S::multiply(a[k], b[k]));
  return S::result(x);
}
// The result in the second lane of a vector of two; the first lane has other numbers.
template <class T>
T in_lanes(const std::vector<T>& a, const std::vector<T>& b) {
  using V = T __attribute__((ext_vector_type(2)));
  using S = rigel::log_plus<T>;
  rigel::log_sum<V> x = {V{} - infinity<T>, V{}};
  for (std::size_t k = 0; k < a.size(); ++k) x = S::step(x, V{T(k), a[k]}, V{T(1), b[k]});
  return S::result({x.maximum[1], x.sum[1]});
}

// The bound counts the rounding of a + b in each term, the exponential, product and sum of each step, then the logarithm and
// its addition.
template <class T>
void check_close(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<double> terms;
  double largest = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    terms.push_back(static_cast<double>(a[k]) + static_cast<double>(b[k]));
    largest = std::fmax(largest, std::fabs(terms.back()));
  }
  const double exact = log_sum_exp(terms), u = std::numeric_limits<T>::epsilon() / 2;
  const double bound = u * (4 + 5 * static_cast<double>(a.size())) * (1 + largest);
  for (const T actual : {by_steps(a, b), by_additions(a, b), in_lanes(a, b)}) {
    CAPTURE(actual);
    CAPTURE(exact);
    CHECK(std::fabs(static_cast<double>(actual) - exact) <= bound);
  }
}

template <class T>
void check_value(const std::vector<T>& a, double expected) {
  const std::vector<T> zeros(a.size(), T(0));
  CHECK(support::same<double>(by_steps(a, zeros), expected));
  CHECK(support::same<double>(by_additions(a, zeros), expected));
  CHECK(support::same<double>(in_lanes(a, zeros), expected));
}

}  // namespace

TEST_CASE_TEMPLATE("log_plus: against log-sum-exp in double", T, float, double) {
  support::Random random(11);
  for (const double scale : {0.01, 1., 20., 1000.}) {
    for (const int size : {1, 2, 3, 17, 200}) {
      CAPTURE(scale);
      CAPTURE(size);
      std::vector<T> a, b;
      for (int k = 0; k < size; ++k) {
        a.push_back(static_cast<T>(random.uniform(-scale, scale)));
        b.push_back(static_cast<T>(random.uniform(-scale, scale)));
      }
      // In double the expected value rounds too; the bound covers both.
      check_close(a, b);
    }
  }
}

TEST_CASE_TEMPLATE("log_plus: nothing overflows", T, float, double) {
  const T inf = infinity<T>, nan = std::numeric_limits<T>::quiet_NaN();
  check_value<T>({T(1e30), T(-1e30)}, T(1e30));
  check_value<T>({T(-1e30), T(-1e30)}, T(-1e30));  // + log 2, far below the last place
  check_value<T>({T(-1e30), T(1e30), T(1e30)}, T(1e30));
  check_value<T>({T(-1e30)}, T(-1e30));
  check_value<T>({T(5)}, 5);
  // −∞ is the identity; an empty sum gives it.
  check_value<T>({}, -inf);
  check_value<T>({-inf}, -inf);
  check_value<T>({-inf, -inf}, -inf);
  check_value<T>({-inf, T(3), -inf}, 3);
  // +∞ wins over everything but NaN.
  check_value<T>({inf}, inf);
  check_value<T>({T(1), inf, T(2)}, inf);
  check_value<T>({inf, inf}, inf);
  check_value<T>({inf, -inf}, inf);
  check_value<T>({-inf, inf}, inf);
  for (const auto& terms :
       {std::vector<T>{nan}, {nan, T(1)}, {T(1), nan}, {inf, nan}, {nan, inf}, {-inf, nan}, {nan, -inf}, {nan, T(1), T(2)}})
    check_value<T>(terms, nan);
}

TEST_CASE_TEMPLATE("log_plus: log 2 and log 3", T, float, double) {
  CHECK(by_steps<T>({0, 0}, {0, 0}) == doctest::Approx(0.69314718055994531).epsilon(4 * std::numeric_limits<T>::epsilon()));
  CHECK(by_steps<T>({1, 1, 1}, {0, 0, 0}) ==
        doctest::Approx(2.09861228866810969).epsilon(4 * std::numeric_limits<T>::epsilon()));
}

TEST_CASE("log_plus: lift is the inverse of result") {
  using S = rigel::log_plus<float>;
  for (const float c : {0.f, -3.f, 1e30f, infinity<float>, -infinity<float>}) CHECK(S::result(S::lift(c)) == c);
  CHECK(std::isnan(S::result(S::lift(std::numeric_limits<float>::quiet_NaN()))));
}
