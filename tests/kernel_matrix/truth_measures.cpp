// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures of Boolean rows by every kernel: exactly the quotients of the counts, in double, rounded to C's type.
#include "points.hpp"

#include <rigel/dissimilarities.hpp>

#include <tests/support/layouts.hpp>

#include <bit>
#include <cstdint>
#include <functional>
#include <string>

using namespace kernel_matrix;

namespace {

/// A measure of counts: both true, the first alone, the second alone, neither.
using Formula = std::function<double(double, double, double, double)>;

template <class Word>
constexpr int bits_of = 8 * static_cast<int>(sizeof(Word));

/// Rows of words: of few, of half and of many bits, without any, and of all.
template <class Word>
std::vector<Word> random_words(int rows, int k, std::uint64_t seed) {
  support::Random random(seed);
  std::vector<Word> words(static_cast<std::size_t>(rows) * k);
  for (int r = 0; r < rows; ++r) {
    const double densities[] = {0.5, 0.02, 0, 0.97, 1, 0.3};
    for (int c = 0; c < k; ++c)
      for (int bit = 0; bit < bits_of<Word>; ++bit)
        if (random.uniform(0, 1) < densities[r % 6]) words[r * k + c] |= static_cast<Word>(Word{1} << bit);
  }
  return words;
}

template <class Word, class Layout, class Exec>
auto view_of(const std::vector<Word>& words, int rows, int k) {
  const Kokkos::View<Word**, Layout, typename Exec::memory_space> view("words", rows, k);
  const auto host = Kokkos::create_mirror_view(view);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < k; ++c) host(r, c) = words[r * k + c];
  Kokkos::deep_copy(view, host);
  return view;
}

/// formula(counts) of all pairs of rows, rounded to T.
template <class T, class Word>
Values expected_of(const Formula& formula, const std::vector<Word>& x, const std::vector<Word>& z, int k, double entries) {
  Values list;
  const int m = static_cast<int>(x.size()) / k, n = static_cast<int>(z.size()) / k;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double both = 0, first = 0, second = 0;
      for (int c = 0; c < k; ++c) {
        const Word a = x[i * k + c], b = z[j * k + c];
        both += std::popcount(static_cast<Word>(a & b));
        first += std::popcount(static_cast<Word>(a & ~b));
        second += std::popcount(static_cast<Word>(b & ~a));
      }
      list.push_back(static_cast<T>(formula(both, first, second, entries - both - first - second)));
    }
  return list;
}

/// A matrix of any layout, row by row.
template <class View>
Values rows_of(const View& view) {
  Values list;
  for (const auto value : support::download(view)) list.push_back(support::to_double(value));
  return list;
}

/// How many numbers differ; NaN equals NaN.
int differing(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  int wrong = 0;
  for (std::size_t i = 0; i < found.size(); ++i) wrong += !support::same(found[i], expected[i]);
  return wrong;
}

/// cdist() by every kernel that takes the call; returns how many.
template <class Exec, class X, class D, class M>
int check_kernels(const X& x, const X& z, const D& d, const M& metric, const Values& expected) {
  std::vector<std::string> names;
  rigel::detail::with_cdist(Exec(), x, z, d, metric, rigel::epilogue::Program{}, rigel::CdistOptions{},
                            [&](rigel::detail::Cdist call) {
                              for (const auto& candidate : rigel::detail::cdist_candidates(std::move(call)))
                                if (candidate.status) names.push_back(candidate.kernel->info.name);
                            });
  for (const std::string& name : names) {
    CAPTURE(name);
    Kokkos::deep_copy(d, typename D::value_type(-7));
    rigel::cdist(Exec(), x, z, d, metric, {.kernel = name});
    CHECK(differing(rows_of(d), expected) == 0);
  }
  return static_cast<int>(names.size());
}

