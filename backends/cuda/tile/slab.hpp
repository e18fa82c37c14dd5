// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slabs: the part of an operand that a tile needs for `depth` values of k, in shared memory, one line (a row of A, a
// column of B) next to the other for each k. Any strides: threads are mapped to (line, k) so that a warp reads what
// lies together.
#pragma once

#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/numeric.hpp>

#include <algorithm>
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
                                : sizeof(Stored) == 8                                              ? 2
                                                                                                   : 4;

/// What one load or store instruction moves: a vector of numbers, or words for `bytes` of anything else.
template <int bytes>
struct word {};
template <> struct word<1> {
  using type = std::uint8_t;
};
template <> struct word<2> {
  using type = std::uint16_t;
};
template <> struct word<4> {
  using type = std::uint32_t;
};
template <> struct word<8> {
  typedef std::uint32_t type __attribute__((ext_vector_type(2)));
};
template <> struct word<16> {
  typedef std::uint32_t type __attribute__((ext_vector_type(4)));
};
template <class T, int count>
struct vector : word<count * sizeof(T)> {};
template <class T, int count>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && count > 1)  // bools would be bits
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

  /// The neighbours that a thread takes at a time which has few outputs along m or n.
  template <int outputs_m, int outputs_n>
  static constexpr int chunk_for = std::min({chunk, outputs_m, outputs_n});

  /// The operands of one thread for one k, `width` neighbours at a time.
  template <int threads, int width, int outputs>
  __device__ __forceinline__ static void read(const Stored* slab, int k, int place, Operand (&fragment)[outputs]) {
    static_assert(outputs % width == 0);
#pragma unroll
    for (int i = 0; i < outputs; i += width) {
      const auto c = Chunk<Stored, width>::load(slab + k * pitch + (i / width * threads + place) * width);
#pragma unroll
      for (int j = 0; j < width; ++j) fragment[i + j] = static_cast<Operand>(c.value[j]);
    }
  }
};

/// How an operand comes to shared memory: value by value, whatever its strides, its alignment and its extents, or in
/// vectors of 16 bytes along k or along the lines, of operands that are aligned; `either`: along one of the two, as its
/// strides say; `shifted`: in such vectors where each line, or each line of k, begins at an address of its own.
enum class Way { single, along_k, along_lines, either, shifted_k, shifted_lines };

/// Brings slab after slab of one operand from global to shared memory: `start` begins with one, `finish` ends the one
/// that is needed next. `staging`: shared memory of its own, `staging_size` values; `thread_index`: threadIdx.x. With `repeats`
/// lines of a slab beyond the matrix's last one hold lines that it has; along_k and along_lines do so without it.
template <Way way, class Element, class Operand, int lines, int depth, int threads, bool repeats = false>
class Loader;

/// Values that lie in both memories alike go asynchronously, others through registers, where they are converted. Nothing
/// outside of the matrix is read. Without `repeats` a slab holds anything there.
template <class Element, class Operand, int lines, int depth, int threads, bool repeats>
class Loader<Way::single, Element, Operand, lines, depth, threads, repeats> {
  using Layout = Slab<Operand, lines, depth>;
  using Stored = typename Layout::Stored;
  static constexpr int each = lines * depth / threads;  // values that a thread moves
  // How many lines threads that are neighbours along them have at a time: all of them, or as many as take all values of k.
  static constexpr bool all_lines = threads % lines == 0;
  static constexpr int across = all_lines ? lines : threads / depth;
  static constexpr int lines_apart = all_lines ? 0 : across, k_apart = all_lines ? threads / lines : 0;
  static_assert(lines * depth % threads == 0 && threads % depth == 0 && lines % across == 0);

 public:
  static constexpr bool async = std::is_same_v<Element, Stored> && (sizeof(Element) == 4 || sizeof(Element) == 8);
  static constexpr int staging_size = 0;

