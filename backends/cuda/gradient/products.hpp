// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.gradient.*.promoted: gradients of floats on tensor cores. A term is (C(o,k)·A(k,m))·f(D(n,m) − B(n,k)). For one m it is a
// product of matrices: factors f, n × k, which are evaluated in the registers where mma.sync expects its first operand, and weights
// C·A, k × o. Both are divided into parts in registers. The products of 16 k are summed on tensor cores, these sums are added in float.
//
// A block of four warps owns 8 m × 64 n for `outputs` o, a warp two m of them. It streams slabs of 32 k through shared memory, two at
// a time. The order of k within a product is free, so the eight k of a slab that a thread holds are neighbours.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/arch/mma.hpp>
#include <rigel/backends/cuda/gradient/kernel.hpp>

#include <algorithm>
#include <limits>

namespace rigel::backends::gradient {

/// Whether factors are ±1 and 0.
template <class G>
inline constexpr bool has_signs = std::is_same_v<G, gradient_of::manhattan<float>>;

/// What a block owns: 64 n × 8 m for 8·Tiles o. A multiprocessor holds `blocks` of them: four, with 128 registers for a thread, or
/// three with 168 where the parts of terms need more.
template <class G, int Tiles>
struct ProductCut {
  static constexpr int tiles = Tiles, outputs = 8 * tiles;
  static constexpr int blocks = detail::takes_powers<G> && tiles == 1 ? 4 : 3;
  static constexpr int warps = 4, threads = 32 * warps, columns = 2, strips = 4;
  static constexpr int tile_n = 16 * strips, tile_m = columns * warps, depth = 32;
  static constexpr int promoted = 16;                // k of a sum on tensor cores
  static constexpr int of_thread = promoted / 4;     // of them in a thread
  static constexpr int next_thread = depth / warps;  // k from thread to thread
};

/// 32 k of what a block needs: of B and C line by line, with a pitch for which the 16-byte reads of a warp use all banks; of A k by
/// k, four pairs of m each, swizzled to the same end.
template <class C>
struct ProductSlab {
  static constexpr int pitch = C::depth + 4;
  alignas(16) float a[C::depth][C::tile_m];
  alignas(16) float b[C::tile_n][pitch];
  alignas(16) float c[C::outputs][pitch];
};
/// Where A(k, m) of a slab is in its row: a warp reads a pair of k, k + 8, k + 16 and k + 24 at once, from different banks.
__device__ __forceinline__ int swizzled(int k, int m) { return m ^ (k / 8 * 2); }

/// Sums of eight o on their way to Out: two m of a warp, line by line for each o.
template <class C>
struct ProductExchange {
  static constexpr int pitch = C::tile_n + 4;
  float2 sums[C::warps][8][pitch];
};

/// A block's lines of an operand: rows of B and C, columns of A. `data` is k = 0 of the first one.
struct Lines {
  static constexpr int most = 64;  // of a block
  const float* data;
  std::int64_t stride_k, stride_line;
  int last;      // the last line that exists; later ones repeat it
  bool vectors;  // whether several numbers can be copied at once: four of B and C along k, two of A across lines

