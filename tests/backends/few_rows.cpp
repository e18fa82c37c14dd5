// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few rows of A and a large B, or a few columns of B and a large A. Their rows or columns begin anywhere, and K is around vectors
// and slabs. Every kernel that promises the reference's bits must give them, and write only C's elements.
#include <rigel/contract.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/memory.hpp>
#include <tests/support/problem.hpp>
#include <tests/support/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using support::Placement;

struct Extents {
  int few, many, k;
};
// Each block of a GPU has several tiles, of one slab to five. Hosts have fewer threads, and get an eighth of this.
constexpr Extents many_tiles[] = {{3, 40'001, 17}, {9, 50'001, 70}, {2, 50'001, 261}, {40, 9'001, 33}, {12, 50'001, 133}};
constexpr int most = 50'001;

// The range of A's and B's elements, and what lies between those of A, B and C in memory: read as data, it changes results. C's
// range is three times as large, so that minima and maxima depend on it.
struct Numbers {
  double low = -4, high = 4;
  double between_a = std::numeric_limits<double>::quiet_NaN(), between_b = between_a, between_c = -1000;
};

// Matrices of rows × columns, row-major or column-major, with neighbours `step` elements apart. In three of ten, all rows or
// columns begin at aligned addresses. In others the first element is up to five elements after one; rows or columns are a multiple
// of 16 elements apart, or have up to eight elements between them. Some matrices end at the end of their memory.
Placement somewhere(int batches, int rows, int columns, bool row_major, int step, support::Random& random) {
  const auto whole = [](std::int64_t elements) { return (elements + 15) / 16 * 16; };
  const std::int64_t outer = row_major ? rows : columns, inner = row_major ? columns : rows, length = step * (inner - 1) + 1;
  const bool aligned = random.chance(0.3);
  const std::int64_t first = aligned ? 0 : random.pick({0, 1, 5});
  const std::int64_t pitch = aligned || random.chance(0.2) ? whole(length) : length + random.pick({0, 1, 3, 8});
  const std::int64_t batch = aligned || random.chance(0.5) ? whole(outer * pitch) : outer * pitch + 1;
  const std::int64_t last = first + (batches - 1) * batch + (outer - 1) * pitch + length;
  return {.batches = batches,
          .rows = rows,
          .columns = columns,
          .first = first,
          .batch = batch,
          .row = row_major ? pitch : step,
          .column = row_major ? step : pitch,
          .span = last + random.pick({0, 16})};
}

template <class T>
support::Bytes random_bytes(const Placement& p, double low, double high, double between, support::Random& random) {
  std::vector<T> values(static_cast<std::size_t>(p.span), support::number<T>(between));
  p.for_each([&](std::int64_t at) { values[static_cast<std::size_t>(at)] = support::number<T>(random.uniform(low, high)); });
  support::Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string text(const Placement& p) {
  std::string list;
  for (const std::int64_t v : {p.batches, p.rows, p.columns, p.first, p.batch, p.row, p.column, p.span})
    list += std::to_string(v) + ' ';
  return list;
}

// Compares C, which holds To, with the reference's, for every kernel that keeps its bits. Kernels named `skinny` must take up to 40
// rows, unless the matrices of the larger operand are not a multiple of 16 bytes apart.
template <class Exec, class S, class To = typename S::accumulator>
void check_few_rows(std::uint64_t seed, const Numbers& numbers = {}) {
  using T = typename S::element;
  rigel::SemiringInfo facts = rigel::semiring_info<S>();
  const auto kernels = support::kernels_on(Exec{}, facts.name, facts.element, facts.accumulator);
  if (rigel::detail::space_of<Exec> == rigel::Space::cuda)
    CHECK(std::any_of(kernels.begin(), kernels.end(), [](const auto& info) { return info.variant == "skinny"; }));
  facts.result = rigel::scalar_of<To>;
  support::Random random(seed);
  const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> terms("terms", 2, most);
  const support::Bytes of_terms = random_bytes<float>({1, 2, most, 0, 0, most, 1, 2 * most}, -4, 4, 0, random);
  support::copy_in<Exec>(terms.data(), of_terms.data(), of_terms.size());

  const auto many_of = [](int many) { return rigel::detail::space_of<Exec> == rigel::Space::cuda ? many : many / 8 + 1; };
  // The larger operand is A if `swapped`, and K-major or not. The rest is random.
  const auto check = [&](const Extents& extents, bool swapped, bool k_major) {
    const auto [few, many, k] = extents;
    const int m = swapped ? many : few, n = swapped ? few : many;
    const int batches = random.chance(0.2) ? 2 : 1, of_larger = random.chance(0.3) ? 1 : batches;
    const int step = few < many && random.chance(0.25) ? 2 : 1;  // of the smaller operand
    const bool few_k_major = random.chance(0.7);
    const Placement a =
        swapped ? somewhere(of_larger, m, k, k_major, 1, random) : somewhere(batches, m, k, few_k_major, step, random);
    const Placement b =
        swapped ? somewhere(batches, k, n, !few_k_major, step, random) : somewhere(of_larger, k, n, !k_major, 1, random);
    const Placement c = somewhere(batches, m, n, random.chance(0.5), 1, random);
    const bool accumulate = random.chance(0.4);
    const bool has_layer = !std::is_integral_v<To> && random.chance(0.5);  // integers would be rounded
    CAPTURE(text(a));
    CAPTURE(text(b));
    CAPTURE(text(c));
    CAPTURE(accumulate);
    CAPTURE(has_layer);

    support::Trial trial{};
    trial.batch = batches;
    trial.m = m;
    trial.n = n;
    trial.k = k;
    trial.accumulate = accumulate;
    support::Problem<Exec> problem(
        trial, facts,
        {.a = a,
         .b = b,
         .c = c,
         .a_bytes = random_bytes<T>(a, numbers.low, numbers.high, numbers.between_a, random),
         .b_bytes = random_bytes<T>(b, numbers.low, numbers.high, numbers.between_b, random),
         .c_bytes = random_bytes<To>(c, 3 * numbers.low, 3 * numbers.high, numbers.between_c, random)});
    if (has_layer) {
      const std::pair first{0, n}, last{most - m, most}, of_batches{0, batches};
      problem.program = rigel::epilogue::add_row(Kokkos::subview(terms, of_batches, first)) | rigel::epilogue::scale(0.5) |
                        rigel::epilogue::add_column(Kokkos::subview(terms, of_batches, last));
    }

    const support::Bytes expected = problem.result("reference");
    CHECK(support::same_gaps(c, facts.result, expected, problem.operands.c_bytes));
    const Placement& larger = n < m ? a : b;
    const bool is_taken = few <= 40 && (larger.batches == 1 || larger.batch * std::int64_t{sizeof(T)} % 16 == 0);
    for (const auto& info : kernels) {
      if (info.family == "reference" || !covers(info.promises, rigel::Promise::reference_bits)) continue;
      CAPTURE(info.name);
      support::Bytes actual;
      const bool ran = support::ran(info, [&] { actual = problem.result(info.name); });
      if (info.variant == "skinny" && is_taken) CHECK(ran);
      const bool same_bits = actual == expected;
      if (ran) CHECK(same_bits);
    }
  };
  for (const bool swapped : {false, true})
    for (const bool k_major : {false, true}) {
      for (const int few : {1, 2, 3, 4, 5, 9, 17, 40, 70})
        for (const int k : {1, 7, 16, 33, 100, 129, 256, 261})
          check({few, random.pick({37, 131, 200}), k}, swapped, k_major);
      check({3, 131, 1301}, swapped, k_major);  // more slabs than places for them
      check({9, 131, 1301}, swapped, k_major);
      const auto [few_of_many, many, k_of_many] = many_tiles[(seed + 2 * swapped + k_major) % std::size(many_tiles)];
      check({few_of_many, many_of(many), k_of_many}, swapped, k_major);
      // Floats have wide tiles for as many columns as fill a GPU, and several turns for more rows.
      if constexpr (std::is_same_v<T, float>)
        for (const int few : {5, 9, 12, 31})
          for (const int k : {30, 77}) check({few, many_of(40'001), k}, swapped, k_major);
    }
}

}  // namespace

TEST_CASE_TEMPLATE("a few rows and a large matrix of any alignment", Exec, Kokkos::DefaultExecutionSpace) {
  using rigel::bfloat16, rigel::half;
  check_few_rows<Exec, rigel::min_plus<float>>(1);
  check_few_rows<Exec, rigel::plus_times<float>>(2);
  check_few_rows<Exec, rigel::l1<half>>(3);
  check_few_rows<Exec, rigel::plus_times<bfloat16>, bfloat16>(4);
  check_few_rows<Exec, rigel::min_plus<half>, half>(5);
  check_few_rows<Exec, rigel::max_plus<std::uint8_t>>(6, {0, 100, 255, 255, -1000});
  // Of two equal numbers between elements, the distance would be 0.
  check_few_rows<Exec, rigel::linf<std::int8_t>>(7, {-30, 30, 127, -128, -1000});
  check_few_rows<Exec, rigel::l1<double>>(8);
  check_few_rows<Exec, rigel::min_max<std::int64_t>>(9, {-1e15, 1e15, -4e18, -4e18, 3e18});
  check_few_rows<Exec, rigel::max_times<bfloat16>, bfloat16>(10, {0, 4});  // of numbers from 0 on
  check_few_rows<Exec, rigel::min_plus<half, half>>(11);
  check_few_rows<Exec, rigel::max_min<std::int16_t>>(12, {-1000, 1000, 30000, 30000, -2000});
  check_few_rows<Exec, rigel::hamming<std::uint8_t>>(13, {0, 3, 7, 9, -1000});
  check_few_rows<Exec, rigel::min_plus<bfloat16, bfloat16>>(14);
}
