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

// Whether the loops compute C's transpose: if C is contiguous along M, or if whole vectors along N are mostly padding.
bool computes_transpose(const Contraction& p, int columns) {
  if (p.m < 2) return false;
  const bool by_columns = p.c.row_stride == 1 && p.c.column_stride != 1;
  const auto padded = [&](std::int64_t extent) {
    return static_cast<double>(up(extent, columns)) / static_cast<double>(extent);
  };
  if (p.n < 1) return by_columns;
  return by_columns ? padded(p.m) < 2 * padded(p.n) : padded(p.n) > 2 * padded(p.m);
}

Grid grid_of_blocks(const Contraction& p, const Geometry& shape) {
  // A panel of B (at most 32 KiB) stays in the first-level cache; packed A and B (at most 240 and 512 KiB) stay in a
  // second-level cache of 1 MiB.
  constexpr int max_depth = 256;
  constexpr std::int64_t row_bytes_a = 960, row_bytes_b = 2048;
  // Tiles with fewer pairs than this are not worth starting a thread.
  constexpr std::int64_t least_pairs = 1 << 15;

  Grid g = {};
  g.transposed = shape.commutative && computes_transpose(p, shape.columns);
  const std::int64_t m = g.transposed ? p.n : p.m, n = g.transposed ? p.m : p.n;
  g.depth_blocks = static_cast<int>(std::max<std::int64_t>(1, (p.k + max_depth - 1) / max_depth));
  g.depth = static_cast<int>((p.k + g.depth_blocks - 1) / g.depth_blocks);

  const auto most = [&](std::int64_t bytes, int unit) {
    return std::max<std::int64_t>(unit, bytes / static_cast<std::int64_t>(shape.operand_bytes) / unit * unit);
  };
  std::int64_t most_m = most(row_bytes_a, shape.rows),
               most_n = most(row_bytes_b * (max_depth / std::max(1, g.depth)), shape.columns);
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

  g.shared = Grid::counter_bytes;
  detail::WorkspaceLayout scratch;
  g.a = scratch.add(g.tile_m * g.depth, shape.operand_bytes);
  g.b = scratch.add(g.tile_n * g.depth, shape.operand_bytes);
  g.block = scratch.add(std::int64_t{shape.rows} * shape.columns, shape.accumulator_bytes);
  g.sums = scratch.add(g.depth_blocks > 1 ? g.tile_m * g.tile_n : 0, shape.accumulator_bytes);
  g.scratch = scratch.bytes();
  return g;
}

// A tile is one matrix of each lane.
Grid grid_of_batches(const Contraction& p, const Geometry& shape) {
  Grid g = {};
  g.transposed = p.c.row_stride == 1 && p.c.column_stride != 1 && p.m > 1;
  g.tile_m = p.m;
  g.tile_n = p.n;
  g.tiles = (p.batch + shape.lanes - 1) / shape.lanes;
  g.workers = static_cast<int>(std::clamp<std::int64_t>(g.tiles, 1, std::max(1, p.execution.concurrency)));
  g.shared = Grid::counter_bytes;
  detail::WorkspaceLayout scratch;
  g.a = scratch.add(p.m * p.k * shape.lanes, shape.operand_bytes);
  g.b = scratch.add(p.k * p.n * shape.lanes, shape.operand_bytes);
  g.block = scratch.add(p.m * p.n * shape.lanes, shape.value_bytes);
  g.sums = scratch.add(p.m * p.n, shape.sums_bytes);
  g.scratch = scratch.bytes();
  return g;
}

Grid grid_of_slices(const Contraction& p, const Geometry& shape) {
  // Packed lines of a tile take 32 KiB; a slice is worth an item of its own.
  constexpr std::int64_t line_bytes = 2048, least_slice = 4096, most_slices = 64, most_shared = 1 << 24;
  Grid g = {};
  g.depth =
      static_cast<int>(std::max<std::int64_t>(shape.lanes, line_bytes / static_cast<std::int64_t>(shape.operand_bytes)));
  g.slice = up(std::max(least_slice, (p.k + most_slices - 1) / most_slices), g.depth);
  g.slices = static_cast<int>(std::max<std::int64_t>(1, (p.k + g.slice - 1) / g.slice));
  g.tile_m = std::clamp<std::int64_t>(p.m, 1, slice_tile);
  g.tile_n = std::clamp<std::int64_t>(p.n, 1, slice_tile);
  const std::int64_t outputs = g.tile_m * g.tile_n;
  g.tiles_m = (p.m + slice_tile - 1) / slice_tile;
  g.tiles_n = (p.n + slice_tile - 1) / slice_tile;
  const std::int64_t tiles = g.tiles_m * g.tiles_n * p.batch, threads = std::max(1, p.execution.concurrency);
  g.shares_slices = g.slices > 1 && tiles < 4 * threads &&
                    tiles * g.slices * outputs <= most_shared / static_cast<std::int64_t>(shape.accumulator_bytes);
  g.tiles = g.shares_slices ? tiles * g.slices : tiles;
  g.workers = static_cast<int>(std::clamp<std::int64_t>(g.tiles, 1, threads));

  detail::WorkspaceLayout shared;
  shared.add(1, Grid::counter_bytes);
  g.done = shared.add(g.shares_slices ? tiles : 0, sizeof(int));
  g.partial = shared.add(g.shares_slices ? g.tiles * outputs : 0, shape.accumulator_bytes);
  g.shared = shared.bytes();
  detail::WorkspaceLayout scratch;
  g.a = scratch.add(g.tile_m * g.depth, shape.operand_bytes);
  g.b = scratch.add(g.tile_n * g.depth, shape.operand_bytes);
  g.block = scratch.add(2 * outputs + g.tile_n, shape.accumulator_bytes);
  g.sums = scratch.add(outputs, shape.sums_bytes);
  g.scratch = scratch.bytes();
  return g;
}

}  // namespace

