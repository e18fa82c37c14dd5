// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// lp of doubles by every kernel, against powers in long double. One term |a − b|^p is within (16 + 2p)·u over all normal numbers
// and all classes of exponents: those with products, those of the table on CUDA cores (1 ≤ p ≤ 7) and others. 0, subnormal and
// huge differences, infinity and NaN give a result of the right class.
#include "functors.hpp"

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

using Limits = std::numeric_limits<double>;
using S = rigel::lp<double>;
constexpr double u = 0x1p-53;
constexpr int count = 6000;

S powers(double p) {
  S s;
  s.p = p;
  return s;
}

// Relative, of a term: host vectors are within (4 + 2p)·u, device functions within 4 u, products within (2p + 2)·u, the table
// within (16 + p)·u. The difference's own rounding is not part of it.
double bound(double p) { return (16 + 2 * p) * u; }

// Differences a − b of either sign: over all exponents, from 1e-3 to 1e3, and next to the ends of intervals that tables may
// have.
std::vector<double> differences() {
  std::vector<double> list = {0,
                              -0.,
                              Limits::infinity(),
                              -Limits::infinity(),
                              Limits::quiet_NaN(),
                              -Limits::quiet_NaN(),
                              Limits::denorm_min(),
                              -Limits::min() / 3,
                              Limits::min(),
                              -Limits::min(),
                              Limits::max(),
                              -Limits::max(),
                              1,
                              -1};
  for (int i = 0; i <= 64; ++i)
    for (const double next : {0., 100.}) list.push_back(std::nextafter(1 + i / 64., next));
  support::Random random(21);
  const auto sign = [&] { return random.uniform(-1, 1) < 0 ? -1. : 1.; };
  while (list.size() < count / 2) list.push_back(sign() * std::exp2(random.uniform(-1022, 1023.99)));
  while (list.size() < count) list.push_back(sign() * std::pow(10, random.uniform(-3, 3)));
  return list;
}

bool right(double x, double p, double power) {
  if (std::isnan(x)) return std::isnan(power);
  const long double exact = std::pow(std::fabs(static_cast<long double>(x)), static_cast<long double>(p));
  constexpr long double most = Limits::max(), least = Limits::min();
  if (std::isinf(x) || exact > most * (1 + 1e-14L)) return power == Limits::infinity();
  if (x == 0) return power == 0;
  // A subnormal difference may count as any such number if its power is subnormal or 0 as well.
  if (std::fabs(x) < least && p > 1) return power >= 0 && power <= 2 * least;
  if (exact < least) return power >= 0 && power <= least * (1 + 1e-14L);
  return std::fabs(power - exact) <= bound(p) * exact || (power == Limits::infinity() && exact > most * (1 - 1e-14L));
}

}  // namespace

TEST_CASE_TEMPLATE("a power of a double by every kernel: its error, and its class", Exec, Kokkos::DefaultExecutionSpace) {
  const std::vector<double> list = differences();
  const auto a = support::matrix<double, Exec>(count, 1, list), b = support::matrix<double, Exec>(1, 1, {0});
  const auto c = support::matrix<double, Exec>(count, 1);
  for (const double p :
       {0.3, 0.5, 0.7, 1.0, 1.0001, 1.3, 1.5, 1.9, 2.0, 2.5, 2.7, 3.0, 3.3, 3.5, 4.0, 4.5, 5.3, 6.9, 7.0, 8.5}) {
    CAPTURE(p);
    for (const auto& info : support::kernels_on(Exec{}, "lp", rigel::Scalar::f64)) {
      CAPTURE(info.name);
      const auto product = [&] {
        rigel::contract(Exec{}, powers(p), a, b, c, rigel::epilogue::Program{}, {.kernel = info.name});
      };
      if (!support::ran(info, product)) continue;
      const auto actual = support::values(c);
      int wrong = 0;
      for (int i = 0; i < count; ++i)
        if (!right(list[i], p, actual[i]) && wrong++ == 0)
          MESSAGE(list[i] << " gave " << actual[i] << ", expected " << std::pow(std::fabs(list[i]), p));
      CHECK(wrong == 0);
    }
  }
}

// K is no multiple of a slab, tiles are incomplete, one difference is NaN, another infinite. Exponents come from the host, or
// from memory of the device: for each batch one.
TEST_CASE_TEMPLATE("sums of powers of doubles by every kernel", Exec, Kokkos::DefaultExecutionSpace) {
  constexpr int m = 70, n = 83, k = 41;
  const std::vector<double> exponents = {0.7, 1, 1.3, 1.5, 2, 2.7, 3, 3.5, 5, 8};
  const int batches = static_cast<int>(exponents.size());
  support::Random random(22);
  std::vector<double> x(batches * m * k), z(batches * k * n);
  for (std::vector<double>* list : {&x, &z})
    for (double& v : *list) v = random.uniform(-4, 4);
  for (int l = 0; l < batches; ++l) {
    x[(l * m + 3) * k + 7] = Limits::quiet_NaN();
    x[(l * m + 5) * k + 9] = -Limits::infinity();
  }
  std::vector<S> objects;
  for (const double p : exponents) objects.push_back(powers(p));
  const auto a = support::batch<double, Exec>(batches, m, k, x), b = support::batch<double, Exec>(batches, k, n, z);
  const auto c = support::batch<double, Exec>(batches, m, n);
  const auto wrong = [&](const std::vector<double>& actual, int l, double p) {
    int found = 0;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        long double exact = 0;
        for (int t = 0; t < k; ++t)
          exact += std::pow(std::fabs(static_cast<long double>(x[(l * m + i) * k + t] - z[(l * k + t) * n + j])),
                            static_cast<long double>(p));
        const double value = actual[(l * m + i) * n + j];
        const bool is_right = i == 3   ? std::isnan(value)
                              : i == 5 ? value == Limits::infinity()
                                       : std::fabs(value - exact) <= (bound(p) + (k + 1) * u) * exact;
        found += !is_right;
      }
    return found;
  };
  const auto views = support::on_device<S, Exec>(objects);
  for (const auto& info : support::kernels_on(Exec{}, "lp", rigel::Scalar::f64)) {
    CAPTURE(info.name);
    const auto of_views = [&] {
      rigel::contract(Exec{}, views, a, b, c, rigel::epilogue::Program{}, {.kernel = info.name});
    };
    if (support::ran(info, of_views)) {
      const auto actual = support::values(c);
      for (int l = 0; l < batches; ++l) CHECK(wrong(actual, l, exponents[l]) == 0);
    }
    for (const double p : exponents) {
      CAPTURE(p);
      const auto of_host = [&] {
        rigel::contract(Exec{}, powers(p), a, b, c, rigel::epilogue::Program{}, {.kernel = info.name});
      };
      if (!support::ran(info, of_host)) continue;
      CHECK(wrong(support::values(c), 0, p) == 0);
    }
  }
}
