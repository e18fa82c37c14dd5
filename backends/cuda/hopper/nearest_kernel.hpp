// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points of 16-bit floats by wgmma: the search. A block is persistent and takes 256 rows of X at a time, which stay in shared memory
// while tiles of 128 columns of Z pass by in a ring. Each of two warpgroups multiplies its 128 rows in two halves: while tensor cores
// multiply one, the bounds of the other are compared. Warps of a third warpgroup compute the distances that may be the least by subtraction,
// of the rows before, and write the results, or list the rows of which more than those may be nearer. A thread of it brings rows and tiles.
#pragma once

#include <rigel/backends/cuda/arch/barrier.hpp>
#include <rigel/backends/cuda/arch/bulk_copy.hpp>
#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/backends/cuda/arch/shared_memory.hpp>
#include <rigel/backends/cuda/arch/tensor_copy.hpp>
#include <rigel/backends/cuda/arch/wgmma.hpp>
#include <rigel/backends/cuda/hopper/nearest_bound.hpp>
#include <rigel/backends/cuda/hopper/nearest_state.hpp>
#include <rigel/backends/cuda/mma/nearest_sweep.hpp>
#include <rigel/backends/cuda/tile/swizzled_slab.hpp>

#include <cstddef>

namespace rigel::backends::hopper::nearest {

using mma::nearest::Found;
using mma::nearest::Nearest;
using mma::nearest::Points;
using mma::nearest::Search;
static_assert(position_bits == mma::nearest::position_bits);

/// `Steps` times 16 numbers along K. A quarter is half of a warpgroup's rows.
template <class Element, int Steps>
struct Shape : Layout {
  static constexpr int steps = Steps, numbers = 16 * Steps;
  static constexpr int groups_of_warps = 2, quarter_rows = 64, quarters = 4, rows = quarters * quarter_rows;
  static constexpr int threads = 128 * (groups_of_warps + 1), examiners = 3;
  /// A thread has 168 registers at launch, which change hands by warpgroup.
  static constexpr int multiplying_registers = 208, other_registers = 88;
  static_assert(groups_of_warps * multiplying_registers + other_registers <= (groups_of_warps + 1) * 168);
  static constexpr int slabs = (Steps + 3) / 4, stages = 3, states = 1;  // of tiles, and of what is found of rows
  using A = tile::SwizzledSlab<Element, tile::Direction::along_k, quarter_rows>;
  using B = tile::SwizzledSlab<Element, tile::Direction::along_k, Layout::columns>;
};

/// What warps know of rows: of each lane that has columns of a row the least bound, its column, and the least bound of all others.
template <int rows>
struct RowStates {
  float first[rows][4];
  std::uint32_t column[rows][4];
  alignas(16) float second[rows][4];
};
/// One of those rows, for mma::nearest::find_nearest().
struct RowState {
  const float* first;
  const std::uint32_t* group;
  float second;
};

/// 32 rows of X, and of each a row of Z: the numbers of a warp's distances, with gaps so that lanes read other banks.
template <int bytes>
struct Candidates {
  static constexpr int pitch = bytes + 16;
  alignas(16) unsigned char x[32][pitch], z[32][pitch];
};

/// What a block has in shared memory; slabs are at multiples of 1 KB.
template <class G>
struct Storage {
  unsigned char a[G::quarters][G::slabs][G::A::bytes];
  unsigned char b[G::stages][G::slabs][G::B::bytes];
  float norms[G::stages][G::columns];
  RowStates<G::rows> states[G::states];
  Candidates<2 * G::numbers> candidates[G::examiners];
  std::uint64_t full[G::stages], empty[G::stages], rows_full[G::quarters], rows_empty[G::quarters], found[G::states],
      examined[G::states];
};

/// What the launches of a call share.
template <class Element>
struct Arguments {
  CUtensorMap x, z;
  Search<Element> search;
  const float* norms;
};

inline constexpr int pass_threads = 128, norms_of_block = pass_threads / 4;

/// h of the columns, those that do not exist included, in the order of Layout::place_of_norm(). Four lanes sum a column's.
template <class Element>
__global__ void __launch_bounds__(pass_threads)
    prepare_norms(const __grid_constant__ Points<Element> z, float* norms, Found* found, int numbers, unsigned columns) {
  const unsigned column = blockIdx.x * norms_of_block + threadIdx.x / 4;
  if (column >= columns) return;
  double square = 0;
  if (column < z.rows)
    for (int k = static_cast<int>(threadIdx.x) % 4 * 4; k < z.k; k += 16) {
      float v[4];
      z.load(v, column, k);
#pragma unroll
      for (int i = 0; i < 4; ++i) square = fma(static_cast<double>(v[i]), static_cast<double>(v[i]), square);
    }
  square += __shfl_xor_sync(~0u, square, 1);
  square += __shfl_xor_sync(~0u, square, 2);
  if (threadIdx.x % 4 != 0) return;
  if (!(square <= static_cast<double>(largest_square))) atomicOr(&found->refused, 1u);
  const float norm = column < z.rows ? __double2float_rd(square * (0.5 * (1 - margin(numbers)))) : absent;
  norms[column / Layout::columns * Layout::columns + Layout::place_of_norm(static_cast<int>(column % Layout::columns))] =
      norm;
}

/// A block by the addresses of what it has in shared memory.
template <class G>
struct Block {
  std::uint32_t base;

