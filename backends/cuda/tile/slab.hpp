// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slabs: the part of an operand that a tile needs for `depth` values of k, in shared memory, one line (a row of A, a
// column of B) next to the other for each k. Any strides: threads are mapped to (line, k) so that a warp reads what
// lies together.
#pragma once

#include <cstdint>
#include <type_traits>

namespace rigel::tile {

/// How an operand lies in shared memory: small integers as whole words, everything else as it is.
template <class Operand>
using stored_t = std::conditional_t<std::is_integral_v<Operand> && sizeof(Operand) < 4,
                                    std::conditional_t<std::is_signed_v<Operand>, std::int32_t, std::uint32_t>, Operand>;

/// Neighbours that a thread reads from a slab at a time: 16 bytes at most, a power of two, at most 4.
template <class Stored>
inline constexpr int chunk_of = (sizeof(Stored) & (sizeof(Stored) - 1)) != 0 || sizeof(Stored) > 8 ? 1
                                : sizeof(Stored) == 8                                            ? 2
                                                                                                 : 4;

/// What one load or store instruction moves: a vector of numbers, or words for `bytes` of anything else.
template <int bytes>
struct word {};
template <> struct word<1> { using type = std::uint8_t; };
template <> struct word<2> { using type = std::uint16_t; };
template <> struct word<4> { using type = std::uint32_t; };
template <> struct word<8> { typedef std::uint32_t type __attribute__((ext_vector_type(2))); };
template <> struct word<16> { typedef std::uint32_t type __attribute__((ext_vector_type(4))); };
template <class T, int count>
struct vector : word<count * sizeof(T)> {};
template <class T, int count>
  requires(std::is_arithmetic_v<T> && count > 1)
struct vector<T, count> {
  typedef T type __attribute__((ext_vector_type(count)));
};

/// `count` values that move together.
template <class T, int count>
struct Chunk {
  static constexpr bool as_word = count * sizeof(T) <= 16 && (sizeof(T) & (sizeof(T) - 1)) == 0;
  T value[count];

  __device__ __forceinline__ static Chunk load(const T* from) {
    if constexpr (as_word) {
      return __builtin_bit_cast(Chunk, *reinterpret_cast<const typename vector<T, count>::type*>(from));
    } else {
      Chunk c;
#pragma unroll
      for (int i = 0; i < count; ++i) c.value[i] = from[i];
      return c;
    }
  }
  __device__ __forceinline__ void store(T* to) const {
    static_assert(as_word);
    using Word = typename vector<T, count>::type;
    *reinterpret_cast<Word*>(to) = __builtin_bit_cast(Word, *this);
  }
};

/// The layout of a slab of `lines` × `depth` values.
template <class Operand, int lines, int depth>
struct Slab {
  using Stored = stored_t<Operand>;
  static constexpr int chunk = chunk_of<Stored>;
  // Between the lines of k and of k + 1, in values: 16 bytes more than the lines themselves, so that a warp that writes
  // 8 values of k of 4 lines meets 32 banks.
  static constexpr int pitch = lines + chunk;
  // One line of k more than is used: the fragment of k + 1 is read ahead of the test that there is one.
  static constexpr int size = (depth + 1) * pitch;

  /// The operands of one thread for one k.
  template <int threads, int outputs>
  __device__ __forceinline__ static void read(const Stored* slab, int k, int place, Operand (&fragment)[outputs]) {
    static_assert(outputs % chunk == 0);
#pragma unroll
    for (int i = 0; i < outputs; i += chunk) {
      const auto c = Chunk<Stored, chunk>::load(slab + k * pitch + (i / chunk * threads + place) * chunk);
#pragma unroll
      for (int j = 0; j < chunk; ++j) fragment[i + j] = static_cast<Operand>(c.value[j]);
    }
  }
};

/// Brings slab after slab of one operand from global memory: `fetch` reads into registers, `store` converts into shared
/// memory. Nothing outside of the matrix is read; what stands in the slab for it is never used.
template <class Element, class Operand, int lines, int depth, int threads>
class Loader {
  using Layout = Slab<Operand, lines, depth>;
  using Stored = typename Layout::Stored;
  static constexpr int each = lines * depth / threads;  // values that a thread moves
  static_assert(threads % lines == 0 && threads % depth == 0 && lines * depth % threads == 0);

 public:
  /// `lines_left` and `k_left`: the extents of the matrix from `source` on.
  __device__ __forceinline__ Loader(const Element* source, std::int64_t line_stride, std::int64_t k_stride,
                                    std::int64_t lines_left, std::int64_t k_left, int thread) {
    const bool along_k = k_stride < line_stride;
    const int line = along_k ? thread / depth : thread % lines, k = along_k ? thread % depth : thread / lines;
    const int next_line = along_k ? threads / depth : 0, next_k = along_k ? 0 : threads / lines;
    source_ = source + line * line_stride + k * k_stride;
    source_step_ = next_line * line_stride + next_k * k_stride;
    slab_step_ = depth * k_stride;
    slot_ = k * Layout::pitch + line;
    slot_step_ = next_k * Layout::pitch + next_line;
    const int present = static_cast<int>(lines_left < lines ? lines_left : lines);
    const int tail = static_cast<int>(k_left % depth);
    full_ = 0;
    tail_ = 0;
#pragma unroll
    for (int e = 0; e < each; ++e) {
      full_ += line + e * next_line < present;
      tail_ += line + e * next_line < present && k + e * next_k < tail;
    }
  }

  /// Reads the next slab, of which `left` values of k exist (or more).
  __device__ __forceinline__ void fetch(std::int64_t left) {
    const int count = left < depth ? tail_ : full_;
    const Element* p = source_;
#pragma unroll
    for (int e = 0; e < each; ++e) {
      if (e < count) values_[e] = *p;
      p += source_step_;
    }
    source_ += slab_step_;
  }

  __device__ __forceinline__ void store(Stored* slab) const {
#pragma unroll
    for (int e = 0; e < each; ++e)
      slab[slot_ + e * slot_step_] = static_cast<Stored>(static_cast<Operand>(values_[e]));
  }

 private:
  const Element* source_;
  std::int64_t source_step_, slab_step_;  // in elements; the same for all threads
  int slot_, slot_step_;                  // in shared memory
  int full_, tail_;                       // how many of this thread's values exist in a full slab, in the last one
  Element values_[each] = {};
};

}  // namespace rigel::tile
