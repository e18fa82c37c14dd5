// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which outputs distances on tensor cores compute, which of them they keep, and where they note the others.
#pragma once

#include <backends/cuda/mma/distance_pass.hpp>
#include <backends/cuda/tile/raster.hpp>

#include <limits>

namespace rigel::backends::mma {

/// All tiles of C; or, where both operands are the same, groups of rows of tiles from the one on that meets the diagonal.
struct DistanceRaster {
  tile::Raster all;
  bool mirrored;
  unsigned in_batch;  // tiles of a batch, as tiles() counts them

  /// Tiles of a batch.
  template <int tile_m, int tile_n>
  __host__ __device__ std::int64_t tiles() const {
    if (!mirrored) return std::int64_t{all.rows} * all.columns;
    std::int64_t sum = 0;
    for (unsigned top = 0; top < all.rows; top += tile::Raster::group) sum += group_size<tile_m, tile_n>(top);
    return sum;
  }
  template <int tile_m, int tile_n>
  __device__ __forceinline__ tile::Origin origin(unsigned index) const {
    if (!mirrored) return all.origin(index, tile_m, tile_n);
    const std::int64_t batch = index / in_batch;
    index %= in_batch;
    unsigned top = 0, size;
    while (index >= (size = group_size<tile_m, tile_n>(top))) index -= size, top += tile::Raster::group;
    const unsigned height = height_of(top);
    return {batch, std::int64_t{top + index % height} * tile_m,
            std::int64_t{first_column<tile_m, tile_n>(top) + index / height} * tile_n};
  }

 private:
  __host__ __device__ unsigned height_of(unsigned top) const {
    return all.rows - top < tile::Raster::group ? all.rows - top : tile::Raster::group;
  }
  template <int tile_m, int tile_n>
  __host__ __device__ static unsigned first_column(unsigned top) {
    return static_cast<unsigned>(std::uint64_t{top} * tile_m / tile_n);
  }
  template <int tile_m, int tile_n>
  __host__ __device__ unsigned group_size(unsigned top) const {
    return height_of(top) * (all.columns - first_column<tile_m, tile_n>(top));
  }
};

/// |x|² + |z|² − 2x·z is kept where it is above threshold·(|x|² + |z|²): below, too much of it has cancelled.
struct Guard {
  const ScaledLine *x, *z;
  std::int64_t batch_x, batch_z;  // from one matrix's lines to the next one's; 0 where there is one
  float threshold;

  struct Distance {
    float value;
    bool kept;
  };
  /// From a sum of products of scaled lines. What is not finite is not kept, nor what is so small that floats lose bits of it.
  __device__ __forceinline__ Distance operator()(float sum, ScaledLine of_x, ScaledLine of_z) const {
    const float norms = math::add(of_x.norm, of_z.norm);
    const float value = math::fma(math::multiply(sum, -2 * of_x.factor), of_z.factor, norms);
    return {value, value > math::fma(threshold, norms, 0x1p-100f) && value <= std::numeric_limits<float>::max()};
  }
};

/// Outputs of a warp's tile that are not kept: `most` of them at most are noted one by one, else the tile is.
struct Rejected {
  static constexpr int most = 63;
  static constexpr int counter_count = 3;
  unsigned* counters;    // of warps' tiles with few; of tiles that have warps with many, and of those that a block has taken
  unsigned *few, *many;  // numbers of those
  unsigned* warps;       // of each tile: a bit for each of its warps that has many
  std::uint16_t* places;  // of each warp's tile, 1 + most: how many, and where in it

  /// Notes a warp's tile that has many; a tile has `warps_of_tile` of them.
  __device__ __forceinline__ void note_many(unsigned number, unsigned warps_of_tile) const {
    const unsigned tile = number / warps_of_tile;
    if (atomicOr(warps + tile, 1u << number % warps_of_tile) == 0) many[atomicAdd(counters + 1, 1u)] = tile;
  }
  __device__ __forceinline__ std::uint16_t* places_of(unsigned number) const {
    return places + std::int64_t{number} * (most + 1);
  }
};

}  // namespace rigel::backends::mma
