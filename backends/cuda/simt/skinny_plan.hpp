// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's side of a few rows against a large matrix: the shapes of tiles, what they support, and the time that this should take.
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

/// A problem as the kernel sees it: `m` rows of A against `n` columns of B, strides in elements. Swapped: the rows are C's columns.
struct SkinnyProblem {
  bool swapped;
  std::int64_t batch, m, n, k;
  const Operand *a, *b;
  std::int64_t a_row, a_k, b_k, b_column;

  explicit SkinnyProblem(const Contraction& p)
      : swapped(p.n < p.m),
        batch(p.batch),
        m(swapped ? p.n : p.m),
        n(swapped ? p.m : p.n),
        k(p.k),
        a(swapped ? &p.b : &p.a),
        b(swapped ? &p.a : &p.b),
        a_row(swapped ? p.b.column_stride : p.a.row_stride),
        a_k(swapped ? p.b.row_stride : p.a.column_stride),
        b_k(swapped ? p.a.column_stride : p.b.row_stride),
        b_column(swapped ? p.a.row_stride : p.b.column_stride) {}
};

/// Whether so many elements of an operand, an extent or a stride, take a multiple of `bytes`.
inline bool is_whole(const Operand& o, int bytes, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(o.size) % bytes == 0;
}
/// Whether an operand consists of lines of whole vectors of `bytes`: of `length` neighbours, `lines` of them, `line_stride` apart.
inline bool in_whole_vectors(const Operand& o, int bytes, std::int64_t length, std::int64_t stride, std::int64_t lines,
                             std::int64_t line_stride) {
  return stride == 1 && is_whole(o, bytes, length) && (lines <= 1 || is_whole(o, bytes, line_stride)) &&
         is_whole(o, bytes, o.batch_stride) &&
         reinterpret_cast<std::uintptr_t>(o.data) % static_cast<std::uintptr_t>(bytes) == 0;
}

/// How a block brings A and B: B along K or along N, in vectors of 16 bytes that may have to be shifted; A in vectors or element by
/// element.
struct SkinnyWay {
  bool k_major, shifts, gathers;
};
template <class Shape>
SkinnyWay skinny_way(const SkinnyProblem& p) {
  const bool along_k = in_whole_vectors(*p.b, Shape::copied, p.k, p.b_k, p.n, p.b_column),
             along_n = in_whole_vectors(*p.b, Shape::copied, p.n, p.b_column, p.k, p.b_k);
  return {.k_major = along_k || (!along_n && p.b_k == 1 && (p.b_column != 1 || p.k >= p.n)),
          .shifts = !along_k && !along_n,
          .gathers = !in_whole_vectors(*p.a, Shape::copied, p.k, p.a_k, p.m, p.a_row)};
}

/// use.operator()<Shape, index>() with each tile that may be the fastest for so many rows. Wide and low ones of floats also take many rows
/// in turns, in which B comes from the L2 cache.
template <class S, class Use>
void for_each_skinny_shape(const SkinnyProblem& p, const Use& use) {
  using Wide = decltype(wide_skinny_shape<S>());
  using Low = decltype(low_skinny_shape<S>());
  using High = decltype(high_skinny_shape<S>());
  if constexpr (Wide::m > 0)
    if (is_light_float<S> ? p.m > 4 : p.m <= Wide::m) use.template operator()<Wide, 0>();
  if constexpr (High::m > 0)
    if (p.m > Low::m) use.template operator()<High, 2>();
  if (High::m < 0 || p.m <= Low::m || is_light_float<S>) use.template operator()<Low, 1>();
}

