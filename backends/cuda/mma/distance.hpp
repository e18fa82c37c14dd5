// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.mma kernels of l2_squared: their facts, and their three launches.
#pragma once

#include <rigel/backends/cuda/mma/contract.hpp>
#include <rigel/backends/cuda/mma/distance_again.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>
#include <cmath>

namespace rigel::backends::mma {

/// The error of an output, and the threshold above which it is kept. Let s = |x|² + |z|² of the centred rows, and D the
/// squared distance. The sum of products, the norms and their sum are off by of_norms·u·s together. Subtracting the centre
/// changes the distance by (|x| + |z|)·u ≤ √(2s)·u, which is 2√(2sD)·u of D. The last fma adds u·D. So
///     |error| ≤ (of_norms·s + 2√2·√(sD) + D)·u, u of the type that products are summed in,
/// at most (of_norms + 6)·u·s, as D ≤ 2s; and if D is above threshold·s, at most ((of_norms + 3)/threshold + 1)·u·D.
template <class Stored>
struct Bound;

/// Floats as pairs of halves, in units of u·Σ|x·z|. An instruction of 16 products of upper parts is off by 48, the two with
/// lower parts by less than 0.2 (see truncating_accuracy()). A product loses 8: 2 with the last bit of each operand, and 4
/// with that of both lower parts. Adding up a step, and a level, takes 1 each. 2·Σ|x·z| ≤ s. Norms and their sum: 2.
template <>
struct Bound<half> {
  static constexpr double kept = 336;  // 2·10^-5 in units of u = 2^-24
  template <int levels>
  static double of_norms(std::int64_t k) {
    constexpr double instructions = 48.2, lost = 8, norms = 2;
    const double steps = std::ceil(static_cast<double>(k) / 16), of_level = pairs_by_levels.grouping / 16;
    return instructions + lost + norms + (levels > 1 ? std::min(steps, of_level) + std::ceil(steps / of_level) : steps);
  }
  template <class Element>
  static double threshold(double of_norms) {
    constexpr double slack = 1;
    return (of_norms + 3 + slack) / (kept - 2);
  }
  /// The largest that keeps most outputs of ordinary data, whose D/s is near 1.
  static constexpr double largest_threshold = 0.6;
};

/// Doubles: each product is added by an fma, in a chain of K; a warp sums a norm, K/32 and 6 more.
template <>
struct Bound<double> {
  template <int>
  static double of_norms(std::int64_t k) {
    return static_cast<double>(k) + std::ceil(static_cast<double>(k) / 32) + 8;
  }
  /// Doubles may lose four bits more than a chain loses. For floats, what is kept is within 2^-26: a quarter of a float's u.
  static constexpr double of_chain = 16, of_float = 0x1p27;
  template <class Element>
  static double threshold(double of_norms) {
    return std::is_same_v<Element, double> ? 1 / of_chain : (of_norms + 3) / of_float;
  }
  static constexpr double largest_threshold = 0.25;
};

/// Whether both operands are the same matrices.
inline bool is_self_distance(const Product& p) {
  return p.a.data == p.b.data && p.m == p.n && p.a.batches == p.b.batches && p.a.batch_stride == p.b.batch_stride &&
         p.a.row_stride == p.b.column_stride && p.a.column_stride == p.b.row_stride;
}

template <class Shape>
DistanceRaster distance_raster(const Product& p) {
  DistanceRaster raster{{rows_of<Shape>(p), columns_of<Shape>(p)}, is_self_distance(p), 0};
  raster.in_batch = static_cast<unsigned>(raster.tiles(Shape::m, Shape::n));
  return raster;
}
template <class Shape>
std::int64_t tiles_of(const Product& p) {
  return p.batch * distance_raster<Shape>(p).tiles(Shape::m, Shape::n);
}

template <class Element, class Stored, class Shape, int levels, class Finish>
Status supports_distances(const Contraction& p) {
  using Limits = Bound<Stored>;
  const double threshold = Limits::template threshold<Element>(Limits::template of_norms<levels>(p.k));
  if (!p.may_cancel && threshold > Limits::largest_threshold)
    return {Decline::accuracy, "K is too large for its bound: distances below " + std::to_string(threshold) +
                                   " of the norms would have to be computed anew"};
  const Status status = supports<l2_squared<Element>, Stored, Shape, Decomposition{}, Finish>(p);
  if (!status) return status;
  if (rows_of<Shape>(p) * columns_of<Shape>(p) * std::max<std::int64_t>(p.batch, 1) > max_grid / Shape::warps)
    return {Decline::extents, "C has more than 2^31 - 1 tiles of warps"};
  const auto blocks = [](const Lines& g) {
    return matrices_of(*g.operand) * ((g.lines + prepared_lines - 1) / prepared_lines);
  };
  if (blocks(lines_of_a(p)) + blocks(lines_of_b(p)) > max_grid)
    return {Decline::extents, "the operands have more than 2^31 - 1 groups of " + std::to_string(prepared_lines) + " lines"};
  return needs_other_residual(p);
}

/// Offsets in the workspace.
struct DistanceMemory {
  std::size_t numbers_a = 0, numbers_b = 0, lines_a = 0, lines_b = 0, counters = 0, few = 0, many = 0, places = 0, end = 0;
  unsigned counter_count = 0;  // the counters, then the marks of all tiles
};
template <class Stored, class Shape>
DistanceMemory distance_memory(const Product& p) {
  DistanceMemory at;
  detail::WorkspaceLayout layout;
  const std::int64_t of_a = matrices_of(p.a) * p.m, of_b = matrices_of(p.b) * p.n, pitch = numbers_of<Stored>(p.k);
  const std::int64_t tiles = tiles_of<Shape>(p), of_warps = tiles * Shape::warps;
  at.numbers_a = layout.add(of_a * pitch, sizeof(Stored));
  at.lines_a = layout.add(of_a, sizeof(line_t<Stored>));
  at.numbers_b = at.numbers_a, at.lines_b = at.lines_a;
  if (!is_self_distance(p)) {
    at.numbers_b = layout.add(of_b * pitch, sizeof(Stored));
    at.lines_b = layout.add(of_b, sizeof(line_t<Stored>));
  }
  at.counter_count = static_cast<unsigned>(Rejected::counter_count + tiles);
  at.counters = layout.add(at.counter_count, sizeof(unsigned));
  at.few = layout.add(of_warps, sizeof(unsigned));
  at.many = layout.add(tiles, sizeof(unsigned));
  at.places = layout.add(of_warps * (Rejected::most + 1), sizeof(std::uint16_t));
  at.end = layout.bytes();
  return at;
}
template <class Stored, class Shape>
std::size_t distance_workspace(const Product& p) {
  return distance_memory<Stored, Shape>(p).end;
}

/// Which distances are kept. Numbers below `small` lose bits; roots need some above the smallest normal one.
template <class Element, class Stored, int levels>
Guard<line_t<Stored>> guard_of(const Product& p) {
  using Limits = Bound<Stored>;
  using Sum = decltype(line_t<Stored>::norm);
  constexpr Element small = std::is_same_v<Element, float> ? 0x1p-100 : 0x1p-900;
  constexpr Sum infinity = std::numeric_limits<Sum>::infinity(), most = std::numeric_limits<Element>::max();
  if (p.may_cancel) return {nullptr, nullptr, 0, 0, 0, -1, 0, most};
  const double threshold = Limits::template threshold<Element>(Limits::template of_norms<levels>(p.k));
  return {nullptr, nullptr, 0, 0, static_cast<Sum>(threshold), small, -infinity, most};
}

template <class Element, class Stored, class Shape, int levels, class Finish>
void run_distances(const KernelInfo& info, const Contraction& p, void* workspace) {
  using S = l2_squared<Element>;
  using Line = line_t<Stored>;
  const std::int64_t all_tiles = tiles_of<Shape>(p);
  if (all_tiles == 0) return;
  const cuda::Launches launches(p, info.name);
  const DistanceMemory at = distance_memory<Stored, Shape>(p);
  const auto memory = [&]<class T>(T*, std::size_t from) {
    return reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + from);
  };
  constexpr unsigned* words = nullptr;
  auto arguments = detail::arguments_of<S, Finish>(p);
  DistanceRaster raster = distance_raster<Shape>(p);
  constexpr int shared_bytes = distance_shared_bytes<Shape, Line>;
  static cuda::LaunchFacts facts;
  constexpr Decomposition decomposition = std::is_same_v<Stored, double> ? Decomposition{}
                                          : levels > 1                   ? pairs_by_levels
                                                                         : pairs_by_steps;
  const auto function = reinterpret_cast<const void*>(&multiply<S, Stored, decomposition, Finish, Shape, Direction::along_k,
                                                                Direction::along_k, Distances<Line>, DistanceRaster>);
  using Sum = decltype(Line::norm);
  using Direct = typename DirectCut<Sum, Shape>::Unit;
  const auto is_in_vectors = [](const Lines& g) {
    return direction_of(g, false) == Direction::along_k && g.k % Direct::depth == 0;
  };
  const bool in_vectors = std::is_same_v<Sum, float> && is_in_vectors(lines_of_a(p)) && is_in_vectors(lines_of_b(p));
  static cuda::LaunchFacts facts_of_rest[2];
  const auto rest = in_vectors
                        ? reinterpret_cast<const void*>(&compute_rejected<S, Sum, Finish, Shape, std::is_same_v<Sum, float>>)
                        : reinterpret_cast<const void*>(&compute_rejected<S, Sum, Finish, Shape, false>);
  // Before anything is enqueued.
  facts.find(function, shared_bytes, launches);
  facts_of_rest[in_vectors].find(rest, 0, launches);

