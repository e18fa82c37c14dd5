// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pool of workspaces.
//   Host: a few idle buffers, which any instance may take, since host launches return when they are complete.
//   CUDA: one memory pool per device. Each lease is allocated and freed in the order of its stream, so no instance waits for
//   another,
//         and nothing belongs to an instance that may be gone. Calls that are captured in a graph get a part of what presize()
//         reserved for their stream (reservations.hpp).
//
// The pool works until the very end of a program, in any order of events: it has no Kokkos hook, and no object that is
// destroyed while calls may still come from std::atexit handlers, finalize hooks or destructors of static objects.
#include "reservations.hpp"

#include <rigel/detail/capture.hpp>
#include <rigel/detail/pool.hpp>
#include <rigel/detail/workspace.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>
#include <optional>

namespace rigel::detail {
namespace {

constexpr std::align_val_t alignment{workspace_alignment};
constexpr const char* label = "rigel::workspace";

std::string describe(const char* call, std::size_t bytes) {
  return std::string(call) + ": workspace of " + std::to_string(bytes) + " bytes: ";
}

Error no_memory(const char* call, std::size_t bytes) {
  return {Code::invalid_argument, describe(call, bytes) +
                                      "the pool has no memory of this execution space; expected memory of the caller's in "
                                      "options.workspace"};
}

// Reports to Kokkos Tools, while Kokkos is initialised: on the host allocations of buffers, on CUDA leases.
template <class Event>
void report(Event event, const char* space, const void* memory, std::size_t bytes) {
  if (Kokkos::is_initialized() && Kokkos::Tools::profileLibraryLoaded())
    event(Kokkos::Tools::make_space_handle(space), label, memory, bytes);
}

// ---- host ------------------------------------------------------------------------------------------------------------

struct Buffer {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

Buffer allocate(const char* call, std::size_t bytes) {
  void* memory = nullptr;
  // Larger numbers wrap around inside some implementations of operator new.
  if (bytes <= std::numeric_limits<std::size_t>::max() / 2) memory = ::operator new(bytes, alignment, std::nothrow);
  if (!memory) throw Error(Code::out_of_memory, describe(call, bytes) + "out of memory");
  report(Kokkos::Tools::allocateData, "Host", memory, bytes);
  return {memory, bytes};
}

void release(const Buffer& b) {
  if (!b.memory) return;
  report(Kokkos::Tools::deallocateData, "Host", b.memory, b.bytes);
  ::operator delete(b.memory, alignment);
}

/// The idle buffers of the host. It allocates and releases memory outside the lock.
class HostPool {
 public:
  /// Takes the smallest idle buffer that is large enough. If there is none, it releases the largest idle buffer and allocates.
  Buffer take(const char* call, std::size_t bytes) {
    Buffer outgrown;
    {
      const std::lock_guard lock(mutex_);
      Buffer *fitting = nullptr, *smaller = nullptr;
      for (Buffer& b : idle_) {
        if (b.bytes >= bytes && (!fitting || b.bytes < fitting->bytes)) fitting = &b;
        if (b.bytes < bytes && (!smaller || b.bytes > smaller->bytes)) smaller = &b;
      }
      if (fitting) return std::exchange(*fitting, {});
      if (smaller) outgrown = std::exchange(*smaller, {});
    }
    release(outgrown);
    return allocate(call, bytes);
  }

  void give_back(const Buffer& buffer) {
    {
      const std::lock_guard lock(mutex_);
      if (!closed_)
        for (Buffer& place : idle_)
          if (!place.memory) {
            place = buffer;
            return;
          }
    }
    release(buffer);
  }

  void empty(bool for_good) {
    std::array<Buffer, max_idle> idle{};
    {
      const std::lock_guard lock(mutex_);
      std::swap(idle, idle_);
      closed_ = closed_ || for_good;
    }
    for (const Buffer& b : idle) release(b);
  }

 private:
  // One for each concurrent call on the host; further buffers are released when their calls end.
  static constexpr int max_idle = 16;

