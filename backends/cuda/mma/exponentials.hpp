// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass over both operands of a log_plus. It computes, for each line (row of A, column of B), the maximum over k, and exp(x
// − maximum) as two 16-bit numbers, K-major. Operands may have any strides: a few warps take a line of a K-major one;
// otherwise a block takes eight lines, which pass through shared memory.
#pragma once

#include <rigel/backends/cuda/arch/shuffle.hpp>
#include <rigel/backends/cuda/mma/store_results.hpp>
#include <rigel/semirings.hpp>

namespace rigel::backends::mma {

/// A line of an operand: its maximum over k, and Σ_k exp(x − maximum), rounded up by at most K²·2^-30. That is little for K
/// below 2^15, and more of it only marks more outputs. The bits do not depend on the order. The sum's sign says whether some of
/// the numbers are −∞.
struct ExponentialLine {
  float maximum, signed_sum;
  __device__ __forceinline__ float sum() const { return math::abs(signed_sum); }
  __device__ __forceinline__ bool has_least() const { return __float_as_int(signed_sum) < 0; }
};

/// What is subtracted from a line's numbers. A line of −∞ alone has exponentials of 0.
__device__ __forceinline__ float subtrahend(float maximum) { return maximum == -infinity<float>() ? 0 : maximum; }

/// exp(x − maximum) by the special-function unit: within 4 u, its argument within 2.25·|x − maximum|·u (the difference, the
/// product and log₂ e are rounded). It is 0 below 2^-126, and NaN if both are +∞.
__device__ __forceinline__ float exponential_against(float subtrahend, float x) {
  float e;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(math::subtract(x, subtrahend) * 1.44269504088896340736f));
  return e;
}

/// The factor of exponentials before they are rounded to 16 bits. The largest number then is 2^15, and its rest times
/// rest_scale at most 2^14. Numbers from 2^-29 on are off by 2^-22 of themselves, smaller ones by 2^-51.
inline constexpr float pair_scale = 0x1p15f;

/// An operand and its prepared form: for each 32 k first the upper parts, then the rests, with zeros after the last k.
struct Exponentials {
  static constexpr int slab = 32, threads = 256, warps = threads / 32;  // k; of a block
  static constexpr int run = 16;                                        // numbers that a thread holds
  static constexpr int lines_across = 8;

  /// Warps that share a K-major line: as many as hold it, up to a block.
  static constexpr int warps_of_line(std::int64_t k) {
    return k <= 32 * run ? 1 : k <= 64 * run ? 2 : k <= 128 * run ? 4 : warps;
  }

  const float* from;
  std::int64_t matrix_stride, line_stride, k_stride;
  std::int64_t lines, pitch;
  int k;
  unsigned groups;  // blocks of a matrix
  float count;      // 1 / unit()
  half* to;
  ExponentialLine* of_lines;

  /// The unit, as a share of 1, in which integers count the sum of a line's exponentials.
  constexpr float unit() const {
    float u = 0x1p-31f;
    for (std::int64_t many = 1; many < k; many *= 2) u *= 2;
    return u;
  }
  constexpr bool along_k() const { return k_stride <= line_stride; }
  constexpr int lines_of_block() const { return along_k() ? warps / warps_of_line(k) : lines_across; }

  /// What a block shares: exponentials of a stretch of K, padded against bank conflicts; a value for each warp, or for each
  /// of its lines.
  struct Shared {
    float tile[run * threads + 32];
    std::uint64_t of_warp[warps][lines_across];
  };

  /// A line's maximum, and whether it has −∞: one value, which is joined at once.
  struct Extremes {
    float maximum = -infinity<float>();
    std::uint32_t has_least = 0;
    __device__ __forceinline__ std::uint64_t packed() const {
      return std::uint64_t{has_least} << 32 | __float_as_uint(maximum);
    }
    __device__ __forceinline__ static Extremes of(std::uint64_t packed) {
      return {__uint_as_float(static_cast<std::uint32_t>(packed)), static_cast<std::uint32_t>(packed >> 32)};
    }
    __device__ __forceinline__ static std::uint64_t joined(std::uint64_t u, std::uint64_t v) {
      const Extremes x = of(u), y = of(v);
      return Extremes{math::maximum(x.maximum, y.maximum), x.has_least | y.has_least}.packed();
    }
    /// Includes a number if it exists; otherwise it is −∞.
    __device__ __forceinline__ void add(float x, bool exists) {
      maximum = math::maximum(maximum, x);
      has_least |= exists && x == -infinity<float>();
    }
  };
  static std::uint64_t __device__ __forceinline__ added(std::uint64_t u, std::uint64_t v) { return u + v; }

