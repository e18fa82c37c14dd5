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

#include <array>
#include <bit>
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
  static constexpr int threads = 128 * (groups_of_warps + 1), examiners = 2;
  /// A thread has 168 registers at launch, which change hands by warpgroup.
  static constexpr int multiplying_registers = 208, other_registers = 88;
  static_assert(groups_of_warps * multiplying_registers + other_registers <= (groups_of_warps + 1) * 168);
  static constexpr int slabs = (Steps + 3) / 4, stages = 2, buffers = 2;  // of tiles, and of rows
  using A = tile::SwizzledSlab<Element, tile::Direction::along_k, quarter_rows>;
  using B = tile::SwizzledSlab<Element, tile::Direction::along_k, Layout::columns>;
};

/// What warps know of rows: of each lane that has columns of a row the least bound, its column, and the least bound of all others.
template <int rows>
struct alignas(16) RowStates {
  float first[rows][4];
  std::uint32_t column[rows][4];
  float second[rows][4];
};
/// One of those rows, for mma::nearest::excludes_others().
struct RowState {
  const float* first;
  const std::uint32_t* group;
  float second;
};

/// A row of Z for each lane of a warp, with gaps so that lanes read other banks.
template <int bytes>
struct Candidates {
  static constexpr int pitch = bytes + 16;
  alignas(16) unsigned char z[32][pitch];
};

/// What a block has in shared memory; slabs are at multiples of 1 KB.
template <class G>
struct Storage {
  unsigned char a[G::buffers][G::quarters][G::slabs][G::A::bytes];
  unsigned char b[G::stages][G::slabs][G::B::bytes];
  float norms[2 * G::stages][G::columns];  // they are read after their tile's place is empty
  RowStates<G::rows> states;
  Candidates<2 * G::numbers> candidates[G::examiners];
  std::uint64_t full[G::stages], empty[G::stages], rows_full[G::buffers][G::quarters], examined[G::buffers], found;
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

  __device__ __forceinline__ std::uint32_t a(unsigned buffer, int quarter, int slab) const {
    return base + ((buffer * G::quarters + quarter) * G::slabs + slab) * G::A::bytes;
  }
  __device__ __forceinline__ std::uint32_t b(int stage, int slab) const {
    return base + static_cast<std::uint32_t>(offsetof(Storage<G>, b)) + (stage * G::slabs + slab) * G::B::bytes;
  }
  __device__ __forceinline__ std::uint32_t norms(unsigned place) const {
    return base + static_cast<std::uint32_t>(offsetof(Storage<G>, norms)) + place * G::columns * 4;
  }
  __device__ __forceinline__ std::uint32_t barrier(std::size_t of_first, std::uint32_t place) const {
    return base + static_cast<std::uint32_t>(of_first) + place * 8;
  }
  __device__ __forceinline__ std::uint32_t full(int stage) const { return barrier(offsetof(Storage<G>, full), stage); }
  __device__ __forceinline__ std::uint32_t empty(int stage) const { return barrier(offsetof(Storage<G>, empty), stage); }
  __device__ __forceinline__ std::uint32_t rows_full(unsigned buffer, int quarter) const {
    return barrier(offsetof(Storage<G>, rows_full), buffer * G::quarters + quarter);
  }
  __device__ __forceinline__ std::uint32_t examined(unsigned buffer) const {
    return barrier(offsetof(Storage<G>, examined), buffer);
  }
  __device__ __forceinline__ std::uint32_t found() const { return barrier(offsetof(Storage<G>, found), 0); }
};

/// A place in the ring of tiles, and the parity of its barriers.
template <int stages>
struct Turn {
  int stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
  __device__ __forceinline__ unsigned place_of_norms() const { return stage + parity * stages; }
};

/// The buffer of a block's rows, and the parity of that buffer's barriers.
struct RowTurn {
  unsigned buffer = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    buffer ^= 1;
    parity ^= buffer ^ 1;
  }
  /// The buffer of the rows before, which the next ones take over, and the parity of its barriers for those before.
  __device__ __forceinline__ unsigned other() const { return buffer ^ 1; }
  __device__ __forceinline__ unsigned parity_before() const { return parity ^ buffer ^ 1; }
};

