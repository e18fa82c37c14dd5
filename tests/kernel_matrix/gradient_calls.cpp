// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of kernel matrices in all forms of a call: points that coincide, vectors, X with itself, sums that go on, layouts,
// workspaces, extents of 0, bad input.
#include "slopes.hpp"

#include <tests/support/compare.hpp>
#include <tests/support/numbers.hpp>
#include <tests/support/skip.hpp>

#include <cstddef>

using namespace kernel_matrix;
using support::batch;
using support::caught;
using support::matrix;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

template <class Exec>
struct Operands {
  static constexpr int batches = 2, m = 11, n = 7, k = 4;
  Values x_values = random_points<double>(m, k, 21), z_values = random_points<double>(batches * n, k, 22),
         g_values = random_points<double>(batches * m, n, 23);
  support::Matrix<double, Exec> x = matrix<double, Exec>(m, k, x_values, "x");
  support::Batch<double, Exec> z = batch<double, Exec>(batches, n, k, z_values, "z"),
                               g = batch<double, Exec>(batches, m, n, g_values, "g"),
                               dx = batch<double, Exec>(batches, m, k, {}, "dx"),
                               dz = batch<double, Exec>(batches, n, k, {}, "dz");
  Kokkos::View<double*, typename Exec::memory_space> dh{"dh", batches};
};

Values sum(const Values& a, const Values& b) {
  Values all = a;
  for (std::size_t i = 0; i < b.size(); ++i) all[i] += b[i];
  return all;
}

/// Whether numbers are equal but for a few roundings of sums of numbers up to 10.
bool near(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::fabs(a[i] - b[i]) <= 1e-13)) return false;
  return true;
}

}  // namespace

TEST_CASE_TEMPLATE("kernel_matrix_gradient: points that coincide", Exec, RIGEL_TEST_SPACES) {
  // Two of x are two of z; the third is apart from both by 1 in one coordinate.
  const auto run = [&]<class T>(T, const auto& metric, const auto& kernel, const auto& dk) {
    const auto x = matrix<T, Exec>(2, 2, {1, 2, -3, 0.5}), z = matrix<T, Exec>(2, 2, {1, 2, -3, 0.5}),
               g = matrix<T, Exec>(2, 2, {1, 0, 0, 1}), dx = matrix<T, Exec>(2, 2, {9, 9, 9, 9}),
               dz = matrix<T, Exec>(2, 2, {9, 9, 9, 9});
    rigel::kernel_matrix_gradient(Exec(), x, z, g, metric, kernel, dx, dz, dk);
    CHECK(support::values(dx) == Values(4, 0));
    CHECK(support::values(dz) == Values(4, 0));
  };
  const auto all = [&](const auto& metric) {
    for (const bool single : {true, false}) {
      const auto one = [&](const auto& kernel, const auto& dk) {
        single ? run(float{}, metric, kernel, dk) : run(double{}, metric, kernel, dk);
      };
      const auto length = number<Exec>(9);
      one(kernel::laplace{1}, kernel::laplace{length});
      CHECK(support::values(length)[0] == 0);
      one(kernel::gaussian{1}, kernel::gaussian{length});
      one(kernel::matern32{1}, kernel::matern32{length});
      one(kernel::matern52{1}, kernel::matern52{length});
      one(kernel::rational_quadratic{1, 1}, kernel::rational_quadratic{length, number<Exec>(9)});
    }
  };
  all(metric::euclidean{});
  all(metric::manhattan{});
  all(metric::minkowski{0.5});
  all(metric::minkowski{1.5});
  all(metric::minkowski{5});
}

