// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The disk cache of kernels from text. docs/runtime.md says where it is and what is in it.
#pragma once

#include <cstdint>
#include <string>

namespace rigel::runtime {

/// The cache as it is now.
struct CacheState {
  std::string folder;         // empty if the cache is off
  std::string unused;         // why the folder is not used; empty if it is, or will be made
  std::uint64_t entries = 0;  // kernels
  std::uint64_t bytes = 0;    // of their files
  std::uint64_t limit = 0;    // the most bytes; kernels that were used longest ago are removed when there are more
};

/// Throws Error(invalid_argument) if RIGEL_CACHE_SIZE is no number of bytes.
CacheState cache_state();

/// Removes all kernels from the folder, and what processes that ended early have left there. Returns the number of kernels. Processes that
/// use them keep theirs.
std::uint64_t clear_cache();

}  // namespace rigel::runtime
