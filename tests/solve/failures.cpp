// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices that have no factorisation, calls that overwrite, options.check, and calls that are refused.
#include <tests/solve/systems.hpp>
#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>

using rigel::Code;
using rigel::Factorisation;
using solve::Numbers;
using support::batch;
using support::caught;
using support::matrix;
using support::values;

namespace {

template <class Exec>
using Infos = Kokkos::View<std::int32_t*, typename Exec::memory_space>;

bool all_nan(const Numbers& values) {
  for (const double value : values)
    if (!std::isnan(value)) return false;
  return true;
}

void* aligned(void* data, std::uintptr_t to) {
  return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(data) + to - 1) / to * to);
}

// Three systems of order n; the second one fails.
template <class T, class Exec>
void check_failures(int n) {
  constexpr int m = 3;
  CAPTURE(n);
  support::Random random(static_cast<std::uint64_t>(n));
  Numbers definite, general;
  for (int l = 0; l < 3; ++l) {
    const Numbers one = solve::random_definite<T>(random, n), other = solve::random_numbers<T>(random, std::int64_t{n} * n);
    definite.insert(definite.end(), one.begin(), one.end());
    general.insert(general.end(), other.begin(), other.end());
  }
  const int bad = n / 2, size = n * n;
  definite[size + bad * n + bad] = -1;                          // the leading minor of order bad + 1 is not positive
  for (int i = 0; i < n; ++i) general[size + i * n + bad] = 0;  // the pivot bad + 1 is exactly 0
  const Numbers sides = solve::random_numbers<T>(random, 3 * n * m);
  const auto a = batch<T, Exec>(3, n, n), b = batch<T, Exec>(3, n, m, sides), x = batch<T, Exec>(3, n, m),
             v = batch<T, Exec>(3, n, n);
  const Infos<Exec> info("info", 3);
  const Exec exec;
  const auto solved = [&](const Numbers& of, const Numbers& found, int l, const auto& bound) {
    const Numbers one = solve::part(of, l, size);
    return solve::residual(one, solve::part(found, l, n * m), solve::part(sides, l, n * m), n, m, bound(one, n),
                           solve::gamma<T>(3 * n + 4)) <= 1;
  };
  for (const std::string& name : solve::kernels_of<T, Exec>(Factorisation::cholesky)) {
    CAPTURE(name);
    support::fill(a, definite);
    Kokkos::deep_copy(info, -1);
    const rigel::SolveOptions options{.kernel = name};
    if (!solve::covered(rigel::cholesky_solve_problem(exec, a, b, x, info, options))) continue;
    rigel::cholesky_solve(exec, a, b, x, info, options);
    CHECK(values(info) == Numbers{0, bad + 1., 0});
    const Numbers found = values(x);
    CHECK(all_nan(solve::part(found, 1, n * m)));
    CHECK(solved(definite, found, 0, solve::factor_bound<T>));
    CHECK(solved(definite, found, 2, solve::factor_bound<T>));
    if (!solve::covered(rigel::cholesky_factor_problem(exec, a, v, info, options))) continue;
    rigel::cholesky_factor(exec, a, v, info, options);
    CHECK(values(info) == Numbers{0, bad + 1., 0});
    CHECK(all_nan(solve::part(values(v), 1, size)));
    CHECK_FALSE(all_nan(solve::part(values(v), 0, size)));
    // A factor that is NaN is flagged, too.
    rigel::cholesky_solve_factored(exec, v, b, x, info, options);
    CHECK(values(info) == Numbers{0, 1, 0});
    CHECK(all_nan(solve::part(values(x), 1, n * m)));
    CHECK(solved(definite, values(x), 2, solve::factor_bound<T>));
    // So is NaN in A.
    Numbers with_nan = definite;
    with_nan[size + bad * n + bad] = std::nan("");
    support::fill(a, with_nan);
    rigel::cholesky_solve(exec, a, b, x, info, options);
    CHECK(values(info) == Numbers{0, bad + 1., 0});
    CHECK(all_nan(solve::part(values(x), 1, n * m)));
  }
  for (const std::string& name : solve::kernels_of<T, Exec>(Factorisation::lu)) {
    CAPTURE(name);
    support::fill(a, general);
    Kokkos::deep_copy(info, -1);
    const rigel::SolveOptions options{.kernel = name};
    if (!solve::covered(rigel::lu_solve_problem(exec, a, b, x, info, options))) continue;
    rigel::lu_solve(exec, a, b, x, info, options);
    CHECK(values(info) == Numbers{0, bad + 1., 0});
    const Numbers found = values(x);
    CHECK(all_nan(solve::part(found, 1, n * m)));
    CHECK(solved(general, found, 0, solve::elimination_bound));
    CHECK(solved(general, found, 2, solve::elimination_bound));
  }
  const Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space> w("w", 3, n);
  Numbers symmetric = definite;
  symmetric[size + bad * n + bad] = std::nan("");
  if (n > 140) return;  // for the blocked kernels of systems
  for (const std::string& name : solve::kernels_of<T, Exec>(Factorisation::eigen)) {
    CAPTURE(name);
    support::fill(a, symmetric);
    Kokkos::deep_copy(info, -1);
    const rigel::SolveOptions options{.kernel = name};
    if (!solve::covered(rigel::eigh_problem(exec, a, w, v, info, options))) continue;
    rigel::eigh(exec, a, w, v, info, options);
    const Numbers infos = values(info), of = values(w), vectors = values(v);
    CHECK(infos[0] == 0);
    CHECK(infos[1] != 0);
    CHECK(infos[2] == 0);
    CHECK(all_nan(solve::part(of, 1, n)));
    CHECK(all_nan(solve::part(vectors, 1, size)));
    CHECK(solve::eigen_error<T>(solve::part(symmetric, 2, size), solve::part(of, 2, n), solve::part(vectors, 2, size), n) <=
          solve::eigen_threshold);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("solve: a batch that fails leaves the others right", Exec, RIGEL_TEST_SPACES) {
  for (const int n : {1, 7, 16, 30, 64, 100, 140, 300}) {
    check_failures<float, Exec>(n);
    check_failures<double, Exec>(n);
  }
}

TEST_CASE_TEMPLATE("solve: in place", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  for (const std::string& name : solve::kernels_of<double, Exec>(Factorisation::cholesky)) {
    CAPTURE(name);
    const auto a = batch<double, Exec>(2, 2, 2, {4, 2, 2, 10, 1, 0, 0, 4}), b = batch<double, Exec>(2, 2, 1, {8, 22, 3, 8});
    const rigel::SolveOptions options{.overwrite_a = true, .overwrite_b = true, .kernel = name};
    if (!solve::covered(rigel::cholesky_solve_problem(exec, a, b, b, {}, options))) continue;
    rigel::cholesky_solve(exec, a, b, b, options);
    CHECK(values(b) == Numbers{1, 2, 3, 2});
  }
  for (const std::string& name : solve::kernels_of<double, Exec>(Factorisation::lu)) {
    CAPTURE(name);
    const auto a = matrix<double, Exec>(2, 2, {0, 2, 4, 0}), b = matrix<double, Exec>(2, 1, {2, 8});
    const rigel::SolveOptions options{.overwrite_a = true, .overwrite_b = true, .kernel = name};
    if (!solve::covered(rigel::lu_solve_problem(exec, a, b, b, {}, options))) continue;
    rigel::lu_solve(exec, a, b, b, options);
    CHECK(values(b) == Numbers{2, 1});
  }
  for (const std::string& name : solve::kernels_of<double, Exec>(Factorisation::eigen)) {
    CAPTURE(name);
    const auto a = matrix<double, Exec>(2, 2, {3, 0, 0, -1});
    const Kokkos::View<double*, typename Exec::memory_space> w("w", 2);
    const rigel::SolveOptions options{.overwrite_a = true, .kernel = name};
    if (!solve::covered(rigel::eigh_problem(exec, a, w, a, {}, options))) continue;
    rigel::eigh(exec, a, w, a, options);
    CHECK(values(w) == Numbers{-1, 3});
    const Numbers v = values(a);
    CHECK(std::abs(v[1]) == 1);
    CHECK(std::abs(v[2]) == 1);
    CHECK(v[0] == 0);
    CHECK(v[3] == 0);
  }
}

TEST_CASE_TEMPLATE("solve: larger systems in place, in a workspace of the size that is needed", Exec, RIGEL_TEST_SPACES) {
  constexpr int n = 300, m = 2;
  const Exec exec;
  support::Random random(11);
  const Numbers definite = solve::random_definite<float>(random, n), sides = solve::random_numbers<float>(random, n * m);
  for (const Factorisation f : {Factorisation::cholesky, Factorisation::lu})
    for (const std::string& name : solve::kernels_of<float, Exec>(f)) {
      CAPTURE(name);
      const auto a = matrix<float, Exec>(n, n, definite), b = matrix<float, Exec>(n, m, sides);
      rigel::SolveOptions options{.overwrite_a = true, .overwrite_b = true, .kernel = name};
      const auto problem = [&] {
        return f == Factorisation::lu ? rigel::lu_solve_problem(exec, a, b, b, {}, options)
                                      : rigel::cholesky_solve_problem(exec, a, b, b, {}, options);
      };
      if (!solve::covered(problem())) continue;
      const rigel::WorkspaceSize size = rigel::workspace_size(problem());
      const Kokkos::View<std::byte*, typename Exec::memory_space> memory("memory", size.bytes + 256);
      const Kokkos::View<std::byte*, Kokkos::HostSpace> host("host", size.host_bytes + 64);
      options.workspace = {aligned(memory.data(), 256), size.bytes, aligned(host.data(), 64), size.host_bytes};
      rigel::run(problem());
      const auto bound =
          f == Factorisation::lu ? solve::elimination_bound(definite, n) : solve::factor_bound<float>(definite, n);
      CHECK(solve::residual(definite, values(b), sides, n, m, bound, solve::gamma<float>(3 * n + 4)) <= 1);
    }
}

TEST_CASE_TEMPLATE("solve: options.check names the matrix that fails", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto a = batch<float, Exec>(2, 2, 2, {1, 0, 0, 1, 1, 0, 0, -1}, "kernel"),
             b = batch<float, Exec>(2, 2, 1, {1, 1, 1, 1}), x = batch<float, Exec>(2, 2, 1);
  const auto indefinite = caught([&] { rigel::cholesky_solve(exec, a, b, x, {.check = true}); });
  CHECK(indefinite.code == Code::invalid_argument);
  CHECK(indefinite.lacks({"cholesky_solve", "A 'kernel' 2x2x2", "matrix 1", "not positive definite", "minor of order 2"}) ==
        "");
  CHECK(values(x)[0] == 1);  // the other one is solved
  const Infos<Exec> info("info", 2);
  const auto singular = caught([&] {
    rigel::lu_solve(exec, batch<float, Exec>(2, 1, 1, {2, 0}), batch<float, Exec>(2, 1, 1, {2, 2}),
                    batch<float, Exec>(2, 1, 1), info, {.check = true});
  });
  CHECK(singular.code == Code::invalid_argument);
  CHECK(singular.lacks({"lu_solve", "matrix 1", "singular", "pivot 1"}) == "");
  CHECK(values(info) == Numbers{0, 1});
  CHECK(caught([&] {
          rigel::cholesky_solve(exec, matrix<float, Exec>(1, 1, {4}), matrix<float, Exec>(1, 1, {8}),
                                matrix<float, Exec>(1, 1), {.check = true});
        }).code == Code::ok);
}

TEST_CASE("solve: what does not fit is refused, and nothing is written") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const auto a = matrix<double, Exec>(2, 2, {4, 2, 2, 10}, "a"), b = matrix<double, Exec>(2, 1, {8, 22}, "b"),
             x = matrix<double, Exec>(2, 1, {5, 5}, "x");
  const auto refused = [&](const auto& call, std::initializer_list<const char*> texts) {
    const auto e = caught(call);
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks(texts) == "");
    CHECK(values(x) == Numbers{5, 5});
  };
  refused([&] { rigel::cholesky_solve(exec, matrix<double, Exec>(2, 3, {}, "wide"), b, x); },
          {"cholesky_solve", "A 'wide' is 2x3", "square"});
  refused([&] { rigel::lu_solve(exec, a, matrix<double, Exec>(3, 1, {}, "long"), x); },
          {"lu_solve", "B 'long' is 3x1", "expected 2x1"});
  refused([&] { rigel::lu_solve(exec, batch<double, Exec>(2, 2, 2, {}, "two"), b, x); },
          {"A 'two' is 2x2x2", "expected 2x2"});
  refused([&] { rigel::cholesky_solve(exec, a, x, x); }, {"X 'x' 2x1 overlaps B 'x' 2x1", "overwrite_b"});
  refused([&] { rigel::cholesky_solve(exec, a, b, Kokkos::subview(a, Kokkos::ALL, Kokkos::pair<int, int>(0, 1))); },
          {"overlaps A 'a'"});
  refused([&] { rigel::cholesky_factor(exec, a, a); }, {"cholesky_factor", "L 'a' 2x2 overlaps A 'a' 2x2", "overwrite_a"});
  refused([&] { rigel::cholesky_factor(exec, a, x); }, {"L 'x' is 2x1, expected 2x2"});
  refused([&] { rigel::cholesky_solve(exec, a, b, x, Infos<Exec>("few", 0)); }, {"info 'few'", "expected 1x1"});
  refused([&] { rigel::eigh(exec, a, Kokkos::View<double*, Exec>("w", 3), matrix<double, Exec>(2, 2)); },
          {"eigh", "w 'w' is 3x1, expected 2x1"});
  refused([&] { rigel::cholesky_solve(exec, a, b, x, {.kernel = "reference", .workspace = {x.data(), 8}}); }, {"workspace"});
  refused([&] { rigel::log_determinant(exec, matrix<double, Exec>(2, 3, {}, "wide"), Kokkos::View<double, Exec>("d")); },
          {"log_determinant", "L 'wide' is 2x3"});
  const Kokkos::View<double*, Exec> determinants("d", 2);
  const auto two = batch<double, Exec>(2, 2, 2, {1, 0, 0, 1, 1, 0, 0, 1}, "two");
  using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  refused([&] { rigel::log_determinant(exec, two, Kokkos::View<double, Exec>("one")); },
          {"d 'one' has 1 numbers, expected 2"});
  refused([&] { rigel::log_determinant(exec, two, Kokkos::View<double*, Exec, Unmanaged>(nullptr, 2)); },
          {"log_determinant", "d 2x1x1 has no data"});
  refused([&] { rigel::log_determinant(exec, Kokkos::View<double***, Exec, Unmanaged>(nullptr, 2, 2, 2), determinants); },
          {"log_determinant", "L 2x2x2 has no data"});
  refused([&] { rigel::log_determinant(exec, two, Kokkos::View<double*, Exec>(two.data() + 3, 2)); },
          {"log_determinant", "overlaps L 'two' 2x2x2"});
  refused(
      [&] {
        const Kokkos::LayoutStride same(2, 0);
        rigel::log_determinant(exec, two, Kokkos::View<double*, Kokkos::LayoutStride, Exec>(determinants.data(), same));
      },
      {"log_determinant", "d 2x1x1 overlaps itself"});
  CHECK(values(determinants) == Numbers{0, 0});
  CHECK(values(two) == Numbers{1, 0, 0, 1, 1, 0, 0, 1});
  CHECK(caught([&] { rigel::lu_solve(exec, a, b, x, {.kernel = "nobody"}); }).code == Code::not_found);
  CHECK(values(a) == Numbers{4, 2, 2, 10});
}

