// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass that brings operands of floats into the workspace as planes of bfloat16 whose sum it is: x₀ is x rounded to 8
// bits, x₁ the rest rounded to 8 bits, x₂ what is left then. Planes are K-major and aligned to 16 bytes. For cuda.hopper
// they are separate matrices, as tensor copies take them. For cuda.mma the planes of a row alternate, a slab's elements at a
// time, so that a slab's share is contiguous.
#pragma once

#include <rigel/backends/cuda/arch/launch.hpp>
#include <rigel/backends/cuda/tensor/pack.hpp>
#include <rigel/numeric.hpp>

#include <algorithm>

namespace rigel::backends::tensor {

/// The layout of an operand's planes: a matrix each, or alternating in each row.
enum class PlaneLayout : std::uint8_t { separate, alternating };
/// Elements along K in a slab of several planes.
inline constexpr int slab_of_planes = 32;

/// An operand and its planes: matrices of `lines` rows (or columns) of `pitch` numbers, with room for `stored` elements
/// along K each. Planes are `plane` numbers apart; after those of a slab, `skipped` numbers belong to other planes.
struct Planes {
  const float* from;
  std::int64_t matrix_stride, line_stride, k_stride;
  std::int64_t lines, k, stored, pitch, tiles_of_k, tiles_of_lines, plane;
  int skipped;
  std::uint16_t* to;
};

/// x rounded to the nearest bfloat16, as bits; truncated if rounding would make a finite number infinite.
__device__ __forceinline__ std::uint32_t rounded_bits(float x) {
  const std::uint32_t bits = __float_as_uint(x), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
  return (rounded & 0x7fffffffu) < 0x7f800000u && (bits & 0x7f800000u) != 0x7f800000u ? rounded : bits & 0xffff0000u;
}

/// A tile of 64 rows by 64 k passes through shared memory, so that both sides are accessed in the order of their elements in
/// memory.
template <int planes, PlaneLayout layout>
__global__ void __launch_bounds__(256) cut(const __grid_constant__ PassParameters<Planes> both) {
  arch::allow_next_launch();
  constexpr int edge = 64, threads = 256, each = edge * edge / threads, width = 8;
  __shared__ float tile[edge][edge + 1];
  const Planes& g = both.operand();
  const std::int64_t block = both.block(), of_matrix = g.tiles_of_k * g.tiles_of_lines, matrix = block / of_matrix,
                     t = block % of_matrix;
  const std::int64_t line0 = t / g.tiles_of_k * edge, k0 = t % g.tiles_of_k * edge;
  const float* const from = g.from + matrix * g.matrix_stride + line0 * g.line_stride + k0 * g.k_stride;
  const auto lines = static_cast<int>(std::min<std::int64_t>(g.lines - line0, edge));
  const auto ks = static_cast<int>(std::min<std::int64_t>(g.k - k0, edge));
  const auto stored = static_cast<int>(std::min<std::int64_t>(g.stored - k0, edge));
  const bool along_k = g.k_stride < g.line_stride;
  const int inner = static_cast<int>(threadIdx.x) % edge, outer = static_cast<int>(threadIdx.x) / edge;
  float x[each];
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const int other = outer + i * (threads / edge), line = along_k ? other : inner, k = along_k ? inner : other;
    x[i] = line < lines && k < ks ? from[line * g.line_stride + k * g.k_stride] : 0;
  }
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const int other = outer + i * (threads / edge), line = along_k ? other : inner, k = along_k ? inner : other;
    tile[line][k] = x[i];
  }
  __syncthreads();
  struct alignas(16) Eight {
    std::uint32_t pair[width / 2];
  };
  std::uint16_t* const to = g.to + (matrix * g.lines + line0) * g.pitch + k0 + k0 / slab_of_planes * g.skipped;
#pragma unroll
  for (int i = 0; i < each / width; ++i) {
    const int piece = static_cast<int>(threadIdx.x) + i * threads, line = piece / (edge / width),
              k = piece % (edge / width) * width;
    if (line >= lines || k >= stored) continue;
    float left[width];
#pragma unroll
    for (int v = 0; v < width; ++v) left[v] = tile[line][k + v];
#pragma unroll
    for (int plane = 0; plane < planes; ++plane) {
      Eight eight;
#pragma unroll
      for (int v = 0; v < width; v += 2) {
        const std::uint32_t first = rounded_bits(left[v]), second = rounded_bits(left[v + 1]);
        eight.pair[v / 2] = first >> 16 | second;
        left[v] = math::subtract(left[v], __uint_as_float(first));
        left[v + 1] = math::subtract(left[v + 1], __uint_as_float(second));
      }
      *reinterpret_cast<Eight*>(to + plane * g.plane + line * g.pitch + k + k / slab_of_planes * g.skipped) = eight;
    }
  }
}

/// Numbers in a row: of one plane, or of all if they alternate.
inline std::int64_t plane_pitch(std::int64_t k, int planes, PlaneLayout layout) {
  return layout == PlaneLayout::separate ? (k + 7) / 8 * 8
                                         : (k + slab_of_planes - 1) / slab_of_planes * slab_of_planes * planes;
}
/// Bytes of an operand's planes.
inline std::size_t plane_bytes(const Operand& o, std::int64_t lines, std::int64_t k, int planes, PlaneLayout layout) {
  const std::int64_t numbers = plane_pitch(k, planes, layout) * (layout == PlaneLayout::separate ? planes : 1);
  return detail::aligned(static_cast<std::size_t>(matrices_of(o) * lines * numbers) * 2);
}

/// Enqueues the pass.
template <int planes, PlaneLayout layout>
void cut_operands(const Passes& passes, const cuda::Launches& launches) {
  passes.enqueue(
      [](const Passes::Pass& pass) {
        const Lines& g = pass.lines;
        const std::int64_t pitch = plane_pitch(g.k, planes, layout);
        constexpr bool separate = layout == PlaneLayout::separate;
        return Planes{static_cast<const float*>(g.operand->data),
                      g.operand->batch_stride,
                      g.line_stride,
                      g.k_stride,
                      g.lines,
                      g.k,
                      separate ? pitch : pitch / planes,
                      pitch,
                      (g.k + 63) / 64,
                      (g.lines + 63) / 64,
                      separate ? matrices_of(*g.operand) * g.lines * pitch : slab_of_planes,
                      separate ? 0 : (planes - 1) * slab_of_planes,
                      static_cast<std::uint16_t*>(pass.to)};
      },
      [&](const auto& both, std::int64_t blocks) {
        launches(cut<planes, layout>, static_cast<unsigned>(blocks), 256, 0, both);
      });
}

}  // namespace rigel::backends::tensor
