// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass of cdist() that transforms rows: to(l,i,r) = Σ_k from(l,i,k)·L(k,r), in double with k ascending, rounded once. The order does
// not depend on the execution space, so that a row has the same bits on all of them.
#pragma once

#include <rigel/detail/call.hpp>

namespace rigel::detail {

/// The rows of one operand that a pass reads and writes.
template <class Element, class Row>
struct RowsToPrepare {
  Strided<const Element> from;
  Strided<Row> to;  // contiguous along its columns
  std::int64_t batches = 0, rows = 0;
  RIGEL_MEMBER std::int64_t count() const { return batches * rows; }
};

/// The operand of row r of both, whose rows count one after the other; r becomes the row's number in it.
template <class Element, class Row>
RIGEL_FUNCTION RowsToPrepare<Element, Row> operand_of(const RowsToPrepare<Element, Row> (&of)[2], std::int64_t& r) {
  const bool second = r >= of[0].count();
  if (second) r -= of[0].count();
  return second ? of[1] : of[0];
}

/// A number of X or Z.
template <class Element>
RIGEL_FUNCTION double row_number(Element x) {
  if constexpr (ShortFloat<Element>)
    return static_cast<float>(x);
  else
    return static_cast<double>(x);
}

/// The kernel: a work item computes columns of some rows. On a host they are neighbours in one row, whose sums stay in vectors; on a
/// GPU those of neighbouring work items are neighbours, and a number that an item has converted serves four sums.
template <class Exec, class Element, class Row>
struct TransformRows {
  static constexpr bool on_host = runs_on_host<Exec>;
  static constexpr int rows_together = on_host ? 1 : 4, columns_together = on_host ? 32 : 4;

  RowsToPrepare<Element, Row> of[2];
  Strided<const Row> factor;
  std::int64_t k, columns;

  RIGEL_MEMBER std::int64_t items_of_rows() const { return (columns + columns_together - 1) / columns_together; }
  RIGEL_MEMBER static std::int64_t items_of_batch(const RowsToPrepare<Element, Row>& g) {
    return (g.rows + rows_together - 1) / rows_together;
  }

  void launch(const Exec& exec) const {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    const std::int64_t items = of[0].batches * items_of_batch(of[0]) + of[1].batches * items_of_batch(of[1]);
    Kokkos::parallel_for("rigel::cdist/transformed rows", by_argument(Policy(exec, 0, items * items_of_rows())), *this);
  }

  RIGEL_MEMBER void operator()(std::int64_t item) const {
    const std::int64_t column = item % items_of_rows() * (on_host ? columns_together : 1);
    const std::int64_t stride = on_host ? 1 : items_of_rows();  // between an item's columns
    std::int64_t rows = item / items_of_rows();
    const bool second = rows >= of[0].batches * items_of_batch(of[0]);
    if (second) rows -= of[0].batches * items_of_batch(of[0]);
    const RowsToPrepare<Element, Row> g = second ? of[1] : of[0];
    const std::int64_t batch = rows / items_of_batch(g), row = rows % items_of_batch(g) * rows_together;
    const int height = static_cast<int>(g.rows - row < rows_together ? g.rows - row : rows_together),
              width = static_cast<int>(on_host && columns - column < columns_together ? columns - column : columns_together);

    double sums[rows_together][columns_together] = {};
    struct Numbers {
      Element x[rows_together];
      Row y[columns_together];
    };
    const auto load = [&](Numbers& to, std::int64_t i) {
      for (int r = 0; r < rows_together; ++r) to.x[r] = g.from.at(batch, r < height ? row + r : row, i);
      for (int c = 0; c < width; ++c) {
        const std::int64_t j = column + c * stride;
        to.y[c] = factor.at(0, i, on_host || j < columns ? j : column);
      }
    };
    Numbers now, next;  // a GPU loads ahead
    if (!on_host && k > 0) load(next, 0);
    for (std::int64_t i = 0; i < k; ++i) {
      if constexpr (on_host) {
        load(now, i);
      } else {
        now = next;
        load(next, i + 1 < k ? i + 1 : i);
      }
      double x[rows_together];
      for (int r = 0; r < rows_together; ++r) x[r] = row_number(now.x[r]);
      for (int c = 0; c < width; ++c) {
        const auto y = static_cast<double>(now.y[c]);
        for (int r = 0; r < rows_together; ++r) sums[r][c] = math::add(sums[r][c], math::multiply(x[r], y));
      }
    }
    for (int r = 0; r < rows_together; ++r)
      for (int c = 0; c < width; ++c)
        if (const std::int64_t j = column + c * stride; r < height && j < columns)
          g.to.at(batch, row + r, j) = static_cast<Row>(sums[r][c]);
  }
};

/// Enqueues the pass.
template <class Exec, class Element, class Row>
void transform_rows(const Exec& exec, const RowsToPrepare<Element, Row> (&of)[2], const Strided<const Row>& factor,
                    std::int64_t k, std::int64_t columns) {
  TransformRows<Exec, Element, Row>{{of[0], of[1]}, factor, k, columns}.launch(exec);
}

}  // namespace rigel::detail
