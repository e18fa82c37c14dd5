// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pivots so small that their reciprocals are infinite. All numbers are powers of two or small multiples of them, so that no operation
// rounds, in whatever order: expected values are exact.
#include <tests/solve/systems.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>

using rigel::Factorisation;
using solve::Numbers;
using support::batch;
using support::values;

namespace {

template <class Exec>
using Infos = Kokkos::View<std::int32_t*, typename Exec::memory_space>;

// The exponent of a pivot whose reciprocal is beyond the largest number, by some.
template <class T>
constexpr int exponent = sizeof(T) == 4 ? -132 : -1028;

// A batch of three systems, of which the second one has small pivots: matrices, right sides of two columns, and solutions.
struct Systems {
  int n;
  Numbers a, b, x;
  int first;  // number of the first small pivot
};

// Column k of A has p_k on the diagonal and p_k/2 below it: L has halves, U is diagonal. A·X = B for p_k·x_k = 2⁻⁸, and twice that in
// the second column. `exchanged`: the rows in opposite order.
template <class T>
Systems eliminated(int n, bool exchanged) {
  Systems s{n, Numbers(3 * n * n), Numbers(3 * n * 2), Numbers(3 * n * 2), n > 1 ? 2 : 1};
  for (int l = 0; l < 3; ++l)
    for (int k = 0; k < n; ++k) {
      const double pivot = l == 1 && k % 3 == s.first - 1 ? std::ldexp(1., exponent<T>) : 2.;
      const auto row = [&](int i) { return exchanged ? n - 1 - i : i; };
      s.a[l * n * n + row(k) * n + k] = pivot;
      if (k + 1 < n) s.a[l * n * n + row(k + 1) * n + k] = pivot / 2;
      for (int j = 0; j < 2; ++j) {
        const double of_pivot = 0x1p-8 * (j + 1);
        s.x[(l * n + k) * 2 + j] = of_pivot / pivot;
        s.b[(l * n + row(k)) * 2 + j] = of_pivot * (k > 0 ? 1.5 : 1);
      }
    }
  return s;
}

// L·Lᵀ·X = B of pairs of unknowns: (p, 0; p/2, 2), B = (0, 8), X = (−1, 2), and half of that in the second column.
template <class T>
Systems factored(int n) {
  Systems s{n, Numbers(3 * n * n), Numbers(3 * n * 2), Numbers(3 * n * 2), 1};
  for (int l = 0; l < 3; ++l)
    for (int k = 0; k < n; ++k) {
      const double pivot = l == 1 ? std::ldexp(1., exponent<T>) : 4.;
      const bool is_first = k % 2 == 0, has_second = k + 1 < n;
      s.a[l * n * n + k * n + k] = is_first ? pivot : 2;
      if (is_first && has_second) s.a[l * n * n + (k + 1) * n + k] = pivot / 2;
      for (int j = 0; j < 2; ++j) {
        s.x[(l * n + k) * 2 + j] = (is_first ? has_second ? -1. : 0. : 2.) / (j + 1);
        s.b[(l * n + k) * 2 + j] = (is_first ? 0. : 8.) / (j + 1);
      }
    }
  return s;
}

// Solves by every kernel of a factorisation, and compares. NVIDIA's library multiplies by reciprocals, so such a system fails.
template <class T, class Exec, class Problem>
void check(Factorisation factorisation, const Systems& s, const Problem& problem_of) {
  const int n = s.n, size = n * 2;
  CAPTURE(n);
  const Exec exec;
  const auto a = batch<T, Exec>(3, n, n, s.a), b = batch<T, Exec>(3, n, 2, s.b), x = batch<T, Exec>(3, n, 2);
  const Infos<Exec> info("info", 3);
  for (const std::string& name : solve::kernels_of<T, Exec>(factorisation)) {
    CAPTURE(name);
    Kokkos::deep_copy(info, -1);
    const rigel::SolveOptions options{.kernel = name};
    const rigel::Solve problem = problem_of(exec, a, b, x, info, options);
    if (!solve::covered(problem)) continue;
    rigel::run(problem);
    const Numbers found = values(x), infos = values(info);
    const bool fails = name.starts_with("cuda.cusolver");
    CHECK(infos == Numbers{0, fails ? double(s.first) : 0, 0});
    int wrong = 0;
    for (int i = 0; i < 3 * size; ++i) wrong += fails && i / size == 1 ? !std::isnan(found[i]) : found[i] != s.x[i];
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("solve: pivots whose reciprocals are infinite", Exec, RIGEL_TEST_SPACES) {
  const auto check_all = []<class T>(T) {
    for (const int n : {1, 2, 7, 16, 31, 64, 100, 128, 140, 300}) {
      for (const bool exchanged : {false, true})
        check<T, Exec>(Factorisation::lu, eliminated<T>(n, exchanged),
                       [](const auto&... arguments) { return rigel::lu_solve_problem(arguments...); });
      check<T, Exec>(Factorisation::cholesky, factored<T>(n),
                     [](const auto&... arguments) { return rigel::cholesky_solve_factored_problem(arguments...); });
    }
  };
  check_all(float{});
  check_all(double{});
}

TEST_CASE_TEMPLATE("solve: a Cholesky factorisation of subnormal numbers", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  // Roots are normal numbers: 2⁻⁵¹⁵ and 2⁻⁵³⁷.
  const auto a = batch<double, Exec>(1, 2, 2, {0x1p-1030, 0, 0, 0x1p-1074}), l = batch<double, Exec>(1, 2, 2);
  const auto b = batch<double, Exec>(1, 2, 1, {0x1p-1035, 0x1p-1074}), x = batch<double, Exec>(1, 2, 1);
  const Infos<Exec> info("info", 1);
  for (const std::string& name : solve::kernels_of<double, Exec>(Factorisation::cholesky)) {
    CAPTURE(name);
    const rigel::SolveOptions options{.kernel = name};
    if (!solve::covered(rigel::cholesky_solve_problem(exec, a, b, x, info, options))) continue;
    rigel::cholesky_solve(exec, a, b, x, info, options);
    CHECK(values(info) == Numbers{0});
    CHECK(values(x) == Numbers{0x1p-5, 1});
    rigel::cholesky_factor(exec, a, l, info, options);
    CHECK(values(l) == Numbers{0x1p-515, 0, 0, 0x1p-537});
  }
}
