// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the k smallest, by two sweeps over the columns, which slices of the grid share.
//
// sweep_parts   the least bound of each part of a row's columns
// find_limits   the k-th least of these: up to which bound a column may be one of the k nearest
// sweep_lists   lists these columns, some more than k; of rows with too many, it counts them only
//
// Then nearest_sort.hpp computes the distances of a row's list by subtraction, and sorts them.
#pragma once

#include <rigel/backends/cuda/mma/nearest_again.hpp>
#include <rigel/backends/cuda/mma/nearest_memory.hpp>

namespace rigel::backends::mma::nearest {

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

/// Of a group's columns, as bits, those that are listed: the first one's position, and the row of the warp.
struct WaitingGroup {
  std::uint32_t position, row_and_columns;  // columns from bit 8 on
};
/// What is next to the tiles in shared memory: for each warp, groups that wait to be listed.
struct Waiting {
  static constexpr unsigned most = 128, enough = 32;  // listed when there are enough
  std::uint32_t fill, row;                            // how many; the warp's first row
  std::uint32_t full, unused;                         // full: rows, as bits, with more columns than their lists take
  WaitingGroup groups[most];
};

template <int Steps>
struct ManyShape : Shape<Steps> {
  using Base = Shape<Steps>;
  static constexpr int list_blocks = Steps >= 2 ? 3 : 4;
  static constexpr int list_bytes = Base::bytes + Base::warps * static_cast<int>(sizeof(Waiting));
};

/// The tiles of the present strip that a block's slice has.
template <class Element, int Steps>
__device__ __forceinline__ Sweep<Element, Steps> sweep_of_slice(const Search<Element>& g, unsigned char* shared) {
  const auto tile = [&](unsigned slice) { return static_cast<unsigned>(std::uint64_t{g.tile_count} * slice / gridDim.y); };
  const unsigned first = tile(blockIdx.y);
  return Sweep<Element, Steps>(g, shared, first, tile(blockIdx.y + 1) - first);
}

/// The least bound of each part: of a run of chunks, those that come to one lane. Chunks come run by run.
template <int Steps>
struct PartsTaker {
  static constexpr bool sees_self = true;
  const Lists& lists;
  std::uint32_t* words;  // of the first of the lane's rows, and of its parts the first
  unsigned run, next;    // the present run, and the chunk at which another one begins
  float least[4];

  __device__ __forceinline__ PartsTaker(const Lists& all, unsigned row, int lane, unsigned chunk)
      : lists(all),
        words(all.words + std::int64_t{row + lane / 4} * all.pitch + lane % 4),
        run(all.order.run_of(chunk)),
        next(all.order.begin_of_run(run + 1)) {
    begin_run();
  }
  __device__ __forceinline__ void begin_run() {
#pragma unroll
    for (int row = 0; row < 4; ++row) least[row] = Least::none;
  }
  __device__ __forceinline__ void end_run() {
#pragma unroll
    for (int row = 0; row < 4; ++row) atomicMin(words + std::int64_t{8 * row} * lists.pitch + run * 4, ordered(least[row]));
  }
  __device__ __forceinline__ void begin_chunk(unsigned chunk) {
    if (chunk != next) return;
    end_run();
    begin_run();
    next = lists.order.begin_of_run(++run + 1);
  }
  __device__ __forceinline__ void take(const Bounds& bounds, int row, int span) {
    least[row] = fminf(least[row], least_of_group<Layout<Steps>>(bounds, row, span));
  }
  __device__ __forceinline__ void end_chunk(const Bounds&, unsigned) {}
  __device__ __forceinline__ void end_tile(unsigned) {}
};

template <class Element, int Steps>
__global__ void __launch_bounds__(ManyShape<Steps>::threads, ManyShape<Steps>::blocks)
    sweep_parts(const __grid_constant__ Search<Element> g) {
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];
  if (g.found->refused) return;
  auto sweep = sweep_of_slice<Element, Steps>(g, shared);
  const int lane = sweep.lane;
  sweep.start();
  sweep.load();
  if (blockIdx.y == 0 && lane % 4 == 0) {
#pragma unroll
    for (int row = 0; row < 4; ++row)
      g.lists.rows[sweep.row_of_warp + 8 * row + lane / 4] = {sweep.squares[row], sweep.lost[row], -absent, 0};
  }
  PartsTaker<Steps> taker(g.lists, sweep.row_of_warp, lane, sweep.first_chunk());
  sweep.run(taker);
  taker.end_run();
}

/// The k-th least of a row's parts, by a warp, bit by bit.
__device__ __forceinline__ std::uint32_t kth_of_parts(const std::uint32_t* parts, int count, int k, int lane) {
  constexpr int most = most_parts / 32;
  std::uint32_t mine[most];
#pragma unroll
  for (int i = 0; i < most; ++i) mine[i] = 32 * i + lane < count ? parts[32 * i + lane] : ~0u;
  std::uint32_t kth = ~0u;
#pragma unroll 1
  for (std::uint32_t bit = 0x80000000; bit > 0; bit >>= 1) {
    const std::uint32_t trial = kth & ~bit;
    unsigned below = 0;
#pragma unroll
    for (int first = 0; first < most; first += 4)
      if (32 * first < count)
#pragma unroll
        for (int i = first; i < first + 4; ++i) below += mine[i] <= trial;
    if (__reduce_add_sync(~0u, below) >= static_cast<unsigned>(k)) kth = trial;
  }
  return kth;
}