TEST_CASE_TEMPLATE("kernel_matrix_gradient: no NaN of finite numbers", Exec, RIGEL_TEST_SPACES) {
  // Distances that overflow have kernel 0; those whose power overflows as a weight have differences whose power underflows.
  const auto check = [&](const Values& from, const auto& metric, const auto& kernel, const auto& dk,
                         const Values& expected) {
    const auto x = matrix<float, Exec>(1, 2, from), z = matrix<float, Exec>(1, 2, {0, 0}),
               g = matrix<float, Exec>(1, 1, {1}), dx = matrix<float, Exec>(1, 2);
    rigel::kernel_matrix_gradient(Exec(), x, z, g, metric, kernel, dx, rigel::no_gradient, dk);
    CHECK(support::values(dx) == expected);
  };
  const auto by = number<Exec>(9);
  const Values far = {3e30, -3e30}, near_zero = {1e-20, 0};
  const auto all = [&](const auto& metric) {
    check(far, metric, kernel::laplace{1}, kernel::laplace{by}, {0, 0});
    CHECK(support::values(by)[0] == 0);
    check(far, metric, kernel::gaussian{1}, kernel::gaussian{by}, {0, 0});
    CHECK(support::values(by)[0] == 0);
    check(far, metric, kernel::matern32{1}, kernel::matern32{by}, {0, 0});
    CHECK(support::values(by)[0] == 0);
    check(far, metric, kernel::matern52{1}, kernel::matern52{by}, {0, 0});
    CHECK(support::values(by)[0] == 0);
  };
  all(metric::euclidean{});
  all(metric::manhattan{});
  all(metric::minkowski{1.5});
  // Differences that overflow: 0 as well, whose weights are 0.
  const auto beyond = [&](const auto& metric) {
    const auto x = matrix<float, Exec>(2, 2, {3e38, 1, -3e38, 2}), g = matrix<float, Exec>(2, 2, {1, 1, 1, 1}),
               dx = matrix<float, Exec>(2, 2);
    rigel::kernel_matrix_gradient(Exec(), x, g, metric, kernel::gaussian{1}, dx, kernel::gaussian{by});
    CHECK(support::values(dx) == Values(4, 0));
    CHECK(support::values(by)[0] == 0);
  };
  beyond(metric::euclidean{});
  beyond(metric::manhattan{});
  beyond(metric::minkowski{1.5});
  beyond(metric::minkowski{3});
  check(near_zero, metric::minkowski{5}, kernel::laplace{1}, kernel::laplace{by}, {0, 0});
  // NaN and infinities of the input are not hidden.
  const auto x = matrix<double, Exec>(2, 1, {not_a_number, 1}), z = matrix<double, Exec>(1, 1, {0}),
             g = matrix<double, Exec>(2, 1, {1, infinity}), dx = matrix<double, Exec>(2, 1);
  rigel::kernel_matrix_gradient(Exec(), x, z, g, metric::euclidean{}, kernel::gaussian{1}, dx, rigel::no_gradient);
  CHECK(std::isnan(support::values(dx)[0]));
  CHECK(support::values(dx)[1] == -infinity);
}

