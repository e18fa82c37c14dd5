// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Systems that are solved by hand, on every execution space.
#include <rigel/linalg.hpp>

#include <tests/solve/systems.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

using support::matrix;
using support::values;
using Values = std::vector<double>;

namespace {

template <class Exec>
using Infos = Kokkos::View<std::int32_t*, typename Exec::memory_space>;

// Kernels may multiply by the reciprocal of a pivot, which is rounded, so a solution is off by at most 3·n·u·κ(A) of its largest entry
// (Higham, Accuracy and Stability of Numerical Algorithms, section 10.1). Here n ≤ 3, and the condition numbers κ are below 100.
template <class T, class View>
void check_solution(const View& x, const Values& expected) {
  const double u = std::numeric_limits<T>::epsilon() / 2;
  const Values actual = values(x);
  REQUIRE(actual.size() == expected.size());
  double largest = 0;
  for (const double e : expected) largest = std::max(largest, std::fabs(e));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(actual[i] - expected[i]) <= 900 * u * largest);
  }
}

// All numbers are small integers, so nothing rounds but roots and quotients that are exact here.
template <class T, class Exec>
void check_by_hand() {
  const Exec exec;
  SUBCASE("cholesky_solve") {
    // A = L·Lᵀ with L = (2 0; 1 3), X = (1 −2; 2 1).
    const auto a = matrix<T, Exec>(2, 2, {4, -99, 2, 10}), b = matrix<T, Exec>(2, 2, {8, -6, 22, 6}),
               x = matrix<T, Exec>(2, 2);
    const Infos<Exec> info("info", 1);
    Kokkos::deep_copy(info, -1);
    rigel::cholesky_solve(exec, a, b, x, info);
    check_solution<T>(x, {1, -2, 2, 1});
    CHECK(values(info) == Values{0});
    CHECK(values(a) == Values{4, -99, 2, 10});
    CHECK(values(b) == Values{8, -6, 22, 6});
  }
  SUBCASE("the upper triangle") {
    const auto a = matrix<T, Exec>(2, 2, {4, 2, -99, 10}), b = matrix<T, Exec>(2, 1, {8, 22}), x = matrix<T, Exec>(2, 1);
    rigel::cholesky_solve(exec, a, b, x, {.triangle = rigel::Triangle::upper});
    check_solution<T>(x, {1, 2});
    const auto u = matrix<T, Exec>(2, 2);
    rigel::cholesky_factor(exec, a, u, {.triangle = rigel::Triangle::upper});
    CHECK(values(u) == Values{2, 1, 0, 3});
    rigel::cholesky_solve_factored(exec, u, b, x, {.triangle = rigel::Triangle::upper});
    check_solution<T>(x, {1, 2});
  }
  SUBCASE("cholesky_factor and what it serves") {
    // L = (2 0 0; 1 1 0; −1 3 4).
    const auto a = matrix<T, Exec>(3, 3, {4, 9, 9, 2, 2, 9, -2, 2, 26}), l = matrix<T, Exec>(3, 3);
    rigel::cholesky_factor(exec, a, l);
    CHECK(values(l) == Values{2, 0, 0, 1, 1, 0, -1, 3, 4});
    const auto b = matrix<T, Exec>(3, 1, {4, 6, 26}), x = matrix<T, Exec>(3, 1);  // A·(1 1 1)ᵀ
    rigel::cholesky_solve_factored(exec, l, b, x);
    check_solution<T>(x, {1, 1, 1});
    const Kokkos::View<T, typename Exec::memory_space> d("d");
    rigel::log_determinant(exec, l, d);
    CHECK(values(d)[0] == static_cast<double>(static_cast<T>(2 * std::log(8.))));
    rigel::cholesky_factor(exec, a, a, {.overwrite_a = true});
    CHECK(values(a) == Values{2, 0, 0, 1, 1, 0, -1, 3, 4});
  }
  SUBCASE("lu_solve exchanges rows") {
    // Without an exchange the first pivot is 0.
    const auto a = matrix<T, Exec>(3, 3, {0, 2, 1, 2, 0, 0, 1, 1, 4}), b = matrix<T, Exec>(3, 1, {7, 2, 15}),
               x = matrix<T, Exec>(3, 1);
    const Infos<Exec> info("info", 1);
    rigel::lu_solve(exec, a, b, x, info);
    check_solution<T>(x, {1, 2, 3});
    CHECK(values(info) == Values{0});
    CHECK(values(a) == Values{0, 2, 1, 2, 0, 0, 1, 1, 4});
  }
  SUBCASE("eigh") {
    // (2 1; 1 2) has 1 with (1, −1)/√2 and 3 with (1, 1)/√2.
    const auto a = matrix<T, Exec>(2, 2, {2, -99, 1, 2}), v = matrix<T, Exec>(2, 2);
    const Kokkos::View<T*, typename Exec::memory_space> w("w", 2);
    rigel::eigh(exec, a, w, v);
    const double u = std::numeric_limits<T>::epsilon();
    const Values found = values(w), vectors = values(v);
    CHECK(std::abs(found[0] - 1) <= 8 * u);
    CHECK(std::abs(found[1] - 3) <= 8 * u);
    for (int k = 0; k < 2; ++k) {
      CHECK(std::abs(std::abs(vectors[k]) - std::sqrt(0.5)) <= 8 * u);
      CHECK(std::abs(vectors[2 + k] - (k == 0 ? -1 : 1) * vectors[k]) <= 8 * u);
    }
  }
  SUBCASE("eigh of a diagonal matrix orders it") {
    const auto a = matrix<T, Exec>(3, 3, {3, 0, 0, 0, -1, 0, 0, 0, 2}), v = matrix<T, Exec>(3, 3);
    const Kokkos::View<T*, typename Exec::memory_space> w("w", 3);
    rigel::eigh(exec, a, w, v);
    CHECK(values(w) == Values{-1, 2, 3});
    Values magnitudes;
    for (const double value : values(v)) magnitudes.push_back(std::abs(value));
    CHECK(magnitudes == Values{0, 0, 1, 1, 0, 0, 0, 1, 0});
  }
  SUBCASE("one equation, and none") {
    const auto a = matrix<T, Exec>(1, 1, {4}), b = matrix<T, Exec>(1, 3, {4, 8, -4}), x = matrix<T, Exec>(1, 3);
    rigel::cholesky_solve(exec, a, b, x);
    check_solution<T>(x, {1, 2, -1});
    rigel::lu_solve(exec, a, b, x);
    check_solution<T>(x, {1, 2, -1});
    const Infos<Exec> info("info", 1);
    Kokkos::deep_copy(info, -1);
    const auto none = matrix<T, Exec>(0, 0), sides = matrix<T, Exec>(0, 3);
    rigel::cholesky_solve(exec, none, sides, matrix<T, Exec>(0, 3), info);
    CHECK(values(info) == Values{0});
    Kokkos::deep_copy(info, -1);
    rigel::eigh(exec, none, Kokkos::View<T*, typename Exec::memory_space>("w", 0), matrix<T, Exec>(0, 0), info);
    CHECK(values(info) == Values{0});
    const Kokkos::View<T, typename Exec::memory_space> d("d");
    Kokkos::deep_copy(d, T(5));
    rigel::log_determinant(exec, none, d);
    CHECK(values(d) == Values{0});
  }
  SUBCASE("no right side still factorises") {
    const auto b = matrix<T, Exec>(2, 0), x = matrix<T, Exec>(2, 0);
    const Infos<Exec> info("info", 1);
    rigel::cholesky_solve(exec, matrix<T, Exec>(2, 2, {1, 0, 0, -1}), b, x, info);
    CHECK(values(info) == Values{2});
    rigel::lu_solve(exec, matrix<T, Exec>(2, 2, {1, 1, 1, 1}), b, x, info);
    CHECK(values(info) == Values{2});
  }
}

}  // namespace

