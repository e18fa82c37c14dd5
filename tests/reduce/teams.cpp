// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The portable strips for devices, on a host: teams of coroutines reduce scores in one and in several chunks, and must find what the
// kernel for hosts finds, bit for bit.
#include <rigel/config.hpp>
#if RIGEL_BACKEND_PORTABLE
#include <rigel/backends/portable/monoid.hpp>
#include <rigel/semirings.hpp>

#include <tests/support/random.hpp>
#include <tests/support/team.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace {

namespace portable = rigel::backends::portable;
using rigel::Reducer;

struct Found {
  std::vector<double> values;
  std::vector<std::int64_t> indices;
};

template <class T, Reducer reducer, bool by_teams>
Found reduced(const std::vector<T>& scores, std::int64_t rows, std::int64_t columns, std::int64_t chunk, std::int64_t count,
              bool exclude_self) {
  using Rows = portable::RowsOf<T, reducer, by_teams>;
  Found found{std::vector<double>(static_cast<std::size_t>(rows * count), -7),
              std::vector<std::int64_t>(static_cast<std::size_t>(rows * count), -7)};
  rigel::Reduction p;
  p.reducer = reducer;
  p.count = count;
  p.threshold = 0;
  p.values = {.data = found.values.data(), .type = rigel::Scalar::f64, .size = 8, .row_stride = count, .column_stride = 1};
  p.indices = {.data = found.indices.data(), .type = rigel::Scalar::i64, .size = 8, .row_stride = count, .column_stride = 1};
  // Lists: `count` places for each row.
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(rows + 1));
  if (reducer == Reducer::all_below) {
    for (std::int64_t m = 0; m <= rows; ++m) offsets[static_cast<std::size_t>(m)] = m * count;
    p.offsets = {.data = offsets.data(), .type = rigel::Scalar::i64, .size = 8, .rows = rows + 1, .row_stride = 1};
    p.values.rows = p.indices.rows = rows * count;
    p.values.row_stride = p.indices.row_stride = 1;
  }
  // Histograms: `count` bins of two.
  std::vector<double> edges;
  for (std::int64_t i = 0; i <= count; ++i) edges.push_back(static_cast<double>(2 * i) - 30);
  p.edges = {.data = edges.data(), .type = rigel::Scalar::f64, .size = 8, .rows = count + 1, .row_stride = 1};
  const std::size_t bytes = Rows::bytes(count);
  std::vector<std::byte> states(bytes * static_cast<std::size_t>(rows), std::byte{0xa5});
  std::vector<T> strip(static_cast<std::size_t>(rows * chunk));
  std::int64_t n = 0;
  do {
    const std::int64_t width = std::min(chunk, columns - n);
    for (std::int64_t m = 0; m < rows; ++m)
      for (std::int64_t j = 0; j < width; ++j)
        strip[static_cast<std::size_t>(m * chunk + j)] = scores[static_cast<std::size_t>(m * columns + n + j)];
    const portable::Reduced<T, reducer> all{.outputs = rigel::detail::ReducedOutputs::of(p),
                                            .below = rigel::detail::Below<T>::of(p),
                                            .count = count,
                                            .exclude_self = exclude_self,
                                            .strip = {.l = 0,
                                                      .m = 0,
                                                      .n = n,
                                                      .matrices = 1,
                                                      .rows = rows,
                                                      .columns = width,
                                                      .pitch = chunk,
                                                      .is_first = n == 0,
                                                      .is_last = n + width >= columns},
                                            .scores = strip.data(),
                                            .states = states.data(),
                                            .state_bytes = bytes,
                                            .bins = rigel::detail::Bins::of(p)};
    const Rows work{all};
    if constexpr (by_teams)
      support::run(work, Rows::threads, Rows::scratch);
    else
      for (std::int64_t r = 0; r < rows; ++r) work(r);
    n += chunk;
  } while (n < columns);
  return found;
}

template <class T, Reducer reducer>
void check(std::int64_t columns, std::int64_t chunk, std::int64_t count, bool special, bool exclude_self) {
  constexpr std::int64_t rows = 5;
  CAPTURE(rigel::name(reducer));
  CAPTURE(columns);
  CAPTURE(chunk);
  CAPTURE(count);
  CAPTURE(special);
  CAPTURE(exclude_self);
  support::Random random(static_cast<std::uint64_t>(columns + count));
  std::vector<T> scores(static_cast<std::size_t>(rows * columns));
  for (T& score : scores) score = static_cast<T>(random.integer(-40, 40));  // many are equal
  if constexpr (std::is_floating_point_v<T>)
    if (special)
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const auto number = random.integer(0, 9);
        if (number == 0) scores[i] = std::numeric_limits<T>::quiet_NaN();
        if (number == 1) scores[i] = std::numeric_limits<T>::infinity();
        if (number == 2) scores[i] = -std::numeric_limits<T>::infinity();
      }
  const Found expected = reduced<T, reducer, false>(scores, rows, columns, columns + 64, count, exclude_self),
              actual = reduced<T, reducer, true>(scores, rows, columns, chunk, count, exclude_self);
  int wrong = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double x = expected.values[i], y = actual.values[i];
    wrong += !(x == y || (x != x && y != y)) || expected.indices[i] != actual.indices[i];
  }
  CHECK(wrong == 0);
}

