// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel matrices and distances of X with itself: symmetric in every bit, exact on the diagonal, and the values of a call with a copy of
// X. Small ones are computed whole; long ones in block rows of a triangle.
#include "points.hpp"

#include <rigel/detail/kernel.hpp>
#include <rigel/registry.hpp>

#include <tests/support/skip.hpp>

#include <string>
#include <string_view>
#include <utility>

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

/// How many |D − E| are not at most `tolerance`: NaN is not.
template <class D>
std::int64_t off_by_more(const D& d, const D& e, double tolerance) {
  using Exec = typename D::execution_space;
  const auto n = static_cast<std::int64_t>(d.extent(1));
  std::int64_t count = 0;
  Kokkos::parallel_reduce(
      "compare", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(0, d.extent(0) * n * n),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t& c) {
        const double x = d(i / (n * n), i / n % n, i % n), y = e(i / (n * n), i / n % n, i % n);
        const double off = x < y ? y - x : x - y;
        if (!(off <= tolerance)) ++c;
      },
      count);
  return count;
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
  CHECK(off_by_more(d, e, tolerance) == 0);
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

// In each family that is chosen for these metrics, at the first size at which a triangle is predicted to be faster: it depends on the
// machine. D has the bits of a call with a copy of X, which computes all of it.
TEST_CASE_TEMPLATE("kernel_matrix: a triangle in block rows", Exec, RIGEL_TEST_SPACES) {
  const std::vector<int> sizes = support::on_host<Exec> ? std::vector{700, 1400, 2800} : std::vector{12000};
  const int k = support::on_host<Exec> ? 600 : 300;
  const auto shift = number<Exec>(2);
  const auto last = rigel::epilogue::add(shift) | rigel::epilogue::add_diagonal(1, 3, 3);
  const auto check = [&]<class T, class Layout>(T, Layout, const auto& metric) {
    const auto explained = [&](int n) {
      const Batched<T, Exec, Layout> x("X", 1, n, k), d("D", 1, n, n);
      return rigel::explain_cdist(Exec(), x, x, d, metric, last);
    };
    const auto found_size =
        std::find_if(sizes.begin(), sizes.end(), [&](int n) { return explained(n).find("the lower triangle in ") == 0; });
    if (found_size == sizes.end()) support::skip("kernel_matrix: no triangle is predicted to be faster");
    const int n = found_size == sizes.end() ? sizes.front() : *found_size;
    CAPTURE(n);
    const auto x = random_batch<T, Exec, Layout>(1, n, k), copy = random_batch<T, Exec, Layout>(1, n, k);
    const Batched<T, Exec, Layout> d("D", 1, n, n), e("E", 1, n, n);
    rigel::cdist(Exec(), x, x, d, metric, last);
    rigel::cdist(Exec(), x, copy, e, metric, last);
    Kokkos::fence();
    const Differences found = differences(d, 3);
    CHECK(found.of_transpose == 0);
    CHECK(found.of_diagonal == 0);
    CHECK(off_by_more(d, e, 0) == 0);
  };
  check(float{}, Kokkos::LayoutRight{}, metric::manhattan{});
  check(float{}, Kokkos::LayoutLeft{}, metric::chebyshev{});
  check(double{}, Kokkos::LayoutRight{}, metric::manhattan{});
  check(float{}, Kokkos::LayoutRight{}, metric::minkowski{1.3});
}

