// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The k smallest sums of absolute differences of each row, k ≤ 32, and where they are, K ≤ 128. A block has 128 rows, which stay in shared
// memory, and loops over slabs of 8 numbers of 256 columns. The next slab is on its way while one is added, across the ends of tiles, too. Each
// sum is one chain in ascending k, as the reference's.
//
// A thread's sums of a row are compared with the row's k-th best by their minimum, and only if that is smaller one by one. What enters is
// gathered in 32 places of the row. When some row has more than 18, warps merge all rows that have 3 or more with their sorted lists, so that this is
// seldom.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/detail/reduction.hpp>

namespace rigel::backends::best {

inline constexpr int threads = 256, rows = 128, columns = 256, depth = 8, places = 32, most_waiting = 18, least_merged = 3,
                     most_results = 32, most_numbers = 128;
inline constexpr int thread_rows = 8, thread_columns = 16, row_pitch = rows + 4, copy_pitch = thread_columns + 1;

/// A call: row m of X and row n of Z, numbers so far apart.
struct Call {
  const float *x, *z;
  std::int64_t x_row, x_number, z_row, z_number;
  std::int32_t m, n, k, count;
  bool in_fours;  // numbers of Z lie four by four in aligned vectors, and K is a multiple of depth
  bool exclude_self;
  detail::ReducedOutputs outputs;
};

/// A score and its place as one number: not negative, or NaN, which is larger than all; then by place.
using Key = unsigned long long;
inline constexpr Key no_key = ~Key{0};
__device__ __forceinline__ Key key_of(float score, std::int32_t n) {
  const unsigned bits = score == score ? __builtin_bit_cast(unsigned, score) : 0x7fffffffU;
  return Key{bits} << 32 | static_cast<unsigned>(n);
}
__device__ __forceinline__ float score_of(Key key) { return __builtin_bit_cast(float, static_cast<unsigned>(key >> 32)); }

/// What a block has in shared memory, in bytes from its beginning.
struct Layout {
  int x, slabs, gathered, lists, counts, limits, copies, bytes;
  static constexpr int slab_size = depth * columns;
  __host__ __device__ static constexpr Layout of(int k, int count) {
    Layout at{};
    const int numbers = (k + depth - 1) / depth * depth;
    at.gathered = 0;
    at.lists = at.gathered + rows * places * static_cast<int>(sizeof(Key));
    at.x = at.lists + rows * count * static_cast<int>(sizeof(Key));
    at.slabs = at.x + numbers * row_pitch * static_cast<int>(sizeof(float));
    at.counts = at.slabs + 2 * slab_size * static_cast<int>(sizeof(float));
    at.limits = at.counts + rows * static_cast<int>(sizeof(int));
    at.copies = at.limits + rows * static_cast<int>(sizeof(float));
    at.bytes = at.copies + threads * copy_pitch * static_cast<int>(sizeof(float));
    return at;
  }
};

/// Numbers k0 … k0 + 7 of column n, a thread's own; 0 beyond K. Columns beyond the last one repeat it.
__device__ __forceinline__ void load_numbers(const Call& g, float (&z)[depth], std::int32_t n, std::int32_t k0) {
  const float* const from = g.z + std::int64_t{n < g.n ? n : g.n - 1} * g.z_row;
  if (g.in_fours) {
#pragma unroll
    for (int i = 0; i < depth; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + k0 + i);
      z[i] = four.x;
      z[i + 1] = four.y;
      z[i + 2] = four.z;
      z[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < depth; ++i) z[i] = k0 + i < g.k ? from[(k0 + i) * g.z_number] : 0.f;
  }
}

/// Merges the gathered keys of a row with its list, in order: a warp does. Returns the last key.
__device__ __forceinline__ Key merge(Key* list, int size, const Key* gathered, int count, int lane) {
  const Key mine = lane < count ? gathered[lane] : no_key, listed = lane < size ? list[lane] : no_key;
  int of_mine = 0, of_listed = lane;
  __syncwarp();
// Keys are distinct, but for those that are none.
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const Key other = __shfl_sync(~0u, mine, i);
    of_mine += other < mine;
    of_listed += other < listed;
  }
#pragma unroll 1
  for (int i = 0; i < size; ++i) of_mine += __shfl_sync(~0u, listed, i) < mine;
  if (mine != no_key && of_mine < size) list[of_mine] = mine;
  if (listed != no_key && of_listed < size) list[of_listed] = listed;
  __syncwarp();
  return list[size - 1];
}

