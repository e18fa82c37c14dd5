// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which tile of which batch a thread block computes.
#pragma once

#include <cstdint>

namespace rigel::tile {

/// Where a tile starts.
struct Origin {
  std::int64_t batch, m, n;
};

/// The order in which blocks take tiles: batch by batch, in groups of `group` rows of tiles, column by column within a
/// group. Blocks that run at the same time then share rows of A and columns of B in the L2 cache.
struct Raster {
  static constexpr unsigned group = 8;  // a wave of 132 tiles is then nearly square in elements

  std::int64_t first;      // index of the tile that block 0 of the launch takes
  unsigned rows, columns;  // tiles along m and n

  __device__ __forceinline__ Origin origin(unsigned block, int tile_m, int tile_n) const {
    const std::int64_t index = first + block;
    const unsigned in_batch = rows * columns;
    const std::int64_t batch = index < in_batch ? 0 : index / in_batch;
    const unsigned t = static_cast<unsigned>(index - batch * in_batch);
    const unsigned top = t / (group * columns) * group, in_group = t % (group * columns);
    const unsigned height = rows - top < group ? rows - top : group;
    return {batch, std::int64_t{top + in_group % height} * tile_m, std::int64_t{in_group / height} * tile_n};
  }
};

/// The same order for persistent kernels. A division takes longer than a slab of products, so this divides only in a last
/// group of fewer rows and for batches.
struct PersistentRaster {
  static constexpr unsigned group = Raster::group;

  unsigned rows, columns;
  // 2^64 / (group·columns), rounded up. The upper half of its product with a 32-bit number is the quotient (D. Lemire, O.
  // Kaser, N. Kurz, Faster remainder by direct computation, 2019).
  std::uint64_t inverse;

  PersistentRaster() = default;
  PersistentRaster(std::int64_t of_rows, std::int64_t of_columns)
      : rows(static_cast<unsigned>(of_rows)),
        columns(static_cast<unsigned>(of_columns)),
        inverse(columns == 0 ? 0 : ~std::uint64_t{0} / (std::uint64_t{group} * columns) + 1) {}

  __device__ __forceinline__ Origin origin(unsigned index, int tile_m, int tile_n) const {
    const unsigned in_batch = rows * columns, batch = index < in_batch ? 0 : index / in_batch;
    return origin_in_batch(batch, index - batch * in_batch, tile_m, tile_n);
  }
  /// The same for tile t of a batch.
  __device__ __forceinline__ Origin origin_in_batch(unsigned batch, unsigned t, int tile_m, int tile_n) const {
    const auto of_group = static_cast<unsigned>(__umul64hi(inverse, t));
    const unsigned top = of_group * group, in_group = t - top * columns, height = rows - top;
    unsigned row = in_group % group, column = in_group / group;
    if (height < group) row = in_group % height, column = in_group / height;
    return {batch, std::int64_t{top + row} * tile_m, std::int64_t{column} * tile_n};
  }
};

}  // namespace rigel::tile
