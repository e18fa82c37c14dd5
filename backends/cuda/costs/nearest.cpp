// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/costs/nearest.hpp>

#include <rigel/card.hpp>

#include <algorithm>
#include <cmath>

namespace rigel::backends::mma::costs {

namespace {

double number(std::int64_t i) { return static_cast<double>(i); }
double multiprocessors(const Reduction& p) { return std::max(p.execution.multiprocessors, 1); }

// Of the rates of a multiprocessor; of the shorter of products and comparisons that the other hides.
constexpr double share = 0.9, overlap = 0.5;

// A block's rows and all columns on one multiprocessor: products, and one minimum for a bound and `of_group` instructions for a group,
// which overlap in part.
double seconds_of_block(const Reduction& p, const NearestCall& call, double of_group) {
  const Card& card = card_of(p.execution);
  const double columns = std::ceil(number(p.n) / 32) * 32, cycles_of_sm = share * card.clock;
  const double products = columns * call.rows * call.numbers / (card.tensor_products * cycles_of_sm),
               comparisons = columns * call.rows * (1 + of_group / call.group) / (card.integer_lanes * cycles_of_sm);
  return std::max(products, comparisons) + (1 - overlap) * std::min(products, comparisons);
}

}  // namespace

// The launches; both operands read once; the sweep; distances of the nearest group by subtraction; and the rows that are searched again, of
// random points a hundredth.
double nearest_seconds(const Reduction& p, const NearestCall& call) {
  constexpr double launches_after_first = 5;
  constexpr double alone = 0.6;  // the share of a multiprocessor that one block reaches
  constexpr double examined = 1.2, again = 0.01, again_share = 0.4;
  const Card& card = card_of(p.execution);
  const double m = number(p.m), n = number(p.n), k = number(p.k), size = static_cast<double>(p.a.size),
               sms = multiprocessors(p);
  const double blocks_of_sm = std::ceil(std::ceil(m / call.rows) / sms);
  const double search = seconds_of_block(p, call, 4) * (blocks_of_sm <= 1 ? 1 / alone : blocks_of_sm);
  const double examine = m * (examined * call.group + 1) * k * size / card.l2_bytes_per_second;
  const double listed = again * m * n * k * 2 / (again_share * card.float_lanes * card.clock * sms);
  return card.launch_seconds + launches_after_first * card.next_launch_seconds +
         (m + 3 * n) * k * size / card.memory_bytes_per_second + search + examine + listed;
}

// The launches; a pass over all columns, and one for each strip that is prepared, of which the one in the middle of two sweeps is prepared
// once; the sweeps, whose slices fill all multiprocessors, but at most 32 times those of the rows' blocks; what is listed, of random points 1.4
// times k; parts, their k-th least and lists' order; distances of what is listed, and their order. No row of random points is searched again.
double nearest_many_seconds(const Reduction& p, const NearestManyCall& call) {
  constexpr double of_results = 1.4, most_slices = 32;
  constexpr double pass_share = 0.3, gathered_share = 0.5;  // of the bandwidths
  constexpr double lists_share = 0.9;                       // of the first sweep's rate
  // Cycles of a multiprocessor for a listed column, more for each of a chunk's groups, a row, a part; of a lane for two keys.
  constexpr double of_column = 14, of_group = 11, of_row = 320, of_part = 1.2, of_comparison = 1.2;
  const Card& card = card_of(p.execution);
  const double m = number(p.m), n = number(p.n), k = number(p.k), size = static_cast<double>(p.a.size),
               sms = multiprocessors(p), cycles = card.clock * sms;
  const double listed = call.strips > 0 ? of_results * call.results : n;
  const double sort = m * (listed * k * size / (gathered_share * card.l2_bytes_per_second) +
                           (of_row + of_comparison * listed * std::ceil(listed / 32) * 32 / card.integer_lanes) / cycles);
  if (call.strips == 0) return card.launch_seconds + call.pieces * card.next_launch_seconds + sort;
  const double prepared = 1 + 2 * (call.strips - 1) * call.pieces,
               launches = 1 + prepared + call.pieces * (2 * call.strips + 4);
  const double passes = (n * k * size * (1 + prepared / call.strips) + n * call.numbers * 2 * prepared / call.strips) /
                        (pass_share * card.memory_bytes_per_second);
  const double blocks = std::max(std::ceil(m / call.rows), 1.), busy = std::min(sms, blocks * most_slices);
  const double search = seconds_of_block(p, call, 1) * blocks / busy * (1 + 1 / lists_share);
  const double lists = m * ((of_column + of_group * 8 / call.group) * listed + of_row + of_part * call.words) / cycles;
  return card.launch_seconds + launches * card.next_launch_seconds + m * k * size / card.memory_bytes_per_second + passes +
         search + lists + sort;
}

// The launches; X read once, or for each block of rows all of Z from the L2 cache, or what blocks do; of a block of rows products or comparisons
// (two minima for a bound, four operations for a group), whichever takes longer, and the distance of each row by subtraction in two warps,
// which copy columns of 32 rows while they add: they overlap in part, so the norm of both; and the rows that are searched again.
double least_by_warpgroups_seconds(const Reduction& p, const WarpgroupCall& call) {
  constexpr double launches_after_first = 4;
  constexpr double of_products = 0.57, of_comparisons = 0.45;  // of the rates
  constexpr double clocks_of_chain = 40.5, clocks_of_rows = 200, warps = 2, again = 0.0004, again_share = 0.4;
  const Card& card = card_of(p.execution);
  const double m = number(p.m), n = number(p.n), k = number(p.k), size = number(p.a.size), sms = multiprocessors(p);
  const double columns = std::ceil(n / call.columns) * call.columns, blocks = std::ceil(m / call.rows);
  const double bounds = columns * call.rows;
  const double products = bounds * call.numbers / (of_products * card.warpgroup_products),
               comparisons = bounds * (2 + 4. / call.group) / (of_comparisons * card.integer_lanes),
               distances = std::ceil(call.rows / 32. / warps) * (clocks_of_rows + clocks_of_chain * k);
  const double search = std::ceil(blocks / sms) * std::hypot(std::max(products, comparisons), distances) / card.clock,
               l2 = blocks * columns * k * size / card.l2_bytes_per_second,
               memory = m * k * size / card.memory_bytes_per_second;
  const double listed = again * m * n * k * 2 / (again_share * card.float_lanes * card.clock * sms);
  return card.launch_seconds + launches_after_first * card.next_launch_seconds + std::max({search, l2, memory}) + listed;
}

}  // namespace rigel::backends::mma::costs
