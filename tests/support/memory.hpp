// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of bytes between the host and an execution space's memory: one function for all types, which keeps tests cheap to
// compile.
#pragma once

#include <cstddef>

namespace support {

/// Both wait for all work.
template <class Exec>
void copy_in(void* to, const void* from_host, std::size_t bytes);
template <class Exec>
void copy_out(void* to_host, const void* from, std::size_t bytes);

}  // namespace support
