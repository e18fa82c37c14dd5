// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// K cut into slices, which a kernel computes as a batch, and what joins them.
#pragma once

#include <rigel/backends/cuda/simt/contract.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace rigel::backends::simt {

using costs::Slices;

/// Whether K of a problem may be cut, if C has at most so many elements.
inline Status slices_fit(const Product& p, std::int64_t most_outputs = cuda::max_grid) {
  if (p.batch != 1 || p.semiring_in_view) return {Decline::batches, "a batch of products has no need of slices"};
  if (p.m > most_outputs || p.n > most_outputs || p.m * p.n > most_outputs)
    return {Decline::extents, "C has more than " + std::to_string(most_outputs) + " elements"};
  return {};
}

/// At most `most` slices of whole slabs.
inline Slices slices_of_slabs(std::int64_t k, std::int64_t slab, std::int64_t most) {
  const std::int64_t length = std::max((k + most * slab - 1) / (most * slab), std::int64_t{1}) * slab;
  return {length, k / length, k % length};
}

/// The memory of `count` slices' accumulators.
template <class Accumulator>
WorkspaceSize workspace_of_slices(const Product& p, std::int64_t count) {
  return {.bytes = static_cast<std::size_t>(p.m * p.n * count) * sizeof(Accumulator)};
}

/// The problem of `count` slices of `length`, from k = `first` on, as a batch; its C is memory for accumulators.
template <class Accumulator>
Contraction as_batch(const Product& p, std::int64_t first, std::int64_t length, std::int64_t count, void* to) {
  static const epilogue::Program no_epilogue;
  const auto cut = [&](Operand& o, std::int64_t k_stride) {
    o.data = static_cast<std::byte*>(o.data) + first * k_stride * static_cast<std::int64_t>(o.size);
    o.batches = count;
    o.batch_stride = length * k_stride;
  };
  Contraction slices;
  static_cast<Product&>(slices) = p;
  slices.batch = count;
  slices.k = length;
  cut(slices.a, p.a.column_stride);
  cut(slices.b, p.b.row_stride);
  slices.a.columns = slices.b.rows = length;
  slices.c = {.data = to,
              .type = scalar_of<Accumulator>,
              .size = sizeof(Accumulator),
              .batches = count,
              .rows = p.m,
              .columns = p.n,
              .batch_stride = p.m * p.n,
              .row_stride = p.n,
              .column_stride = 1};
  slices.program = &no_epilogue;
  return slices;
}

/// run(problem) for the whole slices and for the one of `rest`, whose C follows theirs.
template <class Accumulator, class Run>
void for_each_slice(const Product& p, const Slices& slices, Accumulator* to, const Run& run) {
  const auto enqueue = [&](std::int64_t slice, std::int64_t length, std::int64_t count) {
    if (count == 0 || length == 0 || p.m == 0 || p.n == 0) return;
    run(as_batch<Accumulator>(p, slice * slices.length, length, count, to + slice * p.m * p.n));
  };
  enqueue(0, slices.length, slices.whole);
  enqueue(slices.whole, slices.rest, 1);
}

/// Launches a kernel that joins slices, `outputs` outputs per block.
template <class... Parameters>
void launch_join(const KernelInfo& info, const Product& p, void (*kernel)(Parameters...), int outputs, int threads,
                 const std::type_identity_t<Parameters>&... arguments) {
  if (const auto blocks = static_cast<unsigned>((p.m * p.n + outputs - 1) / outputs); blocks > 0)
    cuda::Launches(p, info.name)(kernel, blocks, threads, 0, arguments...);
}

/// Says of a kernel's facts that it joins slices. If ⊕ is exact, they do not change bits.
template <class S>
void set_slices(KernelInfo& info, std::string_view variant) {
  detail::set_variant(info, variant);
  if constexpr (!is_exact<S>) set_own_bits(info);
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
