// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Workspace for calls that bring none: a lease from Rigel's pool for one call, in the order of its execution space instance.
#pragma once

#include <rigel/registry.hpp>

#include <utility>

namespace rigel::detail {

/// Memory of an execution space, aligned to 256 bytes. It returns to the pool when the lease ends; work that was enqueued on
/// the instance before that may still use it. The instance outlives the lease.
class PoolLease {
 public:
  PoolLease() = default;
  PoolLease(PoolLease&& other) noexcept : held_(std::exchange(other.held_, {})) {}
  PoolLease& operator=(PoolLease&& other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~PoolLease();
  void* data() const { return held_.memory; }

 private:
  friend PoolLease lease(const char*, const Execution&, std::size_t);
  struct Held {
    void* memory = nullptr;
    std::size_t bytes = 0;
    Space space = Space::other;
    int device = -1;
    void* stream = nullptr;
    bool in_stream_order = false;  // CUDA: allocated, and freed, in the order of the stream
    bool reserved = false;         // CUDA: a part of what presize() reserved
  };
  Held held_;
};

/// Leases at least `bytes` bytes; an empty lease for 0. `call` is the function's name, for messages. Throws
/// Error(out_of_memory) if the system has no more memory, Error(device) if the CUDA runtime fails, and Error(invalid_argument)
/// if the pool has no memory of that space, or if the stream is being captured in a CUDA graph and presize() has reserved less.
PoolLease lease(const char* call, const Execution& execution, std::size_t bytes);

/// The functions of rigel/presize.hpp.
void presize(const Execution& execution, std::size_t bytes);
void release_presized(const Execution& execution);

}  // namespace rigel::detail