  /// `lines_left` and `k_left`: the extents of the matrix from `source` on.
  __device__ __forceinline__ Loader(const Element* source, std::int64_t line_stride, std::int64_t k_stride,
                                    std::int64_t lines_left, std::int64_t k_left, Stored*, unsigned thread_index)
      : along_k_(k_stride < line_stride) {
    // Neighbouring threads along the elements' own direction.
    const int thread = static_cast<int>(thread_index);
    const int line = along_k_ ? thread / depth : thread % across, k = along_k_ ? thread % depth : thread / across;
    const int next_line = along_k_ ? threads / depth : lines_apart, next_k = along_k_ ? 0 : k_apart;
    source_ = source + line * line_stride + k * k_stride;
    step_ = next_line * line_stride + next_k * k_stride;
    slab_step_ = depth * k_stride;
    slot_ = k * Layout::pitch + line;
    int present = static_cast<int>(lines_left < lines ? lines_left : lines) - line;
    if constexpr (repeats)
      if (present < 1) {
        source_ += (present - 1) * line_stride;
        present = 1;
      }
    const int tail = static_cast<int>(k_left % depth) - k;
    const bool across_lines = along_k_ || !all_lines;  // of one k; else of one line
    full_ = across_lines ? count_of<threads / depth>(present) : present > 0 ? each : 0;
    tail_ = across_lines ? (tail > 0 ? full_ : 0) : present > 0 ? count_of<all_lines ? k_apart : 1>(tail) : 0;
    if constexpr (repeats && !async && !(Number<Element> && Number<Operand>))  // conversions of a user's, beyond K too
#pragma unroll
      for (int e = 0; e < each; ++e) values_[e] = *source;
  }

  /// Starts to read the next slab into `slab`; `left` values of k exist, or more.
  __device__ __forceinline__ void start(Stored* slab, std::int64_t left) {
    if (left <= 0) return;
    const int count = left < depth ? tail_ : full_;
    if (along_k_)
      move<threads / depth, true>(slab, count);
    else
      move<lines_apart + k_apart * Layout::pitch, !all_lines>(slab, count);
    source_ += slab_step_;
  }

  /// Converts what came through registers.
  __device__ __forceinline__ void finish(Stored* slab) const {
    if constexpr (!async) {
      const int slot_step = along_k_ ? threads / depth : lines_apart + k_apart * Layout::pitch;
#pragma unroll
      for (int e = 0; e < each; ++e) slab[slot_ + e * slot_step] = static_cast<Stored>(static_cast<Operand>(values_[e]));
      if constexpr (repeats)
#pragma unroll 1
        for (int e = full_; e < each; ++e) slab[slot_ + e * slot_step] = slab[slot_ + (full_ - 1) * slot_step];
    }
  }

 private:
  /// Values `step` apart of which the first has `left` before the end.
  template <int step>
  __device__ __forceinline__ static int count_of(int left) {
    const int present = (left + step - 1) / step;
    return left <= 0 ? 0 : present < each ? present : each;
  }

  /// The first `count` of this thread's values, which are `across_lines` or of one line.
  template <int slot_step, bool across_lines>
  __device__ __forceinline__ void move(Stored* slab, int count) {
    const Element* p = source_;
    if constexpr (async)
      if (count == each) {  // the same without predicates
#pragma unroll
        for (int e = 0; e < each; ++e, p += step_) arch::copy_async<sizeof(Element)>(slab + slot_ + e * slot_step, p);
        return;
      }
    if constexpr (async && repeats) {
      const int copies = across_lines && count > 0 ? each : count;
#pragma unroll
      for (int e = 0; e < each; ++e) {
        if (e < copies) arch::copy_async<sizeof(Element)>(slab + slot_ + e * slot_step, p);
        if (e + 1 < count) p += step_;
      }
      return;
    }
#pragma unroll
    for (int e = 0; e < each; ++e) {
      if (e < count) {
        if constexpr (async)
          arch::copy_async<sizeof(Element)>(slab + slot_ + e * slot_step, p);
        else
          values_[e] = *p;
      }
      p += step_;
    }
  }

  const Element* source_;
  std::int64_t step_, slab_step_;  // in elements; the same for all threads
  int slot_;                       // of this thread's first value, in shared memory
  int full_ = 0, tail_ = 0;        // how many of this thread's values exist in a full slab, in the last one
  bool along_k_;
  Element values_[async ? 1 : each] = {};
};

