// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.gradient: Out(l,o,n,m) = ⊕_k accumulate(C(l,o,k), multiply(D(l,n,m), B(l,n,k), A(l,k,m))) on CUDA cores. multiply() is
// evaluated once per (n, m, k) and used for all o of a block.
//
// A block of 8 × 16 threads owns a tile of n × m for up to `outputs` o; a thread owns rows × columns of them, with all sums in
// registers. It streams slabs of 32 k through shared memory, two at a time: while one is used the other one arrives by cp.async,
// element by element, so any strides will do. A slab's neighbours of a thread are read as one vector.
#pragma once

#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/detail/gradient.hpp>

#include <cstdint>

namespace rigel::backends::gradient {

/// What a block owns: `outputs` o, and rows × columns of (n, m) for each thread. A multiprocessor holds three blocks, so a thread has
/// 168 registers.
template <int Outputs, int Rows, int Columns>
struct Cut {
  static constexpr int outputs = Outputs, rows = Rows, columns = Columns, blocks = 3;
  static constexpr int threads_m = 16, threads_n = 8, threads = threads_m * threads_n;
  static constexpr int tile_n = threads_n * rows, tile_m = threads_m * columns, depth = 32;
};

/// Those of a functor, from the most o on. Sums take 64 registers of a thread, or 32 if there are few o, or if double has powers, which
/// need registers themselves.
template <class G>
constexpr auto cuts_of() {
  if constexpr (sizeof(typename G::accumulator) <= 4) {
    return type_list<Cut<16, 2, 2>, Cut<8, 2, 4>, Cut<4, 2, 4>>{};
  } else {
    constexpr int rows = detail::takes_powers<G> ? 1 : 2;
    return type_list<Cut<8, rows, 2>, Cut<4, rows, 2>>{};
  }
}
template <class G>
using Cuts = decltype(cuts_of<G>());

/// How the outputs of a problem are cut into blocks, and K into slices.
struct Grid {
  std::int64_t tiles_m, tiles_n, tiles_o, slices, slice;  // the last: elements along K
  int steps;                                              // slabs of a slice
};

/// 32 k of what a block needs. The padding keeps vectors aligned, and writes along k off each other's banks.
template <class E, class C>
struct Slab {
  alignas(16) E a[C::depth][C::tile_m + C::columns];
  alignas(16) E b[C::depth][C::tile_n + C::rows];
  alignas(16) E c[C::depth][C::outputs + 4];
};

/// A copy of x, asynchronous if it has 4 or 8 bytes.
template <class E>
__device__ __forceinline__ void copy_element(E* to, const E* from) {
  if constexpr (sizeof(E) == 4 || sizeof(E) == 8)
    arch::copy_async<sizeof(E)>(to, from);
  else
    *to = *from;
}

/// Copies `count` (up to depth) elements along k, of `width` lines from `first` on, to to[k][line]. Lines beyond the last one repeat
/// it: nobody stores what is computed from them. Neighbouring threads read along k if `along_k`, else across lines.
template <class C, int width, class E, std::size_t pitch>
__device__ __forceinline__ void copy_lines(E (*to)[pitch], const E* from, std::int64_t stride_k, std::int64_t stride_line,
                                           std::int64_t first, std::int64_t lines, int count, bool along_k) {
#pragma unroll 1  // addresses that the compiler computes ahead of time would take the registers of sums
  for (int i = 0; i < C::depth * width; i += C::threads) {
    const int e = i + static_cast<int>(threadIdx.x);
    const int k = along_k ? e % C::depth : e / width, line = along_k ? e / C::depth : e % width;
    if (e >= C::depth * width || k >= count) continue;
    const std::int64_t at = first + line < lines ? first + line : lines - 1;
    copy_element(&to[k][line], from + k * stride_k + at * stride_line);
  }
}

/// multiply() as the functor defines it.
template <class G>
struct Multiply {
  using A = typename G::accumulator;
  static __device__ __forceinline__ A of(const G& g, A d, A b, A a) { return g.multiply(d, b, a); }
};
/// a with the sign of a·(d − b): a·(±1) in one instruction.
template <>
struct Multiply<gradient_of::manhattan<float>> {
  static __device__ __forceinline__ float of(const gradient_of::manhattan<float>& g, float d, float b, float a) {
    const float difference = math::subtract(d, b);
    return g.multiply_by(difference, __uint_as_float(__float_as_uint(a) ^ (__float_as_uint(difference) & 0x80000000u)));
  }
};
/// A power of a float by two special functions. (The term of a difference of 0 is 0, whatever its power.)
template <>
struct Multiply<gradient_of::minkowski<float>> {
  static __device__ __forceinline__ float of(const gradient_of::minkowski<float>& g, float d, float b, float a) {
    const float difference = math::subtract(d, b);
    const float power = math::power_approximately_of_any(math::abs(difference), g.exponent);
#if __CUDA_ARCH__ < 900
    // The same as multiply_by(), whose comparison takes a register for each weight; this one spills from sm_90 on.
    const bool is_none = math::abs(difference) < g.least || (a == 0 && difference == difference);
    return is_none ? 0 : math::multiply(a, __builtin_elementwise_copysign(power, difference));
#else
    return g.multiply_by(difference, power, a);
#endif
  }
};

/// Outputs as bits: 32 neighbours along m in a word, for each n of each o of each batch.
struct Marks {
  std::uint32_t* words;
  std::int64_t of_row;  // words
  template <class G>
  __device__ __forceinline__ std::uint32_t& at(const detail::GradientArguments<G>& g, std::int64_t l, std::int64_t o,
                                               std::int64_t n, std::int64_t word) const {
    return words[((l * g.outputs + o) * g.n + n) * of_row + word];
  }
};

/// Whether this thread finds marks of the tile's outputs. The threads look at words in turn.
template <class C, class G>
__device__ __forceinline__ bool has_marks(const detail::GradientArguments<G>& g, const Marks& marks, std::int64_t l,
                                          unsigned tile_o, unsigned tile_n, unsigned tile_m) {
  constexpr int words = C::tile_m / 32;
  static_assert(words * 32 == C::tile_m);
  bool any = false;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < C::outputs * C::tile_n * words; i += C::threads) {
    const std::int64_t o = std::int64_t{tile_o} * C::outputs + i / words / C::tile_n,
                       n = std::int64_t{tile_n} * C::tile_n + i / words % C::tile_n,
                       word = std::int64_t{tile_m} * words + i % words;
    if (o < g.outputs && n < g.n && word < marks.of_row) any = any || marks.at(g, l, o, n, word) != 0;
  }
  return any;
}

