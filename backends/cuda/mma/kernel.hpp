// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( Σ_k A(l,m,k)·B(l,k,n) ) on tensor cores by mma.sync. Persistent blocks compute tile after tile of C,
// each warp a part of it in registers. Slabs of A and B are prefetched to shared memory, those of the next tile while this
// one is stored. Every output is summed in ascending steps of 32 bytes along K (64 for double), whatever the tile.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/arch/launch.hpp>
#include <rigel/backends/cuda/arch/shared_memory.hpp>
#include <rigel/backends/cuda/mma/loop_doubles.hpp>
#include <rigel/backends/cuda/mma/loop_fragments.hpp>
#include <rigel/backends/cuda/mma/loop_levels.hpp>
#include <rigel/backends/cuda/mma/loop_planes.hpp>
#include <rigel/backends/cuda/mma/loop_steps.hpp>
#include <rigel/backends/cuda/tensor/recompute.hpp>
#include <rigel/backends/cuda/tensor/store.hpp>
#include <rigel/detail/arguments.hpp>

#include <type_traits>

namespace rigel::backends::mma {

/// A block of WarpsM × WarpsN warps with OutputsM × OutputsN outputs each, `Stages` slabs in shared memory: of 128 bytes
/// along K, or of 64 for each of several planes. `Blocks` is the number of blocks that a multiprocessor must be able to
/// hold.
template <int WarpsM, int WarpsN, int OutputsM, int OutputsN, int Stages, int Blocks>
struct Shape {
  static constexpr int warps_m = WarpsM, warps_n = WarpsN, warps = WarpsM * WarpsN, threads = 32 * warps;
  static constexpr int outputs_m = OutputsM, outputs_n = OutputsN;  // of a warp
  static constexpr int m = WarpsM * OutputsM, n = WarpsN * OutputsN;
  static constexpr int stages = Stages, blocks = Blocks;
  static_assert(OutputsM % 16 == 0 && OutputsN % 16 == 0 && Stages >= 2);
};

/// A result with an epilogue and a store of its own, which use bytes<Shape> of shared memory per warp. begin() comes before
/// a tile's products and may start asynchronous copies, which are complete when the products are. store() comes after the
/// products, with the number of the warp's tile.
template <class Result, class Shape>
concept OwnStore = requires { Result::template bytes<Shape>; };
/// The result without one: sums, which go through store_tile().
struct Sums {};
template <class Result, class Shape, class Accumulator>
constexpr int bytes_of_warp() {
  if constexpr (OwnStore<Result, Shape>)
    return Result::template bytes<Shape>;
  else
    return StoreBuffer<Shape::outputs_n, Accumulator>::bytes;
}

/// Bytes of shared memory that a kernel needs.
template <class Shape, class Accumulator, int planes = 1>
inline constexpr int shared_bytes = Shape::stages * (Shape::m + Shape::n) * (planes == 1 ? 128 : 64 * planes) +
                                    Shape::warps * StoreBuffer<Shape::outputs_n, Accumulator>::bytes;

/// The main loop of a decomposition.
template <class Slabs>
constexpr auto loop_of() {
  constexpr Decomposition d = Slabs::decomposition;
  if constexpr (std::is_same_v<typename Slabs::Element, double> && d.promoted > 0)
    return std::type_identity<LevelLoop<DoubleLoop<Slabs>, Slabs, d.promoted>>{};
  else if constexpr (std::is_same_v<typename Slabs::Element, double>)
    return std::type_identity<DoubleLoop<Slabs>>{};
  else if constexpr (d.grouping > 0)
    return std::type_identity<LevelLoop<StepLoop<Slabs>, Slabs, d.grouping>>{};
  else if constexpr (d.promoted > Slabs::depth)
    return std::type_identity<LevelLoop<FragmentLoop<Slabs>, Slabs, d.promoted>>{};
  else if constexpr (d.promoted == Slabs::depth / Slabs::steps)
    return std::type_identity<StepLoop<Slabs>>{};
  else if constexpr (d.planes > 1)
    return std::type_identity<PlaneLoop<Slabs>>{};
  else
    return std::type_identity<FragmentLoop<Slabs>>{};
}
template <class Slabs>
using loop_t = typename decltype(loop_of<Slabs>())::type;

/// Whether a thread has so many outputs that its kernel has no registers left for the code of a Layer in addition to that of other stores.
template <class Shape>
inline constexpr bool is_large = Shape::outputs_m * Shape::outputs_n >= 64 * 64;
/// How many sums of a lane are recomputed at a time, as registers allow.
template <class Shape>
constexpr int recomputed_together(Decomposition d) {
  if (is_large<Shape>) return d.products == 1 ? 4 : 8;
  if (Shape::outputs_m == 32) return d.products == 1 ? 8 : 16;
  return d.products == 1 ? 16 : 32;
}

/// Recomputes those of a warp's sums that are not finite, `together` of a lane at a time. The origin of tile `index` is computed each time, so
/// that it takes no registers meanwhile.
template <class Shape, int together, int of_warp, class S, class Finish, class Raster, class Sums>
__device__ __forceinline__ void recompute(const detail::Arguments<S, Finish>& g, Sums& sums, const Raster& raster,
                                          unsigned& index, int warp_m, int warp_n, unsigned char* buffer) {
  const auto origin = [&]() __attribute__((always_inline)) {
    asm volatile("" : "+r"(index));
    tile::Origin o = raster.origin(index, Shape::m, Shape::n);
    o.m += warp_m;
    o.n += warp_n;
    return o;
  };
  tensor::recompute_non_finite<16, together, of_warp / 4>(g, sums, origin, reinterpret_cast<float*>(buffer),
                                                          tensor::Team<1>{0, 0});
  asm volatile("" : "+r"(index));
}

/// A step multiplies numbers of type `Element`. store_tile() stores the sums, unless the result has an OwnStore; with `after_layer`,
/// tensor::stored_after_layer() alone.
template <class S, class Element, Decomposition decomposition, class Finish, class Shape, tile::Direction of_a,
          tile::Direction of_b, class Result, class Raster = tile::Raster, bool after_layer = false>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    multiply(const __grid_constant__ Operands<Element> operands, const __grid_constant__ detail::Arguments<S, Finish> g,
             const __grid_constant__ Result result, const __grid_constant__ Raster raster, unsigned tiles) {
  using Slabs = mma::Slabs<Element, decomposition, Shape, of_a, of_b>;
  constexpr int of_warp = bytes_of_warp<Result, Shape, typename Slabs::Mma::Accumulator>();
  constexpr int bytes = Slabs::bytes + Shape::warps * of_warp;
  static_assert(arch::holds(arch::shared_memory_of_sm_90, Shape::blocks, bytes) &&
                arch::holds(arch::shared_memory_of_sm_80, 1, bytes));
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];

