// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the programs that measure a GPU share: matrices in its memory, random numbers in them, and the time of a call.
#pragma once

#include <bench/exec.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

namespace bench {

static_assert(std::is_same_v<Exec, Kokkos::Cuda>);
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

/// The median of the device seconds of 11 calls, after 3 others.
template <class Call>
double median_seconds(const Exec& exec, const Call& call) {
  const Stopwatch watch(exec);
  for (int i = 0; i < 3; ++i) watch.seconds(call);
  std::array<double, 11> times;
  for (double& seconds : times) seconds = watch.seconds(call);
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace bench