  /// What is left of a line: Σ from the number of units, rounded up, since each term was rounded by at most half a unit.
  __device__ __forceinline__ ExponentialLine line_of(const Extremes& x, std::uint64_t units) const {
    const float sum = static_cast<float>(static_cast<std::uint32_t>(units) + static_cast<std::uint32_t>(k)) / count;
    return {x.maximum, x.has_least != 0 ? -sum : sum};
  }

  typedef float Two __attribute__((ext_vector_type(2)));

  /// Stores both parts of the exponentials of k = `at`, which is even, and of the next k, as far as the last slab reaches.
  __device__ __forceinline__ void put(half* line, int at, Two e) const {
    typedef _Float16 Parts __attribute__((ext_vector_type(2)));
    if (at >= (k + slab - 1) / slab * slab) return;
    const Two x = e * pair_scale;
    const Parts upper = __builtin_convertvector(x, Parts);
    const Parts rest = __builtin_convertvector((x - __builtin_convertvector(upper, Two)) * rest_scale, Parts);
    half* const place = line + at / slab * (2 * slab) + at % slab;
    *reinterpret_cast<Parts*>(place) = upper;
    *reinterpret_cast<Parts*>(place + slab) = rest;
  }

  /// K-major operands: a few warps take a line, and a thread two neighbouring k at a time.
  __device__ __forceinline__ void take_along_k(std::int64_t matrix, std::int64_t group, Shared& shared) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int together = warps_of_line(k), stretch = together * 32 * run, first = (warp % together * 32 + lane) * 2;
    const std::int64_t line = group * (warps / together) + warp / together;
    const bool present = line < lines;
    const float* const p = from + matrix * matrix_stride + line * line_stride;
    const bool in_twos = present && k_stride == 1 && reinterpret_cast<std::uintptr_t>(p) % sizeof(Two) == 0;
    Two x[run / 2];
    const auto place = [&](int k0, int i) { return k0 + i * together * 64 + first; };
    const auto load = [&](int k0) __attribute__((always_inline)) {
      if (in_twos && k0 + stretch <= k) {
#pragma unroll
        for (int i = 0; i < run / 2; ++i) x[i] = *reinterpret_cast<const Two*>(p + place(k0, i));
      } else {
#pragma unroll
        for (int i = 0; i < run / 2; ++i)
#pragma unroll
          for (int j = 0; j < 2; ++j)
            x[i][j] = present && place(k0, i) + j < k ? p[(place(k0, i) + j) * k_stride] : -infinity<float>();
      }
    };
    // Joins the values of a line's threads.
    const auto joined = [&](std::uint64_t mine, const auto& add) __attribute__((always_inline)) {
      mine = arch::joined_lanes(mine, add);
      if (together == 1) return mine;
      __syncthreads();
      if (lane == 0) shared.of_warp[warp][0] = mine;
      __syncthreads();
      std::uint64_t all = shared.of_warp[warp / together * together][0];
#pragma unroll 1
      for (int i = 1; i < together; ++i) all = add(all, shared.of_warp[warp / together * together + i][0]);
      return all;
    };
    Extremes extremes;
    std::uint32_t sum = 0;
#pragma unroll 1
    for (int k0 = 0; k0 < k; k0 += stretch) {
      load(k0);
#pragma unroll
      for (int i = 0; i < run / 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) extremes.add(x[i][j], place(k0, i) + j < k);
    }
    extremes = Extremes::of(joined(extremes.packed(), Extremes::joined));
    const float against = subtrahend(extremes.maximum);
    half* const out = to + (matrix * lines + line) * pitch;
#pragma unroll 1
    for (int k0 = 0; k0 < k; k0 += stretch) {
      if (k > stretch) load(k0);
#pragma unroll
      for (int i = 0; i < run / 2; ++i) {
        const Two e = {exponential_against(against, x[i].x), exponential_against(against, x[i].y)};
        sum += __float2uint_rn(e.x * count) + __float2uint_rn(e.y * count);
        if (present) put(out, place(k0, i), e);
      }
    }
    const std::uint64_t units = joined(sum, added);
    if (lane == 0 && warp % together == 0 && present) of_lines[matrix * lines + line] = line_of(extremes, units);
  }

  /// Other operands: a block takes neighbouring lines, and thread t has line t mod `lines_across`.
  __device__ __forceinline__ void take_across(std::int64_t matrix, std::int64_t group, Shared& shared) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int line = lane % lines_across, first = static_cast<int>(threadIdx.x) / lines_across;
    const std::int64_t line0 = group * lines_across;
    const bool present = line0 + line < lines;
    const float* const p = from + matrix * matrix_stride + (line0 + line) * line_stride;
    constexpr int apart_in_k = threads / lines_across, stretch = run * apart_in_k,
                  pitch_of_tile = stretch + 32 / lines_across;
    float x[run];
    const auto load = [&](int k0) __attribute__((always_inline)) {
      // How many of this thread's numbers exist.
      const int left = k - k0 - first, count = present && left > 0 ? (left + apart_in_k - 1) / apart_in_k : 0;
      const float* at = p + (k0 + first) * k_stride;
#pragma unroll
      for (int i = 0; i < run; ++i) {
        x[i] = i < count ? *at : -infinity<float>();
        at += apart_in_k * k_stride;
      }
    };
    const auto joined = [&](std::uint64_t mine, const auto& add) __attribute__((always_inline)) {
      mine = arch::joined_lanes<lines_across>(mine, add);
      __syncthreads();
      if (lane < lines_across) shared.of_warp[warp][line] = mine;
      __syncthreads();
      std::uint64_t all = shared.of_warp[0][line];
#pragma unroll
      for (int i = 1; i < warps; ++i) all = add(all, shared.of_warp[i][line]);
      return all;
    };
    Extremes extremes;
    std::uint32_t sum = 0;
