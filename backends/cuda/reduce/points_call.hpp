// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.points: which calls of reduce() its kernels take, and their launches.
#pragma once

#include <rigel/backends/cuda/costs/points.hpp>
#include <rigel/backends/cuda/reduce/points.hpp>
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/detail/kernel.hpp>

#include <cmath>
#include <optional>
#include <string>
#include <type_traits>

namespace rigel::backends::points {

/// Dimensions and columns of V that kernels have.
inline constexpr int most_dimensions = 16, most_rights = 4;

/// What the steps of an epilogue make of a squared distance, as Call has it.
struct Form {
  Of of = Of::square;
  double factor = 0, rate = 0, first = 0, second = 0;
  double natural = 0;  // `factor` of powers of e in place of 2
  const epilogue::Source* bias = nullptr;
  double bias_factor = 0, added = 0;
};

/// Whether a number and its reciprocal are far from the ends of the floats.
inline bool is_moderate(double x) { return std::abs(x) >= 0x1p-100 && std::abs(x) <= 0x1p100; }

/// Steps after the root, if there is one: some scale(), then a kernel.
inline std::optional<Form> form_of_values(const epilogue::Program& steps, int next, Form form) {
  using epilogue::Kind;
  double scale = 1;
  for (; next < steps.size() && steps[next].kind == Kind::scale && !steps[next].reads_memory(); ++next)
    scale *= steps[next].x;
  if (next + 1 != steps.size() || steps[next].reads_memory()) return {};
  const double x = steps[next].x;
  double rate = 0;  // of the exponent, and u is its magnitude
  switch (steps[next].kind) {
    case Kind::exponential: rate = x * scale; break;
    case Kind::matern32:
      rate = -scale * 1.73205080756887729353 / x;
      form.first = 1;
      break;
    case Kind::matern52:
      rate = -scale * 2.23606797749978969641 / x;
      form.first = 1;
      form.second = 1. / 3;
      break;
    default: return {};
  }
  if (!is_moderate(rate)) return {};
  if (form.of == Of::square) {
    if (form.first != 0) return {};
    form.natural = rate;
    form.factor = rate * log2_e;
    return form;
  }
  if (form.first != 0 && rate > 0) return {};
  form.rate = std::abs(rate);
  form.natural = rate > 0 ? 1 : -1;
  form.factor = form.natural * log2_e;
  return form;
}

/// Steps after the root: scale() and add() by numbers, and one addition of numbers that do not depend on the row.
inline std::optional<Form> form_of_scores(const epilogue::Program& steps, int next, Form form) {
  using epilogue::Kind;
  form.factor = 1;
  for (; next < steps.size(); ++next) {
    const epilogue::Step& step = steps[next];
    if (step.kind == Kind::scale && !step.reads_memory()) {
      form.factor *= step.x;
      form.bias_factor *= step.x;
      form.added *= step.x;
    } else if (step.kind == Kind::add && !step.reads_memory()) {
      form.added += step.x;
    } else if (step.kind == Kind::add && !form.bias && steps.source(step.x_from).row_stride == 0) {
      form.bias = &steps.source(step.x_from);
      form.bias_factor = 1;
    } else {
      return {};
    }
  }
  if (!is_moderate(form.factor)) return {};
  form.natural = form.factor;
  return form;
}

inline std::optional<Form> form_of(const Reduction& p) {
  const epilogue::Program& steps = *p.program;
  Form form;
  if (steps.begins_with_root()) form.of = Of::root;
  const int next = form.of == Of::root ? 1 : 0;
  return p.reducer == Reducer::weighted_sum ? form_of_values(steps, next, form) : form_of_scores(steps, next, form);
}

inline std::int32_t rights_of(const Reduction& p) { return is_weighted(p.reducer) ? static_cast<std::int32_t>(p.count) : 0; }

/// use.operator()<D, R, of, some>() with the kernel of a call. Doubles, and calls that leave out scores, have kernels of fewer dimensions: what
/// they would gain is little next to an exponential of double.
template <bool softmax, class T, class Use>
void with_instance(const Reduction& p, Of of, const Use& use) {
  const auto with_of = [&]<int D, int R, bool some>() {
    if (of == Of::root)
      use.template operator()<D, R, Of::root, some>();
    else
      use.template operator()<D, R, Of::square, some>();
  };
  const auto with_rights = [&]<int D, bool some>() {
    const std::int32_t rights = rights_of(p);
    if constexpr (softmax)
      if (rights == 0) return with_of.template operator()<D, 0, some>();
    if (rights == 1) return with_of.template operator()<D, 1, some>();
    with_of.template operator()<D, most_rights, some>();
  };
  const std::int64_t k = p.k;
  if (std::is_same_v<T, double> || p.ranges || p.exclude_self) {
    if (k <= 3) return with_rights.template operator()<3, true>();
    if (k <= 8) return with_rights.template operator()<8, true>();
    return with_rights.template operator()<most_dimensions, true>();
  }
  if constexpr (std::is_same_v<T, float>) {
    if (k == 1) return with_rights.template operator()<1, false>();
    if (k == 2) return with_rights.template operator()<2, false>();
    if (k == 3) return with_rights.template operator()<3, false>();
    if (k <= 5) return with_rights.template operator()<5, false>();
    if (k <= 8) return with_rights.template operator()<8, false>();
    if (k <= 12) return with_rights.template operator()<12, false>();
    with_rights.template operator()<most_dimensions, false>();
  }
}

/// Blocks of rows of a matrix: with ranges, of each part.
template <class T>
std::int64_t row_blocks_of(const Reduction& p) {
  if (p.ranges) return p.ranges->part_count * (detail::RangeTable::part_rows / rows_of_block<T>);
  return (p.m + rows_of_block<T> - 1) / rows_of_block<T>;
}

/// What a call asks of kernels of scores of T that may leave out some.
template <bool softmax, class T>
Status takes(const Reduction& p) {
  if (softmax ? p.reducer != Reducer::softmax_weighted && p.reducer != Reducer::log_sum_exp
              : p.reducer != Reducer::weighted_sum)
    return {Decline::other, std::string("has no ") + name(p.reducer)};
  if (const Status status = detail::computes_scores(p, true); !status) return status;
  if (p.scores.type != scalar_of<T>) return {Decline::result, std::string("computes scores of ") + name(scalar_of<T>)};
  if (p.k < 1 || p.k > most_dimensions) return {Decline::extents, "takes K from 1 to " + std::to_string(most_dimensions)};
  if (rights_of(p) > most_rights)
    return {Decline::extents, "takes at most " + std::to_string(most_rights) + " columns of V"};
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (p.n > most || p.batch > most || row_blocks_of<T>(p) > most / std::max<std::int64_t>(p.batch, 1))
    return {Decline::extents, "there are more than 2^31 - 1 columns or blocks of rows"};
  if (!form_of(p))
    return {Decline::epilogue,
            softmax ? "takes distances or their squares with scale() and add() by moderate numbers and one add_row()"
                    : "takes an exponential or Matern kernel of distances or their squares, by a moderate number"};
  return {};
}

template <bool softmax, class T>
Status supports(const Kernel<Reduction>&, const Reduction& p) {
  return takes<softmax, T>(p);
}

/// Instructions of a score, as counted in points.hpp, and those of the special-function unit. Of double, an exponential takes 16, a root 12.
template <int D, int R, bool softmax, Of of, class T>
costs::Call facts() {
  using Layout = Record<D, R, softmax, T>;
  constexpr double record = Layout::words / static_cast<double>(Layout::vector) / rows_of_thread<T>, loop = 0.4;
  costs::Call call;
  call.threads = threads;
  call.rows_of_block = rows_of_block<T>;
  call.tile_columns = tile_columns;
  if constexpr (std::is_same_v<T, double>) {
    call.registers = std::min(96 + 6 * D + (R > 1 ? 32 : 0), 255);  // about
    call.doubles = 2 * D + 16 + (of == Of::root ? 12 : 0) + (softmax ? 2 : of == Of::root ? 5 : 1) + R;
    call.instructions = record + loop + 6;
    return call;
  }
  call.registers = std::min(96 + 5 * D + (R > 1 ? 32 : 0), 255);  // about
  call.special = of == Of::root ? 2 : 1;
  const double of_value = softmax ? 3 + 1 : of == Of::root ? 6 : 1;  // with the sum of weights
  call.instructions = 2 * D + of_value + call.special + R + record + loop;
  return call;
}

template <bool softmax, class T>
double cost(const Kernel<Reduction>&, const Reduction& p, Plan& plan) {
  double seconds = 0;
  with_instance<softmax, T>(p, form_of(p)->of, [&]<int D, int R, Of of, bool>() {
    costs::Call call = facts<D, R, softmax, of, T>();
    call.units = p.batch * row_blocks_of<T>(p);
    call.state_bytes = sizeof(double) * static_cast<std::size_t>(state_numbers(softmax, rights_of(p)));
    const auto [cut, predicted] = costs::choose(p, call);
    plan.keep(cut);
    seconds = predicted;
  });
  return seconds;
}

inline Coordinates coordinates_of(const Operand& o, std::int64_t point, std::int64_t coordinate) {
  return {o.data, o.type, o.batches == 1 ? 0 : o.batch_stride, point, coordinate};
}

/// A call but for how its columns are cut.
template <class T = float>
CallOf<T> call_of(const Reduction& p, const Form& form) {
  constexpr bool in_bits = std::is_same_v<T, float>;
  CallOf<T> g{};
  g.x = coordinates_of(p.a, p.a.row_stride, p.a.column_stride);
  g.z = coordinates_of(p.b, p.b.column_stride, p.b.row_stride);
  g.dimensions = static_cast<std::int32_t>(p.k);
  g.factor = static_cast<T>(in_bits ? form.factor : form.natural);
  const bool may_scale = in_bits && form.of == Of::square && form.factor < 0 && p.reducer == Reducer::weighted_sum &&
                         !covers(p.require, Promise::batch_invariant);  // other rows of the block decide
  g.root = may_scale ? static_cast<T>(std::sqrt(-form.factor)) : 0;
  g.rate = static_cast<T>(form.rate);
  g.first = static_cast<T>(form.first);
  g.second = static_cast<T>(form.second);
  g.has_bias = form.bias != nullptr;
  if (form.bias) g.bias = *form.bias;
  g.bias_factor = form.bias_factor;
  g.added = form.added;
  g.rights = rights_of(p);
  if (g.rights > 0) g.v = detail::WeightReader::of(p.weights);
  g.outputs = detail::ReducedOutputs::of(p);
  g.m = p.m;
  g.n = p.n;
  g.row_blocks = static_cast<std::uint32_t>(row_blocks_of<T>(p));
  g.units = static_cast<std::uint32_t>(p.batch) * g.row_blocks;
  g.exclude_self = p.exclude_self;
  if (p.ranges) {
    g.parts = p.ranges->parts;
    g.intervals = p.ranges->part_columns;
  }
  return g;
}

template <bool softmax, class T>
void run(const Kernel<Reduction>& kernel, const Reduction& p, const Plan& plan, const Workspace& workspace) {
  const auto cut = plan.get<Cut>();
  const Form form = *form_of(p);
  CallOf<T> g = call_of<T>(p, form);
  g.slices = cut.slices;
  g.slice_tiles = cut.slice_tiles;
  g.states = static_cast<double*>(workspace.data);
  const cuda::Launches launches(p, kernel.info.name);
  void* list[] = {&g};
  with_instance<softmax, T>(p, form.of, [&]<int D, int R, Of of, bool some>() {
    launches(reinterpret_cast<const void*>(&add_points<D, R, softmax, of, T, some>),
             g.units * static_cast<unsigned>(g.slices), threads, 0, list);
  });
  if (g.slices > 1)
    launches(reinterpret_cast<const void*>(&join_points<softmax, T>), g.units * (rows_of_block<T> / threads), threads, 0,
             list);
}

template <class Element, bool softmax>
Kernel<Reduction> kernel_of() {
  using T = std::conditional_t<std::is_same_v<Element, double>, double, float>;
  constexpr double u = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
  Kernel<Reduction> k;
  k.info = detail::info_of<l2_squared<Element>>("cuda.points", softmax ? "softmax" : "weighted", "", bit(Space::cuda));
  k.info.threads = threads;
  k.info.min_compute_capability = 80;
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = detail::chain_accuracy<l2_squared<Element>>();
  k.info.relative_error = softmax ? 256 * u : 96 * u;  // of sums (docs/numerics.md), with exponents up to log N
  k.info.raw_launch = true;
  k.supports = supports<softmax, T>;
  k.cost = cost<softmax, T>;
  k.workspace = [](const Kernel<Reduction>&, const Reduction&, const Plan& plan) {
    return WorkspaceSize{.bytes = plan.get<Cut>().bytes};
  };
  k.run = run<softmax, T>;
  return k;
}

/// Adds the kernels of all types of points.
template <bool softmax>
void add_kernels(Registry<Reduction>& registry) {
  registry.add(kernel_of<float, softmax>());
  registry.add(kernel_of<half, softmax>());
  registry.add(kernel_of<bfloat16, softmax>());
}

}  // namespace rigel::backends::points
