// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NaN and infinities among the operands, through every kernel: they reach exactly the outputs that they should.
#include <rigel/contract.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <cmath>
#include <functional>

using support::matrix;

namespace {

constexpr int m = 21, n = 35, depth = 19;  // no multiples of a vector or a tile
constexpr double infinity = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

using Values = std::vector<double>;
using Run = std::function<Values(const std::string& kernel, const Values& a, const Values& b)>;
using Expected = std::function<double(double a, double b)>;

// Ones, but for A(4, k) = a and B(k, 9) = b.
void check(const std::vector<rigel::KernelInfo>& kernels, const Run& run, const Expected& expected) {
  for (const auto& info : kernels) {
    if (info.family == "user") continue;
    CAPTURE(info.name);
    const bool non_negative = info.semiring == "max_times" || info.semiring == "min_times";
    for (const int k : {0, 7, depth - 1}) {
      for (const double a : {not_a_number, infinity, -infinity, 1.}) {
        for (const double b : {not_a_number, infinity, -infinity}) {
          if (non_negative && (a < 0 || b < 0)) continue;
          CAPTURE(k);
          CAPTURE(a);
          CAPTURE(b);
          Values x(m * depth, 1), y(depth * n, 1);
          x[4 * depth + k] = a;
          y[k * n + 9] = b;
          Values actual;
          if (!support::ran(info, [&] { actual = run(info.name, x, y); })) continue;
          int wrong = 0;
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
              const double e = expected(i == 4 ? a : 1, j == 9 ? b : 1);
              const bool near = support::kind(e) == 0 && std::fabs(actual[i * n + j] - e) <= 1e-5 * std::fabs(e);
              wrong += !(near || support::same(actual[i * n + j], e));
            }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

template <class S, class Exec>
void check_semiring(const Expected& expected) {
  using T = typename S::element;
  const Run run = [](const std::string& kernel, const Values& a, const Values& b) {
    S s{};
    if constexpr (requires { s.p; }) s.p = 1.5;
    const auto c = matrix<T, Exec>(m, n);
    rigel::contract(Exec{}, s, matrix<T, Exec>(m, depth, a), matrix<T, Exec>(depth, n, b), c, rigel::epilogue::Program{},
                    {.precision = rigel::Precision::operands, .kernel = kernel});
    return support::values(c);
  };
  check(
      support::kernels_on(Exec{}, rigel::semiring_name<S>(), rigel::scalar_of<T>, rigel::scalar_of<typename S::accumulator>),
      run, expected);
}

double least(double x, double y) { return x != x || y != y ? not_a_number : std::fmin(x, y); }
double most(double x, double y) { return x != x || y != y ? not_a_number : std::fmax(x, y); }

// Two instantiations a semiring are enough: f32 and f64 take different instructions.
template <class Exec, template <class...> class S>
void check_both(const Expected& expected) {
  check_semiring<S<float>, Exec>(expected);
  check_semiring<S<double>, Exec>(expected);
}

}  // namespace

// Each output joins the one special product a ⊗ b and 18 products of ones.
TEST_CASE_TEMPLATE("special values: through every kernel", Exec, RIGEL_TEST_SPACES) {
  SUBCASE("plus_times") {
    check_both<Exec, rigel::plus_times>([](double a, double b) { return a * b + (depth - 1); });
  }
  SUBCASE("min_plus") {
    check_both<Exec, rigel::min_plus>([](double a, double b) { return least(a + b, 2); });
  }
  SUBCASE("max_plus") {
    check_both<Exec, rigel::max_plus>([](double a, double b) { return most(a + b, 2); });
  }
  SUBCASE("max_min") {
    check_both<Exec, rigel::max_min>([](double a, double b) { return most(least(a, b), 1); });
  }
  SUBCASE("min_max") {
    check_both<Exec, rigel::min_max>([](double a, double b) { return least(most(a, b), 1); });
  }
  SUBCASE("max_times") {
    check_both<Exec, rigel::max_times>([](double a, double b) { return most(a * b, 1); });
  }
  SUBCASE("min_times") {
    check_both<Exec, rigel::min_times>([](double a, double b) { return least(a * b, 1); });
  }
  SUBCASE("l1") {
    check_both<Exec, rigel::l1>([](double a, double b) { return std::fabs(a - b); });
  }
  SUBCASE("l2_squared") {
    check_both<Exec, rigel::l2_squared>([](double a, double b) { return (a - b) * (a - b); });
  }
  SUBCASE("lp") {
    check_both<Exec, rigel::lp>([](double a, double b) { return std::fabs(a - b); });
  }
  SUBCASE("linf") {
    check_both<Exec, rigel::linf>([](double a, double b) { return std::fabs(a - b); });
  }
  SUBCASE("hamming") {
    check_both<Exec, rigel::hamming>([](double a, double b) { return a != b; });
  }
  SUBCASE("log_plus") {
    check_both<Exec, rigel::log_plus>([](double a, double b) {
      const double t = a + b;
      return t != t || t == infinity ? t : 2 + std::log(t == -infinity ? depth - 1. : depth - 1 + std::exp(t - 2));
    });
  }
}
