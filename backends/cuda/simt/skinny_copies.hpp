// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few rows against a large matrix: what the copying warps of skinny.hpp do.
//
// A line of B is a column if B is K-major, a row if it is N-major. If lines are not aligned, the copies bring whole aligned vectors, and the
// copying warps shift the elements in shared memory. A line's first and last vector may hold other bytes as well. Bytes in front of B are
// safe to read, since allocations are aligned. Bytes after B are not read: a vector that crosses the end of B is copied element by element.
#pragma once

#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/backends/cuda/simt/skinny_plan.hpp>

#include <bit>

namespace rigel::backends::simt {

/// How C is cut into tiles, a block's rows by its columns: those of a column of tiles follow each other. A thread has `count` rows.
/// Swapped: rows are columns of the caller's C.
struct SkinnyTiles {
  unsigned in_column, in_matrix;
  std::int64_t all;
  int count;
  bool swapped, gathers, shifts;
  const void* end_of_b;  // of its last element in memory
};

/// One of them: its first output is C(l, m, n).
template <class Shape>
struct SkinnyTile {
  std::int64_t l, m, n;

  __device__ __forceinline__ SkinnyTile(const SkinnyTiles& tiles, std::int64_t index) {
    l = tiles.all == tiles.in_matrix ? 0 : index / tiles.in_matrix;
    const auto in_matrix = static_cast<unsigned>(index - l * tiles.in_matrix);
    const unsigned across = tiles.in_column == 1 ? in_matrix : in_matrix / tiles.in_column;
    m = std::int64_t{in_matrix - across * tiles.in_column} * (Shape::groups * tiles.count);
    n = std::int64_t{across} * Shape::columns;
  }
};

/// A thread's copies for all slabs of its block, tile after tile. In each slab it copies vectors of A and of B, from every `apart_a`-th
/// row and every `apart_b`-th line.
/// They advance by additions, since a slab's multiplications of 64 bits would take as long as its sums. 16-bit floats that are computed
/// in float arrive at the end of their vector's place, and are converted there, as lines are shifted, by the threads that copied them.
template <class S, class Shape, bool k_major>
class SkinnyCopies {
  using Element = typename S::element;
  using Stored = typename Shape::Stored;
  static constexpr int width = Shape::width, threads = Shape::copying, copied = Shape::copied;
  static constexpr int along = Shape::depth / width, across = Shape::columns / width;  // vectors of a line
  static constexpr int in_line_b = k_major ? along : across, lines_b = k_major ? Shape::columns : Shape::depth;
  static constexpr int pitch_b = k_major ? Shape::pitch : Shape::pitch_n;
  static constexpr int apart_a = threads / along, apart_b = threads / in_line_b;  // lines
  static constexpr int count_a = (Shape::m + apart_a - 1) / apart_a, count_b = (lines_b + apart_b - 1) / apart_b;
  static_assert(threads % along == 0 && threads % in_line_b == 0);
  // A line's threads are in one warp; a thread's lines, and those of all tiles, begin equally far from a multiple of `copied` bytes.
  static_assert(in_line_b <= 32 && apart_b * sizeof(Element) % copied == 0 && lines_b * sizeof(Element) % copied == 0);

 public:
  __device__ __forceinline__ SkinnyCopies(const detail::ProductArguments<Element>& g, const SkinnyTiles& tiles, int thread)
      : g_(g), tiles_(tiles), thread_(thread), index_(blockIdx.x), left_to_convert_(g.k) {
    begin();
    beyond_ = tiles.shifts ? static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(b_)) % copied : 0;
  }
  /// Starts to bring the next slab to `slab`: A, then B.
  __device__ __forceinline__ void start(Stored* slab) {
    const int k = thread_ % along * width;
    Stored* const to_b = first_of_b(slab);
    if (tiles_.gathers) {
      gather(slab);
      a_ += Shape::depth * g_.a.column;
    } else {
      // Through the L1 cache: tiles have the same rows of A, and all blocks at once would wait for a few lines of the L2 cache.
      copy<count_a, true>(first_of_a(slab), apart_a * Shape::pitch, a_, apart_a * g_.a.row, k < left_ ? exist_a_ : 0);
      a_ += Shape::depth;
    }
    const std::int64_t left = k_major ? left_ - k : columns_;  // elements of this thread's lines
    const std::int64_t lines =
        k_major ? exist_b_ : std::min<std::int64_t>((left_ - thread_ / in_line_b + apart_b - 1) / apart_b, exist_b_);
    const std::int64_t b_apart = apart_b * (k_major ? g_.b.column : g_.b.row);
    if (tiles_.shifts)
      copy_shifted<count_b>(to_b, apart_b * pitch_b, b_, b_apart, lines, left);
    else
      copy<count_b, false>(to_b, apart_b * pitch_b, b_, b_apart, left > 0 ? lines : 0);
    left_ -= Shape::depth;
    b_ += Shape::depth * (k_major ? 1 : g_.b.row);
    if (left_ <= 0) {
      index_ += gridDim.x;
      begin();
    }
  }