/// Brings rows of X and tiles of Z: one thread. The rows to come are brought after all tiles, when the rows before have been examined.
template <class G, class Element>
__device__ __forceinline__ void produce(const Block<G>& block, const Arguments<Element>& g) {
  constexpr int of_slab = G::A::depth;
  const unsigned blocks = (g.search.row_count + G::rows - 1) / G::rows, tiles = g.search.tile_count;
  Turn<G::stages> turn;
  const auto bring_rows = [&](unsigned buffer, unsigned rows) {
#pragma unroll 1
    for (int i = 0; i < G::quarters; ++i) {
      const int quarter = i % 2 * 2 + i / 2;  // the first halves of both warpgroups, then the second ones
      const std::uint32_t full = block.rows_full(buffer, quarter);
      arch::arrive_and_expect(full, G::slabs * G::A::bytes);
#pragma unroll
      for (int slab = 0; slab < G::slabs; ++slab)
        arch::copy_tensor(block.a(buffer, quarter, slab), &g.x, slab * of_slab,
                          static_cast<int>(rows * G::rows) + quarter * G::quarter_rows, 0, full);
    }
  };
  RowTurn rows_turn;
  bring_rows(0, blockIdx.x);
#pragma unroll 1
  for (unsigned rows = blockIdx.x; rows < blocks; rows += gridDim.x) {
#pragma unroll 1
    for (unsigned tile = 0; tile < tiles; ++tile) {
      arch::wait(block.empty(turn.stage), turn.parity ^ 1);
      const std::uint32_t full = block.full(turn.stage);
      arch::arrive_and_expect(full, G::slabs * G::B::bytes + G::columns * 4);
#pragma unroll
      for (int slab = 0; slab < G::slabs; ++slab)
        arch::copy_tensor(block.b(turn.stage, slab), &g.z, slab * of_slab, static_cast<int>(tile * G::columns), 0, full);
      arch::copy_bytes(block.norms(turn.place_of_norms()), g.norms + tile * G::columns, G::columns * 4, full);
      turn.advance();
    }
    if (rows + gridDim.x >= blocks) break;
    arch::wait(block.examined(rows_turn.other()), rows_turn.parity_before());
    bring_rows(rows_turn.other(), rows + gridDim.x);
    rows_turn.advance();
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
  const int group = __shfl_sync(~0u, warp / 4, 0);  // which the compiler then knows to be the warp's
  const unsigned blocks = (g.search.row_count + G::rows - 1) / G::rows, tiles = g.search.tile_count;
  Turn<G::stages> turn;
  Sums even, odd;
  LaneRow rows[2][2];
  const auto multiply_half = [&](Sums& sums, unsigned buffer, int half, int stage) __attribute__((always_inline)) {
    arch::fence_wgmma();
#pragma unroll
    for (int step = 0; step < G::steps; ++step)
      arch::wgmma<Element, false, false>(sums, G::A::descriptor(block.a(buffer, 2 * group + half, step / 4), 0, step % 4),
                                         G::B::descriptor(block.b(stage, step / 4), 0, step % 4), step > 0);
    arch::commit_wgmma();
  };
  const auto end_rows = [&](int half) __attribute__((always_inline)) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = (2 * group + half) * G::quarter_rows + warp % 4 * 16 + 8 * h + lane / 4;
      RowStates<G::rows>& to = shared.states;
      rows[half][h].end((tiles - 1) / G::tiles_of_run, q, to.first[row][q], to.column[row][q], to.second[row][q]);
      rows[half][h].begin();
    }
  };
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int h = 0; h < 2; ++h) rows[half][h].begin();
  arch::wait(block.rows_full(0, 2 * group), 0);
  arch::wait(block.full(0), 0);
  multiply_half(even, 0, 0, 0);
  RowTurn rows_turn;
  unsigned tile = 0, row_block = blockIdx.x;
  const auto complete = [&](Sums& sums) __attribute__((always_inline)) {
    arch::wait_for_wgmma<0>();
    arch::hold(sums);
  };
  const auto complete_odd = [&] __attribute__((always_inline)) {
    complete(odd);
    if (lane == 0) arch::arrive(block.empty(turn.stage));
  };
  const auto end_odd = [&]() __attribute__((always_inline)) {
    end_rows(1);
    __syncwarp();
    if (lane == 0) arch::arrive(block.found());
  };
  complete(even);
