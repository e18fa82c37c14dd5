// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GPUs that the library knows, and the Card of a device. A device that is none of them gets the row of its architecture, scaled by what
// the driver says of it.
#include <rigel/card.hpp>
#include <rigel/cpu.hpp>

#include <array>
#include <cmath>

namespace rigel {
namespace {

constexpr double kilo = 1024, mega = kilo * kilo;

// Measured on an H200: launches, the L2 cache's rate, and what mma reaches (NOTES.md of cuda.simt and cuda.mma). Its units are those of
// NVIDIA's paper H100 Tensor Core GPU Architecture, its memory that of the data sheet.
constexpr Card h200 = {
    .name = "H200",
    .compute_capability = 90,
    .multiprocessors = 132,
    .clock = 1.98e9,
    .memory_bytes_per_second = 4.8e12,
    .l2_bytes = 50 * mega,
    .shared_memory = static_cast<int>(228 * kilo),
    .registers = 65536,
    .threads = 2048,
    .launch_seconds = 2.7e-6,
    .next_launch_seconds = 2e-6,
    .l2_bytes_per_second = 6.4e12,
    .instructions = 4,
    .shared_bytes = 128,
    .float_lanes = 128,
    .integer_lanes = 64,
    .double_lanes = 64,
    .special_lanes = 16,
    .bit_count_lanes = 16,
    .tensor_products = 1024,
    .warpgroup_products = 2048,
    .tensor_double_products = 128,
};

// What a data sheet says of a card. Launches are the driver's work and taken to be as long as on an H200; so is an L2 cache for each
// multiprocessor and cycle.
struct Sheet {
  std::string_view name;
  int compute_capability, multiprocessors;
  double clock, memory_bytes_per_second, l2_bytes, shared_memory;
  int threads;
  double float_lanes, double_lanes, tensor_products, warpgroup_products, tensor_double_products;
};
constexpr Card card(const Sheet& s) {
  Card c = h200;
  c.name = s.name;
  c.compute_capability = s.compute_capability;
  c.multiprocessors = s.multiprocessors;
  c.clock = s.clock;
  c.memory_bytes_per_second = s.memory_bytes_per_second;
  c.l2_bytes = s.l2_bytes;
  c.shared_memory = static_cast<int>(s.shared_memory);
  c.threads = s.threads;
  c.l2_bytes_per_second *= s.multiprocessors * s.clock / (h200.multiprocessors * h200.clock);
  c.float_lanes = s.float_lanes;
  c.double_lanes = s.double_lanes;
  c.tensor_products = s.tensor_products;
  c.warpgroup_products = s.warpgroup_products;
  c.tensor_double_products = s.tensor_double_products;
  return c;
}

// Products of tensor cores per clock are a data sheet's operations per second (dense, 16-bit floats summed in float) over twice the
// multiprocessors times the clock. An mma on Hopper and later gets half of what a warpgroup's or newer instruction gets.
constexpr std::array table = {
    // NVIDIA A100 Tensor Core GPU Architecture; data sheet of the A100 with 80 GB, SXM.
    card({"A100", 80, 108, 1.41e9, 2.04e12, 40 * mega, 164 * kilo, 2048, 64, 32, 1024, 0, 64}),
    // NVIDIA Ampere GA102 GPU Architecture.
    card({"RTX 3090", 86, 82, 1.695e9, 0.936e12, 6 * mega, 100 * kilo, 1536, 128, 2, 256, 0, 2}),
    // NVIDIA Ada GPU Architecture; data sheet of the L40S.
    card({"RTX 4090", 89, 128, 2.52e9, 1.008e12, 72 * mega, 100 * kilo, 1536, 128, 2, 256, 0, 2}),
    card({"L40S", 89, 142, 2.52e9, 0.864e12, 96 * mega, 100 * kilo, 1536, 128, 2, 512, 0, 2}),
    h200,
    // NVIDIA H100 Tensor Core GPU Architecture; data sheet of the H100, SXM.
    card({"H100", 90, 132, 1.98e9, 3.35e12, 50 * mega, 228 * kilo, 2048, 128, 64, 1024, 2048, 128}),
    // NVIDIA Blackwell Architecture Technical Brief; data sheet of the DGX B200. An mma is taken to be as fast as Hopper's.
    card({"B200", 100, 148, 1.965e9, 8e12, 126 * mega, 228 * kilo, 2048, 128, 64, 1024, 0, 64}),
    // NVIDIA RTX Blackwell GPU Architecture.
    card({"RTX 5090", 120, 170, 2.407e9, 1.792e12, 96 * mega, 100 * kilo, 1536, 128, 2, 256, 0, 2}),
};

// Whether `name` has `words` between spaces, dashes or its ends: "NVIDIA GH200" does not have "H200".
bool has_words(std::string_view name, std::string_view words) {
  constexpr std::string_view ends = " -_";
  for (auto at = name.find(words); at != std::string_view::npos; at = name.find(words, at + 1)) {
    const auto end = at + words.size();
    const bool begins = at == 0 || ends.find(name[at - 1]) != std::string_view::npos,
               stops = end == name.size() || ends.find(name[end]) != std::string_view::npos;
    if (begins && stops) return true;
  }
  return false;
}

}  // namespace

std::span<const Card> cards() { return table; }

const Card& card_of_architecture(int compute_capability) {
  const Card* found = table.data();
  for (const Card& row : table)
    if (row.compute_capability <= compute_capability && row.compute_capability > found->compute_capability) found = &row;
  return *found;
}

Card card_of(const DeviceFacts& facts) {
  const Card& architecture = card_of_architecture(facts.compute_capability);
  for (const Card& row : table)
    if (row.compute_capability == facts.compute_capability && has_words(facts.name, row.name) &&
        row.multiprocessors == facts.multiprocessors &&
        std::abs(facts.memory_bytes_per_second / row.memory_bytes_per_second - 1) < 0.1) {
      Card known = row;
      known.architecture = &architecture;
      return known;
    }
  Card c = architecture;
  c.name = {};
  c.architecture = &architecture;
  c.compute_capability = facts.compute_capability;
  const auto take = [](auto& number, auto said) {
    if (said > 0) number = said;  // a virtual GPU may say nothing
  };
  take(c.multiprocessors, facts.multiprocessors);
  take(c.clock, facts.clock);
  take(c.memory_bytes_per_second, facts.memory_bytes_per_second);
  take(c.l2_bytes, facts.l2_bytes);
  take(c.shared_memory, facts.shared_memory);
  take(c.registers, facts.registers);
  take(c.threads, facts.threads);
  c.l2_bytes_per_second *= c.multiprocessors * c.clock / (architecture.multiprocessors * architecture.clock);
  return c;
}

const Card& card_of(const Execution& e) {
  if (e.card) return *e.card;
  return e.space == Space::cuda ? card_of_architecture(e.compute_capability) : h200;
}

namespace detail {

Execution nominal(Execution e) {
  constexpr int multiprocessors = 132;
  if (e.space == Space::cuda) e.multiprocessors = multiprocessors;
  if (e.card && e.card->architecture) e.card = e.card->architecture;
  if (e.space == Space::cuda && e.card) e.shared_memory = e.card->shared_memory_of_block();
  static const Card host{.cpu = &table_cpu()};
  if ((bit(e.space) & host_spaces) != 0) e.card = &host;
  return e;
}

double slowness(const Execution& e) { return h200.clock / card_of(e).clock; }
double slowness(const Execution& e, Unit unit) {
  const Card& card = card_of(e);
  const auto lanes = [&](const Card& c) {
    switch (unit) {
      case Unit::of_doubles: return c.double_lanes;
      case Unit::of_integers: return c.integer_lanes;
      default: return c.float_lanes;
    }
  };
  return lanes(h200) * h200.clock / (lanes(card) * card.clock);
}

}  // namespace detail
}  // namespace rigel
