// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hamming and Jaccard distances of packed codes, against loops over their bits.
#include <rigel/distance.hpp>

#include <tests/support/error.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

namespace metric = rigel::metric;
using Values = std::vector<double>;
using Left = Kokkos::LayoutLeft;
using Right = Kokkos::LayoutRight;

template <class Word>
constexpr int bits_of = 8 * sizeof(Word);

/// Codes of k words, one in eight of which is 0.
template <class Word>
std::vector<Word> random_codes(int count, int k, std::uint64_t seed) {
  support::Random random(seed);
  std::vector<Word> list(static_cast<std::size_t>(count) * k);
  for (Word& word : list) word = random.chance(0.125) ? 0 : static_cast<Word>(random.next() & random.next());
  return list;
}

/// The number of bits in which two codes differ, and the number of bits set in either.
struct Counts {
  Values differ, either;
};
template <class Word>
Counts count(const std::vector<Word>& x, const std::vector<Word>& z, int m, int n, int k) {
  Counts counts;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      int differ = 0, either = 0;
      for (int c = 0; c < k; ++c)
        for (int bit = 0; bit < bits_of<Word>; ++bit) {
          const bool in_x = x[i * k + c] >> bit & 1, in_z = z[j * k + c] >> bit & 1;
          differ += in_x != in_z, either += in_x || in_z;
        }
      counts.differ.push_back(differ);
      counts.either.push_back(either);
    }
  return counts;
}
Values jaccard(const Counts& counts) {
  Values list;
  for (std::size_t i = 0; i < counts.differ.size(); ++i)
    list.push_back(counts.either[i] == 0 ? 0 : static_cast<float>(counts.differ[i]) / static_cast<float>(counts.either[i]));
  return list;
}

/// A view of codes inside a matrix, after `padding` codes and `padding` words of each code.
template <class Exec, class Layout, class Word>
auto view_of(const std::vector<Word>& codes, int count, int k, int padding) {
  const Kokkos::View<Word**, Layout, typename Exec::memory_space> all("codes", count + padding, k + padding);
  const auto host = Kokkos::create_mirror_view(all);
  for (int i = 0; i < count; ++i)
    for (int c = 0; c < k; ++c) host(i + padding, c + padding) = codes[i * k + c];
  Kokkos::deep_copy(all, host);
  return Kokkos::subview(all, std::pair(padding, count + padding), std::pair(padding, k + padding));
}

/// Checks quotients of counts. The epilogue rounds twice: the product with 1/bits in double, and its conversion to float.
void check_quotients(const Values& actual, const Values& counts, double bits) {
  REQUIRE(actual.size() == counts.size());
  int wrong = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = counts[i] / bits;
    wrong += !(std::fabs(actual[i] - expected) <= 0x1p-23 * expected);
  }
  CHECK(wrong == 0);
}

template <class Word, class Exec, class LayoutX, class LayoutZ>
void check_cdist(int m, int n, int k, int padding) {
  CAPTURE(bits_of<Word>);
  CAPTURE(k);
  CAPTURE(padding);
  const std::vector<Word> x = random_codes<Word>(m, k, 1), z = random_codes<Word>(n, k, 2);
  const auto x_view = view_of<Exec, LayoutX>(x, m, k, padding);
  const auto z_view = view_of<Exec, LayoutZ>(z, n, k, padding);
  const Counts counts = count(x, z, m, n, k);
  const auto whole = support::matrix<std::int32_t, Exec>(m, n);
  rigel::cdist(Exec{}, x_view, z_view, whole, metric::bit_hamming{}, {.skip_epilogue = true});
  CHECK(support::values(whole) == counts.differ);
  const auto d = support::matrix<float, Exec>(m, n);
  rigel::cdist(Exec{}, x_view, z_view, d, metric::bit_hamming{});
  check_quotients(support::values(d), counts.differ, static_cast<double>(bits_of<Word>) * k);
  rigel::cdist(Exec{}, x_view, z_view, d, metric::bit_jaccard{});
  CHECK(support::values(d) == jaccard(counts));
}

template <class Word, class Exec>
void check_views() {
  for (const int k : {1, 5, 16, 19}) {
    check_cdist<Word, Exec, Right, Right>(21, 35, k, 0);
    check_cdist<Word, Exec, Right, Left>(21, 32, k, 0);
    check_cdist<Word, Exec, Left, Right>(16, 35, k, 0);
    check_cdist<Word, Exec, Right, Right>(21, 35, k, 1);
    check_cdist<Word, Exec, Left, Left>(21, 35, k, 1);
  }
  check_cdist<Word, Exec, Right, Right>(150, 264, 48, 0);
  check_cdist<Word, Exec, Right, Right>(150, 264, 37, 0);
}