template <class Word, class T, class Layout, class Exec, class M>
void check(const M& metric, const Formula& formula, int m, int n, int k) {
  CAPTURE(bits_of<Word>);
  CAPTURE(k);
  const std::vector<Word> x = random_words<Word>(m, k, 1), z = random_words<Word>(n, k, 2);
  const Kokkos::View<T**, Layout, typename Exec::memory_space> d("D", m, n);
  const Values expected = expected_of<T>(formula, x, z, k, static_cast<double>(k) * bits_of<Word>);
  const auto of_x = view_of<Word, Kokkos::LayoutRight, Exec>(x, m, k),
             of_z = view_of<Word, Kokkos::LayoutRight, Exec>(z, n, k);
  CHECK(check_kernels<Exec>(of_x, of_z, d, metric, expected) >= 2);
}

const double none = std::numeric_limits<double>::quiet_NaN();
const Formula dice = [](double t, double f, double s, double) { return t + f + s == 0 ? none : (f + s) / (2 * t + f + s); };
const Formula rogerstanimoto = [](double t, double f, double s, double n) { return 2 * (f + s) / (t + n + 2 * (f + s)); };
const Formula russellrao = [](double t, double f, double s, double n) { return (f + s + n) / (t + f + s + n); };
const Formula sokalsneath = [](double t, double f, double s, double) {
  return t + f + s == 0 ? none : 2 * (f + s) / (t + 2 * (f + s));
};
const Formula yule = [](double t, double f, double s, double n) { return f * s == 0 ? 0. : 2 * f * s / (t * n + f * s); };
const Formula jaccard = [](double t, double f, double s, double) { return f + s == 0 ? 0. : (f + s) / (t + f + s); };

}  // namespace

TEST_CASE_TEMPLATE("measures of packed rows: every kernel", Exec, RIGEL_TEST_SPACES) {
  using Kokkos::LayoutLeft, Kokkos::LayoutRight;
  for (const int k : {1, 5, 16}) {
    check<std::uint32_t, float, LayoutRight, Exec>(metric::bit_dice{}, dice, 70, 131, k);
    check<std::uint32_t, float, LayoutRight, Exec>(metric::bit_yule{}, yule, 128, 64, k);
  }
  check<std::uint8_t, float, LayoutRight, Exec>(metric::bit_dice{}, dice, 13, 260, 37);
  check<std::uint64_t, float, LayoutLeft, Exec>(metric::bit_dice{}, dice, 129, 66, 4);
  check<std::uint32_t, double, LayoutRight, Exec>(metric::bit_dice{}, dice, 66, 65, 12);
  check<std::uint32_t, rigel::half, LayoutLeft, Exec>(metric::bit_russellrao{}, russellrao, 20, 30, 8);
  check<std::uint32_t, float, LayoutLeft, Exec>(metric::bit_yule{}, yule, 130, 20, 8);
  check<std::uint32_t, float, LayoutRight, Exec>(metric::bit_rogerstanimoto{}, rogerstanimoto, 64, 64, 33);
  check<std::uint32_t, float, LayoutRight, Exec>(metric::bit_russellrao{}, russellrao, 64, 64, 33);
  check<std::uint32_t, float, LayoutRight, Exec>(metric::bit_sokalsneath{}, sokalsneath, 64, 64, 33);
}

// Quotients of short rows are computed in float, those of long ones in double. At the limit, and beyond it.
TEST_CASE_TEMPLATE("measures of packed rows: long ones", Exec, RIGEL_TEST_SPACES) {
  using Kokkos::LayoutRight;
  for (const int k : {32, 33}) check<std::uint32_t, float, LayoutRight, Exec>(metric::bit_yule{}, yule, 30, 37, k);
  for (const int k : {4096, 4097}) {
    check<std::uint32_t, float, LayoutRight, Exec>(metric::bit_dice{}, dice, 6, 18, k);
    check<std::uint32_t, float, LayoutRight, Exec>(metric::bit_rogerstanimoto{}, rogerstanimoto, 6, 18, k);
    check<std::uint32_t, float, LayoutRight, Exec>(metric::bit_sokalsneath{}, sokalsneath, 6, 18, k);
  }
  for (const int k : {8192, 8193})
    check<std::uint32_t, float, LayoutRight, Exec>(metric::bit_russellrao{}, russellrao, 6, 12, k);
}