  __device__ __forceinline__ std::uint32_t a(int quarter, int slab) const {
    return base + (quarter * G::slabs + slab) * G::A::bytes;
  }
  __device__ __forceinline__ std::uint32_t b(int stage, int slab) const {
    return base + static_cast<std::uint32_t>(offsetof(Storage<G>, b)) + (stage * G::slabs + slab) * G::B::bytes;
  }
  __device__ __forceinline__ std::uint32_t norms(int stage) const {
    return base + static_cast<std::uint32_t>(offsetof(Storage<G>, norms)) + stage * G::columns * 4;
  }
  __device__ __forceinline__ std::uint32_t barrier(std::size_t of_first, std::uint32_t place) const {
    return base + static_cast<std::uint32_t>(of_first) + place * 8;
  }
  __device__ __forceinline__ std::uint32_t full(int stage) const { return barrier(offsetof(Storage<G>, full), stage); }
  __device__ __forceinline__ std::uint32_t empty(int stage) const { return barrier(offsetof(Storage<G>, empty), stage); }
  __device__ __forceinline__ std::uint32_t rows_full(int quarter) const {
    return barrier(offsetof(Storage<G>, rows_full), quarter);
  }
  __device__ __forceinline__ std::uint32_t rows_empty(int quarter) const {
    return barrier(offsetof(Storage<G>, rows_empty), quarter);
  }
  __device__ __forceinline__ std::uint32_t found(unsigned buffer) const {
    return barrier(offsetof(Storage<G>, found), buffer);
  }
  __device__ __forceinline__ std::uint32_t examined(unsigned buffer) const {
    return barrier(offsetof(Storage<G>, examined), buffer);
  }
};

/// A place in the ring of tiles, and the parity of its barriers.
template <int stages>
struct Turn {
  int stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

/// Brings rows of X and tiles of Z: one thread. The first tiles are brought before the rows, whose place is empty later.
template <class G, class Element>
__device__ __forceinline__ void produce(const Block<G>& block, const Arguments<Element>& g) {
  constexpr int of_slab = G::A::depth;
  const unsigned blocks = (g.search.row_count + G::rows - 1) / G::rows, tiles = g.search.tile_count;
  const unsigned before = min(tiles, static_cast<unsigned>(G::stages - 1));
  Turn<G::stages> turn;
  unsigned parity = 1;
  const auto bring = [&](unsigned tile) {
    arch::wait(block.empty(turn.stage), turn.parity ^ 1);
    const std::uint32_t full = block.full(turn.stage);
    arch::arrive_and_expect(full, G::slabs * G::B::bytes + G::columns * 4);
#pragma unroll
    for (int slab = 0; slab < G::slabs; ++slab)
      arch::copy_tensor(block.b(turn.stage, slab), &g.z, slab * of_slab, static_cast<int>(tile * G::columns), 0, full);
    arch::copy_bytes(block.norms(turn.stage), g.norms + tile * G::columns, G::columns * 4, full);
    turn.advance();
  };
#pragma unroll 1
  for (unsigned rows = blockIdx.x; rows < blocks; rows += gridDim.x) {
    for (unsigned tile = 0; tile < before; ++tile) bring(tile);
#pragma unroll 1
    for (int i = 0; i < G::quarters; ++i) {
      const int quarter = i % 2 * 2 + i / 2;  // the first halves of both warpgroups, then the second ones
      arch::wait(block.rows_empty(quarter), parity);
      arch::arrive_and_expect(block.rows_full(quarter), G::slabs * G::A::bytes);
#pragma unroll
      for (int slab = 0; slab < G::slabs; ++slab)
        arch::copy_tensor(block.a(quarter, slab), &g.x, slab * of_slab,
                          static_cast<int>(rows * G::rows) + quarter * G::quarter_rows, 0, block.rows_full(quarter));
    }
    parity ^= 1;
    for (unsigned tile = before; tile < tiles; ++tile) bring(tile);
  }
}

using Sums = float[Layout::columns / 8][4];

/// Takes the bounds of a tile, of rows 8·h + lane / 4 of a warp's part of a quarter.
__device__ __forceinline__ void take(LaneRow (&rows)[2], const Sums& products, const float* norms, unsigned tile, int q) {
#pragma unroll
  for (int group = 0; group < Layout::groups; ++group) {
    float least[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float4 n4 = *reinterpret_cast<const float4*>(norms + (2 * group + i) * 16 + 4 * q);
      const float norm[4] = {n4.x, n4.y, n4.z, n4.w};
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const float bound = __fsub_rn(norm[c], products[4 * group + 2 * i + c / 2][2 * h + c % 2]);
          least[h] = i + c == 0 ? bound : fminf(least[h], bound);
          rows[h].take(bound, 4 * i + c);
        }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h)
      rows[h].groups.take(least[h], (tile * Layout::groups & (groups_of_run - 1)) + static_cast<unsigned>(group));
  }
}

/// A warpgroup's rows against all columns.
template <class G, class Element>
__device__ __forceinline__ void multiply(const Block<G>& block, Storage<G>& shared, const Arguments<Element>& g) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, q = lane % 4;
  const int group = warp / 4;
  const unsigned blocks = (g.search.row_count + G::rows - 1) / G::rows, tiles = g.search.tile_count;
  Turn<G::stages> turn;
  Sums even, odd;
  LaneRow rows[2][2];
  const auto multiply_half = [&](Sums& sums, int half, int stage) __attribute__((always_inline)) {
    arch::fence_wgmma();
#pragma unroll
    for (int step = 0; step < G::steps; ++step)
      arch::wgmma<Element, false, false>(sums, G::A::descriptor(block.a(2 * group + half, step / 4), 0, step % 4),
                                         G::B::descriptor(block.b(stage, step / 4), 0, step % 4), step > 0);
    arch::commit_wgmma();
  };
  const auto end_rows = [&](int half, unsigned buffer) __attribute__((always_inline)) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = (2 * group + half) * G::quarter_rows + warp % 4 * 16 + 8 * h + lane / 4;
      RowStates<G::rows>& to = shared.states[buffer];
      rows[half][h].end((tiles - 1) / G::tiles_of_run, q, to.first[row][q], to.column[row][q], to.second[row][q]);
      rows[half][h].begin();
    }
  };
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int h = 0; h < 2; ++h) rows[half][h].begin();
  arch::wait(block.rows_full(2 * group), 0);
  arch::wait(block.full(0), 0);
  multiply_half(even, 0, 0);
  unsigned parity = 0, tile = 0, buffer = 0, buffer_parity = 1, row_block = blockIdx.x;
  const auto complete = [&](Sums& sums, int half) __attribute__((always_inline)) {
    arch::wait_for_wgmma<0>();
    arch::hold(sums);
    if (tile + 1 == tiles && lane == 0) arch::arrive(block.rows_empty(2 * group + half));
  };
  const auto take_odd = [&](int stage) __attribute__((always_inline)) {
    take(rows[1], odd, shared.norms[stage], tile, q);
    __syncwarp();
    if (lane == 0) arch::arrive(block.empty(stage));
  };
  const auto end_odd = [&]() __attribute__((always_inline)) {
    end_rows(1, buffer);
    __syncwarp();
    if (lane == 0) arch::arrive(block.found(buffer));
  };
  complete(even, 0);
