// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packing: copies a block of A or B into panels of a fixed width, in which the values for one k are contiguous, and converts
// them to the type in which ⊗ computes. At the edge the last valid row is repeated; the outputs of the copies are never stored.
#pragma once

#include <rigel/backends/host/lanes.hpp>
#include <rigel/detail/ordered.hpp>

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

}  // namespace rigel::backends::host
