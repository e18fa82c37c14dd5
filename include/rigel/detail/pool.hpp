// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Workspace that the caller did not bring: buffers that belong to an execution space instance, reused in its order.
#pragma once

#include <rigel/registry.hpp>

#include <utility>

namespace rigel::detail {

/// A buffer of an instance's pool, aligned to 256 bytes, in memory of its execution space. It goes back to the pool when
/// the lease ends: work enqueued on the instance until then may still use it, since later work of the same instance
/// comes after. The pool gives its memory back at Kokkos::finalize().
class PoolLease {
 public:
  PoolLease() = default;
  PoolLease(PoolLease&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  PoolLease& operator=(PoolLease&& other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~PoolLease();
  void* data() const;

 private:
  friend PoolLease lease(const Execution&, std::size_t);
  struct Buffer* buffer_ = nullptr;
};

/// At least `bytes` bytes; an empty lease for 0. Throws Error(out_of_memory).
PoolLease lease(const Execution& execution, std::size_t bytes);

}  // namespace rigel::detail
