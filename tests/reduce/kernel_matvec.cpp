// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kernel_matvec() and softmax_matvec() against loops over matrices that kernel_matrix() and cdist() store.
#include <rigel/kernel_matvec.hpp>

#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>

#include <algorithm>
#include <cmath>

namespace {

using namespace reduced;
namespace metric = rigel::metric;
namespace kernel = rigel::kernel;

constexpr int m = 5, n = 1200, dimensions = 3, columns = 4;

Values numbers(int count, std::uint64_t seed) {
  support::Random random(seed);
  Values v(static_cast<std::size_t>(count));
  for (double& x : v) x = static_cast<double>(random.integer(-16, 16)) / 16;
  return v;
}

template <class T, class Exec>
struct Points {
  support::Matrix<T, Exec> x = support::matrix<T, Exec>(m, dimensions, numbers(m* dimensions, 1), "x"),
                           z = support::matrix<T, Exec>(n, dimensions, numbers(n* dimensions, 2), "z"),
                           v = support::matrix<T, Exec>(n, columns, numbers(n* columns, 3), "v"),
                           out = support::matrix<T, Exec>(m, columns), stored = support::matrix<T, Exec>(m, n);
};

/// The products of a stored matrix with V in double, of entries as they are or as softmax weights; how many results are beyond `bound` times
/// the sum of magnitudes.
int wrong(const Values& k, const Values& v, const Values& out, double bound, bool softmax) {
  int count = 0;
  for (int row = 0; row < m; ++row) {
    double most = -infinity, total = 0;
    for (int j = 0; j < n; ++j) most = std::max(most, k[at(row, n, j)]);
    const auto weight = [&](int j) { return softmax ? std::exp(k[at(row, n, j)] - most) : k[at(row, n, j)]; };
    for (int j = 0; j < n; ++j) total += weight(j);
    for (int d = 0; d < columns; ++d) {
      double sum = 0, size = 0;
      for (int j = 0; j < n; ++j) {
        sum += weight(j) * v[at(j, columns, d)];
        size += std::abs(weight(j) * v[at(j, columns, d)]);
      }
      if (softmax) {
        sum /= total;
        size = 1;  // the largest number of V
      }
      count += !(std::abs(out[at(row, columns, d)] - sum) <= bound * size);
    }
  }
  return count;
}

template <class T, class Exec, class M, class K>
void check(const Exec& exec, const M& metric, const K& kernel) {
  const Points<T, Exec> of;
  rigel::kernel_matrix(exec, of.x, of.z, of.stored, metric, kernel, {.kernel = "reference"});
  rigel::kernel_matvec(exec, of.x, of.z, of.v, metric, kernel, of.out, {.score_kernel = "reference"});
  exec.fence();
  constexpr double u = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;
  CHECK(wrong(support::values(of.stored), support::values(of.v), support::values(of.out), 1027 * u + 2 * n * 0x1p-53,
              false) == 0);
}

TEST_CASE_TEMPLATE("kernel_matvec: every kernel", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  check<float>(exec, metric::euclidean{}, kernel::gaussian{0.7});
  check<double>(exec, metric::euclidean{}, kernel::gaussian{0.7});
  check<float>(exec, metric::euclidean{}, kernel::matern12{0.7});
  check<float>(exec, metric::euclidean{}, kernel::matern32{0.7});
  check<float>(exec, metric::euclidean{}, kernel::matern52{0.7});
  check<float>(exec, metric::euclidean{}, kernel::rational_quadratic{0.7, 1.5});
  check<float>(exec, metric::manhattan{}, kernel::laplace{1.2});
  check<double>(exec, metric::chebyshev{}, kernel::laplace{1.2});
  check<double>(exec, metric::inner_product{}, kernel::polynomial{3});
  check<double>(exec, metric::inner_product{}, kernel::sigmoid{0.5});
  check<float>(exec, metric::cosine{}, kernel::cosine{});
}

TEST_CASE_TEMPLATE("kernel_matvec: one right side, batches, a set with itself", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto x = support::matrix<double, Exec>(3, 1, {0, 1, 3});
  const auto v = vector<double, Exec>(3), out = vector<double, Exec>(3);
  support::fill(v, {1, 10, 100});
  rigel::kernel_matvec(exec, x, x, v, metric::manhattan{}, kernel::laplace{1 / std::log(2.)}, out);
  exec.fence();
  const Values r = support::values(out), expected{1 + 5 + 12.5, 0.5 + 10 + 25, 0.125 + 2.5 + 100};
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(r[i] - expected[i]) <= 16 * expected[i] * 0x1p-53);
  rigel::kernel_matvec(exec, x, x, v, metric::manhattan{}, kernel::laplace{1 / std::log(2.)}, out, {.exclude_self = true});
  exec.fence();
  const Values alone = support::values(out), without{17.5, 25.5, 2.625};
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(alone[i] - without[i]) <= 16 * without[i] * 0x1p-53);
  // Two batches of x and V, one z; the batch index last.
  const auto xs = support::batch<double, Exec>(2, 1, 2, {1, 2, 3, 4}),
             vs = support::batch<double, Exec>(3, 1, 2, {1, 2, 3, 4, 5, 6}),
             products = support::batch<double, Exec>(2, 1, 2);
  const auto z = support::batch<double, Exec>(3, 1, 1, {1, 2, 3});
  rigel::kernel_matvec(exec, xs, z, vs, metric::inner_product{}, kernel::polynomial{1}, products,
                       {.batch = rigel::Batch::last});
  exec.fence();
  // Rows 1 and 3 with (1, 3, 5), rows 2 and 4 with (2, 4, 6): Σ (x·z + 1)·V.
  CHECK(support::values(products) == Values{31, 68, 75, 124});
}

