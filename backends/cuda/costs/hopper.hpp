// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicted times of the cuda.hopper kernels, from what a kernel is, as data.
#pragma once

#include <rigel/backends/cuda/costs/tensor.hpp>
#include <rigel/contraction.hpp>

#include <cstdint>

namespace rigel::backends::hopper::costs {

/// A kernel's tile, of a block, and of a cluster of `cluster` blocks. `in_turn`: its warpgroups ping-pong.
struct Tile {
  int m = 0, n = 0, cluster = 1;
  bool in_turn = false, has_few_registers = false;
};

/// What a kernel multiplies. `element`: bytes, as tensor cores take it. `planes` of it make an operand's element; `products` of these a
/// product. `promotes`: sums are added in float now and then. `pass_bytes`: that a pass before reads and writes.
struct ProductCall {
  double tiles = 0, pass_bytes = 0;
  int element = 2, planes = 1, products = 1;
  bool promotes = false;
};
double product_seconds(const Contraction& p, const Tile& tile, const ProductCall& call);

/// Single-tile kernels (once.hpp): K in `parts` slices, one for each block of a cluster; a slab of `depth` elements of `m` rows and `n`
/// columns; `columns` of sums that other slices send; `tiles` of a block, and `groups` of warps that store.
struct OnceTile {
  int m = 0, n = 0, columns = 0, cluster = 1, parts = 1, tiles = 1, groups = 1, depth = 64;
};
double once_seconds(const Contraction& p, const OnceTile& tile, std::int64_t tiles, double pass_bytes);

}  // namespace rigel::backends::hopper::costs
