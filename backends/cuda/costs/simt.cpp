// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/costs/simt.hpp>

#include <rigel/backends/cuda/fitted/sm_90.hpp>
#include <rigel/card.hpp>
#include <rigel/detail/waves.hpp>

#include <cmath>
#include <limits>

namespace rigel::backends::simt::costs {
namespace {

namespace fit = cuda::fitted::sm_90;

double multiprocessors_of(const Product& p) { return std::max(p.execution.multiprocessors, 1); }
double number(std::int64_t x) { return static_cast<double>(x); }
double outputs_of(const Product& p) { return number(p.batch) * number(p.m) * number(p.n); }

// ---- tiles ------------------------------------------------------------------------------------------------------------

const fit::tiles::Pace& pace_of(const Semiring& s) {
  switch (s.work) {
    case Work::plus_times: return fit::tiles::pace_of_products;
    case Work::min_plus:
    case Work::linf: return fit::tiles::pace_of_minima;
    case Work::max_min: return fit::tiles::pace_of_two_minima;
    case Work::winners:
    case Work::wide_winners: return fit::tiles::pace_of_winners;
    default: return fit::tiles::pace_of_others;
  }
}
bool takes_minima(const Semiring& s) { return s.work == Work::min_plus || s.work == Work::linf || s.work == Work::max_min; }

double relative_speed(const Semiring& s) {
  const auto of = [&](const fit::tiles::Speeds& speeds) {
    switch (s.sums) {
      case Sums::f64: return speeds.f64;
      case Sums::i64: return speeds.i64;
      case Sums::i32: return speeds.i32;
      default: return speeds.of_f16;
    }
  };
  switch (s.work) {
    case Work::plus_times: return of(fit::tiles::plus_times);
    case Work::min_plus: return of(fit::tiles::min_plus);
    case Work::max_min: return of(fit::tiles::max_min);
    case Work::max_times: return of(fit::tiles::max_times);
    case Work::l1: return of(fit::tiles::l1);
    case Work::l2_squared: return of(fit::tiles::l2_squared);
    case Work::linf: return of(fit::tiles::linf);
    case Work::hamming: return of(fit::tiles::hamming);
    case Work::winners: return fit::tiles::winners;
    case Work::wide_winners: return fit::tiles::wide_winners;
    default: return s.is_of_user_structs ? fit::tiles::user_struct : 1;
  }
}

// Steps per second of a unit of a multiprocessor whose steps take so many slots.
double rate(const Card& card, double lanes, double slots) { return lanes * card.clock / slots; }

// Of light semirings on values of one register, or on several.
double light_steps_per_second(const Card& card, const Semiring& s) {
  if (s.of_doubles || s.sums == Sums::f64) return rate(card, card.double_lanes, fit::tiles::step_of_double_register);
  if (s.of_integers) return rate(card, card.integer_lanes, fit::tiles::step_of_integer_register);
  return rate(card, card.float_lanes, fit::tiles::step_of_register);
}

// Steps of an accumulator of `OnPairs<S>` per second of a full multiprocessor.
double steps_per_second(const Card& card, const Semiring& s, const Tile& t) {
  if (t.role == Role::whole_powers) return rate(card, card.float_lanes, fit::tiles::whole_powers);
  if (s.sums_exponentials && s.operand == 8) return rate(card, card.double_lanes, fit::tiles::exponentials_of_doubles);
  if (s.has_special_powers || s.sums_exponentials)
    return rate(card, card.special_lanes,
                s.sums_exponentials && s.is_of_float && t.role == Role::large ? fit::tiles::special_exponentials_large
                                                                              : fit::tiles::special);
  if (s.sums_powers)
    return rate(card, card.double_lanes,
                s.element == 2 ? fit::tiles::powers_of_short_in_doubles : fit::tiles::powers_of_doubles);
  if (s.instructions_of_metric > 0)
    return rate(card, card.float_lanes, fit::tiles::instruction_of_metric * s.instructions_of_metric);
  if (s.is_transcendental)
    return s.operand == 4 ? rate(card, card.float_lanes, fit::tiles::transcendental)
                          : rate(card, card.double_lanes, fit::tiles::transcendental_of_doubles);
  if (s.bit_counts > 0) return rate(card, card.bit_count_lanes, fit::tiles::bit_count * s.bit_counts);
  if (s.computes_floats) {
    const double step = pace_of(s).step;
    return takes_minima(s) ? rate(card, card.integer_lanes, fit::tiles::step_of_minima * step)
                           : rate(card, card.float_lanes, fit::tiles::step_of_floats * step);
  }
  const double waits = s.is_of_user_structs && t.role == Role::large ? fit::tiles::user_struct_alone : 1;
  return light_steps_per_second(card, s) * relative_speed(s) / (s.registers() * waits);
}

// A tile's times in addition to its steps, in cycles.
fit::tiles::Times times_of(const Semiring& s, const Tile& t, bool in_vectors) {
  namespace f = fit::tiles;
  const bool is_small = t.role == Role::small || t.role == Role::words;
  if (s.computes_floats) {
    const f::FloatTimes& times = t.role == Role::small ? f::small : s.widens ? f::widened : f::large;
    return in_vectors ? times.in_vectors : times.singles;
  }
  if (s.is_packed) return is_small ? f::packed_small : f::packed_large;
  if (s.sums_exponentials) return is_small ? f::exponentials_small : f::exponentials_large;
  if (s.sums_powers) {
    f::Times times = is_small ? f::powers_small : f::powers_large;
    times.output *= s.accumulator;
    return times;
  }
  if (s.is_of_user_structs && !is_small) return f::user_structs_large;
  if (is_small) return f::other_small;
  return s.accumulator > 4 ? f::other_large_8_bytes : f::other_large;
}

// The share of its speed that a multiprocessor reaches with some tiles, after as many as it holds or at first: all of it from 5 warps
// on, if the four schedulers have equally many and no block is alone with its barriers. Steps of doubles wait longer for each other.
double busy(const Semiring& s, const Tile& t, double tiles, bool after_others) {
  if (s.computes_floats) {
    const fit::tiles::Pace& pace = pace_of(s);
    if (tiles == 1 && t.role == Role::small) return fit::tiles::alone_small;
    if (tiles == 1) return after_others ? pace.alone_after_others : pace.alone;
    if (tiles == 2 && t.role == Role::small && after_others) return pace.two_after_others;
  }
  const double warps = tiles * t.threads / 32;
  if (warps > 4) return warps / (4 * std::ceil(warps / 4));
  return s.of_doubles ? fit::tiles::first_share_of_doubles + fit::tiles::share_of_warp_of_doubles * warps
                      : fit::tiles::first_share + fit::tiles::share_of_warp * warps;
}

// The time of the multiprocessor that gets the most tiles, as many at a time as it holds. With few warps it waits for operands, and
// operands of few outputs cost more. `copies`: the share of its speed that copies leave, 1 for whole vectors. `speed`: see speed_of().
double tiles_seconds(const Product& p, const Semiring& s, const Tile& t, std::int64_t count, std::int64_t k, double copies,
                     double speed) {
  const Card& card = card_of(p.execution);
  const double area = t.m * t.n, outputs = t.outputs;
  const bool full_of_warps = t.blocks * t.threads >= 512;
  const double efficiency = s.is_transcendental ? (full_of_warps ? 1 : fit::tiles::few_warps) * outputs /
                                                      (outputs + fit::tiles::reads_of_transcendental)
                                                : outputs / (outputs + fit::tiles::reads);
  const fit::tiles::Times times = times_of(s, t, copies == 1);
  const detail::Waves tiles(number(count), p.execution.multiprocessors, t.blocks);
  const double full = tiles.full(), rest = tiles.rest(), rounds = tiles.waves();
  const double lost = s.computes_floats && t.role == Role::large && full > 0 ? pace_of(s).lost : 0;
  const double tiles_per_second = steps_per_second(card, s, t) * efficiency * copies * speed / (area * number(k));
  const double cycles = times.prologue + std::min(rounds, 1.) * times.first_fill +
                        std::max(rounds - 1, 0.) * times.later_fill + rounds * area * times.output;
  return card.launch_seconds + cycles / card.clock +
         (lost + full / busy(s, t, t.blocks, false) + rest / busy(s, t, rest, full > 0)) / tiles_per_second;
}

// The share of a tile's speed that copies leave. Unaligned operands cost more; shifted vectors add a few steps.
double share_of_copies(const Semiring& s, const Tile& t, const TileCall& call) {
  if (call.copies == Copies::free) return 1;
  namespace f = fit::tiles;
  const bool large = t.role == Role::large;
  const double singles = s.is_light_float ? (large ? f::singles_of_floats_large : f::singles_of_floats)
                         : s.widens       ? (large ? f::singles_widened_large : f::singles_widened)
                                          : (large ? f::singles_large : f::singles);
  const double shifted = large ? f::shifted_large : f::shifted, steps = large ? 6 : 3;
  if (!t.takes_vectors) return s.computes_floats ? singles : 1;
  const double k = number(call.k);
  return call.copies == Copies::singles ? singles : call.copies == Copies::shifted ? shifted * k / (k + steps) : 1;
}

// The speed of a problem's steps relative to steps_per_second(). Powers that are products are faster, since special functions do not
// limit them; sums of powers in float only if the elements are float and the exponent is whole. Small tiles of types other than float
// are slower if they are converted on load; those of 64-bit integers are faster.
double speed_of(const Semiring& s, const Tile& t, Powers powers) {
  namespace f = fit::tiles;
  if (s.sums_powers) {
    if (s.has_special_powers) return powers == Powers::whole_products && s.element == 4 ? f::float_products : 1;
    switch (powers) {
      case Powers::whole_products: return f::whole_products;
      case Powers::half_products: return f::half_products;
      case Powers::by_definition: return f::by_definition;
      default: return 1;
    }
  }
  const bool is_small = t.role == Role::small;
  if (s.computes_floats) return is_small && s.widens ? f::small_widened : 1;
  if (s.is_transcendental) return 1;
  if (s.of_integers && s.operand == 8) return is_small ? f::small_i64 : f::other_i64;
  if (!is_small || s.element == 8) return 1;
  return s.element == 1 ? f::small_bytes : f::small_others;
}

// What tiles take to add to C, which is read before they start. A multiprocessor with a single block waits for that. Tiles of floats,
// which have several blocks, hide it.
double accumulate_seconds(const Contraction& p, const Semiring& s, const Tile& t) {
  if (!p.accumulate || s.computes_floats) return 0;
  const double cycles = t.role == Role::large ? fit::tiles::added_byte_large : fit::tiles::added_byte;
  return cycles * outputs_of(p) * static_cast<double>(p.c.size) / multiprocessors_of(p) / card_of(p.execution).clock;
}

// How much of the time that C's bytes take is not hidden by other work.
double unhidden_seconds_of_c(const Contraction& p) {
  return outputs_of(p) * static_cast<double>(p.c.size) / (fit::tiles::unhidden_c * card_of(p.execution).l2_bytes_per_second);
}

// The general epilogue: the wait for its instructions, and steps on bits, which threads take for all outputs of a tile. It runs if C does
// not take results as they are: with a Program, or of another type. For light semirings on floats the measured times include it.
double detour_seconds(const Product& p, const Semiring& s, const Tile& t, const TileCall& call, Scalar stored) {
  if (s.computes_floats || !p.program) return 0;
  if (p.program->empty() && stored == s.result) return 0;
  const double clock = card_of(p.execution).clock;
  if (p.program->bit_steps() == 0) return fit::tiles::detour / clock;
  const double bits = t.role == Role::large ? fit::tiles::bits_large : fit::tiles::bits;
  return (fit::tiles::detour + bits * t.m * t.n * std::ceil(number(call.tiles) / multiprocessors_of(p))) / clock;
}

// The roots of Euclidean distances.
double roots_seconds(const Product& p, const Semiring& s, const Tile& t) {
  if (!s.has_square_roots || !p.program || p.program->power() != 0.5) return 0;
  const double output = t.role == Role::large   ? fit::tiles::root_large
                        : t.role == Role::small ? fit::tiles::root_small
                                                : fit::tiles::root;
  return output * outputs_of(p) / multiprocessors_of(p) / card_of(p.execution).clock;
}

// Results of type `stored`, without the memory that takes them.
double result_seconds(const Product& p, const Semiring& s, const Tile& t, const TileCall& call, Scalar stored) {
  return tiles_seconds(p, s, t, call.tiles, call.k, share_of_copies(s, t, call), speed_of(s, t, call.powers)) +
         detour_seconds(p, s, t, call, stored) + roots_seconds(p, s, t);
}

}  // namespace

double score_seconds(const Product& p, const Semiring& s, const Tile& t, const TileCall& call) {
  return result_seconds(p, s, t, call, s.result);
}
double tile_seconds(const Contraction& p, const Semiring& s, const Tile& t, const TileCall& call) {
  return result_seconds(p, s, t, call, p.c.type) + unhidden_seconds_of_c(p) + accumulate_seconds(p, s, t);
}

// ---- slices of K, winners, words ------------------------------------------------------------------------------------------

namespace {

// What a launch before another hides of it.
double hidden_seconds(const Product& p) {
  const Card& card = card_of(p.execution);
  return card.launch_seconds + fit::split::hidden / card.clock;
}

// All slices; that of `rest` is a launch of its own.
double slices_seconds(const Product& p, const Semiring& s, const Tile& t, const TileCall& call, const Slices& slices) {
  const double copies = share_of_copies(s, t, call), speed = speed_of(s, t, call.powers), hidden = hidden_seconds(p);
  const auto seconds = [&](std::int64_t length, std::int64_t count) {
    return tiles_seconds(p, s, t, call.tiles * count, length, copies, speed);
  };
  return (slices.whole > 0 ? seconds(slices.length, slices.whole) : hidden) +
         (slices.rest > 0 ? seconds(slices.rest, 1) - hidden : 0);
}

}  // namespace

double split_seconds(const Contraction& p, const Semiring& s, const Tile& t, const TileCall& call, const Slices& slices) {
  const Card& card = card_of(p.execution);
  const double outputs = number(p.m * p.n), bytes = outputs * slices.count() * s.accumulator;
  const double join = s.is_light_float ? fit::split::join_light : fit::split::join;
  const double bytes_per_second = bytes < fit::split::held * card.l2_bytes
                                      ? fit::split::cached * card.l2_bytes_per_second
                                      : fit::split::uncached * card.memory_bytes_per_second;
  const double scattered = p.c.column_stride == 1 ? 0 : fit::split::scattered * outputs / multiprocessors_of(p);
  return slices_seconds(p, s, t, call, slices) + card.next_launch_seconds + (join + scattered) / card.clock +
         2 * bytes / bytes_per_second;
}

double winners_seconds(const Contraction& p, const Semiring& s, const Tile& t, const TileCall& call) {
  return tile_seconds(p, s, t, call) +
         fit::winners::winner * outputs_of(p) / multiprocessors_of(p) / card_of(p.execution).clock;
}

double split_winners_seconds(const Contraction& p, const Semiring& s, const Tile& t, const TileCall& call,
                             const Slices& slices) {
  const Card& card = card_of(p.execution);
  const double of_output = fit::winners::winner + fit::winners::slice * slices.count();
  return slices_seconds(p, s, t, call, slices) + card.next_launch_seconds +
         (fit::winners::join + of_output * number(p.m) * number(p.n) / multiprocessors_of(p)) / card.clock;
}

double words_seconds(const Contraction& p, const Contraction& q, const Semiring& s, const Tile& t, const TileCall& call,
                     double work, Packing a, Packing b) {
  const Card& card = card_of(p.execution);
  const auto packing = [&](Packing o) {
    return o.bytes / ((o.along_k ? fit::words::along_k : fit::words::across) * card.memory_bytes_per_second);
  };
  const double launch = a.bytes + b.bytes > 0 ? card.next_launch_seconds + fit::words::next_prologue / card.clock : 0;
  return launch + fit::words::over * (packing(a) + packing(b) + work * tile_seconds(q, s, t, call));
}

// ---- few, narrow and small -----------------------------------------------------------------------------------------------

double few_seconds(const Product& p, const Semiring& s, int parts, int rounds) {
  constexpr double most = 45;  // warp steps per multiprocessor; beyond, threads with more outputs are faster
  const double steps = std::ldexp(number(p.m * p.n) * rounds, parts - 5), multiprocessors = multiprocessors_of(p);
  if (steps > most * multiprocessors) return 0;
  const Card& card = card_of(p.execution);
  const double step = s.has_special_powers  ? fit::few::powers
                      : s.is_transcendental ? fit::few::transcendental
                                            : fit::few::step_of_register * s.registers_of_element();
  const double next = s.has_special_powers  ? fit::few::next_power
                      : s.is_transcendental ? fit::few::next_transcendental
                                            : fit::few::next_step;
  return card.launch_seconds +
         (fit::few::prologue + (parts > 0 ? fit::few::join : 0) + next * rounds + step * steps / multiprocessors) /
             card.clock;
}

namespace {

const fit::narrow::Step& narrow_step(const Semiring& s) {
  namespace f = fit::narrow;
  if (s.is_transcendental) return s.is_of_zoo ? f::transcendental : f::transcendental_of_users;
  if (s.is_of_structs) return s.work == Work::arguments ? f::arguments : s.is_of_zoo ? f::structs : f::users_structs;
  if (s.operand > 4) return f::wide;
  return s.element < 4 ? f::through_registers : f::floats;
}

}  // namespace

// Fitted to 3,900 random problems on an H200 (NOTES.md): a launch, and the root of the squares' sum of three times: of instructions, with
// the store, on the multiprocessor that gets most blocks; of a thread's latencies; and of memory. C's bytes add to it.
double narrow_seconds(const Contraction& p, const Semiring& s, const NarrowCall& call) {
  constexpr int resident = 6;  // blocks
  const Card& card = card_of(p.execution);
  const fit::narrow::Step &step = narrow_step(s),
                          &copy = s.element < 4 ? fit::narrow::copy_through_registers : fit::narrow::copy;
  const double clock = fit::narrow::clock * card.clock, multiprocessors = multiprocessors_of(p), k = number(p.k);
  const detail::Waves waves(call.blocks, multiprocessors, resident);
  const double copies = k * call.lines, slabs = std::ceil(k / call.depth);
  const double throughput =
      waves.each * (k * step.cycles * std::max(call.threads / 32, 1) + copies * copy.cycles + fit::narrow::block) / clock +
      fit::narrow::output / card.clock * outputs_of(p) / multiprocessors;
  const double latency = waves.rounds() * ((k * step.next + copies / call.threads * copy.next) / clock +
                                           (fit::narrow::wait + std::max(slabs - 1, 0.) * fit::narrow::slab) / card.clock);
  const double bytes = number(p.batch) * number(p.m + p.n) * k * static_cast<double>(p.a.size);
  return card.launch_seconds + fit::narrow::prologue / card.clock +
         std::hypot(throughput, latency, bytes / (fit::narrow::memory * card.memory_bytes_per_second)) +
         unhidden_seconds_of_c(p);
}

namespace {

// Steps per second of a multiprocessor, and a thread's cycles for a step by itself, at the family's clock. Tiles of doubles take powers
// and exponentials by a table, these do not. Pairs of 16-bit floats and counts of bits are faster here than in tiles.
struct SmallSteps {
  double per_second, cycles_alone;
};
SmallSteps small_steps(const Card& card, const Semiring& s, const Tile& tile) {
  namespace f = fit::small;
  const bool wide = s.operand > 4;
  const double of_tiles = steps_per_second(card, s, tile);
  if (s.sums_powers)
    return wide ? SmallSteps{rate(card, card.double_lanes, f::powers_of_doubles), f::alone_powers_of_doubles}
                : SmallSteps{f::powers * of_tiles, f::alone_powers};
  if (s.sums_exponentials)
    return wide ? SmallSteps{rate(card, card.double_lanes, f::exponentials_of_doubles), f::alone_exponentials_of_doubles}
                : SmallSteps{f::exponentials * of_tiles, f::alone_exponentials};
  if (s.is_transcendental) return {of_tiles, f::alone_transcendental};
  if (s.bit_counts > 0 && s.is_of_structs) return {f::bit_counts * of_tiles, f::alone_bit_counts};
  if (s.work == Work::arguments) return {f::arguments * of_tiles, wide ? f::alone_wide : f::alone};
  if (wide) return {of_tiles, f::alone_wide};
  if (s.is_of_user_structs) return {f::user_structs * of_tiles, f::alone_user_structs};
  const double steps = s.widens ? light_steps_per_second(card, s) * relative_speed(s) : of_tiles;
  const double faster = s.has_short_sums ? f::of_short_sums : s.is_of_float ? f::of_floats : f::of_others;
  return {faster * steps, f::alone};
}

}  // namespace

// Fitted to 3,700 random problems on an H200 (NOTES.md): a launch, and the sum of three times, since they hide little of each other: the
// instructions of the multiprocessor with the most blocks; its blocks' latencies, as many at a time as it holds; and memory, of which half
// is hidden, but all of which passes. Adding to C comes after it.
double small_seconds(const Contraction& p, const Semiring& s, const Tile& small_tile, const SmallCall& call) {
  namespace f = fit::small;
  constexpr double resident_threads = 1024, resident_blocks = 32, own_bytes = 1024;  // of a multiprocessor; of a block
  const Card& card = card_of(p.execution);
  const SmallSteps steps = small_steps(card, s, small_tile);
  const double move = call.copies_are_async ? f::move_async : f::move;
  const double multiprocessors = multiprocessors_of(p), k = number(p.k), chunks = std::max(std::ceil(k / call.depth), 1.);
  const double busy = std::ceil(static_cast<double>(call.matrices) * call.threads_of_matrix / 32);
  const bool as_they_are = call.c_in_vectors || p.program == nullptr || (p.program->empty() && p.c.type == p.accumulator);
  const double instructions =
      call.threads / 32. * f::thread +
      (chunks * call.copies * move + call.stores * (as_they_are ? f::output : f::general_output)) / 32;
  const double block = instructions / (f::issued * card.instructions * card.clock) +
                       busy * 32 * k * (call.outputs * call.outputs) / steps.per_second;
  const double resident = std::max(std::min({std::floor(card.shared_memory / (static_cast<double>(call.bytes) + own_bytes)),
                                             std::floor(resident_threads / call.threads), resident_blocks}),
                                   1.);
  const detail::Waves waves(call.blocks, multiprocessors, resident);
  const double waiting =
      waves.rounds() * ((f::wait + (chunks - 1) * (call.copies_are_async ? f::chunk_async : f::chunk)) / card.clock +
                        k * steps.cycles_alone / (f::clock * card.clock));
  const double memory = p.memory_bytes() / (f::memory * card.memory_bytes_per_second);
  const double adding =
      p.accumulate ? f::added_byte * outputs_of(p) * static_cast<double>(p.c.size) / multiprocessors / card.clock : 0;
  return card.launch_seconds + f::prologue / card.clock + std::max(waves.each * block + waiting + memory / 2, memory) +
         adding;
}

double small_join_seconds(const Product& p, double blocks, double bytes, bool has_rest) {
  namespace f = fit::small_split_k;
  constexpr double resident = 2;  // blocks of a multiprocessor
  const Card& card = card_of(p.execution);
  const double rounds = detail::Waves(blocks, p.execution.multiprocessors, resident).rounds();
  return card.next_launch_seconds +
         (f::next_prologue + (rounds - 1) * f::round + (has_rest ? rounds * f::rest : 0)) / card.clock +
         bytes / (f::memory * card.memory_bytes_per_second);
}

// ---- narrow_split_k --------------------------------------------------------------------------------------------------------

namespace {

// How many pieces of memory hold k × lines elements. Strides are in pieces.
double pieces_of(double k, double k_stride, double lines, double line_stride) {
  const auto hold = [](double extent, double stride, double inner) {
    return std::max({std::min(extent * inner, extent * stride), inner, 1.});
  };
  if (lines == 1 || (k > 1 && k_stride > line_stride)) return hold(k, k_stride, hold(lines, line_stride, 1));
  return hold(lines, line_stride, hold(k, k_stride, 1));
}

// The rows or columns of an operand, as blocks read them: lines of 128 bytes that warps request from the L1 cache, and sectors of 32
// bytes that the L2 cache sends. A block reads each once. If the L1 cache holds the operand, all blocks together do.
struct SplitKReads {
  double lines, sectors, all_lines = std::numeric_limits<double>::infinity(), all_sectors = all_lines;