  template <bool across>
  __device__ __forceinline__ static Lines of(const float* data, std::int64_t stride_k, std::int64_t stride_line, int first,
                                             std::int64_t extent) {
    constexpr int size = across ? 2 : 4;
    const float* const from = data + first * stride_line;
    const bool vectors = (across ? stride_line : stride_k) == 1 && (across ? stride_k : stride_line) % size == 0 &&
                         (!across || extent % size == 0) &&
                         reinterpret_cast<std::uintptr_t>(from) % (size * sizeof(float)) == 0;
    return {from, stride_k, stride_line, static_cast<int>(std::min<std::int64_t>(extent - first - 1, most - 1)), vectors};
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
  const int thread = static_cast<int>(arch::thread_index()), at_k = thread % (C::depth / 4) * 4;
  constexpr int at_once = C::threads / (C::depth / 4);
#pragma unroll
  for (int first = 0; first < lines; first += at_once) {
    const int line = first + thread / (C::depth / 4);
    if (lines % at_once == 0 || line < lines) arch::copy_async<16>(&to[line][at_k], from.at(line, k + at_k));
  }
}
/// A slab's columns of A.
template <class C>
__device__ __forceinline__ void copy_slab_of_a(float (&to)[C::depth][C::tile_m], const Lines& from, int k, int count) {
  if (!from.vectors || count < C::depth)
    return from.copy_elements<C, C::tile_m>(k, count, [&](int m, int at_k) { return &to[at_k][swizzled(at_k, m)]; });
  const int thread = static_cast<int>(arch::thread_index()), at_k = thread / (C::tile_m / 2),
            m = thread % (C::tile_m / 2) * 2;
  static_assert(C::threads == C::depth * C::tile_m / 2);
  // There are whole pairs only, so that the last line is odd. Later pairs repeat the last one.
  arch::copy_async<8>(&to[at_k][swizzled(at_k, m)], from.data + std::min(m, from.last - 1) + (k + at_k) * from.stride_k);
}

__device__ __forceinline__ bool finite(float x) { return math::abs(x) <= std::numeric_limits<float>::max(); }

/// Four neighbours in shared memory.
__device__ __forceinline__ void load(float (&x)[4], const float* shared) {
  const auto four = *reinterpret_cast<const float4*>(shared);
  x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
}

/// The 13 bits of x that tf32 does not have. (The instruction ignores them.)
__device__ __forceinline__ float rest_of(float x) { return x - __uint_as_float(__float_as_uint(x) & 0xffffe000u); }

/// The upper halves of two floats, which are numbers of bfloat16.
__device__ __forceinline__ std::uint32_t upper_halves(float x, float y) {
  return __byte_perm(__float_as_uint(x), __float_as_uint(y), 0x7632);
}
/// Weights in a thread: those of one o for four k, divided into parts. add(sums, …) adds their products with the factors of two n for
/// these k, for several tiles of o. `compares`: factors of differences below functor.least are 0. That of 0 is 0 anyway, if it is no
/// power.
template <class G, bool compares>
struct Terms {
  struct Weights {
    float whole[4], rest[4];
    __device__ __forceinline__ explicit Weights(const float (&x)[4]) {
#pragma unroll
      for (int k = 0; k < 4; ++k) whole[k] = x[k], rest[k] = rest_of(x[k]);
    }
  };
  template <int tiles, std::size_t all>
  static __device__ __forceinline__ void add(float (&sums)[tiles][4], const G& functor, const float (&d)[2],
                                             const float (&b)[2][4], const Weights (&w)[all]) {
    const auto add =
        [](float (&x)[4], const std::uint32_t (&factors)[4], float w0, float w1)
            __attribute__((always_inline)) { arch::Mma<float>::add(x, factors, __float_as_uint(w0), __float_as_uint(w1)); };
#pragma unroll
    for (int k = 0; k < 4; k += 2) {
      std::uint32_t whole[4], rest[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const float x = of(functor, math::subtract(d[r % 2], b[r % 2][k + r / 2]));
        whole[r] = __float_as_uint(x);
        rest[r] = __float_as_uint(rest_of(x));
      }
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
        add(sums[tile], rest, w[tile].whole[k], w[tile].whole[k + 1]);
        add(sums[tile], whole, w[tile].rest[k], w[tile].rest[k + 1]);
        add(sums[tile], whole, w[tile].whole[k], w[tile].whole[k + 1]);
      }
    }
  }

