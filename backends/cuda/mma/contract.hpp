// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.mma kernels of one semiring: their facts and their launch.
#pragma once

#include <rigel/backends/cuda/costs/mma.hpp>
#include <rigel/backends/cuda/mma/kernel.hpp>
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/tensor/accuracy.hpp>
#include <rigel/backends/cuda/tensor/info.hpp>
#include <rigel/backends/cuda/tensor/operand.hpp>
#include <rigel/backends/cuda/tensor/pack.hpp>
#include <rigel/backends/cuda/tensor/planes.hpp>
#include <rigel/detail/kernel.hpp>

#include <limits>
#include <optional>
#include <vector>

namespace rigel::backends::mma {

using cuda::max_grid;

/// The direction in which a kernel reads an operand as it is, 16 bytes at a time, if addresses and extents are multiples of
/// 16 bytes; M- or N-major only if it takes such `lines`. None for an operand that has to be packed.
inline std::optional<Direction> direction_of(const Lines& g, bool lines) {
  const Operand& o = *g.operand;
  const std::int64_t width = 16 / static_cast<std::int64_t>(o.size);
  const auto fits = [&](std::int64_t extent, std::int64_t stride) {
    return reinterpret_cast<std::uintptr_t>(o.data) % 16 == 0 && o.batch_stride % width == 0 && extent % width == 0 &&
           stride % width == 0 && stride >= 0 && stride <= std::numeric_limits<std::int32_t>::max();
  };
  if (g.k_stride == 1 && fits(g.k, g.line_stride)) return Direction::along_k;
  if (lines && g.line_stride == 1 && fits(g.lines, g.k_stride)) return Direction::along_lines;
  return std::nullopt;
}

/// Whether a kernel takes M- and N-major operands as they are: 16-bit numbers by ldmatrix; larger ones one by one, if its
/// outputs leave registers for that. It does not take bytes, nor words larger than a register.
template <class S, class Element, class Shape>
inline constexpr bool takes_lines =
    sizeof(Element) == sizeof(typename S::element) &&
    (sizeof(Element) == 2 || (sizeof(Element) > 2 && Shape::outputs_m * Shape::outputs_n * sizeof(Element) <= 64 * 32 * 4));

/// Rows and columns of tiles in one batch.
template <class Shape>
std::int64_t rows_of(const Product& p) {
  return (p.m + Shape::m - 1) / Shape::m;
}
template <class Shape>
std::int64_t columns_of(const Product& p) {
  return (p.n + Shape::n - 1) / Shape::n;
}

template <class S, class Element, class Shape, Decomposition decomposition = Decomposition{},
          class Finish = detail::ProgramFinish>
Status supports(const Contraction& p) {
  if (p.m > max_grid || p.n > max_grid ||
      rows_of<Shape>(p) * columns_of<Shape>(p) > max_grid / std::max<std::int64_t>(p.batch, 1))
    return {Decline::extents, "C has more than 2^31 - 1 rows, columns or tiles"};
  if (p.k > std::numeric_limits<std::int32_t>::max() / 4) return {Decline::extents, "K is 2^29 or more"};
  for (const Lines& g : {lines_of_a(p), lines_of_b(p)})
    if (packing_blocks(*g.operand, g.lines, g.k) > max_grid)
      return {Decline::extents, "an operand has more than 2^31 - 1 tiles of 64 by 64"};
  if constexpr (joins_bits<S>) {
    constexpr bool is_or = std::is_same_v<S, or_and<typename S::element>>;
    if (!p.program || p.program->empty() ||
        (*p.program)[0].kind != (is_or ? epilogue::Kind::any_bit : epilogue::Kind::parity))
      return {Decline::epilogue, std::string("tensor cores count the bits along k: the epilogue has to begin with ") +
                                     (is_or ? "any_bit()" : "parity()")};
    // The count wraps around, which does not change its parity.
    if (is_or && p.k > (std::int64_t{1} << 32) / (8 * static_cast<std::int64_t>(sizeof(typename S::element))) - 1)
      return {Decline::extents, "a line has 2^32 bits or more"};
  }
  return detail::finish_supports<Finish>(p);
}

/// Whether C is its own residual. Kernels that recompute some of the outputs that they have stored do not cover this.
inline Status needs_other_residual(const Contraction& p) {
  bool reads_c = false;
  if (p.program) p.program->for_each_source([&](const epilogue::Source& source) { reads_c |= source.data == p.c.data; });
  return reads_c ? Status{Decline::epilogue, "C is its own residual, and this kernel stores some outputs twice"} : Status{};
}

/// Bytes of the workspace that an operand takes: for its planes, or for packing if it cannot be copied as it is.
template <bool takes_lines, Decomposition decomposition = Decomposition{}>
std::size_t workspace_of(const Lines& g) {
  if constexpr (decomposition.planes > 1)
    return plane_bytes(*g.operand, g.lines, g.k, decomposition.planes, PlaneLayout::alternating);
  else
    return direction_of(g, takes_lines) ? 0 : packed_bytes(*g.operand, g.lines, g.k);
}
template <bool takes_lines, Decomposition decomposition = Decomposition{}>
std::size_t workspace(const Product& p) {
  return workspace_of<takes_lines, decomposition>(lines_of_a(p)) + workspace_of<takes_lines, decomposition>(lines_of_b(p));
}

/// The shape for a few rows: few tiles have to read all of B, so each keeps many slabs in flight.
using Deep = Shape<2, 2, 32, 32, 9, 1>;
template <class Shape>
inline constexpr bool is_deep = std::is_same_v<Shape, Deep>;

template <class Shape>
constexpr costs::Tile tile_of() {
  return {Shape::m, Shape::n, Shape::blocks, Shape::warps, is_deep<Shape>};
}
template <class Shape>
double number_of_tiles(const Product& p) {
  return static_cast<double>(p.batch) * static_cast<double>(rows_of<Shape>(p) * columns_of<Shape>(p));
}

template <class Shape, int work, bool takes_lines, Decomposition decomposition = Decomposition{}>
double cost(const Contraction& p) {
  using tensor::costs::Pass;
  constexpr bool cuts = decomposition.planes > 1;
  return costs::product_seconds(p, tile_of<Shape>(),
                                {.tiles = number_of_tiles<Shape>(p),
                                 .work = work,
                                 .bytes = static_cast<double>(cuts ? sizeof(bfloat16) : p.a.size),
                                 .pass_bytes = tensor::pass_bytes(p, workspace_of<takes_lines, decomposition>),
                                 .splits = decomposition.planes == 1 && decomposition.products > 1,
                                 .pass = cuts            ? Pass::planes
                                         : p.a.size >= 4 ? Pass::words
                                                         : Pass::elements});
}

/// Enqueues multiply(), a persistent kernel: as many blocks as the card holds, or as there are tiles. With `early`, it may start before
/// the previous launch is complete, if it has few tiles.
template <class Shape>
void launch_tiles(const void* function, unsigned tiles, int bytes, void** arguments, const Product& p, bool early,
                  const cuda::Launches& launches) {
  const unsigned resident = static_cast<unsigned>(std::max(p.execution.multiprocessors, 1)) * Shape::blocks;
  launches(function, std::min(tiles, resident), Shape::threads, bytes, arguments,
           early && tensor::starts_early(tiles, resident));
}

/// The operand as a pass packs it to `memory`, which this advances.
template <class Element>
Source<Element> packed_source(const Lines& g, std::byte*& memory, tensor::Passes& passes) {
  const Operand& o = *g.operand;
  passes.add(g, memory);
  const std::int64_t pitch =
      pitch_of(g.k, o.size) * static_cast<std::int64_t>(o.size) / static_cast<std::int64_t>(sizeof(Element));
  const Source<Element> packed{reinterpret_cast<const Element*>(memory), matrices_of(o) > 1 ? g.lines * pitch : 0, pitch};
  memory += packed_bytes(o, g.lines, g.k);
  return packed;
}

/// The operand's planes as a pass cuts it to `memory`, which this advances.
template <class Element, int planes>
Source<Element> cut_source(const Lines& g, std::byte*& memory, tensor::Passes& passes) {
  const Operand& o = *g.operand;
  passes.add(g, memory);
  const std::int64_t pitch = plane_pitch(g.k, planes, PlaneLayout::alternating);
  const Source<Element> cut{reinterpret_cast<const Element*>(memory), matrices_of(o) > 1 ? g.lines * pitch : 0, pitch};
  memory += plane_bytes(o, g.lines, g.k, planes, PlaneLayout::alternating);
  return cut;
}

template <class S, class Element, Decomposition decomposition, class Shape, class Finish>
void run(const KernelInfo& info, const Contraction& p, void* workspace) {
  constexpr int planes = decomposition.planes;
  constexpr int ratio =
      planes > 1 ? 1 : static_cast<int>(sizeof(typename S::element) / sizeof(Element));  // words per element
  const cuda::Launches launches(p, info.name);
  auto* memory = static_cast<std::byte*>(workspace);
  tensor::Passes passes;
  const auto source = [&](const Lines& g, std::optional<Direction> direction) {
    const Operand& o = *g.operand;
    if constexpr (planes > 1) return cut_source<Element, planes>(g, memory, passes);
    if (direction)
      return Source<Element>{static_cast<const Element*>(o.data), o.batch_stride * ratio,
                             (direction == Direction::along_k ? g.line_stride : g.k_stride) * ratio};
    return packed_source<Element>(g, memory, passes);
  };
  const Lines lines_a = lines_of_a(p), lines_b = lines_of_b(p);
  constexpr bool lines = planes == 1 && takes_lines<S, Element, Shape>;
  const std::optional<Direction> direction_a = direction_of(lines_a, lines), direction_b = direction_of(lines_b, lines);
  Operands<Element> operands{
      source(lines_a, direction_a), source(lines_b, direction_b),
      static_cast<int>(planes == 2 ? plane_pitch(p.k, planes, PlaneLayout::alternating) : p.k * ratio)};
  if constexpr (planes > 1)
    tensor::cut_operands<planes, PlaneLayout::alternating>(passes, launches);
  else
    tensor::pack_operands(passes, launches);

  auto arguments = detail::arguments_of<S, Finish>(p);
  Sums result;
  // Kernels of several planes have no registers for the quotient without a division.
  using Raster = std::conditional_t<(decomposition.planes > 1), tile::Raster, tile::PersistentRaster>;
  const std::int64_t rows = rows_of<Shape>(p), columns = columns_of<Shape>(p);
  Raster raster;
  if constexpr (decomposition.planes > 1)
    raster = {0, static_cast<unsigned>(rows), static_cast<unsigned>(columns)};
  else
    raster = {rows, columns};
  auto tiles = static_cast<unsigned>(p.batch * raster.rows * raster.columns);
  if (tiles == 0) return;
  const auto launch = [&]<Direction of_a, Direction of_b>() {
    constexpr int bytes = shared_bytes<Shape, typename arch::Mma<Element>::Accumulator, planes>;
    const auto launch_function = [&]<bool after_layer>() {
      static cuda::LaunchFacts facts;
      const auto function = reinterpret_cast<const void*>(
          &multiply<S, Element, decomposition, Finish, Shape, of_a, of_b, Sums, Raster, after_layer>);
      facts.find(function, bytes, launches);
      void* list[] = {&operands, &arguments, &result, &raster, &tiles};
      // It may start before a pass of this call ends. Before an earlier call's kernel ends it gains less than it costs.
      const bool after_pass = memory != workspace;
      launch_tiles<Shape>(function, tiles, bytes, list, p, after_pass && facts.waits(p.execution.device), launches);
    };
    if constexpr (is_large<Shape> && ShortFloat<Element> && planes == 1 && std::is_same_v<Finish, detail::ProgramFinish>)
      if (tensor::layer_of(p)) return launch_function.template operator()<true>();
    launch_function.template operator()<false>();
  };
  if constexpr (lines) {
    const bool a_lines = direction_a == Direction::along_lines, b_lines = direction_b == Direction::along_lines;
    if (a_lines && b_lines) return launch.template operator()<Direction::along_lines, Direction::along_lines>();
    if (a_lines) return launch.template operator()<Direction::along_lines, Direction::along_k>();
    if (b_lines) return launch.template operator()<Direction::along_k, Direction::along_lines>();
  }
  launch.template operator()<Direction::along_k, Direction::along_k>();
}

template <class S, class Element, Precision precision, class Shape,
          Decomposition decomposition = decomposition_at<typename S::element, Element>(precision),
          class Finish = detail::ProgramFinish>
Kernel<Contraction> kernel() {
  using Own = typename S::element;
  constexpr bool cuts = decomposition.planes > 1;
  constexpr int depth = cuts ? slab_of_planes : 128 / static_cast<int>(sizeof(Own));
  constexpr int terms = 32 / static_cast<int>(cuts ? sizeof(Element) : sizeof(Own));
  Kernel<Contraction> k;
  k.info = info_of_tile<S, Shape>("cuda.mma", precision, depth, variant_of(decomposition), is_deep<Shape> ? "deep" : "");
  k.info.shared_memory = shared_bytes<Shape, typename arch::Mma<Element>::Accumulator, decomposition.planes>;
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  if constexpr (is_exact<S>)
    k.info.promises = k.info.promises | Promise::reference_bits;
  else if constexpr (std::is_same_v<Element, double>)
    k.info.accuracy = detail::chain_accuracy<S>();  // of fma, in an order that PTX does not state
  else
    k.info.accuracy = accuracy_of(decomposition, terms, precision == Precision::tf32 ? cut_to_tf32 : 0);
  static_assert(Finish::takes_transpose);
  k.info.truncates = ShortFloat<Own> && decomposition.promoted == 0;
  if constexpr (decomposition.products == 1) k.info.transposes = Transposes::with_same_bits;
  k.supports = detail::supports_by<supports<S, Element, Shape, decomposition, Finish>>;
  constexpr bool lines = !cuts && takes_lines<S, Element, Shape>;
  constexpr int work = sizeof(Own) == 8 ? 2 : decomposition.products;  // a product of doubles takes as long as two others
  k.cost = detail::cost_by<cost<Shape, work, lines, decomposition>>;
  k.workspace = detail::workspace_by<workspace<lines, decomposition>>;
  k.run = detail::run_by<run<S, Element, decomposition, Shape, Finish>>;
  return k;
}

/// The kernels of a semiring, the largest tile first.
template <class S, class Element = typename S::element, Precision precision = Precision::accumulator>
std::vector<Kernel<Contraction>> kernels() {
  return {kernel<S, Element, precision, Shape<2, 4, 64, 64, 3, 1>>(),
          kernel<S, Element, precision, Shape<2, 2, 64, 64, 3, 2>>(),
          kernel<S, Element, precision, Shape<2, 2, 64, 32, 3, 2>>(),
          kernel<S, Element, precision, Shape<2, 2, 32, 32, 3, 3>>()};
}

/// The kernels for a user's functor as epilogue, which are instantiated in the user's translation unit: few tiles, since it
/// compiles them all.
template <class S, class Finish>
void add_functor_kernels(std::vector<Kernel<Contraction>>& list) {
  using Element = typename S::element;
  constexpr Precision as_it_is = Precision::accumulator;
  const auto add = [&]<class Multiplied, Precision precision, class Shape>() {
    constexpr Decomposition decomposition = decomposition_at<Element, Multiplied>(precision);
    list.push_back(kernel<S, Multiplied, precision, Shape, decomposition, Finish>());
  };
  if constexpr (!std::is_same_v<S, plus_times<Element>>) {
    return;
  } else if constexpr (ShortFloat<Element> || std::is_same_v<Element, std::int8_t> ||
                       std::is_same_v<Element, std::uint8_t>) {
    add.template operator()<Element, as_it_is, Shape<2, 4, 64, 64, 3, 1>>();
    add.template operator()<Element, as_it_is, Shape<2, 2, 64, 32, 3, 2>>();
  } else if constexpr (std::is_same_v<Element, double>) {
    add.template operator()<double, as_it_is, Shape<4, 2, 32, 48, 4, 1>>();
  } else if constexpr (std::is_same_v<Element, float>) {
    add.template operator()<bfloat16, Precision::promoted, Shape<2, 4, 64, 32, 3, 1>>();
    add.template operator()<float, Precision::tf32, Shape<2, 4, 64, 64, 3, 1>>();
  }
}

/// The kernels of 16-bit floats whose sums of 512 elements along K are promoted. Only these tiles leave registers for a second
/// set of sums.
template <class S, Precision precision = Precision::accumulator>
std::vector<Kernel<Contraction>> promoted_kernels() {
  using Element = typename S::element;
  constexpr Decomposition promoted{1, 1, 512};
  return {kernel<S, Element, precision, Shape<2, 2, 64, 32, 3, 2>, promoted>(),
          kernel<S, Element, precision, Shape<2, 2, 32, 32, 3, 3>, promoted>()};
}

}  // namespace rigel::backends::mma
