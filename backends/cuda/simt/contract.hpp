// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.simt kernels of one semiring: their facts and their launch.
#pragma once

#include <rigel/backends/cuda/costs/simt.hpp>
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/simt/kernel.hpp>
#include <rigel/backends/cuda/tensor/operand.hpp>
#include <rigel/detail/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace rigel::backends::simt {

// ---- what predicted times need to know of semirings, their tiles and problems in these (costs/simt.hpp) --------------------

template <class A>
constexpr costs::Sums sums_of() {
  if constexpr (std::is_same_v<A, double>)
    return costs::Sums::f64;
  else if constexpr (std::is_integral_v<A>)
    return sizeof(A) == 8 ? costs::Sums::i64 : costs::Sums::i32;
  else
    return costs::Sums::other;
}

template <class S>
constexpr costs::Semiring facts_of() {
  using Element = typename S::element;
  using Accumulator = typename S::accumulator;
  costs::Semiring s;
  s.work = tuning<S>.work;
  s.sums = sums_of<Accumulator>();
  s.element = static_cast<int>(sizeof(Element));
  s.operand = static_cast<int>(sizeof(operand_t<S>));
  s.accumulator = static_cast<int>(sizeof(Accumulator));
  s.of_integers = std::is_integral_v<operand_t<S>>;
  s.of_doubles = std::is_same_v<operand_t<S>, double>;
  s.is_of_zoo = in_zoo<S>;
  s.computes_floats = computes_floats<S>;
  s.is_light_float = is_light_float<S>;
  s.widens = widens<S>;
  s.is_packed = is_packed<S>;
  s.is_of_float = std::is_same_v<Element, float>;
  s.has_short_sums = ShortFloat<Accumulator>;
  s.is_of_structs = is_of_structs<S>;
  s.is_of_user_structs = is_of_user_structs<S>;
  s.sums_powers = sums_powers<S>;
  s.has_special_powers = has_special_powers<S>;
  s.sums_exponentials = sums_exponentials<S>;
  s.is_transcendental = is_transcendental<S>;
  s.has_square_roots = has_square_roots<S>;
  s.bit_counts = bit_counts_of<S>;
  s.instructions_of_metric = instructions_of_metric<S>;
  s.result = scalar_of<result_t<S>>;
  return s;
}

template <class S>
inline constexpr costs::Semiring semiring_facts = facts_of<S>();

template <class S, class Shape>
constexpr costs::Tile tile_of() {
  costs::Tile t;
  t.role = Shape::role;
  t.m = Shape::m;
  t.n = Shape::n;
  t.blocks = Shape::blocks;
  t.threads = Shape::threads;
  t.outputs = Shape::outputs_m * Shape::outputs_n;
  t.takes_vectors = takes_vectors<S, Shape>;
  return t;
}

template <class S, class Shape>
inline constexpr costs::Tile tile_facts = tile_of<S, Shape>();

// ---- problems in tiles -----------------------------------------------------------------------------------------------------

/// Tiles of C in one batch.
template <class Shape>
std::int64_t rows_of(const Product& p) {
  return (p.m + Shape::m - 1) / Shape::m;
}
template <class S, class Shape>
std::int64_t columns_of(const Product& p) {
  constexpr int n = outputs_of<S> * Shape::n;
  return (p.n + n - 1) / n;
}

template <class S, class Shape>
tile::Raster raster_of(const Product& p) {
  return {0, static_cast<unsigned>(rows_of<Shape>(p)), static_cast<unsigned>(columns_of<S, Shape>(p))};
}

using cuda::max_grid;
using tensor::Lines, tensor::lines_of_a, tensor::lines_of_b, tensor::matrices_of;

/// Whether asynchronous copies of single elements can move the operands. Elements of 4 and 8 bytes must be aligned to their
/// size, which a struct of smaller members need not be.
template <class S>
Status elements_are_aligned(const Product& p) {
  using Element = typename S::element;
  if constexpr (alignof(Element) < sizeof(Element) && (sizeof(Element) == 4 || sizeof(Element) == 8))
    for (const Operand* o : {&p.a, &p.b})
      if (reinterpret_cast<std::uintptr_t>(o->data) % sizeof(Element) != 0)
        return {Decline::layout, "an operand's elements do not stand at multiples of their size"};
  return {};
}

