// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass of cdist() that packs Boolean rows: bit k mod 32 of to(l,i,k / 32) says whether from(l,i,k) ≠ 0, so that what counts truth values
// counts the bits of words. Bits beyond the row are 0.
#pragma once

#include <rigel/detail/transformed_rows.hpp>

#include <cstdint>

namespace rigel::detail {

/// Words of a packed row of `columns` truth values.
RIGEL_FUNCTION std::int64_t packed_words(std::int64_t columns) { return (columns + 31) / 32; }

/// The kernel: a work item makes one word.
template <class Exec, class Element>
struct PackRows {
  static constexpr int bits = 32;

  RowsToPrepare<Element, std::uint32_t> of[2];
  std::int64_t k;

  RIGEL_MEMBER std::int64_t words() const { return packed_words(k); }

  void launch(const Exec& exec) const {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("rigel::cdist/packed rows", by_argument(Policy(exec, 0, (of[0].count() + of[1].count()) * words())),
                         *this);
  }

  RIGEL_MEMBER void operator()(std::int64_t item) const {
    const std::int64_t word = item % words(), first = word * bits;
    std::int64_t r = item / words();
    const RowsToPrepare<Element, std::uint32_t> g = operand_of(of, r);
    const Element* const from = &g.from.at(r / g.rows, r % g.rows, first);
    const int count = static_cast<int>(k - first < bits ? k - first : bits);
    std::uint32_t packed = 0;
    for (int i = 0; i < count; ++i) packed |= static_cast<std::uint32_t>(from[i * g.from.column] != Element{}) << i;
    g.to.at(r / g.rows, r % g.rows, word) = packed;
  }
};

}  // namespace rigel::detail
