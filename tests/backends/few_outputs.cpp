// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Few outputs, small to large K, any layout: calls for which a kernel chooses at run time how to divide a block, and K with it.
// Small integers, so that every order must give the exact sums.
#include <rigel/contract.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/memory.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();

// A vector's elements in an execution space's memory.
template <class Exec>
struct Memory {
  Kokkos::View<float*, typename Exec::memory_space> view;

  explicit Memory(const std::vector<float>& values)
      : view(Kokkos::view_alloc("few outputs", Kokkos::WithoutInitializing), values.size()) {
    support::copy_in<Exec>(view.data(), values.data(), values.size() * sizeof(float));
  }
  /// A matrix of rows × columns in it, row-major or column-major, with `gap` unused elements after each element.
  auto matrix(std::size_t rows, std::size_t columns, bool by_rows, std::size_t gap = 0) const {
    const std::size_t one = gap + 1, line = (by_rows ? columns : rows) * one + gap;
    return Kokkos::View<float**, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(
        view.data(), Kokkos::LayoutStride(rows, by_rows ? line : one, columns, by_rows ? one : line));
  }
};

struct Extents {
  int m, n, k;
};
// One output and many, odd and even extents, and K from 1 to more than one block takes at a time, and so long that several blocks
// share it; also the largest M × N and K that the kernels for the smallest calls take, and one more.
constexpr Extents shapes[] = {{1, 1, 1},     {1, 1, 20011}, {2, 1, 33},   {1, 47, 68},   {93, 1, 10},   {3, 163, 2999},
                              {67, 3, 1500}, {5, 11, 1585}, {7, 26, 129}, {300, 2, 517}, {13, 135, 86}, {1, 300, 5},
                              {255, 257, 1}, {256, 256, 1}, {1, 3, 2048}, {1, 3, 2049},  {1, 2, 74504}};

float a_value(int i, int k) { return static_cast<float>((5 * i + 3 * k) % 7 - 3); }
float b_value(int k, int j) { return static_cast<float>((2 * j + 9 * k) % 5 - 2); }

// max_k a − b, whose ⊗ does not commute.
struct LargestDifference {
  using element = float;
  using accumulator = float;
  static constexpr bool exact = true;
  KOKKOS_FUNCTION static float identity() { return -Kokkos::Experimental::infinity_v<float>; }
  KOKKOS_FUNCTION static float multiply(float a, float b) { return a - b; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x < y ? y : x; }
};

// The last k of the largest a · b.
struct LastOfLargest {
  using element = float;
  struct accumulator {
    float value;
    std::int32_t k;
  };
  static constexpr bool exact = true;
  KOKKOS_FUNCTION static accumulator identity() { return {-Kokkos::Experimental::infinity_v<float>, -1}; }
  KOKKOS_FUNCTION static accumulator multiply(float a, float b, std::int64_t k) {
    return {a * b, static_cast<std::int32_t>(k)};
  }
  KOKKOS_FUNCTION static accumulator add(accumulator x, accumulator y) {
    return x.value > y.value || (x.value == y.value && x.k > y.k) ? x : y;
  }
  KOKKOS_FUNCTION static float result(accumulator x) { return static_cast<float>(x.k); }
};

// The kernels for a functor to run: the chosen one, and on a device the one that cuts K.
template <class Exec, class S>
std::vector<std::string> kernels_for() {
  std::vector<std::string> kernels = {""};
#if RIGEL_BACKEND_PORTABLE
  if (!support::on_host<Exec>) kernels.push_back("portable." + std::string(rigel::semiring_name<S>()) + ".f32.split_k");
#endif
  return kernels;
}

