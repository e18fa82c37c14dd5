// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the passes over Z before the search, and where what they write lies.
//
// find_centre     c(k), the median of a few rows, and max |z − c|
// prepare_points  z' = S·(z − c) as halves in the order in which lanes read them, and (1 − ε)·|z'|² − w·|dz|²
#pragma once

#include <rigel/backends/cuda/arch/convert.hpp>
#include <rigel/backends/cuda/arch/shuffle.hpp>
#include <rigel/backends/cuda/mma/nearest_layout.hpp>
#include <rigel/backends/cuda/mma/nearest_strips.hpp>
#include <rigel/numeric.hpp>

#include <cstdint>

namespace rigel::backends::mma::nearest {

/// Rows of K numbers. With `in_fours` they can be read four at a time.
template <class Element>
struct Points {
  const Element* data;
  std::int64_t rows, row_stride, k_stride;
  int k;
  bool in_fours;

  /// Numbers k to k + 3 of a row, zeros after the last. With `apart`, in code without loops, the compiler keeps no offsets of k for other rows.
  template <bool apart = false>
  __device__ __forceinline__ void load(float (&to)[4], std::int64_t row, int first) const {
    const Element* const from = data + row * row_stride;
    if (in_fours && first + 4 <= k) {
      struct alignas(4 * sizeof(Element)) Four {
        Element value[4];
      };
      const Four four = *reinterpret_cast<const Four*>(from + first);
#pragma unroll
      for (int i = 0; i < 4; ++i) to[i] = static_cast<float>(four.value[i]);
    } else {
      std::int64_t stride = k_stride;
      if constexpr (apart) asm volatile("" : "+l"(stride));
#pragma unroll
      for (int i = 0; i < 4; ++i) to[i] = first + i < k ? static_cast<float>(from[(first + i) * stride]) : 0.f;
    }
  }
};

inline constexpr int centre_samples = 8, pass_threads = 128;

template <class Element>
__global__ void __launch_bounds__(pass_threads)
    find_centre(const __grid_constant__ Points<Element> z, float* centre, Found* found) {
  __shared__ float c[largest_numbers];
  const int thread = static_cast<int>(threadIdx.x);
  float middle = 0;
  if (thread < z.k) {
    float x[centre_samples];
    const std::int64_t samples = z.rows < centre_samples ? z.rows : centre_samples, apart = z.rows / samples;
#pragma unroll
    for (int i = 0; i < centre_samples; ++i)
      x[i] = static_cast<float>(z.data[(i < samples ? i : samples - 1) * apart * z.row_stride + thread * z.k_stride]);
    // Sorted by exchanging neighbours.
#pragma unroll
    for (int round = 0; round < centre_samples; ++round)
#pragma unroll
      for (int i = round % 2; i + 1 < centre_samples; i += 2) {
        const float low = fminf(x[i], x[i + 1]), high = fmaxf(x[i], x[i + 1]);
        x[i] = low;
        x[i + 1] = high;
      }
    middle = fabsf(x[centre_samples / 2]) < 0x1p126f ? x[centre_samples / 2] : 0.f;
  }
  c[thread] = middle;
  if (blockIdx.x == 0) centre[thread] = middle;
  __syncthreads();
  // Four threads take a row, four numbers at a time.
  unsigned largest = 0;
  const int q = thread % 4;
  for (std::int64_t row = std::int64_t{blockIdx.x} * (pass_threads / 4) + thread / 4; row < z.rows;
       row += std::int64_t{gridDim.x} * (pass_threads / 4))
    for (int k = 4 * q; k < z.k; k += 16) {
      float v[4];
      z.load(v, row, k);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (k + i < z.k) largest = max(largest, __float_as_uint(fabsf(__fsub_rn(v[i], c[k + i]))));
    }
  largest = arch::joined_lanes(largest, [](unsigned x, unsigned y) { return max(x, y); });
  if (thread % 32 != 0) return;
  constexpr unsigned infinity = 0x7f800000;
  if (largest >= infinity) atomicOr(&found->refused, 1u);
  atomicMax(&found->largest, largest);
}

/// What the halves of two floats lose, squared and added.
__device__ __forceinline__ float square_of_lost(float first, float second, std::uint32_t halves) {
  struct Two {
    half first, second;
  };
  const auto two = std::bit_cast<Two>(halves);
  const float d = __fsub_rn(first, static_cast<float>(two.first)), e = __fsub_rn(second, static_cast<float>(two.second));
  return __fmaf_rn(d, d, __fmul_rn(e, e));
}

/// Prepares the columns of a strip. A warp takes eight at a time.
template <class Element, int Steps>
__global__ void __launch_bounds__(pass_threads)
    prepare_points(const __grid_constant__ Points<Element> z, const float* centre, const Found* found, unsigned char* tiles,
                   const __grid_constant__ Order order) {
  using L = Layout<Steps>;
  if (found->refused) return;
  const float scale = power_of_two_of(exponent_of_scale(found->largest));
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, q = lane % 4;
  const unsigned blocks = order.chunks * 4;
  for (unsigned block = blockIdx.x * (pass_threads / 32) + threadIdx.x / 32; block < blocks;
       block += gridDim.x * (pass_threads / 32)) {
    const unsigned tile = block / (L::columns / 8), chunk = block / 4 % L::chunks;
    const int j = static_cast<int>(block % 4);
    const std::int64_t of_strip = order.column(block / 4, L::column(j, g)), n = order.first + of_strip;
    unsigned char* const at = tiles + std::int64_t{tile} * L::tile_bytes;
    const bool exists = of_strip < order.columns;
    double squares = 0, lost = 0;
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const int k = 16 * s + 4 * q;
      float v[4] = {};
      if (exists) {
        z.load(v, n, k);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          v[i] = k + i < z.k ? __fmul_rn(__fsub_rn(v[i], centre[k + i]), scale) : 0.f;
          squares = fma(static_cast<double>(v[i]), static_cast<double>(v[i]), squares);
        }
      }
      const uint2 halves = {arch::two_of<half>(v[0], v[1]), arch::two_of<half>(v[2], v[3])};
      lost += static_cast<double>(square_of_lost(v[0], v[1], halves.x) + square_of_lost(v[2], v[3], halves.y));
      *reinterpret_cast<uint2*>(at + chunk * L::chunk_bytes + (s * 2 + j / 2) * 512 + lane * 16 + j % 2 * 8) = halves;
    }
    squares = squares * (1 - margin(L::numbers)) - lost * weight_of_lost;
    squares += __shfl_xor_sync(~0u, squares, 1);
    squares += __shfl_xor_sync(~0u, squares, 2);
    if (q == 0) {
      const float norm = exists ? __double2float_rd(squares) : absent;
      float* const to =
          reinterpret_cast<float*>(at + L::chunks * L::chunk_bytes + chunk * L::norm_bytes) + j * 16 + g / 2 * 4 + g % 2;
      to[0] = norm;
      to[2] = norm;
    }
  }
}

}  // namespace rigel::backends::mma::nearest
