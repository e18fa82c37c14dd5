// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.gradient.*.promoted: gradients of floats on tensor cores. multiply() is evaluated once per (n, m, k), in float. For one m its
// values are a matrix n × k, in the registers where mma.sync expects its first operand, and Σ_k C(o,k)·v(n,k) is a product with C.
// Values and C are sums of two tf32 numbers each; three products are summed for 16 k, and these sums are added in float.
//
// A block of four warps owns 16 m × 16 n for `outputs` o, a warp four m of them. It streams slabs of 32 k through shared memory, two at
// a time. The order of k within a product is free, so the eight k of a slab that a thread holds are neighbours.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/arch/mma.hpp>
#include <rigel/backends/cuda/gradient/kernel.hpp>

#include <algorithm>
#include <limits>

namespace rigel::backends::gradient {

/// What a block owns: 16 n × 16 m for 8·Tiles o. A multiprocessor holds four blocks, so a thread has 128 registers.
template <int Tiles>
struct ProductCut {
  static constexpr int tiles = Tiles, outputs = 8 * tiles, blocks = 4;
  static constexpr int warps = 4, threads = 32 * warps, columns = 4;
  static constexpr int tile_n = 16, tile_m = columns * warps, depth = 32;
  static constexpr int promoted = 16;                // k of a sum on tensor cores
  static constexpr int of_thread = promoted / 4;     // of them in a thread
  static constexpr int next_thread = depth / warps;  // k from thread to thread
};

/// 32 k of what a block needs: of B and C line by line, with a pitch for which the 16-byte reads of a warp use all banks; of A k by
/// k, four vectors of four m each, swizzled to the same end.
template <class C>
struct ProductSlab {
  static constexpr int pitch = C::depth + 4;
  alignas(16) float a[C::depth][C::tile_m];
  alignas(16) float b[C::tile_n][pitch];
  alignas(16) float c[C::outputs][pitch];
};
/// Where A(k, m) of a slab is in its row: a warp reads a vector of k, k + 8, k + 16 and k + 24 at once, from different banks.
__device__ __forceinline__ int swizzled(int k, int m) { return m ^ (k / 8 * 4); }

/// A block's lines of an operand: rows of B and C, columns of A. `data` is k = 0 of the first one.
struct Lines {
  const float* data;
  std::int64_t stride_k, stride_line;
  int last;      // the last line that exists; later ones repeat it
  bool vectors;  // whether 16 bytes can be copied at once: of B and C along k, of A across lines

  template <bool across>
  __device__ __forceinline__ static Lines of(const float* data, std::int64_t stride_k, std::int64_t stride_line, int first,
                                             std::int64_t extent) {
    const float* const from = data + first * stride_line;
    const bool vectors = (across ? stride_line : stride_k) == 1 && (across ? stride_k : stride_line) % 4 == 0 &&
                         (!across || extent % 4 == 0) && reinterpret_cast<std::uintptr_t>(from) % 16 == 0;
    return {from, stride_k, stride_line, static_cast<int>(std::min<std::int64_t>(extent - first - 1, 15)), vectors};
  }
  __device__ __forceinline__ const float* at(int line, int k) const {
    return data + std::min(line, last) * stride_line + k * stride_k;
  }
  /// Copies the first `count` k of a slab of `lines` lines, element by element, and makes the others 0. element(line, k) is in the slab.
  template <class C, int lines, class Element>
  __device__ __forceinline__ void copy_elements(int k, int count, const Element& element) const {
    const bool along_k = stride_k == 1;
#pragma unroll 1
    for (int e = static_cast<int>(threadIdx.x); e < lines * C::depth; e += C::threads) {
      const int line = along_k ? e / C::depth : e % lines, at_k = along_k ? e % C::depth : e / lines;
      float* const to = element(line, at_k);
      if (at_k < count)
        arch::copy_async<4>(to, at(line, k + at_k));
      else
        *to = 0;
    }
  }
};

/// A slab's lines of B or C.
template <class C, int lines, std::size_t pitch>
__device__ __forceinline__ void copy_slab(float (&to)[lines][pitch], const Lines& from, int k, int count) {
  if (!from.vectors || count < C::depth)
    return from.copy_elements<C, lines>(k, count, [&](int line, int at_k) { return &to[line][at_k]; });
  // Read again, so that nothing derived from it takes a register between slabs. This holds for A's columns, too.
  const int thread = static_cast<int>(arch::thread_index()), line = thread / (C::depth / 4),
            at_k = thread % (C::depth / 4) * 4;
  static_assert(C::threads == 16 * C::depth / 4 && lines <= 16);
  if (lines == 16 || line < lines) arch::copy_async<16>(&to[line][at_k], from.at(line, k + at_k));
}
/// A slab's columns of A.
template <class C>
__device__ __forceinline__ void copy_slab_of_a(float (&to)[C::depth][C::tile_m], const Lines& from, int k, int count) {
  if (!from.vectors || count < C::depth)
    return from.copy_elements<C, C::tile_m>(k, count, [&](int m, int at_k) { return &to[at_k][swizzled(at_k, m)]; });
  const int thread = static_cast<int>(arch::thread_index()), at_k = thread / (C::tile_m / 4),
            m = thread % (C::tile_m / 4) * 4;
  static_assert(C::threads == C::depth * C::tile_m / 4);
  // There are whole vectors only; later ones repeat the last.
  arch::copy_async<16>(&to[at_k][swizzled(at_k, m)],
                       from.data + std::min(m, from.last / 4 * 4) + (k + at_k) * from.stride_k);
}

/// Four neighbours in shared memory.
__device__ __forceinline__ void load(float (&x)[4], const float* shared) {
  const auto four = *reinterpret_cast<const float4*>(shared);
  x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
}

/// The 13 bits of x that tf32 does not have. (The instruction ignores them.)
__device__ __forceinline__ float rest_of(float x) { return x - __uint_as_float(__float_as_uint(x) & 0xffffe000u); }

/// multiply(), with powers in fewer instructions than Multiply's: 2^(q·log2 |t|), q = p − 1. Their relative error is at most
/// (4 + 2.8·|q| + 3.5·|q·log2 |t||)·u, since lg2.approx is within 2^-22 of log2 |t|, absolute or relative to it, and ex2.approx.ftz
/// within 2^-22 (PTX ISA).
template <class G>
struct ShortMultiply : Multiply<G> {};
template <>
struct ShortMultiply<gradient_of::minkowski<float>> {
  static __device__ __forceinline__ float of(const gradient_of::minkowski<float>& g, float d, float b, float a) {
    const float difference = math::subtract(d, b);
    float log, power;
    asm("lg2.approx.f32 %0, %1;" : "=f"(log) : "f"(math::abs(difference)));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(math::multiply(g.exponent, log)));
    return g.multiply_by(difference, power, a);
  }
};

