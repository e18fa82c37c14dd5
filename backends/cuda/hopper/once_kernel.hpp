// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( Σ_k A(l,m,k)·B(l,k,n) ) on the tensor cores of sm_90a, for calls with about one tile per
// multiprocessor. These calls are latency-bound, so everything starts as early as it can. One thread enqueues the tensor
// copies of the first slab while other warps initialise the barriers; then it enqueues those of all slabs that fit. Meanwhile one
// or two consumer warpgroups, one above the other, compute where outputs go; then they multiply.
//
// The tiles of a cluster are next to each other along N, and each block brings a share of A's rows to all of them. With
// split-K, each block multiplies a slice of a tile's slabs. It then receives the other slices' sums of some columns, adds
// all slices in ascending order, and stores the result.
#pragma once

#include <rigel/backends/cuda/hopper/kernel.hpp>

namespace rigel::backends::hopper {

/// A block of 64·Groups × N outputs, `Stages` slabs in shared memory, in clusters of `Tiles` tiles next to each other along N,
/// each in `Parts` split-K slices. With `LongSums`, sums of a slice that are longer than sum_k are cut.
template <int N, int Parts, int Tiles, int Stages, bool LongSums = false, int Groups = 2>
struct Once {
  static constexpr int groups = Groups, m = 64 * groups, n = N, stages = Stages;
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

/// What a block has in shared memory; slabs are at multiples of 1 KB.
template <class Shape, class Accumulator>
struct OnceStorage {
  static constexpr int outputs = Shape::columns < 64 ? Shape::columns : 64;  // of a row, that pass at a time
  using Buffer = tensor::StoreBuffer<outputs, Accumulator>;
  static constexpr int warps = Shape::multiplying / 32, others = Shape::parts > 1 ? Shape::parts - 1 : 1;
  /// Of a warp, sums that another block has sent: 16 bytes per lane, lane after lane. tensor::store_tile() and LayerShifts use the
  /// first block's space.
  static constexpr int four = 32 * 16, of_warp = Shape::parts > 1 ? Shape::columns / 8 * four : Buffer::bytes;
  static_assert(Buffer::bytes <= of_warp);
  unsigned char slabs[Shape::stages][(Shape::m + Shape::n) * 128];
  unsigned char received[others][warps][of_warp];
  RingBarriers<Shape::stages> ring;
  std::uint64_t joined;  // that all other blocks' sums have arrived
};

/// What a block computes. Ranks in a cluster: the slices of its first tile, of the next one, … Slices have equally many slabs,
/// but for the last ones.
template <class Shape>
struct Work {
  int part, beside;  // the slice, and the tile in the cluster
  tile::Origin origin;
  int first_slab, slabs;

