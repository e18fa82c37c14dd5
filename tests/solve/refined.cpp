// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Refined solutions of ill-conditioned systems of float, in all forms of a call.
#include <tests/solve/systems.hpp>
#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

using rigel::Factorisation;
using rigel::Triangle;
using solve::Numbers;
using support::batch;
using support::caught;
using support::matrix;
using support::values;

namespace {

constexpr double u = 0x1p-24;

/// A⁻¹·B by elimination with partial pivoting in long double.
Numbers solution(const Numbers& a, const Numbers& b, int n, int m) {
  std::vector<long double> f(a.begin(), a.end()), x(b.begin(), b.end());
  for (int k = 0; k < n; ++k) {
    int pivot = k;
    for (int i = k + 1; i < n; ++i)
      if (std::fabs(f[i * n + k]) > std::fabs(f[pivot * n + k])) pivot = i;
    for (int j = 0; j < n; ++j) std::swap(f[k * n + j], f[pivot * n + j]);
    for (int j = 0; j < m; ++j) std::swap(x[k * m + j], x[pivot * m + j]);
    for (int i = 0; i < n; ++i) {
      if (i == k) continue;
      const long double factor = f[i * n + k] / f[k * n + k];
      for (int j = k; j < n; ++j) f[i * n + j] -= factor * f[k * n + j];
      for (int j = 0; j < m; ++j) x[i * m + j] -= factor * x[k * m + j];
    }
  }
  Numbers result;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j) result.push_back(static_cast<double>(x[i * m + j] / f[i * n + i]));
  return result;
}

/// ‖ |A⁻¹|·bound ‖ in the norm of row sums.
double growth(const Numbers& inverse, const Numbers& bound, int n) {
  double most = 0;
  for (int i = 0; i < n; ++i) {
    double row = 0;
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) row += std::fabs(inverse[i * n + k]) * bound[k * n + j];
    most = std::max(most, row);
  }
  return most;
}

/// 1 / (i + j + 1), rounded to float: the condition number is 1.6e4 for an order of 4.
Numbers hilbert(int n) {
  Numbers a;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) a.push_back(1.f / static_cast<float>(i + j + 1));
  return a;
}

/// Q·D·Qᵀ, of a reflection Q and D from 1 to `least`: of the condition number 1/least.
Numbers reflected(support::Random& random, int n, double least) {
  const Numbers v = solve::random_numbers<double>(random, n);
  double square = 0;
  for (const double one : v) square += one * one;
  const auto q = [&](int i, int j) { return (i == j ? 1 : 0) - 2 * v[i] * v[j] / square; };
  Numbers a(static_cast<std::size_t>(n) * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j) {
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += q(i, k) * std::pow(least, k / (n - 1.)) * q(j, k);
      a[i * n + j] = a[j * n + i] = static_cast<float>(sum);
    }
  return a;
}

/// A matrix of which the other triangle is NaN.
Numbers triangle_of(Numbers a, int n, Triangle triangle) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < i; ++j) (triangle == Triangle::lower ? a[j * n + i] : a[i * n + j]) = std::nan("");
  return a;
}

Numbers joined(const std::vector<Numbers>& parts) {
  Numbers all;
  for (const Numbers& one : parts) all.insert(all.end(), one.begin(), one.end());
  return all;
}

/// How many numbers are off by more than a rounding to float and `rest` of the largest in their system.
int off(const Numbers& found, const Numbers& expected, double rest) {
  double largest = 0;
  int bad = 0;
  for (const double one : expected) largest = std::max(largest, std::fabs(one));
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(found[i] - expected[i]) <= u * std::fabs(expected[i]) + rest * largest)) ++bad;
  return bad;
}