/// Adds `count` k of a slab to the outputs of the thread, which begin at `thread_n` and `thread_m` of the tile.
template <class G, class C, class A>
__device__ __forceinline__ void add_slab(A (&sums)[C::outputs][C::rows][C::columns], const G& functor,
                                         const A (&d)[C::rows][C::columns], const Slab<typename G::element, C>& slab,
                                         int count, int thread_n, int thread_m) {
  constexpr int unroll = detail::takes_powers<G> ? 1 : 2;
#pragma unroll unroll
  for (int kk = 0; kk < count; ++kk) {
    A a[C::columns], b[C::rows], values[C::rows][C::columns];
#pragma unroll
    for (int j = 0; j < C::columns; ++j) a[j] = static_cast<A>(slab.a[kk][thread_m + j]);
#pragma unroll
    for (int i = 0; i < C::rows; ++i) b[i] = static_cast<A>(slab.b[kk][thread_n + i]);
#pragma unroll
    for (int i = 0; i < C::rows; ++i)
#pragma unroll
      for (int j = 0; j < C::columns; ++j) values[i][j] = Multiply<G>::of(functor, d[i][j], b[i], a[j]);
#pragma unroll
    for (int o = 0; o < C::outputs; ++o) {
      const A c = static_cast<A>(slab.c[kk][o]);
#pragma unroll
      for (int i = 0; i < C::rows; ++i)
#pragma unroll
        for (int j = 0; j < C::columns; ++j) sums[o][i][j] = functor.accumulate(sums[o][i][j], c, values[i][j]);
    }
  }
}

