// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the sweep. A warp keeps 32 rows of X as halves in registers, and all columns pass by, chunk after chunk of
// 32. While tensor cores multiply one chunk, the bounds of the previous one are taken by what a kernel looks for.
#pragma once

#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/backends/cuda/mma/nearest_pass.hpp>
#include <rigel/detail/reduction.hpp>
#include <rigel/semirings.hpp>

namespace rigel::backends::mma::nearest {

/// What the launches of a call share.
template <class Element>
struct Search {
  Points<Element> x, z;
  const float* centre;
  Found* found;
  const unsigned char* tiles;
  unsigned* list;            // rows of X that are left to the search by subtraction,
  unsigned long long* keys;  // and what it finds
  detail::ReducedOutputs outputs;
  std::int64_t first_row;  // of these launches
  unsigned row_count;
  unsigned tile_count;
  int count;  // the k of the k smallest; 0: the minimum
  bool root;  // a score is the square root of a distance
  bool exclude_self;
  Lists lists;

  RIGEL_MEMBER float score(float distance) const { return root ? __builtin_elementwise_sqrt(distance) : distance; }
};

template <int Steps>
struct Shape : Layout<Steps> {
  static constexpr int warps = 4, threads = 32 * warps, rows = 32 * warps;
  static constexpr int stages = Steps == 2 ? 3 : 4, blocks = Steps >= 8 ? 2 : Steps >= 2 ? 3 : 4;
  static constexpr int bytes = stages * Layout<Steps>::tile_bytes;
};

__device__ __forceinline__ void multiply(float (&x)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                         const float (&c)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

/// A predicated move: comparisons of one number with many would become a jump by a table, and the bounds memory.
__device__ __forceinline__ void absent_if_equal(float& bound, int x, int y) {
  asm("{.reg .pred equal; setp.eq.s32 equal, %1, %2; selp.f32 %0, %3, %0, equal;}"
      : "+f"(bound)
      : "r"(x), "r"(y), "f"(absent));
}

/// Bounds of 32 rows and a chunk's columns, as mma.sync has them: of rows 16·i + 8·h + lane / 4, r = 2·h + e.
using Bounds = float[2][4][4];

/// The rows of a warp, and the columns of some tiles that pass by. A Taker gets the bounds:
///
///     static constexpr bool sees_self;                       // whether exclude_self is not for it
///     void begin_chunk(unsigned chunk);                      // whose bounds follow; the first time there is none before, all are absent
///     void take(const Bounds& bounds, int row, int span);    // of row 8·row + lane / 4, those of one group
///     void end_chunk(const Bounds& bounds, unsigned chunk);  // all of the chunk's groups have been taken
///     void end_tile(unsigned tile);                          // after its last chunk
template <class Element, int Steps>
class Sweep {
 public:
  using G = Shape<Steps>;

  __device__ __forceinline__ Sweep(const Search<Element>& search, unsigned char* shared, unsigned first_tile, unsigned tiles)
      : g(search),
        shared_(shared),
        first_tile_(first_tile),
        tiles_(tiles),
        thread(static_cast<int>(threadIdx.x)),
        lane(thread % 32),
        row_of_warp(blockIdx.x * G::rows + static_cast<unsigned>(thread) / 32 * 32),
        m0(search.first_row + row_of_warp) {}

  /// Starts the copies of the first tiles.
  __device__ __forceinline__ void start() const {
#pragma unroll
    for (unsigned tile = 0; tile < G::stages - 1; ++tile) copy(tile);
  }

  /// Loads −2·x' of rows lane / 4 and every eighth after it.
  __device__ __forceinline__ void load() {
    const int q = lane % 4;
    scale = power_of_two_of(exponent_of_scale(g.found->largest));
#pragma unroll
    for (int row = 0; row < 4; ++row) squares[row] = lost[row] = 0;
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const int k = 16 * s + 4 * q;
      const float4 c4 = *reinterpret_cast<const float4*>(g.centre + k);
      const float c[4] = {c4.x, c4.y, c4.z, c4.w};
#pragma unroll
      for (int row = 0; row < 4; ++row) {
        const unsigned r = row_of_warp + 8 * row + lane / 4;
        float v[4];
        g.x.template load<true>(v, g.first_row + (r < g.row_count ? r : g.row_count - 1), k);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          v[i] = k + i < g.x.k ? __fmul_rn(__fsub_rn(v[i], c[i]), scale) : 0.f;
          squares[row] = __fmaf_rn(v[i], v[i], squares[row]);
          v[i] = -2 * v[i];
        }
        const std::uint32_t low = arch::two_of<half>(v[0], v[1]), high = arch::two_of<half>(v[2], v[3]);
        lost[row] += square_of_lost(v[0], v[1], low) + square_of_lost(v[2], v[3], high);
        asm volatile("" : "+f"(lost[row]));  // added here: else what is lost stays in registers to the end
        a_[row / 2][s][row % 2] = low;
        a_[row / 2][s][2 + row % 2] = high;
      }
    }
#pragma unroll
    for (int row = 0; row < 4; ++row) {
#pragma unroll
      for (int apart = 1; apart <= 2; apart *= 2) {
        squares[row] += __shfl_xor_sync(~0u, squares[row], apart);
        lost[row] += __shfl_xor_sync(~0u, lost[row], apart);
      }
      lost[row] /= 4;  // they were those of 2·x'
    }
  }

