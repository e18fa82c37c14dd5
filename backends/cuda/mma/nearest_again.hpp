// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the search by subtraction of the rows that were listed, on CUDA cores. A block takes 64 of them and a slice
// of the columns; slices are joined by the minimum of scores and places as one number, which depends on no order. Where a few rows leave
// multiprocessors idle, tiles have a quarter of the columns.
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
  static constexpr int few_columns = columns / 4;
  static constexpr int of_rows = 4;  // of a thread
  static constexpr int row_pitch = rows + 4, column_pitch = columns + 4;
};

/// What a block of search_listed() has in shared memory.
struct AgainSlabs {
  alignas(16) float x[AgainShape::depth][AgainShape::row_pitch], z[AgainShape::depth][AgainShape::column_pitch];
};

/// Reads `count` neighbouring floats, 2 or 4.
template <int count>
__device__ __forceinline__ void load_neighbours(float* to, const float* from) {
  if constexpr (count == 4) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else {
    const float2 v = *reinterpret_cast<const float2*>(from);
    to[0] = v.x, to[1] = v.y;
  }
}

/// Searches the listed rows from `row0` on in tiles of `columns` columns, those of tiles `begin` to `end`. A thread has 4 rows, and of each
/// part of at most 64 columns as many as its sixteenth.
template <int columns, class Element>
__device__ __forceinline__ void search_columns(const Search<Element>& g, AgainSlabs& slabs, unsigned row0, unsigned begin,
                                               unsigned end) {
  using G = AgainShape;
  using S = l2_squared<float>;
  constexpr int of_part = std::min(columns, 64), parts = columns / of_part, neighbours = of_part / 16;
  const unsigned count = g.found->listed;
  const int thread = static_cast<int>(threadIdx.x), tx = thread % 16, ty = thread / 16, k = thread % 4 * 4;
  const std::int64_t m_of_load = g.first_row + g.list[min(row0 + thread / 4, count - 1)];
  const bool loads_columns = of_part == 64 || thread / 4 < of_part;
  detail::Found<float> best[G::of_rows];
#pragma unroll
  for (int i = 0; i < G::of_rows; ++i) best[i] = {0, detail::no_place};
#pragma unroll 1
  for (unsigned tile = begin; tile < end; ++tile) {
    const std::int64_t n0 = std::int64_t{tile} * columns;
    float sums[G::of_rows][parts * neighbours] = {}, v[1 + parts][4];
    const auto load = [&](int k0) __attribute__((always_inline)) {
      g.x.load(v[0], m_of_load, k0 + k);
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        const std::int64_t n = n0 + of_part * part + thread / 4;
        if (loads_columns) g.z.load(v[1 + part], n < g.z.rows ? n : g.z.rows - 1, k0 + k);
      }
    };
    load(0);
#pragma unroll 1
    for (int k0 = 0; k0 < g.x.k; k0 += G::depth) {
      __syncthreads();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        slabs.x[k + i][thread / 4] = v[0][i];
#pragma unroll
        for (int part = 0; part < parts; ++part)
          if (loads_columns) slabs.z[k + i][of_part * part + thread / 4] = v[1 + part][i];
      }
      __syncthreads();
      if (k0 + G::depth < g.x.k) load(k0 + G::depth);
#pragma unroll 4
      for (int s = 0; s < G::depth; ++s) {
        float x[G::of_rows], z[parts * neighbours];
        load_neighbours<G::of_rows>(x, &slabs.x[s][G::of_rows * ty]);
#pragma unroll
        for (int part = 0; part < parts; ++part)
          load_neighbours<neighbours>(z + part * neighbours, &slabs.z[s][of_part * part + neighbours * tx]);
#pragma unroll
        for (int i = 0; i < G::of_rows; ++i)
#pragma unroll
          for (int j = 0; j < parts * neighbours; ++j) sums[i][j] = S::step(sums[i][j], x[i], z[j]);
      }
    }
#pragma unroll
    for (int i = 0; i < G::of_rows; ++i) {
      const unsigned at = row0 + G::of_rows * ty + i;
      if (at >= count) continue;
      const std::int64_t self = g.exclude_self ? g.first_row + g.list[at] : detail::no_place;
#pragma unroll
      for (int j = 0; j < parts * neighbours; ++j) {
        const std::int64_t n = n0 + j / neighbours * of_part + neighbours * tx + j % neighbours;
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
    const unsigned at = row0 + G::of_rows * ty + i;
    if (tx == 0 && at < count) atomicMin(&g.keys[at], key);
  }
}

template <class Element>
__global__ void __launch_bounds__(AgainShape::threads, AgainShape::blocks)
    search_listed(const __grid_constant__ Search<Element> g) {
  using G = AgainShape;
  __shared__ AgainSlabs slabs;
  const unsigned row_tiles = (g.found->listed + G::rows - 1) / G::rows;
  if (row_tiles == 0) return;
  const auto tiles_of = [&](int columns) { return static_cast<unsigned>((g.z.rows + columns - 1) / columns); };
  const bool few = row_tiles < gridDim.x && row_tiles * tiles_of(G::columns) < gridDim.x;
  const unsigned column_tiles = tiles_of(few ? G::few_columns : G::columns);
  const unsigned slices = min(max(2 * gridDim.x / row_tiles, 1u), column_tiles);
  const unsigned of_slice = (column_tiles + slices - 1) / slices;
#pragma unroll 1
  for (unsigned item = blockIdx.x; item < row_tiles * slices; item += gridDim.x) {
    const unsigned row0 = item / slices * G::rows, begin = item % slices * of_slice,
                   end = min(begin + of_slice, column_tiles);
    if (few)
      search_columns<G::few_columns>(g, slabs, row0, begin, end);
    else
      search_columns<G::columns>(g, slabs, row0, begin, end);
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