template <class T, Reducer reducer>
void check_all(std::initializer_list<std::int64_t> counts) {
  for (const std::int64_t count : counts)
    for (const std::int64_t columns : {0, 1, 31, 700, 3000})
      for (const std::int64_t chunk : {64, 640, 4096}) {
        check<T, reducer>(columns, chunk, count, false, false);
        check<T, reducer>(columns, chunk, count, true, true);
      }
}

TEST_CASE("reduce: teams find what one thread finds") {
  check_all<float, Reducer::minimum>({1});
  check_all<double, Reducer::maximum>({1});
  check_all<std::int32_t, Reducer::minimum>({1});
  check_all<float, Reducer::sum>({1});
  check_all<std::int64_t, Reducer::sum>({1});
  check_all<float, Reducer::log_sum_exp>({1});
  check_all<double, Reducer::count_below>({1});
}

TEST_CASE("reduce: teams list what one thread lists") {
  check_all<float, Reducer::all_below>({1, 200, 3000});
  check_all<std::int32_t, Reducer::all_below>({40});
}

TEST_CASE("reduce: teams fill the bins that one thread fills") {
  check_all<float, Reducer::histogram>({1, 25, 200});
  check_all<std::int32_t, Reducer::histogram>({30});
}

TEST_CASE("reduce: teams find the k best") {
  check_all<float, Reducer::smallest>({1, 10, 128, 1000});
  check_all<double, Reducer::largest>({3, 200});
  check_all<std::int32_t, Reducer::smallest>({7});
}

/// Sums that round: their order shows.
struct Reciprocals {
  RIGEL_MEMBER double identity() const { return 0; }
  RIGEL_MEMBER double of(float score, std::int64_t n) const { return 1 / (score + 50.) + static_cast<double>(n); }
  RIGEL_MEMBER double join(double x, double y) const { return x + y; }
  RIGEL_MEMBER double result(double x) const { return x; }
};

TEST_CASE("reduce: teams join a user's monoid in the order of one thread") {
  constexpr std::int64_t rows = 5, columns = 700;
  support::Random random(1);
  std::vector<float> scores(rows * columns);
  for (float& score : scores) score = static_cast<float>(random.uniform(-40, 40));
  const auto joined = [&](std::int64_t chunk, bool exclude_self, bool by_teams) {
    using Rows = portable::MonoidRows<float, Reciprocals>;
    std::vector<double> values(rows, -7), states(rows * Rows::threads, -7);
    rigel::Reduction p;
    p.values = {.data = values.data(), .type = rigel::Scalar::f64, .size = 8, .row_stride = 1, .column_stride = 1};
    std::vector<float> strip(static_cast<std::size_t>(rows * chunk));
    for (std::int64_t n = 0; n < columns; n += chunk) {
      const std::int64_t width = std::min(chunk, columns - n);
      for (std::int64_t m = 0; m < rows; ++m)
        for (std::int64_t j = 0; j < width; ++j)
          strip[static_cast<std::size_t>(m * chunk + j)] = scores[static_cast<std::size_t>(m * columns + n + j)];
      const rigel::detail::Strip part{0, 0, n, 1, rows, width, chunk, n == 0, n + width >= columns};
      const Rows work{rigel::detail::ReducedOutputs::of(p), {}, exclude_self, part, strip.data(), states.data()};
      if (by_teams)
        support::run(work, Rows::threads, Rows::scratch);
      else
        for (std::int64_t r = 0; r < rows; ++r) work(r);
    }
    return values;
  };
  for (const bool exclude_self : {false, true})
    for (const std::int64_t chunk : {64, 640, 4096})
      CHECK(joined(chunk, exclude_self, true) == joined(4096, exclude_self, false));
}

TEST_CASE("reduce: strips keep the alignment of columns") {
  rigel::Reduction p;
  p.scores.type = rigel::Scalar::f32;
  p.batch = 1;
  p.n = 100000;
  const auto rows = [&](std::int64_t all, std::size_t limit, bool on_device) {
    p.m = all;
    p.workspace_limit = limit;
    return portable::Strips(p, on_device, 16).shape().rows;
  };
  // 32 MiB hold 511 rows of 16384 floats and 16 bytes, half of 4 MiB 31 rows.
  CHECK(rows(100000, 0, true) == 448);
  CHECK(rows(100000, 4 << 20, true) == 16);
  CHECK(rows(470, 0, true) == 470);
  CHECK(rows(7, 0, true) == 7);
  CHECK(rows(100000, 1, true) == 1);
  CHECK(rows(100000, 0, false) % 16 == 0);
}

}  // namespace

#endif
