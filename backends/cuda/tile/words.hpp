// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile of an operand of 1- or 2-byte elements as words in shared memory, K-major. Global memory is read by aligned words where elements
// are neighbours along k or along lines, whatever address they begin at.
#pragma once

#include <cstdint>

namespace rigel::tile {

/// The word that begins at p, of elements of which `left` exist from p on; zeros instead of others. Aligned words around it are read if
/// they end before the elements do.
template <class Bits>
__device__ __forceinline__ std::uint32_t word_at(const Bits* p, std::int64_t left) {
  constexpr int size = sizeof(Bits), values = 4 / size;
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const auto before = static_cast<unsigned>(address % 4);  // bytes
  if (left * size >= (before == 0 ? 4 : 8 - before)) {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(address - before);
    return before == 0 ? words[0] : __funnelshift_r(words[0], words[1], 8 * before);
  }
  std::uint32_t word = 0;
#pragma unroll
  for (int v = 0; v < values; ++v)
    if (v < left) word |= static_cast<std::uint32_t>(p[v]) << (8 * size * v);
  return word;
}

/// Transposes elements: word i has those of number i of all words.
template <class Bits>
__device__ __forceinline__ void transpose_words(std::uint32_t (&w)[4 / sizeof(Bits)]) {
  if constexpr (sizeof(Bits) == 2) {
    const std::uint32_t first = __byte_perm(w[0], w[1], 0x5410);
    w[1] = __byte_perm(w[0], w[1], 0x7632);
    w[0] = first;
  } else {
    const std::uint32_t low_01 = __byte_perm(w[0], w[1], 0x5140), high_01 = __byte_perm(w[0], w[1], 0x7362),
                        low_23 = __byte_perm(w[2], w[3], 0x5140), high_23 = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(low_01, low_23, 0x5410);
    w[1] = __byte_perm(low_01, low_23, 0x7632);
    w[2] = __byte_perm(high_01, high_23, 0x5410);
    w[3] = __byte_perm(high_01, high_23, 0x7632);
  }
}

/// Elements of an operand in memory: the first is at `from`, and `lines` by `k` exist from there on.
template <class Bits>
struct Elements {
  const Bits* from;
  std::int64_t line_stride, k_stride, lines, k;
};

/// Fills to[line][word] with words of elements along k, zeros for those that do not exist. All threads of a block call it.
template <int threads, class Bits, int lines, int pitch>
__device__ __forceinline__ void load_words(std::uint32_t (&to)[lines][pitch], const Elements<Bits>& g) {
  constexpr int values = 4 / static_cast<int>(sizeof(Bits)), words = pitch - 1;  // a word of padding
  static_assert(lines * words % threads == 0);
  const auto thread = static_cast<int>(threadIdx.x);
  if (g.k_stride == 1) {
#pragma unroll 4
    for (int round = 0; round < lines * words / threads; ++round) {
      const int i = round * threads + thread, line = i / words, word = i % words;
      to[line][word] = line < g.lines ? word_at(g.from + line * g.line_stride + values * word, g.k - values * word) : 0;
    }
  } else if (g.line_stride == 1) {
#pragma unroll 1
    for (int i = thread; i < lines / values * words; i += threads) {
      const int line = i % (lines / values) * values, word = i / (lines / values);
      std::uint32_t w[values];
#pragma unroll
      for (int v = 0; v < values; ++v) {
        const int k = values * word + v;
        w[v] = k < g.k && line < g.lines ? word_at(g.from + line + k * g.k_stride, g.lines - line) : 0;
      }
      transpose_words<Bits>(w);
#pragma unroll
      for (int v = 0; v < values; ++v) to[line + v][word] = w[v];
    }
  } else {
    const bool along_k = g.k_stride < g.line_stride;
#pragma unroll 1
    for (int i = thread; i < lines * words; i += threads) {
      const int line = along_k ? i / words : i % lines, word = along_k ? i % words : i / lines;
      std::uint32_t value = 0;
#pragma unroll
      for (int v = 0; v < values; ++v)
        if (const int k = values * word + v; line < g.lines && k < g.k)
          value |= static_cast<std::uint32_t>(g.from[line * g.line_stride + k * g.k_stride]) << (8 * sizeof(Bits) * v);
      to[line][word] = value;
    }
  }
}

}  // namespace rigel::tile
