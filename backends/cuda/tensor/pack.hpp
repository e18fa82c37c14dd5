// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass that brings an operand into the workspace in a layout that the kernels can copy: K-major, aligned to 16 bytes,
// zeros after the last element. For operands whose strides, alignment or extents do not allow 16-byte copies as they are.
#pragma once

#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/detail/workspace.hpp>
#include <rigel/registry.hpp>

#include <algorithm>

namespace rigel::backends::tensor {

/// Elements in a packed row (of A) or column (of B).
inline std::int64_t pitch_of(std::int64_t k, std::size_t size) {
  const std::int64_t width = 16 / static_cast<std::int64_t>(size);
  return (k + width - 1) / width * width;
}
/// Matrices to pack: one if all batches share it.
inline std::int64_t matrices_of(const Operand& o) { return o.batch_stride == 0 ? 1 : o.batches; }
/// Bytes of a packed operand.
inline std::size_t packed_bytes(const Operand& o, std::int64_t lines, std::int64_t k) {
  return detail::aligned(static_cast<std::size_t>(matrices_of(o) * lines * pitch_of(k, o.size)) * o.size);
}
/// Blocks of the launch that packs it.
inline std::int64_t packing_blocks(const Operand& o, std::int64_t lines, std::int64_t k) {
  return matrices_of(o) * ((lines + 63) / 64) * ((k + 63) / 64);
}

/// Enqueues the pass. It is compiled once, in pack.cpp, for all architectures; cuda.hopper, compiled for one, uses it too.
void pack_operand(const Operand& o, std::int64_t lines, std::int64_t line_stride, std::int64_t k, std::int64_t k_stride,
                  void* to, cudaStream_t stream, const std::string& kernel);

}  // namespace rigel::backends::tensor
