// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums that kernels may compute several k at a time: exactly for bytes, and in 16-bit precision for 16-bit floats, if the
// caller allows it.
#include <rigel/contract.hpp>

#include <tests/support/error.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace {

constexpr int m = 5, n = 7;

// A's rows and B's columns alternate between the smallest and the largest byte, so every term is `term` or 0.
template <class S, class Exec>
void check_extremes(double term) {
  using T = typename S::element;
  constexpr double least = std::numeric_limits<T>::lowest(), most = std::numeric_limits<T>::max();
  const Exec exec;
  for (const int k : {0, 1, 3, 4, 5, 31, 32, 33, 64, 257}) {
    CAPTURE(k);
    std::vector<double> a(m * k), b(k * n), expected(m * n);
    for (int i = 0; i < m; ++i)
      for (int l = 0; l < k; ++l) a[i * k + l] = i % 2 ? most : least;
    for (int l = 0; l < k; ++l)
      for (int j = 0; j < n; ++j) b[l * n + j] = j % 2 ? most : least;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) expected[i * n + j] = i % 2 == j % 2 ? 0 : term * k;
    for (const auto& info : support::kernels_on(exec, S::name, rigel::scalar_of<T>)) {
      CAPTURE(info.name);
      const auto c = support::matrix<std::int32_t, Exec>(m, n);
      const bool ran = support::ran(info, [&] {
        rigel::contract(exec, S{}, support::matrix<T, Exec>(m, k, a), support::matrix<T, Exec>(k, n, b), c,
                        rigel::epilogue::Program{}, {.kernel = info.name});
      });
      if (ran) CHECK(support::values(c) == expected);
    }
  }
}

// One product of halves, and its result in a given precision.
template <class S, class Exec>
struct Product {
  int k;
  std::vector<double> a, b;
  std::vector<double> operator()(const rigel::ContractOptions& options, rigel::KernelInfo* info = nullptr) const {
    using T = typename S::element;
    const auto c = support::matrix<float, Exec>(m, n);
    const auto with = [&](const auto& use) {
      use(Exec{}, S{}, support::matrix<T, Exec>(m, k, a), support::matrix<T, Exec>(k, n, b), c, rigel::epilogue::Program{},
          options);
    };
    if (info)
      with([&](const auto&... arguments) {
        rigel::detail::with_problem(arguments..., [&](const rigel::Contraction& p) { *info = rigel::select(p).info; });
      });
    with([](const auto&... arguments) { rigel::contract(arguments...); });
    return support::values(c);
  }
};

constexpr rigel::Precision operands = rigel::Precision::operands;

// `roundoff` is the operands'; a partial sum has `roundings` of them. `kernel` is the one that needs the permission.
template <class S, class Exec>
void check_precision(double roundoff, int roundings, const std::string& kernel) {
  using T = typename S::element;
  constexpr int k = 1001;
  support::Random random(7);
  Product<S, Exec> product{k, std::vector<double>(m * k), std::vector<double>(k * n)};
  for (auto* list : {&product.a, &product.b})
    for (double& v : *list) v = support::to_double(support::number<T>(random.uniform(-4, 4)));
  const bool on_gpu = rigel::detail::space_of<Exec> == rigel::Space::cuda;

  // Without the permission the kernel is not chosen, and a call by its name is refused.
  rigel::KernelInfo usual;
  const auto full = product({}, &usual);
  CHECK(usual.precision == rigel::Precision::accumulator);
  if (on_gpu)
    CHECK(support::caught([&] { product({.kernel = kernel}); }).lacks({kernel.c_str(), "options.precision"}) == "");

  const auto rounded = product({.precision = operands, .kernel = on_gpu ? kernel : ""});
  if (!on_gpu) {
    CHECK(rounded == full);
    return;
  }
  CHECK(rounded != full);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double exact = 0;
      for (int l = 0; l < k; ++l) {
        const double d = product.a[i * k + l] - product.b[l * n + j];
        exact += std::is_same_v<S, rigel::l1<T>> ? std::fabs(d) : d * d;
      }
      const double bound = roundings * roundoff / (1 - roundings * roundoff) + (k + 2) * 0x1p-24;
      CHECK(std::fabs(rounded[i * n + j] - exact) <= bound * exact);
    }
  CHECK(product({.precision = operands, .kernel = kernel}) == rounded);
}

