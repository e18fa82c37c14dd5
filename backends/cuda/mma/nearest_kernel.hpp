// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the search. A warp keeps 32 rows of X as halves in registers, and all columns pass by, chunk after chunk of
// 32. While tensor cores multiply one chunk, the bounds of the previous one are compared. Then each lane takes one of the rows, computes the
// distances that may be the least by subtraction, and writes the result, or lists the row if others may be nearer.
#pragma once

#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/backends/cuda/mma/nearest_pass.hpp>
#include <rigel/backends/cuda/mma/nearest_state.hpp>
#include <rigel/detail/reduction.hpp>
#include <rigel/semirings.hpp>

namespace rigel::backends::mma::nearest {

/// What the launches of a call share.
template <class Element>
struct Search {
  Points<Element> x, z;
  const float* centre;
  Found* found;
  const unsigned char* tiles;
  unsigned* list;            // rows of X that are left to the search by subtraction,
  unsigned long long* keys;  // and what it finds
  detail::ReducedOutputs outputs;
  std::int64_t first_row;  // of these launches
  unsigned row_count;
  unsigned tile_count;
  bool root;  // a score is the square root of a distance
  bool exclude_self;

  RIGEL_MEMBER float score(float distance) const { return root ? __builtin_elementwise_sqrt(distance) : distance; }
};

template <int Steps>
struct Shape : Layout<Steps> {
  static constexpr int warps = 4, threads = 32 * warps, rows = 32 * warps;
  static constexpr int stages = Steps == 2 ? 3 : 4, blocks = Steps >= 8 ? 2 : Steps >= 2 ? 3 : 4;
  static constexpr int bytes = stages * Layout<Steps>::tile_bytes;
  static_assert(static_cast<int>(sizeof(RowLeast)) * rows <= bytes);
  // Runs end with a tile.
  static_assert(groups_of_run % (Layout<Steps>::chunks * Layout<Steps>::groups) == 0);
  static constexpr unsigned tiles_of_run = groups_of_run / (Layout<Steps>::chunks * Layout<Steps>::groups);
};

__device__ __forceinline__ void multiply(float (&x)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                         const float (&c)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

/// A predicated move: comparisons of one number with many would become a jump by a table, and the bounds memory.
__device__ __forceinline__ void absent_if_equal(float& bound, int x, int y) {
  asm("{.reg .pred equal; setp.eq.s32 equal, %1, %2; selp.f32 %0, %3, %0, equal;}"
      : "+f"(bound)
      : "r"(x), "r"(y), "f"(absent));
}

/// Bounds of 32 rows and a chunk's columns, as mma.sync has them: of rows 16·i + 8·h + lane / 4, r = 2·h + e.
using Bounds = float[2][4][4];

/// A step of a tile: products of a chunk, and comparisons of the bounds of the previous one.
template <int Steps>
struct Chunk {
  using L = Layout<Steps>;
  static constexpr int units = 4 * L::groups, units_of_step = units / Steps;
  static_assert(units % Steps == 0);

  __device__ __forceinline__ static void run(Bounds& now, const std::uint32_t (&a)[2][Steps][4], const unsigned char* halves,
                                             const unsigned char* norms, int lane, const Bounds& before,
                                             std::uint32_t position, Least (&least)[4]) {
    const Positions positions(position);
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const uint4 b = *reinterpret_cast<const uint4*>(halves + (s * 2 + pair) * 512 + lane * 16);
#pragma unroll
        for (int of_pair = 0; of_pair < 2; ++of_pair) {
          const int j = 2 * pair + of_pair;
          const std::uint32_t b0 = of_pair ? b.z : b.x, b1 = of_pair ? b.w : b.y;
          if (s == 0) {
            const float4 n = *reinterpret_cast<const float4*>(norms + (j * 4 + lane % 4) * 16);
            const float c[4] = {n.x, n.y, n.z, n.w};
#pragma unroll
            for (int i = 0; i < 2; ++i) multiply(now[i][j], a[i][s], b0, b1, c);
          } else {
#pragma unroll
            for (int i = 0; i < 2; ++i) multiply(now[i][j], a[i][s], b0, b1, now[i][j]);
          }
        }
      }
#pragma unroll
      for (int u = s * units_of_step; u < (s + 1) * units_of_step; ++u) compare(before, u, positions, least);
    }
  }
  __device__ __forceinline__ static void compare_all(const Bounds& bounds, std::uint32_t position, Least (&least)[4]) {
    const Positions positions(position);
#pragma unroll
    for (int u = 0; u < units; ++u) compare(bounds, u, positions, least);
  }

