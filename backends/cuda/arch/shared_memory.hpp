// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much shared memory a multiprocessor has (CUDA C++ Programming Guide, Compute Capabilities).
#pragma once

namespace rigel::arch {

inline constexpr int shared_memory_of_sm_80 = 164 * 1024, shared_memory_of_sm_90 = 228 * 1024;  // bytes

/// Whether a multiprocessor that has so much holds `blocks` blocks with `bytes` each; every block takes 1 KB more.
constexpr bool holds(int shared_memory, int blocks, int bytes) { return blocks * (bytes + 1024) <= shared_memory; }

}  // namespace rigel::arch