TEST_CASE_TEMPLATE("softmax_matvec: attention and smoothing", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto check = [&]<class T>(T, const auto& metric, double factor) {
    const Points<T, Exec> of;
    rigel::cdist(exec, of.x, of.z, of.stored, metric, rigel::epilogue::scale(factor), {.kernel = "reference"});
    rigel::softmax_matvec(exec, of.x, of.z, of.v, metric, of.out, rigel::epilogue::scale(factor),
                          {.score_kernel = "reference"});
    exec.fence();
    constexpr double u = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;
    const double log_n = std::log(n);
    CHECK(wrong(support::values(of.stored), support::values(of.v), support::values(of.out),
                (1035 + 2 * log_n) * u + (2 * log_n + 65 + 4 * n) * 0x1p-53, true) == 0);
  };
  check(float(), metric::inner_product{}, 1 / std::sqrt(3.));
  check(double(), metric::squared_euclidean{}, -30);
}

TEST_CASE("kernel_matvec: errors, workspace, candidates") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const Points<float, Exec> of;
  const auto gaussian = kernel::gaussian{0.5};
  const auto e = support::caught([&] {
    rigel::kernel_matvec(exec, of.x, of.z, support::matrix<float, Exec>(n - 1, columns, {}, "v"), metric::cosine{},
                         kernel::cosine{}, of.out);
  });
  CHECK(e.code == rigel::Code::invalid_argument);
  CHECK(e.lacks({"kernel_matvec: V 'v' is 1199x4, expected 1200 rows to match the columns of the scores 5x1200"}) == "");
  const std::size_t bytes =
      rigel::kernel_matvec_workspace_size(exec, of.x, of.z, of.v, metric::euclidean{}, gaussian, of.out);
  CHECK(bytes > 0);
  const Kokkos::View<char*, Exec> memory("memory", bytes + 256);
  const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
  rigel::ReduceOptions options{.workspace = {.data = reinterpret_cast<void*>(address), .bytes = bytes}};
  rigel::kernel_matvec(exec, of.x, of.z, of.v, metric::euclidean{}, gaussian, of.out, options);
  const Kokkos::View<float**, Kokkos::LayoutRight, Exec, Kokkos::MemoryUnmanaged> inside(reinterpret_cast<float*>(address),
                                                                                         n, columns);
  CHECK(support::caught([&] {
          rigel::kernel_matvec(exec, of.x, of.z, inside, metric::euclidean{}, gaussian, of.out, options);
        }).lacks({"kernel_matvec: the workspace", "overlaps V"}) == "");
  CHECK(rigel::explain_kernel_matvec(exec, of.x, of.z, of.v, metric::euclidean{}, gaussian, of.out)
            .find("portable.weighted_strips") != std::string::npos);
  CHECK(rigel::explain_softmax_matvec(exec, of.x, of.z, of.v, metric::cosine{}, of.out).find("rows prepared") == 0);
  CHECK(rigel::softmax_matvec_workspace_size(exec, of.x, of.z, of.v, metric::cosine{}, of.out) > 0);
}

}  // namespace