#pragma unroll 1
    for (int k0 = 0; k0 < k; k0 += stretch) {
      load(k0);
#pragma unroll
      for (int i = 0; i < run; ++i) extremes.add(x[i], k0 + first + apart_in_k * i < k);
    }
    extremes = Extremes::of(joined(extremes.packed(), Extremes::joined));
    const float against = subtrahend(extremes.maximum);
#pragma unroll 1
    for (int k0 = 0; k0 < k; k0 += stretch) {
      if (k > stretch) load(k0);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < run; ++i) {
        const float e = exponential_against(against, x[i]);
        sum += __float2uint_rn(e * count);
        shared.tile[line * pitch_of_tile + apart_in_k * i + first] = e;
      }
      __syncthreads();
      for (int i = warp; i < lines_across && line0 + i < lines; i += warps) {
        half* const out = to + (matrix * lines + line0 + i) * pitch;
#pragma unroll
        for (int j = 0; j < stretch; j += 64)
          put(out, k0 + j + 2 * lane, *reinterpret_cast<const Two*>(&shared.tile[i * pitch_of_tile + j + 2 * lane]));
      }
    }
    const std::uint64_t units = joined(sum, added);
    if (warp == 0 && lane < lines_across && present) of_lines[matrix * lines + line0 + line] = line_of(extremes, units);
  }
};

/// Both operands, A's blocks before B's; and words to set to 0.
struct ExponentialsOfBoth {
  Exponentials a, b;
  unsigned blocks_of_a;
  std::uint32_t* zeros;
  std::int64_t words;
};

template <int threads>
__global__ void __launch_bounds__(threads) exponentials(const __grid_constant__ ExponentialsOfBoth g) {
  static_assert(threads == Exponentials::threads);
  __shared__ __attribute__((aligned(16))) Exponentials::Shared shared;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < g.words;
       i += std::int64_t{gridDim.x} * threads)
    g.zeros[i] = 0;
  const bool of_a = blockIdx.x < g.blocks_of_a;
  const Exponentials& mine = of_a ? g.a : g.b;
  const unsigned block = of_a ? blockIdx.x : blockIdx.x - g.blocks_of_a;
  if (mine.along_k())
    mine.take_along_k(block / mine.groups, block % mine.groups, shared);
  else
    mine.take_across(block / mine.groups, block % mine.groups, shared);
}

}  // namespace rigel::backends::mma
