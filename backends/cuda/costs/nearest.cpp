// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/costs/nearest.hpp>

#include <rigel/card.hpp>

#include <algorithm>
#include <cmath>

namespace rigel::backends::mma::costs {

// The launches; both operands read once; products, and one minimum for a bound and for a minimum three of a group with its position, which
// overlap in part; distances of the nearest group, or of the columns up to the limit, by subtraction; and the rows that are searched
// again, of random points a hundredth. The k smallest take two sweeps and list no row of random points.
double nearest_seconds(const Reduction& p, const NearestCall& call) {
  constexpr double launches_after_first = 5;
  constexpr double share = 0.9,
                   overlap = 0.5;  // of the rates; of the shorter of products and comparisons that the other hides
  constexpr double alone = 0.6;    // the share of a multiprocessor that one block reaches
  constexpr double examined = 1.2, again = 0.01, again_share = 0.4;
  const Card& card = card_of(p.execution);
  const auto number = [](std::int64_t i) { return static_cast<double>(i); };
  const double m = number(p.m), n = number(p.n), k = number(p.k), size = number(p.a.size),
               sms = std::max(p.execution.multiprocessors, 1);
  const bool many = call.results > 0;
  const double sweeps = many ? 2 : 1, of_group = many ? 1 : 4,
               examined_columns = many ? 1.2 * call.results + 2 : examined * call.group;
  const double columns = std::ceil(n / 32) * 32, cycles_of_sm = share * card.clock;
  const double blocks_of_sm = std::ceil(std::ceil(m / call.rows) / sms);
  const double products = columns * call.rows * call.numbers / (card.tensor_products * cycles_of_sm),
               comparisons = columns * call.rows * (1 + of_group / call.group) / (card.integer_lanes * cycles_of_sm);
  const double of_block = std::max(products, comparisons) + (1 - overlap) * std::min(products, comparisons);
  const double search = sweeps * of_block * (blocks_of_sm <= 1 ? 1 / alone : blocks_of_sm);
  const double examine = m * (examined_columns + 1) * k * size / card.l2_bytes_per_second;
  const double listed = (many ? 0 : again) * m * n * k * 2 / (again_share * card.float_lanes * card.clock * sms);
  return card.launch_seconds + launches_after_first * card.next_launch_seconds +
         (m + 3 * n) * k * size / card.memory_bytes_per_second + search + examine + listed;
}

// The launches; X read once, or for each block of rows all of Z from the L2 cache, or what blocks do; of a block of rows whichever takes
// longest, since they overlap: products, comparisons (two minima for a bound, four operations for a group), or the distance of each row by
// subtraction in three warps, which copy 32 rows and then add; and the rows that are searched again.
double least_by_warpgroups_seconds(const Reduction& p, const WarpgroupCall& call) {
  constexpr double launches_after_first = 4;
  constexpr double share = 0.57, of_comparisons = 0.45;  // of the rates
  constexpr double clocks_of_chain = 14, clocks_of_rows = 2500, warps = 3, again = 0.0004, again_share = 0.4;
  const Card& card = card_of(p.execution);
  const auto number = [](std::int64_t i) { return static_cast<double>(i); };
  const double m = number(p.m), n = number(p.n), k = number(p.k), size = number(p.a.size),
               sms = std::max(p.execution.multiprocessors, 1);
  const double columns = std::ceil(n / call.columns) * call.columns, blocks = std::ceil(m / call.rows);
  const double bounds = columns * call.rows;
  const double products = bounds * call.numbers / (share * card.warpgroup_products),
               comparisons = bounds * (2 + 4. / call.group) / (of_comparisons * card.integer_lanes),
               distances = std::ceil(call.rows / 32. / warps) * (clocks_of_rows + clocks_of_chain * k);
  const double search = std::ceil(blocks / sms) * std::max({products, comparisons, distances}) / card.clock,
               l2 = blocks * columns * k * size / card.l2_bytes_per_second,
               memory = m * k * size / card.memory_bytes_per_second;
  const double listed = again * m * n * k * 2 / (again_share * card.float_lanes * card.clock * sms);
  return card.launch_seconds + launches_after_first * card.next_launch_seconds + std::max({search, l2, memory}) + listed;
}

}  // namespace rigel::backends::mma::costs
