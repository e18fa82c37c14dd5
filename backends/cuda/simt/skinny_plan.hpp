// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's side of a few rows against a large matrix: the shapes of tiles, what they support, and the choice of one.
// Rows of C, or its columns if those are fewer, which makes the problem the transposed one.
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
/// computing thread has one of `Counts` rows, `groups` from each other, in each of `OfThread` columns: the more outputs share an operand,
/// the less they read of shared memory. Slabs hold elements as `Stored`, in vectors of 16 bytes.
template <class Element, class Stored_, int Columns, int OfThread, int Depth, int Unrolled, int... Counts>
struct SkinnyShape {
  using Stored = Stored_;
  static constexpr bool converts = !std::is_same_v<Element, Stored>, gathers_async = sizeof(Element) >= 4;
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
  static constexpr int blocks_n_major = std::min(blocks, 2);                // whose slabs leave no room for three
  static constexpr int width = 16 / size;                                   // of a vector
  static constexpr int copied = width * static_cast<int>(sizeof(Element));  // bytes of its elements in memory
  static constexpr int depth = Depth, unrolled = Unrolled;
  // Elements from one row of A to the next, and from one column of B to the next if it is K-major: an odd number of vectors, so that
  // eight neighbours are in different banks; and from one k to the next of an N-major B. A line's last vector is for the end of one
  // that is not aligned.
  static constexpr int pitch = depth + width, pitch_n = columns + width;
  static constexpr std::array counts{Counts...};
  /// Elements of a slab, if threads have `count` rows.
  __host__ __device__ static constexpr int of_b(bool k_major) { return k_major ? columns * pitch : depth * pitch_n; }
  __host__ __device__ static constexpr int of_a(int count) { return groups * count * pitch; }
  /// Bytes of all threads' outputs.
  template <class Accumulator>
  static constexpr int of_outputs(int count) {
    return count * of_thread * computing * static_cast<int>(sizeof(Accumulator));
  }
  // So many that a multiprocessor holds two blocks; fewer of the high tile, of which one of sm_80 holds one, and so many of the low
  // tiles of small types that sm_86 holds one.
  __host__ __device__ static constexpr int stages(bool k_major) {
    constexpr int bytes = (size > 2 || columns > 64 ? 108 : 96) * 1024;
    constexpr int count = many_outputs ? counts[counts.size() / 2] : rows;
    return std::min({bytes / ((of_a(count) + of_b(k_major)) * size),
                     (163 * 1024 - of_outputs<std::int64_t>(rows)) / ((of_a(rows) + of_b(k_major)) * size),
                     (size == 2 ? 7 : 8) - (size <= 2 && !k_major)});
  }
  /// Bytes of shared memory: slabs, and each thread's outputs.
  template <class Accumulator>
  static constexpr int shared(int count, bool k_major) {
    return stages(k_major) * (of_a(count) + of_b(k_major)) * size + of_outputs<Accumulator>(count);
  }
  /// Blocks that a multiprocessor holds.
  template <class Accumulator>
  static constexpr int resident(int count, bool k_major) {
    int resident = many_outputs ? 1 : std::max(blocks, 2);
    while (resident > 1 && !arch::holds(arch::shared_memory_of_sm_90, resident, shared<Accumulator>(count, k_major)))
      --resident;
    return resident;
  }
  static_assert(computing % lanes == 0 && depth % unrolled == 0 && unrolled % (2 * width) == 0);
  static_assert(stages(true) >= 3 && stages(false) >= 3);
  static_assert(many_outputs || (resident<float>(rows, true) > 1 && resident<float>(rows, false) > 1));
  static_assert(arch::holds(arch::shared_memory_of_sm_80, 1,
                            std::max(shared<std::int64_t>(rows, true), shared<std::int64_t>(rows, false))));
  static_assert(size > 2 || columns > 64 ||
                arch::holds(arch::shared_memory_of_sm_86, 1,
                            std::max(shared<float>(rows, true), shared<float>(rows, false))));

  /// use.operator()<count>() with one of Counts.
  template <class Use>
  __device__ __forceinline__ static void with_count(int count, const Use& use) {
    static_cast<void>(((count == Counts && (use.template operator()<Counts>(), true)) || ...));
  }
};

/// Whether a semiring of the zoo has these kernels: if ⊗ is short. Those whose operands come one by one elsewhere, or that are computed
/// on pairs, have them for elements of one and two bytes only.
template <class S>
inline constexpr bool has_skinny =
    in_zoo<S> && is_commutative<S> && !is_transcendental<S> && bit_counts_of<S> == 0 && Number<typename S::accumulator> &&
    sizeof(typename S::element) <= (tuning<S>.singles_only ? 2 : 8);

