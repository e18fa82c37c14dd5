// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Σ_k (x_k − z_k)² anew, by differences in double, for outputs whose |x|² + |z|² − 2x·z has cancelled: by a warp each where a tile has
// few of them; where it has many, the tile as a whole, each output one chain in ascending k.
#pragma once

#include <backends/cuda/mma/distance_kernel.hpp>

namespace rigel::backends::mma {

/// A tile of tile_m × tile_n outputs by `threads` threads, slabs of 16 values of k. A thread's outputs are `rows_apart` rows and
/// `columns_apart` columns apart.
template <int tile_m, int tile_n>
struct DoubleTile {
  static constexpr int threads = 128, blocks = 3, depth = 16, pitch = depth + 1;  // of doubles, 16 lines meet 32 banks
  static constexpr int m = tile_m, n = tile_n, lines = m + n;
  static constexpr int columns_apart = 16, rows_apart = threads / columns_apart;
  static constexpr int rows = m / rows_apart, columns = n / columns_apart;
  static constexpr int size = std::max(lines * pitch, m* n);  // doubles of shared memory
  static_assert(m % rows_apart == 0 && n % columns_apart == 0);
};

/// Blocks go from tile to tile of the list, then warps from output to output. Tiles are of warps_m × warps_n warps with
/// outputs_m × outputs_n outputs each.
template <class S, class Finish, int warps_m, int warps_n, int outputs_m, int outputs_n>
__global__ void __launch_bounds__(DoubleTile<outputs_m, outputs_n>::threads, DoubleTile<outputs_m, outputs_n>::blocks)
    compute_rejected_in_double(const __grid_constant__ detail::Arguments<S, Finish> g,
                               const __grid_constant__ Rejected rejected, const __grid_constant__ DistanceRaster raster) {
  using Tile = DoubleTile<outputs_m, outputs_n>;
  using Value = typename S::accumulator;
  using Direct = l2_squared<double>;
  constexpr unsigned warps_of_tile = warps_m * warps_n;
  constexpr int threads = Tile::threads, depth = Tile::depth, pitch = Tile::pitch;
  __shared__ double slab[Tile::size];
  const unsigned few = rejected.counters[0], many = rejected.counters[1];
  if (few == 0 && many == 0) return;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const auto origin = [&](unsigned number) {
    const int warp = static_cast<int>(number % warps_of_tile);
    tile::Origin o = raster.origin(number / warps_of_tile, warps_m * outputs_m, warps_n * outputs_n);
    o.m += warp / warps_n * outputs_m;
    o.n += warp % warps_n * outputs_n;
    return o;
  };
  const bool root = g.finish.template power<Value>() == 0.5;
  const bool plain = (root || g.finish.template is_copy<Value>()) && !g.accumulate;
  const auto store = [&](const tile::Origin& o, double distance, int row, int column) {
    const std::int64_t i = o.m + row, j = o.n + column;
    if (raster.mirrored && j < i) return;
    const auto value = static_cast<Value>(distance);
    const S s = g.semiring(o.batch);
#pragma unroll 1
    for (int both = 0; both <= (raster.mirrored && i != j); ++both) {
      const std::int64_t row_of_c = both ? j : i, column_of_c = both ? i : j;
      if (plain) {
        static_cast<Value*>(g.c)[g.c_offset(o.batch, row_of_c, column_of_c)] =
            root ? __builtin_elementwise_sqrt(value) : value;
        continue;
      }
      const Value sum = g.accumulate ? s.add(g.start(s, o.batch, row_of_c, column_of_c), value) : value;
      g.store(s, sum, o.batch, row_of_c, column_of_c);
    }
  };

  const int place_m = thread / Tile::columns_apart, place_n = thread % Tile::columns_apart;
  using Element = typename S::element;
  // A thread's share of `lines` lines of a slab: neighbouring threads along the operand's own direction.
  constexpr int apart = threads / depth;
  const bool along_k = g.a.column <= g.a.row;
  const auto for_each = [&]<int lines>(const auto& use) __attribute__((always_inline)) {
    static_assert(lines % 16 == 0 && depth == 2 * apart);
#pragma unroll
    for (int i = 0; i < lines / apart; ++i) {
      const int line = along_k ? thread / depth + i * apart : thread % 16 + i % (lines / 16) * 16;
      const int at = along_k ? thread % depth : thread / 16 + i / (lines / 16) * apart;
      use(i, line, at);
    }
  };
#pragma unroll 1
  for (unsigned entry = blockIdx.x; entry < many * warps_of_tile; entry += gridDim.x) {
    // A warp of all tiles, then the next one: blocks have equal shares, whichever warps are marked.
    const unsigned number = rejected.many[entry % many], warp = entry / many;
    if ((rejected.warps[number] >> warp & 1) == 0) continue;
    const tile::Origin o = origin(number * warps_of_tile + warp);
    const int last_m = static_cast<int>(std::min<std::int64_t>(g.m - o.m, Tile::m));
    const int last_n = static_cast<int>(std::min<std::int64_t>(g.n - o.n, Tile::n));
    const Element *const first_a = &g.a.at(o.batch, o.m, 0), *const first_b = &g.b.at(o.batch, 0, o.n);
    // Lines beyond the last repeat it; their outputs are not used. Values beyond K are 0 in both. The next slab is loaded while one is
    // worked on.
    Element of_a[Tile::m / apart], of_b[Tile::n / apart];
    const auto load = [&](std::int64_t k0) __attribute__((always_inline)) {
      for_each.template operator()<Tile::m>([&](int i, int line, int at) __attribute__((always_inline)) {
        const std::int64_t k = k0 + at;
        of_a[i] = k < g.k ? first_a[std::min(line, last_m - 1) * g.a.row + k * g.a.column] : Element(0);
      });
      for_each.template operator()<Tile::n>([&](int i, int line, int at) __attribute__((always_inline)) {
        const std::int64_t k = k0 + at;
        of_b[i] = k < g.k ? first_b[std::min(line, last_n - 1) * g.b.column + k * g.b.row] : Element(0);
      });
    };
    double x[Tile::rows][Tile::columns] = {};
    load(0);
#pragma unroll 1
    for (std::int64_t k0 = 0; k0 < g.k; k0 += depth) {
      __syncthreads();
      for_each.template operator()<Tile::m>([&](int i, int line, int at) __attribute__((always_inline)) {
        slab[line * pitch + at] = static_cast<double>(of_a[i]);
      });
      for_each.template operator()<Tile::n>([&](int i, int line, int at) __attribute__((always_inline)) {
        slab[(Tile::m + line) * pitch + at] = static_cast<double>(of_b[i]);
      });
      __syncthreads();
      load(k0 + depth);
#pragma unroll
      for (int at = 0; at < depth; ++at) {
        double a[Tile::rows];
#pragma unroll
        for (int i = 0; i < Tile::rows; ++i) a[i] = slab[(place_m + i * Tile::rows_apart) * pitch + at];
#pragma unroll
        for (int j = 0; j < Tile::columns; ++j) {
          const double b = slab[(Tile::m + place_n + j * Tile::columns_apart) * pitch + at];
#pragma unroll
          for (int i = 0; i < Tile::rows; ++i) x[i][j] = Direct::step(x[i][j], a[i], b);
        }
      }
    }
    __syncthreads();
    // One place for the code of an output.
#pragma unroll
    for (int i = 0; i < Tile::rows; ++i)
#pragma unroll
      for (int j = 0; j < Tile::columns; ++j)
        slab[(place_m + i * Tile::rows_apart) * Tile::n + place_n + j * Tile::columns_apart] = x[i][j];
    __syncthreads();
#pragma unroll 1
    for (int e = thread; e < Tile::m * Tile::n; e += threads) {
      const int row = e / Tile::n, column = e % Tile::n;
      if (row < last_m && column < last_n) store(o, slab[e], row, column);
    }
  }

  constexpr unsigned warps = threads / 32;
  const std::uint64_t last = std::uint64_t{few} * Rejected::most;
#pragma unroll 1
  for (std::uint64_t i = blockIdx.x * warps + threadIdx.x / 32; i < last; i += gridDim.x * warps) {
    const unsigned number = rejected.few[i / Rejected::most];
    const std::uint16_t* const places = rejected.places_of(number);
    const auto which = static_cast<unsigned>(i % Rejected::most);
    if (which >= places[0]) continue;
    const tile::Origin o = origin(number);
    const int row = places[1 + which] / Tile::n, column = places[1 + which] % Tile::n;
    double sum = 0;
#pragma unroll 4
    for (std::int64_t k = lane; k < g.k; k += 32)
      sum = Direct::step(sum, static_cast<double>(g.a.at(o.batch, o.m + row, k)),
                         static_cast<double>(g.b.at(o.batch, k, o.n + column)));
    sum = warp_sum(sum);
    if (lane == 0) store(o, sum, row, column);
  }
}

}  // namespace rigel::backends::mma
