// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/costs/mma.hpp>

#include <rigel/backends/cuda/fitted/sm_90.hpp>
#include <rigel/backends/cuda/tensor/info.hpp>
#include <rigel/card.hpp>
#include <rigel/detail/waves.hpp>

#include <algorithm>
#include <cmath>

namespace rigel::backends::mma::costs {
namespace {

namespace fit = cuda::fitted::sm_90;

constexpr double launches_after_first_of_distances = 3, launches_after_first_of_log_sums = 2;

detail::Waves waves_of(const Contraction& p, const Tile& tile, double tiles) {
  return {tiles, static_cast<double>(p.execution.multiprocessors), static_cast<double>(tile.blocks)};
}

// The share of its speed that a multiprocessor reaches with so many tiles: it waits for operands if it has few warps.
double busy(const Tile& tile, double tiles) {
  return std::min(1.0, fit::mma::first_share + fit::mma::share_of_warp * tiles * tile.warps);
}

// Cycles that a multiprocessor takes to store an output.
double cycles_of_output(const Contraction& p) {
  namespace f = fit::mma;
  using tensor::Leave;
  const auto [leave, with_matrix] = tensor::leaving_of(p);
  const bool fours = tensor::stores_fours(p.c);
  if (leave == Leave::as_they_are) {
    if (p.c.size < sizeof(double)) return f::as_they_are;
    const bool pairs = p.c.columns % 2 == 0 && p.c.row_stride % 2 == 0 && p.c.batch_stride % 2 == 0 &&
                       reinterpret_cast<std::uintptr_t>(p.c.data) % 16 == 0;
    return pairs ? f::pairs_of_doubles : f::doubles;
  }
  if (p.program && p.program->bit_steps() > 0) return f::bits;
  if (leave == Leave::in_general) {
    const bool is_short = tensor::has_short_elements(p);
    return fours ? is_short ? f::short_fours : f::fours : is_short ? f::short_singles : f::singles;
  }
  return (leave == Leave::after_activation ? f::activation : f::layer) * (fours ? 1 : f::layer_singles) +
         (with_matrix ? f::matrix : 0);
}

// The share of Card::tensor_products that a full multiprocessor reaches.
double share_of_products(const Tile& tile, bool splits) {
  namespace f = fit::mma;
  const int area = tile.m * tile.n;
  if (tile.is_deep) return f::deep;
  if (area >= 128 * 128 && splits) return f::split_128x128;
  if (area >= 128 * 256) return f::area_128x256;
  if (area >= 128 * 128) return f::area_128x128;
  return area >= 128 * 64 ? f::area_128x64 : f::smaller;
}

// Seconds in which the operands of the multiprocessor with most tiles, and B as a whole, reach shared memory.
double streaming_seconds(const Contraction& p, const Tile& tile, double tiles_of_one) {
  const Card& card = card_of(p.execution);
  const double line = static_cast<double>(p.k) * static_cast<double>(p.a.size);
  const double lines = tile.n + static_cast<double>(std::min<std::int64_t>(p.m, tile.m));
  return std::max(static_cast<double>(p.b.batches * p.n) * line / (fit::mma::stream * card.memory_bytes_per_second),
                  tiles_of_one * lines * line / (fit::mma::stream_bytes * card.clock));
}

}  // namespace

// A launch; for each round of tiles the time to fill the slabs and to store C; and the products of the multiprocessor that gets the most
// tiles, which waits for operands if it has few warps. A step is 32 bytes of an output's operands: 16 products of 16-bit floats. Products of
// double, four of them, take two steps.
double product_seconds(const Contraction& p, const Tile& tile, const ProductCall& call) {
  constexpr double step_bytes = 32, products_of_step = 16, doubles_of_step = 2;
  const Card& card = card_of(p.execution);
  const double area = tile.m * tile.n;
  const double steps = call.work * std::ceil(static_cast<double>(p.k) * call.bytes / step_bytes);
  const double steps_per_cycle =
      p.element == Scalar::f64 ? card.tensor_double_products / doubles_of_step : card.tensor_products / products_of_step;
  const double rate = share_of_products(tile, call.splits) * steps_per_cycle * card.clock;
  const detail::Waves waves = waves_of(p, tile, call.tiles);
  double products = waves.at_full_speed([&](double tiles) { return busy(tile, tiles); }) * area * steps / rate;
  if (tile.is_deep) products = std::max(products, streaming_seconds(p, tile, waves.each));
  const double cycles = fit::mma::prologue + waves.rounds() * fit::mma::fill + waves.each * area * cycles_of_output(p);
  return card.launch_seconds + cycles / card.clock + products +
         tensor::costs::pass_seconds(p.execution, call.pass_bytes, call.pass);
}

// During a store in vectors a block that is alone on a multiprocessor multiplies nothing.
double codes_seconds(const Contraction& p, const Tile& tile, double bytes, bool in_vectors) {
  namespace f = fit::mma;
  const Card& card = card_of(p.execution);
  const double outputs = static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n);
  const double of_output = !in_vectors ? f::codes_one_by_one : tile.blocks == 1 ? f::codes_alone : f::codes;
  return card.next_launch_seconds + (f::count_prologue + of_output * outputs) / card.clock +
         bytes / (f::counted * card.memory_bytes_per_second);
}