#pragma unroll 1
  for (;;) {
    const bool last = tile + 1 == tiles;
    const float* const norms = shared.norms[turn.place_of_norms()];
    if (tile == 0) arch::wait(block.rows_full(rows_turn.buffer, 2 * group + 1), rows_turn.parity);
    multiply_half(odd, rows_turn.buffer, 1, turn.stage);
    take(rows[0], even, norms, tile, q);
    if (last) {
      arch::wait(block.examined(rows_turn.other()), rows_turn.parity_before());
      end_rows(0);
      if (row_block + gridDim.x >= blocks) break;
    }
    complete_odd();
    if (last) {
      rows_turn.advance();
      arch::wait(block.rows_full(rows_turn.buffer, 2 * group), rows_turn.parity);
    }
    turn.advance();
    arch::wait(block.full(turn.stage), turn.parity);
    multiply_half(even, rows_turn.buffer, 0, turn.stage);
    take(rows[1], odd, norms, tile, q);
    ++tile;
    if (last) {
      end_odd();
      tile = 0;
      row_block += gridDim.x;
    } else if (tile % G::tiles_of_run == 0) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int h = 0; h < 2; ++h) rows[half][h].groups.end_run(tile / G::tiles_of_run - 1);
    }
    complete(even);
  }
  complete_odd();
  take(rows[1], odd, shared.norms[turn.place_of_norms()], tile, q);
  end_odd();
}

/// A squared distance in the chain of the reference, and |x|².
struct Chain {
  float distance = 0, squares[2] = {};

  __device__ __forceinline__ void add(float x, float z, int which) {
    const float difference = __fsub_rn(x, z);  // as l2_squared<float>::step(), whose negation would be an instruction here
    distance = __fmaf_rn(difference, difference, distance);
    squares[which] = __fmaf_rn(x, x, squares[which]);
  }
  __device__ __forceinline__ float square() const { return squares[0] + squares[1]; }
};

/// Two numbers of a word as floats: bfloat16 are the upper halves of theirs.
template <class Element>
__device__ __forceinline__ void two_of_word(float (&x)[2], std::uint32_t word) {
  if constexpr (std::is_same_v<Element, bfloat16>) {
    x[0] = __uint_as_float(word << 16);
    x[1] = __uint_as_float(word & 0xffff0000u);
  } else {
    const auto pair = std::bit_cast<std::array<Element, 2>>(word);
    x[0] = static_cast<float>(pair[0]);
    x[1] = static_cast<float>(pair[1]);
  }
}
/// The next eight numbers of both rows.
template <class Element>
__device__ __forceinline__ void add_eight(Chain& chain, const uint4& x, const uint4& z) {
  const std::uint32_t of_x[4] = {x.x, x.y, x.z, x.w}, of_z[4] = {z.x, z.y, z.z, z.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float a[2], b[2];
    two_of_word<Element>(a, of_x[i]);
    two_of_word<Element>(b, of_z[i]);
    chain.add(a[0], b[0], 0);
    chain.add(a[1], b[1], 1);
  }
}

/// The numbers from k on, one by one.
template <class Element>
__device__ __forceinline__ void add_last(Chain& chain, const Element* x, const Element* z, int k, int count) {
#pragma unroll 1
  for (; k < count; ++k) chain.add(static_cast<float>(x[k]), static_cast<float>(z[k]), 0);
}