  const auto prepared = [&](const Lines& g, std::size_t numbers, std::size_t lines) {
    const Operand& o = *g.operand;
    return Prepared<Element, Stored>{static_cast<const Element*>(o.data),
                                     o.batch_stride,
                                     g.line_stride,
                                     g.k_stride,
                                     matrices_of(o),
                                     g.lines,
                                     memory(static_cast<Stored*>(nullptr), numbers),
                                     memory(static_cast<Line*>(nullptr), lines)};
  };
  const Prepared<Element, Stored> a = prepared(lines_of_a(p), at.numbers_a, at.lines_a),
                                  b = prepared(lines_of_b(p), at.numbers_b, at.lines_b);
  unsigned* const counters = memory(words, at.counters);
  {
    const bool b_first = a.matrices > b.matrices;
    const Preparation<Element, Stored> g{{b_first ? b : a, b_first ? a : b},
                                         p.k,
                                         static_cast<unsigned>(preparing_blocks(b_first ? b : a)),
                                         counters,
                                         at.counter_count};
    const std::int64_t blocks = g.blocks_of_first + (raster.mirrored ? 0 : preparing_blocks(g.of[1]));
    launches(prepare<Element, Stored>, static_cast<unsigned>(blocks), 32 * prepared_lines, 0, g);
  }

