// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass over both operands of a log_plus: every line's maximum over k, and exp(x − maximum) as two numbers of 16 bits, lines along
// k. Any strides: where k is contiguous a warp takes a line; else a block takes 16 lines, which pass through shared memory.
#pragma once

#include <backends/cuda/mma/kernel.hpp>
#include <rigel/semirings.hpp>

namespace rigel::backends::mma {

/// A line of an operand: its maximum over k, and Σ_k exp(x − maximum).
struct Line {
  float maximum, sum;
};

/// exp(x − maximum), the difference rounded once; −∞ gives 0 whatever the maximum. NaN where both are +∞.
__device__ __forceinline__ float exponential_against(float maximum, float x) {
  return x == -infinity<float>() ? 0.f : math::exponential(math::subtract(x, maximum));
}

/// What exponentials are multiplied by before they are rounded to 16 bits: the largest number then is 2^15, whose rest, times
/// rest_scale, is 2^14 at most. Numbers from 2^-29 on are off by 2^-22 of themselves; smaller ones by 2^-51.
inline constexpr float pair_scale = 0x1p15f;

/// An operand, and what becomes of it: of each 32 values of k, the last ones absent, first the upper parts, then the rests.
struct Exponentials {
  static constexpr int slab = 32;  // values of k
  static constexpr int lines_along_k = 8, lines_across = 16,
                       run = 16;  // lines of a block; loads of a thread that are under way

  const float* from;
  std::int64_t matrix_stride, line_stride, k_stride;
  std::int64_t lines, k, pitch;
  unsigned groups;  // blocks of a matrix
  half* to;
  Line* of_lines;

  RIGEL_FUNCTION bool along_k() const { return k_stride <= line_stride; }

  /// Stores the parts of e, the exponential of (line, k).
  __device__ __forceinline__ static void put(half* line, std::int64_t k, float e) {
    const float x = e * pair_scale;
    const half upper = x;
    half* const at = line + k / slab * (2 * slab) + k % slab;
    at[0] = upper;
    at[slab] = half((x - upper) * rest_scale);
  }

  /// A line by a warp.
  __device__ __forceinline__ void take_line(std::int64_t matrix, std::int64_t group) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t line = group * lines_along_k + threadIdx.x / 32;
    if (line >= lines) return;
    const float* const p = from + matrix * matrix_stride + line * line_stride;
    float x[run];
    const auto load = [&](std::int64_t k0) __attribute__((always_inline)) {
#pragma unroll
      for (int i = 0; i < run; ++i) {
        const std::int64_t at = k0 + 32 * i + lane;
        x[i] = at < k ? p[at * k_stride] : -infinity<float>();
      }
    };
    float maximum = -infinity<float>(), sum = 0;
#pragma unroll 1
    for (std::int64_t k0 = 0; k0 < k; k0 += 32 * run) {
      load(k0);
#pragma unroll
      for (int i = 0; i < run; ++i) maximum = math::maximum(maximum, x[i]);
    }
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) maximum = math::maximum(maximum, __shfl_xor_sync(~0u, maximum, apart));
    half* const out = to + (matrix * lines + line) * pitch;
#pragma unroll 1
    for (std::int64_t k0 = 0; k0 < k; k0 += 32 * run) {
      load(k0);
#pragma unroll
      for (int i = 0; i < run; ++i) {
        if (k0 + 32 * i >= k) break;
        const float e = exponential_against(maximum, x[i]);
        sum = math::add(sum, e);
        put(out, k0 + 32 * i + lane, e);
      }
    }
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) sum = math::add(sum, __shfl_xor_sync(~0u, sum, apart));
    if (lane == 0) of_lines[matrix * lines + line] = {maximum, sum};
  }

  /// What take_lines() shares: exponentials of a stretch of k, a number more than banks apart; one number of each thread.
  struct Shared {
    float tile[lines_across][16 * run + 2], of_thread[16][lines_across + 1];
  };

  /// Neighbouring lines by a block of 256 threads: thread t has line t mod 16, and every 16th value of k.
  __device__ __forceinline__ void take_lines(std::int64_t matrix, std::int64_t group, Shared& shared) const {
    const int line = static_cast<int>(threadIdx.x) % 16, first = static_cast<int>(threadIdx.x) / 16;
    const std::int64_t line0 = group * lines_across;
    const bool present = line0 + line < lines;
    const float* const p = from + matrix * matrix_stride + (line0 + line) * line_stride;
    float x[run];
    const auto load = [&](std::int64_t k0) __attribute__((always_inline)) {
#pragma unroll
      for (int i = 0; i < run; ++i) {
        const std::int64_t at = k0 + 16 * i + first;
        x[i] = present && at < k ? p[at * k_stride] : -infinity<float>();
      }
    };
    // The value that ⊕ of the line's 16 threads gives.
    const auto joined = [&](float mine, const auto& add) __attribute__((always_inline)) {
      __syncthreads();
      shared.of_thread[first][line] = mine;
      __syncthreads();
      float all = shared.of_thread[0][line];
#pragma unroll
      for (int i = 1; i < 16; ++i) all = add(all, shared.of_thread[i][line]);
      return all;
    };
    float maximum = -infinity<float>(), sum = 0;
#pragma unroll 1
    for (std::int64_t k0 = 0; k0 < k; k0 += 16 * run) {
      load(k0);
#pragma unroll
      for (int i = 0; i < run; ++i) maximum = math::maximum(maximum, x[i]);
    }
    maximum = joined(maximum, [](float u, float v) { return math::maximum(u, v); });
#pragma unroll 1
    for (std::int64_t k0 = 0; k0 < k; k0 += 16 * run) {
      load(k0);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < run; ++i) {
        const float e = exponential_against(maximum, x[i]);
        sum = math::add(sum, e);
        shared.tile[line][16 * i + first] = e;
      }
      __syncthreads();
      const int lane = static_cast<int>(threadIdx.x) % 32;
      for (int i = static_cast<int>(threadIdx.x) / 32; i < lines_across; i += 8) {
        if (line0 + i >= lines) break;
        half* const out = to + (matrix * lines + line0 + i) * pitch;
#pragma unroll
        for (int j = 0; j < run / 2; ++j)
          if (k0 + 32 * j < k) put(out, k0 + 32 * j + lane, shared.tile[i][32 * j + lane]);
      }
    }
    sum = joined(sum, [](float u, float v) { return math::add(u, v); });
    if (first == 0 && present) of_lines[matrix * lines + line0 + line] = {maximum, sum};
  }
};

/// Both operands, the blocks of the first before those of the second; and words that shall be 0.
struct ExponentialsOfBoth {
  Exponentials a, b;
  unsigned blocks_of_a;
  std::uint32_t* zeros;
  std::int64_t words;
};

template <int threads>
__global__ void __launch_bounds__(threads) exponentials(const __grid_constant__ ExponentialsOfBoth g) {
  static_assert(threads == 256);
  __shared__ Exponentials::Shared shared;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < g.words;
       i += std::int64_t{gridDim.x} * threads)
    g.zeros[i] = 0;
  const bool of_a = blockIdx.x < g.blocks_of_a;
  const Exponentials& mine = of_a ? g.a : g.b;
  const unsigned block = of_a ? blockIdx.x : blockIdx.x - g.blocks_of_a;
  if (mine.along_k())
    mine.take_line(block / mine.groups, block % mine.groups);
  else
    mine.take_lines(block / mine.groups, block % mine.groups, shared);
}

}  // namespace rigel::backends::mma
