// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For few outputs, or a matrix so narrow that a tile of registers would stay empty. A thread computes one output, in
// ascending k, from slabs of A and B in shared memory. A block's shape is chosen at run time. The code is short: the first
// block of a launch waits for its instructions as it waits for its operands, microseconds if they are long.
#pragma once

#include <rigel/backends/cuda/simt/argument.hpp>
#include <rigel/backends/cuda/simt/narrow_split_k.hpp>
#include <rigel/backends/cuda/simt/skinny.hpp>
#include <rigel/backends/cuda/simt/small.hpp>

namespace rigel::backends::simt {

/// The shape of a block, as binary logarithms: outputs along m and n, and k in a slab.
struct Narrow {
  int m = 0, n = 0, depth = 0;
  static constexpr int threads = 8;  // of a block, at most

  int outputs() const { return m + n; }
};

/// A slab of each operand in shared memory: rows of 2^depth elements along K, padded so that neither reads nor writes down a
/// column have bank conflicts (from 32 elements on).
template <class Operand>
struct NarrowSlab {
  using Stored = tile::stored_t<Operand>;
  static constexpr int size = static_cast<int>(sizeof(Stored));
  static constexpr int values = size <= 16 ? 16384 / size : 0;  // of both operands
  static constexpr int padding = 96;                            // the most that 2^m + 2^n rows take, m + n <= 8, each <= 6
  static constexpr int bytes = (values + padding) * size;

  __device__ __forceinline__ static int pitch(int lines, int depth) { return (1 << depth) + (lines < 5 ? 32 >> lines : 1); }

