// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threshold, regularisation and blocks of a larger matrix; layouts and batches; empty extents; and what is refused.
#include "points.hpp"

#include <string>

using namespace kernel_matrix;

namespace {

template <class Exec>
using Doubles = Kokkos::View<double*, typename Exec::memory_space>;

}  // namespace

// Points 0, 1, …: distances |m − n|, of which the Laplace kernel of the length 1/ln 2 is 2^−|m − n|.
TEST_CASE_TEMPLATE("kernel_matrix: blocks of a larger matrix", Exec, RIGEL_TEST_SPACES) {
  constexpr int size = 9, m0 = 2, n0 = 4, m = 5, n = 3;
  Values line(size);
  for (int i = 0; i < size; ++i) line[i] = i;
  const auto points = support::matrix<double, Exec>(size, 1, line);
  const auto whole = support::matrix<double, Exec>(size, size), block = support::matrix<double, Exec>(m, n);
  const kernel::laplace half{1 / std::log(2.)};
  rigel::kernel_matrix(Exec(), points, whole, metric::manhattan{}, half, {.regularisation = 2, .threshold = 0.05});
  const auto x = Kokkos::subview(points, std::pair(m0, m0 + m), Kokkos::ALL),
             z = Kokkos::subview(points, std::pair(n0, n0 + n), Kokkos::ALL);
  rigel::kernel_matrix(Exec(), x, z, block, metric::manhattan{}, half,
                       {.regularisation = 2, .m0 = m0, .n0 = n0, .threshold = 0.05});
  const Values all = support::values(whole), part = support::values(block);
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j) {
      const int d = std::abs(i - j);
      const double expected = (d > 4 ? 0 : std::ldexp(1, -d)) + (i == j ? 2 : 0);  // 2^−5 is below the threshold
      CHECK(std::fabs(all[i * size + j] - expected) <= 16 * unit<double> * expected);
    }
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) CHECK(part[i * n + j] == all[(m0 + i) * size + n0 + j]);
}

TEST_CASE_TEMPLATE("kernel_matrix: threshold and regularisation in memory", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<float, Exec>(2, 1, {0, 1});
  const auto d = support::batch<float, Exec>(2, 2, 2);
  const auto ridge = numbers<Exec>({0.5, 0.25}), least = numbers<Exec>({0.75, 0.25});
  const auto options = rigel::KernelMatrixOptions{.regularisation = ridge, .threshold = least};
  rigel::kernel_matrix(Exec(), x, d, metric::manhattan{}, kernel::rational_quadratic{1, 0.5}, options);
  const float root = 1 / std::sqrt(2.f);  // (1 + 1)^−1/2
  const Values found = support::values(d);
  CHECK(found[0] == 1.5);
  CHECK(found[1] == 0);
  CHECK(found[4] == 1.25);
  CHECK(std::fabs(found[5] - root) <= 16 * unit<float>);
  CHECK(found[6] == found[5]);
  support::fill(ridge, {1, 2});  // read when the kernel runs
  rigel::kernel_matrix(Exec(), x, d, metric::manhattan{}, kernel::rational_quadratic{1, 0.5}, options);
  CHECK(support::values(d)[0] == 2);
  CHECK(support::values(d)[7] == 3);
}

TEST_CASE_TEMPLATE("kernel_matrix: layouts, the last index of batches, 16-bit points", Exec, RIGEL_TEST_SPACES) {
  const int m = 6, n = 5, k = 4, batches = 2;
  const Values x = random_points<rigel::half>(m, k, 7), z = random_points<rigel::half>(n, k, 8);
  const auto lengths = numbers<Exec>({1, 3});
  const auto of_x = support::matrix<rigel::half, Exec>(m, k, x), of_z = support::matrix<rigel::half, Exec>(n, k, z);
  const auto transposed_x = Kokkos::View<rigel::half**, Kokkos::LayoutRight, typename Exec::memory_space>("X", k, m);
  Values by_columns(x.size());
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < k; ++j) by_columns[j * m + i] = x[i * k + j];
  support::fill(transposed_x, by_columns);
  const Kokkos::View<float***, Kokkos::LayoutRight, typename Exec::memory_space> first("D", batches, m, n),
      last("D", m, n, batches);
  rigel::kernel_matrix(Exec(), of_x, of_z, first, metric::euclidean{}, kernel::matern32{lengths});
  rigel::kernel_matrix(Exec(), rigel::transposed(transposed_x), of_z, last, metric::euclidean{}, kernel::matern32{lengths},
                       {.batch = rigel::Batch::last});
  const Values of_first = support::values(first), of_last = support::values(last);
  for (int l = 0; l < batches; ++l)
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        const Bounded e = matern32<float>(euclidean<float>(&x[i * k], &z[j * k], k), l == 0 ? 1 : 3);
        CHECK(std::fabs(of_first[(l * m + i) * n + j] - e.value) <= e.error);
        CHECK(std::fabs(of_last[(i * n + j) * batches + l] - e.value) <= e.error);
      }
}