template <class S, class Finish, class Shape>
Status supports(const Contraction& p) {
  if (const Status status = elements_are_aligned<S>(p); !status) return status;
  if (p.m > max_grid || p.n > max_grid || rows_of<Shape>(p) * columns_of<S, Shape>(p) > max_grid)
    return {Decline::extents, "a matrix of C has more than 2^31 - 1 rows, columns or tiles"};
  return detail::finish_supports<Finish>(p);
}

/// How an operand comes to shared memory.
template <class S, class Shape>
tile::Way way_of(const Lines& o) {
  constexpr std::int64_t width = 16 / sizeof(typename S::element);  // of a vector, in elements
  const auto aligned = [&](std::int64_t stride) {
    return reinterpret_cast<std::uintptr_t>(o.operand->data) % 16 == 0 && stride % width == 0 &&
           o.operand->batch_stride % width == 0;
  };
  if (o.k % Shape::depth != 0 || o.k > std::numeric_limits<std::int32_t>::max()) return tile::Way::single;
  if (o.k_stride == 1 && aligned(o.line_stride)) return tile::Way::along_k;
  if (o.line_stride == 1 && aligned(o.k_stride) && o.lines % width == 0) return tile::Way::along_lines;
  return tile::Way::single;
}

/// Whether a K-major A, and B in this way, can come in vectors for any alignment and K.
template <class S, class Shape, tile::Way way_of_b>
bool can_be_shifted(const Product& p) {
  // The least K: below it, element by element is as fast. For distances it is lower if the card holds all small tiles at a
  // time.
  const bool few = way_of_b == tile::Way::shifted_k && p.batch * rows_of<Shape>(p) * columns_of<S, Shape>(p) <=
                                                           Shape::blocks * std::max(p.execution.multiprocessors, 1);
  const std::int64_t least = Shape::role == tile::Role::large ? 68 : few ? 40 : 256;
  constexpr std::int64_t most = 1 << 24;  // of strides: a thread counts elements between its rows in 32 bits
  const auto is_near = [](std::int64_t stride) { return stride >= -most && stride <= most; };
  if (p.a.column_stride != 1 || !is_near(p.a.row_stride)) return false;
  if (p.k < least || p.k > std::numeric_limits<std::int32_t>::max()) return false;
  if constexpr (way_of_b == tile::Way::shifted_k)
    return p.b.row_stride == 1 && is_near(p.b.column_stride);
  else
    return p.b.column_stride == 1 && p.n >= 8 && p.b.row_stride >= p.n;  // vectors may end in B's next row
}

struct Ways {
  tile::Way a = tile::Way::single, b = tile::Way::single;
  bool operator==(const Ways&) const = default;
};
/// Whether a tile has a kernel that brings operands so.
template <class S, class Shape>
constexpr bool has_ways(Ways w) {
  using enum tile::Way;
  constexpr bool takes_either = is_packed<S> || widens<S>;
  if (w.a == single || w.b == single || !takes_vectors<S, Shape>) return w == Ways{};
  if (takes_either || w.a == either) return takes_either && w == Ways{either, either};
  if (w.a == shifted_k) return w.b == shifted_way_of_b<S, Shape>;
  return takes_lines<S, Shape> || w.a != along_lines || w.b != along_lines;
}
/// use.operator()<a, b>() with the ways of each of a tile's kernels.
template <class S, class Shape, class Use>
constexpr void for_each_ways(const Use& use) {
  using enum tile::Way;
  constexpr Ways all[] = {
      {single, single},           {along_k, along_k},     {along_k, along_lines},     {along_lines, along_k},
      {along_lines, along_lines}, {shifted_k, shifted_k}, {shifted_k, shifted_lines}, {either, either}};
  const auto use_one = [&]<Ways w>() {
    if constexpr (has_ways<S, Shape>(w)) use.template operator()<w.a, w.b>();
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (use_one.template operator()<all[i]>(), ...);
  }(std::make_index_sequence<std::size(all)>());
}
/// How a kernel brings a problem's operands: in vectors if both allow it and there is a kernel for them.
template <class S, class Shape>
Ways ways_for(const Product& p) {
  if constexpr (takes_vectors<S, Shape>) {
    const Ways ways{way_of<S, Shape>(lines_of_a(p)), way_of<S, Shape>(lines_of_b(p))};
    if (ways.a != tile::Way::single && ways.b != tile::Way::single) {
      constexpr Ways either{tile::Way::either, tile::Way::either};
      if (has_ways<S, Shape>(either)) return either;
      return has_ways<S, Shape>(ways) ? ways : Ways{};
    }
    if (constexpr tile::Way b = shifted_way_of_b<S, Shape>; b != tile::Way::single && can_be_shifted<S, Shape, b>(p))
      return {tile::Way::shifted_k, b};
  }
  return {};
}

