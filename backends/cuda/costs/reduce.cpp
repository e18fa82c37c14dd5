// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/costs/reduce.hpp>

#include <rigel/card.hpp>
#include <rigel/detail/reduction.hpp>
#include <rigel/detail/waves.hpp>

#include <cmath>

namespace rigel::backends::reduce::costs {
namespace {

double number(std::int64_t x) { return static_cast<double>(x); }

// Instructions of a score after its sum: those of the exchange through shared memory, and of its reducer. Counted in the code; of
// log_sum_exp an exponential in double.
constexpr double exchange = 4, of_extremum = 2, of_best = 3, of_count = 4, of_sum = 4, of_exponential = 24;
// Instructions of a warp that merge one gathered entry with a list: of an entry, and for each 32 results.
constexpr double merge_entry = 24, merge_results = 8;
// Of the speed that its blocks have together, what one alone has.
constexpr double alone = 0.6;
// Cycles of a slice's beginning and end, and of a row's state in the join.
constexpr double slice_cycles = 3000, join_cycles = 20;

// Cycles of a multiprocessor for what follows a tile's sums.
double outlet_cycles(const Reduction& p, const Card& card, const simt::costs::Tile& t, bool doubles) {
  const double scores = number(t.m) * t.n, lanes = doubles ? card.double_lanes : card.float_lanes;
  switch (p.reducer) {
    case Reducer::minimum:
    case Reducer::maximum: return scores * (exchange + of_extremum) / lanes;
    case Reducer::smallest:
    case Reducer::largest: return scores * (exchange + of_best) / lanes;
    case Reducer::sum: return scores * (exchange / lanes + of_sum / card.double_lanes);
    case Reducer::log_sum_exp: return scores * (exchange / lanes + of_exponential / card.double_lanes);
    default: return scores * (exchange + of_count) / lanes;
  }
}

// Instructions of warps for the entries that enter the list of a row, if scores come in random order: k, and k/n at the n-th score after
// them.
double merge_instructions(const Reduction& p, double columns) {
  if (!detail::keeps_many(p) || columns == 0) return 0;
  const double k = number(p.count), entries = k * (1 + std::log(std::max(columns / k, 1.)));
  return entries * (merge_entry + merge_results * std::ceil(k / 32));
}
// How many warps' instructions a multiprocessor issues at a time.
constexpr double schedulers = 4;

// How many units, of some bytes each, go into one launch: what the limit of the workspace takes and grids have.
std::uint32_t units_of_launch(const Reduction& p, std::uint32_t units, std::size_t unit_bytes, int blocks) {
  auto most = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() / blocks);
  if (unit_bytes > 0) most = std::min(most, detail::workspace_limit(p) / unit_bytes);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(most, 1, std::max(units, 1u)));
}

// Of few rows: of the bandwidths of memory and of the L2 cache, and of the instructions that a multiprocessor issues, what blocks reach.
// Instructions of a step, and of a read of operands from shared memory.
constexpr double few_memory = 0.8, few_l2 = 0.6, few_issued = 0.6, few_step = 2, few_read = 1;
// Cycles of a block's begin and end, with some merges.
constexpr double few_cycles = 12000;

}  // namespace

std::pair<Cut, double> choose(const Reduction& p, const simt::costs::Semiring& s, const FewCall& call) {
  const Card& card = card_of(p.execution);
  const auto multiprocessors = static_cast<double>(std::max(p.execution.multiprocessors, 1));
  const double resident = std::clamp(std::floor(card.shared_memory / (call.shared_bytes + 1024.)), 1., 8.);
  const auto tiles = static_cast<int>((p.n + call.columns - 1) / call.columns);
  const std::size_t slice_bytes = call.state_bytes * static_cast<std::size_t>(call.state_rows);  // of a unit
  Cut cut;
  cut.units = call.units;
  // Slices that fill the card, if the workspace takes those of all units.
  const double units = std::max(call.units, 1u),
               taken = static_cast<double>(detail::workspace_limit(p)) /
                       (units * static_cast<double>(std::max<std::size_t>(slice_bytes, 1)));
  const auto slices = static_cast<int>(
      std::clamp(std::floor(std::min(resident * multiprocessors / units, taken)), 1., std::max(tiles, 1) * 1.));
  cut.slice_tiles = (tiles + slices - 1) / slices;
  cut.slices = cut.slice_tiles == 0 ? 1 : (tiles + cut.slice_tiles - 1) / cut.slice_tiles;
  cut.unit_bytes = cut.slices > 1 ? slice_bytes * static_cast<std::size_t>(cut.slices) : 0;
  cut.launch_units =
      units_of_launch(p, call.units, cut.unit_bytes, cut.slices == 1 ? 1 : std::max(cut.slices, call.join_blocks));
  const double columns = number(call.units) * number(p.n), steps = columns * number(p.k), bytes = steps * s.element,
               b_bytes = bytes / std::max(call.units, 1u);
  const double lanes = s.of_doubles ? card.double_lanes : card.float_lanes;
  const double reading = b_bytes < card.l2_bytes ? b_bytes / (few_memory * card.memory_bytes_per_second) +
                                                       bytes / (few_l2 * card.l2_bytes_per_second)
                                                 : bytes / (few_memory * card.memory_bytes_per_second);
  const double computing = steps *
                           (few_step * call.rows / lanes + few_read * (call.rows + 1) * s.operand / 16 / card.float_lanes) /
                           (few_issued * multiprocessors * card.clock);
  const double launches = std::ceil(units / cut.launch_units), blocks = number(cut.slices) * cut.launch_units,
               busy = std::min(blocks / multiprocessors, 1.);
  const double rounds = launches * std::ceil(blocks / (resident * multiprocessors));
  // Lists that are merged on one multiprocessor, each by a warp.
  const double lists = std::ceil(launches * blocks / multiprocessors) * call.rows;
  const double merges = lists * merge_instructions(p, number(cut.slice_tiles) * call.columns) / std::min(lists, schedulers);
  const double later = (launches - 1) * card.next_launch_seconds;
  const double join = cut.slices == 1 ? 0 : launches * (card.next_launch_seconds + few_cycles / card.clock);
  return {cut, card.launch_seconds + later + std::max(reading, computing) / busy +
                   (rounds * few_cycles + merges) / card.clock + join};
}