// Each sweep multiplies the error by at most ρ = ‖|A⁻¹|·bound‖·γ, where bound·γ is that of a solution in float (Higham,
// theorems 9.4, 10.4 and 12.1), until that of double is left.
template <class Exec, class Layout>
void check_systems(Factorisation f, const std::vector<Numbers>& systems, int n, int m) {
  CAPTURE(n);
  const bool symmetric = f == Factorisation::cholesky;
  const int batches = static_cast<int>(systems.size());
  support::Random random(static_cast<std::uint64_t>(n));
  const Numbers sides = solve::random_numbers<float>(random, std::int64_t{batches} * n * m);
  Numbers identity(static_cast<std::size_t>(n) * n);
  for (int i = 0; i < n; ++i) identity[i * n + i] = 1;
  double rate = 0, of_double = 0;
  for (const Numbers& a : systems) {
    const Numbers bound = symmetric ? solve::factor_bound<float>(a, n) : solve::elimination_bound(a, n);
    const double sum = growth(solution(a, identity, n, n), bound, n);
    rate = std::max(rate, sum * solve::gamma<float>(3 * n + 4));
    of_double = std::max(of_double, 4 * sum * solve::gamma<double>(3 * n + 4));
  }
  REQUIRE(rate < 1. / 3);
  const int sweeps = static_cast<int>(std::ceil(std::log(1e-10) / std::log(rate)));
  const auto a = solve::batch_of<float, Exec, Layout>(batches, n, n);
  const auto b = solve::batch_of<float, Exec, Layout>(batches, n, m),
             x = solve::batch_of<float, Exec, Layout>(batches, n, m);
  solve::put(b, sides);
  const Exec exec;
  const auto call = [&](const rigel::SolveOptions& options) {
    symmetric ? rigel::cholesky_solve(exec, a, b, x, options) : rigel::lu_solve(exec, a, b, x, options);
    int bad = 0;
    const Numbers found = solve::get(x);
    for (int l = 0; l < batches; ++l)
      bad += off(solve::part(found, l, n * m), solution(systems[l], solve::part(sides, l, n * m), n, m), 1e-10 + of_double);
    return bad;
  };
  for (const std::string& name : solve::kernels_of<float, Exec>(f))
    for (const Triangle triangle : {Triangle::lower, Triangle::upper}) {
      if (!symmetric && triangle == Triangle::upper) continue;
      CAPTURE(name);
      std::vector<Numbers> read;
      for (const Numbers& one : systems) read.push_back(symmetric ? triangle_of(one, n, triangle) : one);
      const Numbers given = joined(read);
      solve::put(a, given);
      const rigel::SolveOptions plain{.triangle = triangle, .kernel = name},
          refined{.triangle = triangle, .refine = sweeps, .kernel = name};
      if (!solve::covered(symmetric ? rigel::cholesky_solve_problem(exec, a, b, x, {}, plain)
                                    : rigel::lu_solve_problem(exec, a, b, x, {}, plain)))
        continue;
      CHECK(call(plain) > 0);
      CHECK(call(refined) == 0);
      const Numbers once = solve::get(x), kept = solve::get(a);
      for (std::size_t i = 0; i < given.size(); ++i) CHECK((kept[i] == given[i] || std::isnan(given[i])));
      CHECK(solve::get(b) == sides);
      call(refined);
      CHECK(solve::get(x) == once);
    }
}

template <class Exec>
using Infos = Kokkos::View<std::int32_t*, typename Exec::memory_space>;

}  // namespace

TEST_CASE_TEMPLATE("solve: refined solutions of ill-conditioned systems", Exec, RIGEL_TEST_SPACES) {
  support::Random random(5);
  for (const Factorisation f : {Factorisation::cholesky, Factorisation::lu}) {
    check_systems<Exec, Kokkos::LayoutRight>(f, {hilbert(4)}, 4, 7);
    check_systems<Exec, Kokkos::LayoutLeft>(f, {reflected(random, 3, 1e-5), reflected(random, 3, 1e-5)}, 3, 7);
    check_systems<Exec, Kokkos::LayoutRight>(f, {reflected(random, 8, 1e-4), reflected(random, 8, 1e-4)}, 8, 3);
    check_systems<Exec, Kokkos::LayoutStride>(f, {reflected(random, 33, 1e-3), reflected(random, 33, 1e-3)}, 33, 5);
    check_systems<Exec, Kokkos::LayoutLeft>(f, {reflected(random, 140, 1e-2)}, 140, 1);
  }
}

