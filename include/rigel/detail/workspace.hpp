// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How arrays share a workspace.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rigel::detail {

/// Workspaces, and the arrays in them, start at multiples of this many bytes: a sector of every GPU's memory, and several
/// cache lines of a host.
inline constexpr std::size_t workspace_alignment = 256;

/// Bytes rounded up to where the next array starts.
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

/// Arrays one after the other. An offset is that of the array in the workspace.
class WorkspaceLayout {
 public:
  /// Appends an array of `count` elements of `size` bytes, and returns its offset.
  constexpr std::size_t add(std::int64_t count, std::size_t size) {
    const std::size_t offset = bytes_;
    bytes_ += aligned(static_cast<std::size_t>(count) * size);
    return offset;
  }
  constexpr std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace rigel::detail