  __device__ __forceinline__ explicit Work(int slabs_of_tile) {
    const int rank = static_cast<int>(blockIdx.x % Shape::cluster);
    part = rank % Shape::parts, beside = rank / Shape::parts;
    origin = {blockIdx.z, std::int64_t{blockIdx.x / Shape::cluster} * Shape::m,
              std::int64_t{blockIdx.y} * Shape::Tile::n + beside * Shape::n};
    const int each = (slabs_of_tile + Shape::parts - 1) / Shape::parts;
    first_slab = part * each;
    slabs = std::max(std::min(each, slabs_of_tile - first_slab), 0);
  }
};

/// Enqueues the copies of a slab of this block's slice; one thread calls it. `multicast`: this block's share of A, to all blocks
/// of the cluster that multiply it; otherwise all of A.
template <bool multicast, class Shape, class Slabs>
__device__ __forceinline__ void bring(Ring<Shape::stages> ring, const Slabs& slabs, const Operands& operands,
                                      const Work<Shape>& work, int slab, int stage) {
  constexpr unsigned same_part = [] {
    unsigned blocks = 0;
    for (int t = 0; t < Shape::tiles; ++t) blocks |= 1u << (t * Shape::parts);
    return blocks;
  }();
  using A = typename Slabs::A;
  const int m = static_cast<int>(work.origin.m), n = static_cast<int>(work.origin.n);
  const int k = (work.first_slab + slab) * A::depth;
  const int batch_a = operands.a_batched ? static_cast<int>(work.origin.batch) : 0;
  const int batch_b = operands.b_batched ? static_cast<int>(work.origin.batch) : 0;
  const std::uint32_t barrier = ring.full(stage);
  arch::arrive_and_expect(barrier, static_cast<unsigned>(operands.stage));
  if constexpr (multicast) {
    copy_share<A, Shape::tiles, same_part>(operands.a, slabs.a(stage, 0), work.beside, m, k, batch_a, barrier, work.part);
  } else {
#pragma unroll
    for (int share = 0; share < Shape::tiles; ++share)
      copy_share<A, Shape::tiles>(operands.a, slabs.a(stage, 0), share, m, k, batch_a, barrier);
  }
  copy_share<typename Slabs::B, 1>(operands.b, slabs.b(stage, 0), 0, n, k, batch_b, barrier);
}

/// Initialises the barriers, each warp those of some stages; meanwhile the producer's warp brings the first slab, which needs no
/// other block. After this all blocks of the cluster may write to each other's shared memory.
template <class Shape, class Slabs>
__device__ __forceinline__ void begin(Ring<Shape::stages> ring, std::uint32_t joined, const Slabs& slabs,
                                      const Operands& operands, const Work<Shape>& work, int warp, int lane) {
  constexpr int copying = Shape::multiplying / 32, of_warp = (Shape::stages + copying - 1) / copying;
  const int stage = warp + lane * copying;  // of_warp lanes have one each
  if (warp == copying) {
    if (lane == 0) {
      arch::initialize_barrier(ring.full(0), 1);
      arch::fence_initialized_barriers();
      arch::wait_for_launches_before();
      if (work.slabs > 0) bring<false>(ring, slabs, operands, work, 0, 0);
    }
  } else if (lane < of_warp && stage < Shape::stages) {
    // The producer has full(0). So stage 0's lane initialises `joined`: an initialisation under a predicate of its own is
    // a write for compute-sanitizer's racecheck even where the predicate is false.
    arch::initialize_barrier(stage > 0 ? ring.full(stage) : joined, 1);
    arch::initialize_barrier(ring.empty(stage), copying * Shape::tiles);
    arch::fence_initialized_barriers();
  }
  __syncwarp();
  if constexpr (Shape::cluster > 1) {
    arch::arrive_in_cluster();
    arch::wait_for_cluster();
  } else {
    __syncthreads();
  }
}

/// Sends every other block the sums of its columns, waits for theirs, and adds all slices of this block's columns in ascending
/// order.
template <class Shape, class Storage, class Accumulator, int own_columns>
__device__ __forceinline__ void join_slices(const Accumulator (&sums)[1][Shape::n / 8][4],
                                            Accumulator (&own)[1][own_columns][4], Storage& shared, std::uint32_t base,
                                            std::uint32_t joined, int part, int beside, int warp, int lane) {
  constexpr int parts = Shape::parts, of_block = sizeof(shared.received[0]);
  // Slice p goes to place p, or one place earlier, since a block sends itself none.
  const std::uint32_t mine =
      base + static_cast<std::uint32_t>(offsetof(Storage, received)) + warp * Storage::of_warp + lane * 16;
#pragma unroll
  for (int p = 0; p < parts; ++p) {
    if (p == part) continue;
    const unsigned there = beside * parts + p;
    const std::uint32_t to = arch::address_at(mine + (part - (part > p)) * of_block, there);
    const std::uint32_t barrier = arch::address_at(joined, there);
#pragma unroll
    for (int j = 0; j < own_columns; ++j)
      arch::store_at(to + j * Storage::four, __builtin_bit_cast(arch::FourWords, sums[0][p * own_columns + j]), barrier);
  }
  arch::wait_for_others(joined, 0);
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
      const int place = std::min(p - (p > part), parts - 2);
      const Four received =
          Four::load(reinterpret_cast<const Accumulator*>(shared.received[place][warp] + lane * 16 + j * Storage::four));
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const Accumulator x = p == part ? kept[r] : received.value[r];
        own[0][j][r] = p == 0 ? x : math::add(own[0][j][r], x);
      }
    }
  }
}