 private:
  /// sign(t)·|t|^q, q = p − 1, with powers as 2^(q·log2 |t|). Their relative error is at most (4 + 2.8·|q| + 3.5·|q·log2 |t||)·u, since
  /// lg2.approx is within 2^-22 of log2 |t|, absolute or relative to it, and ex2.approx.ftz within 2^-22 (PTX ISA).
  static __device__ __forceinline__ float of(const G& functor, float t) {
    float x = t;
    if constexpr (detail::takes_powers<G>) {
      float log, power;
      asm("{.reg .f32 x; abs.f32 x, %1; max.NaN.f32 x, x, %2; lg2.approx.ftz.f32 %0, x;}"
          : "=f"(log)
          : "f"(t), "f"(std::numeric_limits<float>::min()));
      asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(math::multiply(functor.exponent, log)));
      x = __builtin_elementwise_copysign(power, t);
    }
    return compares && math::abs(t) < functor.least ? 0 : x;
  }
};
/// Signs are numbers of bfloat16, and a weight is the sum of three of them.
template <bool compares>
struct Terms<gradient_of::manhattan<float>, compares> {
  struct Weights {
    std::uint32_t parts[3][2];
    __device__ __forceinline__ explicit Weights(const float (&x)[4]) {
#pragma unroll
      for (int k = 0; k < 4; k += 2) {
        float a = x[k], b = x[k + 1];
#pragma unroll
        for (int part = 0; part < 3; ++part) {
          parts[part][k / 2] = upper_halves(a, b);
          a -= __uint_as_float(__float_as_uint(a) & 0xffff0000u);
          b -= __uint_as_float(__float_as_uint(b) & 0xffff0000u);
        }
      }
    }
  };
  template <int tiles, std::size_t all>
  static __device__ __forceinline__ void add(float (&sums)[tiles][4], const gradient_of::manhattan<float>& functor,
                                             const float (&d)[2], const float (&b)[2][4], const Weights (&w)[all]) {
    std::uint32_t signs[4];
#pragma unroll
    for (int k = 0; k < 4; k += 2)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float t[2] = {math::subtract(d[h], b[h][k]), math::subtract(d[h], b[h][k + 1])};
        float one[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          asm("{.reg .f32 x; abs.f32 x, %1; set.geu.f32.f32 %0, x, %2;}" : "=f"(one[i]) : "f"(t[i]), "f"(functor.least));
        signs[k + h] = upper_halves(one[0], one[1]) | (upper_halves(t[0], t[1]) & 0x80008000u);
      }
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
      for (int part = 2; part >= 0; --part)
        arch::Mma<bfloat16>::add(sums[tile], signs, w[tile].parts[part][0], w[tile].parts[part][1]);
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

/// What a block reads: slabs of its lines of A, B and C.
template <class C>
struct SlabCopies {
  Lines a, b, c;
  int all;  // k
  template <class G>
  __device__ __forceinline__ SlabCopies(const detail::GradientArguments<G>& g, const FirstOutput& first)
      : a(Lines::of<true>(g.a.data + first.l * g.a.batch, g.a.row, g.a.column, first.m, g.m)),
        b(Lines::of<false>(g.b.data + first.l * g.b.batch, g.b.column, g.b.row, first.n, g.n)),
        c(Lines::of<false>(g.c.data + first.l * g.c.batch, g.c.column, g.c.row, first.o, g.outputs)),
        all(static_cast<int>(g.k)) {}
  __device__ __forceinline__ int count(int step) const { return std::min(all - step * C::depth, C::depth); }
  __device__ __forceinline__ void operator()(int step, ProductSlab<C>& to) const {
    copy_slab_of_a<C>(to.a, a, step * C::depth, count(step));
    copy_slab<C>(to.b, b, step * C::depth, count(step));
    copy_slab<C>(to.c, c, step * C::depth, count(step));
  }
};

/// For each (n, m) of a block the o, as bits, whose outputs are computed again.
template <class C>
struct Again {
  static_assert(C::outputs <= 32 && C::tile_m * C::tile_n == 4 * C::threads);
  static constexpr std::uint32_t all = ~std::uint32_t{0};
  alignas(16) std::uint32_t o[C::tile_m][C::tile_n];
  /// The four neighbours of which a thread tells whether they have all o, or any.
  __device__ __forceinline__ static int m_of(int thread) { return thread * 4 / C::tile_n; }
  __device__ __forceinline__ bool has_all_of(int thread) const {
    const uint4 four = reinterpret_cast<const uint4*>(o)[thread];
    return (four.x & four.y & four.z & four.w) == all;
  }
  __device__ __forceinline__ bool has_any_of(int thread) const {
    const uint4 four = reinterpret_cast<const uint4*>(o)[thread];
    return (four.x | four.y | four.z | four.w) != 0;
  }
};

/// Stores the sums of a block, eight o after the other, by way of shared memory: four neighbours along m in a thread. Sums that are not
/// finite are not stored but added to `again`, whose members are not stored either. Returns whether it has any, after a barrier. (What is
/// outside repeats what is inside but for the m, of which some pairs of A and D are no neighbours.)
template <class G, class C>
__device__ __forceinline__ bool store_products(const detail::GradientArguments<G>& g, const G& functor,
                                               const FirstOutput& first, Again<C>& again, ProductExchange<C>& exchange,
                                               const float (&sums)[C::columns][C::strips][C::tiles][4]) {
  const int thread = static_cast<int>(arch::thread_index()), lane = thread % 32, warp = thread / 32;
#pragma unroll
  for (int tile = 0; tile < C::tiles; ++tile) {
    __syncthreads();
#pragma unroll
    for (int strip = 0; strip < C::strips; ++strip)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int row = lane % 4 * 2 + r % 2, n = strip * 16 + r / 2 * 8 + lane / 4, o = tile * 8 + row;
        float pair[2] = {sums[0][strip][tile][r], sums[1][strip][tile][r]};
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          std::uint32_t& of_sum = again.o[warp * C::columns + j][n];
          if ((of_sum >> o & 1) != 0) pair[j] = std::numeric_limits<float>::quiet_NaN();
          if (!finite(pair[j])) atomicOr(&of_sum, std::uint32_t{1} << o);
        }
        exchange.sums[warp][row][n] = {pair[0], pair[1]};
      }
    __syncthreads();
    const int half = thread % 2, m = first.m + half * 4;
#pragma unroll 1
    for (int line = thread / 2; line < 8 * C::tile_n; line += C::threads / 2) {
      const int row = line / C::tile_n, column = line % C::tile_n, o = first.o + tile * 8 + row, n = first.n + column;
      if (o >= g.outputs || n >= g.n) continue;
      const float2 low = exchange.sums[half * 2][row][column], high = exchange.sums[half * 2 + 1][row][column];
      const float values[4] = {low.x, low.y, high.x, high.y};
      float* const to = &g.out_at(first.l, o, n, m);
      if (g.out.column == 1 && m + 4 <= g.m && !g.accumulate && reinterpret_cast<std::uintptr_t>(to) % 16 == 0 &&
          finite(values[0]) && finite(values[1]) && finite(values[2]) && finite(values[3])) {
        const auto result = [&](float x) { return detail::gradient_result(functor, x); };
        *reinterpret_cast<float4*>(to) = {result(values[0]), result(values[1]), result(values[2]), result(values[3])};
        continue;
      }
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (m + j < g.m && finite(values[j]))
          g.store(functor, functor.add(g.start(functor, first.l, o, n, m + j), values[j]), first.l, o, n, m + j);
    }
  }
  return __syncthreads_or(again.has_any_of(thread) && first.m + again.m_of(thread) < g.m) != 0;
}

