// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands that kernels may read in vectors: aligned ones whose contiguous extents are multiples of a vector, in each pair of
// layouts, around the extents of tiles, and with one slab to many. Every kernel that promises the reference's bits must give
// them.
#include <rigel/contract.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/memory.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

namespace {

struct Extents {
  int m, n, k;
};
constexpr Extents all_extents[] = {{4, 8, 8},      {128, 128, 16}, {132, 260, 64}, {300, 124, 40},
                                   {129, 131, 24}, {12, 4, 1024},  {136, 264, 64}, {8, 520, 16},
                                   {256, 512, 40}, {1, 48, 336},   {17, 8992, 16}};

// l1's formula as a user's functor.
struct city_block {
  using element = float;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return Kokkos::abs(a - b); }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

// The same of 16-bit floats, summed in float.
struct city_block_of_halves {
  using element = rigel::half;
  using operand = float;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return Kokkos::abs(a - b); }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

// Kernels whose bits must be the reference's; the reference itself has just run, and takes most of a host's time.
bool is_compared(const rigel::KernelInfo& info) {
  return info.family != "reference" && covers(info.promises, rigel::Promise::reference_bits);
}

template <class T, class Exec, class Layout>
auto random_matrix(int rows, int columns, std::uint64_t seed) {
  const Kokkos::View<T**, Layout, typename Exec::memory_space> view("operand", rows, columns);
  support::Random random(seed);
  std::vector<T> values(view.span());
  constexpr float scale = std::is_integral_v<T> ? 1000 : 1;
  for (T& v : values)
    if constexpr (std::is_unsigned_v<T>)
      v = static_cast<T>(random.next() & random.next() & random.next());  // few bits, so that results are not all ones
    else
      v = static_cast<T>(scale * static_cast<float>(random.uniform(-4, 4)));
  support::copy_in<Exec>(view.data(), values.data(), values.size() * sizeof(T));
  return view;
}

template <class Exec, class LayoutA, class LayoutB, class S>
void check(const S& semiring, const std::vector<rigel::KernelInfo>& kernels) {
  for (const auto [m, n, k] : all_extents) {
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    using T = typename S::element;
    const auto a = random_matrix<T, Exec, LayoutA>(m, k, 1);
    const auto b = random_matrix<T, Exec, LayoutB>(k, n, 2);
    const auto c = random_matrix<T, Exec, LayoutA>(m, n, 3);  // column-major for two of the four pairs
    std::vector<T> expected(c.span()), actual(c.span());
    std::vector<T> before(c.span());
    support::copy_out<Exec>(before.data(), c.data(), before.size() * sizeof(T));
    const auto row = random_matrix<float, Exec, Kokkos::LayoutRight>(1, n, 4);
    // A layer, of floats: integers would be rounded to numbers of C's type.
    constexpr bool floats = !std::is_integral_v<T>;
    for (const int task : {0, 1, 2, 3}) {
      const bool accumulate = task % 2 == 1, has_layer = task >= 2;
      if (has_layer && !floats) continue;
      CAPTURE(accumulate);
      CAPTURE(has_layer);
      rigel::epilogue::Program program;
      if (has_layer)
        program = rigel::epilogue::scale(0.5) | rigel::epilogue::add_row(Kokkos::subview(row, 0, Kokkos::ALL)) |
                  rigel::epilogue::relu();
      const auto product = [&](const std::string& kernel, std::vector<T>& result) {
        support::copy_in<Exec>(c.data(), before.data(), before.size() * sizeof(T));
        rigel::contract(Exec{}, semiring, a, b, c, program, {.accumulate = accumulate, .kernel = kernel});
        support::copy_out<Exec>(result.data(), c.data(), result.size() * sizeof(T));
      };
      product("reference", expected);
      for (const auto& info : kernels) {
        if (!is_compared(info)) continue;
        CAPTURE(info.name);
        if (!support::ran(info, [&] { product(info.name, actual); })) continue;
        CHECK(actual == expected);
      }
    }
  }
}

template <class Exec, class S>
void check_layouts(const S& semiring, const std::vector<rigel::KernelInfo>& kernels) {
  using Left = Kokkos::LayoutLeft;
  using Right = Kokkos::LayoutRight;
  check<Exec, Right, Right>(semiring, kernels);
  check<Exec, Right, Left>(semiring, kernels);
  check<Exec, Left, Right>(semiring, kernels);
  check<Exec, Left, Left>(semiring, kernels);
}

// C ⊕ A·B for two matrices of few rows, with B K-major or not: every kernel that keeps the reference's bits. Kernels named `skinny` must
// take it. `by_fours`: lines consist of fours of 16-bit floats, not of vectors of 16 bytes.
template <class Exec, class S>
void check_few_rows(const S& semiring, const std::vector<rigel::KernelInfo>& kernels, bool by_fours = false) {
  using T = typename S::element;
  using Matrices = Kokkos::View<T***, Kokkos::LayoutRight, typename Exec::memory_space>;
  constexpr int batches = 2;
  const int n = by_fours ? 132 : sizeof(T) == 1 ? 144 : 136;  // whole vectors, and a rest of a tile
  const auto random = [&](int rows, int columns, std::uint64_t seed) {
    const Matrices view("matrices", batches, rows, columns);
    const auto values = random_matrix<T, Exec, Kokkos::LayoutRight>(batches * rows, columns, seed);
    Kokkos::deep_copy(view,
                      Kokkos::View<const T***, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(
                          values.data(), batches, rows, columns));
    return view;
  };
  // Each number of rows of a thread; K of one vector to several slabs, with and without a rest.
  for (const int m : {1, 5, 10, 16, 17, 40, 65, 79, 100, 113, 128, 129, 255})
    for (const int k : {by_fours ? 4 : 16, 64, by_fours ? 84 : 80, 272})
      for (const bool k_major : {false, true}) {
        CAPTURE(m);
        CAPTURE(k);
        CAPTURE(k_major);
        const auto a = random(m, k, 1), b = k_major ? random(n, k, 2) : random(k, n, 2), before = random(m, n, 3);
        const Matrices c("c", batches, m, n);
        std::vector<T> expected(c.span()), actual(c.span());
        const auto product = [&](const std::string& kernel, std::vector<T>& result) {
          Kokkos::deep_copy(c, before);
          const rigel::ContractOptions options{.accumulate = true, .kernel = kernel};
          if (k_major)
            rigel::contract(Exec{}, semiring, a, rigel::transposed(b), c, rigel::epilogue::Program{}, options);
          else
            rigel::contract(Exec{}, semiring, a, b, c, rigel::epilogue::Program{}, options);
          support::copy_out<Exec>(result.data(), c.data(), result.size() * sizeof(T));
        };
        product("reference", expected);
        for (const auto& info : kernels) {
          if (!is_compared(info)) continue;
          CAPTURE(info.name);
          const bool ran = support::ran(info, [&] { product(info.name, actual); });
          if (info.variant == "skinny" && (m <= 64 || std::is_same_v<T, float>)) CHECK(ran);
          if (ran) CHECK(actual == expected);
        }
      }
}

}  // namespace