// The launches and the pass; the rest as in product_seconds().
double distance_seconds(const Contraction& p, const Tile& tile, const DistanceCall& call) {
  namespace f = fit::distances;
  const Card& card = card_of(p.execution);
  const bool of_halves = call.levels > 0;
  // With few terms many distances are small next to the points' norms, so their outputs are computed again: of random points, most. (Not
  // measured for doubles.)
  const double again =
      of_halves ? f::again * std::min(1.0, std::pow(f::few_terms / std::max(static_cast<double>(p.k), 1.0), 3)) : 0;
  const double output = (of_halves ? f::output_of_floats : f::output_of_doubles) + again;
  const double rate =
      card.clock * (of_halves ? card.tensor_products * (call.levels > 1 ? f::halves_of_two_levels : f::halves)
                              : card.tensor_double_products * f::doubles);
  const detail::Waves waves = waves_of(p, tile, call.tiles);
  const double busy = std::min(1.0, f::first_share + (1 - f::first_share) * waves.each / tile.blocks),
               area = waves.each * tile.m * tile.n;
  const double outputs = area * (call.is_self ? 2 : 1);
  return card.launch_seconds + launches_after_first_of_distances * card.next_launch_seconds +
         call.lines * call.numbers * call.point_bytes / (f::pass * card.memory_bytes_per_second) +
         area * call.numbers / (rate * busy) + (f::prologue + outputs * output + waves.rounds() * f::fill) / card.clock;
}

// Three launches; both operands read twice and written once; the products; C. Assumes that no output is marked.
double log_sums_seconds(const Contraction& p, const Tile& tile, const LogSumsCall& call) {
  namespace f = fit::log_sums;
  constexpr double passes = 3;
  const Card& card = card_of(p.execution);
  const double area = tile.m * tile.n, bytes = call.elements * passes * (call.of_doubles ? sizeof(double) : sizeof(float));
  const double share = call.of_doubles               ? f::doubles
                       : call.is_promoted            ? f::promoted
                       : tile.m * tile.n >= 128 * 64 ? f::large
                                                     : f::smaller;
  const double rate = share * card.clock * (call.of_doubles ? card.tensor_double_products : card.tensor_products);
  const double fill = call.of_doubles ? f::fill_of_doubles : f::fill,
               output = call.of_doubles ? f::output_of_doubles : f::output;
  const detail::Waves waves = waves_of(p, tile, call.tiles);
  return card.launch_seconds + launches_after_first_of_log_sums * card.next_launch_seconds +
         bytes / ((call.of_doubles ? f::pass_of_doubles : f::pass) * card.memory_bytes_per_second) +
         waves.at_full_speed([&](double tiles) { return busy(tile, tiles); }) * area * call.steps / rate +
         (f::prologue + waves.rounds() * fill + waves.each * area * output) / card.clock;
}

}  // namespace rigel::backends::mma::costs
