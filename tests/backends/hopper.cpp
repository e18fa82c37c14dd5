// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.hopper: operands that tensor copies can take, and others. Numbers are small integers, so every kernel must give the
// reference's bits.
#include <rigel/contract.hpp>

#include <tests/support/error.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

namespace {

using Kokkos::LayoutStride;

/// A matrix of batches × rows × columns with the given strides; its first element is `first` elements into the memory.
struct Lying {
  int batches, rows, columns;
  long batch, row, column;
  long first = 0;
  long span() const { return first + (batches - 1) * batch + (rows - 1) * row + (columns - 1) * column + 1; }
};

template <class T, class Exec>
struct Placed {
  Kokkos::View<T*, typename Exec::memory_space> memory;
  Kokkos::View<T***, LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged> view;
};

template <class T, class Exec>
Placed<T, Exec> place(const Lying& l, std::uint64_t seed) {
  const bool empty = l.batches == 0 || l.rows == 0 || l.columns == 0;
  const long span = empty ? 1 : l.span();
  support::Random random(seed);
  std::vector<double> values(span);
  for (double& v : values) v = static_cast<double>(random.integer(std::is_unsigned_v<T> ? 0 : -4, 4));
  const auto u = [](long x) { return static_cast<std::size_t>(x); };
  const Kokkos::View<T*, typename Exec::memory_space> memory("placed", u(span));
  support::fill(memory, values);
  const LayoutStride layout(u(l.batches), u(l.batch), u(l.rows), u(l.row), u(l.columns), u(l.column));
  return {memory, decltype(Placed<T, Exec>::view)(memory.data() + l.first, layout)};
}

/// Checks all kernels of cuda.hopper for elements T on one problem, with a row-major C that has gaps; the gaps must stay
/// untouched.
template <class T, class C, class Exec>
void check_into(const Lying& a, const Lying& b, const Lying& c, int& kernels) {
  using S = rigel::plus_times<T>;
  const int batches = c.batches, m = c.rows, n = c.columns;
  const auto of_a = place<T, Exec>(a, 1), of_b = place<T, Exec>(b, 2);
  const auto expected = place<C, Exec>(c, 3);
  const auto call = [&](const auto& to, const std::string& kernel, rigel::Precision precision) {
    rigel::contract(Exec{}, S{}, of_a.view, of_b.view, to, rigel::epilogue::Program{},
                    {.precision = precision, .kernel = kernel});
  };
  call(expected.view, "reference", rigel::Precision::accumulator);
  const auto right = support::values(expected.memory);
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(a.columns);
  CAPTURE(batches);
  for (const auto& info : support::kernels_on(Exec{}, "plus_times", rigel::scalar_of<T>)) {
    if (info.family != "cuda.hopper") continue;
    ++kernels;
    CAPTURE(info.name);
    const auto actual = place<C, Exec>(c, 3);
    // Long sums of 16-bit numbers are cut, and these tiles have no registers for the sum of a part.
    const bool large = info.tile.n == 256 || (info.tile.n == 192 && info.variant != "long") ||
                       (info.tile.m == 64 && info.variant != "once") || (info.tile.n == 128 && info.variant == "once");
    const bool too_long = rigel::ShortFloat<T> && a.columns > 4096 && large;
    // One tile only stores results without conversion, four at a time.
    const bool in_fours = n % 4 == 0 && c.row % 4 == 0 && c.batch % 4 == 0 && c.first % 4 == 0;
    if (too_long || (!in_fours && info.operands[2].layout == rigel::Layout::row_major)) {
      const auto refused = support::caught([&] { call(actual.view, info.name, info.precision); });
      CHECK(refused.code == rigel::Code::unsupported);
      CHECK(refused.decline ==
            (in_fours || info.operands[2].layout == rigel::Layout::any ? rigel::Decline::extents : rigel::Decline::layout));
      continue;
    }
    call(actual.view, info.name, info.precision);
    CHECK(support::values(actual.memory) == right);
  }
}

/// Checks a C that is one element off, which is stored element by element, and a C of either type with aligned rows.
template <class T, class Exec>
void check(const Lying& a, const Lying& b, int& kernels) {
  using C = typename rigel::plus_times<T>::accumulator;
  const int batches = std::max(a.batches, b.batches), m = a.rows, n = b.columns;
  const long pitch = n + 4 - n % 4;
  check_into<T, C, Exec>(a, b, {batches, m, n, m * (n + 3L), n + 3L, 1, 1}, kernels);
  if (n % 4 != 0) return;
  check_into<T, C, Exec>(a, b, {batches, m, n, m * pitch, pitch, 1, 0}, kernels);
  if constexpr (rigel::ShortFloat<T>) check_into<T, T, Exec>(a, b, {batches, m, n, m * pitch, pitch, 1, 0}, kernels);
}

template <class T, class Exec>
void check_all(int& kernels) {
  constexpr long piece = 16 / sizeof(T);
  const auto pitch = [](long x) { return (x + piece - 1) / piece * piece; };
  struct Extents {
    int m, n, k;
  };
  // Extents around tiles, slabs, split-K slices and k-steps; K = 0; more slabs than stages, in one slice and in four; long
  // sums, in one slice and in four; more tiles than multiprocessors.
  for (const auto& [m, n, k] : std::vector<Extents>{{1, 1, 1},
                                                    {64, 64, 32},
                                                    {127, 129, 0},
                                                    {129, 257, 65},
                                                    {70, 33, 130},
                                                    {300, 520, 97},
                                                    {65, 40, 1111},
                                                    {65, 40, 3001},
                                                    {65, 40, 16700},
                                                    {17, 132, 4600},
                                                    {1500, 1300, 70}}) {
    const Lying a_along_k{1, m, k, 0, pitch(k), 1}, b_along_k{1, k, n, 0, 1, pitch(k)};
    const Lying a_along_m{1, m, k, 0, 1, pitch(m)}, b_along_n{1, k, n, 0, pitch(n), 1};
    check<T, Exec>(a_along_k, b_along_k, kernels);
    check<T, Exec>(a_along_m, b_along_n, kernels);
    check<T, Exec>(a_along_k, b_along_n, kernels);
    check<T, Exec>(a_along_m, b_along_k, kernels);
    // Strides and addresses that tensor copies cannot take; operands without a unit stride.
    check<T, Exec>({1, m, k, 0, k + 1L, 1}, {1, k, n, 0, 1, pitch(k), 1}, kernels);
    check<T, Exec>({1, m, k, 0, 2L * k, 2}, {1, k, n, 0, 3, 3L * k + 1, 1}, kernels);
    // Rows that share their memory (stride 0).
    check<T, Exec>({1, m, k, 0, 0, 1}, b_along_k, kernels);
  }
  constexpr int m = 130, n = 70, k = 80;
  const Lying a{3, m, k, m * pitch(k), pitch(k), 1}, b{3, k, n, n * pitch(k), 1, pitch(k)};
  const Lying one_a{1, m, k, 0, pitch(k), 1}, one_b{1, k, n, 0, 1, pitch(k)};
  check<T, Exec>(a, b, kernels);
  check<T, Exec>(a, one_b, kernels);
  check<T, Exec>(one_a, b, kernels);
  check<T, Exec>({3, m, k, m * pitch(k) + 1, pitch(k), 1}, b, kernels);
  // Interleaved batches.
  check<T, Exec>({3, m, k, pitch(k), 3 * pitch(k), 1}, {3, k, n, pitch(k), 1, 3 * pitch(k)}, kernels);
}

/// A chain of products, each of the previous result, launched without a wait between them: X times a matrix that shifts
/// columns by one, again and again. A launch that reads or writes too early gives a wrong result.
template <class T, class Exec>
void check_chain(int& kernels) {
  constexpr int n = 256, times = 31;
  std::vector<double> x(n * n), shift(n * n), expected(n * n);
  support::Random random(9);
  for (double& v : x) v = static_cast<double>(random.integer(-4, 4));
  for (int i = 0; i < n; ++i) {
    shift[i * n + (i + 1) % n] = 1;
    for (int j = 0; j < n; ++j) expected[i * n + (j + times) % n] = x[i * n + j];
  }
  const auto by = support::matrix<T, Exec>(n, n, shift);
  for (const auto& info : support::kernels_on(Exec{}, "plus_times", rigel::scalar_of<T>)) {
    if (info.family != "cuda.hopper") continue;
    ++kernels;
    CAPTURE(info.name);
    const auto one = support::matrix<T, Exec>(n, n, x), other = support::matrix<T, Exec>(n, n);
    for (int i = 0; i < times; ++i)
      rigel::contract(Exec{}, rigel::plus_times<T>{}, i % 2 ? other : one, by, i % 2 ? one : other,
                      rigel::epilogue::Program{}, {.precision = info.precision, .kernel = info.name});
    CHECK(support::values(times % 2 ? other : one) == expected);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("cuda.hopper: operands as they lie, packed and cut", Exec, RIGEL_TEST_SPACES) {
  int kernels = 0;
  if (rigel::detail::space_of<Exec> == rigel::Space::cuda) {
    check_all<rigel::half, Exec>(kernels);
    check_all<rigel::bfloat16, Exec>(kernels);
    check_all<float, Exec>(kernels);
    check_all<std::int8_t, Exec>(kernels);
    check_all<std::uint8_t, Exec>(kernels);
  }
  if (kernels == 0) support::skip("cuda.hopper: another GPU, or a library without sm_90a");
}

TEST_CASE_TEMPLATE("cuda.hopper: launches one after the other", Exec, RIGEL_TEST_SPACES) {
  int kernels = 0;
  if (rigel::detail::space_of<Exec> == rigel::Space::cuda) {
    check_chain<rigel::half, Exec>(kernels);
    check_chain<rigel::bfloat16, Exec>(kernels);
    check_chain<float, Exec>(kernels);
  }
  if (kernels == 0) support::skip("cuda.hopper: another GPU, or a library without sm_90a");
}