/// The distance of row m of X, which is a row of a quarter in shared memory, as tensor copies swizzle it, and row n of Z, whose numbers
/// are at z, too.
template <class G, int unrolled, class Element>
__device__ __forceinline__ Chain distance(const Search<Element>& g, const unsigned char (&x)[G::slabs][G::A::bytes], int row,
                                          const unsigned char* z, std::int64_t m, std::int64_t n) {
  constexpr int of_slab = 8;
  const int eights = g.x.k / 8;
  const auto eight_of_x = [&](int slab, int i) {
    return *reinterpret_cast<const uint4*>(x[slab] + row * 128 + ((i ^ row) % of_slab) * 16);
  };
  const auto eight_of_z = [&](int i) { return *reinterpret_cast<const uint4*>(z + 16 * i); };
  Chain chain;
  int slab = 0;
#pragma unroll 1
  for (; slab < eights / of_slab; ++slab)
#pragma unroll unrolled
    for (int i = 0; i < of_slab; ++i) add_eight<Element>(chain, eight_of_x(slab, i), eight_of_z(of_slab * slab + i));
#pragma unroll 1
  for (int i = 0; i < eights % of_slab; ++i) add_eight<Element>(chain, eight_of_x(slab, i), eight_of_z(of_slab * slab + i));
  add_last(chain, g.x.data + m * g.x.row_stride, g.z.data + n * g.z.row_stride, 8 * eights, g.x.k);
  return chain;
}

/// Copies a warp's rows of Z to shared memory, those of each lane's n: the lanes copy each row together, since a lane's own copies would be
/// in as many lines as there are lanes.
template <class Element, class C>
__device__ __forceinline__ void copy_rows(const Points<Element>& z, C& to, std::int64_t n, int lane) {
  constexpr int of_row = (C::pitch - 16) / 16, rows = 32 / of_row;  // lanes, and rows that they copy at a time
  const int piece = lane % of_row;
  const auto address = reinterpret_cast<unsigned long long>(z.data + n * z.row_stride);
  const bool has = piece < z.k / 8;
#pragma unroll 8
  for (int i = 0; i < 32; i += rows) {
    const int row = i + lane / of_row;
    const auto from = __shfl_sync(~0u, address, row) + 16 * piece;
    if (has) arch::copy_async<16>(to.z[row] + 16 * piece, reinterpret_cast<const void*>(from));
  }
  arch::commit_copies();
}

template <class Element>
__device__ __forceinline__ void list(const Search<Element>& g, unsigned row) {
  const unsigned at = atomicAdd(&g.found->listed, 1u);
  g.list[at] = row;
  g.keys[at] = ~0ull;
}

/// What is known of a lane's row: the column that may be its nearest, of which lane that is, and the least bound of all others.
struct Known {
  std::int64_t n;
  int best;
  float others;
  bool exists;
};
template <int rows>
__device__ __forceinline__ Known known_of(const RowStates<rows>& states, int row, std::int64_t columns) {
  const float4 first4 = *reinterpret_cast<const float4*>(states.first[row]),
               second4 = *reinterpret_cast<const float4*>(states.second[row]);
  const uint4 column4 = *reinterpret_cast<const uint4*>(states.column[row]);
  const float first[4] = {first4.x, first4.y, first4.z, first4.w};
  const std::uint32_t column[4] = {column4.x, column4.y, column4.z, column4.w};
  float least = first[0], others = fminf(fminf(second4.x, second4.y), fminf(second4.z, second4.w));
  std::uint32_t n = column[0];
  int best = 0;
#pragma unroll
  for (int q = 1; q < 4; ++q) {
    const bool less = first[q] < least;
    others = fminf(others, less ? least : first[q]);
    n = less ? column[q] : n;
    best = less ? q : best;
    least = less ? first[q] : least;
  }
  const bool exists = n < columns;
  return {exists ? std::int64_t{n} : 0, best, others, exists};
}

