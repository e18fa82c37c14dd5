// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( Σ_k A(l,m,k)·B(l,k,n) ) on the tensor cores of sm_90a. A block has two consumer warpgroups, which
// multiply by wgmma and store: they share a tile (cooperative) or compute one each (ping-pong). A producer thread of a third
// warpgroup brings slabs of A and B to shared memory by tensor copies; barriers there say which slabs are full and which are
// empty. Blocks are persistent, and the producer prefetches into the next tile while this one is stored. The tiles of a
// cluster are stacked along M; each of its blocks copies a share of B's columns to all of them. Every output is summed in
// ascending slabs, and within a slab in the same order, whatever the tile.
//
// Tensor cores truncate where they add, so long sums drift. Sums of 16-bit numbers are therefore cut: sum_k elements along K
// are summed by themselves, then added in float. A thread needs registers for both sums, so these kernels have smaller tiles.
#pragma once

#include <rigel/backends/cuda/arch/barrier.hpp>
#include <rigel/backends/cuda/arch/launch.hpp>
#include <rigel/backends/cuda/arch/shared_memory.hpp>
#include <rigel/backends/cuda/arch/tensor_copy.hpp>
#include <rigel/backends/cuda/arch/wgmma.hpp>
#include <rigel/backends/cuda/hopper/store.hpp>
#include <rigel/backends/cuda/tensor/store.hpp>
#include <rigel/backends/cuda/tile/raster.hpp>
#include <rigel/backends/cuda/tile/swizzled_slab.hpp>
#include <rigel/detail/arguments.hpp>

namespace rigel::backends::hopper {

/// How the warpgroups of a block divide work. `shared`: cooperative, one above the other in one tile. `in_turn`: ping-pong,
/// with a tile each, so that one multiplies while the other stores.
enum class Tiles : std::uint8_t { shared, in_turn };

/// Elements along K whose products of 16-bit numbers are summed on tensor cores; longer sums are cut into parts of so many.
/// Part of the bits of every kernel, and a multiple of a slab's depth.
inline constexpr int sum_k = 4096;

/// A block of two consumer warpgroups with Rows·64 × N outputs each, `Stages` slabs in shared memory, in clusters of
/// `Cluster` blocks. With `LongSums`, sums are cut into parts of sum_k.
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
  /// With so many outputs, a thread has no registers left for the general epilogue: sums are stored as they are.
  static constexpr bool as_they_are = Rows * N > 256;
  static_assert(N % 64 == 0 && N <= 256 && Stages >= 2 && (N / 8) % Cluster == 0);
};

/// x += y.
template <class Sum, int rows, int columns>
__device__ __forceinline__ void add_sums(Sum (&x)[rows][columns][4], const Sum (&y)[rows][columns][4]) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) x[i][j][r] = math::add(x[i][j][r], y[i][j][r]);
}

/// Each number is the sum of `Planes` numbers, one in each plane. `Products` of their products are computed: all, or those
/// of planes p and q with p + q < Planes. With `Promoted`, a slab's products are summed by themselves, then added to the
/// previous sums in float.
template <int Planes, int Products, bool Promoted>
struct Parts {
  static constexpr int planes = Planes, products = Products;
  static constexpr int smallest =
      Products == Planes * Planes ? 2 * (Planes - 1) : Planes - 1;  // p + q of the smallest products
  static constexpr bool promoted = Promoted;
  static constexpr int row_bytes = Planes == 1 ? 128 : 64;  // of a slab
};

/// The layout of shared memory. `outputs`: those of a row that pass through it at a time.
template <class Shape, class Parts, class Accumulator>
struct Memory {
  static constexpr int outputs = Parts::planes == 1 ? 64 : 32;
  using Buffer = tensor::StoreBuffer<outputs, Accumulator>;
  static constexpr int stage = (Shape::m + Shape::n) * Parts::row_bytes * Parts::planes;
  static constexpr int buffers = Shape::stages * stage, barriers = buffers + 4 * Shape::groups * Buffer::bytes;
  static constexpr int bytes = barriers + (2 * Shape::stages + Shape::groups) * 8;
  static_assert(arch::holds(arch::shared_memory_of_sm_90, 1, bytes));
};

