// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: what a call keeps in its workspace, and how much of X and Z it takes at a time.
#pragma once

#include <rigel/backends/cuda/mma/nearest_layout.hpp>
#include <rigel/backends/cuda/mma/nearest_strips.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>
#include <type_traits>

namespace rigel::backends::mma::nearest {

/// Calls use(std::integral_constant<int, steps>) with the least number of steps along K that a kernel exists for.
template <class Use>
auto with_steps(std::int64_t k, const Use& use) {
  if (k <= 16) return use(std::integral_constant<int, 1>{});
  if (k <= 32) return use(std::integral_constant<int, 2>{});
  if (k <= 64) return use(std::integral_constant<int, 4>{});
  return use(std::integral_constant<int, 8>{});
}

inline constexpr int most_results = 128, most_parts = 4 * most_results;

/// How many blocks share the columns of the same rows: those whose rounds of `slots` blocks take the least time. A block begins in the time
/// of a few tiles.
inline std::int64_t slices_of(std::int64_t blocks, std::int64_t tiles, std::int64_t slots) {
  constexpr std::int64_t most = 32, begin = 6;
  std::int64_t best = 1, best_time = 0;
  for (std::int64_t slices = 1; slices <= std::min(most, tiles); ++slices) {
    const std::int64_t rounds = (blocks * slices + slots - 1) / slots;
    const std::int64_t time = rounds * ((tiles + slices - 1) / slices + begin);
    if (slices == 1 || time < best_time) {
      best = slices;
      best_time = time;
    }
  }
  return best;
}

/// Where what the launches share lies in the workspace. So many rows are searched at a time, and of the k smallest so many columns.
struct Memory {
  bool many = false;        // by the two sweeps of the k smallest,
  bool of_minimum = false;  // though the minimum is wanted
  std::size_t centre = 0, tiles = 0, list = 0, keys = 0, states = 0, words = 0, bytes = 0;
  std::int64_t rows = 0;
  Lists lists{};

  /// `count`: the k of the k smallest; 0: the minimum, with `by_lists` or beyond the limit as the least of one.
  static Memory of(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count, bool exclude_self, std::size_t limit,
                   bool by_lists = false) {
    return with_steps(k, [&](auto steps) {
      using L = Layout<decltype(steps)::value>;
      if (count == 0 && !by_lists) {
        const Memory at = of_least(m, L::tiles(n), L::tile_bytes, limit);
        if (at.bytes <= limit) return at;
      }
      Memory at = of_many(m, n, L::columns, L::tile_bytes, L::group, std::max<std::int64_t>(count, 1), exclude_self,
                          count == 0, limit);
      at.of_minimum = count == 0;
      return at;
    });
  }

 private:
  static Memory of_least(std::int64_t m, std::int64_t tiles, std::int64_t tile_bytes, std::size_t limit) {
    constexpr std::int64_t least = 1 << 16, largest = 1 << 30, block = 128;
    constexpr std::size_t of_row = sizeof(unsigned) + sizeof(unsigned long long);
    Memory at;
    detail::WorkspaceLayout layout;
    at.begin(layout, tiles, tile_bytes);
    const auto fit =
        static_cast<std::int64_t>(limit > layout.bytes() ? (limit - layout.bytes()) / of_row : 0) / block * block;
    at.rows = std::min({m, std::max(fit, least), largest});
    at.list = layout.add(at.rows, sizeof(unsigned));
    at.keys = layout.add(at.rows, sizeof(unsigned long long));
    at.bytes = layout.bytes();
    return at;
  }

  static Memory of_many(std::int64_t m, std::int64_t n, std::int64_t tile_columns, std::int64_t tile_bytes, int group,
                        std::int64_t count, bool exclude_self, bool of_minimum, std::size_t limit) {
    constexpr std::int64_t block = 128, largest = 1 << 24;
    const auto rounded = [](std::int64_t all, std::int64_t each) { return (all + each - 1) / each * each; };
    Memory at;
    at.many = true;
    Lists& lists = at.lists;
    lists.capacity = static_cast<int>(rounded(2 * count + 64, 32));
    lists.least = static_cast<int>(count + (exclude_self ? 1 : 0));
    lists.strips.n = n;
    lists.strips.runs = static_cast<unsigned>(std::clamp<std::int64_t>(count, 16, most_parts / 4));
    lists.strips.chunks_of_tile = static_cast<unsigned>(tile_columns / 32);
    lists.parts = static_cast<int>(4 * lists.strips.runs);
    lists.pitch = std::max(lists.parts, lists.capacity);
    lists.strips.chunks = static_cast<unsigned>(rounded(n, tile_columns) / 32);
    lists.all = n <= lists.capacity && !of_minimum && !lists.has_parts(group);
    if (lists.all) {
      at.rows = std::clamp<std::int64_t>(m, 1, largest);
      return at;
    }
    // A half for the rows that share a strip, the rest for the strip, and for more rows what this leaves.
    const std::int64_t row_bytes = 4 * lists.pitch + static_cast<std::int64_t>(sizeof(RowState)) + 12;
    const std::int64_t most_rows = std::clamp(rounded(m, block), block, largest),
                       most_tiles = rounded(n, tile_columns) / tile_columns;
    constexpr std::int64_t others = 4096;  // at most of the first arrays, and what is between arrays
    const std::int64_t rest =
        std::max<std::int64_t>(static_cast<std::int64_t>(std::min<std::size_t>(limit, std::size_t{1} << 62)) - others, 0);
    const auto rows_in = [&](std::int64_t of) { return std::clamp(of / row_bytes / block * block, block, most_rows); };
    std::int64_t tiles = std::clamp<std::int64_t>((rest - rows_in(rest / 2) * row_bytes) / tile_bytes, 1, most_tiles);
    // Strips and pieces of rows of one size.
    const auto even = [](std::int64_t all, std::int64_t most) {
      const std::int64_t pieces = (all + most - 1) / most;
      return (all + pieces - 1) / pieces;
    };
    tiles = even(most_tiles, tiles);
    at.rows = rounded(even(most_rows, rows_in(rest - tiles * tile_bytes)), block);
    lists.strips.chunks = static_cast<unsigned>(tiles) * lists.strips.chunks_of_tile;
    detail::WorkspaceLayout layout;
    at.begin(layout, tiles, tile_bytes);
    at.list = layout.add(at.rows, sizeof(unsigned));
    at.keys = layout.add(at.rows, sizeof(unsigned long long));
    at.states = layout.add(at.rows, sizeof(RowState));
    at.words = layout.add(at.rows * lists.pitch, sizeof(std::uint32_t));
    at.bytes = layout.bytes();
    return at;
  }

  void begin(detail::WorkspaceLayout& layout, std::int64_t tile_count, std::int64_t tile_bytes) {
    layout.add(1, sizeof(Found));
    centre = layout.add(largest_numbers, sizeof(float));
    tiles = layout.add(tile_count, static_cast<std::size_t>(tile_bytes));
  }
};

}  // namespace rigel::backends::mma::nearest