/// Columns of 128 bytes, or 64 of 1-byte types.
template <class Element>
inline constexpr int skinny_columns = std::min(128 / static_cast<int>(sizeof(Element)), 64);

/// The tiles of a semiring: wide ones, for few rows; low ones, for few rows and fewer columns; high ones, for more rows.
///
/// Wide ones of 1- and 2-byte types have up to four rows: slabs of fewer columns would have few bytes. Those of floats have 8 to 12 rows,
/// and two columns of a thread, which read less of shared memory for an output; they need as many columns of C as fill the card. Low ones
/// of light semirings that compute floats have 4 to 16 rows, high ones 32 to 128 (of 16-bit floats sums of products alone, since the code
/// is long); low ones of others have 8 or 16. High slabs hold 16-bit floats as floats, which threads would convert again and again; few
/// rows wait for memory, and gain nothing by that. NoSkinnyShape: there is none, or the low one takes more rows too.
struct NoSkinnyShape {
  static constexpr int m = -1;
};
template <class S>
constexpr auto wide_skinny_shape() {
  using Element = typename S::element;
  if constexpr (tuning<S>.singles_only || is_packed<S>)
    return NoSkinnyShape{};
  else if constexpr (sizeof(Element) == 1)
    return SkinnyShape<Element, Element, 128, 1, 128, 32, 1, 2, 4>{};
  else if constexpr (sizeof(Element) == 2)
    return SkinnyShape<Element, Element, 128, 1, 128, 16, 1, 4>{};
  else if constexpr (is_light_float<S>)
    return SkinnyShape<Element, Element, 128, 2, 32, 8, 4, 5, 6>{};
  else
    return NoSkinnyShape{};
}
template <class S>
constexpr auto low_skinny_shape() {
  using Element = typename S::element;
  if constexpr (is_light_float<S>)
    return SkinnyShape<Element, Element, 32, 1, 128, 32, 1, 2, 3, 4>{};
  else if constexpr (computes_floats<S>)
    return SkinnyShape<Element, Element, 32, 1, 128, 16, 2, 3, 4>{};
  else if constexpr (sizeof(Element) == 8)
    return SkinnyShape<Element, Element, skinny_columns<Element>, 1, 64, 32, 1, 2>{};
  else
    return SkinnyShape<Element, Element, skinny_columns<Element>, 2, 128, sizeof(Element) == 2 ? 16 : 32, 1, 2>{};
}
template <class S>
constexpr auto high_skinny_shape() {
  using Element = typename S::element;
  if constexpr (is_light_float<S>)
    return SkinnyShape<Element, Element, 32, 4, 64, 8, 2, 4, 5, 7, 8>{};
  else if constexpr (std::is_same_v<OnFloats<S>, plus_times<float>>)
    return SkinnyShape<Element, float, 32, 4, 64, 8, 2, 4, 8>{};
  else
    return NoSkinnyShape{};
}

/// A problem as the kernel sees it: rows of A against columns of B. Swapped: the rows are C's columns.
struct SkinnyProblem {
  bool swapped;
  std::int64_t batch;
  Lines a, b;

  explicit SkinnyProblem(const Product& p)
      : swapped(p.n < p.m),
        batch(p.batch),
        a(swapped ? lines_of_b(p) : lines_of_a(p)),
        b(swapped ? lines_of_a(p) : lines_of_b(p)) {}
};

/// Whether so many elements of an operand, an extent or a stride, take a multiple of `bytes`.
inline bool is_whole(const Operand& o, int bytes, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(o.size) % bytes == 0;
}
/// Whether an operand consists of whole vectors of `bytes`, along K or across.
inline bool in_whole_vectors(const Lines& o, int bytes, bool along_k) {
  const auto whole = [&](std::int64_t elements) { return is_whole(*o.operand, bytes, elements); };
  return (along_k ? o.k_stride == 1 && whole(o.k) && (o.lines <= 1 || whole(o.line_stride))
                  : o.line_stride == 1 && whole(o.lines) && (o.k <= 1 || whole(o.k_stride))) &&
         whole(o.operand->batch_stride) &&
         reinterpret_cast<std::uintptr_t>(o.operand->data) % static_cast<std::uintptr_t>(bytes) == 0;
}

/// How a block brings A and B: B along K or along N, in vectors of 16 bytes that may have to be shifted; A in vectors or element by
/// element.
struct SkinnyWay {
  bool k_major, shifts, gathers;
};
template <class Shape>
SkinnyWay skinny_way(const SkinnyProblem& p) {
  const bool along_k = in_whole_vectors(p.b, Shape::copied, true), along_n = in_whole_vectors(p.b, Shape::copied, false);
  return {.k_major = along_k || (!along_n && p.b.k_stride == 1 && (p.b.line_stride != 1 || p.b.k >= p.b.lines)),
          .shifts = !along_k && !along_n,
          .gathers = !in_whole_vectors(p.a, Shape::copied, true)};
}

