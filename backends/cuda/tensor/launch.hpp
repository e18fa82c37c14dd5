// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What launches of kernels on tensor cores have in common.
#pragma once

#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/registry.hpp>

#include <atomic>
#include <cstdint>

namespace rigel::backends::tensor {

using cuda::max_grid;

/// Allows a kernel more than 48 KB of shared memory, once per device.
inline void allow_shared_memory(const void* function, int bytes, std::atomic<std::uint64_t>& allowed, int device,
                                const KernelInfo& info) {
  const std::uint64_t mine = device >= 0 && device < 64 ? std::uint64_t{1} << device : 0;
  if (allowed.load(std::memory_order_acquire) & mine) return;
  cuda::check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
              "contract: shared memory of " + info.name);
  allowed.fetch_or(mine, std::memory_order_release);
}

}  // namespace rigel::backends::tensor