TEST_CASE_TEMPLATE("aligned operands in each pair of layouts", Exec, Kokkos::DefaultExecutionSpace) {
  check_layouts<Exec>(rigel::l1<float>{}, support::kernels_on(Exec{}, "l1", rigel::Scalar::f32));
  check_layouts<Exec>(rigel::plus_times<float>{}, support::kernels_on(Exec{}, "plus_times", rigel::Scalar::f32));
}

TEST_CASE_TEMPLATE("aligned operands of 16 bits, accumulated in 16 bits", Exec, Kokkos::DefaultExecutionSpace) {
  using Scalar = rigel::Scalar;
  check_layouts<Exec>(rigel::min_plus<std::int16_t>{}, support::kernels_on(Exec{}, "min_plus", Scalar::i16, Scalar::i16));
  check_layouts<Exec>(rigel::min_plus<rigel::half, rigel::half>{},
                      support::kernels_on(Exec{}, "min_plus", Scalar::f16, Scalar::f16));
  check_layouts<Exec>(rigel::max_min<rigel::bfloat16, rigel::bfloat16>{},
                      support::kernels_on(Exec{}, "max_min", Scalar::bf16, Scalar::bf16));
}

TEST_CASE_TEMPLATE("aligned operands of one, two and eight bytes", Exec, Kokkos::DefaultExecutionSpace) {
  using Scalar = rigel::Scalar;
  check_layouts<Exec>(rigel::min_plus<double>{}, support::kernels_on(Exec{}, "min_plus", Scalar::f64));
  check_layouts<Exec>(rigel::l1<double>{}, support::kernels_on(Exec{}, "l1", Scalar::f64));
  check_layouts<Exec>(rigel::l1<rigel::half>{}, support::kernels_on(Exec{}, "l1", Scalar::f16));
  check_layouts<Exec>(rigel::plus_times<rigel::bfloat16>{}, support::kernels_on(Exec{}, "plus_times", Scalar::bf16));
  check_layouts<Exec>(rigel::min_plus<rigel::half>{}, support::kernels_on(Exec{}, "min_plus", Scalar::f16, Scalar::f32));
  check_layouts<Exec>(rigel::max_plus<std::uint8_t>{}, support::kernels_on(Exec{}, "max_plus", Scalar::u8));
}

