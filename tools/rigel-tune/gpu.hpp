// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures Kokkos's default CUDA device, with the loops of bench/cuda where there are any.
#pragma once

#include "rates.hpp"

#include <bench/cuda/mma_ceiling.hpp>
#include <bench/problems.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace tune {

using bench::Exec;

/// x + the bits that are set in a xor b: of a multiprocessor 16 counts per clock
struct bit_counts {
  using type = unsigned;
  static constexpr const char* name = "bit counts";
  static constexpr int pairs = 1, lanes = 16, capability = 0;
  static __device__ void step(unsigned& x, unsigned a, unsigned b) { x += __popc(a ^ b); }
};

static __global__ void no_work() {}

static __global__ void keep_busy(long long cycles) {
  for (const long long begin = clock64(); clock64() - begin < cycles;) continue;
}

constexpr int l2_threads = 512, l2_vectors = 8;  // of a block; that a thread reads at a time

// Reads `pieces` times l2_threads · l2_vectors vectors of 16 bytes from the L2 cache, `rounds` times, each block all of them, from another
// piece on. The sum that is stored keeps the reads.
static __global__ void __launch_bounds__(l2_threads) read_l2(const uint4* from, int pieces, int rounds, unsigned* to) {
  unsigned sum = 0;
  int piece = static_cast<int>(blockIdx.x) % pieces;
#pragma unroll 1
  for (int i = 0; i < pieces * rounds; ++i) {
    const uint4* const at = from + piece * (l2_threads * l2_vectors) + threadIdx.x;
#pragma unroll
    for (int j = 0; j < l2_vectors; ++j) {
      const uint4 v = __ldcg(at + j * l2_threads);
      sum += v.x ^ v.y ^ v.z ^ v.w;
    }
    piece = piece + 1 < pieces ? piece + 1 : 0;
  }
  if (sum == 0x12345678u) *to = sum;
}

// Reads vectors of 16 bytes from shared memory, 32 neighbours a warp, without conflicts.
static __global__ void __launch_bounds__(1024) read_shared(int rounds, unsigned* to) {
  constexpr int vectors = 2048;  // 32 KiB
  __shared__ uint4 all[vectors];
  for (int i = static_cast<int>(threadIdx.x); i < vectors; i += 1024) all[i] = make_uint4(i, i, i, i);
  __syncthreads();
  const auto first = static_cast<unsigned>(__cvta_generic_to_shared(all));
  unsigned sum = 0, at = threadIdx.x;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const unsigned address = first + 16 * at;
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) {
      uint4 v;
      // Volatile: the compiler neither merges nor drops reads.
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "r"(address + 1024 * i));
      sum += v.x ^ v.y ^ v.z ^ v.w;
    }
    at = (at + 32) % 1024;
  }
  if (sum == 0x12345678u) *to = sum;
}

/// Seconds of a launch on an idle stream, as bench_choice has it, and what each further one adds that waits in the stream. A kernel that
/// keeps the stream busy gives the host the time to enqueue them.
inline std::pair<double, double> launches(const Exec& exec) {
  constexpr int further = 200;
  constexpr long long busy_cycles = 6'000'000;  // milliseconds, more than the host takes for as many launches
  const bench::Stopwatch watch(exec);
  const auto launch = [&] { no_work<<<1, 32, 0, exec.cuda_stream()>>>(); };
  const double first = bench::seconds_of(watch, launch);
  double next = first;
  for (int round = 0; round < 10; ++round) {
    keep_busy<<<1, 1, 0, exec.cuda_stream()>>>(busy_cycles);
    next = std::min(next, watch.seconds([&] {
      for (int i = 0; i < further; ++i) launch();
    }) / further);
  }
  return {first, next};
}