// The result of a call with `before` as C's initial value, row by row.
template <class Exec, class S>
std::vector<float> product(const S& s, Extents e, bool a_by_rows, bool b_by_rows, bool c_by_rows, std::size_t gap,
                           const rigel::ContractOptions& options) {
  const auto size = [&](int rows, int columns, bool by_rows) {
    const std::size_t lines = by_rows ? rows : columns, length = by_rows ? columns : rows;
    return lines * (length * (gap + 1) + gap);
  };
  const auto place = [&](int i, int j, int rows, int columns, bool by_rows) {
    const std::size_t line = by_rows ? i : j, at = by_rows ? j : i, length = by_rows ? columns : rows;
    return line * (length * (gap + 1) + gap) + at * (gap + 1);
  };
  std::vector<float> a(size(e.m, e.k, a_by_rows), none), b(size(e.k, e.n, b_by_rows), none),
      c(size(e.m, e.n, c_by_rows), 0.25f);
  for (int i = 0; i < e.m; ++i)
    for (int k = 0; k < e.k; ++k) a[place(i, k, e.m, e.k, a_by_rows)] = a_value(i, k);
  for (int k = 0; k < e.k; ++k)
    for (int j = 0; j < e.n; ++j) b[place(k, j, e.k, e.n, b_by_rows)] = b_value(k, j);
  for (int i = 0; i < e.m; ++i)
    for (int j = 0; j < e.n; ++j) c[place(i, j, e.m, e.n, c_by_rows)] = static_cast<float>(i - j);
  const Memory<Exec> a_memory(a), b_memory(b), c_memory(c);
  rigel::contract(Exec{}, s, a_memory.matrix(e.m, e.k, a_by_rows, gap), b_memory.matrix(e.k, e.n, b_by_rows, gap),
                  c_memory.matrix(e.m, e.n, c_by_rows, gap), rigel::epilogue::Program{}, options);
  Exec{}.fence();
  support::copy_out<Exec>(c.data(), c_memory.view.data(), c.size() * sizeof(float));
  std::vector<float> result;
  for (int i = 0; i < e.m; ++i)
    for (int j = 0; j < e.n; ++j) {
      float& value = c[place(i, j, e.m, e.n, c_by_rows)];
      result.push_back(value);
      value = 0.25f;
    }
  CHECK(c == std::vector<float>(c.size(), 0.25f));  // nothing between the elements was written
  return result;
}

/// Checks every shape that a kernel covers, and returns how many results it gave.
template <class Exec, class S>
int check_shapes(const S& s, const rigel::KernelInfo& kernel) {
  int results = 0;
  for (const Extents e : shapes)
    for (int layout = 0; layout < 4; ++layout)
      for (const bool accumulate : {false, true}) {
        CAPTURE(e.m);
        CAPTURE(e.n);
        CAPTURE(e.k);
        CAPTURE(layout);
        CAPTURE(accumulate);
        const bool a_by_rows = layout & 1, b_by_rows = layout & 2;
        std::vector<float> expected;
        for (int i = 0; i < e.m; ++i)
          for (int j = 0; j < e.n; ++j) {
            float x = S::identity();
            for (int k = 0; k < e.k; ++k) x = s.add(x, s.multiply(a_value(i, k), b_value(k, j)));
            if constexpr (rigel::can_accumulate<S>)
              if (accumulate) x = s.add(x, static_cast<float>(i - j));
            expected.push_back(x);
          }
        std::vector<float> actual;
        if (!support::ran(kernel, [&] {
              actual =
                  product<Exec>(s, e, a_by_rows, b_by_rows, layout != 2, static_cast<std::size_t>(layout == 3) * 2,
                                {.accumulate = accumulate, .precision = rigel::Precision::operands, .kernel = kernel.name});
            }))
          continue;
        CHECK(actual == expected);
        ++results;
      }
  return results;
}

}  // namespace

TEST_CASE_TEMPLATE("few outputs: every kernel, every layout", Exec, RIGEL_TEST_SPACES) {
  for (const auto& info : support::kernels_on(Exec{}, "plus_times", rigel::Scalar::f32)) {
    if (info.family == "reference" || info.family == "host.blas") continue;
    if (info.family == "host" && !support::ran(info, [&] {
          product<Exec>(rigel::plus_times<float>{}, {1, 1, 1}, true, true, true, 0, {.kernel = info.name});
        }))
      continue;
    CAPTURE(info.name);
    CHECK(check_shapes<Exec>(rigel::plus_times<float>{}, info) > 0);
  }
}

TEST_CASE_TEMPLATE("few outputs: a product that does not commute", Exec, RIGEL_TEST_SPACES) {
  for (const std::string& kernel : kernels_for<Exec, LargestDifference>()) {
    CAPTURE(kernel);
    rigel::KernelInfo info;
    info.name = kernel;
    check_shapes<Exec>(LargestDifference{}, info);
  }
}