TEST_CASE_TEMPLATE("a few rows and a large matrix, aligned, two of each", Exec, Kokkos::DefaultExecutionSpace) {
  using Scalar = rigel::Scalar;
  check_few_rows<Exec>(rigel::plus_times<float>{}, support::kernels_on(Exec{}, "plus_times", Scalar::f32));
  check_few_rows<Exec>(rigel::min_plus<float>{}, support::kernels_on(Exec{}, "min_plus", Scalar::f32));
  check_few_rows<Exec>(rigel::l1<float>{}, support::kernels_on(Exec{}, "l1", Scalar::f32));
  check_few_rows<Exec>(rigel::plus_times<double>{}, support::kernels_on(Exec{}, "plus_times", Scalar::f64));
  check_few_rows<Exec>(rigel::l1<rigel::half>{}, support::kernels_on(Exec{}, "l1", Scalar::f16));
  check_few_rows<Exec>(rigel::plus_times<rigel::bfloat16>{}, support::kernels_on(Exec{}, "plus_times", Scalar::bf16));
  for (const bool by_fours : {false, true})
    check_few_rows<Exec>(rigel::plus_times<rigel::half>{}, support::kernels_on(Exec{}, "plus_times", Scalar::f16), by_fours);
  check_few_rows<Exec>(rigel::max_plus<std::uint8_t>{}, support::kernels_on(Exec{}, "max_plus", Scalar::u8));
}

TEST_CASE_TEMPLATE("aligned words of bits", Exec, Kokkos::DefaultExecutionSpace) {
  using Word = std::uint32_t;
  check_layouts<Exec>(rigel::or_and<Word>{}, support::kernels_on(Exec{}, "or_and", rigel::Scalar::u32));
  check_layouts<Exec>(rigel::xor_and<Word>{}, support::kernels_on(Exec{}, "xor_and", rigel::Scalar::u32));
}