TEST_CASE_TEMPLATE("kernel_matrix_gradient: of vectors, of X with itself, one of the results", Exec, RIGEL_TEST_SPACES) {
  const Operands<Exec> o;
  const Exec exec;
  const metric::euclidean euclid;
  const kernel::matern52 k{1.25};
  const rigel::KernelMatrixGradientOptions blocks{.block_rows = 3};
  SUBCASE("vectors") {
    const Values left = random_points<double>(o.batches, o.m, 24), right = random_points<double>(1, o.n, 25);
    Values product;
    for (int l = 0; l < o.batches; ++l)
      for (int i = 0; i < o.m; ++i)
        for (int j = 0; j < o.n; ++j) product.push_back(left[l * o.m + i] * right[j]);
    support::fill(o.g, product);
    const auto by_vectors = batch<double, Exec>(o.batches, o.m, o.k),
               z_by_vectors = batch<double, Exec>(o.batches, o.n, o.k);
    const Kokkos::View<double*, typename Exec::memory_space> h_by_vectors("dh", o.batches);
    const rigel::OuterProduct outer{matrix<double, Exec>(o.batches, o.m, left), numbers<Exec>(right)};
    rigel::kernel_matrix_gradient(exec, o.x, o.z, outer, euclid, k, by_vectors, z_by_vectors, kernel::matern52{h_by_vectors},
                                  blocks);
    rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, k, o.dx, o.dz, kernel::matern52{o.dh}, blocks);
    CHECK(near(support::values(by_vectors), support::values(o.dx)));
    CHECK(near(support::values(z_by_vectors), support::values(o.dz)));
    CHECK(near(support::values(h_by_vectors), support::values(o.dh)));
  }
  SUBCASE("X with itself") {
    const Values square = random_points<double>(o.m, o.m, 26);
    const auto g = matrix<double, Exec>(o.m, o.m, square), first = matrix<double, Exec>(o.m, o.k),
               second = matrix<double, Exec>(o.m, o.k), both = matrix<double, Exec>(o.m, o.k, Values(o.m * o.k, 5));
    const auto by = number<Exec>(0), by_self = number<Exec>(0);
    for (const std::int64_t rows : {0, 4}) {
      rigel::kernel_matrix_gradient(exec, o.x, o.x, g, euclid, k, first, second, kernel::matern52{by}, {.block_rows = rows});
      rigel::kernel_matrix_gradient(exec, o.x, g, euclid, k, both, kernel::matern52{by_self}, {.block_rows = rows});
      CHECK(near(support::values(both), sum(support::values(first), support::values(second))));
      CHECK(near(support::values(by), support::values(by_self)));
      const std::size_t bytes = rigel::kernel_matrix_gradient_workspace_size(
          exec, o.x, g, euclid, k, both, kernel::matern52{by_self}, {.block_rows = rows});
      const Kokkos::View<std::byte*, typename Exec::memory_space> memory("memory", bytes + 256);
      auto* const base = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256) % 256;
      const Values pooled = support::values(both);
      rigel::kernel_matrix_gradient(exec, o.x, g, euclid, k, both, kernel::matern52{by_self},
                                    {.block_rows = rows, .workspace = {.data = base, .bytes = bytes}});
      CHECK(support::values(both) == pooled);
    }
  }
  SUBCASE("one of the results") {
    rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, k, o.dx, o.dz, kernel::matern52{o.dh});
    const Values by_x = support::values(o.dx), by_z = support::values(o.dz), by_h = support::values(o.dh);
    for (const auto& view : {o.dx, o.dz}) support::fill(view, Values(view.size(), 3));
    rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, k, o.dx, rigel::no_gradient);
    CHECK(support::values(o.dx) == by_x);
    CHECK(support::values(o.dz) == Values(o.dz.size(), 3));
    rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, k, rigel::no_gradient, o.dz);
    CHECK(support::values(o.dz) == by_z);
    support::fill(o.dh, Values(o.batches, 3));
    rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, k, rigel::no_gradient, rigel::no_gradient,
                                  kernel::matern52{o.dh});
    CHECK(support::values(o.dh) == by_h);
  }
  SUBCASE("a hyperparameter of several") {
    const kernel::polynomial cubic{3, 0.5, 2};
    const Kokkos::View<float*, typename Exec::memory_space> offset("offset", o.batches);
    rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, metric::inner_product{}, cubic, rigel::no_gradient,
                                  rigel::no_gradient, kernel::polynomial{0, 0, offset});
    for (int l = 0; l < o.batches; ++l) {
      const Gradients expected =
          gradients<float>({0, of_polynomial, {3, 0.5L, 2}}, o.x_values.data(), o.z_values.data() + l * o.n * o.k,
                           o.g_values.data() + l * o.m * o.n, o.m, o.n, o.k);
      CHECK(off_bounds({support::values(offset)[l]}, {expected.h[2]}) == 0);
    }
  }
}

