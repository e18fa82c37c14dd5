// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the facts and the predicted times of kernels on tensor cores share.
#pragma once

#include <rigel/detail/kernel.hpp>
#include <rigel/epilogue_layer.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace rigel::backends::tensor {

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

/// Whether outputs are stored after a Layer that does something: tensor::stored_after_layer() then takes them.
inline bool leaves_after_layer(const Contraction& p) {
  return p.program && !p.program->empty() && !p.accumulate && p.c.column_stride == 1 && p.c.columns >= 4 &&
         (p.c.type == p.element || p.c.type == p.accumulator) && epilogue::Layer::of(*p.program, p.of_one_row);
}

/// How outputs leave for C: in groups of four as they are; after a Layer without or with an exponential; or by code for any epilogue.
enum class Leave : std::uint8_t { as_they_are, after_layer, after_activation, in_general };
inline Leave leave_of(const Contraction& p) {
  if (!p.program) return Leave::in_general;
  if (p.program->empty())
    return stores_fours(p.c) && (!p.accumulate || p.c.type == p.accumulator) ? Leave::as_they_are : Leave::in_general;
  if (!leaves_after_layer(p)) return Leave::in_general;
  const epilogue::Kind last = (*p.program)[p.program->size() - 1].kind;
  const bool is_short = last == epilogue::Kind::scale || last == epilogue::Kind::add || last == epilogue::Kind::relu;
  return is_short ? Leave::after_layer : Leave::after_activation;
}

}  // namespace rigel::backends::tensor