TEST_CASE_TEMPLATE("aligned operands of a user's functor", Exec, Kokkos::DefaultExecutionSpace) {
  const auto check_functor = [](const auto& semiring, const char* types) {
    const std::string name = std::string(rigel::semiring_name<std::remove_cvref_t<decltype(semiring)>>()) + types;
    std::vector<rigel::KernelInfo> families(3);
    families[0].name = "portable." + name + ".tiles";
    families[1].name = families[2].name = "host";
    if (rigel::detail::space_of<Exec> == rigel::Space::cuda) {
      families[1].name = "cuda.simt." + name + ".128x128x8";
      families[2].name = "cuda.simt." + name + ".64x64x8";
    }
    for (auto& info : families) info.promises = rigel::Promise::reference_bits;
    check_layouts<Exec>(semiring, families);
  };
  check_functor(city_block{}, ".f32");
  check_functor(city_block_of_halves{}, ".f16");
}

// Distances whose sums of squares go from 0 and subnormal numbers to infinity, in whole tiles, and in tiles whose rows fit no
// vector.
TEST_CASE_TEMPLATE("aligned operands: square roots in the reference's bits", Exec, Kokkos::DefaultExecutionSpace) {
  constexpr int lines = 256, k = 8;
  constexpr int exponents[] = {0, -1, 13, -31, -40, 31, 62, 64, -62, -70, -74, -200};
  const auto points = [&](std::uint64_t seed) {
    const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> view("points", lines, k);
    support::Random random(seed);
    std::vector<float> values(view.span());
    for (int i = 0; i < lines * k; ++i)
      values[i] = static_cast<float>(std::ldexp(random.uniform(-4, 4), exponents[(i / k + seed) % std::size(exponents)]));
    support::copy_in<Exec>(view.data(), values.data(), values.size() * sizeof(float));
    return view;
  };
  const auto a = points(1), all_b = points(2);
  for (const int columns : {lines, 251}) {
    CAPTURE(columns);
    const auto b = Kokkos::subview(all_b, std::pair{0, columns}, Kokkos::ALL);
    const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> c("distances", lines, columns);
    const auto distances = [&](const std::string& kernel) {
      rigel::contract(Exec{}, rigel::l2_squared<float>{}, a, rigel::transposed(b), c, rigel::epilogue::pow(0.5),
                      {.kernel = kernel});
      std::vector<float> values(c.span());
      support::copy_out<Exec>(values.data(), c.data(), values.size() * sizeof(float));
      return values;
    };
    const auto expected = distances("reference");
    int tiny = 0, infinite = 0, zero = 0;
    for (const float v : expected) tiny += v > 0 && v < 0x1p-63f, infinite += std::isinf(v), zero += v == 0;
    CHECK(tiny > 100);
    CHECK(infinite > 100);
    CHECK(zero > 100);
    for (const auto& info : support::kernels_on(Exec{}, "l2_squared", rigel::Scalar::f32)) {
      if (!is_compared(info)) continue;
      CAPTURE(info.name);
      std::vector<float> actual;
      if (support::ran(info, [&] { actual = distances(info.name); })) CHECK(actual == expected);
    }
  }
}

namespace {

// A matrix of rows × columns whose first row or column begins `offset` elements into its memory; `padding` elements of NaN lie
// between one and the next.
template <class Exec>
struct Anywhere {
  using Memory = typename Exec::memory_space;
  Kokkos::View<float*, Memory> all;
  Kokkos::View<float**, Kokkos::LayoutStride, Memory> matrix;