TEST_CASE_TEMPLATE("kernel_matrix_gradient: sums that go on, bits, epsilon", Exec, RIGEL_TEST_SPACES) {
  const Operands<Exec> o;
  const Exec exec;
  const auto check = [&](const auto& metric, const auto& kernel, const auto& dk) {
    const auto call = [&](rigel::KernelMatrixGradientOptions options) {
      rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, metric, kernel, o.dx, o.dz, dk, options);
    };
    call({});
    const Values by_x = support::values(o.dx), by_z = support::values(o.dz), by_h = support::values(o.dh);
    call({});
    CHECK(support::values(o.dx) == by_x);
    CHECK(support::values(o.dz) == by_z);
    CHECK(support::values(o.dh) == by_h);
    for (const std::int64_t rows : {0, 4}) {
      for (const auto& view : {o.dx, o.dz}) support::fill(view, Values(view.size(), 2));
      support::fill(o.dh, Values(o.batches, 2));
      call({.accumulate = true, .block_rows = rows});
      CHECK(near(support::values(o.dx), sum(by_x, Values(by_x.size(), 2))));
      CHECK(near(support::values(o.dz), sum(by_z, Values(by_z.size(), 2))));
      CHECK(near(support::values(o.dh), sum(by_h, Values(by_h.size(), 2))));
    }
  };
  check(metric::euclidean{}, kernel::laplace{1.5}, kernel::laplace{o.dh});
  check(metric::minkowski{1.5}, kernel::gaussian{1.5}, kernel::gaussian{o.dh});
  check(metric::inner_product{}, kernel::sigmoid{0.5}, kernel::sigmoid{o.dh, 0});
  rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, metric::euclidean{}, kernel::gaussian{1}, o.dx, o.dz, {.epsilon = 3});
  CHECK(support::values(o.dx) == Values(o.dx.size(), 0));
  CHECK(support::values(o.dz) == Values(o.dz.size(), 0));
}

TEST_CASE_TEMPLATE("kernel_matrix_gradient: layouts, the last index for batches", Exec, RIGEL_TEST_SPACES) {
  const Operands<Exec> o;
  const auto check = [&](const auto& metric, const auto& kernel) {
    rigel::kernel_matrix_gradient(Exec(), o.x, o.z, o.g, metric, kernel, o.dx, o.dz);
    const Values by_x = support::values(o.dx), by_z = support::values(o.dz);
    const auto z = support::batch_of<double, Exec, Kokkos::LayoutStride>(o.batches, o.n, o.k),
               dx = support::batch_of<double, Exec, Kokkos::LayoutStride>(o.batches, o.m, o.k);
    const auto g = support::batch_of<double, Exec, Kokkos::LayoutLeft>(o.batches, o.m, o.n),
               dz = support::batch_of<double, Exec, Kokkos::LayoutLeft>(o.batches, o.n, o.k);
    support::put(z, o.z_values);
    support::put(g, o.g_values);
    rigel::kernel_matrix_gradient(Exec(), o.x, z, g, metric, kernel, dx, dz);
    CHECK(near(support::get(dx), by_x));
    CHECK(near(support::get(dz), by_z));
    const auto g_last = batch<double, Exec>(o.m, o.n, 1), z_last = batch<double, Exec>(o.n, o.k, 1),
               dx_last = batch<double, Exec>(o.m, o.k, 1);
    support::fill(g_last, Values(o.g_values.begin(), o.g_values.begin() + o.m * o.n));
    support::fill(z_last, Values(o.z_values.begin(), o.z_values.begin() + o.n * o.k));
    rigel::kernel_matrix_gradient(Exec(), o.x, z_last, g_last, metric, kernel, dx_last, rigel::no_gradient,
                                  {.batch = rigel::Batch::last});
    CHECK(near(support::values(dx_last), Values(by_x.begin(), by_x.begin() + o.m * o.k)));
  };
  check(metric::euclidean{}, kernel::gaussian{1});
  check(metric::manhattan{}, kernel::laplace{2});
  check(metric::inner_product{}, kernel::polynomial{2});
}