#pragma unroll 1
  for (;;) {
    const bool last = tile + 1 == tiles;
    const int stage = turn.stage;
    if (tile == 0) arch::wait(block.rows_full(2 * group + 1), parity);
    multiply_half(odd, 1, stage);
    take(rows[0], even, shared.norms[stage], tile, q);
    if (last) {
      arch::wait(block.examined(buffer), buffer_parity);
      end_rows(0, buffer);
      if (row_block + gridDim.x >= blocks) break;
    }
    complete(odd, 1);
    if (last) arch::wait(block.rows_full(2 * group), parity ^ 1);
    turn.advance();
    arch::wait(block.full(turn.stage), turn.parity);
    multiply_half(even, 0, turn.stage);
    take_odd(stage);
    ++tile;
    if (last) {
      end_odd();
      if (++buffer == G::states) {
        buffer = 0;
        buffer_parity ^= 1;
      }
      parity ^= 1;
      tile = 0;
      row_block += gridDim.x;
    } else if (tile % G::tiles_of_run == 0) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int h = 0; h < 2; ++h) rows[half][h].groups.end_run(tile / G::tiles_of_run - 1);
    }
    complete(even, 0);
  }
  complete(odd, 1);
  take_odd(turn.stage);
  end_odd();
}

/// A squared distance in the chain of the reference, and |x|².
struct Chain {
  float distance = 0, squares[2] = {};

