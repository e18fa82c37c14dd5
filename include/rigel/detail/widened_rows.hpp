// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass of cdist() that widens numbers to double: to(l,i,k) = from(l,i,k).
#pragma once

#include <rigel/detail/transformed_rows.hpp>

#include <cstdint>

namespace rigel::detail {

/// The kernel: a work item takes one number.
template <class Exec, class Element>
struct WidenRows {
  RowsToPrepare<Element, double> of[2];
  std::int64_t k;

  void launch(const Exec& exec) const {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("rigel::cdist/widened rows", by_argument(Policy(exec, 0, (of[0].count() + of[1].count()) * k)),
                         *this);
  }

  RIGEL_MEMBER void operator()(std::int64_t item) const {
    const std::int64_t i = item % k;
    std::int64_t r = item / k;
    const RowsToPrepare<Element, double> g = operand_of(of, r);
    g.to.at(r / g.rows, r % g.rows, i) = row_number(g.from.at(r / g.rows, r % g.rows, i));
  }
};

}  // namespace rigel::detail