/// 16 bytes of k at a time, asynchronously, to a place of the thread's own; from there, through registers, to the slab,
/// which turns them over. K is a multiple of depth, addresses are aligned. Lines beyond the last one repeat it; in small tiles,
/// of which they are a larger part, the others in turn, since reads of one and the same would queue up.
template <class Element, int lines, int depth, int threads>
class Loader<Way::along_k, Element, Element, lines, depth, threads> {
  using Layout = Slab<Element, lines, depth>;
  static constexpr int width = 16 / static_cast<int>(sizeof(Element));
  static constexpr int in_line = depth / width, lines_apart = threads / in_line, each = lines / lines_apart;
  static_assert(depth % width == 0 && threads % in_line == 0 && lines % lines_apart == 0);

 public:
  static constexpr bool async = true;
  static constexpr int staging_size = 2 * lines * depth;  // of the slab that is finished next, and of the one after it

  __device__ __forceinline__ Loader(const Element* source, std::int64_t line_stride, std::int64_t, std::int64_t lines_left,
                                    std::int64_t, Element* staging, unsigned thread_index)
      : staging_(staging + thread_index * width), other_(staging_ + lines * depth) {
    const int thread = static_cast<int>(thread_index), line = thread / in_line, k = thread % in_line * width;
    slot_ = k * Layout::pitch + line;
    const int present = static_cast<int>(lines_left < lines ? lines_left : lines);
    const int others = (1 << (31 - __clz(present))) - 1;  // a mask: as many as are surely present
#pragma unroll
    for (int e = 0; e < each; ++e) {
      const std::int64_t from = line + e * lines_apart, instead = lines < 128 ? from & others : lines_left - 1;
      source_[e] = source + (from < lines_left ? from : instead) * line_stride + k;
    }
  }

  __device__ __forceinline__ void start(Element*, std::int64_t left) {
    if (left > 0)
#pragma unroll
      for (int e = 0; e < each; ++e) {
        arch::copy_async<16>(staging_ + e * threads * width, source_[e]);
        source_[e] += depth;
      }
    Element* const started = staging_;
    staging_ = other_;
    other_ = started;
  }

  __device__ __forceinline__ void finish(Element* slab) const {
#pragma unroll
    for (int e = 0; e < each; ++e) {
      const auto values = Chunk<Element, width>::load(staging_ + e * threads * width);
#pragma unroll
      for (int v = 0; v < width; ++v) slab[slot_ + v * Layout::pitch + e * lines_apart] = values.value[v];
    }
  }

 private:
  const Element* source_[each];
  Element *staging_, *other_;  // for the next slab to be started; for the one that was started last
  int slot_;
};

/// 16 bytes of neighbouring lines at a time, asynchronously. K is a multiple of depth, the number of lines one of a vector,
/// addresses are aligned. Lines beyond the last ones repeat those.
template <class Element, int lines, int depth, int threads>
class Loader<Way::along_lines, Element, Element, lines, depth, threads> {
  using Layout = Slab<Element, lines, depth>;
  static constexpr int width = 16 / static_cast<int>(sizeof(Element));
  static constexpr int in_k = lines / width, k_apart = threads / in_k, each = depth / k_apart;
  static_assert(lines % width == 0 && threads % in_k == 0 && depth % k_apart == 0);

 public:
  static constexpr bool async = true;
  static constexpr int staging_size = 0;

  __device__ __forceinline__ Loader(const Element* source, std::int64_t, std::int64_t k_stride, std::int64_t lines_left,
                                    std::int64_t, Element*, unsigned thread_index)
      : k_stride_(k_stride) {
    const int thread = static_cast<int>(thread_index), line = thread % in_k * width, k = thread / in_k;
    slot_ = k * Layout::pitch + line;
    source_ = source + (line < lines_left ? line : lines_left - width) + k * k_stride;
  }

  __device__ __forceinline__ void start(Element* slab, std::int64_t left) {
    if (left > 0)
#pragma unroll
      for (int e = 0; e < each; ++e) {
        arch::copy_async<16>(slab + slot_ + e * k_apart * Layout::pitch, source_);
        source_ += k_apart * k_stride_;
      }
  }