/// Checks distances of codes by every kernel, around the extents of tiles: counts as integers and as floating-point numbers,
/// in a row-major and a column-major C.
template <class Word, class Exec>
int check_kernels() {
  constexpr int m = 137, n = 268, k = 48;
  const std::vector<Word> x = random_codes<Word>(m, k, 3), z = random_codes<Word>(n, k, 4);
  const auto a = view_of<Exec, Right>(x, m, k, 0), b = view_of<Exec, Right>(z, n, k, 0);
  const Counts counts = count(x, z, m, n, k);
  int on_tensor_cores = 0;
  const auto product = [&]<class C, class Layout>(const auto& semiring, const std::string& kernel,
                                                  const rigel::epilogue::Program& program, const Kokkos::View<C**, Layout>&,
                                                  double before) {
    const Kokkos::View<C**, Layout, typename Exec::memory_space> c("c", m, n);
    Kokkos::deep_copy(c, static_cast<C>(before));
    rigel::contract(Exec{}, semiring, a, rigel::transposed(b), c, program, {.accumulate = before != 0, .kernel = kernel});
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, c);
    Values list;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) list.push_back(static_cast<double>(host(i, j)));
    return list;
  };
  const rigel::bit_hamming<Word> hamming{};
  for (const auto& info : support::kernels_on(Exec{}, "bit_hamming", rigel::scalar_of<Word>)) {
    CAPTURE(info.name);
    on_tensor_cores += info.family == "cuda.mma";
    Values first;
    if (!support::ran(info, [&] { first = product(hamming, info.name, {}, Kokkos::View<std::int32_t**, Right>(), 0); }))
      continue;
    CHECK(first == counts.differ);
    CHECK(product(hamming, info.name, {}, Kokkos::View<std::int32_t**, Left>(), 0) == counts.differ);
    CHECK(product(hamming, info.name, {}, Kokkos::View<float**, Right>(), 0) == counts.differ);
    const double bits = bits_of<Word> * k;
    check_quotients(product(hamming, info.name, rigel::epilogue::scale(1 / bits), Kokkos::View<float**, Right>(), 0),
                    counts.differ, bits);
    Values more = counts.differ;
    for (double& v : more) v += 1000;
    CHECK(product(hamming, info.name, {}, Kokkos::View<std::int32_t**, Right>(), 1000) == more);
  }
  const rigel::bit_jaccard<Word> jaccards{};
  for (const auto& info : support::kernels_on(Exec{}, "bit_jaccard", rigel::scalar_of<Word>, rigel::Scalar::other)) {
    CAPTURE(info.name);
    on_tensor_cores += info.family == "cuda.mma";
    const Values expected = jaccard(counts);
    Values first;
    if (!support::ran(info, [&] { first = product(jaccards, info.name, {}, Kokkos::View<float**, Right>(), 0); })) continue;
    CHECK(first == expected);
    CHECK(product(jaccards, info.name, {}, Kokkos::View<double**, Left>(), 0) == expected);
    Values doubled = expected;
    for (double& v : doubled) v *= 2;
    CHECK(product(jaccards, info.name, rigel::epilogue::scale(2), Kokkos::View<float**, Right>(), 0) == doubled);
  }
  return on_tensor_cores;
}

}  // namespace

TEST_CASE_TEMPLATE("codes: distances by hand", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<std::uint8_t, Exec>(3, 2, {0x0f, 0x01, 0xff, 0xff, 0, 0}, "x");
  const auto z = support::matrix<std::uint8_t, Exec>(2, 2, {0x3c, 0x01, 0, 0}, "z");
  const auto d = support::matrix<double, Exec>(3, 2, {}, "d");
  rigel::cdist(Exec{}, x, z, d, metric::bit_hamming{});
  CHECK(support::values(d) == Values{4. / 16, 5. / 16, 11. / 16, 1, 5. / 16, 0});
  rigel::cdist(Exec{}, x, z, d, metric::bit_hamming{}, {.skip_epilogue = true});
  CHECK(support::values(d) == Values{4, 5, 11, 16, 5, 0});
  // Common bits of all: 3 of 7, 0 of 5, 5 of 16, 0 of 16, 0 of 5, and two empty sets.
  rigel::cdist(Exec{}, x, z, d, metric::bit_jaccard{});
  CHECK(support::values(d) == Values{4.f / 7, 1, 11.f / 16, 1, 1, 0});
  rigel::cdist(Exec{}, x, z, d, metric::bit_jaccard{}, rigel::epilogue::scale(-1));
  CHECK(support::values(d) == Values{-4.f / 7, -1, -11.f / 16, -1, -1, 0});
}

