// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// K cut into slices, which a kernel computes as a batch, and what joins them.
#pragma once

#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/registry.hpp>
#include <rigel/semiring.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rigel::backends::simt {

/// How K is cut: `whole` slices of `length`, and one of `rest` if that is not 0.
struct Parts {
  std::int64_t length = 0, whole = 0, rest = 0;
  int count() const { return static_cast<int>(whole + (rest > 0)); }
};

/// Whether K of a problem may be cut.
inline Status parts_fit(const Product& p) {
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

/// run(problem) for the whole slices and for the one of `rest`, whose C follows theirs.
template <class Accumulator, class Run>
void for_each_part(const Contraction& p, const Parts& parts, Accumulator* to, const Run& run) {
  const auto enqueue = [&](std::int64_t part, std::int64_t length, std::int64_t count) {
    if (count == 0 || length == 0 || p.m == 0 || p.n == 0) return;
    run(part_of<Accumulator>(p, part * parts.length, length, count, to + part * p.m * p.n));
  };
  enqueue(0, parts.length, parts.whole);
  enqueue(parts.whole, parts.rest, 1);
}

/// Launches a kernel that joins slices, `outputs` outputs per block.
template <class... Parameters>
void launch_join(const KernelInfo& info, const Product& p, void (*kernel)(Parameters...), int outputs, int threads,
                 const std::type_identity_t<Parameters>&... arguments) {
  if (const auto blocks = static_cast<unsigned>((p.m * p.n + outputs - 1) / outputs); blocks > 0)
    cuda::Launches(p, info.name)(kernel, blocks, threads, 0, arguments...);
}

/// x, or C ⊕ x if C accumulates.
template <class S, class Finish>
__device__ __forceinline__ typename S::accumulator added_to_c(const detail::Arguments<S, Finish>& g, const S& s,
                                                              typename S::accumulator x, std::int64_t l, std::int64_t m,
                                                              std::int64_t n) {
  if constexpr (can_accumulate<S>)
    if (g.accumulate) [[unlikely]] {
      const auto before = g.finish.load(s, g.c, g.c_offset(l, m, n));
      return g.k > 0 ? s.add(before, x) : before;  // linf's identity is one for distances, not for all numbers
    }
  return x;
}

}  // namespace rigel::backends::simt