  SplitKReads(const Contraction& p, bool of_a, std::int64_t count) {
    constexpr double cached_lines = 1500, line = 128, sector = 32;
    const auto size_of = [](std::int64_t i) { return std::abs(static_cast<double>(i)); };
    const Operand& o = of_a ? p.a : p.b;
    const double k = size_of(p.k), k_stride = size_of(of_a ? o.column_stride : o.row_stride),
                 stride = size_of(of_a ? o.row_stride : o.column_stride), size = static_cast<double>(o.size);
    const auto pieces = [&](std::int64_t across, double bytes) {
      return pieces_of(k, k_stride * size / bytes, size_of(across), stride * size / bytes);
    };
    const std::int64_t extent = of_a ? p.m : p.n;
    lines = pieces(std::min(count, extent), line);
    sectors = pieces(std::min(count, extent), sector);
    if (p.batch > 1) return;
    if (const double all = pieces(extent, line); all <= cached_lines) all_lines = all, all_sectors = pieces(extent, sector);
  }
};

// The problem as shapes divide it: rows and columns of C, or columns and rows.
struct SplitKProblem {
  const Card& card;
  int row_bits, depth_bits;
  double cycles_of_warp;  // for the steps of a round
  std::int64_t m, n, k;
  double batch, multiprocessors, bytes;
  SplitKReads rows;

