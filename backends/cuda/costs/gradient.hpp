// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicted times of the cuda.gradient kernels, from what a kernel is, as data.
#pragma once

#include <rigel/call.hpp>

#include <cstdint>

namespace rigel::backends::gradient::costs {

/// A block of the kernels with one chain for each output: outputs of a thread along n, m and o, threads, and blocks of a multiprocessor.
/// `takes_powers`, `wide`: the functor raises to powers; sums are double.
struct Cut {
  int rows, columns, outputs, threads, blocks;
  bool takes_powers, wide;
};
/// `blocks` blocks take `length` k each; `slices_bytes`: of all slices' sums, written and read; 0: there are no slices.
double tiles_seconds(const Execution& execution, const Cut& cut, double blocks, double length, double slices_bytes);

/// Products on tensor cores: `slabs` of each of `blocks` blocks; `resident` of them at a time on a multiprocessor.
enum class Weights : std::uint8_t { powers, signs, distances };
double products_seconds(const Execution& execution, Weights weights, bool has_two_tiles, int resident, double blocks,
                        double slabs);

/// Of a pass of of_points.cpp: its launch, and the bytes that it reads and writes.
double pass_seconds(const Execution& execution, double launches, double bytes);

}  // namespace rigel::backends::gradient::costs