// Of a matrix that float cannot solve: corrections that do not halve are left out, so that all of them are less than the
// solution.
TEST_CASE_TEMPLATE("solve: refinement that does not converge stops", Exec, RIGEL_TEST_SPACES) {
  constexpr int n = 12, m = 4;
  support::Random random(6);
  const Numbers system = hilbert(n);
  const auto a = matrix<float, Exec>(n, n, system),
             b = matrix<float, Exec>(n, m, solve::random_numbers<float>(random, n * m)), x = matrix<float, Exec>(n, m);
  for (const std::string& name : solve::kernels_of<float, Exec>(Factorisation::lu)) {
    CAPTURE(name);
    if (!solve::covered(rigel::lu_solve_problem(Exec(), a, b, x, {}, {.kernel = name}))) continue;
    rigel::lu_solve(Exec(), a, b, x, {.kernel = name});
    const Numbers plain = values(x);
    rigel::lu_solve(Exec(), a, b, x, {.refine = 20, .kernel = name});
    const Numbers refined = values(x);
    for (int j = 0; j < m; ++j) {
      double change = 0, size = 0;
      for (int i = 0; i < n; ++i) {
        change += std::fabs(refined[i * m + j] - plain[i * m + j]);
        size += std::fabs(plain[i * m + j]);
      }
      CHECK(change <= (1 + 2 * u) * size);
    }
  }
}

TEST_CASE_TEMPLATE("solve: refinement leaves NaN and infos of a batch that fails", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto run = [&](Factorisation f, const Numbers& systems, int info_of_second) {
    for (const std::string& name : solve::kernels_of<float, Exec>(f)) {
      CAPTURE(name);
      const auto a = batch<float, Exec>(3, 2, 2, systems, "a"), b = batch<float, Exec>(3, 2, 1, {8, 22, 1, 1, 3, 8});
      const Infos<Exec> info("info", 3);
      Kokkos::deep_copy(info, -1);
      // In place: B is read until the end.
      const rigel::SolveOptions options{.overwrite_a = true, .overwrite_b = true, .refine = 3, .kernel = name};
      const bool symmetric = f == Factorisation::cholesky;
      if (!solve::covered(symmetric ? rigel::cholesky_solve_problem(exec, a, b, b, info, options)
                                    : rigel::lu_solve_problem(exec, a, b, b, info, options)))
        continue;
      symmetric ? rigel::cholesky_solve(exec, a, b, b, info, options) : rigel::lu_solve(exec, a, b, b, info, options);
      const Numbers x = values(b);
      CHECK(solve::part(x, 0, 2) == Numbers{1, 2});
      CHECK(std::isnan(x[2]));
      CHECK(std::isnan(x[3]));
      CHECK(solve::part(x, 2, 2) == Numbers{3, 2});
      CHECK(values(info) == Numbers{0, static_cast<double>(info_of_second), 0});
    }
  };
  run(Factorisation::cholesky, {4, 2, 2, 10, 1, 0, 0, -1, 1, 0, 0, 4}, 2);
  run(Factorisation::lu, {4, 2, 2, 10, 0, 1, 0, 2, 1, 0, 0, 4}, 1);
  const auto a = batch<float, Exec>(2, 2, 2, {1, 0, 0, 1, 1, 0, 0, -1}, "kernel"),
             b = batch<float, Exec>(2, 2, 1, {1, 1, 1, 1}), x = batch<float, Exec>(2, 2, 1);
  CHECK(caught([&] {
          rigel::cholesky_solve(exec, a, b, x, {.check = true, .refine = 1});
        }).lacks({"cholesky_solve", "A 'kernel' 2x2x2", "matrix 1", "not positive definite"}) == "");
}