/// The rows that warps have been through: exact distances, results. Columns of the next rows are copied while those of these are compared.
template <class G, class Element>
__device__ __forceinline__ void examine(const Block<G>& block, Storage<G>& shared, const Arguments<Element>& arguments) {
  const Search<Element>& g = arguments.search;
  const int lane = static_cast<int>(threadIdx.x) % 32,
            examiner = static_cast<int>(threadIdx.x) / 32 - 4 * G::groups_of_warps - 1;
  const unsigned blocks = (g.row_count + G::rows - 1) / G::rows;
  const RowStates<G::rows>& states = shared.states;
  auto& candidates = shared.candidates[examiner];
  unsigned found_parity = 0;
  RowTurn rows_turn;
#pragma unroll 1
  for (unsigned row_block = blockIdx.x; row_block < blocks; row_block += gridDim.x, rows_turn.advance()) {
    arch::wait(block.found(), found_parity);
    found_parity ^= 1;
#pragma unroll 1
    for (int quarter = 0; quarter < G::quarters; ++quarter)
      arch::wait(block.rows_full(rows_turn.buffer, quarter), rows_turn.parity);
    Known next = known_of(states, examiner * 32 + lane, g.z.rows);
    copy_rows(g.z, candidates, next.n, lane);
#pragma unroll 1
    for (int part = examiner; part < G::rows / 32; part += G::examiners) {
      const Known known = next;
      const int of_block = part * 32 + lane, of_quarter = of_block % G::quarter_rows;
      const auto& x = shared.a[rows_turn.buffer][of_block / G::quarter_rows];
      const unsigned r = row_block * G::rows + of_block;
      const std::int64_t m = g.first_row + min(r, g.row_count - 1);
      arch::wait_for_copies<0>();
      __syncwarp();
      const Chain chain = distance<G, 8>(g, x, of_quarter, candidates.z[lane], m, known.n);
      __syncwarp();
      if (part + G::examiners < G::rows / 32) {
        next = known_of(states, of_block + G::examiners * 32, g.z.rows);
        copy_rows(g.z, candidates, next.n, lane);
      }
      if (r >= g.row_count) continue;
      const Certainty certainty{chain.square(), g.x.k, G::numbers};
      Nearest nearest{0, 0, detail::no_place};
      if (known.exists) nearest.take(chain.distance, g.score(chain.distance), known.n);
      const auto excludes_others = [&] {
        const RowState row{states.first[of_block], states.column[of_block],
                           fminf(fminf(states.second[of_block][0], states.second[of_block][1]),
                                 fminf(states.second[of_block][2], states.second[of_block][3]))};
        return mma::nearest::excludes_others(
            row, certainty, known.best, nearest, [&](int, std::uint32_t other, Nearest& least) {
              if (other >= g.z.rows) return;
              const auto* const z = reinterpret_cast<const unsigned char*>(g.z.data + other * g.z.row_stride);
              const Chain of_other = distance<G, 2>(g, x, of_quarter, z, m, other);
              least.take(of_other.distance, g.score(of_other.distance), other);
            });
      };
      const bool certain = certainty.square <= largest_square && known.exists &&
                           (certainty.excludes(known.others, nearest.distance) || excludes_others());
      if (certain)
        g.outputs.template store<false>(detail::Found<float>{nearest.score, nearest.n}, 0, m);
      else
        list(g, r);
    }
    __syncwarp();
    if (lane == 0) arch::arrive(block.examined(rows_turn.buffer));
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
      for (unsigned buffer = 0; buffer < G::buffers; ++buffer) {
        for (int i = 0; i < G::quarters; ++i) arch::initialize_barrier(block.rows_full(buffer, i), 1);
        arch::initialize_barrier(block.examined(buffer), G::examiners);
      }
      arch::initialize_barrier(block.found(), 4 * G::groups_of_warps);
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
      if (warp > producer && warp <= producer + G::examiners)
        examine<G>(block, shared, g);
      else if (threadIdx.x == 32 * producer)
        produce<G>(block, g);
    }
  }
}

}  // namespace rigel::backends::hopper::nearest