/// `k`: K. `a_planes`, `b_planes`: matrices from one plane to the next. Without `a_batched` or `b_batched`, one matrix
/// serves all batches. `stage`: bytes that the copies of a slab of A and one of B bring.
struct Operands {
  CUtensorMap a, b;
  int k, a_planes, b_planes, stage;
  bool a_batched, b_batched;
};

/// A place in the ring of slabs, and the phase parity of its barriers.
template <int stages>
struct Place {
  int stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
  /// Skips slabs that the other warpgroup multiplies.
  __device__ __forceinline__ void advance(int slabs) {
    const unsigned to = static_cast<unsigned>(stage + slabs);
    stage = static_cast<int>(to % stages);
    parity ^= to / stages % 2;
  }
};

/// A step multiplies numbers of type `Element`. S's accumulator of an output is result(sum, l, m, n). `tiles` counts
/// clusters' tiles; raster.rows are rows of those.
template <class S, class Element, class Parts, class Finish, class Shape, tile::Direction of_a, tile::Direction of_b,
          class Result>
__global__ void __launch_bounds__(Shape::threads, 1)
    multiply(const __grid_constant__ Operands operands, const __grid_constant__ detail::Arguments<S, Finish> g,
             const __grid_constant__ Result result, const __grid_constant__ tile::Raster raster, unsigned tiles) {
  using SlabA = tile::SwizzledSlab<Element, of_a, Shape::m, Parts::row_bytes>;
  using SlabB = tile::SwizzledSlab<Element, of_b, Shape::n, Parts::row_bytes>;
  using Accumulator = typename arch::WgmmaTypes<Element>::Accumulator;
  using Memory = hopper::Memory<Shape, Parts, Accumulator>;
  constexpr int stages = Shape::stages, columns = Shape::n / 8;
  constexpr int readers = Shape::in_turn ? 1 : Shape::groups;  // warpgroups that multiply a slab
  constexpr bool clustered = Shape::cluster > 1;
  extern __shared__ __attribute__((aligned(1024))) unsigned char shared[];
  const auto slabs = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  const auto slab_a = [&](int stage, int plane) { return slabs + stage * Memory::stage + plane * SlabA::bytes; };
  const auto slab_b = [&](int stage, int plane) {
    return slabs + stage * Memory::stage + Parts::planes * SlabA::bytes + plane * SlabB::bytes;
  };
  const auto present = [&](int stage) { return slabs + Memory::barriers + stage * 8; };
  const auto free = [&](int stage) { return slabs + Memory::barriers + (stages + stage) * 8; };
  const auto turn = [&](int group) { return slabs + Memory::barriers + (2 * stages + group) * 8; };

  const unsigned rank = clustered ? arch::rank_in_cluster() : 0;
  const unsigned first = blockIdx.x / Shape::cluster, apart = gridDim.x / Shape::cluster;
  const auto origin = [&](unsigned index) {
    tile::Origin o = raster.origin(index, Shape::cluster * Shape::m, Shape::n);
    o.m += rank * Shape::m;
    return o;
  };
  const int slabs_of_tile = (operands.k + SlabA::depth - 1) / SlabA::depth;

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int copying = 4 * Shape::groups;  // the producer's warp, the first that does not multiply
  if (lane == 0) {
    if (warp == copying) {
      arch::prefetch_tensor_map(&operands.a);
      arch::prefetch_tensor_map(&operands.b);
    }
    static_assert(stages <= copying && Shape::groups <= stages);
    if (warp < stages) {
      arch::initialize_barrier(present(warp), 1);
      arch::initialize_barrier(free(warp), 4 * readers * Shape::cluster);
    }
    if (Shape::in_turn && warp < Shape::groups) arch::initialize_barrier(turn(warp), 4);
    arch::fence_initialized_barriers();
  }
  __syncwarp();
  if constexpr (clustered)
    arch::synchronize_cluster();
  else
    __syncthreads();
  arch::allow_next_launch();
  arch::wait_for_launches_before();

  Place<stages> place;
  if (warp >= copying) {
    arch::fewer_registers<Shape::copying_registers>();
    if (threadIdx.x == 32 * copying) {
#pragma unroll 1
      for (unsigned index = first; index < tiles; index += apart) {
        const tile::Origin o = origin(index);
        const int m = static_cast<int>(o.m), n = static_cast<int>(o.n);
        const int batch_a = operands.a_batched ? static_cast<int>(o.batch) : 0;
        const int batch_b = operands.b_batched ? static_cast<int>(o.batch) : 0;
#pragma unroll 1
        for (int slab = 0; slab < slabs_of_tile; ++slab) {
          const std::uint32_t barrier = present(place.stage);
          const int k = slab * SlabA::depth;
          arch::wait(free(place.stage), place.parity ^ 1);
          arch::arrive_and_expect(barrier, static_cast<unsigned>(operands.stage));
#pragma unroll
          for (int plane = 0; plane < Parts::planes; ++plane) {
#pragma unroll
            for (int copy = 0; copy < SlabA::template copies<1>; ++copy) {
              const int line = m + SlabA::template line_of<1>(0, copy);
              arch::copy_tensor(slab_a(place.stage, plane) + SlabA::template place_of<1>(0, copy), &operands.a,
                                SlabA::by_lines ? line : k, SlabA::by_lines ? k : line, batch_a + plane * operands.a_planes,
                                barrier);
            }
#pragma unroll
            for (int copy = 0; copy < SlabB::template copies<Shape::cluster>; ++copy) {
              const int part = static_cast<int>(rank);
              const int line = n + SlabB::template line_of<Shape::cluster>(part, copy);
              const std::uint32_t to = slab_b(place.stage, plane) + SlabB::template place_of<Shape::cluster>(part, copy);
              const int of_k = k + SlabB::template k_of<Shape::cluster>(part);
              const int x = SlabB::by_lines ? line : of_k, y = SlabB::by_lines ? of_k : line;
              const int z = batch_b + plane * operands.b_planes;
              if constexpr (clustered)
                arch::copy_tensor_to((1 << Shape::cluster) - 1, to, &operands.b, x, y, z, barrier);
              else
                arch::copy_tensor(to, &operands.b, x, y, z, barrier);
            }
          }
          place.advance();
        }
      }
      // No block ends while another may still arrive at its barriers.
      if constexpr (clustered)
#pragma unroll 1
        for (int stage = 0; stage < stages; ++stage, place.advance()) arch::wait(free(place.stage), place.parity ^ 1);
    }
  } else {
    arch::more_registers<Shape::multiplying_registers>();
    const int group = warp / 4, group_m = Shape::in_turn ? 0 : group * Shape::rows * 64;
    // Marks a slab as empty: each warp arrives at every block that copies a share of it.
    const auto release = [&](int stage) __attribute__((always_inline)) {
      if (lane < Shape::cluster) {
        if constexpr (clustered)
          arch::arrive_at(free(stage), lane);
        else
          arch::arrive(free(stage));
      }
    };
    // A ping-pong warpgroup starts a tile when the other has seen all slabs of the previous one: a full barrier's parity
    // tells only the next slabs apart.
    if (Shape::in_turn && group > 0) place.advance(slabs_of_tile);
    bool first_turn = group == 0;
    unsigned turn_parity = 0;
#pragma unroll 1
    for (unsigned index = first + (Shape::in_turn ? group * apart : 0); index < tiles;
         index += (Shape::in_turn ? Shape::groups : 1) * apart) {
      Accumulator sums[Shape::rows][columns][4] = {};
      int before = 0;
      if constexpr (Shape::in_turn) {
        if (!first_turn) {
          arch::wait(turn(group), turn_parity);
          turn_parity ^= 1;
        }
        first_turn = false;
      }
      // Adds the products of slabs from `first_slab` to `end` to `all`.
      const auto multiply_slabs = [&](Accumulator(&all)[Shape::rows][columns][4], int first_slab,
                                      int end) __attribute__((always_inline)) {
#pragma unroll 1
        for (int slab = first_slab; slab < end; ++slab) {
          [[maybe_unused]] Accumulator of_slab[Shape::rows][columns][4];
          auto& x = *[&] {
            if constexpr (Parts::promoted)
              return &of_slab;
            else
              return &all;
          }();
          arch::wait(present(place.stage), place.parity);
          arch::fence_wgmma();
          // The smallest products first.
#pragma unroll
          for (int both = Parts::smallest; both >= 0; --both)
#pragma unroll
            for (int plane = std::max(0, both - Parts::planes + 1); plane <= std::min(both, Parts::planes - 1); ++plane)
#pragma unroll
              for (int step = 0; step < SlabA::steps; ++step) {
                const bool begins = both == Parts::smallest && plane == std::max(0, both - Parts::planes + 1) && step == 0;
#pragma unroll
                for (int row = 0; row < Shape::rows; ++row)
                  arch::wgmma<Element, SlabA::by_lines, SlabB::by_lines>(
                      x[row], SlabA::descriptor(slab_a(place.stage, plane), group_m + 64 * row, step),
                      SlabB::descriptor(slab_b(place.stage, both - plane), 0, step), !Parts::promoted || !begins);
              }
          arch::commit_wgmma();
          if constexpr (Parts::promoted) {
            arch::wait_for_wgmma<0>();
            release(place.stage);
#pragma unroll
            for (int row = 0; row < Shape::rows; ++row) arch::hold(x[row]);
            add_sums(all, x);
          } else {
            arch::wait_for_wgmma<1>();
            if (slab > 0) release(before);
            before = place.stage;
          }
          place.advance();
        }
      };
      if constexpr (Shape::long_sums) {
        static_assert(!Parts::promoted && sum_k % SlabA::depth == 0);
        constexpr int of_part = sum_k / SlabA::depth;
#pragma unroll 1
        for (int slab = 0; slab < slabs_of_tile; slab += of_part) {
          Accumulator part[Shape::rows][columns][4] = {};
          multiply_slabs(part, slab, std::min(slab + of_part, slabs_of_tile));
          arch::wait_for_wgmma<0>();
#pragma unroll
          for (int row = 0; row < Shape::rows; ++row) arch::hold(part[row]);
          add_sums(sums, part);
        }
      } else {
        multiply_slabs(sums, 0, slabs_of_tile);
      }
      if constexpr (Shape::in_turn)
        if (lane == 0) arch::arrive(turn(1 - group));
      if constexpr (!Parts::promoted) {
        if constexpr (!Shape::long_sums) {
          arch::wait_for_wgmma<0>();
#pragma unroll
          for (int row = 0; row < Shape::rows; ++row) arch::hold(sums[row]);
        }
        if (slabs_of_tile > 0) release(before);
      }
      const tile::Origin o = origin(index);
      const std::int64_t m = o.m + group_m + warp % 4 * 16;
      static_assert(!Shape::as_they_are || (Parts::planes == 1 && !std::is_same_v<Element, float>));  // none is recomputed
      if constexpr (Shape::as_they_are)
        stored_as_they_are(g, sums, o.batch, m, o.n, lane);
      else if (!__all_sync(0xffffffffu, result.keeps(sums)) || !stored_as_they_are(g, sums, o.batch, m, o.n, lane))
        tensor::store_tile<Memory::outputs, 64, Shape::long_sums ? 2 : 4>(
            g, sums, result, o.batch, m, o.n, shared + Memory::buffers + warp * Memory::Buffer::bytes, lane);
      if constexpr (Shape::in_turn) place.advance(slabs_of_tile);
    }
  }
}

}  // namespace rigel::backends::hopper
