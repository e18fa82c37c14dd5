// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products as steps of another operation's kernel: contractions of matrices in its call's workspace, for which the engine chooses
// kernels.
#pragma once

#include <rigel/contraction.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/semirings.hpp>

#include <cstddef>

namespace rigel::backends::cuda {

/// The matrices of rows × columns that begin at an element of a batch in the workspace, as an operand.
template <class T>
Operand part_of_workspace(const detail::Strided<T>& s, std::int64_t batches, std::int64_t row, std::int64_t column,
                          std::int64_t rows, std::int64_t columns) {
  Operand o{.argument = "the workspace"};
  o.data = s.data + s.offset(0, row, column);
  o.type = scalar_of<T>;
  o.size = sizeof(T);
  o.batches = batches;
  o.rows = rows;
  o.columns = columns;
  o.batch_stride = batches == 1 ? 0 : s.batch;
  o.row_stride = s.row;
  o.column_stride = s.column;
  return o;
}

/// C = A·B, the same bits in every run.
template <class T>
Contraction inner_product(const Call& call, const Operand& a, const Operand& b, const Operand& c) {
  static const plus_times<T> semiring;
  static const epilogue::Program none;
  Contraction q;
  q.function = call.function;
  q.execution = call.execution;
  q.require = Promise::repeatable;
  q.semiring = {semiring_name<plus_times<T>>(), semiring_type<plus_times<T>>()};
  q.element = q.accumulator = scalar_of<T>;
  q.semiring_object = &semiring;
  q.program = &none;
  q.epilogue_object = &none;
  q.a = a;
  q.b = b;
  q.c = c;
  q.batch = c.batches;
  q.m = c.rows;
  q.n = c.columns;
  q.k = a.columns;
  return q;
}

/// Runs a product with what a call's workspace holds beyond the kernel's own bytes.
inline void run_in(const Workspace& workspace, std::size_t own_bytes, Contraction q) {
  q.workspace = {.data = static_cast<std::byte*>(workspace.data) + own_bytes, .bytes = workspace.bytes - own_bytes};
  rigel::run(q);
}

}  // namespace rigel::backends::cuda
