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

/// Tiles in the order in which blocks take them: batch by batch, in groups of `group` rows of tiles, in a group column by
/// column. Blocks that run at the same time then share rows of A and columns of B in the L2 cache.
struct Raster {
  static constexpr unsigned group = 8;  // rows of tiles; a wave of 132 tiles is then nearly square in elements

  std::int64_t first;  // index of the tile that block 0 of the launch takes
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

}  // namespace rigel::tile
