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

/// The kernel: a work item computes `together` neighbours of one row, whose sums a host keeps in vectors.
template <class Exec, class Element, class Row>
struct TransformRows {
  static constexpr int together = runs_on_host<Exec> ? 32 : 1;

  RowsToPrepare<Element, Row> of[2];
  Strided<const Row> factor;
  std::int64_t k, columns;

  RIGEL_MEMBER std::int64_t items_of_row() const { return (columns + together - 1) / together; }

  void launch(const Exec& exec) const {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("rigel::cdist/transformed rows",
                         by_argument(Policy(exec, 0, (of[0].count() + of[1].count()) * items_of_row())), *this);
  }

  RIGEL_MEMBER void operator()(std::int64_t item) const {
    const std::int64_t first = item % items_of_row() * together;
    std::int64_t r = item / items_of_row();
    const RowsToPrepare<Element, Row> g = operand_of(of, r);
    const Element* const from = &g.from.at(r / g.rows, r % g.rows, 0);
    Row* const to = &g.to.at(r / g.rows, r % g.rows, first);
    const int width = static_cast<int>(columns - first < together ? columns - first : together);

    double sums[together] = {};
    for (std::int64_t i = 0; i < k; ++i) {
      const double x = row_number(from[i * g.from.column]);
      const Row* const row = &factor.at(0, i, first);
      for (int j = 0; j < width; ++j)
        sums[j] = math::add(sums[j], math::multiply(x, static_cast<double>(row[j * factor.column])));
    }
    for (int j = 0; j < width; ++j) to[j] = static_cast<Row>(sums[j]);
  }
};

/// Enqueues the pass.
template <class Exec, class Element, class Row>
void transform_rows(const Exec& exec, const RowsToPrepare<Element, Row> (&of)[2], const Strided<const Row>& factor,
                    std::int64_t k, std::int64_t columns) {
  TransformRows<Exec, Element, Row>{{of[0], of[1]}, factor, k, columns}.launch(exec);
}

}  // namespace rigel::detail
