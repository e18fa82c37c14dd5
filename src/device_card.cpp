// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The Card of a GPU of this process, from what the CUDA driver says of it and from its profile. card.cpp has the table of cards.
#include <rigel/detail/execution.hpp>
#include <rigel/error.hpp>
#include <rigel/profile.hpp>

#ifdef KOKKOS_ENABLE_CUDA
#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>

namespace rigel::detail {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Error(Code::device, std::string(what) + ": " + cudaGetErrorString(status));
}

DeviceFacts facts_of(int device, const cudaDeviceProp& properties) {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
    return value;
  };
  constexpr double kilohertz = 1000, bits = 8;
  DeviceFacts f;
  f.name = properties.name;
  f.compute_capability = 10 * properties.major + properties.minor;
  f.multiprocessors = properties.multiProcessorCount;
  f.shared_memory = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  f.registers = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  f.threads = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  f.clock = kilohertz * attribute(cudaDevAttrClockRate);
  f.memory_bytes_per_second =
      2 * kilohertz * attribute(cudaDevAttrMemoryClockRate) * attribute(cudaDevAttrGlobalMemoryBusWidth) / bits;
  f.l2_bytes = attribute(cudaDevAttrL2CacheSize);
  return f;
}

}  // namespace

const Card& card_of_device(int device) {
  constexpr int most = 64;  // devices; those after it share the last one's Card
  static std::array<std::atomic<const Card*>, most> found;
  static std::mutex mutex;
  static std::array<Card, most> kept;
  const auto at = static_cast<std::size_t>(std::clamp(device, 0, most - 1));
  if (const Card* known = found[at].load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(mutex);
  if (!found[at].load(std::memory_order_relaxed)) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    kept[at] = tuned(card_of(facts_of(device, properties)), properties.name);
    found[at].store(&kept[at], std::memory_order_release);
  }
  return *found[at].load(std::memory_order_relaxed);
}

}  // namespace rigel::detail
#endif
