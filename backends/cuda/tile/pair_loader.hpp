// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loaders from matrices of 16-bit elements to slabs of pairs. A word holds one element twice, or the elements of two
// neighbouring lines (rows of A, columns of B), so the loop that reads the slab needs no instruction to arrange them.
#pragma once

#include <rigel/backends/cuda/arch/load.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>

namespace rigel::tile {

/// Has a Loader's interface, and fills slabs of `lines` × `depth` words. With `values` = 1, word i of a k has the element of
/// line i in both halves; with 2, it has those of lines 2i (low half) and 2i + 1.
template <Way way, class Pair, int values, int lines, int depth, int threads>
class PairLoader;

/// Element by element through registers, for any strides, alignment and extents. Nothing outside of the matrix is read; what
/// the slab holds there is never used.
template <class Pair, int values, int lines, int depth, int threads>
class PairLoader<Way::single, Pair, values, lines, depth, threads> {
  using Layout = Slab<Pair, lines, depth>;
  static constexpr int each = lines * depth / threads;  // words that a thread fills
  static_assert(lines * depth % threads == 0 && threads % depth == 0 && threads % lines == 0);

 public:
  static constexpr bool async = false;
  static constexpr int staging_size = 0;

  template <class Element>
  __device__ __forceinline__ PairLoader(const Element* source, std::int64_t line_stride, std::int64_t k_stride,
                                        std::int64_t lines_left, std::int64_t k_left, Pair*, unsigned thread_index)
      : along_k_(k_stride < line_stride) {
    // Neighbouring threads take neighbours in memory.
    const int thread = static_cast<int>(thread_index);
    const int line = along_k_ ? thread / depth : thread % lines, k = along_k_ ? thread % depth : thread / lines;
    const int next_line = along_k_ ? threads / depth : 0, next_k = along_k_ ? 0 : threads / lines;
    source_ = reinterpret_cast<const std::uint16_t*>(source) + values * line * line_stride + k * k_stride;
    step_ = values * next_line * line_stride + next_k * k_stride;
    line_stride_ = line_stride;
    slab_step_ = depth * k_stride;
    slot_ = k * Layout::pitch + line;
    const int present = static_cast<int>(lines_left < values * lines ? lines_left : values * lines);
    const int tail = static_cast<int>(k_left % depth);
#pragma unroll
    for (int e = 0; e < each; ++e)
#pragma unroll
      for (int v = 0; v < values; ++v) {
        const bool exists = values * (line + e * next_line) + v < present;
        full_[v] += exists;
        tail_[v] += exists && k + e * next_k < tail;
      }
  }

  /// Starts to read the next slab; `left` elements along K exist, or more.
  __device__ __forceinline__ void start(Pair*, std::int64_t left) {
    if (left <= 0) return;
    const std::uint16_t* p = source_;
#pragma unroll
    for (int e = 0; e < each; ++e) {
#pragma unroll
      for (int v = 0; v < values; ++v)
        if (e < (left < depth ? tail_[v] : full_[v])) read_[e][v] = arch::load_short(p + v * line_stride_);
      p += step_;
    }
    source_ += slab_step_;
  }

  /// Writes what start() read.
  __device__ __forceinline__ void finish(Pair* slab) const {
    const int slot_step = along_k_ ? threads / depth : threads / lines * Layout::pitch;
    auto* const words = reinterpret_cast<std::uint32_t*>(slab) + slot_;
#pragma unroll
    for (int e = 0; e < each; ++e)
      words[e * slot_step] = __byte_perm(read_[e][0], read_[e][values - 1], 0x5410);  // both low halves
  }