TEST_CASE_TEMPLATE("solve: by hand, in float", Exec, RIGEL_TEST_SPACES) { check_by_hand<float, Exec>(); }
TEST_CASE_TEMPLATE("solve: by hand, in double", Exec, RIGEL_TEST_SPACES) { check_by_hand<double, Exec>(); }

namespace {

// A = s·(3 1; 1 −3) has the eigenvalues ±√10·s. With s = the largest number / 4 nothing but an intermediate result can overflow, and
// with s = the smallest normal number · 4 every square underflows. Weyl: they are as close as the residual that eigh() may leave.
template <class T, class Exec>
void check_range(const std::string& kernel) {
  const Exec exec;
  for (const double s : {std::numeric_limits<T>::max() / 4., std::numeric_limits<T>::min() * 4.}) {
    CAPTURE(s);
    const auto a = matrix<T, Exec>(2, 2, {3 * s, 1 * s, 1 * s, -3 * s}), v = matrix<T, Exec>(2, 2);
    const Kokkos::View<T*, typename Exec::memory_space> w("w", 2);
    const Infos<Exec> info("info", 1);
    Kokkos::deep_copy(info, -1);
    const rigel::SolveOptions options{.kernel = kernel};
    if (!solve::covered(rigel::eigh_problem(exec, a, w, v, info, options))) continue;
    rigel::eigh(exec, a, w, v, info, options);
    CHECK(values(info) == Values{0});
    const double bound = 50 * 2 * std::numeric_limits<T>::epsilon();
    const Values of = values(w), vectors = values(v);
    CHECK(std::abs(of[0] / s + std::sqrt(10.)) <= bound * std::sqrt(20.));
    CHECK(std::abs(of[1] / s - std::sqrt(10.)) <= bound * std::sqrt(20.));
    // The eigenvector of √10 is along (3 + √10, 1).
    CHECK(std::abs(vectors[1] / vectors[3] / (3 + std::sqrt(10.)) - 1) <= 8 * bound);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("solve: eigenvectors of matrices near the largest and the smallest numbers", Exec, RIGEL_TEST_SPACES) {
  for (const std::string& name : solve::kernels_of<float, Exec>(rigel::Factorisation::eigen)) check_range<float, Exec>(name);
  for (const std::string& name : solve::kernels_of<double, Exec>(rigel::Factorisation::eigen))
    check_range<double, Exec>(name);
}