 private:
  /// Of a chunk's groups, in registers: the compiler would otherwise add the last bits one by one to each bound.
  struct Positions {
    std::uint32_t of[L::groups];
    __device__ __forceinline__ explicit Positions(std::uint32_t first) {
#pragma unroll
      for (int i = 0; i < L::groups; ++i) {
        of[i] = first + i;
        asm("" : "+r"(of[i]));
      }
    }
  };
  __device__ __forceinline__ static void compare(const Bounds& bounds, int unit, const Positions& positions,
                                                 Least (&least)[4]) {
    const int row = unit / L::groups, span = unit % L::groups, i = row / 2, h = row % 2;
    float group = bounds[i][span * (L::group / 2)][2 * h];
#pragma unroll
    for (int c = 1; c < L::group; ++c) group = fminf(group, bounds[i][span * (L::group / 2) + c / 2][2 * h + c % 2]);
    least[row].take(group, positions.of[span]);
  }
};

/// Chains of differences of a row and two columns, as the reference sums them. Columns that do not exist count as the last one.
template <class Element>
__device__ __forceinline__ void two_distances(const Search<Element>& g, std::int64_t m, std::int64_t n, float (&sum)[2]) {
  using S = l2_squared<float>;
  sum[0] = sum[1] = 0;
  const std::int64_t second = n + 1 < g.z.rows ? n + 1 : n;
#pragma unroll 4
  for (int k = 0; k < g.x.k; k += 4) {
    float x[4], z[2][4];
    g.x.load(x, m, k);
    g.z.load(z[0], n, k);
    g.z.load(z[1], second, k);
    // Zeros after the last number of both change no sum.
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int c = 0; c < 2; ++c) sum[c] = S::step(sum[c], x[i], z[c][i]);
  }
}

template <class Element, int Steps>
__global__ void __launch_bounds__(Shape<Steps>::threads, Shape<Steps>::blocks)
    search(const __grid_constant__ Search<Element> g) {
  using G = Shape<Steps>;
  using C = Chunk<Steps>;
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32, q = lane % 4;
  const unsigned row_of_warp = blockIdx.x * G::rows + warp * 32;
  const std::int64_t m0 = g.first_row + row_of_warp;

  const auto list = [&](unsigned row) {
    const unsigned at = atomicAdd(&g.found->listed, 1u);
    g.list[at] = row;
    g.keys[at] = ~0ull;
  };
  if (g.found->refused) {
    if (row_of_warp + lane < g.row_count) list(row_of_warp + lane);
    return;
  }

  const auto copy = [&](unsigned tile) {
    if (tile < g.tile_count) {
      const unsigned char* const from = g.tiles + std::int64_t{tile} * G::tile_bytes;
      unsigned char* const to = shared + tile % G::stages * G::tile_bytes;
#pragma unroll
      for (int i = 0; i < G::tile_bytes; i += G::threads * 16)
        if (i + G::threads * 16 <= G::tile_bytes || i + thread * 16 < G::tile_bytes)
          arch::copy_async<16>(to + i + thread * 16, from + i + thread * 16);
    }
    arch::commit_copies();
  };
#pragma unroll
  for (unsigned tile = 0; tile < G::stages - 1; ++tile) copy(tile);

  // −2·x' of rows lane / 4 and every eighth after it.
  const int exponent = exponent_of_scale(g.found->largest);
  const float scale = power_of_two_of(exponent);
  std::uint32_t a[2][Steps][4];
  float squares[4] = {}, lost[4] = {};  // |x'|² and 4·|dx|²
#pragma unroll
  for (int s = 0; s < Steps; ++s) {
    const int k = 16 * s + 4 * q;
    const float4 c4 = *reinterpret_cast<const float4*>(g.centre + k);
    const float c[4] = {c4.x, c4.y, c4.z, c4.w};
#pragma unroll
    for (int row = 0; row < 4; ++row) {
      const unsigned r = row_of_warp + 8 * row + lane / 4;
      float v[4];
      g.x.load(v, g.first_row + (r < g.row_count ? r : g.row_count - 1), k);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        v[i] = k + i < g.x.k ? __fmul_rn(__fsub_rn(v[i], c[i]), scale) : 0.f;
        squares[row] = __fmaf_rn(v[i], v[i], squares[row]);
        v[i] = -2 * v[i];
      }
      const std::uint32_t low = arch::two_of<half>(v[0], v[1]), high = arch::two_of<half>(v[2], v[3]);
      lost[row] += square_of_lost(v[0], v[1], low) + square_of_lost(v[2], v[3], high);
      a[row / 2][s][row % 2] = low;
      a[row / 2][s][2 + row % 2] = high;
    }
  }
#pragma unroll
  for (int row = 0; row < 4; ++row)
