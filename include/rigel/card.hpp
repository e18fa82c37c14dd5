// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The numbers of a GPU that predicted times take: what the driver says of it, and how fast it is.
#pragma once

#include <rigel/call.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace rigel {

struct Cpu;

/// A GPU as predictions see it. A predicted time is a kernel's own counts (instructions, bytes, cycles) over these rates. `per clock`
/// means per multiprocessor and cycle. The table in src/card.cpp says where its numbers come from.
struct Card {
  std::string_view name = {};  // of the product, as in the device's name: "H200"
  int compute_capability = 0;  // 90 for sm_90
  /// The table's row for the card's architecture, on which nominal problems run (Contraction::nominal()); null: the card itself.
  const Card* architecture = nullptr;
  /// What explain() says of the device's profile (rigel/profile.hpp): which file these rates come from, or why one is ignored.
  std::string_view profile = {};
  /// In an Execution on a host: the processor (rigel/cpu.hpp), and nothing else of a Card counts. Null: this machine's.
  const Cpu* cpu = nullptr;

  // What the driver says.
  int multiprocessors = 0;
  double clock = 0;                    // cycles per second: the largest of the multiprocessors' clock
  double memory_bytes_per_second = 0;  // by data sheet: twice the memory's clock times the width of its bus
  double l2_bytes = 0;                 // that the L2 cache holds
  int shared_memory = 0;               // bytes of a multiprocessor
  int registers = 0;                   // of a multiprocessor, of 32 bits each
  int threads = 0;                     // that a multiprocessor holds

  // Launches and the L2 cache, measured or estimated.
  double launch_seconds = 0;       // of a kernel without work, from its launch on an idle stream to its end
  double next_launch_seconds = 0;  // that a further launch adds if it is enqueued at once
  double l2_bytes_per_second = 0;  // from the L2 cache to all multiprocessors

  // Units of a multiprocessor (CUDA C++ Programming Guide, Arithmetic Instructions; data sheets).
  double instructions = 0;            // of warps, issued per clock
  double shared_bytes = 0;            // that shared memory delivers per clock
  double float_lanes = 0;             // additions, products and fmas of float per clock
  double integer_lanes = 0;           // minima, comparisons and logic of 32 bits per clock
  double double_lanes = 0;            // fmas of double per clock
  double special_lanes = 0;           // exponentials, logarithms, reciprocals of float per clock
  double bit_count_lanes = 0;         // counts of bits in 32 bits per clock
  double tensor_products = 0;         // products of 16-bit floats per clock that a warp's instructions (mma) reach
  double warpgroup_products = 0;      // the same of a warpgroup's instructions (wgmma); 0: it has none
  double tensor_double_products = 0;  // products of double per clock by mma, or by its lanes if tensor cores have none

  /// Bytes of shared memory that a block can have: the system keeps 1024 of each (CUDA C++ Programming Guide, Compute Capabilities).
  int shared_memory_of_block() const { return shared_memory - 1024; }
};

/// The table of cards (src/card.cpp). The first row of each architecture stands for it.
std::span<const Card> cards();

/// The first row of the newest architecture of the table that is not newer than this one; of the oldest, if all are.
const Card& card_of_architecture(int compute_capability);

/// What the driver says of a device. Rates are in cycles and bytes per second; 0: it says nothing.
struct DeviceFacts {
  std::string_view name;
  int compute_capability = 0, multiprocessors = 0, shared_memory = 0, registers = 0, threads = 0;
  double clock = 0, memory_bytes_per_second = 0, l2_bytes = 0;
};

/// The table's row of a device, if one has its architecture, words of its name, its multiprocessors and within a tenth its memory's
/// bandwidth. Otherwise the row of its architecture with these facts in place of the row's; its L2 cache is taken to be as fast for each
/// multiprocessor and cycle.
Card card_of(const DeviceFacts& facts);

/// The Card that predictions of a call take: execution.card, or the row of its architecture. Of a GPU that is not CUDA's nothing is
/// known, and an H200's row stands for it.
const Card& card_of(const Execution& execution);

namespace detail {

/// The execution of nominal problems: on a GPU with 132 multiprocessors and the rates of the card's architecture, on a host with those of
/// the table. No profile changes it.
Execution nominal(Execution execution);

/// What a step of a kernel mostly takes. Doubles and integers have units of their own.
enum class Unit : std::uint8_t { of_floats, of_doubles, of_integers };
/// How many times as long as on an H200 a multiprocessor takes for steps on a unit, and for a number of cycles. Kernels of any GPU state
/// their measured seconds on an H200.
double slowness(const Execution& execution, Unit unit);
double slowness(const Execution& execution);

}  // namespace detail
}  // namespace rigel