  __device__ __forceinline__ void finish(Element*) const {}

 private:
  const Element* source_;
  std::int64_t k_stride_;
  int slot_;
};

/// Along k as above, whatever alignment and K. A line's first values, up to the first aligned address, come one by one; each
/// thread's vectors after them are shifted by as many, so that one of two reaches into the slab that follows. Nothing outside
/// of the matrix is read.
template <class Element, int lines, int depth, int threads>
class Loader<Way::shifted_k, Element, Element, lines, depth, threads> {
  using Layout = Slab<Element, lines, depth>;
  static constexpr int width = 16 / static_cast<int>(sizeof(Element));
  static constexpr int in_line = depth / width, lines_apart = threads / in_line, each = lines / lines_apart;
  static_assert(sizeof(Element) == 4 && depth == 2 * width && lines == 2 * lines_apart);
  static_assert(lines_apart % width == 0, "a thread's lines are shifted alike");

 public:
  static constexpr bool async = true;
  static constexpr int staging_size = 2 * lines * depth;  // of the slab that is finished next, and of the one after it
  static constexpr int whole = depth + width - 1;

  __device__ __forceinline__ Loader(const Element* source, std::int64_t line_stride, std::int64_t, std::int64_t lines_left,
                                    std::int64_t, Element* staging, unsigned thread_index)
      : staging_(staging + thread_index * width) {
    const int thread = static_cast<int>(thread_index), line = thread / in_line, vector = thread % in_line;
    // Lines beyond the last one repeat others, as they are shifted, from the L1 cache.
    const int present = static_cast<int>(lines_left < lines ? lines_left : lines);
    const int others = (1 << (31 - __clz(present))) - 1;  // a mask: as many as are surely present
    const Element* const begin = source + (line < present ? line : line & others) * line_stride;
    place_ = static_cast<int>(-(reinterpret_cast<std::uintptr_t>(begin) / sizeof(Element)) % width) + vector * width;
    slot_ = place_ * Layout::pitch + line;
    source_ = begin + place_;
    other_ = line + lines_apart < present ? static_cast<int>(lines_apart * line_stride) : 0;
  }

  /// Starts to copy the values of the first slab that no vector brings.
  __device__ __forceinline__ void start_heads(Element* slab, std::int64_t left) const {
    if (place_ >= width) return;
#pragma unroll
    for (int e = 0; e < each; ++e)
#pragma unroll
      for (int j = 1; j < width; ++j)
        if (place_ >= j && place_ - j < left)
          arch::copy_async<sizeof(Element)>(slab + slot_ - j * Layout::pitch + e * lines_apart, source_ + e * other_ - j);
  }

  /// Starts with a slab where at least `whole` values of k are left, so that all of each vector is there.
  __device__ __forceinline__ void start_whole(Element*) {
    Element* const to = staging_ + turn_;
#pragma unroll
    for (int e = 0; e < each; ++e) arch::copy_async<16, true>(to + e * threads * width, source_ + e * other_);
    source_ += depth;
    turn_ ^= lines * depth;
  }

  __device__ __forceinline__ void start(Element*, std::int64_t left) {
    Element* const to = staging_ + turn_;
    if (left >= whole) {
#pragma unroll
      for (int e = 0; e < each; ++e) arch::copy_async<16, true>(to + e * threads * width, source_ + e * other_);
    } else {
      const int values = static_cast<int>(left) - place_;
#pragma unroll
      for (int e = 0; e < each; ++e) arch::copy_async_words(to + e * threads * width, source_ + e * other_, values);
    }
    source_ += depth;
    turn_ ^= lines * depth;
  }

  /// `next`: the slab that follows.
  __device__ __forceinline__ void finish(Element* slab, Element* next) const {
    Element *const here = slab + slot_, *const there = next + slot_ - depth * Layout::pitch;
#pragma unroll
    for (int e = 0; e < each; ++e) {
      const auto values = Chunk<Element, width>::load(staging_ + turn_ + e * threads * width);
#pragma unroll
      for (int v = 0; v < width; ++v)
        (place_ + v < depth ? here : there)[v * Layout::pitch + e * lines_apart] = values.value[v];
    }
  }

