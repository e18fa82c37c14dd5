// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// K in slices, for calls with few outputs: a first launch has a team for each tile of outputs and slice, and writes sums to the
// workspace; a second launch joins the slices of each output by a tree.
#pragma once

#include <rigel/contraction.hpp>
#include <rigel/detail/workspace.hpp>
#include <rigel/semiring.hpp>

#include <algorithm>
#include <cstdint>

namespace rigel::backends::portable {

/// K in `count` slices of `length` k. The last one may be shorter; none is empty, unless K is 0.
struct Slices {
  std::int64_t count, length;
};

/// At most `most` slices of at least `least` k, a multiple of `unit`.
inline Slices cut_k(std::int64_t k, std::int64_t most, std::int64_t least, std::int64_t unit) {
  most = std::min(most, k / least);
  if (most < 2) return {1, k};
  const std::int64_t length = (k + most * unit - 1) / (most * unit) * unit;
  return {(k + length - 1) / length, length};
}

/// The blocks of outputs that a team of the second launch joins, and the sums of all slices in the workspace: slice by slice,
/// block by block.
struct SliceBlocks {
  static constexpr int rows = 2, columns = 2, outputs = rows * columns;

  std::int64_t along_m, along_n, count;

  static SliceBlocks of(const Contraction& p) {
    const std::int64_t along_m = (p.m + rows - 1) / rows, along_n = (p.n + columns - 1) / columns;
    return {along_m, along_n, p.batch * along_m * along_n};
  }
  /// Where output (l, m, n) of a slice lies.
  RIGEL_MEMBER std::int64_t place(std::int64_t slice, std::int64_t l, std::int64_t m, std::int64_t n) const {
    const std::int64_t block = (l * along_m + m / rows) * along_n + n / columns;
    return (slice * count + block) * outputs + m % rows * columns + n % columns;
  }
};

/// Bytes of the sums of all slices, which one slice does not write.
template <class S>
std::size_t slices_workspace(const Contraction& p, Slices slices) {
  detail::WorkspaceLayout layout;
  if (slices.count > 1)
    layout.add(SliceBlocks::of(p).count * slices.count * SliceBlocks::outputs, sizeof(typename S::accumulator));
  return layout.bytes();
}

}  // namespace rigel::backends::portable