  __device__ __forceinline__ void add(float x, float z, int which) {
    distance = l2_squared<float>::step(distance, x, z);
    squares[which] = __fmaf_rn(x, x, squares[which]);
  }
  __device__ __forceinline__ float square() const { return squares[0] + squares[1]; }
};

template <class Element>
struct alignas(16) Eight {
  static constexpr int count = 8;
  Element value[count];

  __device__ __forceinline__ static Eight of(const void* from) { return *static_cast<const Eight*>(from); }
  __device__ __forceinline__ static void add(Chain& chain, const Eight& x, const Eight& z) {
#pragma unroll
    for (int j = 0; j < count; ++j) chain.add(static_cast<float>(x.value[j]), static_cast<float>(z.value[j]), j % 2);
  }
};

/// The numbers from k on, one by one.
template <class Element>
__device__ __forceinline__ void add_last(Chain& chain, const Element* x, const Element* z, int k, int count) {
#pragma unroll 1
  for (; k < count; ++k) chain.add(static_cast<float>(x[k]), static_cast<float>(z[k]), 0);
}

/// The distance of each lane's row m of X and n of Z. The warp copies their numbers together: a lane's own would be in as many lines as
/// there are lanes.
template <class Element, class C>
__device__ __forceinline__ Chain distances_of_warp(const Search<Element>& g, C& candidates, std::int64_t m, std::int64_t n,
                                                   int lane) {
  constexpr int in_eights = Eight<Element>::count, of_row = (C::pitch - 16) / static_cast<int>(sizeof(Eight<Element>));
  constexpr int rows = 32 / of_row;  // that the warp copies at a time
  const int eights = g.x.k / in_eights, piece = lane % of_row;
  __syncwarp();
#pragma unroll 4
  for (int i = 0; i < 32; i += rows) {
    const int row = i + lane / of_row;
    const std::int64_t of_x = __shfl_sync(~0u, m, row), of_z = __shfl_sync(~0u, n, row);
    if (piece < eights) {
      arch::copy_async<16>(candidates.x[row] + 16 * piece, g.x.data + of_x * g.x.row_stride + piece * in_eights);
      arch::copy_async<16>(candidates.z[row] + 16 * piece, g.z.data + of_z * g.z.row_stride + piece * in_eights);
    }
  }
  arch::commit_copies();
  arch::wait_for_copies<0>();
  __syncwarp();
  Chain chain;
#pragma unroll 2
  for (int i = 0; i < eights; ++i)
    Eight<Element>::add(chain, Eight<Element>::of(candidates.x[lane] + 16 * i),
                        Eight<Element>::of(candidates.z[lane] + 16 * i));
  add_last(chain, g.x.data + m * g.x.row_stride, g.z.data + n * g.z.row_stride, eights * in_eights, g.x.k);
  return chain;
}
/// The distance of one lane's row m of X, whose numbers have been copied, and n of Z.
template <class Element, class C>
__device__ __forceinline__ Chain distance_of_lane(const Search<Element>& g, const C& candidates, std::int64_t m,
                                                  std::int64_t n, int lane) {
  constexpr int in_eights = Eight<Element>::count;
  const Element* const z = g.z.data + n * g.z.row_stride;
  const int eights = g.x.k / in_eights;
  Chain chain;
#pragma unroll 8
  for (int i = 0; i < eights; ++i)
    Eight<Element>::add(chain, Eight<Element>::of(candidates.x[lane] + 16 * i), Eight<Element>::of(z + i * in_eights));
  add_last(chain, g.x.data + m * g.x.row_stride, z, eights * in_eights, g.x.k);
  return chain;
}

template <class Element>
__device__ __forceinline__ void list(const Search<Element>& g, unsigned row) {
  const unsigned at = atomicAdd(&g.found->listed, 1u);
  g.list[at] = row;
  g.keys[at] = ~0ull;
}

