// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( Σ_k A(l,m,k)·B(l,k,n) ) on the tensor cores of sm_90a. A block has two consumer warpgroups, which
// multiply by wgmma and store: they share a tile (cooperative) or compute one each (ping-pong). A producer thread of a third
// warpgroup brings slabs of A and B to shared memory by tensor copies; barriers there say which slabs are full and which are
// empty. Blocks are persistent, and the producer prefetches into the next tile while this one is stored. The tiles of a
// cluster are stacked along M; each of its blocks copies a share of B's columns to all of them. Every output is summed in
// ascending slabs, and within a slab in the same order, whatever the tile.
//
// Tensor cores truncate where they add, so long sums drift. Sums of 16-bit numbers are therefore cut: part_k elements along K
// are summed by themselves, then added in float. A thread needs registers for both sums, so these kernels have smaller tiles.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/arch/launch.hpp>
#include <rigel/backends/cuda/arch/shared_memory.hpp>
#include <rigel/backends/cuda/hopper/ring.hpp>
#include <rigel/backends/cuda/hopper/store.hpp>
#include <rigel/backends/cuda/tensor/recompute.hpp>
#include <rigel/backends/cuda/tensor/store.hpp>
#include <rigel/backends/cuda/tile/raster.hpp>
#include <rigel/detail/arguments.hpp>

namespace rigel::backends::hopper {

/// How the warpgroups of a block divide work. `shared`: cooperative, one above the other in one tile. `in_turn`: ping-pong,
/// with a tile each, so that one multiplies while the other stores.
enum class Tiles : std::uint8_t { shared, in_turn };

/// A block of two consumer warpgroups with Rows·64 × N outputs each, `Stages` slabs in shared memory, in clusters of
/// `Cluster` blocks. With `LongSums`, sums longer than sum_k are cut into parts.
template <Tiles Sharing, int Rows, int N, int Stages, int Cluster, bool LongSums = false>
struct Shape {
  static constexpr int groups = 2, rows = Rows, n = N;
  static constexpr bool in_turn = Sharing == Tiles::in_turn;
  static constexpr int m = 64 * Rows * (in_turn ? 1 : groups);
  static constexpr int stages = Stages, cluster = Cluster;
  static constexpr bool long_sums = LongSums;
  /// A thread has 168 registers at launch; consumers take 240. The producer has a warpgroup to itself because registers
  /// change hands by warpgroup.
  static constexpr int threads = 128 * (groups + 1), copying_registers = 24, multiplying_registers = 240;
  /// With so many outputs, a thread has no registers left for the general epilogue: sums are stored as they are, or after a
  /// Layer.
  static constexpr bool few_registers = Rows * N > 256;
  static_assert(N % 64 == 0 && N <= 256 && Stages >= 2 && (N / 8) % Cluster == 0);
};

/// How many sums of a lane a warpgroup recomputes at a time, as registers allow.
template <class Shape>
inline constexpr int recomputed_together = Shape::rows * Shape::n > 192 ? 16
                                           : Shape::n > 128             ? 32
                                                                        : 64;

/// What a block has in shared memory; slabs are at multiples of 1 KB. `outputs`: those of a row that pass through a buffer at a
/// time.
template <class Shape, class Parts, class Accumulator>
struct SharedStorage {
  static constexpr int outputs = Parts::planes == 1 ? 64 : 32;
  using Recomputed = tensor::RecomputedPart<4, Shape::rows, Shape::n / 8, recomputed_together<Shape>>;
  static constexpr int of_warp = std::max(tensor::StoreBuffer<outputs, Accumulator>::bytes,
                                          Parts::planes == 1 ? 0 : tensor::RecomputeBuffer<Recomputed>::slab);
  union Buffer {
    alignas(16) unsigned char bytes[Shape::few_registers ? 16 : of_warp];
    LayerShifts<Shape::n> shifts;
  };
  unsigned char slabs[Shape::stages][(Shape::m + Shape::n) * Parts::row_bytes * Parts::planes];
  Buffer buffers[4 * Shape::groups];  // of each warp
  RingBarriers<Shape::stages> ring;
  std::uint64_t turns[Shape::groups];  // of ping-pong warpgroups
};

/// `k`: K. `a_planes`, `b_planes`: matrices from one plane to the next. Without `a_batched` or `b_batched`, one matrix
/// serves all batches. `stage`: bytes that the copies of a slab of A and one of B bring.
struct Operands {
  CUtensorMap a, b;
  int k, a_planes, b_planes, stage;
  bool a_batched, b_batched;
};

/// How a launch cuts C: `tiles` of clusters, of which each cluster computes every `apart`-th, in `slabs` along K. raster.rows are
/// rows of clusters' tiles. Kernels read it where they use it, from their arguments, since registers are few.
struct Schedule {
  tile::PersistentRaster raster;
  unsigned tiles, apart;
  int slabs;
};

/// The tiles of a block, from `first` on. `rank`: the block's in its cluster.
template <class Shape>
struct TilesOfBlock {
  const Schedule& schedule;
  unsigned rank, first;