/// Makes infinite and NaN weights of a slab 0, and adds the outputs for which their terms are not 0 to `again`: those whose difference is
/// not below `least`. Returns whether `again` has all outputs of the block. By a block, with a barrier at the end.
template <class C>
__device__ __forceinline__ bool take_infinite_weights(ProductSlab<C>& slab, const float (&d)[C::tile_m][C::tile_n],
                                                      float least, Again<C>& again) {
  const int thread = static_cast<int>(arch::thread_index()), lane = thread % 32;
  static_assert(C::depth * C::tile_m == 2 * C::threads);
  float2& two = reinterpret_cast<float2*>(slab.a)[thread];
#pragma unroll 1
  for (int i = 0; i < 2; ++i) {
    float& x = i == 0 ? two.x : two.y;
    const bool infinite = !finite(x);
    // A warp takes its infinite weights one by one, with an n in each lane.
#pragma unroll 1
    for (unsigned left = __ballot_sync(0xffffffffu, infinite); left != 0; left &= left - 1) {
      const int place = (thread - lane + __ffs(static_cast<int>(left)) - 1) * 2 + i, k = place / C::tile_m,
                m = swizzled(k, place % C::tile_m);
#pragma unroll 1
      for (int n = lane; n < C::tile_n; n += 32)
        if (!(math::abs(math::subtract(d[m][n], slab.b[n][k])) < least)) again.o[m][n] = Again<C>::all;
    }
    if (infinite) x = 0;
  }
  __syncthreads();
  return __syncthreads_and(again.has_all_of(thread)) != 0;
}