  /// Shifts and converts what has been copied to `slab`, the next one to arrive: this thread's vectors.
  __device__ __forceinline__ void convert(Stored* slab) {
    if (!Shape::converts && !tiles_.shifts) return;
    if constexpr (Shape::converts)
      if (!tiles_.gathers) {
        const int lines_a = Shape::groups * tiles_.count - thread_ / along;
        convert_vectors<count_a, false>(first_of_a(slab), apart_a * Shape::pitch, (lines_a + apart_a - 1) / apart_a);
      }
    const int lines = k_major ? count_b
                              : static_cast<int>(std::min<std::int64_t>(
                                    (left_to_convert_ - thread_ / in_line_b + apart_b - 1) / apart_b, count_b));
    if (tiles_.shifts) {
      __syncwarp();
      convert_vectors<count_b, true>(first_of_b(slab), apart_b * pitch_b, lines);
    } else {
      convert_vectors<count_b, false>(first_of_b(slab), apart_b * pitch_b, lines);
    }
    left_to_convert_ -= Shape::depth;
    if (left_to_convert_ <= 0) left_to_convert_ = g_.k;
  }

 private:
  using Vector = tile::Chunk<Element, width>;
  static constexpr int words = copied / 4;

  /// The places of this thread's first vectors.
  __device__ __forceinline__ Stored* first_of_a(Stored* slab) const {
    return slab + thread_ / along * Shape::pitch + thread_ % along * width;
  }
  __device__ __forceinline__ Stored* first_of_b(Stored* slab) const {
    return slab + Shape::of_a(tiles_.count) + thread_ / in_line_b * pitch_b + thread_ % in_line_b * width;
  }
  /// Where a vector's elements arrive.
  __device__ __forceinline__ static Element* arrival(Stored* vector) {
    return reinterpret_cast<Element*>(reinterpret_cast<unsigned char*>(vector) + (16 - copied));
  }
  /// The 16 (or `copied`) bytes that start at byte `beyond_` of the vector at `first` and end in the next vector.
  __device__ __forceinline__ Vector shifted(Stored* first) const {
    unsigned from[2 * words];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto part = tile::Chunk<unsigned, words>::load(reinterpret_cast<const unsigned*>(arrival(first + half * width)));
#pragma unroll
      for (int i = 0; i < words; ++i) from[half * words + i] = part.value[i];
    }
#pragma unroll
    for (int step = words / 2; step > 0; step /= 2)
#pragma unroll
      for (int i = 0; i + step < 2 * words; ++i) {
        const unsigned near = from[i], far = from[i + step];  // a choice between places would put them in local memory
        from[i] = beyond_ / 4 & step ? far : near;
      }
    tile::Chunk<unsigned, words> to;
#pragma unroll
    for (int i = 0; i < words; ++i) to.value[i] = __byte_perm(from[i], from[i + 1], 0x3210 + beyond_ % 4 * 0x1111);
    return __builtin_bit_cast(Vector, to);
  }
  /// The first `exist` of `count` vectors.
  template <int count, bool shifts>
  __device__ __forceinline__ void convert_vectors(Stored* first, int apart, int exist) const {
    constexpr int at_once = count < 4 ? count : 4;
#pragma unroll
    for (int i = 0; i < count; i += at_once) {
      Vector from[at_once];
#pragma unroll
      for (int j = 0; j < at_once; ++j)
        if (i + j < exist) {
          if constexpr (shifts)
            from[j] = shifted(first + (i + j) * apart);
          else
            from[j] = Vector::load(arrival(first + (i + j) * apart));
        }
      if constexpr (shifts) __syncwarp();  // a vector's place is also its neighbour's
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        tile::Chunk<Stored, width> to;
#pragma unroll
        for (int v = 0; v < width; ++v) to.value[v] = static_cast<Stored>(from[j].value[v]);
        if (i + j < exist) to.store(first + (i + j) * apart);
      }
    }
  }
  /// Copies the first `exist` of `count` vectors.
  template <int count, bool cached>
  __device__ __forceinline__ static void copy(Stored* to, int to_apart, const Element* from, std::int64_t from_apart,
                                              std::int64_t exist) {
    const int limit = static_cast<int>(exist);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (i < limit) arch::copy_async<copied, cached>(arrival(to + i * to_apart), from);
      from += from_apart;
      asm volatile("" : "+l"(from));  // otherwise each address is a product
    }
  }
  /// The same for lines that are not aligned: copies the aligned vector that holds `from`, and so on for each line. A line has `left`
  /// elements from there on; vectors without any of them are left out. The last thread of a line also copies the next vector.
  template <int count>
  __device__ __forceinline__ void copy_shifted(Stored* to, int to_apart, const Element* from, std::int64_t from_apart,
                                               std::int64_t exist, std::int64_t left) const {
    const int limit = static_cast<int>(exist);
    const int bytes = static_cast<int>(std::clamp<std::int64_t>(left, -copied, 2 * copied) * std::int64_t{sizeof(Element)}) +
                      static_cast<int>(beyond_);
    if (bytes <= 0) return;
    const bool has_next = thread_ % in_line_b == in_line_b - 1 && beyond_ > 0 && bytes > copied;
    const auto* const first = reinterpret_cast<const unsigned char*>(from) - beyond_;
    const auto* const end = static_cast<const unsigned char*>(tiles_.end_of_b);
    const std::int64_t apart = from_apart * std::int64_t{sizeof(Element)};
    bool crosses = false;  // the end of B
    auto* vector = first;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (i < limit) {
        const bool whole = vector + copied <= end, next_whole = vector + 2 * copied <= end;
        if (whole) arch::copy_async<copied>(arrival(to + i * to_apart), vector);
        if (has_next && next_whole) arch::copy_async<copied>(arrival(to + i * to_apart + width), vector + copied);
        crosses |= has_next ? !next_whole : !whole;
      }
      vector += apart;
      asm volatile("" : "+l"(vector));
    }
    if (!crosses) return;
