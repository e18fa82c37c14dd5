// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that call functions of dozens of instructions, which have loops of their own, and powers whose exponents have products and roots.
#include "texts.hpp"

#include <tests/support/compare.hpp>

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

namespace {

/// Σ_k |a − b|^p in double.
template <class A, class B>
std::vector<double> exact_powers(const A& a, const B& b, double p) {
  const auto m = a.extent(0), n = b.extent(1), count = a.extent(1);
  std::vector<double> sums(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t k = 0; k < count; ++k) sums[i * n + j] += std::pow(std::abs(double{a(i, k)} - double{b(k, j)}), p);
  return sums;
}

/// The largest error of sums of `count` powers, in units of a rounding for each difference, product and sum, and 24 for a power
/// (rigel/elementary.hpp).
template <class C>
double error_of(const C& c, const std::vector<double>& exact, int count) {
  double worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double unit = 0x1p-24 * (2 * count + 24) * exact[i];
    worst = support::larger(worst, std::abs(double{c.data()[i]} - exact[i]) / unit);
  }
  return worst;
}

}  // namespace

TEST_CASE_TEMPLATE("text powers: each kernel by products, roots, a table and functions, of numbers and of views", Exec,
                   RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  constexpr int count = 37;
  Semiring text({.multiply = "power(abs(a - b), p)", .add = "x + y", .hyperparameters = {{"p", 2}}, .commutative = true});
  for (const auto [m, n] : {std::pair(64, 96), std::pair(35, 70)}) {  // whole tiles, and edges
    const Matrix<float> a("a", m, count), b("b", count, n), c("c", m, n);
    texts::fill(a, 3);
    texts::fill(b, 4);
    for (const float p : {0.5f, 1.f, 1.3f, 2.f, 2.5f, 3.f, 3.2f, 3.4f, 4.f, 6.f}) {
      const std::vector<double> exact = exact_powers(a, b, double{p});
      const Kokkos::View<float, texts::Memory> in_memory("p");
      in_memory() = p;
      const std::string number = std::to_string(p);
      const Semiring constant({.multiply = "power(abs(a - b), " + number + ")", .add = "x + y"});
      for (const std::string& kernel : texts::kernels_of<Exec>(text, true)) {
        CAPTURE(p);
        CAPTURE(kernel);
        text.set("p", double{p});
        texts::contract<Exec>(text, a, b, c, rigel::ContractOptions{.kernel = kernel});
        CHECK(error_of(c, exact, count) <= 1);
        text.set("p", in_memory);
        texts::contract<Exec>(text, a, b, c, rigel::ContractOptions{.kernel = kernel});
        CHECK(error_of(c, exact, count) <= 1);
      }
      for (const std::string& kernel : texts::kernels_of<Exec>(constant, true)) {
        CAPTURE(p);
        CAPTURE(kernel);
        texts::contract<Exec>(constant, a, b, c, rigel::ContractOptions{.kernel = kernel});
        CHECK(error_of(c, exact, count) <= 1);
      }
    }
  }
}

TEST_CASE_TEMPLATE("text powers: several in a term, of one exponent and of known ones", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  constexpr int m = 64, n = 64, count = 19;
  const Matrix<float> a("a", m, count), b("b", count, n), c("c", m, n);
  texts::fill(a, 5);
  texts::fill(b, 6);
  Semiring text(
      {.multiply = "auto d = abs(a - b); return power(d, p) * power(abs(a), 2) + 0.5 * power(abs(b), p) + power(d, 1.5);",
       .add = "x + y",
       .result = "power(x, 0.25)",
       .hyperparameters = {{"p", 2}}});
  for (const float p : {0.75f, 1.f, 1.3f, 2.f, 3.f, 5.f}) {
    CAPTURE(p);
    text.set("p", double{p});
    std::vector<double> exact(m * n);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int k = 0; k < count; ++k) {
          const double u = double{a(i, k)}, v = double{b(k, j)}, d = std::abs(u - v);
          sum += std::pow(d, double{p}) * u * u + 0.5 * std::pow(std::abs(v), double{p}) + std::pow(d, 1.5);
        }
        exact[static_cast<std::size_t>(i * n + j)] = std::pow(sum, 0.25);
      }
    for (const std::string& kernel : texts::kernels_of<Exec>(text, true)) {
      CAPTURE(kernel);
      texts::contract<Exec>(text, a, b, c, rigel::ContractOptions{.kernel = kernel});
      CHECK(error_of(c, exact, count) <= 1);
    }
  }
}

TEST_CASE_TEMPLATE("text powers: 0, infinity and NaN are their own powers in each kernel, and 1 nearly", Exec,
                   RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float special[] = {0.f, -0.f, 1.f, inf, -inf, nan, -1.f, -nan};
  constexpr int m = 32, n = 32;
  const Matrix<float> a("a", m, 1), b("b", 1, n), c("c", m, n);
  for (int i = 0; i < m; ++i) a(i, 0) = special[i % 8];
  Semiring text({.multiply = "power(abs(a), p) + 0 * b", .add = "x + y", .hyperparameters = {{"p", 2}}});
  for (const float p : {0.5f, 1.f, 1.3f, 2.f, 3.f, 3.2f, 3.5f, 4.f, 7.f}) {
    text.set("p", double{p});
    for (const std::string& kernel : texts::kernels_of<Exec>(text, true)) {
      CAPTURE(p);
      CAPTURE(kernel);
      texts::contract<Exec>(text, a, b, c, rigel::ContractOptions{.kernel = kernel});
      int wrong = 0;
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          const float x = std::abs(special[i % 8]), y = c(i, j);
          const bool is_near = x == 1 && std::abs(y - 1) <= 24 * 0x1p-24f;  // a table has its error for 1, too
          wrong += x == y || (x != x && y != y) || is_near ? 0 : 1;
        }
      CHECK(wrong == 0);
    }
  }
  text.set("p", nan);
  texts::contract<Exec>(text, a, b, c);
  CHECK(c(0, 0) != c(0, 0));
  CHECK(c(2, 0) != c(2, 0));
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