template <class Element>
__global__ void __launch_bounds__(pass_threads) find_limits(const __grid_constant__ Search<Element> g, int numbers) {
  if (g.found->refused) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const unsigned r = blockIdx.x * (pass_threads / 32) + threadIdx.x / 32;
  if (r >= g.row_count) return;
  const std::uint32_t kth =
      kth_of_parts(g.lists.words + std::int64_t{r} * g.lists.pitch, g.lists.parts, g.lists.least, lane);
  if (lane != 0) return;
  RowState& row = g.lists.rows[r];
  const auto scale = static_cast<double>(power_of_two_of(exponent_of_scale(g.found->largest)));
  const Certainty c{row.square, row.lost, margin(numbers), 1 / (scale * scale), g.x.k, numbers, 0};
  const bool fits = row.square <= largest_square;
  row.limit = !fits ? -absent : kth == ~0u ? absent / 2 : c.limit(from_ordered(kth));
  row.count = fits ? 0 : static_cast<std::uint32_t>(g.lists.capacity) + 1;
}

/// Lists the columns up to each row's limit. Groups that have some wait in shared memory, so that a warp lists many of them at a time.
template <int Steps>
struct ListTaker {
  using L = Layout<Steps>;
  static constexpr bool sees_self = true;
  const Lists& lists;
  Waiting& waiting;
  int lane;
  std::uint32_t hits;  // the chunk's groups with columns up to the limit, as bits
  float limit[4];

  __device__ __forceinline__ ListTaker(const Lists& all, Waiting& of_warp, unsigned first_row, int of_lane)
      : lists(all), waiting(of_warp), lane(of_lane) {
    if (lane == 0) {
      waiting.fill = waiting.full = 0;
      waiting.row = first_row;
    }
#pragma unroll
    for (int row = 0; row < 4; ++row) {
      const RowState& state = lists.rows[first_row + 8 * row + lane / 4];
      limit[row] = state.count > static_cast<std::uint32_t>(lists.capacity) ? -absent : state.limit;
    }
    __syncwarp();
  }
  __device__ __forceinline__ void begin_chunk(unsigned) { hits = 0; }
  // Without a jump: that would stand between products.
  __device__ __forceinline__ void take(const Bounds& bounds, int row, int span) {
    if (least_of_group<L>(bounds, row, span) <= limit[row]) hits |= 1u << (row * L::groups + span);
  }
  __device__ __forceinline__ void end_chunk(const Bounds& bounds, unsigned chunk) {
    if (hits == 0) return;
#pragma unroll
    for (int i = 0; i < 4 * L::groups; ++i)
      if (hits >> i & 1) add(bounds, i / L::groups, i % L::groups, lists.first_chunk + chunk);
  }
  __device__ __forceinline__ void add(const Bounds& bounds, int row, int span, unsigned chunk) {
    const WaitingGroup group = {
        chunk * L::chunk + span * 4 * L::group + lane % 4 * L::group,
        static_cast<std::uint32_t>(8 * row + lane / 4) | group_up_to<L>(bounds, row, span, limit[row]) << 8};
    const std::uint32_t at = atomicAdd(&waiting.fill, 1u);
    if (at < Waiting::most)
      waiting.groups[at] = group;
    else
      append(group);
  }
  __device__ __forceinline__ void append(WaitingGroup group) const {
    const std::uint32_t row = group.row_and_columns % 256, r = waiting.row + row;
    std::uint32_t columns = group.row_and_columns >> 8;
    std::uint32_t at = atomicAdd(&lists.rows[r].count, static_cast<std::uint32_t>(__popc(columns)));
#pragma unroll 1
    for (; columns != 0; columns &= columns - 1, ++at) {
      if (at >= static_cast<std::uint32_t>(lists.capacity)) {
        atomicOr(&waiting.full, 1u << row);
        break;
      }
      lists.words[std::int64_t{r} * lists.pitch + at] = group.position + __ffs(static_cast<int>(columns)) - 1;
    }
  }
  __device__ __forceinline__ void end_tile(unsigned) {
    __syncwarp();
    const std::uint32_t fill = *static_cast<volatile std::uint32_t*>(&waiting.fill);
    if (fill >= Waiting::enough) list(fill);
  }
  /// What waits. Rows whose lists are full get no more.
  __device__ __forceinline__ void list(std::uint32_t fill) {
#pragma unroll 1
    for (unsigned i = lane; i < min(fill, Waiting::most); i += 32) append(waiting.groups[i]);
    __syncwarp();
    const std::uint32_t full = *static_cast<volatile std::uint32_t*>(&waiting.full);
    if (lane == 0) waiting.fill = 0;
    __syncwarp();
#pragma unroll
    for (int row = 0; row < 4; ++row)
      if (full >> (8 * row + lane / 4) & 1) limit[row] = -absent;
  }
  __device__ __forceinline__ void end() {
    __syncwarp();
    list(*static_cast<volatile std::uint32_t*>(&waiting.fill));
  }
};

template <class Element, int Steps>
__global__ void __launch_bounds__(ManyShape<Steps>::threads, ManyShape<Steps>::list_blocks)
    sweep_lists(const __grid_constant__ Search<Element> g) {
  using G = ManyShape<Steps>;
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];
  if (g.found->refused) return;
  auto sweep = sweep_of_slice<Element, Steps>(g, shared);
  sweep.start();
  sweep.load();
  ListTaker<Steps> taker(g.lists, reinterpret_cast<Waiting*>(shared + G::bytes)[sweep.thread / 32], sweep.row_of_warp,
                         sweep.lane);
  sweep.run(taker);
  taker.end();
}

}  // namespace rigel::backends::mma::nearest