#pragma unroll
    for (int apart = 1; apart <= 2; apart *= 2) {
      squares[row] += __shfl_xor_sync(~0u, squares[row], apart);
      lost[row] += __shfl_xor_sync(~0u, lost[row], apart);
    }

  Least least[4];
  Bounds even, odd;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) odd[i][j][r] = absent;

  // Bounds of a row and itself count as absent.
  const auto without_self = [&](Bounds& bounds, std::int64_t n0) {
    if (n0 >= m0 + 32 || n0 + 32 <= m0) return;
    // The row is the column if this is the difference of what the places i, j and r add to each.
    const int apart = static_cast<int>(m0 - n0) + lane / 4 - q * G::group;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int r = 0; r < 4; ++r) absent_if_equal(bounds[i][j][r], apart, G::column(j, r % 2) - 16 * i - 8 * (r / 2));
  };
  const auto positions_before = [&](unsigned tile, int chunk) {
    return ((tile * G::chunks + chunk - 1) * G::groups) & (groups_of_run - 1);
  };
  unsigned stage = 0;
#pragma unroll 1
  for (unsigned tile = 0; tile < g.tile_count; ++tile) {
    arch::wait_for_copies<G::stages - 2>();
    __syncthreads();
    copy(tile + G::stages - 1);
    const unsigned char* const halves = shared + stage * G::tile_bytes;
    const unsigned char* const norms = halves + G::chunks * G::chunk_bytes;
    stage = stage + 1 == G::stages ? 0 : stage + 1;
#pragma unroll 1
    for (int chunk = 0; chunk < G::chunks; chunk += 2) {
      const std::int64_t n0 = (std::int64_t{tile} * G::chunks + chunk) * G::chunk;
      if (g.exclude_self) without_self(odd, n0 - G::chunk);
      C::run(even, a, halves + chunk * G::chunk_bytes, norms + chunk * G::norm_bytes, lane, odd,
             positions_before(tile, chunk), least);
      if (chunk == 0 && tile % G::tiles_of_run == 0 && tile > 0)
#pragma unroll
        for (int row = 0; row < 4; ++row) least[row].end_run(tile / G::tiles_of_run - 1);
      if (g.exclude_self) without_self(even, n0);
      C::run(odd, a, halves + (chunk + 1) * G::chunk_bytes, norms + (chunk + 1) * G::norm_bytes, lane, even,
             positions_before(tile, chunk + 1), least);
    }
  }
  if (g.exclude_self) without_self(odd, (std::int64_t{g.tile_count} * G::chunks - 1) * G::chunk);
  C::compare_all(odd, positions_before(g.tile_count, 0), least);
#pragma unroll
  for (int row = 0; row < 4; ++row) least[row].end_run((g.tile_count - 1) / G::tiles_of_run);

  // From a quad of lanes for each row to one lane.
  arch::wait_for_copies<0>();
  __syncthreads();
  RowLeast* const rows = reinterpret_cast<RowLeast*>(shared) + warp * 32;
#pragma unroll
  for (int row = 0; row < 4; ++row) {
    float second = least[row].second;
    second = fminf(second, __shfl_xor_sync(~0u, second, 1));
    second = fminf(second, __shfl_xor_sync(~0u, second, 2));
    RowLeast& of_row = rows[8 * row + lane / 4];
    of_row.first[q] = least[row].first;
    of_row.group[q] = least[row].group();
    if (q == 0) {
      of_row.second = second;
      of_row.square = squares[row];
      of_row.lost = lost[row] / 4;
    }
  }
  __syncwarp();
  const unsigned r = row_of_warp + lane;
  if (r >= g.row_count) return;
  const RowLeast& row = rows[lane];
  const std::int64_t m = g.first_row + r;
  Nearest nearest{0, 0, detail::no_place};
  bool certain = false;
  if (row.square <= largest_square) {
    const double unscale = 1 / (static_cast<double>(scale) * static_cast<double>(scale));
    const Certainty c{row.square, row.lost, margin(G::numbers), unscale, g.x.k, G::numbers, position_bits};
    certain = find_nearest(row, c, nearest, [&](int of_lane, std::uint32_t group, Nearest& best) {
      const std::int64_t first = G::first_of_group(group, of_lane);
#pragma unroll 1
      for (int column = 0; column < G::group; column += 2) {
        const std::int64_t n = first + column;
        if (n >= g.z.rows) break;
        float distance[2];
        two_distances(g, m, n, distance);
        const bool excluded = g.exclude_self && n == m;
        if (!excluded) best.take(distance[0], g.score(distance[0]), n);
        if (n + 1 < g.z.rows && !(g.exclude_self && n + 1 == m)) best.take(distance[1], g.score(distance[1]), n + 1);
      }
    });
  }
  if (certain)
    g.outputs.template store<false>(detail::Found<float>{nearest.score, nearest.n}, 0, m);
  else
    list(r);
}

}  // namespace rigel::backends::mma::nearest