Grid grid_of(Way way, const Contraction& p, const Geometry& shape) {
  switch (way) {
    case Way::batches: return grid_of_batches(p, shape);
    case Way::slices: return grid_of_slices(p, shape);
    default: return grid_of_blocks(p, shape);
  }
}

namespace {

// Seconds that an element takes to be packed, and an output to be stored, on one thread, and what a line of C takes beyond that.
constexpr double seconds_per_packed = 0.3e-9, seconds_per_output = 0.5e-9, seconds_per_line = 10e-9,
                 seconds_per_tile = 200e-9, launch_seconds = 1e-6;
// The ⊕ of lanes, for one of them.
constexpr double seconds_per_joined = 1.5e-9;

double of(std::int64_t x) { return static_cast<double>(x); }

}  // namespace

double seconds_of(Way way, const Contraction& p, const Geometry& shape) {
  const Grid g = grid_of(way, p, shape);
  const double rate = way == Way::blocks ? shape.rate : shape.lanes_rate, workers = g.workers,
               k = of(std::max<std::int64_t>(1, p.k));
  switch (way) {
    case Way::batches: {
      if (p.semiring_in_view && p.semiring_stride != 0) return 1e30;
      // Interleaved operands and sums stay in a second-level cache.
      if (g.scratch > (1 << 20) || p.m == 0 || p.n == 0) return 1e30;
      const double matrices = of(g.tiles) * shape.lanes, m = of(p.m), n = of(p.n);
      // Matrices without gaps and epilogue are stored as they are, others line by line.
      const bool dense =
          g.transposed ? p.c.row_stride == 1 && p.c.column_stride == p.m : p.c.column_stride == 1 && p.c.row_stride == p.n;
      const double lines = dense && p.program && p.program->empty() ? 0 : (g.transposed ? n : m) * of(p.batch);
      return launch_seconds +
             (matrices * (m * n * k / rate + (m * k + k * n) * seconds_per_packed + m * n * seconds_per_output) +
              lines * seconds_per_line) /
                 workers;
    }
    case Way::slices: {
      const double batch = of(p.batch), m = of(p.m), n = of(p.n), slices = g.slices;
      // The k that fill no vector are computed one by one, each in about the time of a vector.
      const double alone = of(p.k % shape.lanes), vectors = k / shape.lanes;
      const double of_output =
          (vectors + 2 * alone) * shape.lanes / rate + slices * (shape.lanes * seconds_per_joined) + seconds_per_output;
      return launch_seconds +
             batch *
                 (m * n * of_output + k * (m * of(g.tiles_n) + n * of(g.tiles_m)) * seconds_per_packed +
                  m * of(g.tiles_n) * seconds_per_line + of(g.tiles_m * g.tiles_n) * slices * seconds_per_tile) /
                 workers;
    }
    default: {
      const std::int64_t m = g.transposed ? p.n : p.m, n = g.transposed ? p.m : p.n;
      const double padded_m = of(up(m, 4)), padded_n = of(up(n, shape.columns)),
                   lines = of(m) * of((n + shape.columns - 1) / shape.columns);
      const double outputs = of(m) * of(n) * seconds_per_output;
      return launch_seconds + (of(p.batch) * (padded_m * padded_n * k / rate +
                                              (padded_m * of(g.tiles_n) + padded_n) * k * seconds_per_packed + outputs +
                                              lines * seconds_per_line) +
                               of(g.tiles) * seconds_per_tile) /
                                  workers;
    }
  }
}

std::pair<Way, double> way_of(const Contraction& p, const Geometry& shape, bool any_order) {
  std::pair best{Way::blocks, seconds_of(Way::blocks, p, shape)};
  for (const Way way : {Way::batches, Way::slices}) {
    if (way == Way::slices && !any_order) continue;
    if (const double seconds = seconds_of(way, p, shape); seconds < best.second) best = {way, seconds};
  }
  return best;
}

}  // namespace rigel::backends::host
