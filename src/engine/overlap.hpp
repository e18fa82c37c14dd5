// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/registry.hpp>

namespace rigel::detail {

/// Whether an element of x and an element of y share a byte. The test works on sets of elements, not on address spans: the
/// even and the odd columns of one matrix do not overlap.
bool overlap(const Operand& x, const Operand& y);

/// Whether two different elements of x share a byte.
bool overlaps_itself(const Operand& x);

/// Whether x and y are the same elements at the same places.
bool same_elements(const Operand& x, const Operand& y);

}  // namespace rigel::detail