/// The rows that warps have been through: exact distances, results.
template <class G, class Element>
__device__ __forceinline__ void examine(const Block<G>& block, Storage<G>& shared, const Arguments<Element>& arguments) {
  const Search<Element>& g = arguments.search;
  const int lane = static_cast<int>(threadIdx.x) % 32,
            examiner = static_cast<int>(threadIdx.x) / 32 - 4 * G::groups_of_warps - 1;
  const unsigned blocks = (g.row_count + G::rows - 1) / G::rows;
  unsigned buffer = 0, parity = 0;
#pragma unroll 1
  for (unsigned row_block = blockIdx.x; row_block < blocks; row_block += gridDim.x) {
    arch::wait(block.found(buffer), parity);
    const RowStates<G::rows>& states = shared.states[buffer];
#pragma unroll 1
    for (int part = examiner; part < G::rows / 32; part += G::examiners) {
      const int of_block = part * 32 + lane;
      const unsigned r = row_block * G::rows + of_block;
      const std::int64_t m = g.first_row + min(r, g.row_count - 1);
      const float4 second = *reinterpret_cast<const float4*>(states.second[of_block]);
      const RowState row{states.first[of_block], states.column[of_block],
                         fminf(fminf(second.x, second.y), fminf(second.z, second.w))};
      const int best = mma::nearest::best_lane_of(row);
      const std::int64_t n = row.group[best];
      const bool exists = n < g.z.rows;
      const Chain chain = distances_of_warp(g, shared.candidates[examiner], m, exists ? n : 0, lane);
      if (r >= g.row_count) continue;
      const Certainty certainty{chain.square(), g.x.k, G::numbers};
      Nearest nearest{0, 0, detail::no_place};
      if (exists) nearest.take(chain.distance, g.score(chain.distance), n);
      const bool certain =
          certainty.square <= largest_square &&
          mma::nearest::excludes_others(row, certainty, best, nearest, [&](int, std::uint32_t other, Nearest& least) {
            if (other >= g.z.rows) return;
            const Chain of_other = distance_of_lane(g, shared.candidates[examiner], m, other, lane);
            least.take(of_other.distance, g.score(of_other.distance), other);
          });
      if (certain)
        g.outputs.template store<false>(detail::Found<float>{nearest.score, nearest.n}, 0, m);
      else
        list(g, r);
    }
    __syncwarp();
    if (lane == 0) arch::arrive(block.examined(buffer));
    if (++buffer == G::states) {
      buffer = 0;
      parity ^= 1;
    }
  }
}

template <class Element, int Steps>
__global__ void __launch_bounds__(Shape<Element, Steps>::threads, 1)
    search_nearest(const __grid_constant__ Arguments<Element> g) {
  if constexpr (!arch::has_wgmma) {
    __trap();
  } else {
    using G = Shape<Element, Steps>;
    extern __shared__ __attribute__((aligned(1024))) unsigned char bytes[];
    Storage<G>& shared = *reinterpret_cast<Storage<G>*>(bytes);
    if (g.search.found->refused) {
      for (unsigned r = blockIdx.x * G::threads + threadIdx.x; r < g.search.row_count; r += gridDim.x * G::threads)
        list(g.search, r);
      return;
    }
    const Block<G> block{static_cast<std::uint32_t>(__cvta_generic_to_shared(bytes))};
    if (threadIdx.x == 0) {
      arch::prefetch_tensor_map(&g.x);
      arch::prefetch_tensor_map(&g.z);
      for (int i = 0; i < G::stages; ++i) {
        arch::initialize_barrier(block.full(i), 1);
        arch::initialize_barrier(block.empty(i), 4 * G::groups_of_warps);
      }
      for (int i = 0; i < G::quarters; ++i) {
        arch::initialize_barrier(block.rows_full(i), 1);
        arch::initialize_barrier(block.rows_empty(i), 4);
      }
      for (unsigned i = 0; i < G::states; ++i) {
        arch::initialize_barrier(block.found(i), 4 * G::groups_of_warps);
        arch::initialize_barrier(block.examined(i), G::examiners);
      }
      arch::fence_initialized_barriers();
    }
    __syncthreads();
    constexpr int producer = 4 * G::groups_of_warps;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (warp < producer) {
      arch::more_registers<G::multiplying_registers>();
      multiply<G>(block, shared, g);
    } else {
      arch::fewer_registers<G::other_registers>();
      if (warp > producer)
        examine<G>(block, shared, g);
      else if (threadIdx.x == 32 * producer)
        produce<G>(block, g);
    }
  }
}

}  // namespace rigel::backends::hopper::nearest