  Anywhere(int rows, int columns, int offset, int padding, std::uint64_t seed)
      : all("operand", offset + static_cast<std::size_t>(rows) * (columns + padding) - padding),
        matrix(all.data() + offset, Kokkos::LayoutStride(rows, columns + padding, columns, 1)) {
    support::Random random(seed);
    std::vector<float> values(all.span(), std::numeric_limits<float>::quiet_NaN());
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        values[static_cast<std::size_t>(offset) + static_cast<std::size_t>(i) * (columns + padding) + j] =
            static_cast<float>(random.uniform(-4, 4));
    support::copy_in<Exec>(all.data(), values.data(), values.size() * sizeof(float));
  }
};

template <class Exec, bool by_rows, class S>
void check_anywhere(const S& semiring, const char* name, const rigel::epilogue::Program& epilogue) {
  constexpr Extents extents[] = {{5, 9, 261},     {64, 64, 264},  {65, 67, 265},  {130, 131, 71},
                                 {130, 131, 279}, {3, 200, 256},  {129, 12, 258}, {1, 8, 268},
                                 {2, 1, 260},     {200, 63, 271}, {67, 257, 59},  {67, 257, 267}};
  for (const auto [m, n, k] : extents)
    for (int offset = 0; offset < 4; ++offset)
      for (int padding = 0; padding < 4; ++padding) {
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        CAPTURE(offset);
        CAPTURE(padding);
        const Anywhere<Exec> a(m, k, offset, padding, 1);
        const Anywhere<Exec> b(by_rows ? k : n, by_rows ? n : k, (offset + padding) % 4, (2 * padding + offset) % 4, 2);
        const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> c("result", m, n);
        std::vector<float> expected(c.span()), actual(c.span());
        const bool accumulate = padding == 1;
        const auto product = [&](const std::string& kernel, std::vector<float>& result) {
          Kokkos::deep_copy(c, 1.5f);
          const rigel::ContractOptions options{.accumulate = accumulate, .kernel = kernel};
          if constexpr (by_rows)
            rigel::contract(Exec{}, semiring, a.matrix, b.matrix, c, epilogue, options);
          else
            rigel::contract(Exec{}, semiring, a.matrix, rigel::transposed(b.matrix), c, epilogue, options);
          support::copy_out<Exec>(result.data(), c.data(), result.size() * sizeof(float));
        };
        product("reference", expected);
        for (const auto& info : support::kernels_on(Exec{}, name, rigel::Scalar::f32)) {
          if (!is_compared(info)) continue;
          CAPTURE(info.name);
          if (support::ran(info, [&] { product(info.name, actual); })) CHECK(actual == expected);
        }
      }
}

}  // namespace

TEST_CASE_TEMPLATE("operands whose lines begin anywhere", Exec, Kokkos::DefaultExecutionSpace) {
  check_anywhere<Exec, false>(rigel::l1<float>{}, "l1", {});
  check_anywhere<Exec, false>(rigel::l2_squared<float>{}, "l2_squared", rigel::epilogue::pow(0.5));
  check_anywhere<Exec, true>(rigel::min_plus<float>{}, "min_plus", {});
  check_anywhere<Exec, true>(rigel::max_plus<float>{}, "max_plus", {});
}

namespace {

// A matrix in memory where it begins `offset` elements after an aligned address. Lines are rows, or columns, `padding` elements apart, and
// neighbours in a line `step` elements. Nothing lies after the last element. Elements are numbers from -3 to 3, from 0 of unsigned types.
template <class T, class Exec>
struct SmallNumbers {
  using Memory = typename Exec::memory_space;
  Kokkos::View<T*, Memory> all;
  Kokkos::View<T**, Kokkos::LayoutStride, Memory> matrix;