/// The tile of a kernel with these steps. Threads that may evaluate powers of doubles as the semiring defines them take more
/// than 128 registers.
template <class S, class Shape, class Step>
using ShapeFor = std::conditional_t<sums_powers<S> && !has_special_powers<S> && (Shape::threads * Shape::blocks >= 512) &&
                                        (std::is_same_v<Step, AnyPowers<S>> || std::is_same_v<Step, PowersOfView<S>>),
                                    tile::OneBlock<Shape>, Shape>;

/// visit(kernel, parameters): the CUDA kernel for a problem, and the parameters of its steps.
template <class S, class Finish, class Shape, class Visit>
void with_function(const Product& p, const Visit& visit) {
  using tile::Way;
  const auto use = [&]<class Step, Way a = Way::single, Way b = Way::single>(const typename Step::Parameters& parameters) {
    visit(reinterpret_cast<const void*>(&contract<S, Finish, ShapeFor<S, Shape, Step>, Step, a, b>), parameters);
  };
  if constexpr (Shape::role == tile::Role::whole_powers) {
    const auto use_step = [&]<class Step>() {
      if (way_of<S, Shape>(lines_of_a(p)) == Way::along_k && way_of<S, Shape>(lines_of_b(p)) == Way::along_k)
        use.template operator()<Step, Way::along_k, Way::along_k>({});
      else
        use.template operator()<Step>({});
    };
    if (static_cast<const S*>(p.semiring_object)->p == 3)
      use_step.template operator()<PowersByProducts<S, 6>>();
    else
      use_step.template operator()<PowersByProducts<S, 8>>();
  } else if constexpr (sums_powers<S>) {
    if (p.semiring_in_view) return use.template operator()<PowersOfView<S>>({});
    const auto exponent = static_cast<const S*>(p.semiring_object)->p;
    if constexpr (powers_by_products<S, Finish>) {
      const bool found = [&]<int... i>(std::integer_sequence<int, i...>) {
        return ((exponent * 2 == i + 1 && (use.template operator()<PowersByProducts<S, i + 1>>({}), true)) || ...);
      }(std::make_integer_sequence<int, 8>());
      if (found) return;
    }
    if (PowersByTable<S>::supports(exponent))
      return use.template operator()<PowersByTable<S>>(typename PowersByTable<S>::Parameters(exponent));
    use.template operator()<AnyPowers<S>>({});
  } else if constexpr (SumsPowersOfMetric<S>) {
    using ByTable = typename PowersOfMetric<S>::ByTable;
    if (!p.semiring_in_view)
      if (const auto exponent = static_cast<const S*>(p.semiring_object)->p; has_near_powers(exponent))
        return use.template operator()<ByTable>(typename ByTable::Parameters(exponent));
    use.template operator()<Steps<S>>({});
  } else if constexpr (sums_exponentials<S>) {
    use.template operator()<LogSums<S>>({});
  } else {
    const Ways ways = ways_for<S, Shape>(p);
    for_each_ways<S, Shape>([&]<Way a, Way b>() {
      if (ways == Ways{a, b}) use.template operator()<StepsFor<OnPairs<S>>, a, b>({});
    });
  }
}

/// Makes the arguments those of the transposed product. C's strides stay: the kernel exchanges m and n before it stores.
template <class S, class Finish>
void exchange_operands(detail::Arguments<S, Finish>& g) {
  std::swap(g.m, g.n);
  std::swap(g.a, g.b);
  std::swap(g.a.row, g.a.column);
  std::swap(g.b.row, g.b.column);
}