TEST_CASE_TEMPLATE("few outputs: a struct as accumulator", Exec, RIGEL_TEST_SPACES) {
  for (const std::string& kernel : kernels_for<Exec, LastOfLargest>())
    for (const Extents e : {Extents{1, 1, 1}, {2, 3, 1500}, {3, 1, 20011}, {1, 2, 74504}}) {
      CAPTURE(kernel);
      CAPTURE(e.k);
      std::vector<float> expected;
      for (int i = 0; i < e.m; ++i)
        for (int j = 0; j < e.n; ++j) {
          auto x = LastOfLargest::identity();
          for (int k = 0; k < e.k; ++k) x = LastOfLargest::add(x, LastOfLargest::multiply(a_value(i, k), b_value(k, j), k));
          expected.push_back(LastOfLargest::result(x));
        }
      CHECK(product<Exec>(LastOfLargest{}, e, true, false, true, 0, {.kernel = kernel}) == expected);
    }
}

#if RIGEL_BACKEND_PORTABLE
TEST_CASE("few outputs: slices of K cover it, and none is empty") {
  using rigel::backends::portable::SplitK, rigel::backends::portable::Slices;
  int several = 0;
  for (const std::int64_t k : {0, 1, 1024, 2047, 2048, 2049, 3073, 20011, 74504, 205313, 300001})
    for (const std::int64_t tiles : {1, 2, 6, 35, 264, 265, 5000})
      for (const std::int64_t multiprocessors : {1, 8, 132}) {
        CAPTURE(k);
        CAPTURE(tiles);
        CAPTURE(multiprocessors);
        const Slices slices = SplitK::cut(k, tiles, multiprocessors);
        CHECK(slices.count >= 1);
        CHECK(slices.count * slices.length >= k);
        if (slices.count == 1) continue;
        ++several;
        CHECK((slices.count - 1) * slices.length < k);
        CHECK(slices.length >= 1024);
        CHECK(slices.count <= 256);
        CHECK(slices.count * tiles <= 4 * multiprocessors);
      }
  CHECK(several > 20);
}

TEST_CASE_TEMPLATE("few outputs: K is cut into slices on CUDA", Exec, RIGEL_TEST_SPACES) {
  if constexpr (rigel::detail::space_of<Exec> == rigel::Space::cuda) {
    const Memory<Exec> a(std::vector<float>(74504, 1)), b(std::vector<float>(2 * 74504, 2)), c(std::vector<float>(2));
    for (const char* kernel : {"portable.l1.f32.split_k", "portable.l1.f32.split_k_slices"})
      CHECK((rigel::workspace_size(Exec{}, rigel::l1<float>{}, a.matrix(1, 74504, true), b.matrix(74504, 2, false),
                                   c.matrix(1, 2, true), rigel::epilogue::Program{}, {.kernel = kernel}) > 0) ==
            std::string(kernel).ends_with("slices"));
  }
}
#endif

// Random operands, so that no distance is 0.
TEST_CASE_TEMPLATE("few outputs: distances with their roots", Exec, RIGEL_TEST_SPACES) {
  const auto check = [&]<class S>(const S& s, const char* semiring, double p) {
    for (const auto& info : support::kernels_on(Exec{}, semiring, rigel::Scalar::f32)) {
      if (info.family != "cuda.simt") continue;
      for (const Extents e : {Extents{1, 1, 1}, {2, 1, 1}, {1, 9, 7}, {12, 9, 282}, {9, 76, 136}, {40, 40, 33}})
        for (const bool by_rows : {false, true}) {
          CAPTURE(info.name);
          CAPTURE(p);
          CAPTURE(e.m);
          CAPTURE(e.n);
          CAPTURE(e.k);
          CAPTURE(by_rows);
          std::vector<float> a(e.m * e.k), b(e.k * e.n);
          for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>((7 * i) % 101) * 0.37f;
          for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>((11 * i) % 103) * -0.29f - 0.1f;
          const Memory<Exec> a_memory(a), b_memory(b), c_memory(std::vector<float>(e.m * e.n, -1));
          const bool ran = support::ran(info, [&] {
            rigel::contract(Exec{}, s, a_memory.matrix(e.m, e.k, true), b_memory.matrix(e.k, e.n, by_rows),
                            c_memory.matrix(e.m, e.n, true), rigel::epilogue::pow(1 / p),
                            {.precision = info.precision, .kernel = info.name});
          });
          if (!ran) continue;
          Exec{}.fence();
          std::vector<float> c(e.m * e.n);
          support::copy_out<Exec>(c.data(), c_memory.view.data(), c.size() * sizeof(float));
          double worst = 0;
          int of_no_value = 0;
          for (int i = 0; i < e.m; ++i)
            for (int j = 0; j < e.n; ++j) {
              double sum = 0;
              for (int k = 0; k < e.k; ++k)
                sum += std::pow(std::fabs(double{a[i * e.k + k]} - double{b[by_rows ? k * e.n + j : j * e.k + k]}), p);
              const double exact = std::pow(sum, 1 / p);
              of_no_value += !std::isfinite(c[i * e.n + j]);
              worst = support::larger(worst, std::fabs(c[i * e.n + j] - exact) / exact);
            }
          CHECK(of_no_value == 0);
          // The error of the sum, 10 units of the root, and |ln of the root| units for the rounding of its exponent.
          CHECK(worst <= ((info.accuracy.constant + info.accuracy.per_term * e.k) / p + 20) * 0x1p-24);
        }
    }
  };
  check(rigel::l2_squared<float>{}, "l2_squared", 2);
  for (const float p : {1.3f, 1.5f, 2.f, 3.f}) check(rigel::lp<float>{{}, p}, "lp", p);
}