 private:
  const Element* source_;
  Element* staging_;
  int turn_ = 0;      // from there to where the next slab to be started goes, and whence the next one is finished
  int other_;         // from the first line's vector to the second line's, in elements
  int place_, slot_;  // of the vector's first value: along k from the slab's first one on, and in shared memory
};

/// Along the lines as above, whatever alignment, lines and K; from line to line of k there are at least as many elements as
/// lines, and as a vector has. First values come one by one, the vectors after them by way of a place of the thread's own.
/// Vectors beyond the lines' end read what follows in the matrix, but in its last slab, whose end it may be.
template <class Element, int lines, int depth, int threads>
class Loader<Way::shifted_lines, Element, Element, lines, depth, threads> {
  using Layout = Slab<Element, lines, depth>;
  static constexpr int width = 16 / static_cast<int>(sizeof(Element));
  static constexpr int in_k = lines / width, k_apart = threads / in_k, each = depth / k_apart;
  static_assert(sizeof(Element) == 4 && lines % width == 0 && threads % in_k == 0 && depth % k_apart == 0 &&
                threads >= depth * width);
  static_assert(k_apart % width == 0, "a thread's vectors are shifted alike");
  static_assert(Layout::pitch >= lines + width - 1, "the last vector of a line of k may end behind it");

 public:
  static constexpr bool async = true;
  static constexpr int staging_size = 2 * lines * depth;

  __device__ __forceinline__ Loader(const Element* source, std::int64_t, std::int64_t k_stride, std::int64_t lines_left,
                                    std::int64_t, Element* staging, unsigned thread_index)
      : k_stride_(k_stride), staging_(staging + thread_index * width) {
    const int thread = static_cast<int>(thread_index);
    const auto heads = [&](int k) {
      return static_cast<int>(-(reinterpret_cast<std::uintptr_t>(source + k * k_stride) / sizeof(Element)) % width);
    };
    k_ = thread / in_k;
    const int line = heads(k_) + thread % in_k * width;
    left_ = static_cast<int>(lines_left < 2 * lines ? lines_left : 2 * lines) - line;
    slot_ = k_ * Layout::pitch + line;
    source_ = source + (left_ > 0 ? line : line % width) + k_ * k_stride;  // vectors beyond the end repeat the first one
    const int head_k = thread / width, head = thread % width;
    head_k_ = head_k < depth && head < heads(head_k) && head < lines_left ? head_k : depth;
    head_ = source + head + head_k_ * k_stride;
    head_slot_ = head_k * Layout::pitch + head;
  }

  __device__ __forceinline__ void start(Element* slab, std::int64_t left) {
    if (head_k_ < depth && head_k_ < left) arch::copy_async<sizeof(Element)>(slab + head_slot_, head_);
    head_ += depth * k_stride_;
    Element* const to = staging_ + turn_;
    if (left > depth) {
#pragma unroll
      for (int e = 0; e < each; ++e) arch::copy_async<16, true>(to + e * threads * width, source_ + e * k_apart * k_stride_);
    } else {
#pragma unroll
      for (int e = 0; e < each; ++e)
        arch::copy_async_words(to + e * threads * width, source_ + e * k_apart * k_stride_,
                               k_ + e * k_apart < left ? left_ : 0);
    }
    source_ += depth * k_stride_;
    turn_ ^= lines * depth;
  }

  __device__ __forceinline__ void finish(Element* slab) const {
#pragma unroll
    for (int e = 0; e < each; ++e) {
      const auto values = Chunk<Element, width>::load(staging_ + turn_ + e * threads * width);
#pragma unroll
      for (int v = 0; v < width; ++v) slab[slot_ + e * k_apart * Layout::pitch + v] = values.value[v];
    }
  }

 private:
  const Element *source_, *head_;
  std::int64_t k_stride_;
  Element* staging_;
  int turn_ = 0;
  int k_, left_;          // of the thread's first vector: its line of k, and lines from its first value on
  int slot_, head_slot_;  // in shared memory
  int head_k_;            // the line of k of a value that the thread copies by itself; `depth`: it has none
};

}  // namespace rigel::tile