TEST_CASE_TEMPLATE("kernel_matrix: the caller's workspace", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<float, Exec>(40, 8, random_points<float>(40, 8, 9));
  const auto d = support::matrix<float, Exec>(40, 40);
  const std::size_t bytes = rigel::kernel_matrix_workspace_size(Exec(), x, x, d, metric::cosine{}, kernel::cosine{});
  CHECK(bytes >= 40 * 8 * sizeof(float));
  const Kokkos::View<std::byte*, typename Exec::memory_space> memory("memory", bytes + 256);
  auto* const aligned = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256) % 256;
  rigel::kernel_matrix(Exec(), x, d, metric::cosine{}, kernel::cosine{}, {.workspace = {aligned, bytes}});
  CHECK(support::values(d)[0] == 1);
  const auto e = support::caught(
      [&] { rigel::kernel_matrix(Exec(), x, d, metric::cosine{}, kernel::cosine{}, {.workspace = {aligned, bytes - 1}}); });
  CHECK(e.code == rigel::Code::invalid_argument);
  CHECK(e.lacks({"kernel_matrix", "workspace", std::to_string(bytes).c_str()}) == "");
  CHECK(rigel::explain_kernel_matrix(Exec(), x, x, d, metric::cosine{}, kernel::cosine{}).find("rows prepared") == 0);
}

TEST_CASE_TEMPLATE("kernel_matrix: empty extents", Exec, RIGEL_TEST_SPACES) {
  const auto none = support::matrix<double, Exec>(0, 3), some = support::matrix<double, Exec>(2, 3, {1, 2, 3, 4, 5, 6});
  rigel::kernel_matrix(Exec(), none, some, support::matrix<double, Exec>(0, 2), metric::euclidean{}, kernel::gaussian{1});
  rigel::kernel_matrix(Exec(), some, none, support::matrix<double, Exec>(2, 0), metric::euclidean{}, kernel::gaussian{1});
  rigel::kernel_matrix(Exec(), none, support::matrix<double, Exec>(0, 0), metric::euclidean{}, kernel::gaussian{1});
  rigel::kernel_matrix(Exec(), some, support::batch<double, Exec>(0, 2, 2), metric::euclidean{}, kernel::gaussian{1});
  // No coordinates: all distances and products are 0.
  const auto points = support::matrix<double, Exec>(2, 0);
  const auto d = support::matrix<double, Exec>(2, 2, {7, 7, 7, 7});
  rigel::kernel_matrix(Exec(), points, d, metric::euclidean{}, kernel::matern52{1}, {.regularisation = 1});
  CHECK(support::values(d) == Values{2, 1, 1, 2});
  rigel::kernel_matrix(Exec(), points, d, metric::inner_product{}, kernel::polynomial{2, 1, 3});
  CHECK(support::values(d) == Values{9, 9, 9, 9});
}

// Of the eight steps hamming takes a quotient and a square, the kernel five; of the four views the kernel three.
TEST_CASE_TEMPLATE("kernel_matrix: a step and a view are left after the kernel with most of them", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<double, Exec>(2, 2, {0, 0, 0, 1}), d = support::matrix<double, Exec>(2, 2);
  const auto one = numbers<Exec>({1});
  const auto ridge = number<Exec>(2);
  rigel::kernel_matrix(Exec(), x, d, metric::hamming{}, kernel::rational_quadratic{one, one},
                       rigel::KernelMatrixOptions{.regularisation = ridge});
  // Half of the places differ: 1/(1 + (1/2)²/2)
  const Values found = support::values(d);
  CHECK(found[0] == 3);
  CHECK(found[1] == doctest::Approx(8. / 9).epsilon(1e-15));
  CHECK(found[3] == 3);
}