// Products on tensor cores and of a BLAS are not symmetric by themselves.
TEST_CASE_TEMPLATE("kernel_matrix: inner products of X with itself", Exec, RIGEL_TEST_SPACES) {
  const int n = support::on_host<Exec> ? 700 : 4000, k = 600;
  const Batched<float, Exec, Kokkos::LayoutRight> d("D", 1, n, n), e("E", 1, n, n);
  const auto check = [&]<class T>(T, double tolerance) {
    const auto x = random_batch<T, Exec>(1, n, k), copy = random_batch<T, Exec>(1, n, k);
    rigel::cdist(Exec(), x, x, d, metric::inner_product{});
    rigel::cdist(Exec(), x, copy, e, metric::inner_product{});
    Kokkos::fence();
    CHECK(differences(d, 0).of_transpose == 0);
    CHECK(off_by_more(d, e, tolerance) == 0);
    // A row's bits may then not come from a column.
    const rigel::CdistOptions by_rows{.require = rigel::Promise::batch_invariant};
    rigel::cdist(Exec(), x, x, d, metric::inner_product{}, by_rows);
    rigel::cdist(Exec(), x, copy, e, metric::inner_product{}, by_rows);
    Kokkos::fence();
    CHECK(off_by_more(d, e, 0) == 0);
  };
  // Each is off by (2 + K)·u·Σ|x·z| at most, Σ|x·z| ≤ K.
  const double bound = 2 * (2 + k) * unit<float> * k;
  check(float{}, bound);
  check(rigel::half{}, bound);
}

// Elements of D that are no Scalar: kernels take the epilogue as a functor, which sees places in parts of D as places in D.
TEST_CASE_TEMPLATE("kernel_matrix: X with itself, a D of bool", Exec, RIGEL_TEST_SPACES) {
  const int n = 700, k = 600;
  const auto x = support::matrix<float, Exec>(n, k, random_points<float>(n, k, 10)),
             copy = support::matrix<float, Exec>(n, k, random_points<float>(n, k, 10));
  const Kokkos::View<bool**, Kokkos::LayoutRight, typename Exec::memory_space> d("D", n, n), e("E", n, n);
  const auto identity = rigel::epilogue::threshold(1e9) | rigel::epilogue::add_diagonal(1);
  rigel::cdist(Exec(), x, x, d, metric::manhattan{}, identity);
  rigel::cdist(Exec(), x, copy, e, metric::manhattan{}, identity);
  CHECK(support::values(d) == support::values(e));
}

TEST_CASE_TEMPLATE("kernel_matrix: X with itself, a kernel by name", Exec, RIGEL_TEST_SPACES) {
  const int n = 700, k = 600;
  const auto x = random_batch<float, Exec>(1, n, k), copy = random_batch<float, Exec>(1, n, k);
  const Batched<float, Exec, Kokkos::LayoutRight> d("D", 1, n, n), e("E", 1, n, n);
  const auto explained = [&](const auto& z, std::string_view name) {
    return rigel::explain_cdist(Exec(), x, z, d, metric::manhattan{}, {}, {.kernel = name});
  };
  CHECK(explained(x, "portable") == explained(copy, "portable"));
  CHECK(explained(x, "nope") == explained(copy, "nope"));
  const rigel::CdistOptions portable{.kernel = "portable"};
  rigel::cdist(Exec(), x, x, d, metric::manhattan{}, portable);
  rigel::cdist(Exec(), x, copy, e, metric::manhattan{}, portable);
  Kokkos::fence();
  CHECK(differences(d, 0).of_transpose == 0);
  CHECK(differences(d, 0).of_diagonal == 0);
  CHECK(off_by_more(d, e, 0) == 0);
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
    CHECK(off_by_more(d, e, 0) == 0);
    CHECK(differences(d, 0).of_transpose > 0);
  };
  check(rigel::epilogue::add_row(row));
  check(rigel::epilogue::add_diagonal(1, 1, 0));
}

