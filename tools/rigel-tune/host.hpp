// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures the host: all threads of Kokkos's default host space at once.
#pragma once

#include "rates.hpp"

#include <rigel/contract.hpp>

#if defined(__x86_64__)
#include <bench/host/ceiling.hpp>
#endif

#include <Kokkos_Core.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace tune {

using Host = Kokkos::DefaultHostExecutionSpace;

/// The least seconds of `rounds` calls after one that is not timed: other programs take turns on the host.
template <class Call>
double least_seconds(int rounds, const Call& call) {
  using Clock = std::chrono::steady_clock;
  call();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    call();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

/// Calls work(thread) on each thread.
template <class Work>
void on_each_thread(const Host& host, const Work& work) {
  Kokkos::parallel_for(
      "rigel-tune",
      Kokkos::RangePolicy<Host, Kokkos::Schedule<Kokkos::Static>>(host, 0, host.concurrency(), Kokkos::ChunkSize(1)),
      [&work](const int thread) { work(thread); });
}

/// Cycles per second of a thread: of additions, each of which waits a cycle for the one before.
inline double clock_of(const Host& host) {
  constexpr int steps = 1 << 18, unrolled = 16;
  const double seconds = least_seconds(20, [&] {
    on_each_thread(host, [](int thread) {
      auto x = static_cast<std::uint64_t>(thread);
      std::uint64_t y = 3;
      __asm__ volatile("" : "+r"(y));
      for (int i = 0; i < steps; ++i)
#pragma unroll
        for (int j = 0; j < unrolled; ++j) {
          x += y;
          __asm__ volatile("" : "+r"(x));
        }
    });
  });
  return double{steps} * unrolled / seconds;
}

/// Bytes per second that copies of `bytes` bytes read and write, on all threads.
inline double copies(const Host& host, std::size_t bytes, int repetitions) {
  std::vector<std::vector<char>> from(static_cast<std::size_t>(host.concurrency())), to(from.size());
  on_each_thread(host, [&](int thread) {  // a thread's memory is near to it if it writes it first
    from[thread].assign(bytes, 1);
    to[thread].assign(bytes, 2);
  });
  const double seconds = least_seconds(10, [&] {
    on_each_thread(host, [&](int thread) {
      for (int i = 0; i < repetitions; ++i) {
        std::memcpy(to[thread].data(), from[thread].data(), bytes);
        __asm__ volatile("" : : "r"(to[thread].data()) : "memory");
      }
    });
  });
  return 2. * static_cast<double>(bytes) * repetitions * host.concurrency() / seconds;
}

/// Steps on vectors of so many bytes, by the loops of bench/host: the minimum of sums, per second of a thread. 0: this processor has no
/// such vectors, or the loops are not for its kind.
inline double steps_per_second([[maybe_unused]] const Host& host, [[maybe_unused]] int bytes) {
#if defined(__x86_64__)
  const bool has = bytes == 16   ? __builtin_cpu_supports("x86-64-v2")
                   : bytes == 32 ? __builtin_cpu_supports("x86-64-v3")
                                 : __builtin_cpu_supports("x86-64-v4");
  if (!has) return 0;
  double (*const loop)() = (bytes == 16   ? bench::ceilings_v2()
                            : bytes == 32 ? bench::ceilings_v3()
                                          : bench::ceilings_v4())
                               .min_plus_f32;
  double pairs = 0;
  const double seconds = least_seconds(20, [&] { pairs = bench::on_all_threads(host, loop); });
  return pairs * sizeof(float) / bytes / seconds / host.concurrency();
#else
  return 0;
#endif
}

/// Products of float per second of a thread, by the BLAS; 0 if the library calls none.
inline double products_per_second(const Host& host) {
  constexpr int n = 1536;
  using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace>;
  const Matrix a("a", n, n), b("b", n, n), c("c", n, n);
  Kokkos::deep_copy(a, 1.f);
  Kokkos::deep_copy(b, 1.f);
  try {
    const double seconds =
        least_seconds(5, [&] { rigel::contract(host, rigel::plus_times<float>{}, a, b, c, {}, {.kernel = "host.blas"}); });
    return double{n} * n * n / seconds / host.concurrency();
  } catch (const rigel::Error&) {
    return 0;
  }
}

inline std::vector<Rate> rates_of_host() {
  // Shares on a Xeon (Cascade Lake) of 2.5 GHz, for which the table has 2 GHz: its kernels reach 0.8 of what these loops do. The BLAS is
  // measured as it is.
  constexpr double of_clock = 1.25, of_memory = 2.83;
  const Host host;
  std::vector<Rate> rates;
  const double clock = clock_of(host);
  rates.push_back({"clock", clock, of_clock});
  rates.push_back({"launch_seconds", least_seconds(2000, [&] { on_each_thread(host, [](int) {}); })});
  rates.push_back({"cache_bytes_per_second", copies(host, 8 << 10, 20000)});
  rates.push_back({"memory_bytes_per_second", copies(host, 64 << 20, 1), of_memory});
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
    rates.push_back({"l2_bytes", static_cast<double>(bytes)});
#endif
  for (const auto& [name, bytes] : {std::pair{"vectors_16", 16}, std::pair{"vectors_32", 32}, std::pair{"vectors_64", 64}})
    if (const double steps = steps_per_second(host, bytes); steps > 0) rates.push_back({name, steps / clock});
  // The library takes one of them, by what the BLAS says of itself.
  if (const double products = products_per_second(host); products > 0)
    for (const char* name : {"products_16", "products_32", "products_64"})
      rates.push_back({name, products / clock, 1 / of_clock});
  return rates;
}

}  // namespace tune
