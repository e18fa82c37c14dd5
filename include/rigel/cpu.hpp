// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The numbers of a host's processor that predicted times take, as rigel/card.hpp has those of a GPU.
#pragma once

#include <rigel/call.hpp>

#include <string>
#include <string_view>

namespace rigel {

struct Contraction;

/// A processor as predictions see it. A predicted time is a loop's own counts (cycles, vectors, bytes) over these rates. `per cycle` means
/// of a thread, at `clock`. The defaults are the table's row: round numbers near to what was measured on x86-64 with AVX-512. A profile
/// replaces them (rigel/profile.hpp).
struct Cpu {
  /// What explain() says of its profile: which file these rates come from, or why one is ignored.
  std::string_view profile = {};

  double clock = 2e9;                     // cycles per second of a thread while all of them compute
  double launch_seconds = 1e-6;           // of a parallel loop without work
  double cache_bytes_per_second = 1e12;   // that all threads read from their caches, which no call exceeds
  double memory_bytes_per_second = 1e10;  // that copies read and write
  double l2_bytes = 1 << 20;              // of the second-level cache of a core
  // Steps, each an ⊗ and a ⊕ of one or two instructions, on vectors of 16, 32 and 64 bytes, per cycle.
  double vectors_16 = 1, vectors_32 = 1, vectors_64 = 1;
  // Fmas of float that a matrix product by the BLAS reaches, per cycle, if its loops take vectors of 16, 32 and 64 bytes.
  double products_16 = 7.5, products_32 = 15, products_64 = 25;

  /// The members for vectors of so many bytes.
  double vectors(int bytes) const { return bytes >= 64 ? vectors_64 : bytes >= 32 ? vectors_32 : vectors_16; }
  double products(int bytes) const { return bytes >= 64 ? products_64 : bytes >= 32 ? products_32 : products_16; }
  /// Seconds of so many cycles.
  double seconds(double cycles) const { return cycles / clock; }
};

/// The table's row, with which nominal problems are priced (Contraction::nominal()).
const Cpu& table_cpu();

/// The Cpu that predictions of a call on a host take: that of execution.card, or this machine's: the table's row, or its profile. Of other
/// spaces the table's row.
/// Throws what find_profile() throws.
const Cpu& cpu_of(const Execution& execution);

/// The name of this machine's processor, as profiles give it: "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz"; "host" if nothing tells it.
std::string cpu_name();

namespace detail {

/// Predicted seconds on a host: a launch, then all pairs (m, n, k), so many per cycle and thread.
double seconds_on_host(const Contraction& p, double pairs_per_cycle);

}  // namespace detail
}  // namespace rigel