/// use.operator()<Shape, index>() with each tile that may be the fastest for so many rows. Wide and low ones of floats also take many rows
/// in turns, in which B comes from the L2 cache.
template <class S, class Use>
void for_each_skinny_shape(const SkinnyProblem& p, const Use& use) {
  using Wide = decltype(wide_skinny_shape<S>());
  using Low = decltype(low_skinny_shape<S>());
  using High = decltype(high_skinny_shape<S>());
  if constexpr (Wide::m > 0)
    if (is_light_float<S> ? p.a.lines > 4 : p.a.lines <= Wide::m) use.template operator()<Wide, 0>();
  if constexpr (High::m > 0)
    if (p.a.lines > Low::m) use.template operator()<High, 2>();
  if (High::m < 0 || p.a.lines <= Low::m || is_light_float<S>) use.template operator()<Low, 1>();
}

/// Whether a tile can have the problem, whose operands come that way.
template <class S, class Shape>
Status skinny_fits(const SkinnyProblem& p, const SkinnyWay& way, const Contraction& problem) {
  const int bytes = Shape::template shared<typename S::accumulator>(Shape::rows, way.k_major);
  if (p.a.lines > std::max(2 * Shape::m, 64)) return {Decline::extents, "C has more than a few rows"};
  if (way.shifts && p.batch > 1 && !is_whole(*p.b.operand, Shape::copied, p.b.operand->batch_stride))
    return {Decline::layout,
            "matrices of the larger operand do not begin multiples of " + std::to_string(Shape::copied) + " bytes apart"};
  if (bytes > problem.execution.shared_memory)
    return {Decline::memory, "needs " + std::to_string(bytes) + " bytes of shared memory"};
  return {};
}
template <class S, class Finish>
Status skinny_supports(const Contraction& problem) {
  const SkinnyProblem p(problem);
  if (p.b.k_stride != 1 && p.b.line_stride != 1)
    return {Decline::layout, "the larger operand has no neighbours in memory, neither along K nor along C"};
  if (p.b.lines > max_grid) return {Decline::extents, "C has more than 2^31 - 1 columns"};  // hence fewer blocks
  Status status{};
  bool fits = false;
  for_each_skinny_shape<S>(p, [&]<class Shape, int>() {
    const Status one = skinny_fits<S, Shape>(p, skinny_way<Shape>(p), problem);
    fits |= static_cast<bool>(one);
    if (status.decline == Decline::none || one.decline != Decline::extents) status = one;
  });
  return fits ? detail::finish_supports<Finish>(problem) : status;
}

/// A tile whose threads have `count` rows, as predicted times see it.
template <class S, class Shape>
costs::SkinnyTile skinny_tile(int count, bool k_major) {
  return {.size = Shape::size,
          .columns = Shape::columns,
          .of_thread = Shape::of_thread,
          .lanes = Shape::lanes,
          .groups = Shape::groups,
          .computing = Shape::computing,
          .copying = Shape::copying,
          .depth = Shape::depth,
          .width = Shape::width,
          .has_many_outputs = Shape::many_outputs,
          .converts = Shape::converts,
          .gathers_async = Shape::gathers_async,
          .count = count,
          .resident = Shape::template resident<typename S::accumulator>(count, k_major)};
}

/// The tile, how many rows a thread has, and the time.
struct SkinnyChoice {
  int shape, count;
  double seconds;
};
template <class S>
SkinnyChoice skinny_choice(const Contraction& problem) {
  const SkinnyProblem p(problem);
  SkinnyChoice best{0, 0, std::numeric_limits<double>::infinity()};
  for_each_skinny_shape<S>(p, [&]<class Shape, int index>() {
    const SkinnyWay way = skinny_way<Shape>(p);
    if (!skinny_fits<S, Shape>(p, way, problem)) return;
    const costs::SkinnyCall call{p.batch,    p.a.lines,  p.b.lines, p.a.k, static_cast<double>(p.b.operand->size),
                                 way.shifts, way.gathers};
    for (const int count : Shape::counts) {
      const double seconds =
          costs::skinny_seconds(problem, semiring_facts<S>, skinny_tile<S, Shape>(count, way.k_major), call);
      if (seconds < best.seconds) best = {index, count, seconds};
    }
  });
  return best;
}

}  // namespace rigel::backends::simt