/// The tile of one block, for one slice of K. With `parts` the sums go there, slice by slice, o by o, n by n; else to Out. `again`: it
/// computes and stores the outputs of `marks`, and returns if its tile has none.
template <class G, class C, bool again = false>
__global__ void __launch_bounds__(C::threads, C::blocks)
    contract_gradient_tile(const __grid_constant__ detail::GradientArguments<G> g, const __grid_constant__ Grid grid,
                           typename G::accumulator* parts, Marks marks = {}) {
  using E = typename G::element;
  using A = typename G::accumulator;
  __shared__ Slab<E, C> slabs[2];
  // Indices in 32 bits, which leave registers to the sums.
  unsigned index = blockIdx.x;
  const auto next = [&](std::int64_t extent) {
    const unsigned all = static_cast<unsigned>(extent), i = index % all;
    index /= all;
    return i;
  };
  const unsigned tile_m = next(grid.tiles_m), tile_n = next(grid.tiles_n), tile_o = next(grid.tiles_o),
                 slice = next(grid.slices), l = index;
  const int thread_m = static_cast<int>(threadIdx.x) % C::threads_m * C::columns,
            thread_n = static_cast<int>(threadIdx.x) / C::threads_m * C::rows;
  if constexpr (again)
    if (!__syncthreads_or(has_marks<C>(g, marks, l, tile_o, tile_n, tile_m))) return;
  const G functor = detail::functor_at(g.functor, l);

  // Slab `step` of the slice begins at this k, and has that many.
  const auto first_k = [&](int step) { return slice * grid.slice + std::int64_t{step} * C::depth; };
  const auto count_of = [&](int step) {
    const std::int64_t end = (slice + 1) * grid.slice < g.k ? (slice + 1) * grid.slice : g.k, left = end - first_k(step);
    return static_cast<int>(left < C::depth ? left : C::depth);
  };
  const auto copy = [&](int step, Slab<E, C>& to) {
    const int count = count_of(step);
    const std::int64_t k = first_k(step);
    copy_lines<C, C::tile_m>(to.a, g.a.data + l * g.a.batch + k * g.a.row, g.a.row, g.a.column,
                             std::int64_t{tile_m} * C::tile_m, g.m, count, g.a.row == 1);
    copy_lines<C, C::tile_n>(to.b, g.b.data + l * g.b.batch + k * g.b.column, g.b.column, g.b.row,
                             std::int64_t{tile_n} * C::tile_n, g.n, count, g.b.column == 1);
    copy_lines<C, C::outputs>(to.c, g.c.data + l * g.c.batch + k * g.c.column, g.c.column, g.c.row,
                              std::int64_t{tile_o} * C::outputs, g.outputs, count, g.c.column == 1);
  };
  // Calls visit(o, i, j, …) for what the thread owns and is inside, with its place in Out.
  const auto for_each = [&](const auto& visit) __attribute__((always_inline)) {
#pragma unroll
    for (int o = 0; o < C::outputs; ++o)
#pragma unroll
      for (int i = 0; i < C::rows; ++i)
#pragma unroll
        for (int j = 0; j < C::columns; ++j) {
          const std::int64_t at_o = std::int64_t{tile_o} * C::outputs + o,
                             n = std::int64_t{tile_n} * C::tile_n + thread_n + i,
                             m = std::int64_t{tile_m} * C::tile_m + thread_m + j;
          if (at_o < g.outputs && n < g.n && m < g.m) visit(o, i, j, at_o, n, m);
        }
  };

  A d[C::rows][C::columns] = {}, sums[C::outputs][C::rows][C::columns];
#pragma unroll
  for (int o = 0; o < C::outputs; ++o)
#pragma unroll
    for (int i = 0; i < C::rows; ++i)
#pragma unroll
      for (int j = 0; j < C::columns; ++j) sums[o][i][j] = A(functor.identity());
  for_each([&](int o, int i, int j, std::int64_t at_o, std::int64_t n, std::int64_t m) __attribute__((always_inline)) {
    if (o == 0) d[i][j] = static_cast<A>(g.d.at(l, n, m));
    if (!parts) sums[o][i][j] = g.start(functor, l, at_o, n, m);
  });

  const int steps = grid.steps;
  copy(0, slabs[0]);
  arch::commit_copies();
  int current = 0;
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) copy(step + 1, slabs[current ^ 1]);
    arch::commit_copies();
    arch::wait_for_copies<1>();
    __syncthreads();
    add_slab<G, C>(sums, functor, d, slabs[current], count_of(step), thread_n, thread_m);
    __syncthreads();
    current ^= 1;
  }

  for_each([&](int o, int i, int j, std::int64_t at_o, std::int64_t n, std::int64_t m) __attribute__((always_inline)) {
    if (again && (marks.at(g, l, at_o, n, m / 32) >> m % 32 & 1) == 0) return;
    if (parts)
      parts[(((slice * g.batch + l) * g.outputs + at_o) * g.n + n) * g.m + m] = sums[o][i][j];
    else
      g.store(functor, sums[o][i][j], l, at_o, n, m);
  });
}

/// Joins the sums of the slices in ascending order.
template <class G>
__global__ void __launch_bounds__(256) join_gradient_parts(const __grid_constant__ detail::GradientArguments<G> g,
                                                           std::int64_t slices, const typename G::accumulator* parts) {
  const std::int64_t i = std::int64_t{blockIdx.x} * 256 + threadIdx.x, all = g.batch * g.outputs * g.n * g.m;
  if (i >= all) return;
  const std::int64_t m = i % g.m, n = i / g.m % g.n, o = i / g.m / g.n % g.outputs, l = i / g.m / g.n / g.outputs;
  const G functor = detail::functor_at(g.functor, l);
  typename G::accumulator x = g.start(functor, l, o, n, m);
  for (std::int64_t slice = 0; slice < slices; ++slice) x = functor.add(x, parts[slice * all + i]);
  g.store(functor, x, l, o, n, m);
}

}  // namespace rigel::backends::gradient
