// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pieces of work that threads take from a common counter.
#pragma once

#include <cstddef>
#include <functional>

namespace rigel::detail {

/// Calls work(i) for each i < count on `threads` threads, of which the caller is one; 0: as many as the processor has. If some calls
/// fail, the others are made nevertheless; then throws what the one of the least i has thrown.
void share_work(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace rigel::detail