  SmallNumbers(int rows, int columns, bool by_rows, int offset, int padding, int step, std::uint64_t seed) {
    const int lines = by_rows ? rows : columns, length = by_rows ? columns : rows;
    const std::size_t pitch = static_cast<std::size_t>(step) * length + padding;
    all =
        Kokkos::View<T*, Memory>("operand", offset + (lines - 1) * pitch + static_cast<std::size_t>(length - 1) * step + 1);
    matrix = {all.data() + offset,
              by_rows ? Kokkos::LayoutStride(rows, pitch, columns, step) : Kokkos::LayoutStride(rows, step, columns, pitch)};
    support::Random random(seed);
    std::vector<T> values(all.span());
    constexpr bool is_signed = rigel::ShortFloat<T> || std::is_signed_v<T>;
    for (T& v : values) v = support::number<T>(std::floor(random.uniform(is_signed ? -3 : 0, 4)));
    support::copy_in<Exec>(all.data(), values.data(), values.size() * sizeof(T));
  }
};

// Every kernel gives the reference's results, since all sums are exact; C is of T or of To.
template <class To, class Exec, class S>
void check_small_numbers(const S& semiring, const char* name, const rigel::epilogue::Program& epilogue = {}) {
  using T = typename S::element;
  constexpr Extents extents[] = {{1, 1, 1}, {3, 5, 7}, {2, 70, 3}, {66, 65, 67}, {129, 4, 70}, {5, 130, 33}};
  for (const auto [m, n, k] : extents)
    for (int layout = 0; layout < 8; ++layout)
      for (int offset = 0; offset < 4; ++offset) {
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        CAPTURE(layout);
        CAPTURE(offset);
        const bool a_rows = layout % 2 == 0, b_rows = layout / 2 % 2 == 0;
        const int step = layout < 4 || offset < 3 ? 1 : 2;
        const SmallNumbers<T, Exec> a(m, k, a_rows, offset, offset == 1 ? 0 : 5 - offset, step, 1);
        const SmallNumbers<T, Exec> b(k, n, b_rows, (offset + layout) % 4, layout % 3, 1, 2);
        const Kokkos::View<To*, typename Exec::memory_space> all("result", static_cast<std::size_t>(m + 1) * (n + 1));
        const bool c_rows = layout < 4;
        const Kokkos::View<To**, Kokkos::LayoutStride, typename Exec::memory_space> c(
            all.data() + (offset == 2),
            c_rows ? Kokkos::LayoutStride(m, n, n, 1) : Kokkos::LayoutStride(m, 1, n, m + (offset == 3)));
        std::vector<To> expected(all.span()), actual(all.span());
        const auto product = [&](const std::string& kernel, std::vector<To>& result) {
          Kokkos::deep_copy(all, To(7));
          rigel::contract(Exec{}, semiring, a.matrix, b.matrix, c, epilogue,
                          {.accumulate = layout == 5 && epilogue.empty(), .kernel = kernel});
          support::copy_out<Exec>(result.data(), all.data(), result.size() * sizeof(To));
        };
        product("reference", expected);
        for (const auto& info : support::kernels_on(Exec{}, name, rigel::scalar_of<T>)) {
          if (info.precision > rigel::Precision::accumulator ||
              info.accumulator != rigel::scalar_of<typename S::accumulator>)
            continue;
          CAPTURE(info.name);
          if (!support::ran(info, [&] { product(info.name, actual); })) continue;
          const bool same_bits = std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(To)) == 0;
          CHECK(same_bits);
        }
      }
}

}  // namespace

TEST_CASE_TEMPLATE("operands of one and two bytes that begin anywhere", Exec, Kokkos::DefaultExecutionSpace) {
  check_small_numbers<std::int32_t, Exec>(rigel::plus_times<std::uint8_t>{}, "plus_times");
  check_small_numbers<std::int32_t, Exec>(rigel::l2_squared<std::int8_t>{}, "l2_squared");
  check_small_numbers<float, Exec>(rigel::plus_times<rigel::half>{}, "plus_times");
}

TEST_CASE_TEMPLATE("results rounded to 16 bits, wherever C begins", Exec, Kokkos::DefaultExecutionSpace) {
  check_small_numbers<rigel::half, Exec>(rigel::l1<rigel::half>{}, "l1");
  check_small_numbers<rigel::bfloat16, Exec>(rigel::min_plus<rigel::bfloat16>{}, "min_plus");
  check_small_numbers<rigel::bfloat16, Exec>(rigel::plus_times<rigel::bfloat16>{}, "plus_times");
}

