// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel matrices and distances of X with itself: symmetric in every bit, exact on the diagonal, and the values of a call with a copy of
// X. Small ones are computed whole; long ones in block rows of a triangle.
#include "points.hpp"

#include <string>

using namespace kernel_matrix;

namespace {

/// How many elements of D differ from those of its transpose, and how many on the diagonal from a value; counted where D lies.
struct Differences {
  std::int64_t of_transpose = 0, of_diagonal = 0;
};
template <class D>
Differences differences(const D& d, double on_diagonal) {
  using T = typename D::non_const_value_type;
  using Exec = typename D::execution_space;
  const auto n = static_cast<std::int64_t>(d.extent(1));
  const auto value = static_cast<T>(on_diagonal);
  Differences count;
  const auto sum = [&](std::int64_t& total, const auto& is_counted) {
    Kokkos::parallel_reduce(
        "count", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(0, d.extent(0) * n * n),
        KOKKOS_LAMBDA(std::int64_t i, std::int64_t& t) { t += is_counted(i / (n * n), i / n % n, i % n); }, total);
  };
  sum(
      count.of_transpose,
      KOKKOS_LAMBDA(std::int64_t l, std::int64_t i, std::int64_t j) { return d(l, i, j) == d(l, j, i) ? 0 : 1; });
  sum(
      count.of_diagonal,
      KOKKOS_LAMBDA(std::int64_t l, std::int64_t i, std::int64_t j) { return i != j || d(l, i, j) == value ? 0 : 1; });
  return count;
}

/// The largest |D − E|.
template <class D>
double largest_difference(const D& d, const D& e) {
  using Exec = typename D::execution_space;
  const auto n = static_cast<std::int64_t>(d.extent(1));
  double worst = 0;
  Kokkos::parallel_reduce(
      "largest", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(0, d.extent(0) * n * n),
      KOKKOS_LAMBDA(std::int64_t i, double& w) {
        const double x = d(i / (n * n), i / n % n, i % n), y = e(i / (n * n), i / n % n, i % n);
        const double off = x < y ? y - x : x - y;
        w = off <= w ? w : off;
      },
      Kokkos::Max<double>(worst));
  return worst;
}

template <class T, class Exec, class Layout>
using Batched = Kokkos::View<T***, Layout, typename Exec::memory_space>;

template <class T, class Exec, class Layout = Kokkos::LayoutRight>
Batched<T, Exec, Layout> random_batch(int batches, int n, int k) {
  const Batched<T, Exec, Kokkos::LayoutRight> x("X", batches, n, k);
  support::fill(x, random_points<T>(batches * n, k, 5));
  const Batched<T, Exec, Layout> same("X", batches, n, k);
  Kokkos::deep_copy(same, x);
  return same;
}

template <class Layout, class T, class Exec, class M, class K>
void check_one(int n, int k, const M& metric, const K& kernel, double on_diagonal, double tolerance) {
  CAPTURE(n);
  CAPTURE(k);
  const auto x = random_batch<T, Exec, Layout>(2, n, k), copy = random_batch<T, Exec, Layout>(2, n, k);
  const Batched<T, Exec, Layout> d("D", 2, n, n), e("E", 2, n, n);
  const rigel::KernelMatrixOptions<> options{.regularisation = 0.5, .m0 = 7, .n0 = 7};
  rigel::kernel_matrix(Exec(), x, d, metric, kernel, options);
  rigel::kernel_matrix(Exec(), x, copy, e, metric, kernel, options);
  Kokkos::fence();
  const Differences found = differences(d, on_diagonal + 0.5);
  CHECK(found.of_transpose == 0);
  if (K::takes != kernel::Takes::product) CHECK(found.of_diagonal == 0);
  CHECK(largest_difference(d, e) <= tolerance);
}

// Distances of both calls are off by twice the bound at most; kernels and polynomials scale that by less than 100 here.
template <class T, class Exec>
void check_sizes() {
  const double tolerance = std::is_same_v<T, float> ? 2e-3 : 1e-11;
  for (const int n : {1, 2, 31, 33, 130}) {
    const auto check = [&](const auto& metric, const auto& kernel) {
      check_one<Kokkos::LayoutRight, T, Exec>(n, 40, metric, kernel, 1, tolerance);
      check_one<Kokkos::LayoutLeft, T, Exec>(n, 40, metric, kernel, 1, tolerance);
    };
    check(metric::manhattan{}, kernel::laplace{20});
    check(metric::euclidean{}, kernel::matern52{4});
    check(metric::minkowski{1.3}, kernel::gaussian{10});
    check(metric::hamming{}, kernel::laplace{1});
    check(metric::correlation{}, kernel::cosine{});
    check(metric::inner_product{}, kernel::polynomial{2});
  }
}

}  // namespace

