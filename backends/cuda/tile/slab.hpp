// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slabs: the part of an operand that a tile needs for `depth` k, in shared memory. All lines for one k are contiguous; a
// line is a row of A or a column of B. Operands may have any strides: threads are mapped to (line, k) so that a warp's reads
// coalesce.
#pragma once

#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/backends/cuda/arch/shared_memory.hpp>
#include <rigel/numeric.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace rigel::tile {

/// The type of an operand in shared memory: whole words for small integers, everything else as it is.
template <class Operand>
using stored_t = std::conditional_t<std::is_integral_v<Operand> && sizeof(Operand) < 4,
                                    std::conditional_t<std::is_signed_v<Operand>, std::int32_t, std::uint32_t>, Operand>;

/// Neighbours that a thread reads from a slab at a time: at most 16 bytes, a power of two, at most 4.
template <class Stored>
inline constexpr int chunk_of = (sizeof(Stored) & (sizeof(Stored) - 1)) != 0 || sizeof(Stored) > 8 ? 1
                                : sizeof(Stored) == 8                                              ? 2
                                                                                                   : 4;

/// What one load or store instruction moves: a vector of numbers, or for anything else words of `bytes` bytes.
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
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && count > 1)  // Clang packs a vector of bools into bits
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
  // From k to k + 1, in elements. The padding of 16 bytes spreads a warp that writes 8 k of 4 lines over all 32 banks.
  static constexpr int pitch = lines + chunk;
  // One k more than is used: the fragment of k + 1 is read before the test that it exists.
  static constexpr int size = (depth + 1) * pitch;

  /// Neighbours that a thread reads at a time if it has few outputs along m or n.
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

/// How an operand comes to shared memory. `single`: element by element, for any strides, alignment and extents. `along_k`,
/// `along_lines`: 16-byte vectors of an aligned K-major, or M- or N-major, operand. `either`: one of these two, as the
/// strides say. `shifted_k`, `shifted_lines`: such vectors although each line, or each k, starts at any alignment.
enum class Way { single, along_k, along_lines, either, shifted_k, shifted_lines };

/// Brings one operand slab by slab from global to shared memory. `start` begins a slab, `finish` completes the next one that
/// is needed. `staging`: `staging_size` elements of shared memory for this loader alone. `thread_index`: threadIdx.x. With
/// `repeats`, lines of a slab beyond the matrix's last one repeat existing ones; along_k, along_lines and either always do so.
template <Way way, class Element, class Operand, int lines, int depth, int threads, bool repeats = false>
class Loader;