#pragma unroll 1
    for (int i = 0; i < limit; ++i)
#pragma unroll 1
      for (int next = 0; next <= static_cast<int>(has_next); ++next) {
        auto* at = first + i * apart + next * copied;
        if (at + copied <= end) continue;
        Element* place = arrival(to + i * to_apart + next * width);
#pragma unroll 1
        for (; at < end; at += sizeof(Element)) *place++ = *reinterpret_cast<const Element*>(at);
      }
  }
  /// Brings A element by element, neighbours in memory together: by asynchronous copies, or through registers.
  __device__ __forceinline__ void gather(Stored* slab) const {
    constexpr bool async = Shape::gathers_async;
    constexpr int depth_bits = std::bit_width(unsigned{Shape::depth}) - 1, at_once = async ? 4 : 8;
    const int bits = 32 - __clz(exist_a_ - 1);  // of a row's number
    const bool by_rows = g_.a.column == 1;
    const int row_shift = by_rows ? depth_bits : 0, k_shift = by_rows ? 0 : bits;
    const int end = 1 << (depth_bits + bits);
#pragma unroll 1
    for (int first = thread_; first < end; first += at_once * threads) {
      Element element[at_once];
      int place[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        const int at = first + i * threads, row = at >> row_shift & ((1 << bits) - 1),
                  k = at >> k_shift & (Shape::depth - 1);
        const bool exists = at < end && row < exist_a_ && k < left_;
        place[i] = exists ? row * Shape::pitch + k : -1;
        const Element* const from = a_ + row * g_.a.row + k * g_.a.column;
        if constexpr (async) {
          if (exists) arch::copy_async<sizeof(Element)>(slab + place[i], from);
        } else {
          if (exists) element[i] = *from;
        }
      }
      if constexpr (!async)
#pragma unroll
        for (int i = 0; i < at_once; ++i)
          if (place[i] >= 0) slab[place[i]] = static_cast<Stored>(element[i]);
    }
  }
  __device__ __forceinline__ void begin() {
    if (index_ >= tiles_.all) return;
    const SkinnyTile<Shape> tile(tiles_, index_);
    // How many of the lines from `first` on, `apart` from each other, are among `lines`.
    const auto exist = [](std::int64_t lines, int first, int apart) {
      return static_cast<int>(std::clamp<std::int64_t>((lines - first + apart - 1) / apart, 0, count_a + count_b));
    };
    left_ = g_.k;
    const std::int64_t rows = std::min<std::int64_t>(g_.m - tile.m, Shape::groups * tiles_.count);
    if (tiles_.gathers) {
      a_ = &g_.a.at(tile.l, tile.m, 0);
      exist_a_ = static_cast<int>(rows);
    } else {
      a_ = &g_.a.at(tile.l, tile.m + thread_ / along, thread_ % along * width);
      exist_a_ = exist(rows, thread_ / along, apart_a);
    }
    if constexpr (k_major) {
      b_ = &g_.b.at(tile.l, thread_ % along * width, tile.n + thread_ / along);
      exist_b_ = exist(std::min<std::int64_t>(g_.n - tile.n, Shape::columns), thread_ / along, apart_b);
    } else {
      b_ = &g_.b.at(tile.l, thread_ / across, tile.n + thread_ % across * width);
      columns_ = static_cast<int>(std::min<std::int64_t>(g_.n - tile.n - thread_ % across * width, 2 * Shape::columns));
      exist_b_ = exist(Shape::depth, thread_ / across, apart_b);
    }
  }

  const detail::ProductArguments<Element>& g_;
  const SkinnyTiles& tiles_;
  int thread_;
  std::int64_t index_, left_;     // the tile, and the elements along K from the next slab on
  std::int64_t left_to_convert_;  // those from the next slab on that convert() gets
  const Element *a_, *b_;         // of the next slab
  int exist_a_, exist_b_;         // of this thread's lines, or all rows of A if it gathers
  int columns_ = 0;               // of an N-major B, from this thread's first one on
  unsigned beyond_;               // by so many bytes the starts of this thread's lines exceed a multiple of `copied`
};

}  // namespace rigel::backends::simt
