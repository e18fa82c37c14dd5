// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One term of lp, |a − b|^p, by every kernel for float. Over the normal floats it is within a stated error of the power in
// double, also for exponents with special methods. 0, subnormal and huge differences, infinity and NaN give a result of the
// right class.
#include "functors.hpp"

#include <rigel/contract.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using Limits = std::numeric_limits<float>;
constexpr int count = 5000;

// The relative error that a term may have. By the special-function unit it is (4 + 3p + 0.7·|log2 x^p|)·u
// (rigel/elementary.hpp). For x from 1e-3 to 1e3 it is below 1e-6 if p ≤ 3.3 or 2p is an integer up to 8, and below 1.4e-6 if
// p ≤ 3.5. It is below 5e-6 everywhere. Kernels that have nothing but that unit keep its bound.
double bound(double x, double p, bool only_special_functions) {
  const double by_special_functions = (4 + 3 * p + 0.7 * std::fabs(p * std::log2(x))) * 0x1p-24;
  if (only_special_functions) return by_special_functions;
  const bool halves = p <= 4 && 2 * p == std::floor(2 * p);
  if (p > 3.5 && !halves) return by_special_functions;
  const double middle = p > 3.3 && !halves ? 1.4e-6 : 1e-6;
  return std::fmin(std::fmax(by_special_functions, middle), x >= 1e-3 && x <= 1e3 ? middle : 5e-6);
}

// The differences a − b: numbers x with either sign.
std::vector<double> differences() {
  support::Random random(11);
  std::vector<double> list = {0,
                              Limits::infinity(),
                              -Limits::infinity(),
                              Limits::quiet_NaN(),
                              Limits::denorm_min(),
                              -Limits::min() / 3,
                              Limits::min(),
                              Limits::max(),
                              -Limits::max(),
                              1,
                              -1};
  while (list.size() < count / 2)
    list.push_back(static_cast<float>(random.uniform(-1, 1) < 0 ? -1 : 1) *
                   static_cast<float>(std::exp2(random.uniform(-126, 127.99))));
  while (list.size() < count)
    list.push_back(static_cast<float>(random.uniform(-1, 1) < 0 ? -1 : 1) *
                   static_cast<float>(std::pow(10, random.uniform(-3, 3))));
  return list;
}

bool right(double x, double p, float power, bool only_special_functions) {
  if (std::isnan(x)) return std::isnan(power);
  const double exact = std::pow(std::fabs(x), p);
  if (std::isinf(x) || exact > Limits::max() * (1 + 5e-6)) return power == Limits::infinity();
  if (x == 0) return power == 0;
  // A subnormal difference has few bits, and may count as 0 if its power is subnormal or 0 as well.
  if (std::fabs(x) < Limits::min()) return p < 1 ? power > 0 && power < 1 : power >= 0 && power <= 2 * Limits::min();
  if (exact < Limits::min()) return power >= 0 && power <= Limits::min() * (1 + 5e-6f);
  return std::fabs(power - exact) <= bound(std::fabs(x), p, only_special_functions) * exact ||
         (power == Limits::infinity() && exact > Limits::max() * (1 - 5e-6));
}

}  // namespace

TEST_CASE_TEMPLATE("a power by every kernel: its error, and its class", Exec, RIGEL_TEST_SPACES) {
  const std::vector<double> list = differences();
  const auto a = support::matrix<float, Exec>(count, 1, list), b = support::matrix<float, Exec>(1, 1, {0});
  const auto c = support::matrix<float, Exec>(count, 1);
  for (const double p : {0.3, 0.5, 0.7, 1.0, 1.0001, 1.3, 1.5, 1.9, 2.0, 2.5, 2.7, 3.0, 3.3, 3.49, 3.5, 3.7, 4.0, 6.5}) {
    CAPTURE(p);
    rigel::lp<float> semiring;
    semiring.p = static_cast<float>(p);
    for (const auto& info : support::kernels_on(Exec{}, "lp", rigel::Scalar::f32)) {
      CAPTURE(info.name);
      const auto product = [&] {
        rigel::contract(Exec{}, semiring, a, b, c, rigel::epilogue::Program{}, {.kernel = info.name});
      };
      if (!support::ran(info, product)) continue;
      const auto actual = support::values(c);
      const bool only_special_functions = info.variant == "powers" || info.variant == "small";  // docs/numerics.md
      int wrong = 0;
      for (int i = 0; i < count; ++i)
        if (!right(list[i], semiring.p, static_cast<float>(actual[i]), only_special_functions) && wrong++ == 0)
          MESSAGE(list[i] << " gave " << actual[i] << ", expected " << std::pow(std::fabs(list[i]), semiring.p));
      CHECK(wrong == 0);
    }
  }
}

