// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's side of a few rows against a large matrix: the shapes of tiles, what they support, and the time that this should take.
#pragma once

#include <rigel/backends/cuda/arch/shared_memory.hpp>
#include <rigel/backends/cuda/simt/contract.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

namespace rigel::backends::simt {

/// A tile of some rows by `Columns` columns; a slab has `Depth` elements along K, of which the code takes `Unrolled` at a time. A
/// computing thread has one of `Counts` rows, in each of `OfThread` columns: the more outputs share an operand, the less they read of
/// shared memory. Slabs hold elements as `Stored`, in vectors of 16 bytes.
template <class Element, class Stored_, int Columns, int OfThread, int Depth, int Unrolled, int... Counts>
struct SkinnyShape {
  using Stored = Stored_;
  static constexpr bool converts = !std::is_same_v<Element, Stored>;
  static constexpr int size = static_cast<int>(sizeof(Stored)), columns = Columns;
  static constexpr int computing = columns == 64 ? 256 : 128, copying = 128, threads = computing + copying;
  static constexpr int of_thread = OfThread, lanes = columns / of_thread, groups = computing / lanes;
  static constexpr int rows = std::max({Counts...}), m = groups * rows;  // at most: of a thread, of a tile
  // On a multiprocessor, as far as registers are concerned. Threads with up to 32 outputs take up to 150, and those with saturating sums
  // of 16-bit integers more than the others.
  static constexpr bool many_outputs = of_thread > 2;
  static constexpr int blocks = size == 1 || many_outputs || (std::is_integral_v<Element> && size == 2 && rows > 1) ? 1
                                : size == 4 && of_thread == 1                                                       ? 3
                                                                                                                    : 2;
  static constexpr int width = 16 / size;                                   // of a vector
  static constexpr int copied = width * static_cast<int>(sizeof(Element));  // bytes of its elements in memory
  static constexpr int depth = Depth, unrolled = Unrolled;
  // From one row of a thread to the next. If there is a choice of counts, all threads have equally many; else the last warps have none
  // of a few rows, and do nothing.
  static constexpr int apart = sizeof...(Counts) > 1 ? groups : 1;
  // Elements from one row of A to the next, and from one column of B to the next if it is K-major: an odd number of vectors, so that
  // eight neighbours are in different banks.
  static constexpr int pitch = depth + width;
  static constexpr std::array counts{Counts...};
  /// Elements of a slab, if threads have `count` rows.
  static constexpr int of_b = columns * pitch;
  __host__ __device__ static constexpr int of_a(int count) { return groups * count * pitch; }
  /// Bytes of all threads' outputs.
  template <class Accumulator>
  static constexpr int of_outputs(int count) {
    return count * of_thread * computing * static_cast<int>(sizeof(Accumulator));
  }
  // So many that a multiprocessor holds two blocks; fewer of the high tile, of which one of sm_80 holds one. sm_86 holds seven of 16-bit
  // floats.
  static constexpr int stages =
      std::min({108 * 1024 / ((of_a(counts[counts.size() / 2]) + of_b) * size),
                (163 * 1024 - of_outputs<std::int64_t>(rows)) / ((of_a(rows) + of_b) * size), size == 2 ? 7 : 8});
  /// Bytes of shared memory: slabs, and each thread's outputs.
  template <class Accumulator>
  static constexpr int shared(int count) {
    return stages * (of_a(count) + of_b) * size + of_outputs<Accumulator>(count);
  }
  /// Blocks that a multiprocessor holds.
  template <class Accumulator>
  static constexpr int resident(int count) {
    int resident = many_outputs ? 1 : std::max(blocks, 2);
    while (resident > 1 && !arch::holds(arch::shared_memory_of_sm_90, resident, shared<Accumulator>(count))) --resident;
    return resident;
  }
  static_assert(computing % lanes == 0 && depth % unrolled == 0 && unrolled % (2 * width) == 0 && stages >= 3);
  static_assert(arch::holds(arch::shared_memory_of_sm_80, 1, shared<std::int64_t>(rows)));

