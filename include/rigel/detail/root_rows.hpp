// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass of cdist() that takes square roots: to(l,i,k) = √from(l,i,k), in double, rounded once; NaN of a negative number.
#pragma once

#include <rigel/detail/transformed_rows.hpp>

namespace rigel::detail {

/// The kernel: a work item takes one root.
template <class Exec, class Element, class Row>
struct RootRows {
  RowsToPrepare<Element, Row> of[2];
  std::int64_t k;

  void launch(const Exec& exec) const {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("rigel::cdist/square roots", by_argument(Policy(exec, 0, (of[0].count() + of[1].count()) * k)),
                         *this);
  }

  RIGEL_MEMBER void operator()(std::int64_t item) const {
    const std::int64_t i = item % k;
    std::int64_t r = item / k;
    const RowsToPrepare<Element, Row> g = operand_of(of, r);
    g.to.at(r / g.rows, r % g.rows, i) =
        static_cast<Row>(__builtin_elementwise_sqrt(row_number(g.from.at(r / g.rows, r % g.rows, i))));
  }
};

}  // namespace rigel::detail