std::pair<Cut, double> choose(const Reduction& p, const simt::costs::Semiring& s, const simt::costs::Tile& t,
                              const Call& call) {
  const Card& card = card_of(p.execution);
  const double multiprocessors = std::max(p.execution.multiprocessors, 1);
  const double resident = std::clamp(std::floor(card.shared_memory / (call.shared_bytes + 1024.)), 1., number(t.blocks));
  // A tile's cycles, if a multiprocessor is full of blocks: those of many tiles without a store.
  simt::costs::TileCall many = call.scores;
  many.tiles = static_cast<std::int64_t>(multiprocessors * t.blocks) * 64;
  const double tile_cycles =
      (simt::costs::score_seconds(p, s, t, many) - card.launch_seconds) * card.clock / (64. * t.blocks) +
      outlet_cycles(p, card, t, s.of_doubles);
  const bool has_one_order = p.reducer == Reducer::sum || p.reducer == Reducer::log_sum_exp;

  Cut best;
  double least = std::numeric_limits<double>::infinity();
  const int most = has_one_order ? 1 : std::min(call.column_tiles, 1024);
  for (int slices = 1; slices <= std::max(most, 1); slices += 1 + slices / 8) {
    Cut cut;
    cut.units = call.units;
    cut.slice_tiles = (call.column_tiles + slices - 1) / slices;
    cut.slices = cut.slice_tiles == 0 ? 1 : (call.column_tiles + cut.slice_tiles - 1) / cut.slice_tiles;
    if (cut.slices != slices) continue;
    cut.unit_bytes = slices > 1 || call.always_has_state ? call.state_bytes * static_cast<std::size_t>(t.m * slices) : 0;
    if (slices > 1 && cut.unit_bytes > detail::workspace_limit(p)) break;
    cut.launch_units = units_of_launch(p, call.units, cut.unit_bytes, slices == 1 ? 1 : std::max(slices, call.join_blocks));
    // Launches of whole rounds of all multiprocessors.
    const auto round = std::max(static_cast<std::uint32_t>(std::ceil(resident * multiprocessors / slices)), 1u);
    if (cut.launch_units < call.units && cut.launch_units > round) cut.launch_units = cut.launch_units / round * round;
    const double launches = std::ceil(number(call.units) / cut.launch_units);
    const detail::Waves waves(number(cut.launch_units) * slices, multiprocessors, resident);
    const double of_block = cut.slice_tiles * tile_cycles + slice_cycles +
                            t.m * merge_instructions(p, number(cut.slice_tiles) * t.n) / schedulers;
    const double blocks = waves.at_full_speed([&](double tiles) { return std::min(alone + (1 - alone) * (tiles - 1), 1.); });
    const double rows = number(cut.launch_units) * t.m;
    const double join =
        slices == 1 ? 0
                    : card.next_launch_seconds * card.clock +
                          rows * slices * join_cycles * number(detail::keeps_many(p) ? p.count : 1) / (32 * multiprocessors);
    const double seconds = card.launch_seconds + launches * (blocks * of_block + join) / card.clock;
    if (seconds < least) {
      least = seconds;
      best = cut;
    }
  }
  return {best, least};
}

}  // namespace rigel::backends::reduce::costs