  __device__ __forceinline__ explicit TilesOfBlock(const Schedule& s)
      : schedule(s), rank(Shape::cluster > 1 ? arch::rank_in_cluster() : 0), first(arch::block_index() / Shape::cluster) {}
  __device__ __forceinline__ tile::Origin origin(unsigned index) const {
    tile::Origin o = schedule.raster.origin(index, Shape::cluster * Shape::m, Shape::n);
    o.m += rank * Shape::m;
    return o;
  }
};

/// Initialises the barriers, a stage for each warp, and waits for all blocks of the cluster to do so.
template <class Shape>
__device__ __forceinline__ void initialize_barriers(Ring<Shape::stages> ring, std::uint32_t turns, int warp, int lane,
                                                    const Operands& operands) {
  constexpr int consumers = 4 * Shape::groups;
  constexpr int readers = Shape::in_turn ? 1 : Shape::groups;  // warpgroups that multiply a slab
  static_assert(Shape::stages <= consumers && Shape::groups <= Shape::stages);
  if (lane == 0) {
    if (warp == consumers) {
      arch::prefetch_tensor_map(&operands.a);
      arch::prefetch_tensor_map(&operands.b);
    }
    if (warp < Shape::stages) {
      arch::initialize_barrier(ring.full(warp), 1);
      arch::initialize_barrier(ring.empty(warp), 4 * readers * Shape::cluster);
    }
    if (Shape::in_turn && warp < Shape::groups) arch::initialize_barrier(turns + warp * 8, 4);
    arch::fence_initialized_barriers();
  }
  __syncwarp();
  if constexpr (Shape::cluster > 1)
    arch::synchronize_cluster();
  else
    __syncthreads();
}

/// The producer: one thread brings the slabs of all tiles, of B its block's share to all blocks of the cluster.
template <class Shape, class Slabs>
__device__ __forceinline__ void produce(Ring<Shape::stages> ring, const Slabs& slabs, const Operands& operands,
                                        const TilesOfBlock<Shape>& tiles) {
  using Parts = typename Slabs::Parts;
  constexpr unsigned blocks = Shape::cluster > 1 ? (1 << Shape::cluster) - 1 : 0;
  Place<Shape::stages> place;
#pragma unroll 1
  for (unsigned index = tiles.first; index < tiles.schedule.tiles; index += tiles.schedule.apart) {
    const tile::Origin o = tiles.origin(index);
    const int m = static_cast<int>(o.m), n = static_cast<int>(o.n);
    const int batch_a = operands.a_batched ? static_cast<int>(o.batch) : 0;
    const int batch_b = operands.b_batched ? static_cast<int>(o.batch) : 0;
#pragma unroll 1
    for (int slab = 0; slab < tiles.schedule.slabs; ++slab, place.advance()) {
      const std::uint32_t barrier = ring.full(place.stage);
      const int k = slab * Slabs::A::depth;
      ring.wait_for_empty(place);
      arch::arrive_and_expect(barrier, static_cast<unsigned>(operands.stage));
#pragma unroll
      for (int plane = 0; plane < Parts::planes; ++plane) {
        copy_share<typename Slabs::A, 1>(operands.a, slabs.a(place.stage, plane), 0, m, k,
                                         batch_a + plane * operands.a_planes, barrier);
        copy_share<typename Slabs::B, Shape::cluster, blocks>(operands.b, slabs.b(place.stage, plane),
                                                              static_cast<int>(tiles.rank), n, k,
                                                              batch_b + plane * operands.b_planes, barrier);
      }
    }
  }
  // No block ends while another may still arrive at its barriers.
  if constexpr (Shape::cluster > 1)
#pragma unroll 1
    for (int stage = 0; stage < Shape::stages; ++stage, place.advance()) ring.wait_for_empty(place);
}

/// A consumer warpgroup: multiplies and stores its tiles.
template <class Shape, class Storage, class Slabs, class S, class Finish>
__device__ __forceinline__ void consume(Ring<Shape::stages> ring, const Slabs& slabs, std::uint32_t turns, Storage& shared,
                                        const TilesOfBlock<Shape>& tiles, const detail::Arguments<S, Finish>& g, int warp,
                                        int lane) {
  using Parts = typename Slabs::Parts;
  using Accumulator = typename Slabs::Accumulator;
  const Schedule& schedule = tiles.schedule;
  const int group = warp / 4, group_m = Shape::in_turn ? 0 : group * Shape::rows * 64;
  Consumer<Slabs> consumer{ring, slabs, group_m};
  // Marks a slab as empty: each warp arrives at every block that copies a share of it.
  const auto release = [&](int, int stage) __attribute__((always_inline)) {
    if (lane < Shape::cluster) {
      if constexpr (Shape::cluster > 1)
        arch::arrive_at(ring.empty(stage), lane);
      else
        arch::arrive(ring.empty(stage));
    }
  };
  // A ping-pong warpgroup starts a tile when the other has seen all slabs of the previous one: a full barrier's parity
  // tells only the next slabs apart.
  if (Shape::in_turn && group > 0) consumer.place.advance(schedule.slabs);
  bool first_turn = group == 0;
  unsigned turn_parity = 0;
#pragma unroll 1
  for (unsigned index = tiles.first + (Shape::in_turn ? group * schedule.apart : 0); index < schedule.tiles;
       index += (Shape::in_turn ? Shape::groups : 1) * schedule.apart) {
    // C(batch, m, n) is the warp's first output.
    const auto origin = [&] {
      tile::Origin o = tiles.origin(index);
      o.m += group_m + warp % 4 * 16;
      return o;
    };
    if constexpr (!Shape::few_registers) prefetch_for_store<Shape::rows, Shape::n / 8>(g, schedule.slabs, origin, lane);
    Accumulator sums[Shape::rows][Shape::n / 8][4] = {};
    consumer.before = 0;
    if constexpr (Shape::in_turn) {
      if (!first_turn) {
        arch::wait(turns + group * 8, turn_parity);
        turn_parity ^= 1;
      }
      first_turn = false;
    }
    consumer.multiply_tile(sums, schedule.slabs, release);
    if constexpr (Shape::in_turn)
      if (lane == 0) arch::arrive(turns + (1 - group) * 8);
    if constexpr (!Parts::promoted) {
      if constexpr (!Shape::long_sums) complete(sums);
      if (schedule.slabs > 0) release(0, consumer.before);
    }
    static_assert(!Shape::few_registers || !std::is_same_v<typename S::element, float>);  // none is recomputed
    if constexpr (std::is_same_v<typename S::element, float>) {
      const auto of_group = [&]() __attribute__((always_inline)) {
        asm volatile("" : "+r"(index));  // computed each time, so that it takes no registers meanwhile
        tile::Origin o = tiles.origin(index);
        o.m += group_m;
        return o;
      };
      tensor::recompute_non_finite<64, recomputed_together<Shape>, sizeof(typename Storage::Buffer) / 4>(
          g, sums, of_group, reinterpret_cast<float*>(shared.buffers[4 * group].bytes),
          tensor::Team<4>{warp % 4, 1 + group});
      asm volatile("" : "+r"(index));
      lane = arch::lane_index();
    }
    const tile::Origin o = origin();
    const auto layer = [&]() __attribute__((always_inline)) {
      if constexpr (stores_layers<S, Finish, Shape::n / 8>)
        return stored_after_layer(g, sums, shared.buffers[warp].shifts, o.batch, o.m, o.n, lane);
      return false;
    };
    if constexpr (!Shape::few_registers) {
      constexpr tensor::StorePolicy policy{.outputs_n = Storage::outputs,
                                           .apart = 64,
                                           .together = Shape::long_sums ? 2 : 4,
                                           .all_layers = !stores_layers<S, Finish, Shape::n / 8>};
      if (!stored_as_they_are<true>(g, sums, o.batch, o.m, o.n, lane) && !layer())
        tensor::store_tile<policy>(g, sums, o.batch, o.m, o.n, shared.buffers[warp].bytes, lane);
    } else if (!stored_as_they_are<false>(g, sums, o.batch, o.m, o.n, lane)) {
      layer();
    }
    if constexpr (Shape::in_turn) consumer.place.advance(schedule.slabs);
  }
}

/// A step multiplies numbers of type `Element`.
template <class S, class Element, class Parts, class Finish, class Shape, tile::Direction of_a, tile::Direction of_b>
__global__ void __launch_bounds__(Shape::threads, 1)
    multiply(const __grid_constant__ Operands operands, const __grid_constant__ detail::Arguments<S, Finish> g,
             const __grid_constant__ Schedule schedule) {
  if constexpr (!arch::has_wgmma) {
    __trap();
  } else {
    using Slabs = hopper::Slabs<Element, Parts, Shape, of_a, of_b>;
    using Storage = SharedStorage<Shape, Parts, typename Slabs::Accumulator>;
    static_assert(arch::holds(arch::shared_memory_of_sm_90, 1, sizeof(Storage)));
    extern __shared__ __attribute__((aligned(1024))) unsigned char shared[];
    const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    const Slabs slabs{base};
    const Ring<Shape::stages> ring{base + static_cast<std::uint32_t>(offsetof(Storage, ring))};
    const std::uint32_t turns = base + static_cast<std::uint32_t>(offsetof(Storage, turns));

    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    initialize_barriers<Shape>(ring, turns, warp, lane, operands);
    arch::allow_next_launch();
    arch::wait_for_launches_before();

    constexpr int copying = 4 * Shape::groups;  // the producer's warp, the first that does not multiply
    if (warp >= copying) {
      arch::fewer_registers<Shape::copying_registers>();
      if (threadIdx.x == 32 * copying) produce(ring, slabs, operands, TilesOfBlock<Shape>(schedule));
    } else {
      arch::more_registers<Shape::multiplying_registers>();
      consume<Shape>(ring, slabs, turns, *reinterpret_cast<Storage*>(shared), TilesOfBlock<Shape>(schedule), g, warp, lane);
    }
  }
}

}  // namespace rigel::backends::hopper