  const std::int64_t pitch = numbers_of<Stored>(p.k);
  const auto source = [&](const Prepared<Element, Stored>& o) {
    return Source<Stored>{o.numbers, o.matrices > 1 ? o.lines * pitch : 0, pitch};
  };
  const auto batch_lines = [](const Prepared<Element, Stored>& o) { return o.matrices > 1 ? o.lines : 0; };
  Operands<Stored> operands{source(a), source(b), static_cast<int>(pitch)};
  Rejected rejected{counters,
                    memory(words, at.few),
                    memory(words, at.many),
                    counters + Rejected::counter_count,
                    memory(static_cast<std::uint16_t*>(nullptr), at.places),
                    p.a.column_stride == 1 && p.b.row_stride == 1 ? Rejected::most : Rejected::most_across};
  Distances<Line> result{guard_of<Element, Stored, levels>(p), rejected, raster.mirrored};
  result.guard.x = a.line, result.guard.z = b.line;
  result.guard.batch_x = batch_lines(a), result.guard.batch_z = batch_lines(b);
  auto tiles = static_cast<unsigned>(all_tiles);
  const auto multiprocessors = static_cast<unsigned>(std::max(p.execution.multiprocessors, 1));
  {
    void* list[] = {&operands, &arguments, &result, &raster, &tiles};
    launch_tiles<Shape>(function, tiles, shared_bytes, list, p, facts.waits(p.execution.device), launches);
  }
  void* list[] = {&arguments, &rejected, &raster};
  launches(
      rest, multiprocessors * Direct::blocks, Direct::threads, 0, list,
      facts_of_rest[in_vectors].waits(p.execution.device) && tensor::starts_early(tiles, multiprocessors * Shape::blocks));
}