TEST_CASE_TEMPLATE("kernel_matrix_gradient: extents of 0", Exec, RIGEL_TEST_SPACES) {
  const auto run = [&](int m, int n, int k, const Values& by_x, const Values& by_z) {
    const auto check = [&](const auto& metric, const auto& kernel, const auto& make, double by) {
      const auto dx = matrix<double, Exec>(m, k, Values(m * k, 7)), dz = matrix<double, Exec>(n, k, Values(n * k, 7));
      const auto dh = number<Exec>(7);
      rigel::kernel_matrix_gradient(Exec(), matrix<double, Exec>(m, k), matrix<double, Exec>(n, k),
                                    matrix<double, Exec>(m, n, Values(m * n, 1)), metric, kernel, dx, dz, make(dh));
      CHECK(support::values(dx) == by_x);
      CHECK(support::values(dz) == by_z);
      CHECK(support::values(dh)[0] == by);
    };
    check(metric::euclidean{}, kernel::laplace{1}, [](const auto& h) { return kernel::laplace{h}; }, 0);
    // By the offset, of products 0: 2·(0 + 1)
    check(
        metric::inner_product{}, kernel::polynomial{2}, [](const auto& h) { return kernel::polynomial{0, 0, h}; },
        2. * m * n);
  };
  run(0, 3, 2, {}, Values(6, 0));
  run(3, 0, 2, Values(6, 0), {});
  run(3, 2, 0, {}, {});
  const auto none = batch<double, Exec>(0, 3, 2), g = batch<double, Exec>(0, 3, 3);
  rigel::kernel_matrix_gradient(Exec(), none, none, g, metric::euclidean{}, kernel::laplace{1}, none, none);
}

TEST_CASE_TEMPLATE("kernel_matrix_gradient: workspaces", Exec, RIGEL_TEST_SPACES) {
  const Operands<Exec> o;
  const auto check = [&](const auto& metric, const auto& kernel, const auto& dk) {
    const Exec exec;
    rigel::KernelMatrixGradientOptions options{.block_rows = 4};
    rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, metric, kernel, o.dx, o.dz, dk, options);
    const Values by_x = support::values(o.dx), by_z = support::values(o.dz), by_h = support::values(o.dh);
    const std::size_t bytes =
        rigel::kernel_matrix_gradient_workspace_size(exec, o.x, o.z, o.g, metric, kernel, o.dx, o.dz, dk, options);
    const Kokkos::View<std::byte*, typename Exec::memory_space> memory("memory", bytes + 256);
    auto* const base = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256) % 256;
    options.workspace = {.data = base, .bytes = bytes - 1};
    for (const auto& view : {o.dx, o.dz}) support::fill(view, Values(view.size(), 3));
    const auto call = [&] { rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, metric, kernel, o.dx, o.dz, dk, options); };
    CHECK(caught(call).lacks({"kernel_matrix_gradient: the workspace has", "expected"}) == "");
    CHECK(support::values(o.dx) == Values(o.dx.size(), 3));
    options.workspace.bytes = bytes;
    Kokkos::deep_copy(memory, std::byte{0x5a});
    call();
    const auto after = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), memory);
    for (std::size_t i = 0; i < memory.size(); ++i)  // nothing before or after it is written
      if (memory.data() + i < base || memory.data() + i >= base + bytes) CHECK(after(i) == std::byte{0x5a});
    CHECK(support::values(o.dx) == by_x);
    CHECK(support::values(o.dz) == by_z);
    CHECK(support::values(o.dh) == by_h);
  };
  check(metric::euclidean{}, kernel::gaussian{1}, kernel::gaussian{o.dh});
  check(metric::minkowski{3}, kernel::gaussian{1}, kernel::gaussian{o.dh});
  check(metric::inner_product{}, kernel::polynomial{2}, kernel::polynomial{0, o.dh, 0});
}

