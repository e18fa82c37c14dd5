// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.hopper kernels of one semiring: their facts and their launch.
#pragma once

#include <rigel/backends/cuda/costs/hopper.hpp>
#include <rigel/backends/cuda/hopper/kernel.hpp>
#include <rigel/backends/cuda/hopper/tensor_map.hpp>
#include <rigel/backends/cuda/tensor/accuracy.hpp>
#include <rigel/backends/cuda/tensor/info.hpp>
#include <rigel/backends/cuda/tensor/operand.hpp>
#include <rigel/backends/cuda/tensor/pack.hpp>
#include <rigel/backends/cuda/tensor/planes.hpp>
#include <rigel/detail/kernel.hpp>
#include <rigel/epilogue_layer.hpp>

#include <limits>
#include <optional>
#include <vector>

namespace rigel::backends::hopper {

using tensor::Lines, tensor::lines_of_a, tensor::lines_of_b, tensor::packed_bytes, cuda::max_grid, tile::Direction;

/// The direction in which tensor copies bring an operand as it is: if it is K-major, or M- or N-major with 16-bit numbers, if
/// address and strides are multiples of 16 bytes, and if neither rows nor matrices overlap; extents do not matter. None for
/// an operand that has to be packed.
inline std::optional<Direction> direction_to_copy(const Lines& g) {
  const Operand& o = *g.operand;
  const auto size = static_cast<std::int64_t>(o.size);
  const auto fits = [&](std::int64_t extent, std::int64_t rows, std::int64_t stride) {
    constexpr std::int64_t longest = std::int64_t{1} << 40;  // bytes of a stride
    const auto valid = [&](std::int64_t s) { return s * size % 16 == 0 && s * size < longest; };
    return reinterpret_cast<std::uintptr_t>(o.data) % 16 == 0 && extent * size < longest &&
           (rows <= 1 || (valid(stride) && stride >= extent)) && valid(o.batch_stride) &&
           (o.batch_stride == 0 || o.batch_stride >= (rows - 1) * stride + extent);
  };
  if ((g.k_stride == 1 || g.k <= 1) && fits(g.k, g.lines, g.line_stride)) return Direction::along_k;
  if (o.size == 2 && (g.line_stride == 1 || g.lines <= 1) && fits(g.lines, g.k, g.k_stride)) return Direction::along_lines;
  return std::nullopt;
}

/// Rows and columns of clusters' tiles in one batch.
template <class Shape>
std::int64_t rows_of(const Product& p) {
  constexpr std::int64_t m = Shape::m * Shape::cluster;
  return (p.m + m - 1) / m;
}
template <class Shape>
std::int64_t columns_of(const Product& p) {
  return (p.n + Shape::n - 1) / Shape::n;
}

template <class Shape, class Finish>
Status supports(const Contraction& p) {
  constexpr std::int64_t longest = std::numeric_limits<std::int32_t>::max() / 2;
  if (p.m > longest || p.n > longest || p.k > longest / 2)
    return {Decline::extents, "M or N is 2^30 or more, or K 2^29 or more"};
  if (rows_of<Shape>(p) * columns_of<Shape>(p) > max_grid / std::max<std::int64_t>(p.batch, 1))
    return {Decline::extents, "C has more than 2^31 - 1 tiles"};
  for (const Lines& g : {lines_of_a(p), lines_of_b(p)})
    if (tensor::packing_blocks(*g.operand, g.lines, g.k) > max_grid)
      return {Decline::extents, "an operand has more than 2^31 - 1 tiles of 64 by 64"};
  for (const Operand* o : {&p.a, &p.b})
    if (tensor::matrices_of(*o) > longest / 2) return {Decline::extents, "an operand has 2^29 matrices or more"};
  return detail::finish_supports<Finish>(p);
}

/// Whether sums longer than sum_k are cut into parts.
template <class S>
inline constexpr bool cuts_sums = ShortFloat<typename S::element>;

/// For sums that are cut: the bound of accuracy_of_cut_sums() holds so far.
template <class S>
Status supports_cut_sums(std::int64_t terms) {
  if (cuts_sums<S> && terms > 1 << 24) return {Decline::extents, "a sum has more than 2^24 terms"};
  return {};
}

/// For a kernel that does not cut sums of 16-bit numbers.
inline Status supports_short_sums(std::int64_t terms) {
  if (terms > sum_k)
    return {Decline::extents, "a sum has more than " + std::to_string(sum_k) + " terms, and its parts need smaller tiles"};
  return {};
}

/// The same for a kernel with a short store alone: of sums as they are, hopper::stored_as_they_are() and FoundPlace test the same; with
/// `Layers` also after an epilogue with the short form of a Layer, and with `Accumulates` added to a C of sums.
template <class S, class Shape, bool Layers, bool Accumulates>
Status supports_short_store(const Contraction& p) {
  const Operand& c = p.c;
  const std::int64_t four = 4 * static_cast<std::int64_t>(c.size);
  const bool elements = ShortFloat<typename S::element> && c.type == scalar_of<typename S::element>;
  const bool plain = p.program && p.program->empty();
  if (p.accumulate && !(Accumulates && plain && c.type == scalar_of<typename S::accumulator>))
    return {Decline::accumulate, "C is not the sums as they are: there is a value to continue"};
  const auto layer = Layers && p.program ? epilogue::Layer::of(*p.program, p.of_one_row) : std::nullopt;
  if (!plain && !(layer && !layer->has_matrix()))
    return {Decline::epilogue, Layers ? "the epilogue is more than a factor, a row to add and an activation, in this order"
                                      : "C is not the sums as they are: there is an epilogue"};
  if (!elements && (c.type != scalar_of<typename S::accumulator> || !plain))
    return {Decline::result, "C has neither the sums as they are nor the type of the operands"};
  if (c.column_stride != 1 || p.n % 4 != 0 || c.row_stride % 4 != 0 || c.batch_stride % 4 != 0 ||
      reinterpret_cast<std::uintptr_t>(c.data) % four != 0)
    return {Decline::layout, "four columns of C do not lie together, aligned"};
  return supports<Shape, detail::ProgramFinish>(p);
}

/// Bytes of the workspace that an operand takes: for its planes, or for packing if it cannot be copied as it is.
template <class Parts>
std::size_t workspace_of(const Lines& g) {
  if constexpr (Parts::planes > 1)
    return tensor::plane_bytes(*g.operand, g.lines, g.k, Parts::planes, tensor::PlaneLayout::separate);
  else
    return direction_to_copy(g) ? 0 : packed_bytes(*g.operand, g.lines, g.k);
}
template <class Parts>
std::size_t workspace(const Product& p) {
  return workspace_of<Parts>(lines_of_a(p)) + workspace_of<Parts>(lines_of_b(p));
}

template <class Element, class Parts, class Shape>
double cost(const Contraction& p) {
  return costs::product_seconds(
      p, {Shape::m, Shape::n, Shape::cluster, Shape::in_turn, Shape::few_registers},
      {.tiles = static_cast<double>(p.batch) * static_cast<double>(rows_of<Shape>(p) * columns_of<Shape>(p)),
       .pass_bytes = tensor::pass_bytes(p, workspace_of<Parts>),
       .element = sizeof(Element),
       .planes = Parts::planes,
       .products = Parts::products,
       .promotes = Parts::promoted || Shape::long_sums});
}

/// Rows of a box of an operand that is copied K-major: those of a slab, or fewer if the operand has fewer, in steps of the
/// swizzle's eight. Rows that do not exist take as long to copy as others. Without their copies they hold anything, which
/// only outputs outside of C get; kernels of float, which look for sums that are not finite, need zeros there.
template <class Element, class Parts, int lines, int parts>
int rows_of_box(const Lines& g) {
  constexpr int all = lines / parts;
  if (Parts::planes > 1 || sizeof(Element) == 4 || direction_to_copy(g) == Direction::along_lines) return all;
  return static_cast<int>(std::min<std::int64_t>(all, (g.lines + 7) / 8 * 8));
}

/// The tensor map of an operand's matrices: as they are, or as a pass brings them to `memory`, which this advances. A slab's rows (of
/// A) or columns (of B) are copied in `parts` shares.
template <class Element, class Parts, int lines, int parts>
CUtensorMap operand_map(const Lines& g, std::optional<Direction> direction, std::byte*& memory, tensor::Passes& passes,
                        const cuda::Launches& launches) {
  const Operand& o = *g.operand;
  if (g.k == 0) return {};  // nothing is copied
  constexpr int size = sizeof(Element);
  constexpr Permuted permuted = Parts::row_bytes == 64 ? Permuted::bytes_64 : Permuted::bytes_128;
  const std::int64_t count = tensor::matrices_of(o);
  if constexpr (size == 2 && Parts::planes == 1)
    if (direction == Direction::along_lines) {
      using Slab = tile::SwizzledSlab<Element, Direction::along_lines, lines>;
      return tensor_map({o.data, size, g.lines, g.k, count, g.k_stride * size, o.batch_stride * size}, Slab::box_columns,
                        Slab::template box_rows<parts>, permuted, launches);
    }
  Matrices m{o.data, size, g.k, g.lines, count * Parts::planes, g.line_stride * size, o.batch_stride * size};
  if (const std::size_t bytes = workspace_of<Parts>(g)) {
    passes.add(g, memory);
    m.row_stride = size * (Parts::planes > 1 ? tensor::plane_pitch(g.k, Parts::planes, tensor::PlaneLayout::separate)
                                             : tensor::pitch_of(g.k, o.size));
    m.data = memory;
    m.stride = g.lines * m.row_stride;
    memory += bytes;
  }
  using Slab = tile::SwizzledSlab<Element, Direction::along_k, lines, Parts::row_bytes>;
  return tensor_map(m, Slab::box_columns, rows_of_box<Element, Parts, lines, parts>(g), permuted, launches);
}

/// use.operator()<of_a, of_b>() with the directions in which tensor copies bring the operands.
template <class Element, class Parts, class Use>
void with_directions(const Product& p, const Use& use) {
  if constexpr (sizeof(Element) == 2 && Parts::planes == 1) {
    const bool a_lines = direction_to_copy(lines_of_a(p)) == Direction::along_lines,
               b_lines = direction_to_copy(lines_of_b(p)) == Direction::along_lines;
    if (a_lines && b_lines) return use.template operator()<Direction::along_lines, Direction::along_lines>();
    if (a_lines) return use.template operator()<Direction::along_lines, Direction::along_k>();
    if (b_lines) return use.template operator()<Direction::along_k, Direction::along_lines>();
  }
  use.template operator()<Direction::along_k, Direction::along_k>();
}

/// Both operands as tensor copies see them, after the passes that they need. A slab of A is copied in `parts_a` shares, one
/// of B in `parts_b`.
template <class Element, class Parts, class Shape, int parts_a, int parts_b>
Operands operands_of(const Product& p, void* workspace, const cuda::Launches& launches) {
  auto* memory = static_cast<std::byte*>(workspace);
  const Lines a = lines_of_a(p), b = lines_of_b(p);
  const int of_a = static_cast<int>(tensor::matrices_of(p.a)), of_b = static_cast<int>(tensor::matrices_of(p.b));
  const auto bytes_of = [](int rows, int parts) { return rows * parts * Parts::row_bytes * Parts::planes; };
  const int stage = bytes_of(rows_of_box<Element, Parts, Shape::m, parts_a>(a), parts_a) +
                    bytes_of(rows_of_box<Element, Parts, Shape::n, parts_b>(b), parts_b);
  tensor::Passes passes;
  Operands operands{operand_map<Element, Parts, Shape::m, parts_a>(a, direction_to_copy(a), memory, passes, launches),
                    operand_map<Element, Parts, Shape::n, parts_b>(b, direction_to_copy(b), memory, passes, launches),
                    static_cast<int>(p.k),
                    of_a,
                    of_b,
                    stage,
                    of_a > 1,
                    of_b > 1};
  if constexpr (Parts::planes > 1)
    tensor::cut_operands<Parts::planes, tensor::PlaneLayout::separate>(passes, launches);
  else
    tensor::pack_operands(passes, launches);
  return operands;
}

template <class S, class Element, class Parts, class Shape, class Finish>
void run(const KernelInfo& info, const Contraction& p, void* workspace) {
  const cuda::Launches launches(p, info.name);
  const tile::PersistentRaster raster(rows_of<Shape>(p), columns_of<Shape>(p));
  const auto tiles = static_cast<unsigned>(p.batch * raster.rows * raster.columns);
  if (tiles == 0) return;
  const unsigned clusters =
      std::min(tiles, static_cast<unsigned>(std::max(p.execution.multiprocessors / Shape::cluster, 1)));

  auto arguments = detail::arguments_of<S, Finish>(p);
  with_directions<Element, Parts>(p, [&]<tile::Direction of_a, tile::Direction of_b>() {
    constexpr int bytes = sizeof(SharedStorage<Shape, Parts, typename arch::WgmmaTypes<Element>::Accumulator>);
    static cuda::LaunchFacts facts;
    const auto function = reinterpret_cast<const void*>(&multiply<S, Element, Parts, Finish, Shape, of_a, of_b>);
    facts.find(function, bytes, launches);  // before anything is enqueued
    Operands operands = operands_of<Element, Parts, Shape, 1, Shape::cluster>(p, workspace, launches);
    using Slabs = hopper::Slabs<Element, Parts, Shape, of_a, of_b>;
    Schedule schedule{raster, tiles, clusters, Slabs::count(operands.k)};
    void* list[] = {&operands, &arguments, &schedule};
    launches(function, clusters * Shape::cluster, Shape::threads, bytes, list, tensor::starts_early(tiles, clusters),
             Shape::cluster);
  });
}

/// supports(), cost() and run() of a tile whose schedule for long sums is `Long`.
template <class S, class Shape, class Long, class Finish>
Status supports_with(const Contraction& p) {
  if (Status status = supports_cut_sums<S>(p.k); !status) return status;
  if constexpr (std::is_void_v<Long>) {
    if (Status status = supports_short_sums(p.k); !status) return status;
  } else if constexpr (!std::is_same_v<Shape, Long>) {
    if (p.k > sum_k) return supports<Long, Finish>(p);
  }
  if constexpr (Shape::few_registers)
    return supports_short_store<S, Shape, ShortFloat<typename S::element>, false>(p);
  else
    return supports<Shape, Finish>(p);
}
template <class Element, class Parts, class Shape, class Long>
double cost_with(const Contraction& p) {
  if constexpr (!std::is_void_v<Long> && !std::is_same_v<Shape, Long>)
    if (p.k > sum_k) return cost<Element, Parts, Long>(p);
  return cost<Element, Parts, Shape>(p);
}
template <class S, class Element, class Parts, class Shape, class Long, class Finish>
void run_with(const KernelInfo& info, const Contraction& p, void* workspace) {
  if constexpr (!std::is_void_v<Long> && !std::is_same_v<Shape, Long>)
    if (p.k > sum_k) return run<S, Element, Parts, Long, Finish>(info, p, workspace);
  run<S, Element, Parts, Shape, Finish>(info, p, workspace);
}

/// The bound of sums of 16-bit numbers: parts are summed on tensor cores, then added in float. That of the longest part of any sum.
constexpr Accuracy accuracy_of_cut_sums(double rounding = 0) {
  Accuracy accuracy = tensor::truncating_accuracy(16, 1, rounding);
  accuracy.part = sum_k;
  return accuracy;
}

/// A kernel of S. Floats are cut to tf32 or into planes of bfloat16, as `precision` says; `nine`: all products of three
/// planes. For long sums of 16-bit numbers the tile has another schedule, `Long`, or none (void) and declines them.
template <class S, Precision precision, class Shape, bool nine = precision == Precision::exact_products,
          class Long = std::conditional_t<Shape::long_sums || !cuts_sums<S>, Shape, void>,
          class Finish = detail::ProgramFinish>
Kernel<Contraction> kernel() {
  using Own = typename S::element;
  constexpr bool promoted = precision == Precision::exact_products || precision == Precision::promoted;
  constexpr bool in_three = promoted || precision == Precision::split, in_two = precision == Precision::bf16x3;
  using Element = std::conditional_t<in_three || in_two, bfloat16, Own>;
  using Parts = hopper::Parts<in_three ? 3 : in_two ? 2 : 1, nine ? 9 : in_three ? 6 : in_two ? 3 : 1, promoted>;
  constexpr int depth = Parts::row_bytes / static_cast<int>(sizeof(Element)), terms = 32 / static_cast<int>(sizeof(Element));
  Kernel<Contraction> k;
  k.info = tensor::info_of_tile<S, Shape>("cuda.hopper", precision, depth,
                                          !nine      ? ""
                                          : promoted ? "bf16x9"
                                                     : "bf16x9_split",
                                          Shape::long_sums ? "long" : "");
  k.info.min_compute_capability = k.info.max_compute_capability = 90;
  k.info.shared_memory = sizeof(SharedStorage<Shape, Parts, typename arch::WgmmaTypes<Element>::Accumulator>);
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  if constexpr (is_exact<S>)
    k.info.promises = k.info.promises | Promise::reference_bits;
  else if constexpr (Parts::planes > 1)
    k.info.accuracy = tensor::accuracy_of({Parts::planes, Parts::products, promoted ? depth : 0}, terms);
  else if constexpr (cuts_sums<S>)
    k.info.accuracy = accuracy_of_cut_sums();
  else
    k.info.accuracy = tensor::truncating_accuracy(terms, 1, precision == Precision::tf32 ? tensor::cut_to_tf32 : 0);
  static_assert(Finish::takes_transpose);
  k.info.truncates = cuts_sums<S>;  // in long parts
  if constexpr (Parts::products == 1) k.info.transposes = Transposes::with_same_bits;
  if constexpr (Shape::few_registers) k.info.operands[2] = {Layout::row_major, 4};
  k.supports = detail::supports_by<supports_with<S, Shape, Long, Finish>>;
  k.cost = detail::cost_by<cost_with<Element, Parts, Shape, Long>>;
  k.workspace = detail::workspace_by<workspace<Parts>>;
  k.run = detail::run_by<run_with<S, Element, Parts, Shape, Long, Finish>>;
  return k;
}

/// The kernels of 16-bit numbers and of bytes, the largest tile first.
template <class S, Precision precision>
std::vector<Kernel<Contraction>> kernels_in_one_step() {
  constexpr Tiles shared = Tiles::shared, in_turn = Tiles::in_turn;
  using Long = std::conditional_t<cuts_sums<S>, Shape<shared, 1, 128, 6, 1, true>, Shape<in_turn, 2, 128, 6, 1>>;
  using Small = Shape<shared, 1, 64, 8, 1>;
  using LongSmall = Shape<shared, 1, 64, 8, 1, cuts_sums<S>>;
  std::vector<Kernel<Contraction>> list = {kernel<S, precision, Shape<shared, 1, 256, 4, 2>>(),
                                           kernel<S, precision, Shape<in_turn, 2, 192, 5, 1>>(),
                                           kernel<S, precision, Shape<in_turn, 2, 128, 6, 1>, false, Long>(),
                                           kernel<S, precision, Shape<in_turn, 1, 256, 5, 1>>(),
                                           kernel<S, precision, Small, false, LongSmall>(),
                                           kernel<S, precision, Shape<in_turn, 1, 128, 8, 1>>()};
  if constexpr (cuts_sums<S>) list.push_back(kernel<S, precision, Shape<shared, 1, 192, 5, 2, true>>());
  return list;
}

/// The kernels of a semiring, the largest tile first.
template <class S, Precision precision = Precision::accumulator>
std::vector<Kernel<Contraction>> kernels() {
  constexpr Tiles shared = Tiles::shared, in_turn = Tiles::in_turn;
  if constexpr (precision == Precision::exact_products)
    return {kernel<S, precision, Shape<shared, 1, 128, 4, 1>>(), kernel<S, precision, Shape<shared, 1, 64, 6, 1>>()};
  else if constexpr (precision == Precision::promoted)
    return {kernel<S, precision, Shape<shared, 1, 192, 3, 1>>(), kernel<S, precision, Shape<shared, 1, 128, 4, 1>>(),
            kernel<S, precision, Shape<shared, 1, 64, 6, 1>>()};
  else if constexpr (precision == Precision::split)
    return {kernel<S, precision, Shape<shared, 1, 256, 3, 1>>(), kernel<S, precision, Shape<shared, 1, 128, 4, 1>>(),
            kernel<S, precision, Shape<shared, 1, 64, 6, 1>>()};
  else if constexpr (precision == Precision::bf16x3)
    return {kernel<S, precision, Shape<shared, 1, 256, 4, 1>>(), kernel<S, precision, Shape<shared, 1, 128, 6, 1>>(),
            kernel<S, precision, Shape<shared, 1, 64, 8, 1>>()};
  else if constexpr (precision == Precision::tf32)
    return {kernel<S, precision, Shape<shared, 1, 256, 4, 2>>(), kernel<S, precision, Shape<in_turn, 2, 128, 6, 1>>(),
            kernel<S, precision, Shape<in_turn, 1, 256, 5, 1>>(), kernel<S, precision, Shape<shared, 1, 64, 8, 1>>(),
            kernel<S, precision, Shape<in_turn, 1, 128, 8, 1>>()};
  else
    return kernels_in_one_step<S, precision>();
}

/// The kernel for a user's functor as epilogue, instantiated in the user's translation unit: of 16-bit floats, in a tile that
/// takes sums of any length.
template <class S, class Finish>
void add_functor_kernels(std::vector<Kernel<Contraction>>& list) {
  using Long = Shape<Tiles::shared, 1, 192, 5, 2, true>;
  if constexpr (std::is_same_v<S, plus_times<half>> || std::is_same_v<S, plus_times<bfloat16>>)
    list.push_back(kernel<S, Precision::accumulator, Long, false, Long, Finish>());
}

}  // namespace rigel::backends::hopper