TEST_CASE_TEMPLATE("solve: refinement in the caller's workspace, and of nothing", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto a = matrix<float, Exec>(2, 2, {4, 2, 2, 10}), b = matrix<float, Exec>(2, 1, {8, 22}),
             x = matrix<float, Exec>(2, 1, {5, 5});
  const auto check = [&](const auto& problem_of, const auto& call) {
    rigel::SolveOptions options{.refine = 2};
    const rigel::WorkspaceSize size = rigel::workspace_size(problem_of(options));
    const Kokkos::View<std::byte*, typename Exec::memory_space> memory("memory", size.bytes + 256);
    const Kokkos::View<std::byte*, Kokkos::HostSpace> host("host", size.host_bytes + 64);
    const auto aligned = [](void* data, std::uintptr_t to) {
      return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(data) + to - 1) / to * to);
    };
    options.workspace = {aligned(memory.data(), 256), size.bytes - 1, aligned(host.data(), 64), size.host_bytes};
    support::fill(x, {5, 5});
    CHECK(caught([&] { call(options); }).lacks({"the workspace has", "expected"}) == "");
    CHECK(values(x) == Numbers{5, 5});
    options.workspace.bytes = size.bytes;
    Kokkos::deep_copy(memory, std::byte{0x5a});
    call(options);
    const auto after = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), memory);
    const auto* const base = static_cast<const std::byte*>(options.workspace.data);
    for (std::size_t i = 0; i < memory.size(); ++i)  // nothing before or after it is written
      if (memory.data() + i < base || memory.data() + i >= base + size.bytes) CHECK(after(i) == std::byte{0x5a});
    CHECK(values(x) == Numbers{1, 2});
  };
  check([&](const auto& options) { return rigel::cholesky_solve_problem(exec, a, b, x, {}, options); },
        [&](const auto& options) { rigel::cholesky_solve(exec, a, b, x, options); });
  check([&](const auto& options) { return rigel::lu_solve_problem(exec, a, b, x, {}, options); },
        [&](const auto& options) { rigel::lu_solve(exec, a, b, x, options); });
  // Infos are set without right sides, too.
  const Infos<Exec> info("info", 1);
  Kokkos::deep_copy(info, -1);
  rigel::cholesky_solve(exec, matrix<float, Exec>(1, 1, {-1}), matrix<float, Exec>(1, 0), matrix<float, Exec>(1, 0), info,
                        {.refine = 1});
  CHECK(values(info) == Numbers{1});
  rigel::lu_solve(exec, matrix<float, Exec>(0, 0), matrix<float, Exec>(0, 3), matrix<float, Exec>(0, 3), info,
                  {.refine = 1});
  CHECK(values(info) == Numbers{0});
}

TEST_CASE("solve: refinement that does not apply is refused") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const auto refused = [&](const auto& call, std::initializer_list<const char*> texts) {
    const auto e = caught(call);
    CHECK(e.code == rigel::Code::invalid_argument);
    CHECK(e.lacks(texts) == "");
  };
  const auto a = matrix<float, Exec>(1, 1, {4}), b = matrix<float, Exec>(1, 1, {8}), x = matrix<float, Exec>(1, 1);
  const auto wide = matrix<double, Exec>(1, 1, {4}), out = matrix<double, Exec>(1, 1);
  refused([&] { rigel::cholesky_solve(exec, a, b, x, {.refine = -1}); },
          {"cholesky_solve: options.refine is -1, expected 0 or more"});
  refused([&] { rigel::lu_solve(exec, wide, wide, out, {.refine = 1}); },
          {"lu_solve: options.refine is 1, expected 0", "solutions of float"});
  refused([&] { rigel::cholesky_factor(exec, a, x, {.refine = 1}); }, {"cholesky_factor: options.refine is 1, expected 0"});
  refused([&] { rigel::cholesky_solve_factored(exec, a, b, x, {.refine = 1}); }, {"options.refine is 1, expected 0"});
  refused([&] { rigel::eigh(exec, a, Kokkos::View<float*, Exec>("w", 1), x, {.refine = 1}); },
          {"eigh: options.refine is 1, expected 0"});
}
