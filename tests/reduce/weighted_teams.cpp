// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The weights of a softmax by teams of devices, on a host: teams of coroutines make of scores, in several chunks, what the kernel for
// hosts makes of them, bit for bit.
#include <rigel/config.hpp>
#if RIGEL_BACKEND_PORTABLE
#include <rigel/backends/portable/weighted.hpp>

#include <tests/support/random.hpp>
#include <tests/support/team.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace {

namespace portable = rigel::backends::portable;

template <class T>
struct Weights {
  std::vector<T> weights;
  std::vector<double> numbers;  // maximum, total and factor of each row after each chunk
};

template <class T>
Weights<T> weights(const std::vector<T>& scores, std::int64_t rows, std::int64_t columns, std::int64_t chunk,
                   bool exclude_self, bool by_teams) {
  Weights<T> all;
  std::vector<typename portable::WeightedStrip<T>::Row> of_rows(static_cast<std::size_t>(rows), {-7, -7, -7});
  for (std::int64_t n = 0; n < columns; n += chunk) {
    const std::int64_t width = std::min(chunk, columns - n);
    std::vector<T> strip(static_cast<std::size_t>(rows * chunk), T(-7));
    for (std::int64_t m = 0; m < rows; ++m)
      for (std::int64_t j = 0; j < width; ++j)
        strip[static_cast<std::size_t>(m * chunk + j)] = scores[static_cast<std::size_t>(m * columns + n + j)];
    const portable::SoftmaxRow<T> work{{.outputs = {},
                                        .v = {},
                                        .count = 1,
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
                                        .rows = of_rows.data(),
                                        .sums = nullptr,
                                        .partial = nullptr}};
    if (by_teams)
      support::run(work, work.threads, work.scratch);
    else
      for (std::int64_t r = 0; r < rows; ++r) work(r);
    all.weights.insert(all.weights.end(), strip.begin(), strip.end());
    for (const auto& row : of_rows) all.numbers.insert(all.numbers.end(), {row.maximum, row.total, row.factor});
  }
  return all;
}

TEST_CASE_TEMPLATE("softmax: teams make the weights that threads make", T, float, double) {
  constexpr std::int64_t rows = 70, columns = 200;
  for (const bool special : {false, true})
    for (const bool exclude_self : {false, true})
      for (const std::int64_t chunk : {std::int64_t{64}, std::int64_t{256}}) {
        support::Random random(static_cast<std::uint64_t>(chunk));
        std::vector<T> scores(static_cast<std::size_t>(rows * columns));
        for (T& score : scores) {
          score = static_cast<T>(random.uniform(-5, 5));
          const auto number = special ? random.integer(0, 99) : 9;
          if (number == 0) score = std::numeric_limits<T>::quiet_NaN();
          if (number == 1) score = std::numeric_limits<T>::infinity();
          if (number == 2) score = -std::numeric_limits<T>::infinity();
        }
        const auto expected = weights(scores, rows, columns, chunk, exclude_self, false),
                   actual = weights(scores, rows, columns, chunk, exclude_self, true);
        int wrong = 0;
        const auto same = [](auto x, auto y) { return x == y || (x != x && y != y); };
        for (std::size_t i = 0; i < expected.weights.size(); ++i) wrong += !same(expected.weights[i], actual.weights[i]);
        for (std::size_t i = 0; i < expected.numbers.size(); ++i) wrong += !same(expected.numbers[i], actual.numbers[i]);
        CHECK(wrong == 0);
      }
}

}  // namespace
#endif
