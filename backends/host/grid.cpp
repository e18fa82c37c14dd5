// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cuts a problem into tiles, and lays out a worker's scratch memory.
#include <rigel/backends/host/grid.hpp>
#include <rigel/cpu.hpp>

#include <algorithm>
#include <cstdlib>

namespace rigel::backends::host {

namespace {

double of(std::int64_t x) { return static_cast<double>(x); }

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
  constexpr double least_pairs = 1 << 15;

  Grid g = {};
  g.transposed = shape.commutative && computes_transpose(p, shape.columns);
  const std::int64_t m = g.transposed ? p.n : p.m, n = g.transposed ? p.m : p.n;
  g.depth_blocks = std::max<std::int64_t>(1, (p.k + max_depth - 1) / max_depth);
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
  const auto has_pairs = [&] { return of(g.tile_m * g.tile_n) * of(std::max<std::int64_t>(1, p.k)) > 2 * least_pairs; };
  while (g.tiles < wanted && has_pairs()) {
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
  if (p.program) {
    const epilogue::Reads reads = p.program->reads();
    g.steps_differ = reads.row || reads.column || reads.batch;
  }
  g.tile_m = p.m;
  g.tile_n = p.n;
  g.tiles = (p.batch + shape.lanes - 1) / shape.lanes;
  g.workers = static_cast<int>(std::clamp<std::int64_t>(g.tiles, 1, std::max(1, p.execution.concurrency)));
  g.shared = Grid::counter_bytes;
  detail::WorkspaceLayout scratch;
  g.a = scratch.add(p.m * p.k * shape.lanes, shape.operand_bytes);
  g.b = scratch.add(p.k * p.n * shape.lanes, shape.operand_bytes);
  g.block = scratch.add(p.m * p.n * shape.lanes, std::max(shape.value_bytes, p.c.size));
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
  g.sums = scratch.add(2 * outputs, shape.sums_bytes);
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

// Cycles that an output takes to be stored, what a line of C takes beyond that, and a tile.
constexpr double cycles_per_output = 1, cycles_per_line = 20, cycles_per_tile = 400;
// An accumulator of one lane, gathered from those of a group of matrices.
constexpr double cycles_per_gathered = 8;

/// An operand as lines along K.
struct Lines {
  std::int64_t count, stride, k_stride, batch_stride;
  bool in_pages;       // of their own, for each k
  bool converted;      // into the operands' type
  double conversions;  // cycles per element, if they are no instructions
};
double cycles_of_conversion(Scalar type, const Geometry& shape) { return type == Scalar::f16 && !shape.has_half ? 40 : 0; }
Lines lines_of(const Operand& o, std::int64_t count, std::int64_t stride, std::int64_t k_stride, const Geometry& shape) {
  const bool in_pages = std::abs(k_stride) * static_cast<std::int64_t>(o.size) > 4096;
  return {
      count, stride, k_stride, o.batch_stride, in_pages, o.size != shape.operand_bytes, cycles_of_conversion(o.type, shape)};
}

// Cycles per k in which blocks (of `padded` lines), batches and slices pack an operand: whole vectors, or one element after another.
double cycles_of_panels(const Lines& o, double padded) {
  return padded * ((o.k_stride == 1 || o.stride == 1 ? 0.6 : 2) + o.conversions);
}
// Cycles per element that moves to or from lanes, of matrices of rows × columns: by whole vectors, by square blocks, or one after another.
double cycles_of_moves(std::int64_t rows, std::int64_t row_stride, std::int64_t columns, std::int64_t column_stride,
                       std::int64_t batch_stride, const Geometry& shape) {
  if (batch_stride == 1) return 0.3;
  const bool dense = (row_stride == 1 && column_stride == rows) || (column_stride == 1 && row_stride == columns);
  const std::int64_t contiguous = dense ? rows * columns : column_stride == 1 ? columns : row_stride == 1 ? rows : 0;
  return contiguous >= std::min(shape.lanes, 16) ? 0.6 : contiguous >= 4 ? 1 : 3;
}
double cycles_of_interleaved(const Lines& o, std::int64_t k, const Geometry& shape) {
  return of(o.count) * (cycles_of_moves(o.count, o.stride, k, o.k_stride, o.batch_stride, shape) + o.conversions);
}
double cycles_of_lines(const Lines& o) {
  const bool by_blocks = o.stride == 1 && o.count >= slice_tile;
  const double of_blocks = o.in_pages ? 1.2 : 0.4;
  const double each = o.k_stride == 1 ? (o.converted ? 0.2 : 0) : by_blocks ? of_blocks : o.converted ? 1.8 : 0.9;
  return of(o.count) * (each + o.conversions);
}

}  // namespace

double seconds_of(Way way, const Contraction& p, const Geometry& shape) {
  // Batches' operands and sums are to stay in a second-level cache. Those of a large K, which strides of 0 allow, have no size in an int64.
  const Cpu& cpu = cpu_of(p.execution);
  const double most_scratch = cpu.l2_bytes;
  if (way == Way::batches && (of(p.m) + of(p.n)) * of(p.k) > most_scratch) return 1e30;
  const Grid g = grid_of(way, p, shape);
  const double pairs = shape.pairs * (shape.vector_bytes > 0 ? cpu.vectors(shape.vector_bytes) : 1);  // per cycle
  const double workers = g.workers, m = of(p.m), n = of(p.n), k = of(std::max<std::int64_t>(1, p.k));
  const Lines a = lines_of(p.a, p.m, p.a.row_stride, p.a.column_stride, shape),
              b = lines_of(p.b, p.n, p.b.column_stride, p.b.row_stride, shape);
  const double cycles_of_output = cycles_per_output + cycles_of_conversion(p.c.type, shape);
  switch (way) {
    case Way::batches: {
      if (p.semiring_in_view && p.semiring_stride != 0) return 1e30;
      if (static_cast<double>(g.scratch) > most_scratch || p.m == 0 || p.n == 0) return 1e30;
      const double matrices = of(g.tiles) * shape.lanes;
      // Steps that differ run line by line. A functor takes accumulators that are gathered lane by lane.
      const double lines = g.steps_differ ? (g.transposed ? n : m) * of(p.batch) : 0;
      const double of_output =
          p.program
              ? cycles_of_moves(p.m, p.c.row_stride, p.n, p.c.column_stride, p.c.batch_stride, shape) + cycles_of_output
              : cycles_per_gathered;
      const double of_matrix = m * n * (k / pairs + of_output) +
                               k * (cycles_of_interleaved(a, p.k, shape) + cycles_of_interleaved(b, p.k, shape));
      return cpu.launch_seconds + cpu.seconds((matrices * of_matrix + lines * cycles_per_line) / workers);
    }
    case Way::slices: {
      const double slices = g.slices, tiles_m = of(g.tiles_m), tiles_n = of(g.tiles_n);
      // Fewer k than lanes are computed one by one, each in about the time of a vector.
      const double vectors = p.k < shape.lanes ? 2 * k : of((p.k + shape.lanes - 1) / shape.lanes);
      const double of_outputs =
          m * n * (vectors * shape.lanes / pairs + slices * (shape.lanes * shape.joined) + cycles_of_output);
      const double of_operands = k * (tiles_n * cycles_of_lines(a) + tiles_m * cycles_of_lines(b));
      const double of_tiles = m * tiles_n * cycles_per_line + tiles_m * tiles_n * slices * cycles_per_tile;
      return cpu.launch_seconds + cpu.seconds(of(p.batch) * (of_outputs + of_operands + of_tiles) / workers);
    }
    default: {
      const std::int64_t rows = g.transposed ? p.n : p.m, columns = g.transposed ? p.m : p.n;
      const double padded_rows = of(up(rows, 4)), padded_columns = of(up(columns, shape.columns)),
                   lines = of(rows) * of((columns + shape.columns - 1) / shape.columns);
      const double of_operands = k * (of(g.tiles_n) * cycles_of_panels(g.transposed ? b : a, padded_rows) +
                                      cycles_of_panels(g.transposed ? a : b, padded_columns));
      const double of_outputs =
          padded_rows * padded_columns * k / pairs + m * n * cycles_of_output + lines * cycles_per_line;
      return cpu.launch_seconds +
             cpu.seconds((of(p.batch) * (of_outputs + of_operands) + of(g.tiles) * cycles_per_tile) / workers);
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
