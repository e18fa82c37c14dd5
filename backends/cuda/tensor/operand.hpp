// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An operand as passes see it that pack it, and tensor copies.
#pragma once

#include <rigel/backends/cuda/tile/direction.hpp>
#include <rigel/contraction.hpp>

#include <cstdint>

namespace rigel::backends::tensor {

using tile::Direction;

/// One operand of a problem; its lines are the rows of A or the columns of B.
struct Lines {
  const Operand* operand;
  std::int64_t lines, line_stride, k, k_stride;
};
inline Lines lines_of_a(const Product& p) { return {&p.a, p.m, p.a.row_stride, p.k, p.a.column_stride}; }
inline Lines lines_of_b(const Product& p) { return {&p.b, p.n, p.b.column_stride, p.k, p.b.row_stride}; }

/// Matrices to pack: one if all batches share it.
inline std::int64_t matrices_of(const Operand& o) { return o.batch_stride == 0 ? 1 : o.batches; }

}  // namespace rigel::backends::tensor