/// Computes the outputs of `again`, each as one chain with k ascending, so that what is infinite or NaN is what the functor makes so; the
/// others keep their bits. A thread owns 2 n × 2 m for all o, as on CUDA cores, and takes four k at a time.
template <class G, class C>
__device__ __forceinline__ void compute_again(const detail::GradientArguments<G>& g, const G& functor,
                                              const FirstOutput& first, int steps, const float (&d)[C::tile_m][C::tile_n],
                                              const Again<C>& again, ProductSlab<C>* slabs) {
  constexpr int rows = 2, columns = 2, of_m = C::tile_m / columns, apart = C::threads / of_m, at_once = 4;
  static_assert(rows * apart == C::tile_n && C::depth % at_once == 0);
  const int thread = static_cast<int>(arch::thread_index()), thread_m = thread % of_m * columns, thread_n = thread / of_m;
  SlabCopies<C> copy(g, first);
  // Element by element: vectors would take registers from the loop over products of tensor cores.
  copy.a.vectors = copy.b.vectors = copy.c.vectors = false;
  bool any = false;
  float of_d[rows][columns], sums[C::outputs][rows][columns];
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      any = any || again.o[thread_m + j][thread_n + i * apart] != 0;
      of_d[i][j] = d[thread_m + j][thread_n + i * apart];
#pragma unroll
      for (int o = 0; o < C::outputs; ++o) sums[o][i][j] = functor.identity();
    }
  const int most = __any_sync(0xffffffffu, any) != 0 ? C::depth : 0;  // a warp that has nothing to compute only copies
  copy(0, slabs[0]);
  arch::commit_copies();
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) copy(step + 1, slabs[(step + 1) % 2]);
    arch::commit_copies();
    arch::wait_for_copies<1>();
    __syncthreads();
    const ProductSlab<C>& slab = slabs[step % 2];
    const int count = std::min(copy.count(step), most);
