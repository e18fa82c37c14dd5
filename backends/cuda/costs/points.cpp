// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/costs/points.hpp>

#include <rigel/card.hpp>
#include <rigel/detail/reduction.hpp>
#include <rigel/detail/waves.hpp>

#include <algorithm>
#include <cmath>

namespace rigel::backends::points::costs {
namespace {

// Of the issue rate, what loops reach whose operands collide in register banks.
constexpr double share = 0.88;
// Warps of a scheduler with which it is busy all the time.
constexpr double busy_warps = 3;
// Cycles of a block's begin and end.
constexpr double block_cycles = 3000;

}  // namespace

std::pair<Cut, double> choose(const Reduction& p, const Call& call) {
  const Card& card = card_of(p.execution);
  const double multiprocessors = std::max(p.execution.multiprocessors, 1), warps = call.threads / 32.,
               schedulers = card.instructions;
  const double resident =
      std::clamp(std::floor(card.registers / (32. * warps * call.registers)), 1., card.threads / (32. * warps));
  const double of_score = std::max({(call.instructions + call.doubles) / share / schedulers,
                                    call.special * 32 / card.special_lanes, call.doubles * 32 / card.double_lanes / share});
  // With ranges, blocks have tiles of at most so many columns, and this share of them on average.
  const std::int64_t columns = p.ranges ? p.ranges->most_columns : p.n;
  const double filled = p.ranges && columns > 0
                            ? static_cast<double>(p.ranges->part_pairs) /
                                  (static_cast<double>(p.ranges->part_count) * static_cast<double>(columns))
                            : 1;
  const double tile_cycles = filled * of_score * call.rows_of_block * call.tile_columns / 32;
  const auto tiles = static_cast<std::int32_t>((columns + call.tile_columns - 1) / call.tile_columns);
  const std::size_t slice_bytes =
      static_cast<std::size_t>(call.units) * static_cast<std::size_t>(call.rows_of_block) * call.state_bytes;
  // Slices that depend on M would give a row other bits in another call.
  const std::int32_t most = covers(p.require, Promise::batch_invariant) ? 1 : std::clamp(tiles, 1, 1024);
  const auto busy = [&](double blocks) { return std::min(blocks * warps / (schedulers * busy_warps), 1.); };

  Cut best;
  double least = std::numeric_limits<double>::infinity();
  for (std::int32_t slices = 1; slices <= most; slices += 1 + slices / 8) {
    Cut cut;
    cut.slice_tiles = (tiles + slices - 1) / slices;
    cut.slices = cut.slice_tiles == 0 ? 1 : (tiles + cut.slice_tiles - 1) / cut.slice_tiles;
    if (cut.slices != slices) continue;
    if (slices > 1) cut.bytes = slice_bytes * static_cast<std::size_t>(slices);
    if (cut.bytes > detail::workspace_limit(p)) break;
    const double blocks = static_cast<double>(call.units) * slices;
    if (blocks > std::numeric_limits<std::int32_t>::max()) break;
    const detail::Waves waves(blocks, multiprocessors, resident);
    const double join =
        slices == 1 ? 0 : card.next_launch_seconds + 2 * static_cast<double>(cut.bytes) / card.memory_bytes_per_second;
    const double seconds =
        card.launch_seconds + join +
        (waves.at_full_speed(busy) * cut.slice_tiles * tile_cycles + waves.rounds() * block_cycles) / card.clock;
    if (seconds < least) {
      least = seconds;
      best = cut;
    }
  }
  return {best, least};
}

// Products of halves, and of what follows them half overlapped.
double expanded_seconds(const Reduction& p, const ExpandedCall& call) {
  constexpr double rate = 0.62, overlapped = 0.5, alone = 0.5;
  const Card& card = card_of(p.execution);
  const double scores = static_cast<double>(call.rows) * call.columns,
               multiprocessors = std::max(p.execution.multiprocessors, 1);
  const double of_products = scores * call.numbers * call.products / (rate * card.tensor_products),
               of_scores =
                   std::max(scores * call.instructions / (32 * share * card.instructions), scores / card.special_lanes);
  const double tile_cycles = std::max(of_products, of_scores) + (1 - overlapped) * std::min(of_products, of_scores);
  const double blocks = std::ceil(static_cast<double>(p.m) / call.rows) * call.slices;
  const detail::Waves waves(blocks, multiprocessors, call.resident);
  const double at_full_speed = waves.at_full_speed(
      [&](double tiles) { return std::min(alone + (1 - alone) * (tiles - 1) / (call.resident - 1), 1.); });
  const double prepared = 3. * static_cast<double>(p.n) * call.numbers * 4 / card.memory_bytes_per_second;
  return card.launch_seconds + (1 + 2. * call.parts) * card.next_launch_seconds + prepared +
         call.parts * at_full_speed * (call.slice_tiles * tile_cycles + block_cycles) / card.clock;
}

}  // namespace rigel::backends::points::costs