/// Elements that both memories hold in the same form are copied asynchronously; others go through registers, where they are
/// converted. Nothing outside of the matrix is read. Without `repeats` the slab's contents there are undefined.
template <class Element, class Operand, int lines, int depth, int threads, bool repeats>
class Loader<Way::single, Element, Operand, lines, depth, threads, repeats> {
  using Layout = Slab<Operand, lines, depth>;
  using Stored = typename Layout::Stored;
  static constexpr int each = lines * depth / threads;  // elements that a thread moves
  // If neighbouring threads take neighbouring lines, the block covers all lines at a time, or as many as let it cover all k.
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
    // Neighbouring threads take neighbours in memory.
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
    const bool across_lines = along_k_ || !all_lines;  // the thread's elements are of one k; otherwise of one line
    full_ = across_lines ? count_of<threads / depth>(present) : present > 0 ? each : 0;
    tail_ = across_lines ? (tail > 0 ? full_ : 0) : present > 0 ? count_of<all_lines ? k_apart : 1>(tail) : 0;
    if constexpr (repeats && !async && !(Number<Element> && Number<Operand>))  // finish() converts beyond K too
#pragma unroll
      for (int e = 0; e < each; ++e) values_[e] = *source;
  }

  /// Starts to read the next slab into `slab`; `left` elements along K exist, or more.
  __device__ __forceinline__ void start(Stored* slab, std::int64_t left) {
    if (left <= 0) return;
    const int count = left < depth ? tail_ : full_;
    if (along_k_)
      move<threads / depth, true>(slab, count);
    else
      move<lines_apart + k_apart * Layout::pitch, !all_lines>(slab, count);
    source_ += slab_step_;
  }

  /// Whether any of this thread's elements of a slab, whose asynchronous copies have arrived, is so. `left`: as in start().
  template <class Is>
  __device__ __forceinline__ bool any(const Stored* slab, std::int64_t left, const Is& is) const {
    static_assert(async);
    const int count = left <= 0 ? 0 : left < depth ? tail_ : full_;
    const int slot_step = along_k_ ? threads / depth : lines_apart + k_apart * Layout::pitch;
    bool found = false;
#pragma unroll
    for (int e = 0; e < each; ++e)
      if (e < count) found |= is(slab[slot_ + e * slot_step]);
    return found;
  }

  /// Converts and writes what came through registers.
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
  /// How many of this thread's elements exist: they are `step` apart, and the first has `left` before the end.
  template <int step>
  __device__ __forceinline__ static int count_of(int left) {
    const int present = (left + step - 1) / step;
    return left <= 0 ? 0 : present < each ? present : each;
  }

  /// Moves the first `count` of this thread's elements, which are of one k (`across_lines`) or of one line.
  template <int slot_step, bool across_lines>
  __device__ __forceinline__ void move(Stored* slab, int count) {
    const Element* p = source_;
    if constexpr (async)
      if (count == each) {  // all exist: no predicates
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
  int slot_;                       // of this thread's first element, in shared memory
  int full_ = 0, tail_ = 0;        // how many of this thread's elements exist in a full slab, in the last one
  bool along_k_;
  Element values_[async ? 1 : each] = {};
};

/// 16-byte vectors along K, copied asynchronously to a staging slot of the thread's own; finish() transposes them through
/// registers into the slab. K must be a multiple of depth, addresses aligned. Lines beyond the last one repeat it. In small
/// tiles, of which they are a larger part, they repeat different ones, since reads of a single one would queue up.
template <class Element, int lines, int depth, int threads>
class Loader<Way::along_k, Element, Element, lines, depth, threads> {
  using Layout = Slab<Element, lines, depth>;
  static constexpr int width = 16 / static_cast<int>(sizeof(Element));
  static constexpr int in_line = depth / width, lines_apart = threads / in_line, each = lines / lines_apart;
  static_assert(depth % width == 0 && threads % in_line == 0 && lines % lines_apart == 0);

 public:
  static constexpr bool async = true;
  static constexpr int staging_size = 2 * lines * depth;  // of the next two slabs to be finished

  __device__ __forceinline__ Loader(const Element* source, std::int64_t line_stride, std::int64_t, std::int64_t lines_left,
                                    std::int64_t, Element* staging, unsigned thread_index)
      : staging_(staging + thread_index * width), other_(staging_ + lines * depth) {
    const int thread = static_cast<int>(thread_index), line = thread / in_line, k = thread % in_line * width;
    slot_ = k * Layout::pitch + line;
    const int present = static_cast<int>(lines_left < lines ? lines_left : lines);
    const int others = (1 << (31 - __clz(present))) - 1;  // a mask: all lines up to it are present
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
  Element *staging_, *other_;  // staging for the next slab to be started; for the one started last
  int slot_;
};

/// 16-byte vectors of neighbouring lines, copied asynchronously. K must be a multiple of depth, the number of lines a
/// multiple of a vector, addresses aligned. Lines beyond the last ones repeat those.
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

/// 16-byte vectors of 16-bit floats of a K-major or an M- or N-major operand, copied asynchronously to a staging slot of the
/// thread's own; finish() converts them on their way to the slab. K must be a multiple of depth, addresses aligned, and the
/// number of lines a multiple of a vector if they are contiguous. Lines beyond the last ones repeat those.
template <class Element, int lines, int depth, int threads>
class Loader<Way::either, Element, float, lines, depth, threads> {
  using Layout = Slab<float, lines, depth>;
  using Vector = Chunk<Element, 8>;
  static constexpr int width = 8, in_k = lines / width;  // elements of a vector, vectors of a k
  static_assert(sizeof(Element) == 2 && depth == width && threads == lines, "a thread brings one vector");

 public:
  static constexpr bool async = true;
  static constexpr int staging_size = lines * depth;  // of the next two slabs to be finished

  __device__ __forceinline__ Loader(const Element* source, std::int64_t line_stride, std::int64_t k_stride,
                                    std::int64_t lines_left, std::int64_t, float* staging, unsigned thread_index)
      : staging_(reinterpret_cast<Element*>(staging) + thread_index * width), along_k_(line_stride != 1) {
    const int thread = static_cast<int>(thread_index);
    const int line = along_k_ ? thread : thread % in_k * width, k = along_k_ ? 0 : thread / in_k;
    const std::int64_t last = lines_left - (along_k_ ? 1 : width);
    source_ = source + (line < lines_left ? line : last) * line_stride + k * k_stride;
    slab_step_ = depth * k_stride;
    slot_ = k * Layout::pitch + line;
  }

  __device__ __forceinline__ void start(float*, std::int64_t left) {
    if (left > 0) {
      arch::copy_async<16>(staging_ + turn_, source_);
      source_ += slab_step_;
    }
    turn_ ^= lines * depth;
  }

  __device__ __forceinline__ void finish(float* slab) const {
    const Vector vector = Vector::load(staging_ + turn_);
    Chunk<float, 4> values[2];
#pragma unroll
    for (int v = 0; v < width; ++v) values[v / 4].value[v % 4] = static_cast<float>(vector.value[v]);
    float* const to = slab + slot_;
#pragma unroll
    for (int v = 0; v < width; ++v) arch::store_if(along_k_, to + v * Layout::pitch, values[v / 4].value[v % 4]);
#pragma unroll
    for (int i = 0; i < 2; ++i) arch::store_if(!along_k_, to + 4 * i, values[i].value);
  }

 private:
  const Element* source_;
  std::int64_t slab_step_;  // in elements
  Element* staging_;
  int turn_ = 0;  // offset of the staging slot that the next start() fills and the next finish() reads
  int slot_;      // of the thread's first element, in shared memory
  bool along_k_;
};

/// along_k for any alignment and any K. A line's head, its elements before the first aligned address, is copied element by
/// element. The vectors after it are shifted by as many elements, so the second of a slab's two vectors reaches into the
/// next slab. Nothing outside of the matrix is read.
template <class Element, int lines, int depth, int threads>
class Loader<Way::shifted_k, Element, Element, lines, depth, threads> {
  using Layout = Slab<Element, lines, depth>;
  static constexpr int width = 16 / static_cast<int>(sizeof(Element));
  static constexpr int in_line = depth / width, lines_apart = threads / in_line, each = lines / lines_apart;
  static_assert(sizeof(Element) == 4 && depth == 2 * width && lines == 2 * lines_apart);
  static_assert(lines_apart % width == 0, "a thread's lines are shifted alike");

 public:
  static constexpr bool async = true;
  static constexpr int staging_size = 2 * lines * depth;  // of the next two slabs to be finished
  static constexpr int whole = depth + width - 1;

  __device__ __forceinline__ Loader(const Element* source, std::int64_t line_stride, std::int64_t, std::int64_t lines_left,
                                    std::int64_t, Element* staging, unsigned thread_index)
      : staging_(staging + thread_index * width) {
    const int thread = static_cast<int>(thread_index), line = thread / in_line, vector = thread % in_line;
    // Lines beyond the last one repeat others, with the same shift; the L1 cache serves them.
    const int present = static_cast<int>(lines_left < lines ? lines_left : lines);
    const int others = (1 << (31 - __clz(present))) - 1;  // a mask: all lines up to it are present
    const Element* const begin = source + (line < present ? line : line & others) * line_stride;
    place_ = static_cast<int>(-(reinterpret_cast<std::uintptr_t>(begin) / sizeof(Element)) % width) + vector * width;
    slot_ = place_ * Layout::pitch + line;
    source_ = begin + place_;
    other_ = line + lines_apart < present ? static_cast<int>(lines_apart * line_stride) : 0;
  }

  /// Starts to copy the heads of the first slab, which no vector brings.
  __device__ __forceinline__ void start_heads(Element* slab, std::int64_t left) const {
    if (place_ >= width) return;
#pragma unroll
    for (int e = 0; e < each; ++e)
#pragma unroll
      for (int j = 1; j < width; ++j)
        if (place_ >= j && place_ - j < left)
          arch::copy_async<sizeof(Element)>(slab + slot_ - j * Layout::pitch + e * lines_apart, source_ + e * other_ - j);
  }

  /// Starts a slab when at least `whole` elements along K are left, so that all vectors are complete.
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

  /// `next`: the slab after this one.
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
  int turn_ = 0;      // offset of the staging buffer that the next start() fills and the next finish() reads
  int other_;         // from the first line's vector to the second line's, in elements
  int place_, slot_;  // of the vector's first element: along K from the start of the slab, and in shared memory
};

/// along_lines for any alignment, number of lines and K. The stride from k to k + 1 must be at least the number of lines and
/// at least a vector. The heads are copied element by element, the vectors after them through a staging slot of the thread's
/// own. Vectors that end beyond the last line read what follows in the matrix; those of the last slab, whose end it may be,
/// do not.
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
  int k_, left_;          // of the thread's first vector: its k, and lines from its first element to the end
  int slot_, head_slot_;  // in shared memory
  int head_k_;            // k of the head element that the thread copies; `depth`: none
};

}  // namespace rigel::tile
