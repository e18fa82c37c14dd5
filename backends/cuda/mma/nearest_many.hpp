// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the k smallest, by two sweeps. The first one keeps the least bound of each of 64 parts of a row's columns.
// The k-th least of these says up to which bound a column may be one of the k nearest. The second one lists these columns, a few more than k.
// Then a warp computes the distances of a row's list by subtraction, and sorts them. Rows whose list is full are left to the search by
// subtraction.
#pragma once

#include <rigel/backends/cuda/mma/nearest_again.hpp>

namespace rigel::backends::mma::nearest {

inline constexpr int most_results = 32, listed_columns = 64, pitch_of_parts = parts + 4;  // of a row

/// A float as an integer whose order is the floats', and back.
RIGEL_FUNCTION std::uint32_t ordered(float x) {
  constexpr std::uint32_t sign = 0x80000000;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits & sign ? ~bits : bits | sign;
}
RIGEL_FUNCTION float from_ordered(std::uint32_t x) {
  constexpr std::uint32_t sign = 0x80000000;
  return std::bit_cast<float>(x & sign ? x & ~sign : ~x);
}

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

/// The least bound of each part. A part is a lane's columns of every sixteenth tile.
template <int Steps>
struct PartsTaker {
  float* parts_of_rows;  // of the warp
  int lane;
  float of_tile[4];

  __device__ __forceinline__ PartsTaker(float* shared, int of_lane) : parts_of_rows(shared), lane(of_lane) {
#pragma unroll 1
    for (int i = lane; i < 32 * pitch_of_parts; i += 32) parts_of_rows[i] = Least::none;
    __syncwarp();
#pragma unroll
    for (int row = 0; row < 4; ++row) of_tile[row] = Least::none;
  }
  __device__ __forceinline__ void begin_chunk(unsigned) {}
  __device__ __forceinline__ void take(const Bounds& bounds, int row, int span) {
    of_tile[row] = fminf(of_tile[row], least_of_group<Layout<Steps>>(bounds, row, span));
  }
  __device__ __forceinline__ void end_tile(unsigned tile) {
#pragma unroll
    for (int row = 0; row < 4; ++row) {
      float& part = parts_of_rows[(8 * row + lane / 4) * pitch_of_parts + tile % parts_of_lane * 4 + lane % 4];
      part = fminf(part, of_tile[row]);
      of_tile[row] = Least::none;
    }
  }
};

/// Lists the columns up to each row's limit. Beyond listed_columns, they are counted only.
template <int Steps>
struct ListTaker {
  using L = Layout<Steps>;
  std::uint32_t *lists, *counts;  // of the warp's rows
  int lane;
  unsigned chunk;
  float limit[4];