TEST_CASE_TEMPLATE("solve: the caller's workspace", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  for (const std::string& name : solve::kernels_of<float, Exec>(Factorisation::cholesky)) {
    CAPTURE(name);
    const auto a = matrix<float, Exec>(2, 2, {4, 2, 2, 10}), b = matrix<float, Exec>(2, 1, {8, 22}),
               x = matrix<float, Exec>(2, 1);
    rigel::SolveOptions options{.kernel = name};
    const rigel::Solve problem = rigel::cholesky_solve_problem(exec, a, b, x, {}, options);
    if (!solve::covered(problem)) continue;
    const rigel::WorkspaceSize size = rigel::workspace_size(problem);
    const Kokkos::View<std::byte*, typename Exec::memory_space> memory("memory", size.bytes + 256);
    const Kokkos::View<std::byte*, Kokkos::HostSpace> host("host", size.host_bytes + 64);
    options.workspace = {aligned(memory.data(), 256), size.bytes, aligned(host.data(), 64), size.host_bytes};
    rigel::cholesky_solve(exec, a, b, x, options);
    // Within 3·n·u·κ(A); see by_hand.cpp.
    const Numbers actual = values(x);
    REQUIRE(actual.size() == 2);
    for (int i = 0; i < 2; ++i) CHECK(std::fabs(actual[i] - (i + 1)) <= 0x1p-24 * 900 * 2);
  }
}

TEST_CASE("solve: verify() holds the kernels to their promises") {
  for (const rigel::KernelInfo& info : rigel::kernels({.operation = "solve"})) {
    CAPTURE(info.name);
    try {
      const rigel::Verification v = rigel::verify(info.name, 3);
      CHECK(v.report == "");
      CHECK(v.ok);
      CHECK(v.problems >= 10);
    } catch (const rigel::Error& e) {
      CHECK(e.code() == Code::unsupported);  // of a GPU's family that this one is not
    }
  }
}

TEST_CASE("solve: kernels that a user registers must name a factorisation") {
  rigel::Kernel<rigel::Solve> kernel;
  kernel.info =
      rigel::detail::solve_info("user", {}, Factorisation::lu, rigel::Scalar::f32, rigel::bit(rigel::Space::serial));
  kernel.info.semiring = "qr";
  kernel.run = [](const rigel::Kernel<rigel::Solve>&, const rigel::Solve&, const rigel::Plan&, const rigel::Workspace&) {};
  kernel.cost = [](const rigel::Kernel<rigel::Solve>&, const rigel::Solve&, rigel::Plan&) { return 1.; };
  CHECK(caught([&] { rigel::register_kernel(kernel); }).code == Code::invalid_argument);
}
