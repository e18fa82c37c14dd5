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

/// A block's shared memory, and a thread's place in it. Warps are 4 × 2, lanes 4 × 8. A thread's rows are two times four, 16 apart;
/// its columns four times four, 32 apart. `copies` is a thread's own.
struct Block {
  Key *gathered, *lists;
  float *x, *slabs;
  int* counts;
  float *limits, *copies;
  int thread, lane, warp, row0, column0;
  std::int32_t m0;
  __device__ __forceinline__ static Block of(const Call& g, unsigned char* shared) {
    const Layout at = Layout::of(g.k, g.count);
    Block b{};
    b.gathered = reinterpret_cast<Key*>(shared + at.gathered);
    b.lists = reinterpret_cast<Key*>(shared + at.lists);
    b.x = reinterpret_cast<float*>(shared + at.x);
    b.slabs = reinterpret_cast<float*>(shared + at.slabs);
    b.counts = reinterpret_cast<int*>(shared + at.counts);
    b.limits = reinterpret_cast<float*>(shared + at.limits);
    b.copies = reinterpret_cast<float*>(shared + at.copies) + threadIdx.x * copy_pitch;
    b.thread = static_cast<int>(threadIdx.x);
    b.lane = b.thread % 32;
    b.warp = b.thread / 32;
    b.row0 = b.warp % 4 * 32 + b.lane / 8 * 4;
    b.column0 = b.warp / 4 * 128 + b.lane % 8 * 4;
    b.m0 = static_cast<std::int32_t>(blockIdx.x) * rows;
    return b;
  }
  __device__ __forceinline__ int row_of(int i) const { return row0 + i / 4 * 16 + i % 4; }
  __device__ __forceinline__ int column_of(int j) const { return column0 + j / 4 * 32 + j % 4; }
};

/// Loads the block's rows of X, with 0 beyond K, and empties their lists. Rows beyond the last one repeat it.
__device__ __forceinline__ void load_rows(const Call& g, const Block& b, int slabs_of_tile) {
  for (int i = b.thread; i < rows * slabs_of_tile * depth; i += threads) {
    const int row = i % rows, k = i / rows;
    const std::int64_t m = b.m0 + row < g.m ? b.m0 + row : g.m - 1;
    b.x[k * row_pitch + row] = k < g.k ? g.x[m * g.x_row + k * g.x_number] : 0.f;
  }
  for (int i = b.thread; i < rows * g.count; i += threads) b.lists[i] = no_key;
  if (b.thread < rows) {
    b.counts[b.thread] = 0;
    b.limits[b.thread] = score_of(no_key);  // NaN: everything enters
  }
}

/// Puts a thread's numbers of its column into a slab.
__device__ __forceinline__ void store_numbers(float* to, const float (&z)[depth]) {
#pragma unroll
  for (int i = 0; i < depth; ++i) to[i * columns] = z[i];
}

/// Merges the rows for which at least so many keys were gathered, and sets their limits: each warp has its own rows.
__device__ __forceinline__ void merge_rows(const Call& g, const Block& b, int least) {
#pragma unroll 1
  for (int row = b.warp; row < rows; row += threads / 32) {
    const int count = b.counts[row] < places ? b.counts[row] : places;
    if (count < least) continue;
    const Key last = merge(b.lists + row * g.count, g.count, b.gathered + row * places, count, b.lane);
    if (b.lane == 0) {
      b.counts[row] = 0;
      b.limits[row] = score_of(last);
    }
    __syncwarp();
  }
}

/// Appends those of a thread's copies of a row's sums that `enters` has a bit for to what is gathered, without columns beyond the last one and
/// a row itself. Returns the bits of those that find no place.
__device__ __forceinline__ unsigned append(const Call& g, const Block& b, int row, unsigned enters, std::int32_t tile) {
  unsigned stays = 0;
#pragma unroll 1
  for (; enters != 0; enters &= enters - 1) {
    const int j = __ffs(static_cast<int>(enters)) - 1;
    const std::int32_t n = tile * columns + b.column_of(j);
    if (n >= g.n || (g.exclude_self && n == b.m0 + row)) continue;
    const int place = atomicAdd(b.counts + row, 1);
    if (place < places)
      b.gathered[row * places + place] = key_of(b.copies[j], n);
    else
      stays |= 1u << j;
  }
  return stays;
}