  /// The tiles' columns. When it returns, no copy is in flight, and no thread reads shared memory.
  template <class Taker>
  __device__ __forceinline__ void run(Taker& taker) const {
    Bounds even, odd;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int r = 0; r < 4; ++r) odd[i][j][r] = absent;
    unsigned stage = 0;
#pragma unroll 1
    for (unsigned tile = 0; tile < tiles_; ++tile) {
      arch::wait_for_copies<G::stages - 2>();
      __syncthreads();
      copy(tile + G::stages - 1);
      const unsigned char* const halves = shared_ + stage * G::tile_bytes;
      const unsigned char* const norms = halves + G::chunks * G::chunk_bytes;
      stage = stage + 1 == G::stages ? 0 : stage + 1;
#pragma unroll 1
      for (int i = 0; i < G::chunks; i += 2) {
        const unsigned chunk = (first_tile_ + tile) * G::chunks + i;
        multiply_chunk(even, halves + i * G::chunk_bytes, norms + i * G::norm_bytes, odd, chunk - 1, taker);
        if (i == 0 && tile > 0) taker.end_tile(first_tile_ + tile - 1);
        multiply_chunk(odd, halves + (i + 1) * G::chunk_bytes, norms + (i + 1) * G::norm_bytes, even, chunk, taker);
      }
    }
    const unsigned last = (first_tile_ + tiles_) * G::chunks - 1;
    if constexpr (!Taker::sees_self)
      if (g.exclude_self) without_self(odd, last);
    taker.begin_chunk(last);
#pragma unroll
    for (int u = 0; u < units; ++u) taker.take(odd, u / G::groups, u % G::groups);
    taker.end_chunk(odd, last);
    taker.end_tile(first_tile_ + tiles_ - 1);
    arch::wait_for_copies<0>();
    __syncthreads();
  }

  __device__ __forceinline__ unsigned first_chunk() const { return first_tile_ * G::chunks; }

  const Search<Element>& g;

 private:
  unsigned char* shared_;
  unsigned first_tile_, tiles_;

 public:
  int thread, lane;
  unsigned row_of_warp;
  std::int64_t m0;
  float scale, squares[4], lost[4];  // |x'|² and |dx|² of the lane's rows

 private:
  static constexpr int units = 4 * G::groups, units_of_step = units / Steps;
  static_assert(units % Steps == 0);

  __device__ __forceinline__ void copy(unsigned tile) const {
    if (tile < tiles_) {
      const unsigned char* const from = g.tiles + std::int64_t{first_tile_ + tile} * G::tile_bytes;
      unsigned char* const to = shared_ + tile % G::stages * G::tile_bytes;
#pragma unroll
      for (int i = 0; i < G::tile_bytes; i += G::threads * 16)
        if (i + G::threads * 16 <= G::tile_bytes || i + thread * 16 < G::tile_bytes)
          arch::copy_async<16>(to + i + thread * 16, from + i + thread * 16);
    }
    arch::commit_copies();
  }

  /// Bounds of a row and itself count as absent.
  __device__ __forceinline__ void without_self(Bounds& bounds, unsigned chunk) const {
    const std::int64_t n0 = std::int64_t{chunk} * G::chunk;
    if (n0 >= m0 + 32 || n0 + 32 <= m0) return;
    // The row is the column if this is the difference of what the places i, j and r add to each.
    const int apart = static_cast<int>(m0 - n0) + lane / 4 - lane % 4 * G::group;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int r = 0; r < 4; ++r) absent_if_equal(bounds[i][j][r], apart, G::column(j, r % 2) - 16 * i - 8 * (r / 2));
  }

  /// The products of a chunk, and the bounds of the one before.
  template <class Taker>
  __device__ __forceinline__ void multiply_chunk(Bounds& now, const unsigned char* halves, const unsigned char* norms,
                                                 Bounds& before, unsigned chunk_before, Taker& taker) const {
    if constexpr (!Taker::sees_self)
      if (g.exclude_self) without_self(before, chunk_before);
    taker.begin_chunk(chunk_before);
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const uint4 b = *reinterpret_cast<const uint4*>(halves + (s * 2 + pair) * 512 + lane * 16);
#pragma unroll
        for (int of_pair = 0; of_pair < 2; ++of_pair) {
          const int j = 2 * pair + of_pair;
          const std::uint32_t b0 = of_pair ? b.z : b.x, b1 = of_pair ? b.w : b.y;
          if (s == 0) {
            const float4 n = *reinterpret_cast<const float4*>(norms + (j * 4 + lane % 4) * 16);
            const float c[4] = {n.x, n.y, n.z, n.w};
#pragma unroll
            for (int i = 0; i < 2; ++i) multiply(now[i][j], a_[i][s], b0, b1, c);
          } else {
#pragma unroll
            for (int i = 0; i < 2; ++i) multiply(now[i][j], a_[i][s], b0, b1, now[i][j]);
          }
        }
      }
