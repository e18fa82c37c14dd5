// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recomputes sums of products of floats on CUDA cores where tensor cores found no finite number: a part of a cut operand may be
// infinite or NaN, or a partial sum too large, while the sum itself is not. Each such sum is one chain of fma in ascending k, as
// cuda.simt computes it, so its bits depend on its row and column alone.
//
// A warp recomputes some columns of its outputs at a time, in the registers' layout of its sums. Four numbers along K of each of its rows
// and columns at a time pass through shared memory; lanes load neighbours, whatever the layout, up to two such slabs ahead.
#pragma once

#include <rigel/backends/cuda/tensor/store.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>
#include <rigel/detail/arguments.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace rigel::backends::tensor {

/// How a warp recomputes [rows][columns] blocks of 16 × 8 sums: [tall][wide] blocks at a time, at most `most` sums of a lane, which loads
/// `ahead` slabs ahead. As registers and shared memory allow.
template <int rows, int columns, int most>
struct RecomputedPart {
  static constexpr int tall = std::max(std::min(rows, most / 8), 1), wide = std::min(columns, most / (4 * tall));
  static constexpr int parts_n = columns / wide, parts = rows / tall * parts_n;
  static constexpr int ahead = most > 16 ? 2 : most > 4 ? 1 : 0;
  static constexpr int bytes = (16 * tall + 8 * wide) * 4 * static_cast<int>(sizeof(float));
  static_assert(rows % tall == 0 && columns % wide == 0 && bytes <= StoreBuffer<32, float>::bytes);
};

/// Lines of an operand, rows of A or columns of B, of which a warp loads four numbers along K at a time: each load is of eight lines.
class FourOfLines {
 public:
  /// `lines` lines and `k` numbers of each exist.
  __device__ __forceinline__ FourOfLines(const float* data, std::int64_t line_stride, std::int64_t k_stride, int lines,
                                         int k, int lane)
      : line_stride_(line_stride), k_stride_(k_stride) {
    const bool along_k = k_stride <= line_stride;  // neighbouring lanes take neighbours along K, else of different lines
    const int line = along_k ? lane / 4 : lane % 8, own = along_k ? lane % 4 : lane / 8;
    data_ = data + line * line_stride + own * k_stride;
    lines_ = lines - line;
    left_ = k - own;
    place_ = 4 * line + own;
  }
  /// The lane's number of the eight lines from `first` on; 0 if it does not exist.
  __device__ __forceinline__ float load(int first) const {
    return first < lines_ && left_ > 0 ? data_[first * line_stride_] : 0;
  }
  /// Goes to the next four numbers.
  __device__ __forceinline__ void advance() {
    data_ += 4 * k_stride_;
    left_ -= 4;
  }
  /// Where it lies among the eight lines' in shared memory.
  __device__ __forceinline__ int place() const { return place_; }

 private:
  const float* data_;  // the lane's number of the first eight lines
  std::int64_t line_stride_, k_stride_;
  int lines_, left_, place_;
};

/// sums += Σ_k A(l, m + …, k)·B(l, k, n + …), one chain each: sums[i][j] are those of rows `apart`·i and columns 8·j on, as arch::Mma
/// has them. Rows and columns outside of C get 0.
template <int apart, int ahead, class S, class Finish, int rows, int columns>
__device__ __forceinline__ void add_chains(const detail::Arguments<S, Finish>& g, float (&sums)[rows][columns][4],
                                           std::int64_t l, std::int64_t m, std::int64_t n, float* buffer, int lane) {
  using Four = tile::Chunk<float, 4>;
  const auto last_k = static_cast<int>(g.k);
  const auto last = [](std::int64_t left, int most) { return static_cast<int>(std::min<std::int64_t>(left, most)); };
  FourOfLines a(&g.a.at(l, m, 0), g.a.row, g.a.column, last(g.m - m, apart * rows), last_k, lane);
  FourOfLines b(&g.b.at(l, 0, n), g.b.column, g.b.row, last(g.n - n, 8 * columns), last_k, lane);
  float* const buffer_b = buffer + 64 * rows;
  struct Slab {
    float a[2 * rows], b[columns];
  };
  Slab slabs[std::max(ahead, 1)];
  const auto load = [&](Slab& slab) __attribute__((always_inline)) {
#pragma unroll
    for (int i = 0; i < 2 * rows; ++i) slab.a[i] = a.load(i / 2 * apart + i % 2 * 8);
#pragma unroll
    for (int j = 0; j < columns; ++j) slab.b[j] = b.load(8 * j);
    a.advance();
    b.advance();
  };
#pragma unroll
  for (int s = 0; s < ahead; ++s) load(slabs[s]);
#pragma unroll 1
  for (int k = 0; k < last_k; k += 4) {
    if constexpr (ahead == 0) load(slabs[0]);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2 * rows; ++i) buffer[32 * i + a.place()] = slabs[0].a[i];
#pragma unroll
    for (int j = 0; j < columns; ++j) buffer_b[32 * j + b.place()] = slabs[0].b[j];
    __syncwarp();
#pragma unroll
    for (int s = 1; s < ahead; ++s) slabs[s - 1] = slabs[s];
    if constexpr (ahead > 0) load(slabs[ahead - 1]);

    Four of_a[rows][2];
#pragma unroll
    for (int i = 0; i < 2 * rows; ++i) of_a[i / 2][i % 2] = Four::load(buffer + 32 * i + lane / 4 * 4);
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const float* const from = buffer_b + 32 * j + lane % 4 * 8;
      const Four of_b[2] = {Four::load(from), Four::load(from + 4)};
#pragma unroll
      for (int step = 0; step < 4; ++step)
#pragma unroll
        for (int i = 0; i < rows; ++i)
#pragma unroll
          for (int r = 0; r < 4; ++r)
            sums[i][j][r] = math::fma(of_a[i][r / 2].value[step], of_b[r % 2].value[step], sums[i][j][r]);
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
/// RecomputedPart::bytes of shared memory.
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
    add_chains<apart, Part::ahead>(g, sums, l, m + part / Part::parts_n * tall * apart, n + part % Part::parts_n * wide * 8,
                                   buffer, lane);
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
