// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicted times of the cuda.mma kernels, from what a kernel is, as data: plain C++ of the library, which other rates of a Card compile
// again without a kernel.
#pragma once

#include <rigel/backends/cuda/costs/tensor.hpp>
#include <rigel/contraction.hpp>

#include <cstdint>

namespace rigel::backends::mma::costs {

/// A kernel's tile. `warps` and `blocks`: of a block, and of a multiprocessor. `is_deep`: the shape for a few rows.
struct Tile {
  int m = 0, n = 0, blocks = 0, warps = 0;
  bool is_deep = false;
};

/// Products in tiles. `work`: products on tensor cores of a product of elements. `splits`: elements become parts in registers. `bytes`: of an
/// element that tensor cores multiply. `pass_bytes`: that a pass before reads and writes.
struct ProductCall {
  double tiles = 0, work = 1, bytes = 2, pass_bytes = 0;
  bool splits = false;
  tensor::costs::Pass pass = tensor::costs::Pass::words;
};
double product_seconds(const Contraction& p, const Tile& tile, const ProductCall& call);

/// What codes add to a product: the pass that counts bits, of so many bytes, and the store, in vectors or one by one.
double codes_seconds(const Contraction& p, const Tile& tile, double bytes, bool in_vectors);

/// Euclidean distances of points in `planes` of halves (1 or 2), or of doubles (0). `numbers`: along K of a point as tensor cores multiply
/// it. `point_bytes`: that the pass reads and writes of each of them. `lines`: points.
struct DistanceCall {
  double tiles = 0, numbers = 0, lines = 0, point_bytes = 0;
  int levels = 0;
  bool is_self = false;
};
double distance_seconds(const Contraction& p, const Tile& tile, const DistanceCall& call);

/// Sums of exponentials. `steps`: along K of a tile; `elements`: of both operands.
struct LogSumsCall {
  double tiles = 0, steps = 0, elements = 0;
  bool of_doubles = false, is_promoted = false;
};
double log_sums_seconds(const Contraction& p, const Tile& tile, const LogSumsCall& call);

}  // namespace rigel::backends::mma::costs
