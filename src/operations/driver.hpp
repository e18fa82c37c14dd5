// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the drivers share, calls of several launches: closure(), transitive_closure(), cdist() of prepared rows,
// kernel_matrix_gradient(), the linear layer.
#pragma once

#include <rigel/contraction.hpp>
#include <rigel/detail/call_memory.hpp>
#include <rigel/detail/kernel.hpp>
#include <rigel/detail/kernel_matrix_gradient.hpp>
#include <rigel/gradient_problem.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace rigel::detail {

/// The largest error of each result, relative to that result, that automatic takes for floats: that of a guarded squared distance,
/// twice that of the distance.
inline constexpr double largest_relative_error = 336 * 0x1p-24;

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

inline Operand transpose(Operand o) {
  std::swap(o.rows, o.columns);
  std::swap(o.row_stride, o.column_stride);
  return o;
}
/// The same, which messages call by another name.
inline Operand transpose(const Operand& o, const char* argument) {
  Operand turned = transpose(o);
  turned.argument = argument;
  return turned;
}
/// Some rows of an operand; without data it stays absent.
inline Operand rows_of(Operand o, Range rows) {
  if (o.data) o.data = static_cast<std::byte*>(o.data) + rows.first * o.row_stride * static_cast<std::int64_t>(o.size);
  o.rows = rows.count;
  return o;
}

/// Σ_j weights(i,j)·f(points(i,k) − others(j,k)): the problem of a pattern, Out(0,k,i) = Σ_j ones(j)·A(j,i)·f(D(k,i) − B(k,j)).
inline Gradient sum_of_differences(Gradient p, const Operand& weights, const Operand& others, const Operand& points,
                                   const Operand& out, const Operand& ones, bool accumulate, const Workspace& workspace) {
  p.a = transpose(weights);
  p.b = transpose(others);
  p.c = ones;
  p.c.columns = others.rows;
  p.d = transpose(points);
  p.out = transpose(out);
  p.batch = out.batches;
  p.outputs = 1;
  p.n = out.columns;
  p.m = out.rows;
  p.k = others.rows;
  p.accumulate = accumulate;
  p.workspace = workspace;
  return p;
}
/// Σ_j weights(i,j)·others(j,k): the problem of a pattern.
inline Contraction weighted_product(Contraction p, const Operand& weights, const Operand& others, const Operand& out,
                                    bool accumulate, const Workspace& workspace) {
  p.a = weights;
  p.b = others;
  p.c = out;
  p.batch = out.batches;
  p.m = out.rows;
  p.n = out.columns;
  p.k = others.rows;
  p.accumulate = accumulate;
  p.workspace = workspace;
  return p;
}

/// The library's own pass of kernel_matrix_gradient().
LaunchKernelWeights compiled_kernel_weights(KernelFormula formula, Scalar element);

}  // namespace rigel::detail