TEST_CASE_TEMPLATE("codes: distances against loops over bits, in every view", Exec, RIGEL_TEST_SPACES) {
  check_views<std::uint8_t, Exec>();
  check_views<std::uint32_t, Exec>();
  check_views<std::uint64_t, Exec>();
}

TEST_CASE_TEMPLATE("codes: every kernel, whatever C is", Exec, RIGEL_TEST_SPACES) {
  const int kernels =
      check_kernels<std::uint8_t, Exec>() + check_kernels<std::uint32_t, Exec>() + check_kernels<std::uint64_t, Exec>();
  if (rigel::detail::space_of<Exec> == rigel::Space::cuda)
    CHECK(kernels > 0);
  else
    support::skip("tensor cores: a host has none");
}

TEST_CASE_TEMPLATE("codes: distances in batches, broadcast", Exec, RIGEL_TEST_SPACES) {
  using Word = std::uint32_t;
  constexpr int batches = 3, m = 18, n = 33, k = 8;
  const std::vector<Word> x = random_codes<Word>(batches * m, k, 5), z = random_codes<Word>(n, k, 6);
  const Kokkos::View<Word***, Right, typename Exec::memory_space> x_view("x", batches, m, k);
  support::copy_in<Exec>(x_view.data(), x.data(), x.size() * sizeof(Word));
  const auto z_view = view_of<Exec, Right>(z, n, k, 0);
  const Counts counts = count(x, z, batches * m, n, k);
  const Kokkos::View<float***, Right, typename Exec::memory_space> d("d", batches, m, n);
  const auto values = [&] {
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, d);
    return Values(host.data(), host.data() + host.size());
  };
  rigel::cdist(Exec{}, x_view, z_view, d, metric::bit_hamming{}, {.skip_epilogue = true});
  CHECK(values() == counts.differ);
  rigel::cdist(Exec{}, x_view, z_view, d, metric::bit_jaccard{});
  CHECK(values() == jaccard(counts));
}

TEST_CASE_TEMPLATE("codes: distances of nothing", Exec, RIGEL_TEST_SPACES) {
  const auto none = support::matrix<std::uint64_t, Exec>(3, 0), some = support::matrix<std::uint64_t, Exec>(3, 2);
  const auto d = support::matrix<float, Exec>(3, 3, Values(9, 7.));
  rigel::cdist(Exec{}, none, none, d, metric::bit_hamming{}, {.skip_epilogue = true});
  CHECK(support::values(d) == Values(9, 0.));
  rigel::cdist(Exec{}, none, none, d, metric::bit_hamming{});
  for (const double v : support::values(d)) CHECK(std::isnan(v));
  rigel::cdist(Exec{}, none, none, d, metric::bit_jaccard{});
  CHECK(support::values(d) == Values(9, 0.));
  rigel::cdist(Exec{}, support::matrix<std::uint64_t, Exec>(0, 2), some, support::matrix<float, Exec>(0, 3),
               metric::bit_jaccard{});
}

TEST_CASE_TEMPLATE("codes: what is not defined", Exec, RIGEL_TEST_SPACES) {
  const auto x = support::matrix<std::uint32_t, Exec>(2, 2, {1, 2, 3, 4});
  const auto d = support::matrix<float, Exec>(2, 2, Values(4, 7.));
  const auto whole = support::matrix<std::int32_t, Exec>(2, 2, Values(4, 7.), "whole");
  const auto e = support::caught([&] {
    rigel::contract(Exec{}, rigel::bit_jaccard<std::uint32_t>{}, x, x, d, rigel::epilogue::Program{}, {.accumulate = true});
  });
  CHECK(e.code == rigel::Code::invalid_argument);
  CHECK(e.lacks({"accumulate", "bit_jaccard"}) == "");
  CHECK(support::caught([&] { rigel::cdist(Exec{}, x, x, whole, metric::bit_hamming{}); }).message ==
        "cdist: D 'whole' holds integers, expected floating-point numbers for this metric, or options.skip_epilogue");
  CHECK(support::values(d) == Values(4, 7.));
  CHECK(support::values(whole) == Values(4, 7.));
}