/// The first output of a block.
struct FirstOutput {
  int l, o, n, m;
  template <class C>
  __device__ __forceinline__ static FirstOutput of(const Grid& grid, unsigned block) {
    const auto next = [&](std::int64_t extent) {
      const unsigned all = static_cast<unsigned>(extent), i = block % all;
      block /= all;
      return static_cast<int>(i);
    };
    const int m = next(grid.tiles_m) * C::tile_m, n = next(grid.tiles_n) * C::tile_n, o = next(grid.tiles_o) * C::outputs;
    return {static_cast<int>(block), o, n, m};
  }
};

/// Stores a thread's sums: four neighbours along m for each n and o. Sums that are not finite are computed again as one chain, so
/// that what is infinite or NaN is what the functor makes so; their neighbours keep their bits.
template <class G, class C>
__device__ __forceinline__ void store_products(const detail::GradientArguments<G>& g, const G& functor,
                                               const FirstOutput& first, const float (&sums)[C::columns][C::tiles][4]) {
  const int thread = static_cast<int>(arch::thread_index()), lane = thread % 32, m = first.m + thread / 32 * C::columns;
  const bool vectors = g.out.column == 1 && m + C::columns <= g.m && !g.accumulate;
  // The place of a group, o and n, from its number.
  const auto o_of = [&](int group) { return first.o + group / 4 * 8 + lane % 4 * 2 + group % 2; };
  const auto n_of = [&](int group) { return first.n + group % 4 / 2 * 8 + lane / 4; };
  static_assert(4 * C::tiles * C::columns <= 32);
  unsigned again = 0;  // such sums: a bit each, `columns` for a group
#pragma unroll
  for (int i = 0; i < 4 * C::tiles * C::columns; ++i)
    if (!(math::abs(sums[i % C::columns][i / C::columns / 4][i / C::columns % 4]) <= std::numeric_limits<float>::max()))
      again |= 1u << i;
#pragma unroll
  for (int group = 0; group < 4 * C::tiles; ++group) {
    const int o = o_of(group), n = n_of(group);
    if (o >= g.outputs || n >= g.n) continue;
    float values[C::columns];
#pragma unroll
    for (int j = 0; j < C::columns; ++j) values[j] = sums[j][group / 4][group % 4];
    constexpr unsigned all = (1u << C::columns) - 1;
    float* const to = &g.out_at(first.l, o, n, m);
    if (vectors && (again & all << group * C::columns) == 0 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
      const auto result = [&](float x) { return detail::gradient_result(functor, x); };
      *reinterpret_cast<float4*>(to) = {result(values[0]), result(values[1]), result(values[2]), result(values[3])};
      continue;
    }
#pragma unroll
    for (int j = 0; j < C::columns; ++j)
      if (m + j < g.m && (again & 1u << (group * C::columns + j)) == 0)
        g.store(functor, functor.add(g.start(functor, first.l, o, n, m + j), values[j]), first.l, o, n, m + j);
  }
#pragma unroll 1
  for (; again != 0; again &= again - 1) {
    const int bit = __ffs(static_cast<int>(again)) - 1, group = bit / C::columns;
    const int o = o_of(group), n = n_of(group), i = m + bit % C::columns;
    if (o >= g.outputs || n >= g.n || i >= g.m) continue;
    float x = g.start(functor, first.l, o, n, i);
    const float d = g.d.at(first.l, n, i);
#pragma unroll 1
    for (std::int64_t k = 0; k < g.k; ++k)
      x = functor.accumulate(x, g.c.at(first.l, o, k), functor.multiply(d, g.b.at(first.l, n, k), g.a.at(first.l, k, i)));
    g.store(functor, x, first.l, o, n, i);
  }
}

