// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The execution space that is measured, Kokkos's default one; random bits, and a stopwatch.
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>

namespace bench {

using Exec = Kokkos::DefaultExecutionSpace;

/// Random bits: PCG's output function.
KOKKOS_INLINE_FUNCTION std::uint32_t random_bits(std::uint32_t i, std::uint32_t seed) {
  std::uint32_t x = i * 747796405u + seed * 2891336453u + 1u;
  x = ((x >> ((x >> 28) + 4)) ^ x) * 277803737u;
  return (x >> 22) ^ x;
}

/// Whether a kernel's predicted time is too long to measure. The least prediction never is.
inline bool is_too_slow(double predicted, double least) {
  return (predicted > 20e-3 && predicted > 30 * least) || (predicted > 50e-3 && predicted > 4 * least);
}

#ifdef KOKKOS_ENABLE_CUDA

/// Throws what the CUDA runtime reports.
inline void require(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

/// Two events around work on a stream.
class Stopwatch {
 public:
  explicit Stopwatch(const Exec& exec) : stream_(exec.cuda_stream()) {
    require(cudaEventCreate(&begin_));
    require(cudaEventCreate(&end_));
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }

  /// The seconds that the device spends on the work that `enqueue` enqueues. It waits for that work.
  template <class Enqueue>
  double seconds(const Enqueue& enqueue) const {
    require(cudaEventRecord(begin_, stream_));
    enqueue();
    require(cudaGetLastError());
    require(cudaEventRecord(end_, stream_));
    require(cudaEventSynchronize(end_));
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return 1e-3 * milliseconds;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// The seconds of a call: the least of five rounds of calls back to back, since other programs take turns on the host. A call that
/// is not timed precedes each round, so that the device does not wait for the first launch. One measurement if that takes long.
template <class Call>
double seconds_of(const Stopwatch& watch, const Call& call) {
  call();
  double least = watch.seconds(call);
  if (least > 5e-3) return least;
  for (int i = 0; i < 2; ++i) least = std::min(least, watch.seconds(call));
  const int calls = std::clamp(static_cast<int>(200e-6 / least), 1, 20);
  for (int round = 0; round < 5; ++round) {
    call();
    const double seconds = watch.seconds([&] {
      for (int i = 0; i < calls; ++i) call();
    });
    least = std::min(least, seconds / calls);
  }
  return least;
}

#else

/// A clock around work and the fence after it.
class Stopwatch {
 public:
  explicit Stopwatch(const Exec& exec) : exec_(exec) {}

  /// The seconds until the work that `enqueue` enqueues is done.
  template <class Enqueue>
  double seconds(const Enqueue& enqueue) const {
    using Clock = std::chrono::steady_clock;
    exec_.fence();
    const auto begin = Clock::now();
    enqueue();
    exec_.fence();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  Exec exec_;
};

/// The seconds of a call: the least of 3 to 20, since other programs take turns on the host; or one measurement if that takes
/// long.
template <class Call>
double seconds_of(const Stopwatch& watch, const Call& call) {
  call();
  double least = watch.seconds(call);
  if (least > 0.1) return least;
  const int calls = std::clamp(static_cast<int>(20e-3 / least), 3, 20);
  for (int i = 0; i < calls; ++i) least = std::min(least, watch.seconds(call));
  return least;
}

#endif

/// Bytes per second that a copy reads and writes.
inline double copy_bandwidth(const Exec& exec) {
#ifdef KOKKOS_ENABLE_CUDA
  constexpr std::size_t bytes = std::size_t{1} << 30;
#else
  constexpr std::size_t bytes = std::size_t{1} << 27;
#endif
  using Bytes = Kokkos::View<unsigned char*, Exec::memory_space>;
  const Bytes to("to", bytes), from("from", bytes);
  return 2. * bytes / seconds_of(Stopwatch(exec), [&] { Kokkos::deep_copy(exec, to, from); });
}

}  // namespace bench
