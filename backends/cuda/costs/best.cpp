// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/costs/best.hpp>

#include <rigel/card.hpp>

#include <algorithm>
#include <cmath>

namespace rigel::backends::best::costs {

// Blocks one by one on each multiprocessor: their sums, of which an addition each for the difference and the sum, at the rate that operands
// from registers allow; then a minimum and a comparison of each sum, and what enters lists, if scores come in random order.
double seconds(const Reduction& p, const Call& call) {
  constexpr double share = 0.86, block_cycles = 20000, tile_cycles = 300;
  constexpr double entry = 40, merge = 30;  // instructions of a warp for an entry, and of its share in a merge
  const Card& card = card_of(p.execution);
  const auto number = [](std::int64_t i) { return static_cast<double>(i); };
  const double sms = std::max(p.execution.multiprocessors, 1), k = number(p.count), n = number(p.n);
  const double rounds = std::ceil(std::ceil(number(p.m) / call.rows) / sms), tiles = std::ceil(n / call.columns),
               numbers = std::ceil(number(p.k) / call.depth) * call.depth;
  const double scores = number(call.rows) * call.columns;
  const double of_tile = scores * numbers * 2 / (share * card.float_lanes) + scores * 2 / card.integer_lanes + tile_cycles;
  const double entries = call.rows * k * (1 + std::log(std::max(n / k, 1.)));
  return card.launch_seconds +
         rounds * (block_cycles + tiles * of_tile + entries * (entry + merge) / card.instructions) / card.clock;
}

}  // namespace rigel::backends::best::costs
