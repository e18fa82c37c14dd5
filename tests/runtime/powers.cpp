// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that call functions of dozens of instructions, which have loops of their own, and powers whose exponents have products and roots.
#include "texts.hpp"

#include <algorithm>
#include <cmath>

using rigel::Scalar, rigel::runtime::Epilogue, rigel::runtime::Semiring, rigel::runtime::Texts;
using texts::Batch, texts::Host, texts::Matrix;

namespace {

// batches, m, n, k: whole blocks and edges, K in several blocks, lanes of a batch, no K at all.
const std::array<int, 4> shapes[] = {{1, 1, 1, 1},  {1, 7, 37, 3}, {2, 9, 40, 600},
                                     {70, 3, 4, 6}, {3, 1, 1, 9},  {2, 3, 5, 0}};

// The largest error of a text that sums term(a, b) ≥ 0, in units of K + `units` roundings of the sum.
template <class T, class Term>
double worst_error(const Semiring& text, int units, const Term& term) {
  using A = rigel::accumulator_for<T>;
  double worst = 0;
  for (const auto [batches, m, n, k] : shapes) {
    const Batch<T> a("a", batches, m, k), b("b", batches, k, n);
    const Batch<A> c("c", batches, m, n), twice("twice", batches, m, n);
    const Batch<A, Kokkos::LayoutLeft> left("left", batches, m, n);
    texts::fill(a, 1);
    texts::fill(b, 2);
    rigel::contract(Host{}, text, a, b, c);
    rigel::contract(Host{}, text, a, b, left);
    Kokkos::deep_copy(twice, c);
    rigel::contract(Host{}, text, a, b, twice, Epilogue({.argument = rigel::scalar_of<A>, .body = "0.5 * x"}),
                    {.accumulate = true});
    for (int l = 0; l < batches; ++l)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          double sum = 0;
          for (int q = 0; q < k; ++q) sum += term(static_cast<double>(a(l, i, q)), static_cast<double>(b(l, q, j)));
          const double unit = (sizeof(A) == 4 ? 0x1p-24 : 0x1p-53) * (2 * k + units) * sum;
          for (const A value : {c(l, i, j), left(l, i, j), twice(l, i, j)})
            worst = std::max(worst, unit > 0 ? std::abs(static_cast<double>(value) - sum) / unit : value == 0 ? 0 : 2);
        }
  }
  return worst;
}

}  // namespace

TEST_CASE_TEMPLATE("text powers: all exponents of a Minkowski sum by one text", T, float, double, rigel::half,
                   rigel::bfloat16) {
  if (!texts::can_compile()) return;
  Semiring text({.element = rigel::scalar_of<T>,
                 .multiply = "power(abs(a - b), p)",
                 .add = "x + y",
                 .hyperparameters = {{"p", 2}},
                 .commutative = true});
  const auto before = rigel::runtime::statistics();
  for (const double p : {0.5, 1., 1.5, 2., 2.5, 3., 3.5, 4., 1.7, 0.3, 5.}) {
    CAPTURE(p);
    text.set("p", p);
    const double exponent = text.get("p");
    CHECK(worst_error<T>(text, 24, [&](double a, double b) { return std::pow(std::abs(a - b), exponent); }) <= 1);
  }
  const auto after = rigel::runtime::statistics();
  CHECK(after.compiled + after.from_disk <= before.compiled + before.from_disk + 2);
}

TEST_CASE("text powers: several exponents, computed ones, constants, and a fused step") {
  if (!texts::can_compile()) return;
  Semiring two(
      {.multiply = "power(abs(a), p) * power(abs(b), q)", .add = "x + y", .hyperparameters = {{"p", 2}, {"q", 0.5}}});
  for (const auto [p, q] : {std::pair(2., 0.5), std::pair(3., 1.25), std::pair(1.25, 3.), std::pair(0.75, 1.25)}) {
    two.set("p", p);
    two.set("q", q);
    CHECK(worst_error<float>(two, 48,
                             [&](double a, double b) { return std::pow(std::abs(a), p) * std::pow(std::abs(b), q); }) <= 1);
  }
  Semiring computed({.multiply = "power(abs(a - b), p + 1)", .add = "x + y", .hyperparameters = {{"p", 2}}});
  CHECK(worst_error<float>(computed, 24, [](double a, double b) { return std::pow(std::abs(a - b), 3); }) <= 1);
  const Semiring constant({.multiply = "power(abs(a - b), 3) + power(abs(a), 1.5)", .add = "x + y"});
  CHECK(worst_error<float>(constant, 24, [](double a, double b) {
          return std::pow(std::abs(a - b), 3) + std::pow(std::abs(a), 1.5);
        }) <= 1);
  const Semiring fused(
      {.multiply = "power(abs(a - b), 3)", .add = "x + y", .step = "auto d = abs(a - b); return x + power(d, 3);"});
  CHECK(worst_error<float>(fused, 24, [](double a, double b) { return std::pow(std::abs(a - b), 3); }) <= 1);
}

TEST_CASE("text powers: infinities, zeros and NaN") {
  if (!texts::can_compile()) return;
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  Semiring text({.multiply = "power(abs(a), p)", .add = "x + y", .hyperparameters = {{"p", 2}}});
  const Matrix<float> a("a", 1, 1), b("b", 1, 1), c("c", 1, 1);
  for (const float p : {0.5f, 1.f, 1.5f, 2.f, 2.5f, 3.f, 3.5f, 4.f, 1.7f}) {
    CAPTURE(p);
    text.set("p", p);
    for (const float x : {0.f, -0.f, 1.f, inf, -inf, nan}) {
      CAPTURE(x);
      a(0, 0) = x;
      rigel::contract(Host{}, text, a, b, c);
      const float expected = x != x ? nan : std::abs(x);  // 0, 1 and infinity are their own powers
      CHECK((c(0, 0) == expected || (c(0, 0) != c(0, 0) && expected != expected)));
    }
  }
  text.set("p", nan);
  a(0, 0) = 1;
  rigel::contract(Host{}, text, a, b, c);
  CHECK(c(0, 0) != c(0, 0));
}

TEST_CASE_TEMPLATE("text powers: a result that calls functions", T, float, double) {
  if (!texts::can_compile()) return;
  const Semiring text({.element = rigel::scalar_of<T>,
                       .multiply = "exp(-abs(a - b))",
                       .add = "x + y",
                       .result = "log(1 + x)",
                       .commutative = true});
  for (const auto [batches, m, n, k] : shapes) {
    const Batch<T> a("a", batches, m, k), b("b", batches, k, n), c("c", batches, m, n);
    texts::fill(a, 3);
    texts::fill(b, 4);
    rigel::contract(Host{}, text, a, b, c);
    double worst = 0;
    for (int l = 0; l < batches; ++l)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          double sum = 0;
          for (int q = 0; q < k; ++q) sum += std::exp(-std::abs(double{a(l, i, q)} - double{b(l, q, j)}));
          const double exact = std::log1p(sum), unit = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
          worst = std::max(worst, std::abs(c(l, i, j) - exact) / (unit * (2 * k + 20) * (1 + exact)));
        }
    CHECK(worst <= 1);
  }
}
