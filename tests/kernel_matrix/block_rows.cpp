// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a triangle is cut into block rows: with hand-counted waves of tiles.
#include <rigel/detail/block_rows.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

using rigel::detail::block_rows_by_waves, rigel::detail::BlockRows, rigel::detail::equal_block_rows;

namespace {

constexpr std::int64_t tile = 128;

/// Tiles of 128 × 128 outputs that cover a block row.
double tiles(std::int64_t first, std::int64_t height) {
  const auto along = [](std::int64_t n) { return std::ceil(static_cast<double>(n) / tile); };
  return along(height) * along(first + height);
}

/// Waves of 132 multiprocessors with two tiles each.
double waves(std::int64_t first, std::int64_t height) { return std::ceil(tiles(first, height) / (2 * 132)); }

void check_covers(const BlockRows& rows, std::int64_t m, std::int64_t step) {
  CHECK(std::accumulate(rows.heights.begin(), rows.heights.end(), std::int64_t{0}) == m);
  for (std::size_t i = 0; i < rows.heights.size(); ++i) {
    CHECK(rows.heights[i] > 0);
    CHECK(rows.heights[i] <= 16 * step);
    if (i + 1 < rows.heights.size()) CHECK(rows.heights[i] % step == 0);
  }
}

}  // namespace

TEST_CASE("block rows: of one height") {
  const BlockRows rows = equal_block_rows(1000, tile, 4, [](std::int64_t, std::int64_t height) { return 1e-3 * height; });
  CHECK(rows.heights == std::vector<std::int64_t>{256, 256, 256, 232});
  CHECK(rows.seconds == doctest::Approx(1));
  CHECK(equal_block_rows(128, tile, 2, waves).heights.empty());
  CHECK(equal_block_rows(1, tile, 2, waves).heights.empty());
}

// 235 tiles along a side: 235 · 236 / 2 = 27730 on or below the diagonal, 105.04 waves.
TEST_CASE("block rows: waves of 30000 rows") {
  // 15 tiles high, the last one 10: 15 · 15 · (1 + … + 15) + 10 · 235 = 29350 tiles. 1, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12, 12, 13, 9.
  CHECK(equal_block_rows(30000, tile, 16, tiles).seconds == 29350);
  CHECK(equal_block_rows(30000, tile, 16, waves).seconds == 118);
  const BlockRows rows = block_rows_by_waves(30000, tile, waves);
  check_covers(rows, 30000, tile);
  CHECK(rows.seconds <= 112);
  double sum = 0, computed = 0;
  std::int64_t first = 0;
  for (const std::int64_t height : rows.heights) {
    sum += waves(first, height);
    computed += tiles(first, height);
    first += height;
  }
  CHECK(rows.seconds == sum);
  CHECK(computed >= 27730);
  CHECK(computed <= 1.06 * 27730);
}

// Each block row has the least time for an output: with 4 tiles in a wave, two rows of tiles are 4 tiles for 2 outputs (of a tile), next to
// a single one's 1 for ½; then a row of 3 tiles is one wave for 2½ outputs, and two rows are 8 tiles, two waves for 6.
TEST_CASE("block rows: by hand") {
  const auto of_four = [](std::int64_t first, std::int64_t height) { return std::ceil(tiles(first, height) / 4); };
  const BlockRows rows = block_rows_by_waves(4 * tile, tile, of_four);
  CHECK(rows.heights == std::vector<std::int64_t>{2 * tile, 2 * tile});
  CHECK(rows.seconds == 3);
}

TEST_CASE("block rows: without waves they are as thin as they can be") {
  const auto outputs = [](std::int64_t first, std::int64_t height) {
    return static_cast<double>(height) * static_cast<double>(first + height);
  };
  const BlockRows rows = block_rows_by_waves(1000, tile, outputs);
  check_covers(rows, 1000, tile);
  CHECK(rows.heights.size() == 8);
  CHECK(block_rows_by_waves(tile, tile, outputs).heights.empty());
  CHECK(block_rows_by_waves(0, tile, outputs).heights.empty());
}

TEST_CASE("block rows: steps of long matrices") {
  const std::int64_t m = 1000001, step = 31 * tile;  // 7813 tiles along a side, hence 31 of them in a step
  check_covers(block_rows_by_waves(m, tile, waves), m, step);
}

TEST_CASE("block rows: a part that no kernel covers") {
  const auto seconds = [](std::int64_t first, std::int64_t height) {
    return first + height > 5000 ? std::numeric_limits<double>::infinity() : waves(first, height);
  };
  CHECK(std::isinf(block_rows_by_waves(10000, tile, seconds).seconds));
  CHECK(std::isinf(equal_block_rows(10000, tile, 8, seconds).seconds));
}