TEST_CASE_TEMPLATE("kernel_matrix: of X with itself", Exec, RIGEL_TEST_SPACES) {
  SUBCASE("float") { check_sizes<float, Exec>(); }
  SUBCASE("double") { check_sizes<double, Exec>(); }
}

// Sizes at which a triangle is predicted to be faster, in each family that is chosen for these metrics.
TEST_CASE_TEMPLATE("kernel_matrix: a triangle in block rows", Exec, RIGEL_TEST_SPACES) {
  const int n = support::on_host<Exec> ? 700 : 12000, k = support::on_host<Exec> ? 600 : 300;
  const auto check = [&]<class T, class Layout>(T, Layout, const auto& metric, double tolerance) {
    const auto x = random_batch<T, Exec, Layout>(1, n, k), copy = random_batch<T, Exec, Layout>(1, n, k);
    const Batched<T, Exec, Layout> d("D", 1, n, n), e("E", 1, n, n);
    const auto shift = number<Exec>(2);
    const auto last = rigel::epilogue::add(shift) | rigel::epilogue::add_diagonal(1, 3, 3);
    const std::string text = rigel::explain_cdist(Exec(), x, x, d, metric, last);
    CAPTURE(text);
    CHECK(text.find("the lower triangle in ") == 0);
    rigel::cdist(Exec(), x, x, d, metric, last);
    rigel::cdist(Exec(), x, copy, e, metric, last);
    Kokkos::fence();
    const Differences found = differences(d, 3);
    CHECK(found.of_transpose == 0);
    CHECK(found.of_diagonal == 0);
    CHECK(largest_difference(d, e) <= tolerance);
  };
  // One chain for each output: the same bits as with a copy of X.
  check(float{}, Kokkos::LayoutRight{}, metric::manhattan{}, 0);
  check(float{}, Kokkos::LayoutLeft{}, metric::chebyshev{}, 0);
  check(double{}, Kokkos::LayoutRight{}, metric::manhattan{}, 0);
  check(float{}, Kokkos::LayoutRight{}, metric::minkowski{1.3}, 1e-3);
}

// With a step that differs from D(l,m,n) to D(l,n,m), all of D is computed.
TEST_CASE_TEMPLATE("kernel_matrix: steps that are not symmetric", Exec, RIGEL_TEST_SPACES) {
  const int n = support::on_host<Exec> ? 700 : 12000, k = support::on_host<Exec> ? 600 : 300;
  const auto x = random_batch<float, Exec>(1, n, k), copy = random_batch<float, Exec>(1, n, k);
  const Batched<float, Exec, Kokkos::LayoutRight> d("D", 1, n, n), e("E", 1, n, n);
  const Kokkos::View<float*, typename Exec::memory_space> row("row", n);
  support::fill(row, random_points<float>(n, 1, 6));
  const auto check = [&](const rigel::epilogue::Program& last) {
    rigel::cdist(Exec(), x, x, d, metric::manhattan{}, last);
    rigel::cdist(Exec(), x, copy, e, metric::manhattan{}, last);
    Kokkos::fence();
    CHECK(largest_difference(d, e) == 0);
    CHECK(differences(d, 0).of_transpose > 0);
  };
  check(rigel::epilogue::add_row(row));
  check(rigel::epilogue::add_diagonal(1, 1, 0));
}