#pragma unroll 1
    for (int k = 0; k < count; k += at_once) {
      float b[rows][at_once], values[at_once][rows][columns];
#pragma unroll
      for (int i = 0; i < rows; ++i) load(b[i], &slab.b[thread_n + i * apart][k]);
#pragma unroll
      for (int kk = 0; kk < at_once; ++kk) {
        const auto a = *reinterpret_cast<const float2*>(&slab.a[k + kk][swizzled(k, thread_m)]);
#pragma unroll
        for (int i = 0; i < rows; ++i)
#pragma unroll
          for (int j = 0; j < columns; ++j)
            values[kk][i][j] = k + kk < count ? Multiply<G>::of(functor, of_d[i][j], b[i][kk], j == 0 ? a.x : a.y) : 0;
      }
#pragma unroll
      for (int o = 0; o < C::outputs; ++o) {
        if (o % 4 == 0 && first.o + o >= g.outputs) break;
        float c[at_once];  // 0 where there is no k
        load(c, &slab.c[o][k]);
#pragma unroll
        for (int kk = 0; kk < at_once; ++kk)
#pragma unroll
          for (int i = 0; i < rows; ++i)
#pragma unroll
            for (int j = 0; j < columns; ++j) sums[o][i][j] = functor.accumulate(sums[o][i][j], c[kk], values[kk][i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const int n = first.n + thread_n + i * apart, m = first.m + thread_m + j;
      const std::uint32_t wanted = n < g.n && m < g.m ? again.o[thread_m + j][thread_n + i * apart] : 0;
#pragma unroll
      for (int o = 0; o < C::outputs; ++o) {
        const int at_o = first.o + o;
        if ((wanted >> o & 1) != 0 && at_o < g.outputs)
          g.store(functor, functor.add(g.start(functor, first.l, at_o, n, m), sums[o][i][j]), first.l, at_o, n, m);
      }
    }
}

template <class G, class C, bool compares>
__global__ void __launch_bounds__(C::threads, C::blocks)
    contract_gradient_products(const __grid_constant__ detail::GradientArguments<G> g, const __grid_constant__ Grid grid) {
  using Terms = Terms<G, compares>;
  using Slab = ProductSlab<C>;
  __shared__ __attribute__((aligned(16))) unsigned char shared[std::max(2 * sizeof(Slab), sizeof(ProductExchange<C>))];
  auto* const slabs = reinterpret_cast<Slab*>(shared);
  // Computed again after the loop, so that it takes no registers in between.
  const auto place = [&] { return FirstOutput::of<C>(grid, arch::block_index()); };
  const FirstOutput first = place();
  const G functor = detail::functor_at(g.functor, first.l);

  static_assert(std::max({C::tile_m, C::tile_n, C::outputs}) <= Lines::most);
  const SlabCopies<C> copy(g, first);
  // D takes no registers, which are for the sums.
  __shared__ float d[C::tile_m][C::tile_n];
  __shared__ Again<C> again;
  for (int i = static_cast<int>(threadIdx.x); i < C::tile_m * C::tile_n; i += C::threads) {
    const int m = i % C::tile_m, n = i / C::tile_m;
    again.o[m][n] = 0;
    d[m][n] =
        g.d.at(first.l, std::min(first.n + n, static_cast<int>(g.n) - 1), std::min(first.m + m, static_cast<int>(g.m) - 1));
  }
  float sums[C::columns][C::strips][C::tiles][4] = {};

  __syncthreads();
  copy(0, slabs[0]);
  arch::commit_copies();
#pragma unroll 1
  for (int step = 0; step < grid.steps; ++step) {
    if (step + 1 < grid.steps) copy(step + 1, slabs[(step + 1) % 2]);
    arch::commit_copies();
    arch::wait_for_copies<1>();
    __syncthreads();
    Slab& slab = slabs[step % 2];
    const auto weights = reinterpret_cast<const float2*>(slab.a)[arch::thread_index()];
    if (__syncthreads_or(!finite(weights.x) || !finite(weights.y)) &&
        take_infinite_weights<C>(slab, d, functor.least, again))
      break;
    // These take no registers during the copies.
    const int thread = static_cast<int>(arch::thread_index()), row = thread % 32 / 4, at_k = thread % 4 * C::next_thread,
              column = thread / 32 * C::columns, column_of_a = swizzled(at_k, column);
    const float* const of_warp = &d[column][row];
#pragma unroll 1
    for (int part = at_k; part < at_k + C::next_thread; part += C::of_thread) {
      float2 a[C::of_thread];
#pragma unroll
      for (int k = 0; k < C::of_thread; ++k) a[k] = *reinterpret_cast<const float2*>(&slab.a[part + k][column_of_a]);
#pragma unroll
      for (int j = 0; j < C::columns; ++j) {
        // Else the next column's numbers are read so early that they take too many registers.
        if constexpr (C::blocks == 4) __syncwarp();
        const auto weights_of = [&](int tile) {
          float c[C::of_thread];
          load(c, &slab.c[tile * 8 + row][part]);
#pragma unroll
          for (int k = 0; k < C::of_thread; ++k) c[k] = math::multiply(c[k], j == 0 ? a[k].x : a[k].y);
          return typename Terms::Weights(c);
        };
        const typename Terms::Weights weights[2] = {weights_of(0), weights_of(C::tiles - 1)};
#pragma unroll
        for (int strip = 0; strip < C::strips; ++strip) {
          float b[2][C::of_thread];
#pragma unroll
          for (int h = 0; h < 2; ++h) load(b[h], &slab.b[strip * 16 + h * 8 + row][part]);
          const float of_lines[2] = {of_warp[j * C::tile_n + strip * 16], of_warp[j * C::tile_n + strip * 16 + 8]};
          float of_part[C::tiles][4] = {};
          Terms::add(of_part, functor, of_lines, b, weights);
#pragma unroll
          for (int tile = 0; tile < C::tiles; ++tile)
#pragma unroll
            for (int r = 0; r < 4; ++r) sums[j][strip][tile][r] = math::add(sums[j][strip][tile][r], of_part[tile][r]);
        }
      }
    }
    __syncthreads();
  }
  arch::wait_for_copies<0>();  // of a slab that nobody reads, if the loop ended early
  if (store_products<G, C>(g, functor, place(), again, *reinterpret_cast<ProductExchange<C>*>(shared), sums))
    compute_again<G, C>(g, functor, place(), grid.steps, d, again, slabs);
}

}  // namespace rigel::backends::gradient