/// How a problem's steps compute powers.
template <class S, class Shape>
costs::Powers powers_for(const Product& p) {
  if constexpr (sums_powers<S> && Shape::role != tile::Role::whole_powers) {
    if (p.semiring_in_view) return costs::Powers::usual;
    const auto exponent = static_cast<const S*>(p.semiring_object)->p;
    if (exponent <= 4 && 2 * exponent == std::floor(2 * exponent))
      return exponent == std::floor(exponent) ? costs::Powers::whole_products : costs::Powers::half_products;
    if constexpr (!has_special_powers<S>)
      if (!PowersByTable<S>::supports(exponent)) return costs::Powers::by_definition;
  }
  return costs::Powers::usual;
}

/// A problem in tiles, as predicted times see it.
template <class S, class Shape>
costs::TileCall tile_call(const Product& p) {
  costs::TileCall call;
  call.tiles = p.batch * rows_of<Shape>(p) * columns_of<S, Shape>(p);
  call.k = p.k;
  call.powers = powers_for<S, Shape>(p);
  if constexpr (takes_vectors<S, Shape>) {
    const tile::Way way = ways_for<S, Shape>(p).a;
    call.copies = way == tile::Way::single      ? costs::Copies::singles
                  : way == tile::Way::shifted_k ? costs::Copies::shifted
                                                : costs::Copies::vectors;
  }
  return call;
}

template <class S, class Shape>
double cost(const Contraction& p) {
  return costs::tile_seconds(p, semiring_facts<S>, tile_facts<S, Shape>, tile_call<S, Shape>(p));
}

/// Launches a kernel on all tiles of a batch, with its arguments in this order.
template <class Arguments, class Parameters>
void launch_tiles(const KernelInfo& info, const Product& p, const void* function, tile::Raster raster, int threads,
                  Arguments arguments, Parameters parameters) {
  const cuda::Launches launches(p, info.name);
  void* list[] = {&arguments, &raster, &parameters};
  cuda::for_each_launch(p.batch * raster.rows * raster.columns, max_grid, [&](std::int64_t first, std::int64_t count) {
    raster.first = first;
    launches(function, static_cast<unsigned>(count), threads, 0, list);
  });
}

/// Makes a layer of an epilogue whose shifts differ by rows and not by columns, as a bias does in the transpose of a column-major C.
inline void shift_by_rows(detail::ProgramFinish& finish) {
  if (finish.is_layer) return;
  auto layer = epilogue::Layer::of(finish.program.transposed());
  if (!layer || !applies_in_registers(*layer)) return;
  std::swap(layer->shift.row_stride, layer->shift.column_stride);
  finish.layer = *layer;
  finish.is_layer = true;
}

template <class S, class Finish, class Shape>
void run(const KernelInfo& info, const Contraction& p, void*) {
  auto arguments = detail::arguments_of<S, Finish>(p);
  if constexpr (applies_layers<S, Finish>) shift_by_rows(arguments.finish);
  with_function<S, Finish, Shape>(p, [&](const void* function, const auto& parameters) {
    launch_tiles(info, p, function, raster_of<S, Shape>(p), Shape::threads, arguments, parameters);
  });
}

/// The shared memory of a block, in bytes, for those operands that take most.
template <class S, class Shape>
constexpr int shared_memory_of() {
  int most = 0;
  for_each_ways<S, Shape>(
      [&]<tile::Way a, tile::Way b>() { most = std::max(most, TileSum<S, Shape, Steps<OnPairs<S>>, a, b>::bytes); });
  if constexpr (sums_powers<S> || SumsPowersOfMetric<S>) most += static_cast<int>(sizeof(typename PowersByTable<S>::Table));
  if constexpr (sums_exponentials<S> && sizeof(operand_t<S>) == 8)
    most += static_cast<int>(sizeof(typename LogSums<S>::Table));
  return most;
}

