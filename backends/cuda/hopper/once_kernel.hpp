// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( Σ_k A(l,m,k)·B(l,k,n) ) on the tensor cores of sm_90a, for calls with about one tile per
// multiprocessor. These calls are latency-bound, so everything starts as early as it can. One thread enqueues the tensor
// copies of the first slab while other warps initialise the barriers, a stage each; then it enqueues those of all slabs that
// fit. Meanwhile two consumer warpgroups, one above the other, compute where outputs go; then they multiply.
//
// The tiles of a cluster are next to each other along N, and each block brings a share of A's rows to all of them. With
// split-K, each block multiplies a slice of a tile's slabs. It then receives the other slices' sums of some columns, adds
// all slices in ascending order, and stores the result.
#pragma once

#include <rigel/backends/cuda/hopper/kernel.hpp>

namespace rigel::backends::hopper {

/// A block of 128 × N outputs, `Stages` slabs in shared memory, in clusters of `Tiles` tiles next to each other along N,
/// each in `Parts` split-K slices. With `LongSums`, the sums of a slice are cut into parts of sum_k.
template <int N, int Parts, int Tiles, int Stages, bool LongSums = false>
struct Once {
  static constexpr int groups = 2, m = 64 * groups, n = N, stages = Stages;
  static constexpr int parts = Parts, tiles = Tiles, cluster = Parts * Tiles;
  static constexpr bool long_sums = LongSums;
  static constexpr int multiplying = 128 * groups, threads = multiplying + 32;
  static constexpr int columns = N / Parts;  // that a block stores
  /// The unit into which C is divided: the tiles of a cluster.
  struct Tile {
    static constexpr int m = Once::m, n = N * Tiles, cluster = 1;
  };
  static_assert(N % 64 == 0 && N <= 256 && columns % 16 == 0 && Stages >= 2 && groups % Tiles == 0);
};

/// The layout of shared memory: slabs; sums from other blocks, for each warp 16 bytes per lane, lane after lane; barriers.
/// tensor::store_tile() uses the space of the sums.
template <class Shape, class Accumulator>
struct OnceMemory {
  static constexpr int outputs = Shape::columns < 64 ? Shape::columns : 64;  // of a row, that pass at a time
  using Buffer = tensor::StoreBuffer<outputs, Accumulator>;
  static constexpr int stage = (Shape::m + Shape::n) * 128, four = 32 * 16;
  static constexpr int warp = Shape::parts > 1 ? Shape::columns / 8 * four : Buffer::bytes;
  static constexpr int part = Shape::multiplying / 32 * warp;
  static constexpr int received = Shape::stages * stage;
  static constexpr int barriers = received + (Shape::parts > 1 ? Shape::parts - 1 : 1) * part;
  static constexpr int bytes = barriers + (2 * Shape::stages + 1) * 8;
  static_assert(Buffer::bytes <= warp && arch::holds(arch::shared_memory_of_sm_90, 1, bytes));
};

/// The slabs of a split-K slice: equally many in each but the last ones.
struct PartOfK {
  int first, count;
  __device__ __forceinline__ PartOfK(int slabs, int part, int parts) {
    const int each = (slabs + parts - 1) / parts;
    first = part * each;
    count = std::max(std::min(each, slabs - first), 0);
  }
};

/// hopper::multiply() for numbers in one plane. The grid: along x the rows of tiles, times the blocks of a cluster; along y
/// the columns of clusters' tiles; along z the matrices of a batch. With `as_they_are`, FoundPlace stores all outputs; a
/// kernel with no other store is fetched sooner.
template <class S, class Element, class Finish, class Shape, tile::Direction of_a, tile::Direction of_b, class Result,
          bool as_they_are>
__global__ void __launch_bounds__(Shape::threads, 1)
    multiply_once(const __grid_constant__ Operands operands, const __grid_constant__ detail::Arguments<S, Finish> g,
                  const __grid_constant__ Result result) {
  using SlabA = tile::SwizzledSlab<Element, of_a, Shape::m>;
  using SlabB = tile::SwizzledSlab<Element, of_b, Shape::n>;
  using Accumulator = typename arch::WgmmaTypes<Element>::Accumulator;
  using Memory = OnceMemory<Shape, Accumulator>;
  constexpr int stages = Shape::stages, parts = Shape::parts, own_columns = Shape::columns / 8;
  constexpr bool clustered = Shape::cluster > 1, shared_a = Shape::tiles > 1;
  extern __shared__ __attribute__((aligned(1024))) unsigned char shared[];
  const auto slabs = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  const auto present = [&](int stage) { return slabs + Memory::barriers + stage * 8; };
  const auto free = [&](int stage) { return slabs + Memory::barriers + (stages + stage) * 8; };
  const std::uint32_t joined = slabs + Memory::barriers + 2 * stages * 8;

  constexpr int copying = Shape::multiplying / 32;  // the producer's warp
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  // Ranks in a cluster: the slices of its first tile, of the next one, …
  const int rank = static_cast<int>(blockIdx.x % Shape::cluster), part = rank % parts, beside = rank / parts;
  const tile::Origin o{blockIdx.z, std::int64_t{blockIdx.x / Shape::cluster} * Shape::m,
                       std::int64_t{blockIdx.y} * Shape::Tile::n + beside * Shape::n};
  const PartOfK k_part((operands.k + SlabA::depth - 1) / SlabA::depth, part, parts);
  // Copies a slab; one thread calls it. `multicast`: this block's share of A, to all blocks of the cluster that multiply it;
  // otherwise all of A.
  const auto bring = [&]<bool multicast>(int slab, int stage) __attribute__((always_inline)) {
    constexpr unsigned same_part = [] {
      unsigned blocks = 0;
      for (int t = 0; t < Shape::tiles; ++t) blocks |= 1u << (t * parts);
      return blocks;
    }();
    const int m = static_cast<int>(o.m), n = static_cast<int>(o.n), k = (k_part.first + slab) * SlabA::depth;
    const int batch_a = operands.a_batched ? static_cast<int>(o.batch) : 0;
    const int batch_b = operands.b_batched ? static_cast<int>(o.batch) : 0;
    const std::uint32_t barrier = present(stage), to = slabs + stage * Memory::stage;
    arch::arrive_and_expect(barrier, static_cast<unsigned>(operands.stage));
#pragma unroll
    for (int of_a_part = 0; of_a_part < (multicast ? 1 : Shape::tiles); ++of_a_part)
#pragma unroll
      for (int copy = 0; copy < SlabA::template copies<Shape::tiles>; ++copy) {
        const int box = multicast ? beside : of_a_part;
        const int line = m + SlabA::template line_of<Shape::tiles>(box, copy);
        const std::uint32_t at = to + SlabA::template place_of<Shape::tiles>(box, copy);
        const int x = SlabA::by_lines ? line : k, y = SlabA::by_lines ? k : line;
        if constexpr (multicast)
          arch::copy_tensor_to(static_cast<std::uint16_t>(same_part << part), at, &operands.a, x, y, batch_a, barrier);
        else
          arch::copy_tensor(at, &operands.a, x, y, batch_a, barrier);
      }
#pragma unroll
    for (int copy = 0; copy < SlabB::template copies<1>; ++copy) {
      const int line = n + SlabB::template line_of<1>(0, copy);
      arch::copy_tensor(to + SlabA::bytes + SlabB::template place_of<1>(0, copy), &operands.b, SlabB::by_lines ? line : k,
                        SlabB::by_lines ? k : line, batch_b, barrier);
    }
  };

  static_assert(stages <= copying);
  if (warp == copying) {
    // The first slab needs no other block.
    if (lane == 0) {
      arch::initialize_barrier(present(0), 1);
      arch::fence_initialized_barriers();
      arch::wait_for_launches_before();
      if (k_part.count > 0) bring.template operator()<false>(0, 0);
      if constexpr (parts > 1) {
        arch::initialize_barrier(joined, 1);
        arch::fence_initialized_barriers();
      }
    }
  } else if (lane == 0 && warp < stages) {
    if (warp > 0) arch::initialize_barrier(present(warp), 1);
    arch::initialize_barrier(free(warp), copying * Shape::tiles);
    arch::fence_initialized_barriers();
  }
  __syncwarp();
  if constexpr (clustered) arch::arrive_in_cluster();
  Place<stages> place;
  // From here on barriers are initialised, for what other blocks write to this one's shared memory, and for what it writes
  // to theirs.
  if constexpr (clustered)
    arch::wait_for_cluster();
  else
    __syncthreads();
  arch::allow_next_launch();
  arch::wait_for_launches_before();

  if (warp == copying) {
    if (lane == 0) {
      place.advance();
#pragma unroll 1
      for (int slab = 1; slab < k_part.count; ++slab) {
        arch::wait(free(place.stage), place.parity ^ 1);
        bring.template operator()<shared_a>(slab, place.stage);
        place.advance();
      }
      if constexpr (parts > 1) arch::arrive_and_expect(joined, (parts - 1) * Memory::part);
    }
    return;
  }

  const int group_m = warp / 4 * 64;
  const std::int64_t m = o.m + group_m + warp % 4 * 16, n = o.n + part * Shape::columns;
  const FoundPlace<S, Finish> found(g, Shape::columns, o.batch, m, n, lane);
  Accumulator sums[1][Shape::n / 8][4] = {};
  int before = 0;
  // A slab that nothing will replace is not released: nobody waits for it.
  const auto release = [&](int slab) __attribute__((always_inline)) {
    if (slab >= 0 && slab + stages < k_part.count && lane < Shape::tiles) {
      if constexpr (clustered)
        arch::arrive_at(free(before), lane * parts + part);
      else
        arch::arrive(free(before));
    }
  };
  int slab = 0;
  // Adds the products of the slabs before `end` to x.
  const auto multiply_slabs = [&](Accumulator(&x)[1][Shape::n / 8][4], int end) __attribute__((always_inline)) {
#pragma unroll 1
    for (; slab < end; ++slab) {
      const std::uint32_t a = slabs + place.stage * Memory::stage, b = a + SlabA::bytes;
      arch::wait(present(place.stage), place.parity);
      arch::fence_wgmma();
#pragma unroll
      for (int step = 0; step < SlabA::steps; ++step)
        arch::wgmma<Element, SlabA::by_lines, SlabB::by_lines>(x[0], SlabA::descriptor(a, group_m, step),
                                                               SlabB::descriptor(b, 0, step));
      arch::commit_wgmma();
      arch::wait_for_wgmma<1>();
      release(slab - 1);
      before = place.stage;
      place.advance();
    }
    arch::wait_for_wgmma<0>();
    arch::hold(x[0]);
  };
  if constexpr (Shape::long_sums) {
    static_assert(sum_k % SlabA::depth == 0);
#pragma unroll 1
    while (slab < k_part.count) {
      Accumulator of_part[1][Shape::n / 8][4] = {};
      multiply_slabs(of_part, std::min(slab + sum_k / SlabA::depth, k_part.count));
      add_sums(sums, of_part);
    }
  } else {
    multiply_slabs(sums, k_part.count);
  }

  const auto store = [&](const auto& x) __attribute__((always_inline)) {
    static_assert(!as_they_are || !std::is_same_v<Element, float>);  // none is recomputed
    if constexpr (as_they_are) {
      found.store(x, lane);
    } else {
      if (__all_sync(0xffffffffu, result.keeps(x)) && found.store(x, lane)) return;
      __syncwarp();
      constexpr int neighbours = ShortFloat<Element> || own_columns < 16 ? 4 : 0;
      tensor::store_tile<Memory::outputs, 64, neighbours>(g, x, result, o.batch, m, n,
                                                          shared + Memory::received + warp * Memory::warp, lane);
    }
  };
  if constexpr (parts == 1) {
    store(sums);
  } else {
    // Sends every other block the sums of its columns. Slice p goes to place p, or one place earlier, since a block sends
    // itself none.
    const std::uint32_t mine = slabs + Memory::received + warp * Memory::warp + lane * 16;
#pragma unroll
    for (int p = 0; p < parts; ++p) {
      if (p == part) continue;
      const unsigned there = beside * parts + p;
      const std::uint32_t to = arch::address_at(mine + (part - (part > p)) * Memory::part, there);
      const std::uint32_t barrier = arch::address_at(joined, there);
#pragma unroll
      for (int j = 0; j < own_columns; ++j)
        arch::store_at(to + j * Memory::four, __builtin_bit_cast(arch::FourWords, sums[0][p * own_columns + j]), barrier);
    }
    arch::wait_for_others(joined, 0);
    Accumulator own[1][own_columns][4];
#pragma unroll
    for (int j = 0; j < own_columns; ++j) {
      Accumulator kept[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        kept[r] = sums[0][j][r];
#pragma unroll
        for (int p = 1; p < parts; ++p) kept[r] = part == p ? sums[0][p * own_columns + j][r] : kept[r];
      }
#pragma unroll
      for (int p = 0; p < parts; ++p) {
        using Four = tile::Chunk<Accumulator, 4>;
        const int place_of_part = std::min(p - (p > part), parts - 2);
        const Four received = Four::load(reinterpret_cast<const Accumulator*>(
            shared + Memory::received + warp * Memory::warp + lane * 16 + place_of_part * Memory::part + j * Memory::four));
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const Accumulator x = p == part ? kept[r] : received.value[r];
          own[0][j][r] = p == 0 ? x : math::add(own[0][j][r], x);
        }
      }
    }
    store(own);
  }
}

}  // namespace rigel::backends::hopper
