// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packing: copies a block of A or B into panels of a fixed width, in which the values for one k are contiguous, and converts
// them to the type in which ⊗ computes. At the edge the last valid row is repeated; the outputs of the copies are never stored.
#pragma once

#include <rigel/backends/host/lanes.hpp>
#include <rigel/backends/host/powers.hpp>

namespace rigel::backends::host {

/// Packs `count` rows of `steps` elements each into panels of Width rows. pack_loops.hpp defines it.
template <class Level, int Width, class From, class To>
void pack(const From* source, std::int64_t row_stride, std::int64_t k_stride, int count, int steps, To* panel);

/// Searches packed values for them. pack_loops.hpp defines it.
template <class Level, class T>
detail::Specials specials_of(const T* values, std::int64_t count);

/// Whether packed values are regular operands of S, which has a step for them. pack_loops.hpp defines it.
template <class Level, class S>
bool are_regular(const operand_t<S>* values, std::int64_t count);

/// Whether S has a step that is shorter for some operands, or for some of its objects (step_on()).
template <class Level, class S>
inline constexpr bool has_shorter_step =
    detail::has_ordered_form<of_values_t<S>> || has_regular_step<Level, S> || sums_powers<S>;

/// Values of an operand: `lines` times `count` of them, `stride` apart.
template <class T>
struct Lines {
  const T* first;
  std::int64_t count;
  int lines = 1;
  std::int64_t stride = 0;
};

/// What an operand's values say about the shorter step: which special ones there are, or whether all are regular.
template <class S>
using Facts = std::conditional_t<detail::has_ordered_form<of_values_t<S>>, detail::Specials, bool>;
template <class Level, class S>
RIGEL_FUNCTION Facts<S> facts_of(const Lines<operand_t<S>>& x) {
  if constexpr (sums_powers<S>) {
    return true;
  } else if constexpr (detail::has_ordered_form<of_values_t<S>>) {
    detail::Specials all;
    for (int i = 0; i < x.lines; ++i) all |= specials_of<Level>(x.first + i * x.stride, x.count);
    return all;
  } else {
    bool all = true;
    for (int i = 0; i < x.lines; ++i) all = all && are_regular<Level, S>(x.first + i * x.stride, x.count);
    return all;
  }
}

/// Whether all pairs of values of two operands take the shorter step.
template <class S>
RIGEL_FUNCTION bool takes_shorter_step(const S& s, const Facts<S>& a, const Facts<S>& b) {
  if constexpr (requires { s.has_short_powers(); })
    return s.has_short_powers();
  else if constexpr (sums_powers<S>)
    return has_short_power(s.p);
  else if constexpr (detail::has_ordered_form<of_values_t<S>>)
    return detail::products_are_ordered(of_values(s), a, b);
  else
    return a && b;
}

/// Interleaves an operand of several matrices: element (i, j) of matrix l, at source[l·batch_stride + i·outer_stride + j·inner_stride],
/// goes to to[(i·inner + j)·Lanes + l]. Lanes from `matrices` on repeat the last one. pack_loops.hpp defines it and the next two.
template <class Level, int Lanes, class From, class To>
void interleave(const From* source, std::int64_t batch_stride, int matrices, std::int64_t outer, std::int64_t outer_stride,
                std::int64_t inner, std::int64_t inner_stride, To* to);

/// Where elements of several matrices go: element j of line i of matrix l to first[l·batch_stride + i·line_stride + j·stride].
template <class T>
struct Matrices {
  T* first;
  std::int64_t batch_stride, line_stride, stride;
};
/// The unsigned integer of so many bytes. Elements are moved as such.
template <std::size_t bytes>
using word_t = std::conditional_t<
    bytes == 1, std::uint8_t,
    std::conditional_t<bytes == 2, std::uint16_t, std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;

/// The reverse for words: element j of line i of matrix l is at from[(i·length + j)·lanes + l]. Only the first `matrices` lanes are stored.
/// `lanes`, a power of two, is an argument, because this is compiled for words of every size.
template <class Level, class Word>
void deinterleave(const Word* from, int lanes, std::int64_t lines, std::int64_t length, int matrices,
                  const Matrices<Word>& to);

/// Copies `count` lines of `steps` elements, which then lie `to_stride` apart.
template <class Level, class From, class To>
void copy_lines(const From* source, std::int64_t line_stride, std::int64_t k_stride, int count, int steps, To* to,
                std::int64_t to_stride);

}  // namespace rigel::backends::host
