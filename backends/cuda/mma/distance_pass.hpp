// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass before distances on tensor cores. It subtracts a common centre c from both operands and computes the norms of
// their rows (x is a row of A, z a column of B),
//     norm = Σ_k (x_k − c_k)².
// It leaves x − c as doubles, or as pairs of halves:
//     x − c = (upper + lower)·factor.
// A row of halves is scaled by a power of two of its own, so that its largest value has exponent 14. Halves then hold 22
// bits of every value that counts for the norm (H. Ootomo, R. Yokota, Recovering single precision accuracy from Tensor Cores
// while surpassing the FP32 theoretical peak performance, 2022).
#pragma once

#include <rigel/backends/cuda/arch/launch.hpp>
#include <rigel/backends/cuda/arch/shuffle.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>
#include <rigel/numeric.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace rigel::backends::mma {

/// What |x|² + |z|² − 2x·z needs of a row besides its halves.
struct ScaledLine {
  float norm, factor;
};
/// What it needs besides its doubles.
struct NormedLine {
  double norm;
};
template <class Stored>
using line_t = std::conditional_t<std::is_same_v<Stored, half>, ScaledLine, NormedLine>;

/// Elements along K in 128 bytes; of halves, the upper parts of all, then their lower parts.
template <class Stored>
inline constexpr int values_together = 128 / (std::is_same_v<Stored, half> ? 4 : 8);
/// Numbers in a prepared row.
template <class Stored>
constexpr std::int64_t numbers_of(std::int64_t k) {
  constexpr int together = values_together<Stored>, numbers = 128 / static_cast<int>(sizeof(Stored));
  return (k + together - 1) / together * numbers;
}

/// `matrices` of `lines` rows, and their prepared form.
template <class Element, class Stored>
struct Prepared {
  const Element* from;
  std::int64_t matrix_stride, line_stride, k_stride;
  std::int64_t matrices, lines;
  Stored* numbers;
  line_t<Stored>* line;
};

/// Both operands. If one of them serves all batches and the other does not, it is the first.
template <class Element, class Stored>
struct Preparation {
  Prepared<Element, Stored> of[2];
  std::int64_t k;
  unsigned blocks_of_first;
  unsigned *counters, counter_count;  // are set to 0
};

/// Rows per block; elements of a row in shared memory; rows whose median is the centre.
inline constexpr int prepared_lines = 8, centre_samples = 8;
template <class Element>
inline constexpr int prepared_values = 4096 / static_cast<int>(sizeof(Element));
template <class Element, class Stored>
std::int64_t preparing_blocks(const Prepared<Element, Stored>& o) {
  return o.matrices * ((o.lines + prepared_lines - 1) / prepared_lines);
}

/// 2^exponent of a normal number.
__device__ __forceinline__ float power_of_two(int exponent) { return __int_as_float((exponent + 127) << 23); }

/// The sum, or the largest value, over a warp.
template <class T>
__device__ __forceinline__ T warp_sum(T x) {
  return arch::joined_lanes(x, [](T u, T v) { return math::add(u, v); });
}
__device__ __forceinline__ float warp_largest(float x) {
  return arch::joined_lanes(x, [](float u, float v) { return fmaxf(u, v); });
}

/// The mean of the middle two of eight, which a few outliers do not move (K. E. Batcher, Sorting networks and their
/// applications, 1968: odd-even merge sort). NaN is ignored.
template <class Element>
__device__ __forceinline__ Element middle_of(Element (&x)[centre_samples]) {
  static_assert(centre_samples == 8);
  const auto order = [&](int i, int j) __attribute__((always_inline)) {
    const Element low = ::fmin(x[i], x[j]), high = ::fmax(x[i], x[j]);
    x[i] = low, x[j] = high;
  };
  order(0, 1), order(2, 3), order(4, 5), order(6, 7);
  order(0, 2), order(1, 3), order(4, 6), order(5, 7);
  order(1, 2), order(5, 6), order(0, 4), order(3, 7);
  order(1, 5), order(2, 6);
  order(1, 4), order(3, 6);
  order(2, 4), order(3, 5);
  order(3, 4);
  return math::fma(Element(0.5), x[3], math::multiply(Element(0.5), x[4]));
}

/// What elements of a row add to a lane's share of its norm and of its largest value.
__device__ __forceinline__ void measure(const float* values, const float* centre, int count, int lane, double& squares,
                                        float& largest) {
#pragma unroll 4
  for (int k = lane; k < count; k += 32) {
    const float v = math::subtract(values[k], centre[k]);
    squares = fma(static_cast<double>(v), static_cast<double>(v), squares);
    largest = fmaxf(largest, math::abs(v));
  }
}

/// Writes elements of a row, from k0 on, as upper and lower halves.
__device__ __forceinline__ void write_halves(const float* values, const float* centre, int count, int lane, float scale,
                                             half* row, std::int64_t k0) {
  constexpr int together = values_together<half>;
#pragma unroll 1
  for (int k = 8 * lane; k < count; k += 8 * 32) {
    struct alignas(16) Eight {
      half value[8];
    } upper, lower;
    tile::Chunk<float, 4> line[2], c[2];
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      line[part] = tile::Chunk<float, 4>::load(&values[k + 4 * part]);
      c[part] = tile::Chunk<float, 4>::load(&centre[k + 4 * part]);
    }
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      const float x = math::multiply(math::subtract(line[v / 4].value[v % 4], c[v / 4].value[v % 4]), scale);
      upper.value[v] = half(x);
      lower.value[v] = half(math::subtract(x, static_cast<float>(upper.value[v])));
    }
    half* const at = row + (k0 + k) / together * (2 * together) + k % together;
    *reinterpret_cast<Eight*>(at) = upper;
    *reinterpret_cast<Eight*>(at + together) = lower;
  }
}