/// hopper::multiply() for numbers in one plane. The grid: along x the rows of tiles, times the blocks of a cluster; along y
/// the columns of clusters' tiles; along z the matrices of a batch. With `as_they_are`, FoundPlace stores all outputs; a
/// kernel with no other store is fetched sooner.
template <class S, class Element, class Finish, class Shape, tile::Direction of_a, tile::Direction of_b, bool as_they_are>
__global__ void __launch_bounds__(Shape::threads, 1)
    multiply_once(const __grid_constant__ Operands operands, const __grid_constant__ detail::Arguments<S, Finish> g) {
  using Slabs = hopper::Slabs<Element, Parts<1, 1, false>, Shape, of_a, of_b>;
  using Accumulator = typename Slabs::Accumulator;
  using Storage = OnceStorage<Shape, Accumulator>;
  static_assert(arch::holds(arch::shared_memory_of_sm_90, 1, sizeof(Storage)));
  constexpr int stages = Shape::stages, own_columns = Shape::columns / 8;
  extern __shared__ __attribute__((aligned(1024))) unsigned char memory[];
  auto& shared = *reinterpret_cast<Storage*>(memory);
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
  const Slabs slabs{base};
  const Ring<stages> ring{base + static_cast<std::uint32_t>(offsetof(Storage, ring))};
  const std::uint32_t joined = base + static_cast<std::uint32_t>(offsetof(Storage, joined));

  constexpr int copying = Shape::multiplying / 32;  // the producer's warp
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const Work<Shape> work(Slabs::count(operands.k));
  begin(ring, joined, slabs, operands, work, warp, lane);
  arch::allow_next_launch();
  arch::wait_for_launches_before();

  if (warp == copying) {
    if (lane == 0) {
      Place<stages> place;
      place.advance();
#pragma unroll 1
      for (int slab = 1; slab < work.slabs; ++slab, place.advance()) {
        ring.wait_for_empty(place);
        bring<(Shape::tiles > 1)>(ring, slabs, operands, work, slab, place.stage);
      }
      if constexpr (Shape::parts > 1) arch::arrive_and_expect(joined, sizeof(shared.received));
    }
    return;
  }

  const int group_m = warp / 4 * 64;
  const std::int64_t m = work.origin.m + group_m + warp % 4 * 16, n = work.origin.n + work.part * Shape::columns;
  const FoundPlace<S, Finish> found(g, Shape::columns, work.origin.batch, m, n, lane);
  prefetch_for_store<1, own_columns>(g, work.slabs, [&] { return tile::Origin{work.origin.batch, m, n}; }, lane);
  Accumulator sums[1][Shape::n / 8][4] = {};
  // A slab that nothing will replace is not released: nobody waits for it.
  const auto release = [&](int slab, int stage) __attribute__((always_inline)) {
    if (slab + stages < work.slabs && lane < Shape::tiles) {
      if constexpr (Shape::cluster > 1)
        arch::arrive_at(ring.empty(stage), lane * Shape::parts + work.part);
      else
        arch::arrive(ring.empty(stage));
    }
  };
  Consumer<Slabs> consumer{ring, slabs, group_m};
  if (work.origin.m + group_m < g.m) {
    consumer.multiply_tile(sums, work.slabs, release);
    if constexpr (!Shape::long_sums) complete(sums);
  } else {
    consumer.skip_tile(work.slabs, release);
  }

  const auto store = [&](auto& x) __attribute__((always_inline)) {
    static_assert(!as_they_are || !std::is_same_v<Element, float>);  // none is recomputed
    if constexpr (std::is_same_v<Element, float>)
      if (work.origin.m + group_m < g.m)
        tensor::recompute_non_finite<64, (own_columns > 8 ? 16 : 32), Storage::of_warp / 4>(
            g, x, [&] { return tile::Origin{work.origin.batch, work.origin.m + group_m, n}; },
            reinterpret_cast<float*>(shared.received[0][warp / 4 * 4]), tensor::Team<4>{warp % 4, 1 + warp / 4});
    if (m >= g.m) return;
    if constexpr (as_they_are) {
      found.store(x, lane);
    } else {
      if (found.store(x, lane)) return;
      if constexpr (stores_layers<S, Finish, own_columns>) {
        auto& shifts = *reinterpret_cast<LayerShifts<Shape::columns>*>(shared.received[0][warp]);
        if (stored_after_layer(g, x, shifts, work.origin.batch, m, n, lane)) return;
      }
      __syncwarp();
      constexpr tensor::StorePolicy policy{.outputs_n = Storage::outputs,
                                           .apart = 64,
                                           .together = ShortFloat<Element> || own_columns < 16 ? 4 : 0,
                                           .all_layers = !stores_layers<S, Finish, own_columns>};
      tensor::store_tile<policy>(g, x, work.origin.batch, m, n, shared.received[0][warp], lane);
    }
  };
  if constexpr (Shape::parts == 1) {
    store(sums);
  } else {
    Accumulator own[1][own_columns][4];
    join_slices<Shape>(sums, own, shared, base, joined, work.part, work.beside, warp, lane);
    store(own);
  }
}

}  // namespace rigel::backends::hopper
