// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recomputes sums of products of floats on CUDA cores where tensor cores found no finite number: a part of a cut operand may be
// infinite or NaN, or a partial sum too large, while the sum itself is not. Each such sum is one chain of fma in ascending k, as
// cuda.simt computes it, so its bits depend on its row and column alone.
//
// A warp recomputes some columns of its outputs at a time, in the registers' layout of its sums. Eight rows of A or eight columns of
// B at a time pass through shared memory, where they come with neighbouring addresses; a lane keeps its rows of a slab in registers.
// A single such sum thus costs as much as all of the warp's columns of that part, but a call full of them runs at two thirds of
// cuda.simt's speed.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>
#include <rigel/detail/arguments.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace rigel::backends::tensor {

/// How a warp recomputes [rows][columns] blocks of 16 × 8 sums: [tall][wide] blocks at a time, at most `most` sums of a lane, from
/// slabs of `depth` along K.
template <int rows, int columns, int most>
struct RecomputedPart {
  static constexpr int depth = rows == 1 ? 8 : 4, tall = std::max(std::min(rows, most / 8), 1);
  static constexpr int wide = std::min(columns, most / (4 * tall));
  static constexpr int parts_n = columns / wide, parts = rows / tall * parts_n;
  static_assert(rows % tall == 0 && columns % wide == 0);
};

/// Lines of an operand, rows of A or columns of B: eight at a time come through a warp's shared memory, `depth` along K of each.
/// Neighbouring lanes load neighbours along K, or of different lines.
template <int depth>
class EightLines {
 public:
  static constexpr int pitch = depth == 4 ? 4 : depth + 4;  // four numbers of each of eight lines use all 32 banks
  static constexpr int bytes = 8 * pitch * static_cast<int>(sizeof(float));
  static constexpr int of_lane = 8 * depth / 32;  // numbers
  using Numbers = float[of_lane];

  /// `lines` lines exist.
  __device__ __forceinline__ EightLines(const float* data, std::int64_t line_stride, std::int64_t k_stride, int lines)
      : data_(data), line_stride_(line_stride), k_stride_(k_stride), lines_(lines) {}

  /// Loads the lane's numbers of the lines from `first` on. `left` of the slab and those after it exist along K; the others are 0.
  __device__ __forceinline__ void load(Numbers& numbers, int first, int left) const {
    const Own own(along_k());
    const float* const from = data_ + (first + own.line) * line_stride_ + own.k * k_stride_;
#pragma unroll
    for (int i = 0; i < of_lane; ++i) {
      const int line = first + own.line + i * own.lines_apart, k = own.k + i * own.k_apart;
      numbers[i] = line < lines_ && k < left ? from[i * (own.lines_apart * line_stride_ + own.k_apart * k_stride_)] : 0;
    }
  }
  /// Goes to the next slab.
  __device__ __forceinline__ void advance() { data_ += depth * k_stride_; }
  /// Puts all lanes' numbers to shared memory.
  __device__ __forceinline__ void exchange(const Numbers& numbers, float* buffer) const {
    const Own own(along_k());
    __syncwarp();
#pragma unroll
    for (int i = 0; i < of_lane; ++i)
      buffer[(own.line + i * own.lines_apart) * pitch + own.k + i * own.k_apart] = numbers[i];
    __syncwarp();
  }

 private:
  /// The place of a lane's first number, and how far the next one is. Found again at each use, so that it takes no registers.
  struct Own {
    int line, k, lines_apart, k_apart;
    __device__ __forceinline__ explicit Own(bool along_k) {
      const int lane = arch::lane_index();
      line = along_k ? lane / depth : lane % 8, lines_apart = along_k ? 32 / depth : 0;
      k = along_k ? lane % depth : lane / 8, k_apart = along_k ? 0 : 4;
    }
  };
  __device__ __forceinline__ bool along_k() const { return k_stride_ <= line_stride_; }

  const float* data_;
  std::int64_t line_stride_, k_stride_;
  int lines_;
};

/// sums += Σ_k A(l, m + …, k)·B(l, k, n + …), one chain each: sums[i][j] are those of rows `apart`·i and columns 8·j on, as arch::Mma
/// has them. Rows and columns outside of C get 0. `ahead`: numbers are loaded while those before them are summed.
template <int apart, int depth, bool ahead, class S, class Finish, int rows, int columns>
__device__ __forceinline__ void add_chains(const detail::Arguments<S, Finish>& g, float (&sums)[rows][columns][4],
                                           std::int64_t l, std::int64_t m, std::int64_t n, float* buffer, int lane) {
  using Lines = EightLines<depth>;
  using Four = tile::Chunk<float, 4>;
  const auto last_k = static_cast<int>(g.k);
  const auto last = [](std::int64_t left, int most) { return static_cast<int>(std::min<std::int64_t>(left, most)); };
  Lines a(&g.a.at(l, m, 0), g.a.row, g.a.column, last(g.m - m, apart * rows));
  Lines b(&g.b.at(l, 0, n), g.b.column, g.b.row, last(g.n - n, 8 * columns));
  typename Lines::Numbers next_a[rows][2], next_b;
  const auto load_a = [&](int left) __attribute__((always_inline)) {
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) a.load(next_a[i][half], apart * i + 8 * half, left);
  };
  if constexpr (ahead) {
    load_a(last_k);
    b.load(next_b, 0, last_k);
  }