  std::mutex mutex_;
  std::array<Buffer, max_idle> idle_{};
  bool closed_ = false;  // the pool keeps nothing from now on
};

constinit HostPool host_pool;
static_assert(std::is_trivially_destructible_v<HostPool>, "leases may come after the destructors of all static objects");

// ---- CUDA ------------------------------------------------------------------------------------------------------------

#ifdef KOKKOS_ENABLE_CUDA

/// While it lives, a device is this thread's current one, to which the legacy stream refers; and captures of other streams do
/// not forbid allocations, which do not take part in them.
class OnDevice {
 public:
  explicit OnDevice(int device) : device_(device) {
    cudaGetDevice(&before_);
    if (before_ != device_) cudaSetDevice(device_);
    cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  ~OnDevice() {
    cudaThreadExchangeStreamCaptureMode(&mode_);
    if (before_ != device_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int device_, before_ = device_;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// The memory pools of the devices.
class CudaPools {
 public:
  /// A device's pool, created at its first use. Null if the device supports none, after destroy(), and on an error, which is in
  /// `status`.
  cudaMemPool_t of(int device, cudaError_t& status) {
    status = cudaSuccess;
    if (device < 0 || device >= max_devices) return nullptr;
    if (const cudaMemPool_t pool = pools_[device].load(std::memory_order_acquire)) return pool;
    const std::lock_guard lock(mutex_);
    if (closed_) return nullptr;
    cudaMemPool_t pool = pools_[device].load(std::memory_order_relaxed);
    if (pool) return pool;
    int supported = 0;
    status = cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device);
    if (status != cudaSuccess || !supported) return nullptr;
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    status = cudaMemPoolCreate(&pool, &properties);
    if (status != cudaSuccess) return nullptr;
    // Free memory stays in the pool. The pool never makes one stream wait for another to reuse memory.
    std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
    int no = 0;
    status = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all);
    if (status == cudaSuccess) status = cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &no);
    if (status != cudaSuccess) {
      cudaMemPoolDestroy(pool);
      return nullptr;
    }
    pools_[device].store(pool, std::memory_order_release);
    return pool;
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    for (int d = 0; d < max_devices; ++d)
      if (const cudaMemPool_t pool = pools_[d]) {
        const OnDevice current(d);
        cudaMemPoolTrimTo(pool, 0);
      }
  }

  // Leases stay valid: CUDA keeps a pool until the last of its memory is freed.
  void destroy() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (auto& pool : pools_)
      if (const cudaMemPool_t p = pool.exchange(nullptr)) cudaMemPoolDestroy(p);
  }

 private:
  static constexpr int max_devices = 64;  // further devices have no pool: leases use cudaMalloc() and cudaFree()

