// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the minimum. After the sweep each lane takes one of the rows, computes the distances that may be the least by
// subtraction, and writes the result, or lists the row if others may be nearer.
#pragma once

#include <rigel/backends/cuda/mma/nearest_state.hpp>
#include <rigel/backends/cuda/mma/nearest_sweep.hpp>

namespace rigel::backends::mma::nearest {

template <int Steps>
struct MinimumTaker {
  using L = Layout<Steps>;
  // Runs end with a tile.
  static constexpr unsigned tiles_of_run = groups_of_run / (L::chunks * L::groups);
  static_assert(groups_of_run % (L::chunks * L::groups) == 0);
  static constexpr bool sees_self = false;

  Least least[4];
  std::uint32_t positions[L::groups];

  __device__ __forceinline__ void begin_chunk(unsigned chunk) {
#pragma unroll
    for (int i = 0; i < L::groups; ++i) {
      positions[i] = (chunk * L::groups & (groups_of_run - 1)) + i;
      asm("" : "+r"(positions[i]));  // else the compiler adds the last bits to each bound by themselves
    }
  }
  __device__ __forceinline__ void take(const Bounds& bounds, int row, int span) {
    least[row].take(least_of_group<L>(bounds, row, span), positions[span]);
  }
  __device__ __forceinline__ void end_chunk(const Bounds&, unsigned) {}
  __device__ __forceinline__ void end_tile(unsigned tile) {
    if ((tile + 1) % tiles_of_run == 0) end_run(tile / tiles_of_run);
  }
  __device__ __forceinline__ void end_run(unsigned run) {
#pragma unroll
    for (int row = 0; row < 4; ++row) least[row].end_run(run);
  }
};

template <class Element, int Steps>
__global__ void __launch_bounds__(Shape<Steps>::threads, Shape<Steps>::blocks)
    search_nearest(const __grid_constant__ Search<Element> g) {
  using G = Shape<Steps>;
  static_assert(static_cast<int>(sizeof(RowLeast)) * G::rows <= G::bytes);
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];
  Sweep<Element, Steps> sweep(g, shared, 0, g.tile_count);
  const int lane = sweep.lane, q = lane % 4;
  const unsigned r = sweep.row_of_warp + lane;

  const auto list = [&] {
    const unsigned at = atomicAdd(&g.found->listed, 1u);
    g.list[at] = r;
    g.keys[at] = ~0ull;
  };
  if (g.found->refused) {
    if (r < g.row_count) list();
    return;
  }
  sweep.start();
  sweep.load();
  MinimumTaker<Steps> taker;
  sweep.run(taker);
  // The last run, unless it ended with the last tile: an empty one changes nothing.
  taker.end_run((g.tile_count - 1) / taker.tiles_of_run);

  // From a quad of lanes for each row to one lane.
  RowLeast* const rows = reinterpret_cast<RowLeast*>(shared) + sweep.thread / 32 * 32;
#pragma unroll
  for (int row = 0; row < 4; ++row) {
    const Least& least = taker.least[row];
    float second = least.second;
    second = fminf(second, __shfl_xor_sync(~0u, second, 1));
    second = fminf(second, __shfl_xor_sync(~0u, second, 2));
    RowLeast& of_row = rows[8 * row + lane / 4];
    of_row.first[q] = least.first;
    of_row.group[q] = least.group();
    if (q == 0) {
      of_row.second = second;
      of_row.square = sweep.squares[row];
      of_row.lost = sweep.lost[row];
    }
  }
  __syncwarp();
  if (r >= g.row_count) return;
  const RowLeast& row = rows[lane];
  const std::int64_t m = g.first_row + r;
  Nearest nearest{0, 0, detail::no_place};
  bool certain = false;
  if (row.square <= largest_square) {
    const double unscale = 1 / (static_cast<double>(sweep.scale) * static_cast<double>(sweep.scale));
    const Certainty c{row.square, row.lost, margin(G::numbers), unscale, g.x.k, G::numbers, position_bits};
    certain = find_nearest(row, c, nearest, [&](int of_lane, std::uint32_t group, Nearest& best) {
      const std::int64_t first = G::first_of_group(group, of_lane);
#pragma unroll 1
      for (std::int64_t n = first; n < first + G::group && n < g.z.rows; n += 2) {
        const std::int64_t columns[2] = {n, n + 1 < g.z.rows ? n + 1 : n};
        float distance[2];
        distances(g, m, columns, distance);
#pragma unroll
        for (int c2 = 0; c2 < 2; ++c2)
          if (!(g.exclude_self && columns[c2] == m)) best.take(distance[c2], g.score(distance[c2]), columns[c2]);
      }
    });
  }
  if (certain)
    g.outputs.template store<false>(detail::Found<float>{nearest.score, nearest.n}, 0, m);
  else
    list();
}

}  // namespace rigel::backends::mma::nearest