// Exponents that the host does not know: for each batch one, or one for all, in a view of rank 0 or 1.
TEST_CASE_TEMPLATE("powers with exponents from a view, by every kernel", Exec, RIGEL_TEST_SPACES) {
  using S = rigel::lp<float>;
  constexpr int m = 70, n = 83, k = 41;
  const std::vector<float> exponents = {0.7f, 1, 1.3f, 2, 2.7f, 3.5f, 5};
  const int batches = static_cast<int>(exponents.size());
  support::Random random(14);
  std::vector<double> x(batches * m * k), z(batches * k * n);
  for (std::vector<double>* list : {&x, &z})
    for (double& v : *list) v = static_cast<float>(random.uniform(-4, 4));
  const auto a = support::batch<float, Exec>(batches, m, k, x), b = support::batch<float, Exec>(batches, k, n, z);
  const auto c = support::batch<float, Exec>(batches, m, n);
  std::vector<S> objects(batches);
  for (int l = 0; l < batches; ++l) objects[l].p = exponents[l];
  const auto check = [&](const auto& semirings, const auto& exponent) {
    for (const auto& info : support::kernels_on(Exec{}, "lp", rigel::Scalar::f32)) {
      CAPTURE(info.name);
      const auto product = [&] {
        rigel::contract(Exec{}, semirings, a, b, c, rigel::epilogue::Program{}, {.kernel = info.name});
      };
      if (!support::ran(info, product)) continue;
      const auto actual = support::values(c);
      double worst = 0;
      for (int l = 0; l < batches; ++l)
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            const double p = exponent(l);
            double exact = 0, allowed = 0;
            for (int t = 0; t < k; ++t) {
              const double d = std::fabs(x[(l * m + i) * k + t] - z[(l * k + t) * n + j]), power = std::pow(d, p);
              exact += power;
              allowed += power * (k * 0x1p-24 + (d > 0 ? bound(d, p, info.variant == "powers") : 0));
            }
            worst = support::larger(worst, std::fabs(actual[(l * m + i) * n + j] - exact) / allowed);
          }
      CHECK(worst <= 1);
    }
  };
  const auto each = support::on_device<S, Exec>(objects);
  check(each, [&](int l) { return double(exponents[l]); });
  const S* const third = each.data() + 2;
  using Space = typename Exec::memory_space;
  check(Kokkos::View<const S, Space, Kokkos::MemoryUnmanaged>(third), [&](int) { return double(exponents[2]); });
  check(Kokkos::View<const S*, Space, Kokkos::MemoryUnmanaged>(third, 1), [&](int) { return double(exponents[2]); });
}

// Tiles have special methods for these exponents, and store vectors if rows are aligned.
TEST_CASE_TEMPLATE("sums of whole powers by every kernel", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 132, n = 140;
  for (const int k : {24, 23})
    for (const double p : {3.0, 4.0}) {
      CAPTURE(k);
      CAPTURE(p);
      support::Random random(12);
      std::vector<double> x(m * k), z(n * k);
      for (std::vector<double>* list : {&x, &z})
        for (double& v : *list) v = static_cast<float>(random.uniform(-4, 4));
      const auto a = support::matrix<float, Exec>(m, k, x), b = support::matrix<float, Exec>(n, k, z);
      const auto c = support::matrix<float, Exec>(m, n);
      rigel::lp<float> semiring;
      semiring.p = static_cast<float>(p);
      int ran = 0;
      for (const auto& info : support::kernels_on(Exec{}, "lp", rigel::Scalar::f32)) {
        CAPTURE(info.name);
        const auto product = [&] {
          rigel::contract(Exec{}, semiring, a, rigel::transposed(b), c, rigel::epilogue::Program{}, {.kernel = info.name});
        };
        if (!support::ran(info, product)) continue;
        const auto actual = support::values(c);
        double worst = 0;
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            double exact = 0;
            for (int l = 0; l < k; ++l) exact += std::pow(std::fabs(x[i * k + l] - z[j * k + l]), p);
            worst = support::larger(worst, std::fabs(actual[i * n + j] - exact) / exact);
          }
        CHECK(worst <= k * 0x1p-24 + 1e-6);  // the chain, and the error of terms
        ++ran;
      }
      CHECK(ran >= 2);
    }
}

// The p-th root in the epilogue, by every kernel: for a row-major and a column-major C, and for rows that fit no vector.
TEST_CASE_TEMPLATE("distances by every kernel", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 132, n = 140, k = 24;
  using Space = typename Exec::memory_space;
  support::Random random(13);
  std::vector<double> x(m * k), z(n * k);
  for (std::vector<double>* list : {&x, &z})
    for (double& v : *list) v = static_cast<float>(random.uniform(-4, 4));
  const auto a = support::matrix<float, Exec>(m, k, x), b = support::matrix<float, Exec>(n, k, z);
  const auto check = [&](double p, const auto& c) {
    rigel::lp<float> semiring;
    semiring.p = static_cast<float>(p);
    for (const auto& info : support::kernels_on(Exec{}, "lp", rigel::Scalar::f32)) {
      CAPTURE(info.name);
      CAPTURE(p);
      const auto product = [&] {
        rigel::contract(Exec{}, semiring, a, rigel::transposed(b), c, rigel::epilogue::pow(1 / p), {.kernel = info.name});
      };
      if (!support::ran(info, product)) continue;
      const Kokkos::View<float**, Kokkos::LayoutRight, Space> copy("copy", m, n);
      Kokkos::deep_copy(Exec{}, copy, c);
      const auto actual = support::values(copy);
      double worst = 0;
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          double sum = 0;
          for (int l = 0; l < k; ++l) sum += std::pow(std::fabs(x[i * k + l] - z[j * k + l]), double(semiring.p));
          const double exact = std::pow(sum, 1 / p);
          worst = support::larger(worst, std::fabs(actual[i * n + j] - exact) / exact);
        }
      // A p-th of the error of the sum, 10 u of the root, and |ln of the root| u for rounding its exponent, below 8 u here.
      CHECK(worst <= (k * 0x1p-24 + 1.4e-6) / p + 18 * 0x1p-24);
    }
  };
  for (const double p : {1.3, 1.5, 3.0, 4.0}) {
    check(p, Kokkos::View<float**, Kokkos::LayoutRight, Space>("rows", m, n));
    check(p, Kokkos::View<float**, Kokkos::LayoutLeft, Space>("columns", m, n));
    const Kokkos::View<float**, Kokkos::LayoutRight, Space> larger("larger", m, n + 3);
    check(p, Kokkos::subview(larger, Kokkos::ALL, Kokkos::pair<int, int>(1, n + 1)));
  }
}
