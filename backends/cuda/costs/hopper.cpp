// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/costs/hopper.hpp>

#include <rigel/backends/cuda/fitted/sm_90.hpp>
#include <rigel/backends/cuda/tensor/info.hpp>
#include <rigel/card.hpp>
#include <rigel/detail/waves.hpp>

#include <algorithm>
#include <cmath>

namespace rigel::backends::hopper::costs {
namespace {

namespace fit = cuda::fitted::sm_90::hopper;

constexpr double step_bytes = 32,
                 products_of_step = 16;  // tensor cores take 32 bytes of each operand: 16 products of 16 bits

// Cycles that a multiprocessor takes to store an output. `from_registers`: 16-bit outputs leave straight from registers after a Layer, too.
// (In tiles of 192 sums a thread that gains nothing.)
double cycles_of_output(const Contraction& p, bool from_registers) {
  using tensor::Leave;
  const tensor::Leaving leaving = tensor::leaving_of(p);
  const bool fours = tensor::stores_fours(p.c);
  const bool short_way = from_registers && fours && p.c.size == 2 && !leaving.with_matrix;
  const double apart = fours ? 1 : fit::singles;  // groups of four are then stored one by one
  const double matrix = leaving.with_matrix ? fit::matrix : 0;
  switch (leaving.way) {
    case Leave::as_they_are: return p.accumulate ? fit::accumulated : fit::as_it_is;
    case Leave::after_layer: return matrix + (short_way ? fit::short_layer : fit::layer * apart);
    case Leave::after_activation: return matrix + (short_way ? fit::short_activation : fit::activation * apart);
    default:
      if (p.program && p.program->empty() && !p.accumulate) return p.a.size == 1 ? fit::unaligned_bytes : fit::unaligned;
      return fours ? fit::general_fours : fit::general;
  }
}

// The share of Card::warpgroup_products that a multiprocessor reaches.
double share_of_products(int area, int planes) {
  if (planes == 1) return area >= 128 * 192 ? fit::one_128x192 : area >= 128 * 128 ? fit::one_128x128 : fit::one;
  if (area >= 128 * 192) return fit::planes_128x192;
  if (area >= 128 * 128) return fit::planes_128x128;
  return planes == 3 ? fit::three_planes : fit::planes;
}

double steps_per_cycle(const Card& card, double share) { return share * card.warpgroup_products / products_of_step; }

double pass_seconds(const Contraction& p, double bytes, int planes) {
  return tensor::costs::pass_seconds(p.execution, bytes,
                                     planes > 1 ? tensor::costs::Pass::planes : tensor::costs::Pass::elements);
}

}  // namespace

// A launch; the time to fill the slabs; for each round of tiles, a multiprocessor's products and its store, or the longer of the two if
// warpgroups ping-pong; and the passes before. Long sums are taken to cost as much as promoted ones. An epilogue slows down the products
// that overlap it.
double product_seconds(const Contraction& p, const Tile& tile, const ProductCall& call) {
  const Card& card = card_of(p.execution);
  const double area = tile.m * tile.n, lost = tile.has_few_registers ? fit::slowed_few_registers : fit::slowed;
  const double share = share_of_products(tile.m * tile.n, call.planes) * (call.promotes ? fit::promoted : 1);
  const int clusters = p.execution.multiprocessors / tile.cluster;
  const double each = detail::Waves(call.tiles, clusters, 1).each;  // of a cluster
  const double steps = call.products * std::ceil(static_cast<double>(p.k) * call.element / step_bytes);
  const bool from_registers = tile.n <= 192 && !tile.has_few_registers;
  // In cycles.
  const double products = area * steps / steps_per_cycle(card, share), as_sums = area * fit::as_it_is,
               epilogue = area * cycles_of_output(p, from_registers) - as_sums;
  // Sums of floats leave few registers: warps wait for each group of four of C's numbers that they add to.
  const bool waits = p.accumulate && (call.planes > 1 || call.element == 4);
  const double adds = waits ? area * (area >= 128 * 128 ? fit::added_large : fit::added) : 0;
  const double store = as_sums + (tile.in_turn ? epilogue : fit::at_once * epilogue) + adds;
  const double slowed =
      std::max(each - 1, 0.) * lost * std::min(products, epilogue);  // of products that overlap an epilogue
  const double rounds = tile.in_turn ? each * std::max(products, store) + store + slowed : each * (products + store);
  return card.launch_seconds + (fit::prologue + fit::fill + rounds) / card.clock +
         pass_seconds(p, call.pass_bytes, call.planes);
}

// A launch up to the first slab; for each round of tiles, the slabs of a slice, as fast as a multiprocessor gets or multiplies them, the
// sums of other slices, which arrive more slowly, and an epilogue; and the passes before.
double once_seconds(const Contraction& p, const OnceTile& tile, std::int64_t tiles, double pass_bytes) {
  constexpr double slab_row = 128;     // bytes
  constexpr double steps_of_slab = 4;  // of 32 bytes
  const Card& card = card_of(p.execution);
  const double area = tile.m * tile.n;
  // Two warpgroups store at once; the fitted numbers include the store of outputs as they are.
  const double at_once = tile.groups > 1 ? fit::once_at_once : 1;
  const bool is_plain = p.program && p.program->empty() && !p.accumulate;
  const double one_by_one = is_plain && !tensor::stores_fours(p.c) ? fit::once_singles : 1;
  const double store = area * (one_by_one * cycles_of_output(p, true) - fit::as_it_is) * at_once;
  // A cluster of four must lie within one part of the card (a GPC), so a few clusters less are resident.
  const int fit_in = p.execution.multiprocessors / tile.cluster, lost = tile.cluster > 2 ? fit_in / 11 : 0;
  const double rounds = detail::Waves(static_cast<double>(tiles), fit_in - lost, 1).each;
  const std::int64_t slabs = (p.k + tile.depth - 1) / tile.depth, of_part = (slabs + tile.parts - 1) / tile.parts;
  const double slab_bytes = tile.tiles > 1 ? fit::once_slab_bytes_of_tiles : fit::once_slab_bytes;
  const double slab =
      std::max((tile.m + tile.n) * slab_row / slab_bytes, area * steps_of_slab / steps_per_cycle(card, fit::once_steps));
  const double sums = (tile.parts - 1) * static_cast<double>(tile.m * tile.columns) * sizeof(float) / fit::once_sum_bytes;
  const double each = static_cast<double>(of_part) * slab + sums + store / tile.parts;
  const double cycles = fit::once_prologue + rounds * each + (rounds - 1) * fit::once_again;
  return card.launch_seconds + cycles / card.clock + pass_seconds(p, pass_bytes, 1);
}

}  // namespace rigel::backends::hopper::costs