#pragma unroll 1
  for (int k = 0; k < last_k; k += depth) {
    float of_a[rows][2][depth];
    if constexpr (!ahead) load_a(last_k - k);
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        a.exchange(next_a[i][half], buffer);
#pragma unroll
        for (int q = 0; q < depth; q += 4) {
          const auto four = Four::load(buffer + lane / 4 * Lines::pitch + q);
#pragma unroll
          for (int v = 0; v < 4; ++v) of_a[i][half][q + v] = four.value[v];
        }
      }
    a.advance();
    if constexpr (ahead) load_a(last_k - k - depth);
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const bool ends = j + 1 == columns;
      if constexpr (!ahead) b.load(next_b, 8 * j, last_k - k);
      b.exchange(next_b, buffer);
      if (ends) b.advance();
      if constexpr (ahead) b.load(next_b, ends ? 0 : 8 * (j + 1), last_k - k - (ends ? depth : 0));
#pragma unroll
      for (int q = 0; q < depth; q += 4) {
        const float* const from = buffer + lane % 4 * 2 * Lines::pitch + q;
        const Four of_b[2] = {Four::load(from), Four::load(from + Lines::pitch)};
#pragma unroll
        for (int step = 0; step < 4; ++step)
#pragma unroll
          for (int i = 0; i < rows; ++i)
#pragma unroll
            for (int r = 0; r < 4; ++r)
              sums[i][j][r] = math::fma(of_a[i][r / 2][q + step], of_b[r % 2].value[step], sums[i][j][r]);
      }
    }
  }
}

/// Whether all of a lane's sums in [tall][wide] blocks from [top][left] on are finite.
template <int top, int left, int tall, int wide, int rows, int columns>
__device__ __forceinline__ bool are_finite(const float (&x)[rows][columns][4]) {
  float nothing = 0;  // or NaN
#pragma unroll
  for (int i = top; i < top + tall; ++i)
#pragma unroll
    for (int j = left; j < left + wide; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) nothing = math::fma(x[i][j][r], 0.f, nothing);
  return nothing == 0;
}

/// use.operator()<p>() for p from 0 to count - 1.
template <int count, int p = 0, class Use>
__device__ __forceinline__ void for_each_part(const Use& use) {
  if constexpr (p < count) {
    use.template operator()<p>();
    for_each_part<count, p + 1>(use);
  }
}

/// Recomputes those of a warp's sums that are not finite; C(l, m, n) is the first. `x`, `apart`: as in add_chains(); `buffer` has
/// EightLines::bytes of shared memory. `most`: sums of a lane at a time, as registers allow; with 4 there are none to load ahead.
template <int apart, int most, class S, class Finish, int rows, int columns>
__device__ __forceinline__ void recompute_non_finite(const detail::Arguments<S, Finish>& g, float (&x)[rows][columns][4],
                                                     std::int64_t l, std::int64_t m, std::int64_t n, float* buffer,
                                                     int lane) {
  using Part = RecomputedPart<rows, columns, most>;
  constexpr int tall = Part::tall, wide = Part::wide;
  if (__all_sync(~0u, are_finite<0, 0, rows, columns>(x))) return;
#pragma unroll 1
  for (int part = 0; part < Part::parts; ++part) {
    bool finite = true;
    for_each_part<Part::parts>([&]<int p>() __attribute__((always_inline)) {
      if (p == part) finite = are_finite<p / Part::parts_n * tall, p % Part::parts_n * wide, tall, wide>(x);
    });
    if (__all_sync(~0u, finite)) continue;
    float sums[tall][wide][4] = {};
    add_chains<apart, Part::depth, (most > 4)>(g, sums, l, m + part / Part::parts_n * tall * apart,
                                               n + part % Part::parts_n * wide * 8, buffer, lane);
    for_each_part<Part::parts>([&]<int p>() __attribute__((always_inline)) {
      if (p != part) return;
#pragma unroll
      for (int i = 0; i < tall; ++i)
#pragma unroll
        for (int j = 0; j < wide; ++j)
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            float& sum = x[p / Part::parts_n * tall + i][p % Part::parts_n * wide + j][r];
            sum = math::abs(sum) <= std::numeric_limits<float>::max() ? sum : sums[i][j][r];
          }
    });
  }
}

}  // namespace rigel::backends::tensor
