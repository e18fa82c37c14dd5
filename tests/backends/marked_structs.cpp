// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which pairs ⊗ sees if elements are small: 16-bit numbers, which are converted to words, and structs of odd sizes and
// alignments.
#include "marked.hpp"

#include <tests/support/matrix.hpp>

using support::Marked, support::Tally, support::check_pairs;

TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: structs of 1 byte", Exec, RIGEL_TEST_SPACES) {
  check_pairs<Marked<1, 1>, std::int32_t, true, Exec>();
}
TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: structs of 3 bytes", Exec, RIGEL_TEST_SPACES) {
  check_pairs<Marked<3, 1>, Tally, false, Exec>();
}
TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: structs of 8 bytes, aligned to 4", Exec, RIGEL_TEST_SPACES) {
  check_pairs<Marked<8, 4>, std::int32_t, true, Exec>();
}
TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: structs of 12 bytes", Exec, RIGEL_TEST_SPACES) {
  check_pairs<Marked<12, 4>, Tally, true, Exec>();
}
TEST_CASE_TEMPLATE("⊗ sees pairs of elements alone: 16-bit integers into a struct, with k", Exec, RIGEL_TEST_SPACES) {
  support::check_pairs<std::int16_t, support::Tally, true, Exec>();
}

// The address of a struct of two words need not be a multiple of 8, as copies of 8 bytes would require.
TEST_CASE_TEMPLATE("structs of 8 bytes, between multiples of 8", Exec, RIGEL_TEST_SPACES) {
  using T = Marked<8, 4>;
  using Space = typename Exec::memory_space;
  using View = Kokkos::View<const T**, Kokkos::LayoutRight, Space, Kokkos::MemoryUnmanaged>;
  const int m = 5, n = 6, k = 9;
  const auto shifted = [](int rows, int columns, const auto& k_of, int side) {
    const Kokkos::View<std::uint32_t*, Space> words("words", 2 * rows * columns + 1);
    std::vector<T> elements;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) elements.push_back(T::of(k_of(i, j), side));
    support::copy_in<Exec>(words.data() + 1, elements.data(), elements.size() * sizeof(T));
    return words;
  };
  const auto a = shifted(m, k, [](int, int j) { return j; }, 0), b = shifted(k, n, [](int i, int) { return i; }, 1);
  const Kokkos::View<int*, Space> strays("strays", 1);
  const Kokkos::View<std::int32_t**, Kokkos::LayoutRight, Space> c("C", m, n);
  rigel::contract(Exec{}, support::Pairs<T, std::int32_t, true>(strays.data(), k),
                  View(reinterpret_cast<const T*>(a.data() + 1), m, k), View(reinterpret_cast<const T*>(b.data() + 1), k, n),
                  c, support::Kept{});
  CHECK(support::values(c) == std::vector<double>(m * n, k));
  CHECK(support::values(strays) == std::vector<double>{0});
}