/// Facts of a kernel with one chain per output, whose steps take `values` k each.
template <class S, class Shape>
KernelInfo tile_info(std::string_view variant = {}, int values = 1) {
  constexpr int m = Shape::m, n = outputs_of<S> * Shape::n;
  const int depth = values * Shape::depth;
  KernelInfo info = detail::info_of<S>(
      "cuda.simt", variant, std::to_string(m) + 'x' + std::to_string(n) + 'x' + std::to_string(depth), bit(Space::cuda));
  info.tile = {m, n, depth};
  info.stages = Slabs<S, Shape, tile::Way::single, tile::Way::single>::stages;
  info.threads = Shape::threads;
  info.timed_on = 90;
  info.min_compute_capability = 80;
  info.raw_launch = true;
  info.promises = Promise::repeatable | Promise::batch_invariant;
  info.bit_class = "cuda.simt";
  if constexpr (has_special_powers<S>) {
    info.accuracy = {120, 1};  // by special functions, a power of p ≤ 8 is within (4 + 3p + 0.7·126) u
  } else if constexpr (sums_powers<S>) {
    info.accuracy = {32, 1};  // by the table, (16 + p) u for p ≤ 7; a difference's rounding p times
  } else if constexpr (has_steps_of_metric<S>) {
    info.accuracy = {40, 1};  // metrics.hpp
  } else if constexpr (sums_exponentials<S> && sizeof(operand_t<S>) == 8) {
    info.accuracy = {64, 0.25};  // LogSums: docs/numerics.md
  } else if constexpr (is_transcendental<S>) {
    info.accuracy = {10, 6};  // a power: 4 ulp; a step of log_plus: 2 ulp of an exponential, or 6 u (LogSums)
  } else {
    info.promises = info.promises | Promise::reference_bits;
    info.accuracy = detail::chain_accuracy<S>();
  }
  return info;
}

/// Says of a kernel's facts that its bits are no other kernel's.
inline void set_own_bits(KernelInfo& info) {
  info.promises = Promise::repeatable;
  info.bit_class.clear();
}
/// Whether tiles compute terms otherwise than the semiring defines them: powers, exponentials and some metrics of floats.
template <class S>
inline constexpr bool tiles_differ = sums_powers<S> || sums_exponentials<S> || has_steps_of_metric<S>;
/// Says of a kernel's facts that it takes direct_step() (lanes.hpp).
template <class S>
void set_direct_steps(KernelInfo& info) {
  if constexpr (has_special_powers<S>)
    info.accuracy = {42, 1};  // for p ≤ 8: power_by_parts(), and a difference's rounding p times
  else if constexpr (is_transcendental<S>)
    info.accuracy = {10, 6};  // as the semiring defines it
  if constexpr (tiles_differ<S>) set_own_bits(info);
}

template <class S, class Finish, class Shape>
Kernel<Contraction> kernel() {
  Kernel<Contraction> k;
  k.info = tile_info<S, Shape>();
  k.info.shared_memory = shared_memory_of<S, Shape>();
  k.supports = detail::supports_by<supports<S, Finish, Shape>>;
  k.cost = detail::cost_by<cost<S, Shape>>;
  k.run = detail::run_by<run<S, Finish, Shape>>;
  return k;
}

template <class S>
bool is_whole(const Product& p) {
  if (p.semiring_in_view) return false;
  const float exponent = static_cast<const S*>(p.semiring_object)->p;
  return exponent == 3 || exponent == 4;
}

/// lp in the tile for whole powers. Other p use the usual tile, so that this kernel covers what the others cover.
template <class S, class Finish>
Kernel<Contraction> whole_powers_kernel() {
  Kernel<Contraction> k = kernel<S, Finish, WholePowersTile>();
  k.supports = [](const Kernel<Contraction>&, const Contraction& p) {
    return is_whole<S>(p) ? supports<S, Finish, WholePowersTile>(p) : supports<S, Finish, LargeTile<S>>(p);
  };
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) {
    return is_whole<S>(p) ? cost<S, WholePowersTile>(p) : 1.01 * cost<S, LargeTile<S>>(p);
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace& workspace) {
    return is_whole<S>(p) ? run<S, Finish, WholePowersTile>(kernel.info, p, workspace.data)
                          : run<S, Finish, LargeTile<S>>(kernel.info, p, workspace.data);
  };
  return k;
}

}  // namespace rigel::backends::simt