  SplitKProblem(const Contraction& p, const Semiring& s, const SplitKThreads& threads, bool swapped)
      : card(card_of(p.execution)),
        row_bits(threads.row_bits),
        depth_bits(bits_of(threads.depth)),
        cycles_of_warp(cycles_of_step(s) * (1 << threads.row_bits) * threads.depth),
        m(swapped ? p.n : p.m),
        n(swapped ? p.m : p.n),
        k(p.k),
        batch(number(p.batch)),
        multiprocessors(multiprocessors_of(p)),
        bytes(batch * number(p.m + p.n) * number(p.k) * static_cast<double>(p.a.size)),
        rows(p, !swapped, 1 << threads.row_bits) {}

  static double cycles_of_step(const Semiring& s) {
    namespace f = fit::narrow_split_k;
    if (s.is_transcendental) return f::transcendental;
    if (s.is_of_structs) return f::step_of_registers * std::max((s.accumulator + 3) / 4 / 2, 1);
    return s.element > 4 ? f::step_of_registers : s.element < 4 ? f::step_of_short : f::step;
  }

  // Times that blocks take to start, to compute, to wait for one round after the other, to request lines and to get their sectors, and
  // that memory takes. They overlap: the predicted time is the norm of power 4, the longest if it is much longer than the others. This is
  // the sum of their fourth powers.
  double sum_of_fourth_powers(const SplitKShape& shape, const SplitKReads& columns) const {
    namespace f = fit::narrow_split_k;
    const double round = bytes > f::held * card.l2_bytes ? f::uncached_round : f::cached_round;
    const double each = batch * number(blocks_of(m, row_bits) * blocks_of(n, shape.columns)) / multiprocessors;
    const double most = std::ceil(each);
    const double rounds = k > 0 ? number(blocks_of(k, depth_bits + shape.parts)) : 0;
    const double waves = std::max(each / (1 << std::max(10 - shape.threads(), 0)), 1.0);
    const int warps = std::max(1 << shape.threads(), 32) / 32;
    const double lines = std::min(most * rows.lines, rows.all_lines) + std::min(most * columns.lines, columns.all_lines);
    const double sectors =
        std::min(each * rows.sectors, rows.all_sectors) + std::min(each * columns.sectors, columns.all_sectors);
    double sum = 0;
    for (const double cycles :
         {each * f::start, most * warps * (rounds * cycles_of_warp + f::start_warp), waves * (rounds + 0.6) * round,
          lines * f::line, sectors * f::sector, bytes / (f::memory * card.memory_bytes_per_second) * card.clock}) {
      const double seconds = cycles / card.clock;
      sum += seconds * seconds * (seconds * seconds);
    }
    return sum;
  }
};

}  // namespace

// Fitted to 3,400 random problems on an H200 (NOTES.md).
std::pair<SplitKShape, double> split_k_choice(const Contraction& p, const Semiring& s, const SplitKThreads& threads) {
  const bool a_along_k = p.a.column_stride <= p.a.row_stride || p.m == 1,
             b_along_k = p.b.row_stride <= p.b.column_stride || p.n == 1;
  SplitKShape best;
  double least = std::numeric_limits<double>::infinity();
  for (const bool swapped : {false, true}) {
    SplitKShape shape{.k_first = a_along_k && b_along_k, .swapped = swapped};
    if (!shape.k_first && (swapped ? a_along_k : b_along_k)) continue;
    const SplitKProblem problem(p, s, threads, swapped);
    for (shape.columns = 0; shape.columns <= std::min(bits_of(problem.n), 5); ++shape.columns) {
      const SplitKReads columns(p, swapped, 1 << shape.columns);
      const auto consider = [&](int parts) {
        shape.parts = parts;
        const double sum = problem.sum_of_fourth_powers(shape, columns);
        if (sum < least) best = shape, least = sum;
      };
      if (shape.k_first) {
        const int most_parts = std::min(threads.most_bits, std::max(bits_of(p.k), 5));
        for (int parts = std::max(5 - shape.columns, 0); parts <= most_parts; ++parts)
          if (shape.columns == std::clamp(7 - parts, 0, std::min(bits_of(problem.n), 5))) consider(parts);
      } else {
        for (const int bits : {5, 7, 8, 10})
          if (const int parts = bits - shape.columns;
              parts >= 0 && bits <= threads.most_bits && (bits == 5 || parts <= bits_of(p.k)))
            consider(parts);
      }
    }
  }
  const std::int64_t along_m = blocks_of(best.swapped ? p.n : p.m, threads.row_bits);
  const std::int64_t along_n = blocks_of(best.swapped ? p.m : p.n, best.columns);
  best.flipped = along_n > along_m;
  namespace f = fit::narrow_split_k;
  const Card& card = card_of(p.execution);
  const double cycles =
      f::prologue + f::output * outputs_of(p) / multiprocessors_of(p) + (s.sums_exponentials ? f::long_code : 0);
  return {best, card.launch_seconds + cycles / card.clock + std::sqrt(std::sqrt(least))};
}

// ---- skinny ------------------------------------------------------------------------------------------------------------

namespace {

// How many tiles C has.
double skinny_tiles(const SkinnyTile& t, const SkinnyCall& call) {
  return number(call.batch) * std::ceil(number(call.m) / (t.groups * t.count)) * std::ceil(number(call.n) / t.columns);
}

// Cycles for which a slab makes the computing warps wait, since the copying ones shift its vectors, or bring A element by element.
double skinny_waits(const SkinnyTile& t, const SkinnyCall& call) {
  namespace f = fit::skinny;
  const double round_trip = t.gathers_async ? 0 : f::round_trip;
  const int vectors = t.columns * t.depth / (t.width * t.copying);
  const double elements = number(std::min<std::int64_t>(call.m, t.groups * t.count)) * t.depth / t.copying;
  return (call.shifts ? f::shift * vectors : 0) + (call.gathers ? round_trip + f::element * elements : 0);
}

// Seconds in which B arrives: at the speed of memory, or of the multiprocessors that have tiles.
double skinny_transfer(const Contraction& p, const SkinnyCall& call, double tiles, double memory_share) {
  const Card& card = card_of(p.execution);
  const double bytes = number(call.batch) * number(call.n) * number(call.k) * call.bytes_of_b;
  return bytes / std::min(memory_share * card.memory_bytes_per_second,
                          std::clamp(tiles, 1., multiprocessors_of(p)) * fit::skinny::bytes * card.clock);
}

// Cycles for an output's store.
double skinny_output(const Contraction& p) {
  const bool is_plain = p.program && p.program->empty() && (p.c.type == p.accumulator || p.c.type == p.element);
  return is_plain ? fit::skinny::output : fit::skinny::general_output;
}

// A launch and the first slabs, and the longest of three: B's bytes; a block's tiles, if it had a multiprocessor to itself; and what the
// warps of a multiprocessor take for all of its tiles. Fitted to an H100.
double skinny_seconds_of_others(const Contraction& p, const Semiring& s, const SkinnyTile& t, const SkinnyCall& call) {
  namespace f = fit::skinny;
  const double chain = s.accumulator > 4 ? f::chain_of_two : f::chain;
  const int warps = t.computing / 32;
  const double of_type = t.size == 8 ? f::doubles : 1, alone = t.size == 1 ? f::alone_bytes : f::alone,
               of_output = f::step + f::step_by_speed / relative_speed(s);
  const double outputs = t.count * t.of_thread, conversions = t.size < 4 ? t.count + t.of_thread : 0;
  // Cycles that one k takes a computing warp, if each scheduler has one.
  const double of_k = of_type * (f::k + outputs * of_output + f::conversion * conversions);
  const double tiles = skinny_tiles(t, call), k = number(call.k), multiprocessors = multiprocessors_of(p);
  const double slabs = std::ceil(k / t.depth), waits = slabs * skinny_waits(t, call);
  const double of_tile = f::tile + outputs * skinny_output(p) + waits;
  const double busy = std::ceil(number(std::min<std::int64_t>(call.m, t.groups)) * warps / t.groups);
  const double turns = std::ceil(tiles / (2 * multiprocessors));  // of two blocks each
  const double of_block = turns * (of_tile + slabs * f::slab_alone + k * std::max(chain, alone * of_k));
  const double rounds = tiles <= multiprocessors ? 1 : 2 * turns;
  const double of_multiprocessor = rounds * (of_tile - waits / 2 + f::full * (slabs * f::slab + k * of_k * busy / 4));
  const Card& card = card_of(p.execution);
  return card.launch_seconds + fit::skinny::prologue / card.clock +
         std::max(std::max(of_block, of_multiprocessor) / (fit::skinny::clock * card.clock),
                  skinny_transfer(p, call, tiles, fit::skinny::memory));
}

// The same for threads of `count` rows of semirings that compute floats, from instructions: a warp of each scheduler computes a tile.
double skinny_seconds_of_floats(const Contraction& p, const Semiring& s, const SkinnyTile& t, const SkinnyCall& call) {
  namespace f = fit::skinny;
  const double of_step = f::step_of_floats * pace_of(s).step;
  const double rows = t.count, columns = t.of_thread, k = number(call.k), multiprocessors = multiprocessors_of(p);
  const double lines = t.groups * rows + t.columns;
  const double of_reads = columns == 1 ? rows / t.width + 1 : (rows + columns) / t.width;
  const double conversions = t.size < 4 ? rows + columns : 0;
  // A read of 16 bytes takes shared memory two cycles, or four if all threads of a warp read different columns.
  const double of_memory = (2 * rows + (t.lanes < 32 ? 2 : 4) * columns) * t.size / 4;
  const double copies = lines / (t.width * t.copying) * (f::copy + (t.converts ? f::copy_converted : 0));
  const double of_k = std::max(rows * columns * of_step + of_reads + conversions + copies, of_memory);
  const double tiles = skinny_tiles(t, call);
  // Blocks wait at barriers, and for the first slab of a tile, while others of their multiprocessor compute.
  const double waits = f::tile + std::ceil(k / t.depth) * (f::slab_of_floats + skinny_waits(t, call));
  const double of_multiprocessor = std::ceil(tiles / multiprocessors),
               of_block = std::ceil(tiles / (t.resident * multiprocessors));
  // A scheduler has one warp that computes, whose reads and steps wait for each other if it has many.
  const double overlap = t.has_many_outputs ? f::overlap_many + f::overlap_of_rows / rows
                         : t.of_thread > 1  ? f::overlap_two
                                            : f::overlap_one;
  const double cycles = of_multiprocessor * (overlap * k * of_k + rows * columns * skinny_output(p)) + of_block * waits;
  const Card& card = card_of(p.execution);
  const double of_c = number(call.batch) * number(call.n) * number(call.m) * call.bytes_of_b /
                      (fit::skinny::c_of_floats * card.memory_bytes_per_second);
  return card.launch_seconds + fit::skinny::prologue / card.clock +
         std::max(cycles / (fit::skinny::clock_of_floats * card.clock),
                  skinny_transfer(p, call, tiles, fit::skinny::memory_of_floats) + of_c);
}

}  // namespace

double skinny_seconds(const Contraction& p, const Semiring& s, const SkinnyTile& t, const SkinnyCall& call) {
  return s.computes_floats ? skinny_seconds_of_floats(p, s, t, call) : skinny_seconds_of_others(p, s, t, call);
}

}  // namespace rigel::backends::simt::costs
