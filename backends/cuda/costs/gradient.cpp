// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/costs/gradient.hpp>

#include <rigel/backends/cuda/fitted/sm_90.hpp>
#include <rigel/card.hpp>

#include <algorithm>
#include <cmath>

namespace rigel::backends::gradient::costs {
namespace {

namespace fit = cuda::fitted::sm_90::gradient;

double on_each(const Execution& e, double blocks) { return blocks / std::max(e.multiprocessors, 1); }

}  // namespace

// Rounds of blocks, each of which issues so many instructions a k: an accumulate() for each o and a multiply() for all of them, and what
// reads the slab. By counts of instructions, and the share of them that an H200 issues.
double tiles_seconds(const Execution& execution, const Cut& cut, double blocks, double length, double slices_bytes) {
  constexpr double of_slab = 8, begin = 40;  // instructions of a thread for a k; of a block, in k
  const Card& card = card_of(execution);
  const double multiply = !cut.takes_powers ? 5 : cut.wide ? 60 : 16;  // instructions
  const double lanes = cut.wide ? card.double_lanes : card.float_lanes, resident = cut.blocks;
  const double of_k = cut.rows * cut.columns * (cut.outputs + multiply) + of_slab;
  const double cycles = (length + begin) * of_k * cut.threads / lanes / fit::issued;
  const double each = on_each(execution, blocks);
  // A block alone on its multiprocessor waits for itself: it takes three quarters of the time of three.
  const double rounds =
      each <= 1 ? fit::alone * resident : std::max(each, std::ceil(each / resident) * resident * fit::rounds);
  const double join = slices_bytes > 0 ? card.next_launch_seconds + fit::join / card.clock +
                                             slices_bytes / (fit::slices * card.memory_bytes_per_second)
                                       : 0;
  return card.launch_seconds + fit::prologue / card.clock + rounds * cycles / (fit::clock * card.clock) + join;
}

// Rounds of blocks, as measured on an H200.
double products_seconds(const Execution& execution, Weights weights, bool has_two_tiles, int resident, double blocks,
                        double slabs) {
  const Card& card = card_of(execution);
  const double of_slab = weights == Weights::powers  ? (has_two_tiles ? fit::slab_of_powers_2 : fit::slab_of_powers)
                         : weights == Weights::signs ? (has_two_tiles ? fit::slab_of_signs_2 : fit::slab_of_signs)
                         : has_two_tiles             ? fit::slab_of_distances_2
                                                     : fit::slab_of_distances;
  const double each = on_each(execution, blocks);
  // A block alone on its multiprocessor takes half of the time of three.
  const double rounds = each <= 1 ? fit::products_alone * resident : std::ceil(each / resident) * resident;
  return card.launch_seconds + fit::prologue / card.clock +
         rounds * (slabs * of_slab + fit::begin_and_store) / (fit::products_clock * card.clock);
}

double pass_seconds(const Execution& execution, double launches, double bytes) {
  const Card& card = card_of(execution);
  return launches * (card.next_launch_seconds + fit::points_prologue / card.clock) +
         bytes / (fit::points * card.memory_bytes_per_second);
}

}  // namespace rigel::backends::gradient::costs