/// Whether a tile can have the problem, whose operands come that way.
template <class S, class Shape>
Status skinny_fits(const SkinnyProblem& p, const SkinnyWay& way, const Contraction& problem) {
  const int bytes = Shape::template shared<typename S::accumulator>(Shape::rows, way.k_major);
  if (p.m > std::max(2 * Shape::m, 64)) return {Decline::extents, "C has more than a few rows"};
  if (way.shifts && p.batch > 1 && !is_whole(*p.b, Shape::copied, p.b->batch_stride))
    return {Decline::layout,
            "matrices of the larger operand do not begin multiples of " + std::to_string(Shape::copied) + " bytes apart"};
  if (bytes > problem.execution.shared_memory)
    return {Decline::memory, "needs " + std::to_string(bytes) + " bytes of shared memory"};
  return {};
}
template <class S, class Finish>
Status skinny_supports(const Contraction& problem) {
  const SkinnyProblem p(problem);
  if (p.b_k != 1 && p.b_column != 1)
    return {Decline::layout, "the larger operand has no neighbours in memory, neither along K nor along C"};
  if (p.n > max_grid) return {Decline::extents, "C has more than 2^31 - 1 columns"};  // hence fewer blocks
  Status status{};
  bool fits = false;
  for_each_skinny_shape<S>(p, [&]<class Shape, int>() {
    const Status one = skinny_fits<S, Shape>(p, skinny_way<Shape>(p), problem);
    fits |= static_cast<bool>(one);
    if (status.decline == Decline::none || one.decline != Decline::extents) status = one;
  });
  return fits ? detail::finish_supports<Finish>(problem) : status;
}

/// What the kernel's time depends on besides the tile: the problem, how operands come, and clocks for an output's store.
struct SkinnyCall {
  SkinnyProblem p;
  SkinnyWay way;
  double multiprocessors, of_output;
};
template <class Shape>
SkinnyCall skinny_call(const SkinnyProblem& p, const Contraction& problem) {
  const bool is_plain = problem.program && problem.program->empty() &&
                        (problem.c.type == problem.accumulator || problem.c.type == problem.element);
  return {p, skinny_way<Shape>(p), static_cast<double>(std::max(problem.execution.multiprocessors, 1)),
          is_plain ? 50. : 250.};
}
/// How many tiles C has.
template <class Shape>
double skinny_tiles(const SkinnyProblem& p, int count) {
  return static_cast<double>(p.batch) * std::ceil(static_cast<double>(p.m) / (Shape::groups * count)) *
         std::ceil(static_cast<double>(p.n) / Shape::columns);
}
/// Clocks for which a slab makes the computing warps wait, since the copying ones shift its vectors, or bring A element by element.
template <class Shape>
double skinny_waits(const SkinnyCall& call, int count) {
  constexpr double shift = 80, element = 55, round_trip = Shape::gathers_async ? 0 : 1200;
  constexpr double vectors = Shape::columns * Shape::depth / (Shape::width * Shape::copying);
  const double elements =
      static_cast<double>(std::min<std::int64_t>(call.p.m, Shape::groups * count)) * Shape::depth / Shape::copying;
  return (call.way.shifts ? shift * vectors : 0) + (call.way.gathers ? round_trip + element * elements : 0);
}
/// Seconds in which B arrives: at the speed of memory, or of the multiprocessors that have tiles.
inline double skinny_transfer(const SkinnyCall& call, double tiles, double bytes_per_second) {
  constexpr double of_multiprocessor = 50e9;
  const double bytes = static_cast<double>(call.p.batch) * static_cast<double>(call.p.n) * static_cast<double>(call.p.k) *
                       static_cast<double>(call.p.b->size);
  return bytes / std::min(bytes_per_second, std::clamp(tiles, 1., call.multiprocessors) * of_multiprocessor);
}

