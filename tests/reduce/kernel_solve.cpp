// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kernel_solve() against cholesky_solve() of the matrix that kernel_matrix() stores.
#include <rigel/kernel_solve.hpp>

#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>

#include <algorithm>
#include <cmath>

namespace {

using namespace reduced;
namespace metric = rigel::metric;
namespace kernel = rigel::kernel;

Values numbers(int count, std::uint64_t seed) {
  support::Random random(seed);
  Values v(static_cast<std::size_t>(count));
  for (double& x : v) x = static_cast<float>(random.uniform(-1, 1));
  return v;
}

constexpr int dimensions = 2, columns = 3;

/// Solves both ways; ‖difference‖ of each right side is at most the residual allows: residual·‖y‖/λ, and that of Cholesky's.
template <class T, class Exec, class M, class K>
rigel::KernelSolveResult check(const Exec& exec, int m, const M& metric, const K& kernel, double lambda,
                               const rigel::KernelSolveOptions& options) {
  const Values points = numbers(m * dimensions, 1), right = numbers(m * columns, 2);
  const auto x = support::matrix<T, Exec>(m, dimensions, points);
  const auto y = support::matrix<T, Exec>(m, columns, right), alpha = support::matrix<T, Exec>(m, columns);
  const auto result = rigel::kernel_solve(exec, x, y, metric, kernel, lambda, alpha, options);
  const auto wide = support::matrix<double, Exec>(m, dimensions, points), k = support::matrix<double, Exec>(m, m),
             b = support::matrix<double, Exec>(m, columns, right), expected = support::matrix<double, Exec>(m, columns);
  rigel::kernel_matrix(exec, wide, k, metric, kernel, {.regularisation = lambda});
  rigel::cholesky_solve(exec, k, b, expected, {.check = true});
  exec.fence();
  const Values stored = support::values(k), a = support::values(alpha), e = support::values(expected);
  double of_k = 0;  // ‖K + λI‖ is at most its largest sum of a row
  for (int i = 0; i < m; ++i) {
    double sum = 0;
    for (int j = 0; j < m; ++j) sum += std::abs(stored[at(i, m, j)]);
    of_k = std::max(of_k, sum);
  }
  const double u = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;
  for (int c = 0; c < columns; ++c) {
    double difference = 0, length = 0, of_alpha = 0;
    for (int i = 0; i < m; ++i) {
      const auto place = at(i, columns, c);
      difference += (a[place] - e[place]) * (a[place] - e[place]);
      length += right[place] * right[place];
      of_alpha += a[place] * a[place];
    }
    // Kernels of T are within some 30·u, and the residual is computed from products of m numbers.
    CHECK(std::sqrt(difference) <=
          (result.residual * std::sqrt(length) + (m + 40) * (u + 0x1p-53 * 3 * m) * of_k * std::sqrt(of_alpha)) / lambda);
  }
  return result;
}

TEST_CASE_TEMPLATE("kernel_solve: agrees with cholesky_solve", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  for (const int rank : {0, 15}) {
    CAPTURE(rank);
    const rigel::KernelSolveOptions options{.tolerance = 1e-10, .rank = rank};
    for (const auto& result : {check<double>(exec, 200, metric::euclidean{}, kernel::gaussian{0.5}, 0.01, options),
                               check<double>(exec, 130, metric::manhattan{}, kernel::laplace{1.}, 0.1, options),
                               check<double>(exec, 100, metric::euclidean{}, kernel::matern52{0.8}, 0.1, options),
                               // Numbers on the diagonal that are not 1; K's rank is 6.
                               check<double>(exec, 100, metric::inner_product{}, kernel::polynomial{2}, 0.5, options)}) {
      CHECK(result.converged);
      CHECK(result.residual <= 1e-10);
      CHECK(result.rank <= rank);
    }
    const auto of_floats =
        check<float>(exec, 200, metric::euclidean{}, kernel::gaussian{0.5}, 1, {.tolerance = 1e-4, .rank = rank});
    CHECK(of_floats.converged);
  }
}

TEST_CASE_TEMPLATE("kernel_solve: the preconditioner saves steps, and finds K's rank", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto steps = [&](int rank) {
    return check<double>(exec, 250, metric::euclidean{}, kernel::gaussian{0.6}, 1e-4, {.tolerance = 1e-8, .rank = rank});
  };
  const auto none = steps(0), some = steps(30), most = steps(60);
  CHECK(none.converged);
  CHECK(some.converged);
  CHECK(most.converged);
  CHECK(some.iterations < none.iterations / 2);
  CHECK(most.iterations <= some.iterations);
  const auto exact =
      check<double>(exec, 60, metric::inner_product{}, kernel::polynomial{2}, 0.5, {.tolerance = 1e-8, .rank = 60});
  CHECK(exact.rank == 6);  // 1, x, y, x², xy, y²
  CHECK(exact.iterations <= 3);
}

TEST_CASE_TEMPLATE("kernel_solve: one right side, layouts, zeros, equal points", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  // K + λI = (2 ½; ½ 2) of points one length·log 2 apart.
  const auto x = support::matrix<double, Exec>(2, 1, {0, 1});
  const auto y = vector<double, Exec>(2), alpha = vector<double, Exec>(2);
  support::fill(y, {1, 2});
  const kernel::laplace<> half{1 / std::log(2.)};
  CHECK(rigel::kernel_solve(exec, x, y, metric::manhattan{}, half, 1, alpha, {.tolerance = 1e-14}).converged);
  const Values a = support::values(alpha);
  CHECK(std::abs(a[0] - 4. / 15) <= 1e-14);
  CHECK(std::abs(a[1] - 14. / 15) <= 1e-14);

  constexpr int m = 40;
  const auto points = support::matrix<float, Exec>(m, 2, numbers(m * 2, 3));
  const Kokkos::View<float**, Kokkos::LayoutLeft, typename Exec::memory_space> by_columns("points", m, 2);
  Kokkos::deep_copy(by_columns, points);
  Values right = numbers(m * 2, 4);
  for (int i = 0; i < m; ++i) right[at(i, 2, 1)] = 0;
  const auto two = support::matrix<double, Exec>(m, 2, right), of_two = support::matrix<double, Exec>(m, 2),
             again = support::matrix<double, Exec>(m, 2);
  const kernel::gaussian<> gaussian{0.5};
  const auto result =
      rigel::kernel_solve(exec, points, two, metric::euclidean{}, gaussian, 0.1, of_two, {.tolerance = 1e-9});
  CHECK(result.converged);  // kernels of floats, all else in double
  rigel::kernel_solve(exec, by_columns, two, metric::euclidean{}, gaussian, 0.1, again, {.tolerance = 1e-9});
  const Values v = support::values(of_two), w = support::values(again);
  for (int i = 0; i < m; ++i) {
    CHECK(v[at(i, 2, 1)] == 0);
    CHECK(std::abs(v[at(i, 2, 0)] - w[at(i, 2, 0)]) <= 1e-4);
  }

  // Equal points: K is of rank 1 with eigenvalue m. With y = 1 all α are 1 / (m + λ).
  const auto same = support::matrix<double, Exec>(m, 2, Values(m * 2, 0.5));
  const auto ones = vector<double, Exec>(m, 1), parts = vector<double, Exec>(m);
  const auto of_same =
      rigel::kernel_solve(exec, same, ones, metric::euclidean{}, gaussian, 0.5, parts, {.tolerance = 1e-12});
  CHECK(of_same.converged);
  CHECK(of_same.rank == 1);
  for (const double p : support::values(parts)) CHECK(std::abs(p - 1 / (m + 0.5)) <= 1e-12);

  // λ = 0, where K itself is well conditioned.
  const auto apart = support::matrix<double, Exec>(3, 1, {0, 50, 100});
  const auto values = vector<double, Exec>(3), solution = vector<double, Exec>(3);
  support::fill(values, {1, 2, 3});
  CHECK(
      rigel::kernel_solve(exec, apart, values, metric::euclidean{}, gaussian, 0, solution, {.tolerance = 1e-14}).converged);
  CHECK(support::values(solution) == Values{1, 2, 3});
}

TEST_CASE_TEMPLATE("kernel_solve: progress, and systems that are not definite", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int m = 60;
  const auto x = support::matrix<double, Exec>(m, 2, numbers(m * 2, 5));
  const auto y = vector<double, Exec>(m), alpha = vector<double, Exec>(m);
  support::fill(y, numbers(m, 6));
  std::vector<double> seen;
  const auto stop_at_4 = [&](int iteration, double residual) {
    CHECK(iteration == static_cast<int>(seen.size()) + 1);
    seen.push_back(residual);
    return iteration < 4;
  };
  const auto result = rigel::kernel_solve(exec, x, y, metric::euclidean{}, kernel::gaussian{0.3}, 1e-3, alpha,
                                          {.tolerance = 0, .rank = 0, .progress = stop_at_4});
  CHECK(result.iterations == 4);
  CHECK(!result.converged);
  CHECK(std::abs(seen.back() - result.residual) <= 1e-10);
  const auto indefinite =
      rigel::kernel_solve(exec, x, y, metric::inner_product{}, kernel::sigmoid{1., -1.}, 0, alpha, {.rank = 0});
  CHECK(!indefinite.converged);
  support::fill(y, Values(m, not_a_number));
  const auto nan = rigel::kernel_solve(exec, x, y, metric::euclidean{}, kernel::gaussian{0.3}, 1, alpha);
  CHECK(!nan.converged);
  CHECK(nan.residual != nan.residual);
}

TEST_CASE_TEMPLATE("kernel_solve: a right side of NaN", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int m = 40;
  const auto x = support::matrix<double, Exec>(m, 2, numbers(m * 2, 10));
  const auto solve = [&](const Values& right, bool converges) {
    const auto y = support::matrix<double, Exec>(m, 3, right), alpha = support::matrix<double, Exec>(m, 3);
    const auto result =
        rigel::kernel_solve(exec, x, y, metric::euclidean{}, kernel::gaussian{0.5}, 0.1, alpha, {.tolerance = 1e-10});
    CHECK(result.converged == converges);
    CHECK((result.residual == result.residual) == converges);
    return support::values(alpha);
  };
  Values right = numbers(m * 3, 11);
  const Values expected = solve(right, true);
  right[at(7, 3, 1)] = not_a_number;
  const Values alpha = solve(right, false);
  for (int i = 0; i < m; ++i)
    for (const int c : {0, 2}) CHECK(std::abs(alpha[at(i, 3, c)] - expected[at(i, 3, c)]) <= 1e-10 * 2 * std::sqrt(m) / 0.1);
}

TEST_CASE_TEMPLATE("kernel_solve: regularisations below roundings", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  // K is far from singular, and L has its rank: nothing is left on the diagonal.
  constexpr int m = 30;
  Values points(m), right(m);
  for (std::size_t i = 0; i < m; ++i) {
    points[i] = 0.9 * static_cast<double>(i);
    right[i] = std::sin(1.3 * static_cast<double>(i)) + 0.2;
  }
  const auto x = support::matrix<double, Exec>(m, 1, points);
  const auto y = vector<double, Exec>(m), alpha = vector<double, Exec>(m);
  support::fill(y, right);
  for (const double lambda : {0., 1e-300, 1e-100, 1e-18, 1e-16, 1e-14}) {
    CAPTURE(lambda);
    const auto result = rigel::kernel_solve(exec, x, y, metric::euclidean{}, kernel::gaussian{1.}, lambda, alpha,
                                            {.tolerance = 1e-10, .iterations = 20});
    CHECK(result.converged);
    CHECK(result.rank == m);
  }
}

TEST_CASE_TEMPLATE("kernel_solve: right sides of any magnitude", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int m = 50;
  const auto x = support::matrix<double, Exec>(m, 2, numbers(m * 2, 7));
  const Values right = numbers(m, 8);
  const rigel::KernelSolveOptions options{.tolerance = 1e-10};
  const auto solve = [&](double factor) {
    Values scaled = right;
    for (double& value : scaled) value *= factor;
    const auto y = vector<double, Exec>(m), alpha = vector<double, Exec>(m);
    support::fill(y, scaled);
    const auto result = rigel::kernel_solve(exec, x, y, metric::euclidean{}, kernel::gaussian{0.5}, 0.1, alpha, options);
    CHECK(result.converged);
    return support::values(alpha);
  };
  const Values expected = solve(1);
  // Powers of two, so that all roundings are the same.
  for (const double factor : {0x1p+1015, 0x1p+600, 0x1p-560, 0x1p-900}) {
    CAPTURE(factor);
    const Values alpha = solve(factor);
    for (std::size_t i = 0; i < m; ++i) CHECK(alpha[i] == factor * expected[i]);
  }
  // Columns of unlike magnitudes.
  Values both(m * 2);
  for (int i = 0; i < m; ++i) {
    both[at(i, 2, 0)] = 0x1p+900 * right[static_cast<std::size_t>(i)];
    both[at(i, 2, 1)] = right[static_cast<std::size_t>(i)];
  }
  const auto y = support::matrix<double, Exec>(m, 2, both), alpha = support::matrix<double, Exec>(m, 2);
  CHECK(rigel::kernel_solve(exec, x, y, metric::euclidean{}, kernel::gaussian{0.5}, 0.1, alpha, options).converged);
  const Values v = support::values(alpha);
  for (int i = 0; i < m; ++i) CHECK(v[at(i, 2, 0)] == 0x1p+900 * v[at(i, 2, 1)]);
}

TEST_CASE_TEMPLATE("kernel_solve: a preconditioner without a factor is none", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  // One point is NaN, so L's first column has a NaN, and Lᵀ·L + σI no leading minor.
  constexpr int m = 30;
  Values points = numbers(m * 2, 9);
  points[8] = not_a_number;
  const auto x = support::matrix<double, Exec>(m, 2, points);
  const auto y = vector<double, Exec>(m, 1), alpha = vector<double, Exec>(m);
  const auto result = rigel::kernel_solve(exec, x, y, metric::euclidean{}, kernel::gaussian{0.5}, 1, alpha, {.rank = 10});
  CHECK(result.rank == 0);
  CHECK(!result.converged);
}

TEST_CASE("kernel_solve: errors and workspace") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const auto x = support::matrix<double, Exec>(5, 2, numbers(10, 1), "points");
  const auto y = vector<double, Exec>(5, 1), alpha = vector<double, Exec>(5);
  const kernel::gaussian<> gaussian{0.5};
  const metric::euclidean euclidean;
  const auto check = [&](const auto& call, std::initializer_list<const char*> texts) {
    const auto e = support::caught(call);
    CHECK(e.code == rigel::Code::invalid_argument);
    CHECK(e.lacks(texts) == "");
  };
  check([&] { rigel::kernel_solve(exec, x, vector<double, Exec>(4), euclidean, gaussian, 1, alpha); },
        {"kernel_solve: y 'vector' is 4x1, expected 5 rows to match X 'points' 5x2"});
  check([&] { rigel::kernel_solve(exec, x, y, euclidean, gaussian, 1, vector<double, Exec>(6)); },
        {"alpha 'vector' is 6x1, expected 5 rows"});
  check([&] { rigel::kernel_solve(exec, x, y, euclidean, gaussian, -1, alpha); }, {"regularisation is -1"});
  check([&] { rigel::kernel_solve(exec, x, y, euclidean, gaussian, not_a_number, alpha); }, {"regularisation is nan"});
  check([&] { rigel::kernel_solve(exec, x, y, euclidean, gaussian, 1, y); }, {"alpha", "overlaps y"});
  check([&] { rigel::kernel_solve(exec, x, y, euclidean, gaussian, 1, alpha, {.rank = -1}); }, {"options.rank is -1"});
  check([&] { rigel::kernel_solve(exec, x, y, euclidean, kernel::gaussian{0.}, 1, alpha); }, {"bandwidth is 0"});
  check(
      [&] {
        rigel::kernel_solve(exec, x, support::matrix<double, Exec>(5, 513, {}, "sides"), euclidean, gaussian, 1,
                            support::matrix<double, Exec>(5, 513));
      },
      {"y 'sides' is 5x513, expected 1 to 512 right sides"});
  CHECK(support::values(alpha) == Values(5, -7));
  rigel::KernelSolveOptions options;
  const std::size_t bytes = rigel::kernel_solve_workspace_size(exec, x, y, euclidean, gaussian, 1, alpha, options);
  const Kokkos::View<char*, Exec> memory("memory", bytes + 256);
  const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
  options.workspace = {.data = reinterpret_cast<void*>(address), .bytes = bytes};
  CHECK(rigel::kernel_solve(exec, x, y, euclidean, gaussian, 1, alpha, options).converged);
  const Kokkos::View<double*, Exec, Kokkos::MemoryUnmanaged> first(reinterpret_cast<double*>(address), 5),
      last(reinterpret_cast<double*>(address + bytes) - 5, 5);
  check([&] { rigel::kernel_solve(exec, x, first, euclidean, gaussian, 1, alpha, options); },
        {"kernel_solve: the workspace", "overlaps y"});
  check([&] { rigel::kernel_solve(exec, x, y, euclidean, gaussian, 1, last, options); },
        {"kernel_solve: the workspace", "overlaps alpha"});
  options.workspace.bytes = bytes - 1;
  check([&] { rigel::kernel_solve(exec, x, y, euclidean, gaussian, 1, alpha, options); },
        {"kernel_solve: the workspace has", "expected"});
}

}  // namespace
