// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass of cdist() that widens numbers to double: to(l,i,k) = from(l,i,k); of integers, if they are to be centred, from(l,i,k) −
// X(0,0,k), an exact difference rounded once, so that neighbours far from 0 keep their digits. Distances of both are the same.
#pragma once

#include <rigel/detail/transformed_rows.hpp>

#include <cstdint>
#include <type_traits>

namespace rigel::detail {

/// x − y, rounded once.
template <class Element>
RIGEL_FUNCTION double wide_difference(Element x, Element y) {
  using Unsigned = std::make_unsigned_t<Element>;
  const auto from = [](Element greater, Element less) {
    return static_cast<double>(static_cast<Unsigned>(static_cast<Unsigned>(greater) - static_cast<Unsigned>(less)));
  };
  return x < y ? -from(y, x) : from(x, y);
}

/// The kernel: a work item takes one number.
template <class Exec, class Element>
struct WidenRows {
  RowsToPrepare<Element, double> of[2];
  std::int64_t k;
  bool centred;

  void launch(const Exec& exec) const {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("rigel::cdist/widened rows", by_argument(Policy(exec, 0, (of[0].count() + of[1].count()) * k)),
                         *this);
  }

  RIGEL_MEMBER void operator()(std::int64_t item) const {
    const std::int64_t i = item % k;
    std::int64_t r = item / k;
    const RowsToPrepare<Element, double> g = operand_of(of, r);
    const Element x = g.from.at(r / g.rows, r % g.rows, i);
    double& to = g.to.at(r / g.rows, r % g.rows, i);
    if constexpr (std::is_integral_v<Element>)
      to = wide_difference(x, centred ? of[0].from.at(0, 0, i) : Element{});
    else
      to = row_number(x);
  }
};

}  // namespace rigel::detail