// options.may_cancel: matrix products, against sums in double, which are added to what is in dX and dZ. The bound is docs/numerics.md's
// for the kernel, and 1000u for the weights. The last of two blocks of X has so few rows that its part of dZ is sums of differences.
TEST_CASE_TEMPLATE("kernel_matrix_gradient: products of points", Exec, RIGEL_TEST_SPACES) {
  if (rigel::detail::space_of<Exec> != rigel::Space::cuda) return support::skip("tensor cores: a host has none");
  const Exec exec;
  constexpr int batches = 2, m = 512, n = 4096, k = 512;
  constexpr double h = 16;
  const Values xs = random_points<float>(batches * m, k, 41), zs = random_points<float>(batches * n, k, 42),
               gs = random_points<float>(batches * m, n, 43);
  const auto x = batch<float, Exec>(batches, m, k, xs), z = batch<float, Exec>(batches, n, k, zs),
             g = batch<float, Exec>(batches, m, n, gs), dx = batch<float, Exec>(batches, m, k, Values(batches * m * k, 0.5)),
             dz = batch<float, Exec>(batches, n, k, Values(std::size_t{batches} * n * k, 0.5));
  const rigel::KernelMatrixGradientOptions options{.accumulate = true, .block_rows = 384, .may_cancel = true};
  const std::string text = rigel::explain_kernel_matrix_gradient(exec, x, z, g, metric::euclidean{}, kernel::gaussian{h}, dx,
                                                                 dz, rigel::no_gradient, options);
  CAPTURE(text);
  CHECK(text.find("* cuda.gradient.euclidean.f32.of_points.promoted") != std::string::npos);
  rigel::kernel_matrix_gradient(exec, x, z, g, metric::euclidean{}, kernel::gaussian{h}, dx, dz, rigel::no_gradient,
                                options);
  // The gradient by row i of `points`, from those of `others`: weight(i, j) is G's.
  const auto worst_of = [&](const Values& found, const Values& points, int rows, const Values& others, int count,
                            const auto& upstream) {
    double worst = 0;
    for (int l = 0; l < batches; ++l) {
      const auto row = [&](const Values& v, int all, int i) { return &v[(static_cast<std::size_t>(l) * all + i) * k]; };
      Values means(k);
      for (int j = 0; j < count; ++j)
        for (int c = 0; c < k; ++c) means[c] += row(others, count, j)[c] / count;
      for (int i = 3; i < rows; i += rows / 4) {
        const double* const at = row(points, rows, i);
        Values sums(k, 0.5), sizes(k, 0.5);
        for (int j = 0; j < count; ++j) {
          const double* const other = row(others, count, j);
          double squared = 0;
          for (int c = 0; c < k; ++c) squared += (at[c] - other[c]) * (at[c] - other[c]);
          const double weight = -upstream(l, i, j) * std::exp(-squared / (2 * h * h)) / (h * h);
          for (int c = 0; c < k; ++c) {
            sums[c] += weight * (at[c] - other[c]);
            // A block's mean is within 0.25 of that of all: of 128 numbers up to 1, 0.05 is one standard deviation.
            sizes[c] += std::fabs(weight) * (std::fabs(at[c] - means[c]) + std::fabs(other[c] - means[c]) + 0.5);
          }
        }
        for (int c = 0; c < k; ++c)
          worst = support::larger(
              worst, std::fabs(row(found, rows, i)[c] - sums[c]) / (sizes[c] * (323 + count / 32.0 + 1000) * 0x1p-24));
      }
    }
    return worst;
  };
  CHECK(worst_of(support::values(dx), xs, m, zs, n,
                 [&](int l, int i, int j) { return gs[(static_cast<std::size_t>(l) * m + i) * n + j]; }) <= 1);
  CHECK(worst_of(support::values(dz), zs, n, xs, m,
                 [&](int l, int i, int j) { return gs[(static_cast<std::size_t>(l) * m + j) * n + i]; }) <= 1);
}

