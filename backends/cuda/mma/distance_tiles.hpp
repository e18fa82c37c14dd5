// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which outputs distances on tensor cores compute, which of them they keep, and where they list the others.
#pragma once

#include <rigel/backends/cuda/mma/distance_pass.hpp>
#include <rigel/backends/cuda/tile/raster.hpp>

namespace rigel::backends::mma {

/// All tiles of C; or, if both operands are the same, of each group of rows of tiles those from the diagonal on.
struct DistanceRaster {
  tile::PersistentRaster all;
  bool mirrored;
  unsigned in_batch;  // tiles of a batch, as tiles() counts them

  /// Tiles of a batch.
  __host__ __device__ std::int64_t tiles(int tile_m, int tile_n) const {
    if (!mirrored) return std::int64_t{all.rows} * all.columns;
    std::int64_t sum = 0;
    for (unsigned top = 0; top < all.rows; top += tile::Raster::group) sum += group_size(top, tile_m, tile_n);
    return sum;
  }
  __device__ __forceinline__ tile::Origin origin(unsigned index, int tile_m, int tile_n) const {
    const unsigned batch = index < in_batch ? 0 : index / in_batch;
    index -= batch * in_batch;
    if (!mirrored) return all.origin_in_batch(batch, index, tile_m, tile_n);
    unsigned top = 0, size;
    while (index >= (size = group_size(top, tile_m, tile_n))) index -= size, top += tile::Raster::group;
    const unsigned height = height_of(top);
    return {batch, std::int64_t{top + index % height} * tile_m,
            std::int64_t{first_column(top, tile_m, tile_n) + index / height} * tile_n};
  }

 private:
  __host__ __device__ unsigned height_of(unsigned top) const {
    return all.rows - top < tile::Raster::group ? all.rows - top : tile::Raster::group;
  }
  __host__ __device__ static unsigned first_column(unsigned top, int tile_m, int tile_n) {
    return static_cast<unsigned>(std::uint64_t{top} * static_cast<unsigned>(tile_m) / static_cast<unsigned>(tile_n));
  }
  __host__ __device__ unsigned group_size(unsigned top, int tile_m, int tile_n) const {
    return height_of(top) * (all.columns - first_column(top, tile_m, tile_n));
  }
};

/// x|² + |z|² − 2x·z, from a sum of products of prepared rows and from |x|² + |z|².
__device__ __forceinline__ float distance_of(float sum, ScaledLine of_x, ScaledLine of_z, float norms) {
  return math::fma(math::multiply(sum, -2 * of_x.factor), of_z.factor, norms);
}
__device__ __forceinline__ double distance_of(double sum, NormedLine, NormedLine, double norms) {
  return math::fma(-2., sum, norms);
}

/// The larger one; NaN if x is.
__device__ __forceinline__ float larger(float x, float y) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
  return x;
}
__device__ __forceinline__ double larger(double x, double y) { return x < y ? y : x; }

/// Which distances |x|² + |z|² − 2x·z are kept: those above threshold·(|x|² + |z|²) + least that are at most `most`. Below,
/// too much has cancelled, or the numbers are so small that they lose bits. Non-finite ones are rejected, but for those of rows with
/// NaN, whose norms are NaN: each is NaN, as it is. Those below `floor` become `floor`.
template <class Line>
struct Guard {
  using Sum = decltype(Line::norm);
  const Line *x, *z;
  std::int64_t batch_x, batch_z;  // from one matrix's rows to the next one's; 0 if there is one
  Sum threshold, least, floor, most;

  struct Distance {
    Sum value;
    bool kept;
  };
  /// From a sum of products.
  __device__ __forceinline__ Distance operator()(Sum sum, Line of_x, Line of_z) const {
    const Sum norms = math::add(of_x.norm, of_z.norm);
    const Sum value = larger(distance_of(sum, of_x, of_z, norms), floor);
    return {value, (value > math::fma(threshold, norms, least) && value <= most) || norms != norms};
  }
};

/// The rejected outputs of warps' tiles: up to `limit` of a warp's tile are listed one by one; if it has more, the tile is
/// listed. A warp that sums one output reads 32 k at a time, whole lines of operands that are K-major, a sector for each k of others:
/// so of these fewer are worth it.
struct Rejected {
  static constexpr int most = 63, most_across = 16;
  static constexpr int counter_count = 3;
  /// Counts: warps' tiles with few; tiles in which a warp has many; units or parts that blocks have taken.
  unsigned* counters;
  unsigned *few, *many;   // the numbers of those tiles
  unsigned* warps;        // for each tile, a bit for each of its warps that has many
  std::uint16_t* places;  // for each warp's tile, 1 + most: how many, and where in it
  int limit;

  /// Lists the tile of a warp that has many; a tile has `warps_of_tile` warps.
  __device__ __forceinline__ void note_many(unsigned number, unsigned warps_of_tile) const {
    const unsigned tile = number / warps_of_tile;
    if (atomicOr(warps + tile, 1u << number % warps_of_tile) == 0) many[atomicAdd(counters + 1, 1u)] = tile;
  }
  __device__ __forceinline__ std::uint16_t* places_of(unsigned number) const {
    return places + std::int64_t{number} * (most + 1);
  }
  /// use(number, place) for the outputs that are listed one by one: the number of the warp's tile, and the place in it. A
  /// warp handles each; blocks have `threads` threads.
  template <class Use>
  __device__ __forceinline__ void for_each_few(int threads, const Use& use) const {
    const auto warps_of_block = static_cast<unsigned>(threads) / 32;
    const std::uint64_t last = std::uint64_t{*static_cast<const volatile unsigned*>(counters)} * most;
#pragma unroll 1
    for (std::uint64_t i = blockIdx.x * warps_of_block + threadIdx.x / 32; i < last; i += gridDim.x * warps_of_block) {
      const unsigned number = few[i / most];
      const std::uint16_t* const noted = places_of(number);
      const auto which = static_cast<unsigned>(i % most);
      if (which < noted[0]) use(number, noted[1 + which]);
    }
  }
};

}  // namespace rigel::backends::mma
