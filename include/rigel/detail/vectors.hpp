// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of views of vectors, and of numbers of each batch.
#pragma once

#include <rigel/contract.hpp>

namespace rigel::detail {

// A batch of vectors as matrices of one column: a view of rank 1, or of rank 2 with a batch index.
template <class View>
Operand vectors_of(const View& v, Batch batch, const char* argument) {
  static_assert(View::rank() == 1 || View::rank() == 2, "a view of vectors has rank 1, or 2 with a batch index");
  using T = typename View::non_const_value_type;
  Operand o{.data = const_cast<T*>(v.data()), .type = scalar_of_value<T>(), .size = sizeof(T), .columns = 1};
  constexpr bool batched = View::rank() == 2;
  const int l = batch == Batch::first ? 0 : 1, i = batched ? 1 - l : 0;
  if constexpr (batched) {
    o.batches = static_cast<std::int64_t>(v.extent(l));
    if (o.batches != 1) o.batch_stride = static_cast<std::int64_t>(v.stride(l));
  }
  o.rows = static_cast<std::int64_t>(v.extent(i));
  o.row_stride = static_cast<std::int64_t>(v.stride(i));
  o.argument = argument;
  o.label = v.label();
  return o;
}

// A number for each batch: a view of rank 0 or 1.
template <class View>
Operand numbers_of(const View& v, const char* argument) {
  static_assert(View::rank() <= 1, "a view of a number for each batch has rank 0 or 1");
  using T = typename View::non_const_value_type;
  Operand o{.data = const_cast<T*>(v.data()), .type = scalar_of_value<T>(), .size = sizeof(T), .rows = 1, .columns = 1};
  if constexpr (View::rank() == 1) {
    o.batches = static_cast<std::int64_t>(v.extent(0));
    if (o.batches != 1) o.batch_stride = static_cast<std::int64_t>(v.stride(0));
  }
  o.argument = argument;
  o.label = v.label();
  return o;
}

}  // namespace rigel::detail