template <class Element, class Stored, class Shape, int levels>
double distance_cost(const Contraction& p) {
  constexpr bool of_floats = std::is_same_v<Stored, half>;
  const auto numbers = static_cast<double>(numbers_of<Stored>(p.k));
  return costs::distance_seconds(
      p, tile_of<Shape>(),
      {.tiles = static_cast<double>(tiles_of<Shape>(p)),
       .numbers = of_floats ? numbers / 2 : numbers,
       .lines = static_cast<double>(matrices_of(p.a) * p.m + (is_self_distance(p) ? 0 : matrices_of(p.b) * p.n)),
       .point_bytes = sizeof(Element) + 128. / values_together<Stored>,
       .levels = of_floats ? levels : 0,
       .is_self = is_self_distance(p)});
}

template <class Element, class Stored, class Shape, int levels = 1, class Finish = detail::ProgramFinish>
Kernel<Contraction> distance_kernel() {
  using S = l2_squared<Element>;
  constexpr bool through_double = std::is_same_v<Element, float> && std::is_same_v<Stored, double>;
  constexpr Precision precision = through_double ? Precision::exact_products : Precision::promoted;
  Kernel<Contraction> k;
  k.info = info_of_tile<S, Shape>("cuda.mma", precision, values_together<Stored>, through_double ? "in_f64" : "");
  if constexpr (std::is_same_v<Stored, double>) k.info.timed_on = 0;
  k.info.shared_memory = distance_shared_bytes<Shape, line_t<Stored>>;
  k.info.promises = Promise::repeatable;
  if constexpr (!Finish::takes_transpose) k.info.transposes = Transposes::no;
  k.info.bit_class.clear();
  if constexpr (std::is_same_v<Stored, half>) {
    k.info.accuracy = {Bound<half>::kept, 1};  // recomputed ones: one chain
    k.info.relative_error = Bound<half>::kept * 0x1p-24;
  } else if constexpr (through_double) {
    k.info.accuracy = {2.5, 0};  // rounded to float, and again if C is accumulated; the doubles before are within a quarter
  } else {
    k.info.accuracy = {12 * Bound<double>::of_chain + 2, (1 + 1. / 32) * Bound<double>::of_chain};
  }
  k.supports = detail::supports_by<supports_distances<Element, Stored, Shape, levels, Finish>>;
  k.cost = detail::cost_by<distance_cost<Element, Stored, Shape, levels>>;
  k.workspace = detail::workspace_by<distance_workspace<Stored, Shape>>;
  k.run = detail::run_by<run_distances<Element, Stored, Shape, levels, Finish>>;
  return k;
}

/// The kernel for a user's functor as epilogue, instantiated in the user's translation unit.
template <class S, class Finish>
void add_functor_distances(std::vector<Kernel<Contraction>>& list) {
  if constexpr (std::is_same_v<S, l2_squared<float>>)
    list.push_back(distance_kernel<float, half, Shape<2, 2, 64, 64, 3, 2>, 1, Finish>());
}

}  // namespace rigel::backends::mma