// Three matrices A, one B for all of them, with rows of A and columns of B `pitch` bytes apart, the first at `first`: some kernels use such
// bytes as words without a copy.
template <class S, class Exec>
void check_in_place(int k, int pitch, int first) {
  using T = typename S::element;
  constexpr int batches = 3, rows = 70, columns = 45;
  const Exec exec;
  support::Random random(11);
  const auto bytes = [&](int count) {
    std::vector<double> list(first + count);
    for (double& v : list) v = support::to_double(support::number<T>(std::floor(random.uniform(-128, 256))));
    return list;
  };
  const std::vector<double> a = bytes(batches * rows * pitch), b = bytes(columns * pitch);
  const auto stored = [&](const std::vector<double>& values) {
    const Kokkos::View<T*, typename Exec::memory_space> memory("bytes", values.size());
    support::fill(memory, values);
    return memory;
  };
  const auto of_a = stored(a), of_b = stored(b);
  using Strided = Kokkos::View<T***, Kokkos::LayoutStride, typename Exec::memory_space>;
  const Strided a_view(of_a.data() + first, Kokkos::LayoutStride(batches, rows * pitch, rows, pitch, k, 1)),
      b_view(of_b.data() + first, Kokkos::LayoutStride(1, columns * pitch, k, 1, columns, pitch));
  std::vector<double> expected;
  for (int l = 0; l < batches; ++l)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        double sum = 0;
        for (int at = 0; at < k; ++at) {
          const double d = a[first + (l * rows + i) * pitch + at] - b[first + j * pitch + at];
          sum += std::is_same_v<S, rigel::l1<T>> ? std::fabs(d) : d * d;
        }
        expected.push_back(sum);
      }
  CAPTURE(k);
  CAPTURE(pitch);
  CAPTURE(first);
  for (const auto& info : support::kernels_on(exec, rigel::semiring_name<S>(), rigel::scalar_of<T>, rigel::Scalar::i32)) {
    CAPTURE(info.name);
    const auto c = support::batch<std::int32_t, Exec>(batches, rows, columns);
    if (support::ran(info, [&] {
          rigel::contract(exec, S{}, a_view, b_view, c, rigel::epilogue::Program{},
                          {.precision = info.precision, .kernel = info.name});
        }))
      CHECK(support::values(c) == expected);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("bytes: the largest differences, through every kernel", Exec, RIGEL_TEST_SPACES) {
  check_extremes<rigel::l1<std::uint8_t>, Exec>(255);
  check_extremes<rigel::l1<std::int8_t>, Exec>(255);
  check_extremes<rigel::l2_squared<std::uint8_t>, Exec>(65025);
  check_extremes<rigel::l2_squared<std::int8_t>, Exec>(65025);
}

TEST_CASE_TEMPLATE("precision of the operands: within its bound, and asked for", Exec, RIGEL_TEST_SPACES) {
  check_precision<rigel::l1<rigel::half>, Exec>(0x1p-11, 4, "cuda.simt.l1.f16.words.128x64x16");
}

// 16376 is a quarter of the largest half, 65504: four such terms are finite.
TEST_CASE_TEMPLATE("precision of the operands: its largest terms", Exec, RIGEL_TEST_SPACES) {
  constexpr int k = 64;
  const Product<rigel::l1<rigel::half>, Exec> product{k, std::vector<double>(m * k, 8188),
                                                      std::vector<double>(k * n, -8188)};
  rigel::KernelInfo info;
  const std::string name = rigel::detail::space_of<Exec> == rigel::Space::cuda ? "cuda.simt.l1.f16.words" : "";
  CHECK(product({.precision = operands, .kernel = name}, &info) == std::vector<double>(m * n, 16376. * k));
  if (!name.empty()) CHECK(info.precision == operands);
}

TEST_CASE_TEMPLATE("bytes that are words as they are, and bytes that are not", Exec, RIGEL_TEST_SPACES) {
  struct Place {
    int k, pitch, first;
  };
  for (const Place& p : {Place{64, 64, 0}, Place{64, 96, 16}, Place{96, 112, 0}, Place{64, 96, 4}, Place{64, 72, 0},
                         Place{60, 64, 0}, Place{0, 16, 0}}) {
    check_in_place<rigel::l1<std::uint8_t>, Exec>(p.k, p.pitch, p.first);
    check_in_place<rigel::l1<std::int8_t>, Exec>(p.k, p.pitch, p.first);
    check_in_place<rigel::l2_squared<std::uint8_t>, Exec>(p.k, p.pitch, p.first);
  }
}