TEST_CASE_TEMPLATE("square roots rounded to 16 bits, wherever C begins", Exec, Kokkos::DefaultExecutionSpace) {
  const rigel::epilogue::Program root = rigel::epilogue::pow(0.5);
  check_small_numbers<rigel::half, Exec>(rigel::l2_squared<rigel::half>{}, "l2_squared", root);
  check_small_numbers<rigel::bfloat16, Exec>(rigel::l2_squared<rigel::bfloat16>{}, "l2_squared", root);
  check_small_numbers<rigel::bfloat16, Exec>(rigel::l1<rigel::bfloat16>{}, "l1", root);
}

// About as many tiles as a card holds at a time, so that a kernel cuts K into a few slices, for all tiles or for the last ones.
TEST_CASE_TEMPLATE("K in a few parts", Exec, Kokkos::DefaultExecutionSpace) {
  if (rigel::detail::space_of<Exec> != rigel::Space::cuda) return;
  constexpr int m = 845, n = 901, k = 262;
  const Anywhere<Exec> a(m, k, 1, 2, 1), b(k, n, 3, 0, 2);
  const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> c("result", m, n);
  const auto product = [&](const std::string& kernel) {
    rigel::contract(Exec{}, rigel::min_plus<float>{}, a.matrix, b.matrix, c, rigel::epilogue::Program{}, {.kernel = kernel});
    std::vector<float> values(c.span());
    support::copy_out<Exec>(values.data(), c.data(), values.size() * sizeof(float));
    return values;
  };
  CHECK(product("cuda.simt.min_plus.f32.split_k") == product("reference"));
}

// Two columns or three rows beyond whole tiles, which another kernel computes; with accumulation, and with roots.
TEST_CASE_TEMPLATE("K in parts: lines beyond whole tiles", Exec, Kokkos::DefaultExecutionSpace) {
  if (rigel::detail::space_of<Exec> != rigel::Space::cuda) return;
  for (const auto [m, n, k] : {Extents{7001, 66, 999}, Extents{67, 7001, 999}, Extents{67, 66, 999}})
    for (const bool accumulate : {false, true}) {
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(accumulate);
      const Anywhere<Exec> a(m, k, 1, 2, 1), b(k, n, 3, 0, 2);
      const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> c("result", m, n);
      const auto product = [&](const std::string& kernel) {
        Kokkos::deep_copy(c, -7.75f);
        rigel::contract(Exec{}, rigel::max_plus<float>{}, a.matrix, b.matrix, c, rigel::epilogue::pow(0.5),
                        {.accumulate = accumulate, .kernel = kernel});
        std::vector<float> values(c.span());
        support::copy_out<Exec>(values.data(), c.data(), values.size() * sizeof(float));
        return values;
      };
      CHECK(product("cuda.simt.max_plus.f32.split_k") == product("reference"));
    }
}

// If sums round, results depend on how K is cut. That depends on the extents and the card, not on the operands' addresses and
// strides.
TEST_CASE_TEMPLATE("K in a few parts: the same bits wherever operands lie", Exec, Kokkos::DefaultExecutionSpace) {
  if (rigel::detail::space_of<Exec> != rigel::Space::cuda) return;
  constexpr int m = 845, n = 901, k = 2392;
  const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> c("result", m, n);
  const rigel::ContractOptions options{.kernel = "cuda.simt.l1.f32.split_k"};
  const auto product = [&](int offset) {
    const Anywhere<Exec> a(m, k, offset, offset, 1), b(n, k, 0, 0, 2);
    CHECK(rigel::workspace_size(Exec{}, rigel::l1<float>{}, a.matrix, rigel::transposed(b.matrix), c,
                                rigel::epilogue::Program{}, options) > sizeof(float) * m * n);
    rigel::contract(Exec{}, rigel::l1<float>{}, a.matrix, rigel::transposed(b.matrix), c, rigel::epilogue::Program{},
                    options);
    std::vector<float> values(c.span());
    support::copy_out<Exec>(values.data(), c.data(), values.size() * sizeof(float));
    return values;
  };
  CHECK(product(0) == product(1));
}