  /// use.operator()<count>() with one of Counts.
  template <class Use>
  __device__ __forceinline__ static void with_count(int count, const Use& use) {
    static_cast<void>(((count == Counts && (use.template operator()<Counts>(), true)) || ...));
  }
};

/// Whether a semiring of the zoo has these kernels: if ⊗ is short, not on pairs, and has kernels for vectors elsewhere.
template <class S>
inline constexpr bool has_skinny =
    in_zoo<S> && !is_transcendental<S> && !is_packed<S> && !singles_only<S> && bit_counts_of<S> == 0 &&
    std::is_arithmetic_v<typename S::accumulator> && sizeof(typename S::element) <= 8;

/// Columns of 128 bytes, or 64 of 1-byte types.
template <class Element>
inline constexpr int skinny_columns = std::min(128 / static_cast<int>(sizeof(Element)), 64);

/// The tiles of a semiring: for the fewest rows, and for more. Light semirings that compute floats have 4 to 16 rows, or 32 to 128 (of
/// 16-bit floats sums of products alone, since its code is long); others have 8 or 16. Slabs for many rows hold 16-bit floats as floats,
/// which threads would convert again and again; few rows wait for memory, and gain nothing by that.
template <class S>
constexpr auto low_skinny_shape() {
  using Element = typename S::element;
  if constexpr (computes_floats<S>)
    return SkinnyShape<Element, Element, 32, 1, 128, 32, 1, 2, 3, 4>{};
  else if constexpr (sizeof(Element) == 8)
    return SkinnyShape<Element, Element, skinny_columns<Element>, 1, 64, 32, 1>{};
  else
    return SkinnyShape<Element, Element, skinny_columns<Element>, 2, 128, 32, 1>{};
}
template <class S>
constexpr auto high_skinny_shape() {
  using Element = typename S::element;
  if constexpr (is_light_float<S>)
    return SkinnyShape<Element, Element, 32, 4, 64, 8, 2, 4, 5, 7, 8>{};
  else if constexpr (std::is_same_v<OnFloats<S>, plus_times<float>>)
    return SkinnyShape<Element, float, 32, 4, 64, 8, 2, 4, 8>{};
  else if constexpr (sizeof(Element) == 8)
    return SkinnyShape<Element, Element, skinny_columns<Element>, 1, 64, 32, 2>{};
  else
    return SkinnyShape<Element, Element, skinny_columns<Element>, 2, 128, 32, 2>{};
}

/// Whether an operand consists of lines of whole vectors of `bytes`: of `length` neighbours, `lines` of them, `line_stride` apart.
inline bool in_whole_vectors(const Operand& o, int bytes, std::int64_t length, std::int64_t stride, std::int64_t lines,
                             std::int64_t line_stride) {
  const auto whole = [&](std::int64_t elements) { return elements * static_cast<std::int64_t>(o.size) % bytes == 0; };
  return stride == 1 && whole(length) && (lines <= 1 || whole(line_stride)) && whole(o.batch_stride) &&
         reinterpret_cast<std::uintptr_t>(o.data) % static_cast<std::uintptr_t>(bytes) == 0;
}
template <class Shape>
bool a_in_vectors(const Contraction& p) {
  return in_whole_vectors(p.a, Shape::copied, p.k, p.a.column_stride, p.m, p.a.row_stride);
}
template <class Shape>
bool is_k_major_in_vectors(const Contraction& p) {
  return in_whole_vectors(p.b, Shape::copied, p.k, p.b.row_stride, p.n, p.b.column_stride);
}
template <class Shape>
bool b_in_vectors(const Contraction& p) {
  return is_k_major_in_vectors<Shape>(p) ||
         in_whole_vectors(p.b, Shape::copied, p.n, p.b.column_stride, p.k, p.b.row_stride);
}

/// use.operator()<Shape>() with the low tile if that has all rows and takes the operands' vectors, or with the high one, which may
/// take shorter vectors.
template <class S, class Use>
auto with_skinny_shape(const Contraction& p, const Use& use) {
  using Low = decltype(low_skinny_shape<S>());
  using High = decltype(high_skinny_shape<S>());
  const bool takes_vectors = Low::copied == High::copied || (a_in_vectors<Low>(p) && b_in_vectors<Low>(p));
  if (p.m <= Low::m && takes_vectors) return use.template operator()<Low>();
  return use.template operator()<High>();
}

template <class S, class Finish>
Status skinny_supports(const Contraction& p) {
  return with_skinny_shape<S>(p, [&]<class Shape>() -> Status {
    const auto no_vectors = [](const char* operand, const char* place) {
      return Status{Decline::layout, operand + std::to_string(Shape::copied) + place};
    };
    if (!a_in_vectors<Shape>(p)) return no_vectors("rows of A are no vectors of ", " bytes along K");
    if (!b_in_vectors<Shape>(p)) return no_vectors("B is in vectors of ", " bytes neither along K nor along N");
    if (p.m > std::max(2 * Shape::m, 64)) return {Decline::extents, "C has more than a few rows"};
    const int bytes = Shape::template shared<typename S::accumulator>(Shape::rows);
    if (bytes > p.execution.shared_memory)
      return {Decline::memory, "needs " + std::to_string(bytes) + " bytes of shared memory"};
    if (p.n > max_grid) return {Decline::extents, "C has more than 2^31 - 1 columns"};  // hence fewer blocks
    return detail::finish_supports<Finish>(p);
  });
}

/// A launch and the first slabs, and the longest of three: B's bytes; a block's tiles, if it had a multiprocessor to itself; and what
/// the warps of a multiprocessor take for all of its tiles. Fitted to an H100, with the first tiles of 8 and 16 rows.
template <class S, class Shape>
double skinny_seconds(const Contraction& p) {
  constexpr double launch = 4.5e-6, clock = 1.75e9, bytes_per_second = 2.5e12;
  constexpr double chain = sizeof(typename S::accumulator) > 4 ? 10 : 5, warps = Shape::computing / 32;
  constexpr double outputs = Shape::rows * Shape::of_thread,
                   conversions = Shape::size < 4 ? Shape::rows + Shape::of_thread : 0;
  constexpr double of_type = Shape::size == 8 ? 1.5 : Shape::size == 1 ? 3 : 1, of_output = 1.5 + 0.96 / relative_speed<S>;
  // Clocks that one k takes a computing warp, if each scheduler has one.
  constexpr double of_k = of_type * (4 + outputs * of_output + 0.6 * conversions);
  const double tiles = static_cast<double>(p.batch) * std::ceil(static_cast<double>(p.m) / Shape::m) *
                       std::ceil(static_cast<double>(p.n) / Shape::columns);
  const double multiprocessors = std::max(p.execution.multiprocessors, 1), k = static_cast<double>(p.k);
  const double slabs = std::ceil(k / Shape::depth);
  const double busy = std::min(std::ceil(static_cast<double>(p.m) * warps / Shape::m), warps);
  const double of_block = std::ceil(tiles / (2 * multiprocessors)) * (1000 + slabs * 250 + k * std::max(chain, 0.6 * of_k));
  const double rounds = tiles <= multiprocessors ? 1 : 2 * std::ceil(tiles / (2 * multiprocessors));  // of two blocks each
  const double of_multiprocessor = rounds * (1000 + 0.87 * (slabs * 150 + k * of_k * busy / 4));
  const double bytes = static_cast<double>(p.batch) * static_cast<double>(p.n) * k * p.b.size;
  return launch + std::max(std::max(of_block, of_multiprocessor) / clock, bytes / bytes_per_second);
}

/// The same for threads of `count` rows of semirings that compute floats, from instructions: a warp of each scheduler computes a tile.
template <class S, class Shape>
double skinny_seconds_of_floats(const Contraction& p, int count) {
  constexpr double launch = 4.5e-6, clock = 1.7e9, bytes_per_second = 3.5e12, c_per_second = 2e12;
  constexpr double of_step = 1.95 * pace<OnFloats<S>>.step, of_tile = 700, of_slab = 120, of_output = 50,
                   of_copy = 5;  // clocks
  const double rows = count, columns = Shape::of_thread, k = static_cast<double>(p.k), n = static_cast<double>(p.n);
  const double lines = Shape::groups * rows + Shape::columns;
  const double of_reads = columns == 1 ? rows / Shape::width + 1 : (rows + columns) / Shape::width;
  const double conversions = Shape::size < 4 ? rows + columns : 0;
  // A read of 16 bytes takes shared memory two clocks, or four if all threads of a warp read different columns.
  const double of_memory = (columns == 1 ? 2 * rows + 4 : 2 * (rows + columns)) * Shape::size / 4;
  const double copies = lines / (Shape::width * Shape::copying) * (of_copy + (Shape::converts ? 12 : 0));
  const double of_k = std::max(rows * columns * of_step + of_reads + conversions + copies, of_memory);
  const double batches = static_cast<double>(p.batch);
  const double tiles =
      batches * std::ceil(static_cast<double>(p.m) / (Shape::groups * rows)) * std::ceil(n / Shape::columns);
  const double multiprocessors = std::max(p.execution.multiprocessors, 1);
  // Blocks wait at barriers, and for the first slab of a tile, while others of their multiprocessor compute.
  const double waits = of_tile + std::ceil(k / Shape::depth) * of_slab;
  const int resident = Shape::template resident<typename S::accumulator>(count);
  const double of_multiprocessor = std::ceil(tiles / multiprocessors),
               of_block = std::ceil(tiles / (resident * multiprocessors));
  // A scheduler has one warp that computes, whose reads and steps wait for each other if it has many.
  constexpr double overlap = Shape::many_outputs ? 1.22 : 1.1;
  const double clocks = of_multiprocessor * (overlap * k * of_k + rows * columns * of_output) + of_block * waits;
  const double bytes = batches * n * (k * p.b.size / bytes_per_second + static_cast<double>(p.m) * p.b.size / c_per_second);
  return launch + std::max(clocks / clock, bytes);
}

/// How many rows a thread has, and the time.
struct SkinnyChoice {
  int count;
  double seconds;
};
template <class S>
SkinnyChoice skinny_choice(const Contraction& p) {
  return with_skinny_shape<S>(p, [&]<class Shape>() {
    if constexpr (Shape::counts.size() == 1) {
      return SkinnyChoice{Shape::rows, skinny_seconds<S, Shape>(p)};
    } else {
      SkinnyChoice best{0, std::numeric_limits<double>::infinity()};
      for (const int count : Shape::counts)
        if (const double seconds = skinny_seconds_of_floats<S, Shape>(p, count); seconds < best.seconds)
          best = {count, seconds};
      return best;
    }
  });
}

}  // namespace rigel::backends::simt