TEST_CASE_TEMPLATE("kernel_matrix_gradient: explained", Exec, RIGEL_TEST_SPACES) {
  const Operands<Exec> o;
  const Exec exec;
  const auto check = [&](const auto& metric, const auto& kernel, const auto& dk, const std::vector<const char*>& parts) {
    const auto bytes = rigel::kernel_matrix_gradient_workspace_size(exec, o.x, o.z, o.g, metric, kernel, o.dx, o.dz, dk);
    const auto text = rigel::explain_kernel_matrix_gradient(exec, o.x, o.z, o.g, metric, kernel, o.dx, o.dz, dk);
    CAPTURE(text);
    CHECK(text.starts_with("kernel_matrix_gradient, " + std::to_string(bytes) + " bytes of workspace, blocks of 11 rows\n"));
    for (const char* part : parts) CHECK(text.find(part) != std::string::npos);
    const auto legend = text.find("(names of host kernels");
    CHECK((legend != std::string::npos) == (rigel::detail::space_of<Exec> != rigel::Space::cuda));
    CHECK(text.rfind("(names of host kernels") == legend);
    if (legend != std::string::npos) CHECK(text.find('\n', legend) == text.size() - 1);
  };
  check(metric::euclidean{}, kernel::gaussian{1}, kernel::gaussian{o.dh},
        {"\ndistances: kernel_matrix_gradient l2_squared", "\ndZ: kernel_matrix_gradient euclidean",
         "\ndX: kernel_matrix_gradient euclidean"});
  check(metric::inner_product{}, kernel::polynomial{2}, kernel::polynomial{0, o.dh, 0},
        {"\nproducts: kernel_matrix_gradient plus_times", "\ndZ: kernel_matrix_gradient plus_times",
         "\ndX: kernel_matrix_gradient plus_times"});
  const auto none = batch<double, Exec>(0, 3, 2), g = batch<double, Exec>(0, 3, 3);
  const auto of_none = rigel::explain_kernel_matrix_gradient(exec, none, g, metric::euclidean{}, kernel::laplace{1}, none,
                                                             rigel::no_gradient);
  CHECK(of_none.find("nothing to compute") != std::string::npos);
}