/// Adds a slab to a thread's sums. The fragments of the next k are loaded while one is added.
__device__ __forceinline__ void add_slab(float (&sums)[thread_rows][thread_columns], const float* x, const float* z) {
  const auto load = [&](float (&a)[thread_rows], float (&b)[thread_columns], int k) __attribute__((always_inline)) {
#pragma unroll
    for (int i = 0; i < thread_rows; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(x + k * row_pitch + i * 4);
      a[i] = four.x;
      a[i + 1] = four.y;
      a[i + 2] = four.z;
      a[i + 3] = four.w;
    }
#pragma unroll
    for (int j = 0; j < thread_columns; j += 4) {
      const float4 four = *reinterpret_cast<const float4*>(z + k * columns + j * 8);
      b[j] = four.x;
      b[j + 1] = four.y;
      b[j + 2] = four.z;
      b[j + 3] = four.w;
    }
  };
  float a[2][thread_rows], b[2][thread_columns];
  load(a[0], b[0], 0);
#pragma unroll
  for (int k = 0; k < depth; ++k) {
    if (k + 1 < depth) load(a[(k + 1) % 2], b[(k + 1) % 2], k + 1);
#pragma unroll
    for (int j = 0; j < thread_columns; ++j)
#pragma unroll
      for (int i = 0; i < thread_rows; ++i)
        sums[i][j] = math::add(sums[i][j], math::abs(math::subtract(a[k % 2][i], b[k % 2][j])));
  }
}

