// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the programs that measure a GPU share: matrices in its memory, random numbers, and a stopwatch.
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstdio>

namespace bench {

using Exec = Kokkos::Cuda;
template <class T, class Layout = Kokkos::LayoutRight>
using Matrix = Kokkos::View<T**, Layout, Kokkos::CudaSpace>;

/// Whether there is a GPU; prints a message if there is none. Call it before Kokkos::initialize().
inline bool has_gpu(const char* program) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return true;
  std::fprintf(stderr, "%s: no GPU\n", program);
  return false;
}

/// A matrix with uninitialised elements.
template <class T, class Layout = Kokkos::LayoutRight>
Matrix<T, Layout> uninitialized(std::int64_t rows, std::int64_t columns) {
  return Matrix<T, Layout>(Kokkos::view_alloc("bench", Kokkos::WithoutInitializing), static_cast<std::size_t>(rows),
                           static_cast<std::size_t>(columns));
}

/// The distribution of random numbers.
enum class Numbers {
  uniform,  // in [0, 1), for integers in [0, 2^14)
  normal    // mean 0, variance 1; for integers all bits are random
};

/// Random bits: PCG's output function.
KOKKOS_INLINE_FUNCTION std::uint32_t random_bits(std::uint32_t i, std::uint32_t seed) {
  std::uint32_t x = i * 747796405u + seed * 2891336453u + 1u;
  x = ((x >> ((x >> 28) + 4)) ^ x) * 277803737u;
  return (x >> 22) ^ x;
}

/// Fills a view with random numbers, the same ones in every run.
template <class View>
void fill(const Exec& exec, const View& view, std::uint32_t seed, Numbers numbers = Numbers::uniform) {
  using T = typename View::non_const_value_type;
  Kokkos::parallel_for(
      "bench::fill", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, view.extent(0) * view.extent(1)),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const std::uint32_t x = random_bits(static_cast<std::uint32_t>(i), seed);
        T& to = view(i / view.extent(1), i % view.extent(1));
        if constexpr (std::is_integral_v<T>) {
          to = static_cast<T>(numbers == Numbers::uniform ? x >> 18 : x);
        } else if (numbers == Numbers::uniform) {
          to = static_cast<T>(static_cast<float>(x >> 8) * 0x1p-24f);
        } else {  // the Box-Muller transform
          const float radius = Kokkos::sqrt(-2 * Kokkos::log((static_cast<float>(x >> 8) + 1) * 0x1p-24f));
          const float turn = static_cast<float>(random_bits(x, seed + 1) >> 8) * 0x1p-24f;
          to = static_cast<T>(radius * Kokkos::cos(2 * Kokkos::numbers::pi_v<float> * turn));
        }
      });
}

/// Two events around work on a stream.
class Stopwatch {
 public:
  explicit Stopwatch(const Exec& exec) : stream_(exec.cuda_stream()) {
    cudaEventCreate(&begin_);
    cudaEventCreate(&end_);
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
    cudaEventRecord(begin_, stream_);
    enqueue();
    cudaEventRecord(end_, stream_);
    cudaEventSynchronize(end_);
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, begin_, end_);
    return 1e-3 * milliseconds;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_, end_;
};

}  // namespace bench
