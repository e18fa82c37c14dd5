// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass that packs operands.
#include <rigel/backends/cuda/arch/launch.hpp>
#include <rigel/backends/cuda/tensor/pack.hpp>
#include <rigel/backends/cuda/tile/words.hpp>

#include <algorithm>

namespace rigel::backends::tensor {

/// An operand and its packed form, K-major: `lines` rows (or columns) of `pitch` elements in each matrix.
template <class Bits>
struct Packing {
  const Bits* from;
  std::int64_t matrix_stride, line_stride, k_stride;
  std::int64_t lines, k, pitch, tiles_of_k, tiles_of_lines;
  Bits* to;
};

/// A tile of 64 rows by 64 k passes through shared memory, so that both sides are accessed in the order of their elements in
/// memory; elements of 1 and 2 bytes as words.
template <class Bits>
__global__ void __launch_bounds__(256) pack(const __grid_constant__ PassParameters<Packing<Bits>> both) {
  arch::allow_next_launch();
  constexpr int edge = 64, threads = 256;
  const Packing<Bits>& g = both.operand();
  const unsigned block = both.block(), of_matrix = static_cast<unsigned>(g.tiles_of_k * g.tiles_of_lines),
                 matrix = block / of_matrix, t = block % of_matrix, tiles_of_k = static_cast<unsigned>(g.tiles_of_k);
  const std::int64_t line0 = std::int64_t{t / tiles_of_k} * edge, k0 = std::int64_t{t % tiles_of_k} * edge;
  const Bits* const from = g.from + matrix * g.matrix_stride + line0 * g.line_stride + k0 * g.k_stride;
  Bits* const to = g.to + (matrix * g.lines + line0) * g.pitch + k0;
  const int lines = static_cast<int>(std::min<std::int64_t>(g.lines - line0, edge));
  if constexpr (sizeof(Bits) < 4) {
    constexpr int values = 4 / sizeof(Bits), words = edge / values;
    __shared__ std::uint32_t shared[edge][words + 1];
    tile::load_words<threads>(shared, tile::Elements<Bits>{from, g.line_stride, g.k_stride, lines, g.k - k0});
    __syncthreads();
#pragma unroll
    for (int round = 0; round < edge * words / threads; ++round) {
      const int i = round * threads + static_cast<int>(threadIdx.x), line = i / words, word = i % words;
      if (line < lines && k0 + values * word < g.pitch)
        *reinterpret_cast<std::uint32_t*>(to + line * g.pitch + values * word) = shared[line][word];
    }
  } else {
    __shared__ Bits tile[edge][edge + 1];
    constexpr int each = edge * edge / threads;
    const bool along_k = g.k_stride < g.line_stride;
    const int inner = static_cast<int>(threadIdx.x) % edge, outer = static_cast<int>(threadIdx.x) / edge;
    Bits x[each];  // all in flight at a time
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int other = outer + i * (threads / edge), line = along_k ? other : inner, k = along_k ? inner : other;
      x[i] = line < lines && k0 + k < g.k ? from[line * g.line_stride + k * g.k_stride] : Bits(0);
    }
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int other = outer + i * (threads / edge), line = along_k ? other : inner, k = along_k ? inner : other;
      tile[line][k] = x[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int line = outer + i * (threads / edge);
      if (line < lines && k0 + inner < g.pitch) to[line * g.pitch + inner] = tile[line][inner];
    }
  }
}

template <class Bits>
static void launch(const Passes& passes, const cuda::Launches& launches) {
  passes.enqueue(
      [](const Passes::Pass& pass) {
        const Lines& g = pass.lines;
        return Packing<Bits>{static_cast<const Bits*>(g.operand->data),
                             g.operand->batch_stride,
                             g.line_stride,
                             g.k_stride,
                             g.lines,
                             g.k,
                             pitch_of(g.k, sizeof(Bits)),
                             (g.k + 63) / 64,
                             (g.lines + 63) / 64,
                             static_cast<Bits*>(pass.to)};
      },
      [&](const auto& both, std::int64_t blocks) { launches(pack<Bits>, static_cast<unsigned>(blocks), 256, 0, both); });
}

void pack_operands(const Passes& passes, const cuda::Launches& launches) {
  switch (passes.size()) {
    case 0: return;
    case 1: return launch<std::uint8_t>(passes, launches);
    case 2: return launch<std::uint16_t>(passes, launches);
    case 4: return launch<std::uint32_t>(passes, launches);
    default: launch<std::uint64_t>(passes, launches);
  }
}

}  // namespace rigel::backends::tensor
