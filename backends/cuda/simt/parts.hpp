// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// K cut into slices, which a kernel computes as a batch.
#pragma once

#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/registry.hpp>
#include <rigel/semiring.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rigel::backends::simt {

/// How K is cut: `whole` slices of `length`, and one of `rest` if that is not 0.
struct Parts {
  std::int64_t length = 0, whole = 0, rest = 0;
  int count() const { return static_cast<int>(whole + (rest > 0)); }
};

/// Whether K of a problem may be cut.
inline Status parts_fit(const Contraction& p) {
  if (p.batch != 1 || p.semiring_in_view) return {Decline::batches, "a batch of products has no need of parts"};
  if (p.m * p.n > cuda::max_grid) return {Decline::extents, "C has too many elements for its parts to be few"};
  return {};
}

/// At most `most` slices of whole slabs.
inline Parts parts_of_slabs(std::int64_t k, std::int64_t slab, std::int64_t most) {
  const std::int64_t length = std::max((k + most * slab - 1) / (most * slab), std::int64_t{1}) * slab;
  return {length, k / length, k % length};
}

/// The problem of `count` slices of `length`, from k = `first` on, as a batch; its C is memory for accumulators.
template <class Accumulator>
  requires(!Semiring<Accumulator>)
Contraction part_of(const Contraction& p, std::int64_t first, std::int64_t length, std::int64_t count, void* to) {
  static const epilogue::Program no_epilogue;
  const auto cut = [&](Operand o, std::int64_t k_stride) {
    o.data = static_cast<std::byte*>(o.data) + first * k_stride * static_cast<std::int64_t>(o.size);
    o.batches = count;
    o.batch_stride = length * k_stride;
    return o;
  };
  Contraction part = p;
  part.batch = count;
  part.k = length;
  part.a = cut(p.a, p.a.column_stride);
  part.b = cut(p.b, p.b.row_stride);
  part.a.columns = part.b.rows = length;
  part.c = {.data = to,
            .type = scalar_of<Accumulator>,
            .size = sizeof(Accumulator),
            .batches = count,
            .rows = p.m,
            .columns = p.n,
            .batch_stride = p.m * p.n,
            .row_stride = p.n,
            .column_stride = 1};
  part.program = &no_epilogue;
  part.accumulate = false;
  return part;
}

}  // namespace rigel::backends::simt