 private:
  const std::uint16_t* source_;
  std::int64_t step_, line_stride_, slab_step_;  // in elements; the same for all threads
  int slot_;                                     // of this thread's first word, in shared memory
  int full_[values] = {}, tail_[values] = {};    // how many of this thread's elements exist in a full slab, in the last one
  bool along_k_;
  std::uint32_t read_[each][values] = {};
};

/// 16-byte vectors of a K-major or an M- or N-major operand, copied asynchronously to a staging slot of the thread's own,
/// then through registers to the slab. One loop serves both layouts: they differ in strides and in which halves of two
/// vectors make a word. K must be a multiple of depth, addresses aligned, and the number of lines a multiple of a vector if
/// they are contiguous. Lines beyond the last ones repeat those.
template <class Pair, int values, int lines, int depth, int threads>
class PairLoader<Way::either, Pair, values, lines, depth, threads> {
  using Layout = Slab<Pair, lines, depth>;
  using Word = std::uint32_t;
  using Vector = Chunk<Word, 4>;
  static constexpr int width = 8;  // elements of a vector
  static constexpr int in_k = values * lines / width, k_apart = threads / in_k;
  static_assert(depth == width && threads == lines && threads % in_k == 0 && k_apart * values == depth);

 public:
  static constexpr bool async = true;
  static constexpr int staging_size = 2 * values * lines * depth / 2;  // words of the next two slabs to be finished

  template <class Element>
  __device__ __forceinline__ PairLoader(const Element* source, std::int64_t line_stride, std::int64_t k_stride,
                                        std::int64_t lines_left, std::int64_t, Pair* staging, unsigned thread_index)
      : staging_(reinterpret_cast<Word*>(staging) + thread_index * 4), other_(staging_ + staging_size / 2) {
    const int thread = static_cast<int>(thread_index);
    const auto* const elements = reinterpret_cast<const std::uint16_t*>(source);
    if (line_stride != 1) {  // K-major: vectors of lines `values`·thread and its successor
#pragma unroll
      for (int v = 0; v < values; ++v) {
        const std::int64_t line = values * thread + v;
        source_[v] = elements + (line < lines_left ? line : lines_left - 1) * line_stride;
      }
      slab_step_ = depth;
      slot_ = thread;
      odd_slot_ = Layout::pitch;
      slot_step_ = 2 * Layout::pitch;
      even_ = 0x5410;  // the low halves of two words
      odd_ = 0x7632;   // the high ones
    } else {           // M- or N-major: vectors of k and k + k_apart
      const int line = thread % in_k * width, k = thread / in_k;
#pragma unroll
      for (int v = 0; v < values; ++v)
        source_[v] = elements + (line < lines_left ? line : lines_left - width) + (k + v * k_apart) * k_stride;
      slab_step_ = depth * k_stride;
      slot_ = k * Layout::pitch + line / values;
      odd_slot_ = values == 1 ? 1 : k_apart * Layout::pitch;
      slot_step_ = values == 1 ? 2 : 1;
      even_ = 0x3210;  // the first word
      odd_ = 0x7654;   // the second one
    }
    if constexpr (values == 1) even_ = 0x1010, odd_ = 0x3232;  // one half of a word, twice
  }

  __device__ __forceinline__ void start(Pair*, std::int64_t left) {
    if (left > 0)
#pragma unroll
      for (int v = 0; v < values; ++v) {
        arch::copy_async<16>(staging_ + v * threads * 4, source_[v]);
        source_[v] += slab_step_;
      }
    Word* const started = staging_;
    staging_ = other_;
    other_ = started;
  }

  __device__ __forceinline__ void finish(Pair* slab) const {
    const Vector first = Vector::load(staging_), last = Vector::load(staging_ + (values - 1) * threads * 4);
    auto* const words = reinterpret_cast<Word*>(slab) + slot_;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i * slot_step_] = __byte_perm(first.value[i], last.value[i], even_);
      words[i * slot_step_ + odd_slot_] = __byte_perm(first.value[i], last.value[i], odd_);
    }
  }

 private:
  const std::uint16_t* source_[values];
  std::int64_t slab_step_;  // in elements
  Word *staging_, *other_;  // staging for the next slab to be started; for the one started last
  int slot_, odd_slot_,
      slot_step_;    // in shared memory: the first word's; from it to the second; from each to the next but one
  Word even_, odd_;  // byte selectors of the even words and of the odd words
};

}  // namespace rigel::tile