TEST_CASE_TEMPLATE("measures of truth values: every kernel", Exec, RIGEL_TEST_SPACES) {
  const auto check_bytes = [](const auto& metric, const Formula& formula, int k) {
    CAPTURE(k);
    const int m = 67, n = 70;
    std::vector<std::uint8_t> x = random_words<std::uint8_t>(m, k, 3), z = random_words<std::uint8_t>(n, k, 4);
    for (auto* const truths : {&x, &z})
      for (std::uint8_t& truth : *truths) truth = static_cast<std::uint8_t>(truth % 2);
    const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> d("D", m, n);
    const Values expected = expected_of<float>(formula, x, z, k, k);
    CHECK(check_kernels<Exec>(view_of<std::uint8_t, Kokkos::LayoutLeft, Exec>(x, m, k),
                              view_of<std::uint8_t, Kokkos::LayoutLeft, Exec>(z, n, k), d, metric, expected) >= 2);
  };
  for (const int k : {1, 31, 512}) {
    check_bytes(metric::jaccard{}, jaccard, k);
    check_bytes(metric::rogerstanimoto{}, rogerstanimoto, k);
  }
  check_bytes(metric::yule{}, yule, 1024);
  check_bytes(metric::yule{}, yule, 1025);
}

// Semirings of a view have entries of their own, and an epilogue takes the measure.
TEST_CASE_TEMPLATE("measures of packed rows: batches, views and epilogues", Exec, RIGEL_TEST_SPACES) {
  using Word = std::uint32_t;
  using S = rigel::truth_measure<Word, metric::measure::russellrao>;
  const int batches = 3, m = 33, n = 70, k = 4;
  const std::vector<Word> x = random_words<Word>(batches * m, k, 5), z = random_words<Word>(batches * n, k, 6);
  const Kokkos::View<Word***, Kokkos::LayoutRight, typename Exec::memory_space> a("A", batches, m, k), b("B", batches, n, k);
  const Kokkos::View<float***, Kokkos::LayoutRight, typename Exec::memory_space> c("C", batches, m, n);
  const Kokkos::View<S*, typename Exec::memory_space> semirings("semirings", batches);
  const auto host_a = Kokkos::create_mirror_view(a), host_b = Kokkos::create_mirror_view(b);
  const auto host_semirings = Kokkos::create_mirror_view(semirings);
  std::copy(x.begin(), x.end(), host_a.data());
  std::copy(z.begin(), z.end(), host_b.data());
  Values of_view, of_one;
  for (int l = 0; l < batches; ++l) {
    host_semirings(l).entries = 128 + 100 * l;
    const std::vector<Word> rows_x(x.begin() + l * m * k, x.begin() + (l + 1) * m * k),
        rows_z(z.begin() + l * n * k, z.begin() + (l + 1) * n * k);
    for (const double v : expected_of<float>(russellrao, rows_x, rows_z, k, 128 + 100 * l)) of_view.push_back(v);
    for (const double v : expected_of<double>(russellrao, rows_x, rows_z, k, 128))
      of_one.push_back(static_cast<float>(1 - v));
  }
  Kokkos::deep_copy(a, host_a);
  Kokkos::deep_copy(b, host_b);
  Kokkos::deep_copy(semirings, host_semirings);
  S one;
  one.entries = 128;
  const auto affine = rigel::epilogue::scale(-1) | rigel::epilogue::add(1);
  with_each_family([&](const char* family) {
    CAPTURE(family);
    rigel::contract(Exec(), semirings, a, rigel::transposed(b), c, rigel::epilogue::Program{}, {.kernel = family});
    CHECK(differing(support::values(c), of_view) == 0);
    rigel::contract(Exec(), one, a, rigel::transposed(b), c, affine, {.kernel = family});
    CHECK(differing(support::values(c), of_one) == 0);
  });
}