/// Gathers what enters of a tile's sums, and merges whenever a row has many, until all of it has found a place. All threads call it.
__device__ __forceinline__ void gather_tile(const Call& g, const Block& b, const float (&sums)[thread_rows][thread_columns],
                                            std::int32_t tile) {
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
      const int row = b.row_of(i);
      const float limit = b.limits[row];
      float least = sums[i][0];
#pragma unroll
      for (int j = 1; j < thread_columns; ++j) least = fminf(least, sums[i][j]);
      const unsigned own = left[i / 2] >> (i % 2 * 16) & 0xffffu;
      unsigned stays = 0;
      if (__any_sync(~0u, own != 0 && (!(least >= limit) || (equal_enters && least == limit)))) {
        // A copy in memory, which has an index; most threads have none or one that enters.
        unsigned enters = 0;
#pragma unroll
        for (int j = 0; j < thread_columns; ++j) {
          b.copies[j] = sums[i][j];
          enters |= static_cast<unsigned>(!(sums[i][j] >= limit) || (equal_enters && sums[i][j] == limit)) << j;
        }
        enters &= own;
        stays = append(g, b, row, enters, tile);
      }
      left[i / 2] = i % 2 == 0 ? (left[i / 2] & 0xffff0000u) | stays : (left[i / 2] & 0xffffu) | stays << 16;
      all_left |= stays;
    }
    const bool is_full = __syncthreads_or(all_left != 0 || (b.thread < rows && b.counts[b.thread] > most_waiting)) != 0;
    if (!is_full) break;
    merge_rows(g, b, least_merged);
    equal_enters = true;
    if (__syncthreads_or(all_left != 0) == 0) break;
  }
}

/// Stores the lists of the block's rows.
__device__ __forceinline__ void store_lists(const Call& g, const Block& b) {
  for (int i = b.thread; i < rows * g.count; i += threads) {
    const int row = i / g.count;
    if (b.m0 + row >= g.m) break;
    const Key key = b.lists[i];
    detail::Found<float> found{0, detail::no_place};
    if (key != no_key) {
      const float score = score_of(key);
      found = {score, static_cast<std::int64_t>(key & 0xffffffffU)};
    }
    g.outputs.store<false>(found, 0, b.m0 + row, i - row * g.count);
  }
}

/// One copy for all files that include this.
template <int = 0>
__global__ void __launch_bounds__(threads, 1) find_best(const __grid_constant__ Call g) {
  extern __shared__ __attribute__((aligned(16))) unsigned char shared[];
  const Block b = Block::of(g, shared);
  const int slabs_of_tile = (g.k + depth - 1) / depth;
  load_rows(g, b, slabs_of_tile);
  float z[depth];
  load_numbers(g, z, b.thread, 0);
  store_numbers(b.slabs + b.thread, z);
  __syncthreads();

  const std::int32_t tiles = (g.n + columns - 1) / columns;
  int stage = 0;
#pragma unroll 1
  for (std::int32_t tile = 0; tile < tiles; ++tile) {
    float sums[thread_rows][thread_columns] = {};
#pragma unroll 1
    for (int slab = 0; slab < slabs_of_tile; ++slab) {
      const bool is_last = slab + 1 == slabs_of_tile;
      load_numbers(g, z, (is_last ? tile + 1 : tile) * columns + b.thread, is_last ? 0 : (slab + 1) * depth);
      add_slab(sums, b.x + slab * depth * row_pitch + b.row0, b.slabs + stage * Layout::slab_size + b.column0);
      store_numbers(b.slabs + (1 - stage) * Layout::slab_size + b.thread, z);
      stage = 1 - stage;
      __syncthreads();
    }
    gather_tile(g, b, sums, tile);
  }

  __syncthreads();
  merge_rows(g, b, 1);
  __syncthreads();
  store_lists(g, b);
}

}  // namespace rigel::backends::best