namespace {

/// A kernel of the next test alone, on hosts, for sums of 3 terms of f64 that are added to C: predicted to be fast, and with more
/// workspace than all others.
void register_sums_that_go_on() {
  static const bool once = [] {
    using Kernel = rigel::Kernel<rigel::Contraction>;
    Kernel kernel;
    kernel.info = rigel::detail::info_of<rigel::plus_times<double>>("sums_that_go_on", {}, {}, rigel::host_spaces);
    kernel.info.promises = rigel::Promise::repeatable;
    kernel.info.accuracy = {2, 1};
    kernel.supports = [](const Kernel&, const rigel::Contraction& p) -> rigel::Status {
      if (p.accumulate && p.k == 3 && p.m == 17 && p.n == 19) return {};
      return {rigel::Decline::extents, "is for a test"};
    };
    kernel.cost = [](const Kernel&, const rigel::Contraction&, rigel::Plan&) { return 1e-12; };
    kernel.workspace = [](const Kernel&, const rigel::Contraction&, const rigel::Plan&) {
      return rigel::WorkspaceSize{.bytes = 1 << 20};
    };
    kernel.run = [](const Kernel&, const rigel::Contraction& p, const rigel::Plan&, const rigel::Workspace& workspace) {
      std::fill_n(static_cast<char*>(workspace.data), 1 << 20, char{1});
      const auto at = [](const rigel::Operand& o, std::int64_t i, std::int64_t j) -> double& {
        return static_cast<double*>(o.data)[i * o.row_stride + j * o.column_stride];
      };
      for (std::int64_t m = 0; m < p.m; ++m)
        for (std::int64_t n = 0; n < p.n; ++n)
          for (std::int64_t k = 0; k < p.k; ++k) at(p.c, m, n) += at(p.a, m, k) * at(p.b, k, n);
    };
    rigel::register_kernel(kernel);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

// The second of two blocks of one height adds to dZ, by a kernel that the first one does not use.
TEST_CASE("kernel_matrix_gradient: a workspace for blocks that add") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  register_sums_that_go_on();
  const Exec exec;
  constexpr int m = 6, n = 17, k = 19;
  const auto x = matrix<double, Exec>(m, k, random_points<double>(m, k, 31)),
             z = matrix<double, Exec>(n, k, random_points<double>(n, k, 32)),
             g = matrix<double, Exec>(m, n, random_points<double>(m, n, 33)), dx = matrix<double, Exec>(m, k),
             dz = matrix<double, Exec>(n, k);
  const auto call = [&](rigel::KernelMatrixGradientOptions options) {
    rigel::kernel_matrix_gradient(exec, x, z, g, metric::inner_product{}, kernel::polynomial{1}, dx, dz, options);
    return support::values(dz);
  };
  const Values at_once = call({});
  CHECK(near(call({.block_rows = 3}), at_once));
}

TEST_CASE_TEMPLATE("kernel_matrix_gradient refuses bad input", Exec, RIGEL_TEST_SPACES) {
  const Operands<Exec> o;
  const Exec exec;
  const metric::euclidean euclid;
  const kernel::gaussian k{1};
  support::fill(o.dx, Values(o.dx.size(), 3));
  const auto refused = [&](std::initializer_list<const char*> texts, const auto& call) {
    const support::Caught error = caught(call);
    CHECK(error.code == rigel::Code::invalid_argument);
    CHECK(error.lacks(texts) == "");
    CHECK(support::values(o.dx) == Values(o.dx.size(), 3));
  };
  const auto none = rigel::no_gradient;
  refused({"kernel_matrix_gradient: Z 'short' is 7x3", "expected 4 columns"}, [&] {
    rigel::kernel_matrix_gradient(exec, o.x, matrix<double, Exec>(7, 3, {}, "short"), o.g, euclid, k, o.dx, none);
  });
  refused({"G 'flat' is 7x11", "expected 11x7 (M x N)", "X 'x' 11x4", "Z 'z' 2x7x4"}, [&] {
    rigel::kernel_matrix_gradient(exec, o.x, o.z, matrix<double, Exec>(7, 11, {}, "flat"), euclid, k, o.dx, none);
  });
  refused({"g 'numbers' is 7x1", "expected 11x1 (M numbers)"}, [&] {
    const auto v = numbers<Exec>(Values(7));
    rigel::kernel_matrix_gradient(exec, o.x, o.z, rigel::OuterProduct{v, v}, euclid, k, o.dx, none);
  });
  refused({"v 'numbers' is 1x11", "expected 1x7 (N numbers)"}, [&] {
    const auto v = numbers<Exec>(Values(11));
    rigel::kernel_matrix_gradient(exec, o.x, o.z, rigel::OuterProduct{v, v}, euclid, k, o.dx, none);
  });
  refused({"G 'many' is 3x11x7", "expected 2 batches or one"}, [&] {
    rigel::kernel_matrix_gradient(exec, o.x, o.z, batch<double, Exec>(3, 11, 7, {}, "many"), euclid, k, o.dx, none);
  });
  refused({"dX 'one' is 11x4", "expected 2 batches"}, [&] {
    rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, k, matrix<double, Exec>(11, 4, {}, "one"), none);
  });
  refused({"dZ 'dx' is 2x11x4", "expected 7x4 (N x K)"},
          [&] { rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, k, none, o.dx); });
  refused({"dZ 'z' 2x7x4 overlaps Z 'z' 2x7x4"},
          [&] { rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, k, o.dx, o.z); });
  refused({"the gradient by bandwidth 'numbers' is 3x1x1", "expected 2 batches, as many"}, [&] {
    rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, k, o.dx, none, kernel::gaussian{numbers<Exec>({1, 2, 3})});
  });
  refused({"bandwidth 'numbers'", "expected 2 batches or one"}, [&] {
    rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, kernel::gaussian{numbers<Exec>({1, 2, 3})}, o.dx, none);
  });
  refused({"the kernel's bandwidth is -1, expected a positive number"},
          [&] { rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, kernel::gaussian{-1}, o.dx, none); });
  for (const double p : {0., -1., infinity, not_a_number})
    refused({"kernel_matrix_gradient: minkowski's p is", "expected a finite number above 0"},
            [&] { rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, metric::minkowski{p}, k, o.dx, none); });
  refused({"options.epsilon is -1", "0 or more"},
          [&] { rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, k, o.dx, none, {.epsilon = -1}); });
  refused({"options.block_rows is -1", "0 or more"},
          [&] { rigel::kernel_matrix_gradient(exec, o.x, o.z, o.g, euclid, k, o.dx, none, {.block_rows = -1}); });
}