inline double l2_bytes_per_second(const Exec& exec, const rigel::Card& card) {
  constexpr int rounds = 8, vector = 16, piece = l2_threads * l2_vectors;
  // A part that one of the cache's two halves holds.
  const int pieces = static_cast<int>(card.l2_bytes / 4) / vector / piece;
  const auto from = bench::uninitialized<unsigned>(std::int64_t{pieces} * piece, 4),
             to = bench::uninitialized<unsigned>(1, 1);
  bench::fill(exec, from, 1);
  const int blocks = card.multiprocessors * (card.threads / l2_threads);
  const double seconds = bench::median_seconds(exec, [&] {
    read_l2<<<blocks, l2_threads, 0, exec.cuda_stream()>>>(reinterpret_cast<const uint4*>(from.data()), pieces, rounds,
                                                           to.data());
  });
  return double{vector} * piece * pieces * rounds * blocks / seconds;
}

inline double shared_bytes_per_second(const Exec& exec, const rigel::Card& card) {
  constexpr int rounds = 4096, reads = 16, vector = 16, threads = 1024;
  const auto to = bench::uninitialized<unsigned>(1, 1);
  const double seconds = bench::median_seconds(
      exec, [&] { read_shared<<<card.multiprocessors, threads, 0, exec.cuda_stream()>>>(rounds, to.data()); });
  return double{vector} * reads * rounds * threads * card.multiprocessors / seconds;
}

/// Products per second of the fastest kernel by warpgroups for 8192 × 8192 × 4096 numbers of 16 bits; 0 if none runs here.
inline double warpgroup_products_per_second(const Exec& exec) {
  bench::Pool pool;
  const bench::Spec spec = bench::parse("plus_times,bf16,1,8192,8192,4096,r/c/r,automatic+short_c", bench::zoo());
  const bench::Instance instance(exec, spec, pool);
  rigel::Contraction p = instance.problem();
  p.kernel = "cuda.hopper";
  const rigel::Kernel<rigel::Contraction>* kernel = nullptr;
  for (const auto& candidate : rigel::candidates(p))
    if (candidate.chosen) kernel = candidate.kernel;
  if (!kernel) return 0;
  const double seconds = bench::median_seconds(exec, [&] { rigel::run(*kernel, p); });
  return 8192. * 8192 * 4096 / seconds;
}

/// `card`: the table's.
inline std::vector<Rate> rates_of_gpu(const Exec& exec, const rigel::Card& card) {
  namespace pair = bench::pair;
  const double clock = bench::clock_rate(exec), cycles = clock * card.multiprocessors;  // per second, of all multiprocessors
  const auto [launch, next_launch] = launches(exec);
  // Shares on an H200: of the table's clock, bandwidths and lanes (bench/results/h200: simt.json, mma.json).
  std::vector<Rate> rates = {
      {"clock", clock, 1},
      {"memory_bytes_per_second", bench::copy_bandwidth(exec), 0.875},
      {"launch_seconds", launch, 1},
      {"next_launch_seconds", next_launch, 1},
      {"l2_bytes_per_second", l2_bytes_per_second(exec, card), 1},
      {"shared_bytes", shared_bytes_per_second(exec, card) / cycles, 1},
      {"float_lanes", 2 * bench::ceiling<pair::l1_f32>(exec) / cycles, 0.889},  // two additions
      {"integer_lanes", bench::ceiling<pair::or_and_b32>(exec) / 32 / cycles, 0.973},
      {"double_lanes", bench::ceiling<pair::plus_times_f64>(exec) / cycles, 0.701},
      {"special_lanes", bench::ceiling<pair::exp2_f32>(exec) / cycles, 0.956},
      {"bit_count_lanes", bench::ceiling<bit_counts>(exec) / cycles, 0.97},
      {"tensor_products", bench::ceiling<pair::tensor_f16>(exec) / cycles, 1.129},
      {"tensor_double_products", bench::ceiling<pair::tensor_f64>(exec) / cycles, 0.991},
  };
  if (const double products = card.warpgroup_products > 0 ? warpgroup_products_per_second(exec) : 0; products > 0)
    rates.push_back({"warpgroup_products", products / cycles, 0.61});
  return rates;
}

}  // namespace tune