  /// Starts to bring 2^lines rows (of A) or columns (of B) of 2^depth k, as far as they exist.
  template <class Element>
  __device__ __forceinline__ static void bring(Stored* slab, const Element* source, std::int64_t line_stride,
                                               std::int64_t k_stride, std::int64_t lines_left, std::int64_t k_left,
                                               int lines, int depth) {
    // Neighbouring threads take neighbours in memory.
    const bool along_k = k_stride < line_stride;
    const int low_bits = along_k ? depth : lines;
    const int threads = static_cast<int>(blockDim.x), count = 1 << (lines + depth);
#pragma unroll 1
    for (int first = static_cast<int>(threadIdx.x); first < count; first += 4 * threads)
#pragma unroll
      for (int turn = 0; turn < 4; ++turn) {
        const int i = first + turn * threads;
        const int low = i & ((1 << low_bits) - 1), high = i >> low_bits;
        const int line = along_k ? high : low, k = along_k ? low : high;
        if (i >= count || line >= lines_left || k >= k_left) continue;
        Stored* const to = slab + line * pitch(lines, depth) + k;
        const Element* const from = source + line * line_stride + k * k_stride;
        if constexpr (std::is_same_v<Element, Stored> && (size == 4 || size == 8))
          arch::copy_async<size>(to, from);
        else
          *to = static_cast<Stored>(static_cast<Operand>(*from));
      }
  }
};

template <class S, class Finish>
__global__ void __launch_bounds__(1 << Narrow::threads)
    contract_narrow(const __grid_constant__ detail::Arguments<S, Finish> g, const __grid_constant__ tile::Raster raster,
                    const __grid_constant__ Narrow shape) {
  using Accumulator = typename S::accumulator;
  using Operand = operand_t<S>;
  using Slab = NarrowSlab<Operand>;
  using Stored = typename Slab::Stored;
  __shared__ __attribute__((aligned(16))) unsigned char shared[2 * Slab::bytes];
  const auto slab = [&](int stage) { return reinterpret_cast<Stored*>(shared + stage * Slab::bytes); };

  const auto [l, m0, n0] = raster.origin(arch::block_index(), 1 << shape.m, 1 << shape.n);
  const int thread = static_cast<int>(threadIdx.x), m = thread >> shape.n, n = thread & ((1 << shape.n) - 1);
  const bool present = m0 + m < g.m && n0 + n < g.n;
  const S s = g.semiring(l);
  Accumulator x = S::identity();
  if constexpr (can_accumulate<S>)
    if (present) x = g.start(s, l, m0 + m, n0 + n);

  // For a user's functor, a thread without an output repeats the last row or column.
  const int line_m = sees_elements_alone<S> && g.m - m0 <= m ? static_cast<int>(g.m - m0) - 1 : m;
  const int line_n = sees_elements_alone<S> && g.n - n0 <= n ? static_cast<int>(g.n - n0) - 1 : n;
  const int pitch_a = Slab::pitch(shape.m, shape.depth), pitch_b = Slab::pitch(shape.n, shape.depth);
  const int begin_b = pitch_a << shape.m;
  const auto bring = [&](int stage, std::int64_t k0) {
    if (k0 < g.k) {
      Slab::bring(slab(stage), &g.a.at(l, m0, k0), g.a.row, g.a.column, g.m - m0, g.k - k0, shape.m, shape.depth);
      Slab::bring(slab(stage) + begin_b, &g.b.at(l, k0, n0), g.b.column, g.b.row, g.n - n0, g.k - k0, shape.n, shape.depth);
    }
    arch::commit_copies();
  };
  bring(0, 0);
  int stage = 0;
#pragma unroll 1
  for (std::int64_t k0 = 0; k0 < g.k; k0 += 1 << shape.depth, stage ^= 1) {
    bring(stage ^ 1, k0 + (1 << shape.depth));
    arch::wait_for_copies<1>();
    __syncthreads();
    const Stored *const a = slab(stage) + line_m * pitch_a, *const b = slab(stage) + begin_b + line_n * pitch_b;
    const int count = g.k - k0 < 1 << shape.depth ? static_cast<int>(g.k - k0) : 1 << shape.depth;
    const auto take = [&](int k) __attribute__((always_inline)) {
      const auto value_a = static_cast<Operand>(a[k]), value_b = static_cast<Operand>(b[k]);
      x = direct_step(s, x, value_a, value_b, k0 + k);
    };
    if constexpr (has_special_powers<S>) {  // assembly, which the compiler does not repeat
      for (int k = 0; k < count; ++k) take(k);
    } else {
      constexpr int unroll = is_transcendental<S> ? 1 : 4;
#pragma unroll unroll
      for (int k = 0; k < count; ++k) take(k);
    }
    __syncthreads();
  }

  const Store<S, Finish> store(g);
  if (present) store(s, x, l, m0 + m, n0 + n);
}

/// Whether a semiring has these kernels: unless its types are too large; of the zoo's powers and exponentials, those in float.
template <class S>
inline constexpr bool narrows = NarrowSlab<operand_t<S>>::values > 0 && sizeof(typename S::accumulator) <= 64 &&
                                (!in_zoo<S> || !is_transcendental<S> || sizeof(operand_t<S>) == 4);

/// The outputs as square as the extents allow. `slab_values`: elements in both slabs.
[[gnu::noinline]] inline Narrow narrow_for(const Product& p, int slab_values) {
  const int most_m = bits_of(p.m), most_n = bits_of(p.n);
  constexpr int half = Narrow::threads / 2, longest = 6;  // so that rows of full slabs are long, too
  Narrow shape;
  shape.m = std::min(most_m, half);
  shape.n = std::min({most_n, Narrow::threads - shape.m, longest});
  shape.m = std::min({most_m, Narrow::threads - shape.n, longest});
  const int lines = (1 << shape.m) + (1 << shape.n);
  shape.depth = std::min(bits_of(p.k), bits_of(slab_values / lines + 1) - 1);
  return shape;
}

inline tile::Raster raster_of(const Product& p, Narrow shape) {
  return {0, static_cast<unsigned>((p.m + (1 << shape.m) - 1) >> shape.m),
          static_cast<unsigned>((p.n + (1 << shape.n) - 1) >> shape.n)};
}

[[gnu::noinline]] inline Status narrow_fits(const Product& p, int slab_values) {
  if (p.m > max_grid || p.n > max_grid) return {Decline::extents, "a matrix of C has more than 2^31 - 1 rows or columns"};
  const tile::Raster raster = raster_of(p, narrow_for(p, slab_values));
  if (std::int64_t{raster.rows} * raster.columns > max_grid)
    return {Decline::extents, "a matrix of C has more than 2^31 - 1 tiles"};
  return {};
}

template <class S>
inline constexpr int slab_values = NarrowSlab<operand_t<S>>::values;

/// Its facts and its predicted time, whatever becomes of outputs.
template <class S>
KernelInfo narrow_info() {
  KernelInfo info = tile_info<S, SmallTile<S>>();
  detail::set_variant(info, "narrow");
  info.tile = {1 << Narrow::threads / 2, 1 << Narrow::threads / 2, 128};  // for 4-byte operands, if C is as large
  info.stages = 2;
  info.threads = 1 << Narrow::threads;  // if C is as large
  info.shared_memory = 2 * NarrowSlab<operand_t<S>>::bytes;
  set_direct_steps<S>(info);
  return info;
}
template <class S>
double narrow_cost(const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
  const Narrow shape = narrow_for(p, slab_values<S>);
  plan.keep(shape);
  const tile::Raster raster = raster_of(p, shape);
  return costs::narrow_seconds(p, semiring_facts<S>,
                               {static_cast<double>(p.batch) * raster.rows * raster.columns, 1 << shape.outputs(),
                                (1 << shape.m) + (1 << shape.n), 1 << shape.depth});
}

template <class S, class Finish>
Kernel<Contraction> narrow_kernel() {
  Kernel<Contraction> k;
  k.info = narrow_info<S>();
  k.supports = [](const Kernel<Contraction>&, const Contraction& p) {
    if (const Status status = elements_are_aligned<S>(p); !status) return status;
    const Status status = narrow_fits(p, slab_values<S>);
    return status ? detail::finish_supports<Finish>(p) : status;
  };
  k.cost = narrow_cost<S>;
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace&) {
    const auto shape = plan.get<Narrow>();
    launch_tiles(kernel.info, p, reinterpret_cast<const void*>(&contract_narrow<S, Finish>), raster_of(p, shape),
                 1 << shape.outputs(), detail::arguments_of<S, Finish>(p), shape);
  };
  return k;
}

/// Adds the kernels of one semiring: those of its tiles first, the narrow ones last. Large structs do not fit into all of them.
template <class S, class Finish>
void add_kernels(std::vector<Kernel<Contraction>>& list) {
  if constexpr (wins_by_slabs<S>) add_winner_kernels<S, Finish>(list);
  detail::for_each(Tiles<S>{}, [&]<class Shape>() {
    if constexpr (!wins_by_slabs<S> && fits_in_shared_memory<S, Shape>) list.push_back(kernel<S, Finish, Shape>());
  });
  if constexpr (powers_by_products<S, Finish> && has_special_powers<S>) list.push_back(whole_powers_kernel<S, Finish>());
  if constexpr (narrows<S>) {
    list.push_back(narrow_kernel<S, Finish>());
    // A user's ⊕ that rounds keeps its order.
    if constexpr (in_zoo<S> || is_exact<S>) list.push_back(narrow_split_k_kernel<S, Finish>());
  }
  if constexpr (has_skinny<S> && std::is_same_v<Finish, detail::ProgramFinish>) list.push_back(skinny_kernel<S, Finish>());
  if constexpr (has_small<S>) list.push_back(small_kernel<S, Finish>());
}

}  // namespace rigel::backends::simt