TEST_CASE_TEMPLATE("few outputs: infinities and NaN", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 2, n = 3, k = 1500;
  std::vector<float> a(m * k, 1), b(k * n, 2);
  a[0 * k + 700] = -infinity;  // row 0 has a minimum that no other term reaches
  a[1 * k + 1499] = infinity;  // row 1 has a term that is never the minimum
  b[1499 * n + 1] = none;      // column 1 has a NaN in its last term
  const Memory<Exec> a_memory(a), b_memory(b);
  for (const auto& info : support::kernels_on(Exec{}, "min_plus", rigel::Scalar::f32)) {
    CAPTURE(info.name);
    const Memory<Exec> c_memory(std::vector<float>(m * n, 7)), again(std::vector<float>(m * n, 7));
    const bool both = support::ran(info, [&] {
      for (const auto* c : {&c_memory, &again})
        rigel::contract(Exec{}, rigel::min_plus<float>{}, a_memory.matrix(m, k, true), b_memory.matrix(k, n, true),
                        c->matrix(m, n, true), rigel::epilogue::Program{}, {.accumulate = true, .kernel = info.name});
    });
    if (!both) continue;
    Exec{}.fence();
    std::vector<float> c(m * n), repeated(m * n), reference(m * n);
    support::copy_out<Exec>(c.data(), c_memory.view.data(), c.size() * sizeof(float));
    support::copy_out<Exec>(repeated.data(), again.view.data(), c.size() * sizeof(float));
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        CAPTURE(i);
        CAPTURE(j);
        const float x = c[i * n + j];
        if (j == 1)
          CHECK(std::isnan(x));
        else
          CHECK(x == (i == 0 ? -infinity : 3.f));
        CHECK((std::isnan(x) ? std::isnan(repeated[i * n + j]) : x == repeated[i * n + j]));
      }
  }
}

TEST_CASE_TEMPLATE("few outputs: more batches than a grid has along z", Exec, RIGEL_TEST_SPACES) {
  constexpr std::size_t batches = 65537, k = 3;
  std::vector<float> a(batches * k), b(k, 1), expected(batches);
  for (std::size_t l = 0; l < batches; ++l)
    for (std::size_t i = 0; i < k; ++i) {
      a[l * k + i] = static_cast<float>((l + i) % 11);
      expected[l] += a[l * k + i];
    }
  using View = Kokkos::View<float***, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
  const Memory<Exec> a_memory(a), b_memory(b);
  for (const auto& info : support::kernels_on(Exec{}, "plus_times", rigel::Scalar::f32)) {
    if (info.family == "reference" || info.family == "portable") continue;
    CAPTURE(info.name);
    const Memory<Exec> c_memory(std::vector<float>(batches, -1));
    const bool ran = support::ran(info, [&] {
      rigel::contract(Exec{}, rigel::plus_times<float>{}, View(a_memory.view.data(), batches, 1, k),
                      b_memory.matrix(k, 1, true), View(c_memory.view.data(), batches, 1, 1), rigel::epilogue::Program{},
                      {.precision = info.precision, .kernel = info.name});
    });
    if (!ran) continue;
    Exec{}.fence();
    std::vector<float> c(batches);
    support::copy_out<Exec>(c.data(), c_memory.view.data(), c.size() * sizeof(float));
    CHECK(c == expected);
  }
}
