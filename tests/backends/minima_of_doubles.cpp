// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Minima and maxima of doubles by every kernel. A NaN among the products, or in C before the call, is the result, wherever it
// stands; no other result is NaN. On CUDA cores kernels test each slab of operands for values that can make a product NaN, and
// compare without regard to NaN in the others.
#include <rigel/contract.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN();

double smaller(double x, double y) { return std::isnan(x) || std::isnan(y) ? none : x < y ? x : y; }
double larger(double x, double y) { return std::isnan(x) || std::isnan(y) ? none : x > y ? x : y; }
double sum(double a, double b) { return a + b; }
double product(double a, double b) { return a * b; }
double distance(double a, double b) { return std::fabs(a - b); }

using Operation = double (*)(double, double);

struct Element {
  int line, k;
  double value;
};
// Elements of A and of B that replace ordinary ones. The first slab, a later one and the last, incomplete one have some.
struct Placed {
  std::vector<Element> a, b;
};
const std::vector<Placed> placements = {
    {},
    {{{2, 0, none}}, {}},
    {{}, {{3, 44, none}}},
    {{{130, 21, -none}}, {{131, 20, none}}},
    {{{0, 7, infinite}, {5, 7, -infinite}, {140, 40, infinite}},
     {{1, 7, infinite}, {6, 7, -infinite}, {134, 40, -infinite}}},
    {{{9, 12, infinite}, {10, 12, -infinite}}, {{9, 12, 0}, {10, 13, -infinite}}},
    {{{4, 3, std::numeric_limits<double>::max()}}, {{4, 3, std::numeric_limits<double>::max()}, {5, 3, -1e308}}},
};

constexpr int m = 141, n = 135, k = 45;

template <class S, class Exec>
void check(const char* name, Operation multiply, Operation add, bool non_negative) {
  CAPTURE(name);
  support::Random random(31);
  for (const Placed& placed : placements) {
    CAPTURE(&placed - placements.data());
    std::vector<double> x(m * k), z(k * n), start(m * n);
    for (double& v : x) v = random.uniform(non_negative ? 0 : -4, 4);
    for (double& v : z) v = random.uniform(non_negative ? 0 : -4, 4);
    for (double& v : start) v = random.uniform(non_negative ? 0 : -8, 8);
    const auto value = [&](double v) { return non_negative ? std::fabs(v) : v; };
    for (const Element& e : placed.a) x[e.line * k + e.k] = value(e.value);
    for (const Element& e : placed.b) z[e.k * n + e.line] = value(e.value);
    start[17] = none;
    start[n + 4] = infinite;
    start[20 * n + 99] = none;
    const auto a = support::matrix<double, Exec>(m, k, x), b = support::matrix<double, Exec>(k, n, z);
    for (const bool accumulate : {false, true}) {
      CAPTURE(accumulate);
      std::vector<double> expected(m * n);
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          double& sum = expected[i * n + j];
          sum = accumulate ? start[i * n + j] : static_cast<double>(S::identity());
          for (int t = 0; t < k; ++t) sum = add(sum, multiply(x[i * k + t], z[t * n + j]));
        }
      for (const auto& info : support::kernels_on(Exec{}, name, rigel::Scalar::f64)) {
        CAPTURE(info.name);
        const auto c = support::matrix<double, Exec>(m, n, start);
        const auto call = [&] {
          rigel::contract(Exec{}, S{}, a, b, c, rigel::epilogue::Program{}, {.accumulate = accumulate, .kernel = info.name});
        };
        if (!support::ran(info, call)) continue;
        const auto actual = support::values(c);
        int wrong = 0;
        for (int i = 0; i < m * n; ++i)
          wrong += !(actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])));
        CHECK(wrong == 0);
      }
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("NaN and infinities in minima and maxima of doubles, by every kernel", Exec, RIGEL_TEST_SPACES) {
  check<rigel::min_plus<double>, Exec>("min_plus", sum, smaller, false);
  check<rigel::max_plus<double>, Exec>("max_plus", sum, larger, false);
  check<rigel::max_min<double>, Exec>("max_min", smaller, larger, false);
  check<rigel::min_max<double>, Exec>("min_max", larger, smaller, false);
  check<rigel::max_times<double>, Exec>("max_times", product, larger, true);
  check<rigel::min_times<double>, Exec>("min_times", product, smaller, true);
  check<rigel::linf<double>, Exec>("linf", distance, larger, false);
}