  __device__ __forceinline__ void begin_chunk(unsigned number) { chunk = number; }
  __device__ __forceinline__ void take(const Bounds& bounds, int row, int span) {
    if (!(least_of_group<L>(bounds, row, span) <= limit[row])) return;
    const int r = 8 * row + lane / 4;
    for_each_of_group<L>(bounds, row, span, lane, [&](float bound, int column) __attribute__((always_inline)) {
      if (!(bound <= limit[row])) return;
      const std::uint32_t at = atomicAdd(&counts[r], 1u);
      if (at < listed_columns) lists[r * listed_columns + at] = chunk * L::chunk + column;
    });
  }
  __device__ __forceinline__ void end_tile(unsigned) {}
};

template <int Steps>
struct ManyShape : Shape<Steps> {
  using Base = Shape<Steps>;
  static constexpr int blocks = Steps >= 2 ? 2 : 3;
  // After the tiles: parts of each row, or its list; limits; counts.
  static constexpr int row_bytes = pitch_of_parts * 4;
  static_assert(row_bytes >= listed_columns * 4);
  static constexpr int bytes = Base::bytes + Base::rows * (row_bytes + 8);
};

/// The k-th least of the parts of a lane's row, of a warp's 32, found bit by bit.
__device__ __forceinline__ float kth_of_parts(const float* parts, int lane, int k) {
  float kth_of_mine = 0;
#pragma unroll 1
  for (int row = 0; row < 32; ++row) {
    const float* const part = parts + row * pitch_of_parts;
    const std::uint32_t low = ordered(part[lane]), high = ordered(part[lane + 32]);
    std::uint32_t kth = ~0u;
#pragma unroll 1
    for (std::uint32_t bit = 0x80000000; bit > 0; bit >>= 1) {
      const std::uint32_t trial = kth & ~bit;
      const int below = __popc(__ballot_sync(~0u, low <= trial)) + __popc(__ballot_sync(~0u, high <= trial));
      if (below >= k) kth = trial;
    }
    if (lane == row) kth_of_mine = from_ordered(kth);
  }
  return kth_of_mine;
}

template <class Element, int Steps>
__global__ void __launch_bounds__(ManyShape<Steps>::threads, ManyShape<Steps>::blocks)
    search_nearest_many(const __grid_constant__ Search<Element> g) {
  using G = ManyShape<Steps>;
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];
  Sweep<Element, Steps> sweep(g, shared);
  const int lane = sweep.lane, warp = sweep.thread / 32;
  const auto list = [&](unsigned row) { g.list[atomicAdd(&g.found->listed, 1u)] = row; };
  if (g.found->refused) {
    if (sweep.row_of_warp + lane < g.row_count) list(sweep.row_of_warp + lane);
    return;
  }
  unsigned char* const of_rows = shared + G::Base::bytes + warp * 32 * G::row_bytes;
  float* const limits = reinterpret_cast<float*>(shared + G::Base::bytes + G::rows * G::row_bytes) + warp * 32;
  auto* const counts = reinterpret_cast<std::uint32_t*>(limits + G::rows);
  auto* const lists = reinterpret_cast<std::uint32_t*>(of_rows);
  sweep.start();
  sweep.load();
  // Meanwhile, |x'|² and |dx|² of each row are where its limit and count come.
  float* const lost = reinterpret_cast<float*>(counts);
#pragma unroll
  for (int row = 0; row < 4; ++row)
    if (lane % 4 == 0) {
      limits[8 * row + lane / 4] = sweep.squares[row];
      lost[8 * row + lane / 4] = sweep.lost[row];
    }
  {
    PartsTaker<Steps> taker(reinterpret_cast<float*>(of_rows), lane);
    sweep.run(taker);
  }
  sweep.start();
  __syncwarp();

  const float kth_of_mine = kth_of_parts(reinterpret_cast<const float*>(of_rows), lane, g.count);
  const float square = limits[lane];
  const bool fits = square <= largest_square;
  const Certainty c{square,
                    lost[lane],
                    margin(G::numbers),
                    1 / (static_cast<double>(sweep.scale) * static_cast<double>(sweep.scale)),
                    g.x.k,
                    G::numbers,
                    0};
  __syncwarp();
  limits[lane] = fits ? c.limit(kth_of_mine) : -absent;
  counts[lane] = fits ? 0 : listed_columns + 1;
  __syncwarp();
  ListTaker<Steps> taker{lists, counts, lane, 0, {}};
#pragma unroll
  for (int row = 0; row < 4; ++row) taker.limit[row] = limits[8 * row + lane / 4];
  sweep.run(taker);
  __syncwarp();

#pragma unroll 1
  for (int row = 0; row < 32; ++row) {
    const unsigned r = sweep.row_of_warp + row;
    if (r >= g.row_count) break;
    const int count = static_cast<int>(counts[row]);
    if (count > listed_columns) {
      if (lane == 0) list(r);
      continue;
    }
    const std::int64_t m = g.first_row + r;
    unsigned long long keys[2] = {~0ull, ~0ull};
#pragma unroll
    for (int half_of_list = 0; half_of_list < 2; ++half_of_list)
      if (lane + 32 * half_of_list < count) {
        const std::int64_t n[1] = {lists[row * listed_columns + lane + 32 * half_of_list]};
        float distance[1];
        distances(g, m, n, distance);
        keys[half_of_list] = key_of_many(g.score(distance[0]), static_cast<std::uint32_t>(n[0]));
      }
    int ranks[2] = {};
#pragma unroll 1
    for (int other = 0; other < count; ++other) {
      const unsigned long long key = __shfl_sync(~0u, other < 32 ? keys[0] : keys[1], other % 32);
      ranks[0] += key < keys[0];
      ranks[1] += key < keys[1];
    }
#pragma unroll
    for (int half_of_list = 0; half_of_list < 2; ++half_of_list) {
      const int at = lane + 32 * half_of_list;
      if (at < count && ranks[half_of_list] < g.count)
        g.outputs.template store<false>(found_of_many(keys[half_of_list]), 0, m, ranks[half_of_list]);
    }
    for (int i = count + lane; i < g.count; i += 32)
      g.outputs.template store<false>(detail::Found<float>{0, detail::no_place}, 0, m, i);
  }
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