/// A warp prepares a row. The centre is the median of a few rows of the first operand: the same in all blocks.
template <class Element, class Stored>
__global__ void __launch_bounds__(32 * prepared_lines, 4) prepare(const __grid_constant__ Preparation<Element, Stored> g) {
  arch::allow_next_launch();
  constexpr int threads = 32 * prepared_lines, at_once = prepared_values<Element>, together = values_together<Stored>;
  constexpr int pitch_of_values = at_once + 16 / static_cast<int>(sizeof(Element));
  constexpr bool in_halves = std::is_same_v<Stored, half>;
  static_assert(!in_halves || std::is_same_v<Element, float>);
  __shared__ __attribute__((aligned(16))) Element values[prepared_lines][pitch_of_values], centre[at_once];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < g.counter_count;
       i += std::uint64_t{gridDim.x} * threads)
    g.counters[i] = 0;

  const bool second = blockIdx.x >= g.blocks_of_first;
  const Prepared<Element, Stored>&o = g.of[second], &sampled = g.of[0];
  // Blocks and rows are fewer than 2^31, so divisions are short.
  const unsigned block = blockIdx.x - (second ? g.blocks_of_first : 0);
  const auto lines = static_cast<unsigned>(o.lines), in_matrix = (lines + prepared_lines - 1) / prepared_lines;
  const unsigned matrix = block / in_matrix, line0 = block % in_matrix * prepared_lines;
  const Element* const from = o.from + matrix * o.matrix_stride + line0 * o.line_stride;
  const Element* const samples = sampled.from + (sampled.matrices > 1 ? matrix * sampled.matrix_stride : 0);
  const int sample_count = static_cast<int>(std::min<std::int64_t>(sampled.lines, centre_samples));
  const std::int64_t samples_apart =
      static_cast<unsigned>(sampled.lines) / static_cast<unsigned>(sample_count) * sampled.line_stride;
  const bool along_k = o.k_stride <= o.line_stride;

  const auto centre_of = [&](std::int64_t k) {
    const Element* sample = samples + k * sampled.k_stride;
    Element x[centre_samples];
#pragma unroll
    for (int i = 0; i < centre_samples; ++i) {
      x[i] = *sample;
      if (i + 1 < sample_count) sample += samples_apart;
    }
    const Element median = middle_of(x);
    return math::abs(median) <= std::numeric_limits<Element>::max() ? median : 0;
  };
  // Loads elements from k0 on, with zeros after the last up to a multiple of `together`. Returns their number.
  const auto load = [&](std::int64_t k0) {
    const int count = static_cast<int>(std::min<std::int64_t>(g.k - k0, at_once));
    const int padded = (count + together - 1) / together * together;
#pragma unroll 2
    for (int k = thread; k < padded; k += threads) centre[k] = k < count ? centre_of(k0 + k) : 0;
    // Neighbouring threads take neighbours in memory.
    const int line = along_k ? warp : thread % prepared_lines, first = along_k ? lane : thread / prepared_lines;
    const int step = along_k ? 32 : threads / prepared_lines;
    const Element* value = from + line * o.line_stride + (k0 + first) * o.k_stride;
    const bool present = line0 + line < lines;
#pragma unroll 8
    for (int k = first; k < padded; k += step, value += step * o.k_stride)
      values[line][k] = present && k < count ? *value : 0;
    __syncthreads();
    return padded;
  };
  const bool exists = line0 + warp < lines;
  const std::int64_t pitch = numbers_of<Stored>(g.k);
  Stored* const to = o.numbers + (matrix * o.lines + line0 + warp) * pitch;
  line_t<Stored>* const line = o.line + matrix * o.lines + line0 + warp;
  double squares = 0;
  if constexpr (in_halves) {
    float largest = 0, scale = 1;
    // First the norm and the largest value, then the halves.
#pragma unroll 1
    for (int sweep = 0; sweep < 2; ++sweep) {
      int count = static_cast<int>(std::min<std::int64_t>(pitch / 2, at_once));
#pragma unroll 1
      for (std::int64_t k0 = 0; k0 < g.k; k0 += at_once) {
        if (sweep == 0 || g.k > at_once) {
          __syncthreads();
          count = load(k0);
        }
        if (sweep == 0)
          measure(values[warp], centre, count, lane, squares, largest);
        else if (exists)
          write_halves(values[warp], centre, count, lane, scale, to, k0);
      }
      if (sweep > 0) break;
      squares = warp_sum(squares);
      // Powers of two that float can represent, as can their inverses; values below 2^-100 do not count.
      const int exponent = max(min((__float_as_int(warp_largest(largest)) >> 23) - 127, 127), -100);
      scale = power_of_two(14 - exponent);
      if (exists && lane == 0) *line = {static_cast<float>(squares), power_of_two(exponent - 14)};
    }
  } else {
#pragma unroll 1
    for (std::int64_t k0 = 0; k0 < g.k; k0 += at_once) {
      __syncthreads();
      const int count = load(k0);
#pragma unroll 4
      for (int k = lane; k < count; k += 32) {
        const double v = math::subtract(static_cast<double>(values[warp][k]), static_cast<double>(centre[k]));
        squares = fma(v, v, squares);
        if (exists) to[k0 + k] = v;
      }
    }
    squares = warp_sum(squares);
    if (exists && lane == 0) *line = {squares};
  }
}

}  // namespace rigel::backends::mma
