// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "recorder.hpp"

#include <Kokkos_Core.hpp>

#include <mutex>
#include <string_view>

namespace support {
namespace {

namespace tools = Kokkos::Tools::Experimental;

std::mutex mutex;
Recorder::Events seen;
tools::EventSet before;

void begin_kernel(const char* name, std::uint32_t, std::uint64_t* id) {
  const std::lock_guard lock(mutex);
  seen.kernels.emplace_back(name);
  ++seen.open_kernels;
  *id = seen.kernels.size();
}
void end_kernel(std::uint64_t) {
  const std::lock_guard lock(mutex);
  --seen.open_kernels;
}
void push_region(const char* name) {
  const std::lock_guard lock(mutex);
  seen.regions.emplace_back(name);
  ++seen.open_regions;
}
void pop_region() {
  const std::lock_guard lock(mutex);
  --seen.open_regions;
}
void begin_fence(const char* name, std::uint32_t, std::uint64_t*) {
  if (std::string_view(name).starts_with("Kokkos::Tools::")) return;
  const std::lock_guard lock(mutex);
  ++seen.fences;
}
void allocate(Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t bytes) {
  if (bytes == 0) return;  // Kokkos reports team scratch of 0 bytes at every launch on CUDA
  const std::lock_guard lock(mutex);
  seen.allocations.emplace_back(label);
}
void deallocate(Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex);
  seen.deallocations.emplace_back(label);
}

}  // namespace

Recorder::Recorder() {
  clear();
  before = tools::get_callbacks();
  tools::set_begin_parallel_for_callback(begin_kernel);
  tools::set_end_parallel_for_callback(end_kernel);
  tools::set_push_region_callback(push_region);
  tools::set_pop_region_callback(pop_region);
  tools::set_begin_fence_callback(begin_fence);
  tools::set_allocate_data_callback(allocate);
  tools::set_deallocate_data_callback(deallocate);
}

Recorder::~Recorder() { tools::set_callbacks(before); }

Recorder::Events Recorder::events() const {
  const std::lock_guard lock(mutex);
  return seen;
}

void Recorder::clear() {
  const std::lock_guard lock(mutex);
  seen = {};
}

}  // namespace support
