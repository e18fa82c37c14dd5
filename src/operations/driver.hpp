// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the drivers share, calls of several launches: closure(), transitive_closure(), cdist() of prepared rows,
// kernel_matrix_gradient(), the linear layer.
#pragma once

#include <rigel/contraction.hpp>
#include <rigel/detail/call_memory.hpp>
#include <rigel/gradient_problem.hpp>

#include <cstdint>
#include <string>

namespace rigel::detail {

/// Bytes of scratch memory of the kernel that a problem gets whose operands are not placed yet: unchecked.
std::size_t workspace_of(const Contraction& problem);
/// The same of one kernel.
std::size_t workspace_of(const Kernel<Contraction>& kernel, const Contraction& problem);
std::size_t workspace_of(const Gradient& problem);

/// explain() of a problem is its listing and the legend, which is the same for all problems on one execution space: a call of several says
/// it once, at the end.
std::string listing(const Contraction& problem);
std::string listing(const Gradient& problem);
std::string legend(const Contraction& problem);

/// "3x64x64", or without batches "64x64".
inline std::string extents(const Operand& o) {
  return (o.batches != 1 ? std::to_string(o.batches) + 'x' : "") + std::to_string(o.rows) + 'x' + std::to_string(o.columns);
}

/// Makes `o` matrices of `like`'s type and number at `base`, by rows or by columns, each of which takes `pitch` elements. Returns where
/// the next array begins.
inline std::uintptr_t place_matrices(Operand& o, std::uintptr_t base, const Operand& like, std::int64_t rows,
                                     std::int64_t columns, std::int64_t pitch, bool by_rows) {
  const std::int64_t matrix = (by_rows ? rows : columns) * pitch;
  o.data = reinterpret_cast<void*>(base);
  o.type = like.type;
  o.size = like.size;
  o.batches = like.batches;
  o.rows = rows;
  o.columns = columns;
  o.batch_stride = like.batches == 1 ? 0 : matrix;
  o.row_stride = by_rows ? pitch : 1;
  o.column_stride = by_rows ? 1 : pitch;
  return base + aligned(o.size * static_cast<std::size_t>(o.batches * matrix));
}

}  // namespace rigel::detail