  int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / Shape::warps_n * Shape::outputs_m, warp_n = warp % Shape::warps_n * Shape::outputs_n;
  const Slabs slabs(shared, warp_m, warp_n, lane);
  const int slabs_of_tile = (operands.k + Slabs::A::depth - 1) / Slabs::A::depth;
  Copies<Slabs, detail::Arguments<S, Finish>, Raster> copies(operands, g, raster, tiles);
  loop_t<Slabs> loop;

  arch::allow_next_launch();
  arch::wait_for_launches_before();
  int stage = 0;
  if (slabs_of_tile > 0) {
#pragma unroll 1
    for (int s = 0; s < Shape::stages - 1; ++s) {
      copies.start(slabs, s);
      copies.advance();
    }
    loop.begin(slabs);
  }
#pragma unroll 1
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    // use(origin, number, shared memory, lane) for a warp's part of a tile. These are recomputed each time, so that they
    // take no registers while products are summed.
    [[maybe_unused]] const auto with_warp = [&](const auto& use) __attribute__((always_inline)) {
      int thread = static_cast<int>(threadIdx.x);
      asm volatile("" : "+r"(thread));
      const int number = thread / 32;
      tile::Origin o = raster.origin(index, Shape::m, Shape::n);
      o.m += number / Shape::warps_n * Shape::outputs_m;
      o.n += number % Shape::warps_n * Shape::outputs_n;
      use(o, index * Shape::warps + number, shared + Slabs::bytes + number * of_warp, thread % 32);
    };
    if constexpr (OwnStore<Result, Shape>) {
      __syncwarp();
      with_warp([&](tile::Origin o, unsigned, unsigned char* buffer, int l) __attribute__((always_inline)) {
        result.template begin<Shape>(o.batch, o.m, o.n, g.m, g.n, buffer, l);
      });
    }

    typename Slabs::Sums sums = {};
    loop.begin_tile(slabs, stage, slabs_of_tile);
#pragma unroll 1
    for (int slab = 0; slab < slabs_of_tile; ++slab) {
      const Stages at = Slabs::around(stage);
      loop.add_slab(sums, slabs, copies, at);
      copies.advance();
      stage = at.next;
      loop.end_slab(sums, slab, slabs_of_tile);
    }
    loop.end_tile(sums);

    if constexpr (OwnStore<Result, Shape>) {
      // begin()'s copies are complete with those of the slabs after them, unless the tile has too few slabs.
      if (slabs_of_tile < Shape::stages) {
        arch::commit_copies();
        arch::wait_for_copies<0>();
      }
      __syncwarp();
      with_warp([&](tile::Origin o, unsigned number, unsigned char* buffer, int l) __attribute__((always_inline)) {
        result.template store<Shape>(g, sums, o.batch, o.m, o.n, number, buffer, l);
      });
    } else {
      constexpr bool large = is_large<Shape>;
      unsigned char* const buffer = shared + Slabs::bytes + warp * of_warp;
      if constexpr (std::is_same_v<typename S::element, float>) {
        recompute<Shape, recomputed_together<Shape>(decomposition), of_warp>(g, sums, raster, index, warp_m, warp_n, buffer);
        lane = arch::lane_index();
      }
      const tile::Origin o = raster.origin(index, Shape::m, Shape::n);
      if constexpr (after_layer) {
        using Sum = typename Slabs::Mma::Accumulator;
        tensor::stored_after_layer<Shape::outputs_n, 16, 2>(g, sums, o.batch, o.m + warp_m, o.n + warp_n,
                                                            reinterpret_cast<Sum*>(buffer), lane);
      } else {
        constexpr tensor::StorePolicy policy{.outputs_n = Shape::outputs_n,
                                             .apart = 16,
                                             .together = large ? 1 : 2,
                                             .accumulates = !large,
                                             .layers = !large && ShortFloat<typename S::element> ? 4 : 0};
        store_tile<policy>(g, sums, o.batch, o.m + warp_m, o.n + warp_n, buffer, lane);
      }
    }
  }
  arch::wait_for_copies<0>();
}

}  // namespace rigel::backends::mma
