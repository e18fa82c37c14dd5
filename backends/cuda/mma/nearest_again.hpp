// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the search by subtraction of the rows that were listed, on CUDA cores. A block takes 64 of them and a slice
// of the columns; slices are joined by the minimum of scores and places as one number, which depends on no order.
#pragma once

#include <rigel/backends/cuda/mma/nearest_kernel.hpp>
#include <rigel/backends/cuda/mma/nearest_listed.hpp>

namespace rigel::backends::mma::nearest {

/// A score and its column as a number whose order is theirs: NaN first, then by score, then by column.
RIGEL_FUNCTION unsigned long long key_of(float score, std::uint32_t n) {
  constexpr std::uint32_t sign = 0x80000000;
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.f);
  const std::uint32_t ordered = score != score ? 0 : bits & sign ? ~bits : bits | sign;
  return static_cast<unsigned long long>(ordered) << 32 | n;
}
RIGEL_FUNCTION detail::Found<float> found_of(unsigned long long key) {
  constexpr std::uint32_t sign = 0x80000000;
  if (key == ~0ull) return {0, detail::no_place};
  const auto ordered = static_cast<std::uint32_t>(key >> 32);
  const float score = ordered == 0 ? std::numeric_limits<float>::quiet_NaN()
                                   : std::bit_cast<float>(ordered & sign ? ordered & ~sign : ~ordered);
  return {score, static_cast<std::int64_t>(key & 0xffffffff)};
}

struct AgainShape {
  static constexpr int rows = 64, columns = 128, depth = 16, threads = 256, blocks = 2;
  static constexpr int of_rows = 4, of_columns = 8;  // of a thread
  static constexpr int row_pitch = rows + 4, column_pitch = columns + 4;
};

template <class Element>
__global__ void __launch_bounds__(AgainShape::threads, AgainShape::blocks)
    search_listed(const __grid_constant__ Search<Element> g) {
  using G = AgainShape;
  using S = l2_squared<float>;
  __shared__ __attribute__((aligned(16))) float xs[G::depth][G::row_pitch], zs[G::depth][G::column_pitch];
  const unsigned count = g.found->listed;
  const int thread = static_cast<int>(threadIdx.x), tx = thread % 16, ty = thread / 16;
  const auto column_tiles = static_cast<unsigned>((g.z.rows + G::columns - 1) / G::columns);
  const unsigned row_tiles = (count + G::rows - 1) / G::rows;
  if (row_tiles == 0) return;
  const unsigned slices = min(max(2 * gridDim.x / row_tiles, 1u), column_tiles);
  const unsigned of_slice = (column_tiles + slices - 1) / slices;
#pragma unroll 1
  for (unsigned item = blockIdx.x; item < row_tiles * slices; item += gridDim.x) {
    const unsigned row0 = item / slices * G::rows, begin = item % slices * of_slice,
                   end = min(begin + of_slice, column_tiles);
    const unsigned mine = min(row0 + thread / 4, count - 1);
    const std::int64_t m_of_load = g.first_row + g.list[mine];
    detail::Found<float> best[G::of_rows];
#pragma unroll
    for (int i = 0; i < G::of_rows; ++i) best[i] = {0, detail::no_place};
#pragma unroll 1
    for (unsigned tile = begin; tile < end; ++tile) {
      const std::int64_t n0 = std::int64_t{tile} * G::columns;
      float sums[G::of_rows][G::of_columns] = {};
#pragma unroll 1
      for (int k0 = 0; k0 < g.x.k; k0 += G::depth) {
        const int k = thread % 4 * 4;
        __syncthreads();
        float v[3][4];
        g.x.load(v[0], m_of_load, k0 + k);
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          const std::int64_t n = n0 + 64 * part + thread / 4;
          g.z.load(v[1 + part], n < g.z.rows ? n : g.z.rows - 1, k0 + k);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          xs[k + i][thread / 4] = v[0][i];
          zs[k + i][thread / 4] = v[1][i];
          zs[k + i][64 + thread / 4] = v[2][i];
        }
        __syncthreads();
#pragma unroll 4
        for (int s = 0; s < G::depth; ++s) {
          const float4 x4 = *reinterpret_cast<const float4*>(&xs[s][4 * ty]);
          const float4 low = *reinterpret_cast<const float4*>(&zs[s][4 * tx]),
                       high = *reinterpret_cast<const float4*>(&zs[s][64 + 4 * tx]);
          const float x[4] = {x4.x, x4.y, x4.z, x4.w};
          const float z[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
          for (int i = 0; i < G::of_rows; ++i)
#pragma unroll
            for (int j = 0; j < G::of_columns; ++j) sums[i][j] = S::step(sums[i][j], x[i], z[j]);
        }
      }
#pragma unroll
      for (int i = 0; i < G::of_rows; ++i) {
        const unsigned at = row0 + 4 * ty + i;
        if (at >= count) continue;
        const std::int64_t self = g.exclude_self ? g.first_row + g.list[at] : detail::no_place;
#pragma unroll
        for (int j = 0; j < G::of_columns; ++j) {
          const std::int64_t n = n0 + j / 4 * 64 + 4 * tx + j % 4;
          if (n >= g.z.rows || n == self) continue;
          const float score = g.score(sums[i][j]);
          if (best[i].n < 0 || detail::value_replaces<false>(score, best[i].value)) best[i] = {score, n};
        }
      }
    }
#pragma unroll
    for (int i = 0; i < G::of_rows; ++i) {
      unsigned long long key = best[i].n < 0 ? ~0ull : key_of(best[i].value, static_cast<std::uint32_t>(best[i].n));
#pragma unroll
      for (int apart = 8; apart > 0; apart /= 2) key = min(key, __shfl_xor_sync(~0u, key, apart));
      const unsigned at = row0 + 4 * ty + i;
      if (tx == 0 && at < count) atomicMin(&g.keys[at], key);
    }
  }
}

/// Writes what search_listed() found.
template <class Element>
__global__ void __launch_bounds__(256) store_listed(const __grid_constant__ Search<Element> g) {
  const unsigned count = g.found->listed;
  for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += gridDim.x * blockDim.x)
    g.outputs.template store<false>(found_of(g.keys[at]), 0, g.first_row + g.list[at]);
}

template <class Element>
void enqueue_listed(const Search<Element>& g, int multiprocessors, const cuda::Launches& launches) {
  const auto sms = static_cast<unsigned>(std::max(multiprocessors, 1));
  launches(&search_listed<Element>, 2 * sms, AgainShape::threads, 0, g);
  launches(&store_listed<Element>, std::min((g.row_count + 255) / 256, sms), 256, 0, g);
}

}  // namespace rigel::backends::mma::nearest
