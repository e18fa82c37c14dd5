// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the facts and the predicted times of kernels on tensor cores share.
#pragma once

#include <rigel/detail/kernel.hpp>
#include <rigel/epilogue_layer.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rigel::backends::tensor {

/// Whether a persistent kernel with so many blocks, or clusters, starts before the launch before it is complete. That saves a
/// microsecond or two, but calls with many tiles then take one to five per cent longer.
constexpr bool starts_early(unsigned tiles, unsigned blocks) { return tiles / 8 <= blocks; }

/// Facts that kernels on tensor cores share. Outputs of the transposed problem have the same bits only if each product of two elements
/// is one product on tensor cores: else the order of its parts tells A from B, and so does the centre of distances. `variant`: what
/// their names call it, if not its precision; `schedule`: what else tells kernels of a variant apart, besides the tile.
template <class S, class Shape>
KernelInfo info_of_tile(std::string_view family, Precision precision, int depth, std::string variant = {},
                        const std::string& schedule = {}) {
  if (variant.empty() && precision != Precision::accumulator) variant = name(precision);
  const std::string bit_class = std::string(family) + (variant.empty() ? "" : '.' + variant);
  if (!schedule.empty()) variant += (variant.empty() ? "" : ".") + schedule;
  KernelInfo info = detail::info_of<S>(
      family, variant, std::to_string(Shape::m) + 'x' + std::to_string(Shape::n) + 'x' + std::to_string(depth),
      bit(Space::cuda));
  info.tile = {Shape::m, Shape::n, depth};
  info.stages = Shape::stages;
  info.threads = Shape::threads;
  info.timed_on = 90;
  info.min_compute_capability = 80;
  info.raw_launch = true;
  info.precision = precision;
  info.bit_class = bit_class;
  static_assert(is_commutative<S>);
  info.transposes = Transposes::with_other_bits;
  return info;
}

/// Whether C takes outputs in groups of four neighbours (doubles: in rows). Otherwise they are stored one by one.
inline bool stores_fours(const Operand& c) {
  if (c.size == sizeof(double)) return c.column_stride == 1;
  const auto fours = [](std::int64_t stride) { return stride % 4 == 0; };
  return c.column_stride == 1 && fours(c.row_stride) && fours(c.batch_stride) && fours(c.columns) &&
         reinterpret_cast<std::uintptr_t>(c.data) % (4 * c.size) == 0;
}

/// The Layer after which outputs are stored, if it does something: tensor::stored_after_layer() then takes them.
inline std::optional<epilogue::Layer> layer_of(const Contraction& p) {
  if (!p.program || p.program->empty() || p.accumulate || p.c.column_stride != 1 || p.c.columns < 4 ||
      (p.c.type != p.element && p.c.type != p.accumulator))
    return std::nullopt;
  const auto of = [&](const epilogue::Program& program) { return epilogue::Layer::of(program, p.of_one_row); };
  const bool is_part = p.first.batch != 0 || p.first.row != 0 || p.first.column != 0;
  auto layer = is_part ? of(p.program->of_part(p.first.batch, p.first.row, p.first.column)) : of(*p.program);
  // A nominal problem stands for any strides: with a matrix it has none.
  if (layer && layer->has_matrix() && (p.of_one_row || !stores_fours(p.c))) layer.reset();
  return layer;
}

inline bool has_short_elements(const Product& p) { return p.element == Scalar::f16 || p.element == Scalar::bf16; }

/// How outputs leave for C: in groups of four as they are; after a Layer without or with an exponential, perhaps with a matrix; or by code
/// for any epilogue.
enum class Leave : std::uint8_t { as_they_are, after_layer, after_activation, in_general };
struct Leaving {
  Leave way = Leave::in_general;
  bool with_matrix = false;
};
inline Leaving leaving_of(const Contraction& p) {
  if (p.program && p.program->empty() && stores_fours(p.c) && (!p.accumulate || p.c.type == p.accumulator))
    return {Leave::as_they_are};
  const auto layer = layer_of(p);
  if (!layer || (layer->has_matrix() && !has_short_elements(p))) return {};
  const bool is_short = layer->activation == epilogue::Kind::scale || layer->activation == epilogue::Kind::relu;
  return {is_short ? Leave::after_layer : Leave::after_activation, layer->has_matrix()};
}

}  // namespace rigel::backends::tensor