#pragma unroll
      for (int u = s * units_of_step; u < (s + 1) * units_of_step; ++u) taker.take(before, u / G::groups, u % G::groups);
    }
    taker.end_chunk(before, chunk_before);
  }

  std::uint32_t a_[2][Steps][4];
};

/// The least bound of a group, and which of its columns have bounds up to a limit, as bits.
template <class L>
__device__ __forceinline__ float least_of_group(const Bounds& bounds, int row, int span) {
  float least = bounds[row / 2][span * (L::group / 2)][2 * (row % 2)];
#pragma unroll
  for (int c = 1; c < L::group; ++c)
    least = fminf(least, bounds[row / 2][span * (L::group / 2) + c / 2][2 * (row % 2) + c % 2]);
  return least;
}
template <class L>
__device__ __forceinline__ std::uint32_t group_up_to(const Bounds& bounds, int row, int span, float limit) {
  std::uint32_t bits = 0;
#pragma unroll
  for (int c = 0; c < L::group; ++c)
    if (bounds[row / 2][span * (L::group / 2) + c / 2][2 * (row % 2) + c % 2] <= limit) bits |= 1u << c;
  return bits;
}

/// Chains of differences of a row and some columns, as the reference sums them.
template <int count, class Element>
__device__ __forceinline__ void distances(const Search<Element>& g, std::int64_t m, const std::int64_t (&n)[count],
                                          float (&sum)[count]) {
  using S = l2_squared<float>;
#pragma unroll
  for (int c = 0; c < count; ++c) sum[c] = 0;
#pragma unroll 4
  for (int k = 0; k < g.x.k; k += 4) {
    float x[4], z[count][4];
    g.x.load(x, m, k);
#pragma unroll
    for (int c = 0; c < count; ++c) g.z.load(z[c], n[c], k);
    // Zeros after the last number of both change no sum.
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int c = 0; c < count; ++c) sum[c] = S::step(sum[c], x[i], z[c][i]);
  }
}

}  // namespace rigel::backends::mma::nearest
