// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the k smallest of each row's list by subtraction, and of rows without one.
#pragma once

#include <rigel/backends/cuda/mma/nearest_many.hpp>

namespace rigel::backends::mma::nearest {

/// A score and its column as a number whose order is theirs: by score, NaN last, then by column. ~0: none.
RIGEL_FUNCTION unsigned long long key_of_many(float score, std::uint32_t n) {
  return static_cast<unsigned long long>(score != score ? ~0u : ordered(score + 0.f)) << 32 | n;
}
RIGEL_FUNCTION detail::Found<float> found_of_many(unsigned long long key) {
  if (key == ~0ull) return {0, detail::no_place};
  const auto score = static_cast<std::uint32_t>(key >> 32);
  return {score == ~0u ? std::numeric_limits<float>::quiet_NaN() : from_ordered(score),
          static_cast<std::int64_t>(key & 0xffffffff)};
}

inline constexpr int sort_threads = 128;

/// The distances of a row's listed columns as keys. Returns how many there are: a row itself is not counted.
template <class Element>
__device__ __forceinline__ int keys_of_list(const Search<Element>& g, unsigned r, int count, int lane,
                                            unsigned long long* keys) {
  const std::int64_t m = g.first_row + r;
  const std::uint32_t* const positions = g.lists.words + std::int64_t{r} * g.lists.pitch;
  const auto column = [&](int i) -> std::int64_t { return g.lists.all ? i : g.lists.strips.column(positions[i]); };
  bool has_self = false;
#pragma unroll 1
  for (int i = lane; i < count; i += 32) {
    const std::int64_t n[1] = {column(i)};
    float distance[1];
    distances(g, m, n, distance);
    const bool is_self = g.exclude_self && n[0] == m;
    has_self |= is_self;
    keys[i] = is_self ? ~0ull : key_of_many(g.score(distance[0]), static_cast<std::uint32_t>(n[0]));
  }
  if (lane == 0 && count % 2 != 0) keys[count] = ~0ull;  // two are read at a time
  return count - (__any_sync(~0u, has_self) ? 1 : 0);
}

/// A warp for each row.
template <class Element>
__global__ void __launch_bounds__(sort_threads, 5) sort_lists(const __grid_constant__ Search<Element> g) {
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const unsigned r = blockIdx.x * (sort_threads / 32) + warp;
  if (r >= g.row_count) return;
  const std::uint32_t listed = g.lists.all        ? static_cast<std::uint32_t>(g.z.rows)
                               : g.found->refused ? ~0u
                                                  : g.lists.rows[r].count;
  if (listed > static_cast<std::uint32_t>(g.lists.capacity)) {
    if (lane > 0) return;
    const unsigned at = atomicAdd(&g.found->listed, 1u);
    g.list[at] = r;
    g.keys[at] = ~0ull;
    return;
  }
  auto* const keys = reinterpret_cast<unsigned long long*>(shared) + warp * g.lists.capacity;
  const int count = static_cast<int>(listed), found = keys_of_list(g, r, count, lane, keys);
  __syncwarp();
  const std::int64_t m = g.first_row + r;
#pragma unroll 1
  for (int first = lane; first < count; first += 64) {
    const unsigned long long mine[2] = {keys[first], first + 32 < count ? keys[first + 32] : ~0ull};
    int ranks[2] = {};
#pragma unroll 4
    for (int other = 0; other < count; other += 2) {
      const ulonglong2 two = *reinterpret_cast<const ulonglong2*>(keys + other);
#pragma unroll
      for (int i = 0; i < 2; ++i) ranks[i] += (two.x < mine[i]) + (two.y < mine[i]);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (mine[i] != ~0ull && ranks[i] < g.count) g.outputs.template store<false>(found_of_many(mine[i]), 0, m, ranks[i]);
  }
  for (int i = found + lane; i < g.count; i += 32)
    g.outputs.template store<false>(detail::Found<float>{0, detail::no_place}, 0, m, i);
}

struct ManyAgainShape {
  static constexpr int rows = 4, threads = 256, keys = 512, waiting = keys - most_results;
};

/// The listed rows by subtraction, four at a time. A block keeps each row's k best and the columns that may replace some of them, and sorts
/// them when there is no room for more.
template <class Element>
__global__ void __launch_bounds__(ManyAgainShape::threads) search_many_listed(const __grid_constant__ Search<Element> g) {
  using G = ManyAgainShape;
  using S = l2_squared<float>;
  __shared__ unsigned long long keys[G::rows][G::keys];
  __shared__ float xs[largest_numbers][G::rows];
  __shared__ int waiting[G::rows];
  const unsigned count = g.found->listed;
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (unsigned first = blockIdx.x * G::rows; first < count; first += gridDim.x * G::rows) {
    std::int64_t m[G::rows];
#pragma unroll
    for (int r = 0; r < G::rows; ++r) m[r] = g.first_row + g.list[min(first + r, count - 1)];
    __syncthreads();
    for (int i = thread; i < G::rows * G::keys; i += G::threads) keys[i / G::keys][i % G::keys] = ~0ull;
    if (thread < G::rows) waiting[thread] = 0;
    const int fours = (g.x.k + 3) / 4;
    for (int i = thread; i < G::rows * fours; i += G::threads) {
      const int r = i / fours, k = i % fours * 4;
      float v[4];
      g.x.load(v, g.first_row + g.list[min(first + r, count - 1)], k);
#pragma unroll
      for (int j = 0; j < 4; ++j) xs[k + j][r] = v[j];
    }
    __syncthreads();
#pragma unroll 1
    for (std::int64_t n0 = 0; n0 < g.z.rows; n0 += G::threads) {
      const std::int64_t n = n0 + thread;
      if (n < g.z.rows) {
        float sums[G::rows] = {};
#pragma unroll 2
        for (int k = 0; k < g.x.k; k += 4) {
          float z[4];
          g.z.load(z, n, k);
#pragma unroll
          for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int r = 0; r < G::rows; ++r) sums[r] = S::step(sums[r], xs[k + j][r], z[j]);
        }
#pragma unroll
        for (int r = 0; r < G::rows; ++r) {
          const unsigned long long key = key_of_many(g.score(sums[r]), static_cast<std::uint32_t>(n));
          if (key < keys[r][g.count - 1] && !(g.exclude_self && n == m[r]))
            keys[r][most_results + atomicAdd(&waiting[r], 1)] = key;
        }
      }
      __syncthreads();
      const bool is_last = n0 + G::threads >= g.z.rows;
#pragma unroll 1
      for (int r = 0; r < G::rows; ++r) {
        const int waits = waiting[r];
        if (waits == 0 || (!is_last && waits <= G::waiting - G::threads)) continue;
        // Bitonic merges (K. E. Batcher, Sorting networks and their applications, 1968); a thread has one pair.
#pragma unroll 1
        for (int run = 2; run <= G::keys; run *= 2)
#pragma unroll 1
          for (int apart = run / 2; apart > 0; apart /= 2) {
            const int low = thread / apart * 2 * apart + thread % apart, high = low + apart;
            const unsigned long long x = keys[r][low], y = keys[r][high];
            if (((low & run) == 0) == (x > y)) {
              keys[r][low] = y;
              keys[r][high] = x;
            }
            __syncthreads();
          }
        for (int i = most_results + thread; i < G::keys; i += G::threads) keys[r][i] = ~0ull;
        if (thread == 0) waiting[r] = 0;
      }
      __syncthreads();
    }
    for (int i = thread; i < G::rows * g.count; i += G::threads) {
      const int r = i / g.count;
      if (first + r < count)
        g.outputs.template store<false>(found_of_many(keys[r][i % g.count]), 0, g.first_row + g.list[first + r],
                                        i % g.count);
    }
  }
}

}  // namespace rigel::backends::mma::nearest
