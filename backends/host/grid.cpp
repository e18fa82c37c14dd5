// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cuts a problem into tiles, and lays out a worker's scratch memory.
#include <rigel/backends/host/grid.hpp>

#include <algorithm>

namespace rigel::backends::host {

namespace {

constexpr std::int64_t up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

// The extent of tiles, a multiple of `unit`, that cuts `extent` into as few tiles of at most `most` as possible, about equal
// ones.
std::int64_t even_tile(std::int64_t extent, std::int64_t most, std::int64_t unit) {
  const std::int64_t tiles = std::max<std::int64_t>(1, (extent + most - 1) / most);
  return std::max(unit, up((extent + tiles - 1) / tiles, unit));
}

}  // namespace

Grid grid_of(const Contraction& p, const Geometry& shape) {
  // A panel of B (at most 32 KiB) stays in the first-level cache; packed A and B (at most 240 and 512 KiB) stay in a
  // second-level cache of 1 MiB.
  constexpr int max_depth = 256;
  constexpr std::int64_t row_bytes_a = 960, row_bytes_b = 2048;
  // Tiles with fewer pairs than this are not worth starting a thread.
  constexpr std::int64_t least_pairs = 1 << 15;

  Grid g = {};
  g.transposed = shape.commutative && p.c.row_stride == 1 && p.c.column_stride != 1 && p.m > 1;
  const std::int64_t m = g.transposed ? p.n : p.m, n = g.transposed ? p.m : p.n;
  g.depth_blocks = static_cast<int>(std::max<std::int64_t>(1, (p.k + max_depth - 1) / max_depth));
  g.depth = static_cast<int>((p.k + g.depth_blocks - 1) / g.depth_blocks);

  const auto most = [&](std::int64_t bytes, int unit) {
    return std::max<std::int64_t>(unit, bytes / static_cast<std::int64_t>(shape.operand_bytes) / unit * unit);
  };
  std::int64_t most_m = most(row_bytes_a, shape.rows), most_n = most(row_bytes_b, shape.columns);
  const auto cut = [&] {
    g.tile_m = even_tile(m, most_m, shape.rows);
    g.tile_n = even_tile(n, most_n, shape.columns);
    g.tiles_m = (m + g.tile_m - 1) / g.tile_m;
    g.tiles_n = (n + g.tile_n - 1) / g.tile_n;
    g.tiles = g.tiles_m * g.tiles_n * p.batch;
  };
  cut();
  // Halves tiles until every thread has several, which balances the load at the end.
  const int threads = std::max(1, p.execution.concurrency);
  const std::int64_t wanted = threads == 1 ? 1 : 4 * std::int64_t(threads);
  while (g.tiles < wanted && g.tile_m * g.tile_n * std::max<std::int64_t>(1, p.k) > 2 * least_pairs) {
    if (g.tile_m > shape.rows && (g.tile_m >= g.tile_n || g.tile_n <= shape.columns))
      most_m = up(g.tile_m / 2, shape.rows);
    else if (g.tile_n > shape.columns)
      most_n = up(g.tile_n / 2, shape.columns);
    else
      break;
    const auto before = g.tiles;
    cut();
    if (g.tiles == before) break;
  }
  g.workers = static_cast<int>(std::clamp<std::int64_t>(g.tiles, 1, threads));

  detail::WorkspaceLayout scratch;
  g.a = scratch.add(g.tile_m * g.depth, shape.operand_bytes);
  g.b = scratch.add(g.tile_n * g.depth, shape.operand_bytes);
  g.block = scratch.add(std::int64_t{shape.rows} * shape.columns, shape.accumulator_bytes);
  g.sums = scratch.add(g.depth_blocks > 1 ? g.tile_m * g.tile_n : 0, shape.accumulator_bytes);
  g.scratch = scratch.bytes();
  return g;
}

}  // namespace rigel::backends::host