/// One copy for all files that include this.
template <int = 0>
__global__ void __launch_bounds__(threads, 1) find_best(const __grid_constant__ Call g) {
  extern __shared__ __attribute__((aligned(16))) unsigned char shared[];
  const Layout at = Layout::of(g.k, g.count);
  auto* const gathered = reinterpret_cast<Key*>(shared + at.gathered);
  auto* const lists = reinterpret_cast<Key*>(shared + at.lists);
  auto* const x = reinterpret_cast<float*>(shared + at.x);
  auto* const slabs = reinterpret_cast<float*>(shared + at.slabs);
  auto* const counts = reinterpret_cast<int*>(shared + at.counts);
  auto* const limits = reinterpret_cast<float*>(shared + at.limits);
  auto* const copies = reinterpret_cast<float*>(shared + at.copies) + threadIdx.x * copy_pitch;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const std::int32_t m0 = static_cast<std::int32_t>(blockIdx.x) * rows;
  const int slabs_of_tile = (g.k + depth - 1) / depth;

  // Warps are 4 × 2, lanes 4 × 8. A thread's rows are two times four, 16 apart; its columns four times four, 32 apart.
  const int row0 = warp % 4 * 32 + lane / 8 * 4, column0 = warp / 4 * 128 + lane % 8 * 4;
  const auto row_of = [&](int i) __attribute__((always_inline)) { return row0 + i / 4 * 16 + i % 4; };
  const auto column_of = [&](int j) __attribute__((always_inline)) { return column0 + j / 4 * 32 + j % 4; };

  for (int i = thread; i < rows * slabs_of_tile * depth; i += threads) {
    const int row = i % rows, k = i / rows;
    const std::int64_t m = m0 + row < g.m ? m0 + row : g.m - 1;
    x[k * row_pitch + row] = k < g.k ? g.x[m * g.x_row + k * g.x_number] : 0.f;
  }
  for (int i = thread; i < rows * g.count; i += threads) lists[i] = no_key;
  if (thread < rows) {
    counts[thread] = 0;
    limits[thread] = score_of(no_key);  // NaN: everything enters
  }
  float z[depth];
  load_numbers(g, z, thread, 0);
#pragma unroll
  for (int i = 0; i < depth; ++i) slabs[i * columns + thread] = z[i];
  __syncthreads();

  const auto merge_rows = [&](int least) {
#pragma unroll 1
    for (int row = warp; row < rows; row += threads / 32) {
      const int count = counts[row] < places ? counts[row] : places;
      if (count < least) continue;
      const Key last = merge(lists + row * g.count, g.count, gathered + row * places, count, lane);
      if (lane == 0) {
        counts[row] = 0;
        limits[row] = score_of(last);
      }
      __syncwarp();
    }
  };

  const std::int32_t tiles = (g.n + columns - 1) / columns;
  int stage = 0;
#pragma unroll 1
  for (std::int32_t tile = 0; tile < tiles; ++tile) {
    float sums[thread_rows][thread_columns] = {};
#pragma unroll 1
    for (int slab = 0; slab < slabs_of_tile; ++slab) {
      const bool is_last = slab + 1 == slabs_of_tile;
      load_numbers(g, z, (is_last ? tile + 1 : tile) * columns + thread, is_last ? 0 : (slab + 1) * depth);
      add_slab(sums, x + slab * depth * row_pitch + row0, slabs + stage * Layout::slab_size + column0);
      float* const next = slabs + (1 - stage) * Layout::slab_size + thread;
#pragma unroll
      for (int i = 0; i < depth; ++i) next[i * columns] = z[i];
      stage = 1 - stage;
      __syncthreads();
    }
    // What enters of a row's sums, all of which `left` has a bit for; bits of what finds no place stay.
    unsigned left[thread_rows / 2];
#pragma unroll
    for (int i = 0; i < thread_rows / 2; ++i) left[i] = ~0u;
    // Later tiles have larger places, so what equals the limit enters only where a merge in the midst of this tile has set it.
    bool equal_enters = false;
    while (true) {
      unsigned all_left = 0;
#pragma unroll
      for (int i = 0; i < thread_rows; ++i) {
        const int row = row_of(i);
        const float limit = limits[row];
        float least = sums[i][0];
#pragma unroll
        for (int j = 1; j < thread_columns; ++j) least = fminf(least, sums[i][j]);
        unsigned own = left[i / 2] >> (i % 2 * 16) & 0xffffu, stays = 0;
        if (__any_sync(~0u, own != 0 && (!(least >= limit) || (equal_enters && least == limit)))) {
          // A copy in memory, which has an index; most threads have none or one that enters.
          unsigned enters = 0;
#pragma unroll
          for (int j = 0; j < thread_columns; ++j) {
            copies[j] = sums[i][j];
            enters |= static_cast<unsigned>(!(sums[i][j] >= limit) || (equal_enters && sums[i][j] == limit)) << j;
          }
          enters &= own;
#pragma unroll 1
          for (; enters != 0; enters &= enters - 1) {
            const int j = __ffs(static_cast<int>(enters)) - 1;
            const std::int32_t n = tile * columns + column_of(j);
            if (n >= g.n || (g.exclude_self && n == m0 + row)) continue;
            const int place = atomicAdd(counts + row, 1);
            if (place < places)
              gathered[row * places + place] = key_of(copies[j], n);
            else
              stays |= 1u << j;
          }
        }
        left[i / 2] = i % 2 == 0 ? (left[i / 2] & 0xffff0000u) | stays : (left[i / 2] & 0xffffu) | stays << 16;
        all_left |= stays;
      }
      const bool is_full = __syncthreads_or(all_left != 0 || (thread < rows && counts[thread] > most_waiting)) != 0;
      if (!is_full) break;
      merge_rows(least_merged);
      equal_enters = true;
      if (__syncthreads_or(all_left != 0) == 0) break;
    }
  }

  __syncthreads();
  merge_rows(1);
  __syncthreads();
  for (int i = thread; i < rows * g.count; i += threads) {
    const int row = i / g.count;
    if (m0 + row >= g.m) break;
    const Key key = lists[i];
    detail::Found<float> found{0, detail::no_place};
    if (key != no_key) {
      const float score = score_of(key);
      found = {score, static_cast<std::int64_t>(key & 0xffffffffU)};
    }
    g.outputs.store<false>(found, 0, m0 + row, i - row * g.count);
  }
}

}  // namespace rigel::backends::best