/// A launch and the first slabs, and the longest of three: B's bytes; a block's tiles, if it had a multiprocessor to itself; and what
/// the warps of a multiprocessor take for all of its tiles. Fitted to an H100.
template <class S, class Shape>
double skinny_seconds(const SkinnyCall& call, int count) {
  constexpr double launch = 3.3e-6, clock = 1.75e9, bytes_per_second = 2.8e12;
  constexpr double chain = sizeof(typename S::accumulator) > 4 ? 10 : 5, warps = Shape::computing / 32;
  constexpr double of_type = Shape::size == 8 ? 1.5 : 1, alone = Shape::size == 1 ? 1.8 : 0.6,
                   of_output = 1.5 + 0.96 / relative_speed<S>;
  const SkinnyProblem& p = call.p;
  const double outputs = count * Shape::of_thread, conversions = Shape::size < 4 ? count + Shape::of_thread : 0;
  // Clocks that one k takes a computing warp, if each scheduler has one.
  const double of_k = of_type * (4 + outputs * of_output + 0.6 * conversions);
  const double tiles = skinny_tiles<Shape>(p, count), k = static_cast<double>(p.k);
  const double slabs = std::ceil(k / Shape::depth), waits = slabs * skinny_waits<Shape>(call, count);
  const double of_tile = 900 + outputs * call.of_output + waits;
  const double busy = std::ceil(static_cast<double>(std::min<std::int64_t>(p.m, Shape::groups)) * warps / Shape::groups);
  const double turns = std::ceil(tiles / (2 * call.multiprocessors));  // of two blocks each
  const double of_block = turns * (of_tile + slabs * 250 + k * std::max(chain, alone * of_k));
  const double rounds = tiles <= call.multiprocessors ? 1 : 2 * turns;
  const double of_multiprocessor = rounds * (of_tile - waits / 2 + 0.87 * (slabs * 150 + k * of_k * busy / 4));
  return launch + std::max(std::max(of_block, of_multiprocessor) / clock, skinny_transfer(call, tiles, bytes_per_second));
}

/// The same for threads of `count` rows of semirings that compute floats, from instructions: a warp of each scheduler computes a tile.
template <class S, class Shape>
double skinny_seconds_of_floats(const SkinnyCall& call, int count) {
  constexpr double launch = 3.3e-6, clock = 1.7e9, bytes_per_second = 3.5e12, c_per_second = 2e12;
  constexpr double of_step = 1.95 * pace<OnFloats<S>>.step, of_tile = 900, of_slab = 120, of_copy = 5;  // clocks
  const SkinnyProblem& p = call.p;
  const double rows = count, columns = Shape::of_thread, k = static_cast<double>(p.k);
  const double lines = Shape::groups * rows + Shape::columns;
  const double of_reads = columns == 1 ? rows / Shape::width + 1 : (rows + columns) / Shape::width;
  const double conversions = Shape::size < 4 ? rows + columns : 0;
  // A read of 16 bytes takes shared memory two clocks, or four if all threads of a warp read different columns.
  const double of_memory = (2 * rows + (Shape::lanes < 32 ? 2 : 4) * columns) * Shape::size / 4;
  const double copies = lines / (Shape::width * Shape::copying) * (of_copy + (Shape::converts ? 12 : 0));
  const double of_k = std::max(rows * columns * of_step + of_reads + conversions + copies, of_memory);
  const double tiles = skinny_tiles<Shape>(p, count);
  // Blocks wait at barriers, and for the first slab of a tile, while others of their multiprocessor compute.
  const double waits = of_tile + std::ceil(k / Shape::depth) * (of_slab + skinny_waits<Shape>(call, count));
  const int resident = Shape::template resident<typename S::accumulator>(count, call.way.k_major);
  const double of_multiprocessor = std::ceil(tiles / call.multiprocessors),
               of_block = std::ceil(tiles / (resident * call.multiprocessors));
  // A scheduler has one warp that computes, whose reads and steps wait for each other if it has many.
  const double overlap = Shape::many_outputs ? 1.15 + 0.7 / rows : Shape::of_thread > 1 ? 1.5 : 1.1;
  const double clocks = of_multiprocessor * (overlap * k * of_k + rows * columns * call.of_output) + of_block * waits;
  const double of_c = static_cast<double>(p.batch) * static_cast<double>(p.n) * static_cast<double>(p.m) *
                      static_cast<double>(p.b->size) / c_per_second;
  return launch + std::max(clocks / clock, skinny_transfer(call, tiles, bytes_per_second) + of_c);
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
    const SkinnyCall call = skinny_call<Shape>(p, problem);
    if (!skinny_fits<S, Shape>(p, call.way, problem)) return;
    for (const int count : Shape::counts) {
      double seconds;
      if constexpr (computes_floats<S>)
        seconds = skinny_seconds_of_floats<S, Shape>(call, count);
      else
        seconds = skinny_seconds<S, Shape>(call, count);
      if (seconds < best.seconds) best = {index, count, seconds};
    }
  });
  return best;
}

}  // namespace rigel::backends::simt
