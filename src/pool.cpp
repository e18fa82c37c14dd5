// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The workspace pools, one for each execution space instance.
#include <rigel/detail/pool.hpp>

#include <Kokkos_Core.hpp>

#include <list>
#include <mutex>
#include <tuple>

namespace rigel::detail {

constexpr std::size_t alignment = 256;

struct Buffer {
  std::tuple<Space, int, std::uint32_t> owner;  // space, device, instance
  void* memory;
  std::size_t bytes;
  bool leased;
};

namespace {

struct Pool {
  std::mutex mutex;
  std::list<Buffer> buffers;
  bool hooked = false;
};

Pool& pool() {
  static Pool p;
  return p;
}

constexpr const char* label = "rigel::workspace";

void* allocate(const Execution& execution, std::size_t bytes) {
  try {
#ifdef KOKKOS_ENABLE_CUDA
    if (execution.space == Space::cuda) {
      const auto& exec = *static_cast<const Kokkos::Cuda*>(execution.instance);
      return Kokkos::CudaSpace::impl_create(execution.device, exec.cuda_stream()).allocate(exec, label, bytes);
    }
#endif
    static_cast<void>(execution);
    return Kokkos::HostSpace().allocate(label, bytes);
  } catch (const std::exception& e) {
    throw Error(Code::out_of_memory, "workspace of " + std::to_string(bytes) + " bytes: " + e.what());
  }
}

void release(const Buffer& b) {
#ifdef KOKKOS_ENABLE_CUDA
  if (const auto [space, device, instance] = b.owner; space == Space::cuda) {
    // The stream may be gone with its instance; the default one waits for it.
    return Kokkos::CudaSpace::impl_create(device, nullptr).deallocate(label, b.memory, b.bytes);
  }
#endif
  Kokkos::HostSpace().deallocate(label, b.memory, b.bytes);
}

void release_all() {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  for (const Buffer& b : p.buffers) release(b);
  p.buffers.clear();
  p.hooked = false;
}

}  // namespace

PoolLease lease(const Execution& execution, std::size_t bytes) {
  PoolLease result;
  if (bytes == 0) return result;
  const std::tuple owner{execution.space, execution.device, execution.instance_id};
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  if (!p.hooked) {
    Kokkos::push_finalize_hook(release_all);
    p.hooked = true;
  }
  // The smallest idle buffer that is large enough; else idle ones that are too small give way to a new one.
  Buffer* best = nullptr;
  for (Buffer& b : p.buffers)
    if (!b.leased && b.owner == owner && b.bytes >= bytes + alignment && (!best || b.bytes < best->bytes)) best = &b;
  if (!best) {
    p.buffers.remove_if([&](const Buffer& b) {
      if (b.leased || b.owner != owner) return false;
      release(b);
      return true;
    });
    p.buffers.push_back({owner, allocate(execution, bytes + alignment), bytes + alignment, false});
    best = &p.buffers.back();
  }
  best->leased = true;
  result.buffer_ = best;
  return result;
}

PoolLease::~PoolLease() {
  if (!buffer_) return;
  const std::lock_guard lock(pool().mutex);
  buffer_->leased = false;
}

void* PoolLease::data() const {
  if (!buffer_) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(buffer_->memory);
  return reinterpret_cast<void*>((address + alignment - 1) / alignment * alignment);
}

}  // namespace rigel::detail