template <class G, class C>
__global__ void __launch_bounds__(C::threads, C::blocks)
    contract_gradient_products(const __grid_constant__ detail::GradientArguments<G> g, const __grid_constant__ Grid grid) {
  using Mma = arch::Mma<float>;
  using Slab = ProductSlab<C>;
  __shared__ Slab slabs[2];
  // Computed again after the loop, so that it takes no registers in between.
  const auto place = [&] { return FirstOutput::of<C>(grid, arch::block_index()); };
  const FirstOutput first = place();
  const G functor = detail::functor_at(g.functor, first.l);
  const int lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4, at_k = lane % 4 * C::next_thread,
            column = static_cast<int>(threadIdx.x) / 32 * C::columns;

  const Lines a_lines = Lines::of<true>(g.a.data + first.l * g.a.batch, g.a.row, g.a.column, first.m, g.m),
              b_lines = Lines::of<false>(g.b.data + first.l * g.b.batch, g.b.column, g.b.row, first.n, g.n),
              c_lines = Lines::of<false>(g.c.data + first.l * g.c.batch, g.c.column, g.c.row, first.o, g.outputs);
  const auto copy = [&](int step, Slab& to) {
    const int k = step * C::depth, count = std::min(static_cast<int>(g.k) - k, C::depth);
    copy_slab_of_a<C>(to.a, a_lines, k, count);
    copy_slab<C>(to.b, b_lines, k, count);
    copy_slab<C>(to.c, c_lines, k, count);
  };

  float d[2][C::columns], sums[C::columns][C::tiles][4];
#pragma unroll
  for (int j = 0; j < C::columns; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
      d[h][j] = g.d.at(first.l, std::min(first.n + h * 8 + row, static_cast<int>(g.n) - 1),
                       std::min(first.m + column + j, static_cast<int>(g.m) - 1));
#pragma unroll
    for (int o = 0; o < C::tiles; ++o)
#pragma unroll
      for (int r = 0; r < 4; ++r) sums[j][o][r] = 0;
  }

  copy(0, slabs[0]);
  arch::commit_copies();
#pragma unroll 1
  for (int step = 0; step < grid.steps; ++step) {
    if (step + 1 < grid.steps) copy(step + 1, slabs[(step + 1) % 2]);
    arch::commit_copies();
    arch::wait_for_copies<1>();
    __syncthreads();
    const Slab& slab = slabs[step % 2];
#pragma unroll 1
    for (int part = at_k; part < at_k + C::next_thread; part += C::of_thread) {
      float a[C::of_thread][C::columns], b[2][C::of_thread], c[C::tiles][C::of_thread];
#pragma unroll
      for (int k = 0; k < C::of_thread; ++k) load(a[k], &slab.a[part + k][swizzled(part + k, column)]);
#pragma unroll
      for (int h = 0; h < 2; ++h) load(b[h], &slab.b[h * 8 + row][part]);
#pragma unroll
      for (int o = 0; o < C::tiles; ++o) load(c[o], &slab.c[o * 8 + row][part]);
      // The columns are independent; ptxas interleaves their chains of products.
      float of_part[C::columns][C::tiles][4] = {};
#pragma unroll
      for (int k = 0; k < C::of_thread; k += 2)
#pragma unroll
        for (int j = 0; j < C::columns; ++j) {
          std::uint32_t value[4], rest[4];
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            const float v = ShortMultiply<G>::of(functor, d[r % 2][j], b[r % 2][k + r / 2], a[k + r / 2][j]);
            value[r] = __float_as_uint(v);
            rest[r] = __float_as_uint(rest_of(v));
          }
          const auto add = [&](const std::uint32_t (&values)[4], const auto& of_c) __attribute__((always_inline)) {
#pragma unroll
            for (int o = 0; o < C::tiles; ++o)
              Mma::add(of_part[j][o], values, __float_as_uint(of_c(c[o][k])), __float_as_uint(of_c(c[o][k + 1])));
          };
          const auto itself = [](float x) { return x; };
          add(rest, itself);
          add(value, rest_of);
          add(value, itself);
        }
#pragma unroll
      for (int j = 0; j < C::columns; ++j)
#pragma unroll
        for (int o = 0; o < C::tiles; ++o)
#pragma unroll
          for (int r = 0; r < 4; ++r) sums[j][o][r] = math::add(sums[j][o][r], of_part[j][o][r]);
    }
    __syncthreads();
  }
  store_products<G, C>(g, functor, place(), sums);
}

}  // namespace rigel::backends::gradient