  std::mutex mutex_;
  std::array<std::atomic<cudaMemPool_t>, max_devices> pools_{};
  bool closed_ = false;
};

constinit CudaPools cuda_pools;
static_assert(std::is_trivially_destructible_v<CudaPools>);

void check(const char* call, std::size_t bytes, cudaError_t status) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that the next launch does not report it
  throw Error(status == cudaErrorMemoryAllocation ? Code::out_of_memory : Code::device,
              describe(call, bytes) + cudaGetErrorString(status));
}

constinit Reservations reservations;

/// StreamKey::thread: a number that no other thread has or had. The legacy stream is one for all threads.
std::uint64_t thread_of(const void* stream) {
  if (stream != cudaStreamPerThread) return 0;
  static constinit std::atomic<std::uint64_t> threads = 0;
  thread_local const std::uint64_t number = ++threads;
  return number;
}

/// A stream that is not being captured: asked for its id, CUDA would end the capture with an error.
StreamKey key_of(const char* call, std::size_t bytes, const Execution& execution) {
  StreamKey key{.device = execution.device, .thread = thread_of(execution.stream)};
  check(call, bytes, cudaStreamGetId(static_cast<cudaStream_t>(execution.stream), &key.id));
  reservations.see(key, execution.stream);
  return key;
}

/// A stream with reserved memory, which may be being captured.
std::optional<StreamKey> known_stream(const Execution& execution) {
  return reservations.stream_of(execution.device, execution.stream, thread_of(execution.stream));
}

/// Bytes that are reserved for it.
std::size_t reserved_bytes(const Execution& execution) {
  const std::optional<StreamKey> key = known_stream(execution);
  return key ? reservations.bytes(*key) : 0;
}

/// A part of the memory that is reserved for a stream that is being captured.
void* take_reserved(const char* call, std::size_t bytes, const Execution& execution) {
  if (const std::optional<StreamKey> key = known_stream(execution))
    if (void* const part = reservations.take(*key, bytes)) return part;
  throw Error(Code::invalid_argument,
              describe(call, bytes) +
                  "a stream that is being captured gets none of the pool's, which the graph would use "
                  "after the call, and presize() has reserved " +
                  std::to_string(reserved_bytes(execution)) +
                  " bytes for it; expected enough from presize() before the capture, or memory of the "
                  "caller's in options.workspace");
}

/// Allocates memory for later work on `stream`, the device's own, aligned to 256 bytes, as all of CUDA's allocations are.
void* allocate(const char* call, std::size_t bytes, int device, cudaStream_t stream, bool& in_stream_order) {
  void* memory = nullptr;
  cudaError_t status = cudaSuccess;
  const cudaMemPool_t pool = cuda_pools.of(device, status);
  check(call, bytes, status);
  in_stream_order = pool != nullptr;
  if (!in_stream_order) {
    check(call, bytes, cudaMalloc(&memory, bytes));
    return memory;
  }
  status = cudaMallocFromPoolAsync(&memory, bytes, pool, stream);
  if (status == cudaErrorMemoryAllocation) {
    // Returns the memory that earlier calls of this instance left in the pool, and tries again.
    cudaGetLastError();
    check(call, bytes, cudaStreamSynchronize(stream));
    cudaMemPoolTrimTo(pool, 0);
    status = cudaMallocFromPoolAsync(&memory, bytes, pool, stream);
  }
  check(call, bytes, status);
  return memory;
}

// It ignores errors: they are those of earlier work, and the caller's next call reports them.
void release(void* memory, int device, cudaStream_t stream, bool in_stream_order) {
  const OnDevice current(device);
  // Kokkos::finalize() destroys streams. After that, cudaFree() waits for the device instead.
  if (in_stream_order && Kokkos::is_initialized())
    cudaFreeAsync(memory, stream);
  else
    cudaFree(memory);
}

/// Frees a block of reserved memory. cudaFree() waits for the device.
void release_reserved(int device, void* memory, std::size_t bytes) {
  const OnDevice current(device);
  report(Kokkos::Tools::deallocateData, "Cuda", memory, bytes);
  cudaFree(memory);
}

#endif

// ---- both ------------------------------------------------------------------------------------------------------------

// Empties the pool at the end of the program, or when the shared object with this code is unloaded. The static object is
// created at the first lease, so it is destroyed before what that lease needs, such as CUDA's runtime. Later leases are
// allocated and freed one by one.
void empty_at_the_end() {
  static const struct AtTheEnd {
    ~AtTheEnd() {
      host_pool.empty(true);
#ifdef KOKKOS_ENABLE_CUDA
      reservations.remove([](StreamKey) { return true; }, release_reserved);
      cuda_pools.destroy();
#endif
    }
  } at_the_end;
}

}  // namespace

PoolLease lease(const char* call, const Execution& execution, std::size_t bytes) {
  PoolLease result;
  if (bytes == 0) return result;
  empty_at_the_end();
  PoolLease::Held held{.bytes = bytes, .space = execution.space, .device = execution.device, .stream = execution.stream};
  if ((bit(execution.space) & host_spaces) != 0) {
    const Buffer buffer = host_pool.take(call, bytes);
    held.memory = buffer.memory;
    held.bytes = buffer.bytes;
#ifdef KOKKOS_ENABLE_CUDA
  } else if (execution.space == Space::cuda) {
    const OnDevice current(execution.device);
    if (is_captured(execution, call)) {
      held.memory = take_reserved(call, bytes, execution);
      held.reserved = true;
    } else {
      if (known_stream(execution)) key_of(call, bytes, execution);  // is it the same stream?
      held.memory =
          allocate(call, bytes, execution.device, static_cast<cudaStream_t>(execution.stream), held.in_stream_order);
      report(Kokkos::Tools::allocateData, "Cuda", held.memory, bytes);
    }
#endif
  } else {
    throw no_memory(call, bytes);
  }
  result.held_ = held;
  return result;
}

PoolLease::~PoolLease() {
  if (!held_.memory) return;
#ifdef KOKKOS_ENABLE_CUDA
  if (held_.reserved) {
    reservations.give_back(held_.memory);
    return;
  }
  if (held_.space == Space::cuda) {
    report(Kokkos::Tools::deallocateData, "Cuda", held_.memory, held_.bytes);
    release(held_.memory, held_.device, static_cast<cudaStream_t>(held_.stream), held_.in_stream_order);
    return;
  }
#endif
  host_pool.give_back({held_.memory, held_.bytes});
}

void presize(const Execution& execution, std::size_t bytes) {
  constexpr const char* call = "presize";
  if (bytes == 0) return;
  empty_at_the_end();
  if ((bit(execution.space) & host_spaces) != 0) return host_pool.give_back(host_pool.take(call, bytes));
#ifdef KOKKOS_ENABLE_CUDA
  if (execution.space == Space::cuda) {
    const OnDevice current(execution.device);
    if (is_captured(execution, call)) {
      const std::size_t reserved = reserved_bytes(execution);
      if (reserved >= bytes) return;
      throw Error(Code::invalid_argument, describe(call, bytes) + "the stream is being captured and has " +
                                              std::to_string(reserved) +
                                              " reserved bytes, expected a call before the capture begins");
    }
    const StreamKey key = key_of(call, bytes, execution);
    if (reservations.bytes(key) >= bytes) return;
    void* memory = nullptr;
    check(call, bytes, cudaMalloc(&memory, bytes));
    if (!reservations.add(key, execution.stream, memory, bytes)) {
      cudaFree(memory);
      throw Error(Code::out_of_memory, describe(call, bytes) + "the host is out of memory");
    }
    report(Kokkos::Tools::allocateData, "Cuda", memory, bytes);
    return;
  }
#endif
  throw no_memory(call, bytes);
}

void release_presized([[maybe_unused]] const Execution& execution) {
#ifdef KOKKOS_ENABLE_CUDA
  if (execution.space != Space::cuda) return;
  constexpr const char* call = "release_presized";
  const OnDevice current(execution.device);
  if (is_captured(execution, call))
    throw Error(Code::invalid_argument, std::string(call) +
                                            ": the stream is being captured, and the graph may use the reserved memory; "
                                            "expected a call after the capture has ended");
  const StreamKey key = key_of(call, 0, execution);
  reservations.remove([&](StreamKey stream) { return stream == key; }, release_reserved);
#endif
}

}  // namespace rigel::detail

void rigel::release_workspaces() noexcept {
  detail::host_pool.empty(false);
#ifdef KOKKOS_ENABLE_CUDA
  detail::cuda_pools.trim();
#endif
}