TEST_CASE_TEMPLATE("kernel_matrix: what is refused", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<double, Exec>(3, 2, {1, 2, 3, 4, 5, 6}, "x"),
             z = support::matrix<double, Exec>(4, 2, {}, "z");
  const auto d = support::matrix<double, Exec>(3, 4, Values(12, 7), "d");
  const auto refused = [&](const auto& call, rigel::Code code, std::initializer_list<const char*> texts) {
    const auto e = support::caught(call);
    CHECK(e.code == code);
    CHECK(e.lacks(texts) == "");
    CHECK(support::values(d) == Values(12, 7));
  };
  constexpr auto invalid = rigel::Code::invalid_argument;
  const metric::euclidean euclid;
  const auto with = [&](const auto& kernel, const auto& options) {
    return [&, kernel, options] { rigel::kernel_matrix(Exec(), x, z, d, euclid, kernel, options); };
  };
  const rigel::KernelMatrixOptions<> plain;
  refused(with(kernel::gaussian{0}, plain), invalid, {"kernel_matrix", "bandwidth is 0", "positive"});
  refused(with(kernel::laplace{-1}, plain), invalid, {"kernel_matrix", "length is -1", "positive"});
  refused(with(kernel::matern32{std::nan("")}, plain), invalid, {"length is nan", "positive"});
  refused(with(kernel::rational_quadratic{1, 0}, plain), invalid, {"alpha is 0", "positive"});
  refused([&] { rigel::kernel_matrix(Exec(), x, z, d, metric::inner_product{}, kernel::polynomial{-2}); }, invalid,
          {"degree is -2", "positive"});
  refused([&] { rigel::kernel_matrix(Exec(), x, z, d, metric::inner_product{}, kernel::sigmoid{INFINITY}); }, invalid,
          {"scale is inf", "finite"});
  refused(with(kernel::gaussian{1}, rigel::KernelMatrixOptions<>{.regularisation = INFINITY}), invalid,
          {"options.regularisation is inf", "finite"});
  refused(with(kernel::gaussian{1}, rigel::KernelMatrixOptions<>{.threshold = std::nan("")}), invalid,
          {"options.threshold is nan", "finite"});
  refused(with(kernel::gaussian{numbers<Exec>({1, 2})}, plain), invalid, {"kernel_matrix", "gaussian()", "2"});
  refused([&] { rigel::kernel_matrix(Exec(), x, z, d, metric::minkowski{0}, kernel::laplace{1}); }, invalid,
          {"minkowski's p is 0", "p > 0"});
  refused([&] { rigel::kernel_matrix(Exec(), z, z, d, euclid, kernel::gaussian{1}); }, invalid,
          {"kernel_matrix", "D 'd'", "3", "4"});
  refused([&] { rigel::kernel_matrix(Exec(), x, d, euclid, kernel::gaussian{1}); }, invalid,
          {"kernel_matrix", "D 'd'", "4", "3"});
  refused([&] { rigel::kernel_matrix(Exec(), x, d, euclid, kernel::gaussian{1}, {.m0 = 3, .n0 = 5}); }, invalid,
          {"options.m0 is 3", "options.n0 is 5", "equal"});
  const auto length = numbers<Exec>({1});
  const auto ridge = number<Exec>(1);
  refused(with(kernel::rational_quadratic{length, length},
               rigel::KernelMatrixOptions{.regularisation = ridge, .threshold = length}),
          invalid, {"kernel_matrix: ", "more than 8 steps or 4 views", "numbers"});
  refused(with(kernel::gaussian{-1e-9}, plain), invalid, {"bandwidth is -1e-09", "positive"});
  refused(with(kernel::gaussian{1e-200}, plain), invalid, {"bandwidth is 1e-200", "larger"});
  refused(with(kernel::laplace{1e-310}, plain), invalid, {"length is 1e-310", "larger"});
  refused(with(kernel::matern52{1.5e-308}, plain), invalid, {"length is 1.5e-308", "larger"});
  refused(with(kernel::rational_quadratic{1e-150, 1e-100}, plain), invalid, {"alpha is 1e-100", "larger"});
}
