// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// or_and, xor_and and the distances of codes on packed words, compared with products of single bits.
#include "call.hpp"

#include <tests/support/random.hpp>

#include <algorithm>

using by_hand::Values;

namespace {

constexpr int rows = 5, columns = 7, depth = 75;  // bits; 75 fills words of 32 and 64 bits partly

struct Bits {
  bool a[rows][depth], b[depth][columns];
  explicit Bits(std::uint64_t seed) {
    support::Random random(seed);
    // One bit in eight, so that some sums are 0.
    for (auto& row : a) std::generate(std::begin(row), std::end(row), [&] { return random.chance(0.125); });
    for (auto& row : b) std::generate(std::begin(row), std::end(row), [&] { return random.chance(0.125); });
  }
  Values product(bool exclusive) const {
    Values c;
    for (int m = 0; m < rows; ++m)
      for (int n = 0; n < columns; ++n) {
        int count = 0;
        for (int k = 0; k < depth; ++k) count += a[m][k] && b[k][n];
        c.push_back(exclusive ? count % 2 : count > 0);
      }
    return c;
  }
  // The number of bits in which a row of A and a column of B differ, or the fraction of bits set in either that are not set in
  // both.
  Values distances(bool jaccard) const {
    Values c;
    for (int m = 0; m < rows; ++m)
      for (int n = 0; n < columns; ++n) {
        int differ = 0, either = 0;
        for (int k = 0; k < depth; ++k) differ += a[m][k] != b[k][n], either += a[m][k] || b[k][n];
        c.push_back(jaccard ? static_cast<float>(differ) / static_cast<float>(either) : differ);
      }
    return c;
  }
};

template <class Word, class Exec>
support::Matrix<Word, Exec> words(int m, int n, const std::vector<Word>& list) {
  const auto w = support::matrix<Word, Exec>(m, n);
  support::copy_in<Exec>(w.data(), list.data(), list.size() * sizeof(Word));
  return w;
}

// Products with entries packed along K.
template <class C, class Exec, class S>
Values along_k(const S& s, const Bits& x, const rigel::epilogue::Program& join = {}) {
  using Word = typename S::element;
  constexpr int bits = 8 * sizeof(Word), k_words = (depth + bits - 1) / bits;
  std::vector<Word> a(rows * k_words), b(k_words * columns);
  for (int k = 0; k < depth; ++k) {
    for (int m = 0; m < rows; ++m) a[m * k_words + k / bits] |= static_cast<Word>(static_cast<Word>(x.a[m][k]) << k % bits);
    for (int n = 0; n < columns; ++n)
      b[k / bits * columns + n] |= static_cast<Word>(static_cast<Word>(x.b[k][n]) << k % bits);
  }
  const auto c = support::matrix<C, Exec>(rows, columns);
  return by_hand::contracted(Exec{}, s, words<Word, Exec>(rows, k_words, a), words<Word, Exec>(k_words, columns, b), c,
                             join);
}
template <class Word, class Exec, class S, class C>
void check_along_k(const S& s, const rigel::epilogue::Program& join, bool exclusive) {
  const Bits x(exclusive ? 17 : 18);
  CHECK(along_k<C, Exec>(s, x, join) == x.product(exclusive));
}
template <class Word, class Exec>
void check_distances() {
  const Bits x(20);
  CHECK(along_k<std::int32_t, Exec>(rigel::bit_hamming<Word>{}, x) == x.distances(false));
  CHECK(along_k<float, Exec>(rigel::bit_jaccard<Word>{}, x) == x.distances(true));
}

// Checks products with entries packed along N, where words of A are all ones or 0.
template <class Exec, class S>
void check_along_n(const S& s, bool exclusive) {
  const Bits x(19);
  std::vector<std::uint32_t> a(rows * depth), b(depth);
  for (int k = 0; k < depth; ++k) {
    for (int m = 0; m < rows; ++m) a[m * depth + k] = x.a[m][k] ? S::one() : S::annihilator();
    for (int n = 0; n < columns; ++n) b[k] |= static_cast<std::uint32_t>(x.b[k][n]) << n;
  }
  const auto c = support::matrix<std::uint32_t, Exec>(rows, 1);
  const auto packed =
      by_hand::contracted(Exec{}, s, words<std::uint32_t, Exec>(rows, depth, a), words<std::uint32_t, Exec>(depth, 1, b), c);
  Values unpacked;
  for (const double word : packed)
    for (int n = 0; n < columns; ++n) unpacked.push_back(static_cast<std::uint32_t>(word) >> n & 1);
  CHECK(unpacked == x.product(exclusive));
}

}  // namespace

TEST_CASE_TEMPLATE("packed words along k: any_bit and parity", Exec, RIGEL_TEST_SPACES) {
  using rigel::epilogue::any_bit, rigel::epilogue::parity;
  check_along_k<std::uint32_t, Exec, rigel::or_and<std::uint32_t>, std::uint32_t>({}, any_bit(), false);
  check_along_k<std::uint64_t, Exec, rigel::or_and<std::uint64_t>, std::uint8_t>({}, any_bit(), false);
  check_along_k<std::uint32_t, Exec, rigel::xor_and<std::uint32_t>, std::int32_t>({}, parity(), true);
  check_along_k<std::uint64_t, Exec, rigel::xor_and<std::uint64_t>, float>({}, parity(), true);
}

TEST_CASE_TEMPLATE("packed words along k: Hamming and Jaccard distances", Exec, RIGEL_TEST_SPACES) {
  check_distances<std::uint8_t, Exec>();
  check_distances<std::uint32_t, Exec>();
  check_distances<std::uint64_t, Exec>();
}

TEST_CASE_TEMPLATE("packed words along k: further steps after the bits are joined", Exec, RIGEL_TEST_SPACES) {
  const auto a = words<std::uint64_t, Exec>(1, 1, {0x8000000000000001u}),
             b = words<std::uint64_t, Exec>(1, 2, {~std::uint64_t{0}, 2});
  const auto c = support::matrix<double, Exec>(1, 2);
  CHECK(by_hand::contracted(Exec{}, rigel::or_and<std::uint64_t>{}, a, b, c,
                            rigel::epilogue::any_bit() | rigel::epilogue::scale(2.5)) == Values{2.5, 0});
  CHECK(by_hand::contracted(Exec{}, rigel::xor_and<std::uint64_t>{}, a, b, c, rigel::epilogue::parity()) == Values{0, 0});
}

TEST_CASE_TEMPLATE("packed words along n: every bit is a product of its own", Exec, RIGEL_TEST_SPACES) {
  check_along_n<Exec>(rigel::or_and<std::uint32_t>{}, false);
  check_along_n<Exec>(rigel::xor_and<std::uint32_t>{}, true);
}