// A row that is one number for all columns has N columns all the same: parts of C do not fit it.
TEST_CASE_TEMPLATE("kernel_matrix: a step with a stride of 0", Exec, RIGEL_TEST_SPACES) {
  const int n = support::on_host<Exec> ? 700 : 12000, k = support::on_host<Exec> ? 600 : 300;
  const auto x = random_batch<float, Exec>(1, n, k), copy = random_batch<float, Exec>(1, n, k);
  const Batched<float, Exec, Kokkos::LayoutRight> d("D", 1, n, n), e("E", 1, n, n);
  const auto one = number<Exec>(2);
  const Kokkos::View<const double*, Kokkos::LayoutStride, typename Exec::memory_space> row(one.data(),
                                                                                           Kokkos::LayoutStride(n, 0));
  rigel::cdist(Exec(), x, x, d, metric::manhattan{}, rigel::epilogue::add_row(row));
  rigel::cdist(Exec(), x, copy, e, metric::manhattan{}, rigel::epilogue::add_row(row));
  Kokkos::fence();
  CHECK(off_by_more(d, e, 0) == 0);
}

namespace {

/// A kernel of the next test alone, for K = 20001 and on hosts: predicted to be fast, and with a byte of workspace for each output, so
/// that later block rows need more than the first. It writes m + n.
void register_block_rows() {
  static bool registered = false;
  if (std::exchange(registered, true)) return;
  using Kernel = rigel::Kernel<rigel::Contraction>;
  Kernel kernel;
  kernel.info = rigel::detail::info_of<rigel::l1<float>>("block_rows", {}, {}, rigel::host_spaces);
  kernel.info.promises = rigel::Promise::batch_invariant;
  kernel.supports = [](const Kernel&, const rigel::Contraction& p) -> rigel::Status {
    return p.k == 20001 ? rigel::Status{} : rigel::Status{rigel::Decline::extents, "K is not 20001"};
  };
  kernel.cost = [](const Kernel&, const rigel::Contraction& p, rigel::Plan&) {
    return 1e-8 * static_cast<double>(p.m) * static_cast<double>(p.n);
  };
  kernel.workspace = [](const Kernel&, const rigel::Contraction& p, const rigel::Plan&) {
    return rigel::WorkspaceSize{.bytes = static_cast<std::size_t>(p.m * p.n)};
  };
  kernel.run = [](const Kernel&, const rigel::Contraction& p, const rigel::Plan&, const rigel::Workspace&) {
    for (std::int64_t m = 0; m < p.m; ++m)
      for (std::int64_t n = 0; n < p.n; ++n)
        static_cast<float*>(p.c.data)[m * p.c.row_stride + n * p.c.column_stride] =
            static_cast<float>(p.first.row + m + p.first.column + n);
  };
  rigel::register_kernel(kernel);
}

}  // namespace

TEST_CASE_TEMPLATE("kernel_matrix: block rows and a workspace", Exec, RIGEL_TEST_SPACES) {
  if (!support::on_host<Exec>) return;
  register_block_rows();
  const int n = 600, k = 20001;
  const auto x = support::matrix<float, Exec>(n, k), d = support::matrix<float, Exec>(n, n, Values(n * n, -1));
  CHECK(rigel::explain_cdist(Exec(), x, x, d, metric::manhattan{}).find("the lower triangle in ") == 0);
  const std::size_t bytes = rigel::cdist_workspace_size(Exec(), x, x, d, metric::manhattan{});
  CHECK(bytes > 0);
  CHECK(bytes < n * n);  // a block row's
  const Kokkos::View<std::byte*, typename Exec::memory_space> memory("memory", bytes + 256);
  auto* const aligned = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256) % 256;
  const auto e =
      support::caught([&] { rigel::cdist(Exec(), x, x, d, metric::manhattan{}, {.workspace = {aligned, bytes - 1}}); });
  CHECK(e.code == rigel::Code::invalid_argument);
  CHECK(e.lacks({"cdist", "workspace", std::to_string(bytes).c_str()}) == "");
  CHECK(support::values(d) == Values(n * n, -1));
  rigel::cdist(Exec(), x, x, d, metric::manhattan{}, {.workspace = {aligned, bytes}});
  const Values found = support::values(d);
  int wrong = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) wrong += found[i * n + j] != i + j;
  CHECK(wrong == 0);
}
