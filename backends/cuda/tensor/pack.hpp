// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass that brings operands into the workspace in a layout that the kernels can copy: K-major, aligned to 16 bytes, zeros after
// the last element. For operands whose strides, alignment or extents do not allow 16-byte copies as they are.
#pragma once

#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/tensor/operand.hpp>
#include <rigel/detail/workspace.hpp>
#include <rigel/registry.hpp>

#include <algorithm>

namespace rigel::backends::tensor {

/// Elements in a packed row (of A) or column (of B).
inline std::int64_t pitch_of(std::int64_t k, std::size_t size) {
  const std::int64_t width = 16 / static_cast<std::int64_t>(size);
  return (k + width - 1) / width * width;
}
/// Bytes of a packed operand.
inline std::size_t packed_bytes(const Operand& o, std::int64_t lines, std::int64_t k) {
  return detail::aligned(static_cast<std::size_t>(matrices_of(o) * lines * pitch_of(k, o.size)) * o.size);
}
/// Blocks that pack it.
inline std::int64_t packing_blocks(const Operand& o, std::int64_t lines, std::int64_t k) {
  return matrices_of(o) * ((lines + 63) / 64) * ((k + 63) / 64);
}

/// What a launch of a pass gets: the parameters of two operands, of which the first has `first_blocks` blocks.
template <class Parameters>
struct PassParameters {
  Parameters of[2];
  unsigned first_blocks;

  /// The operand of this block, and the block's number in it.
  __device__ __forceinline__ const Parameters& operand() const { return of[is_second()]; }
  __device__ __forceinline__ unsigned block() const { return blockIdx.x - (is_second() ? first_blocks : 0); }

 private:
  __device__ __forceinline__ bool is_second() const { return blockIdx.x >= first_blocks; }
};

/// The operands of a call that a pass brings into the workspace: one launch for both.
class Passes {
 public:
  struct Pass {
    Lines lines;
    void* to;
    std::int64_t blocks() const { return packing_blocks(*lines.operand, lines.lines, lines.k); }
  };

  void add(const Lines& lines, void* to) {
    const Pass pass{lines, to};
    if (pass.blocks() > 0) list_[count_++] = pass;
  }

  /// Bytes of an element; 0 if there is no operand.
  std::size_t size() const { return count_ == 0 ? 0 : list_[0].lines.operand->size; }

  /// launch(PassParameters, blocks), where parameters_of(pass) are those of an operand. Two launches if
  /// they have too many blocks for one.
  template <class ParametersOf, class Launch>
  void enqueue(const ParametersOf& parameters_of, const Launch& launch) const {
    using Parameters = decltype(parameters_of(list_[0]));
    const auto enqueue_one = [&](const Pass& pass) {
      launch(PassParameters<Parameters>{{parameters_of(pass), {}}, static_cast<unsigned>(pass.blocks())}, pass.blocks());
    };
    if (count_ == 0) return;
    if (count_ == 1) return enqueue_one(list_[0]);
    if (list_[0].blocks() + list_[1].blocks() > cuda::max_grid) {
      enqueue_one(list_[0]);
      return enqueue_one(list_[1]);
    }
    launch(PassParameters<Parameters>{{parameters_of(list_[0]), parameters_of(list_[1])},
                                      static_cast<unsigned>(list_[0].blocks())},
           list_[0].blocks() + list_[1].blocks());
  }

 private:
  Pass list_[2];
  int count_ = 0;
};

/// The bytes that a pass reads and writes of those operands of which it writes bytes_of(lines), if that is not 0.
template <class BytesOf>
double pass_bytes(const Product& p, const BytesOf& bytes_of) {
  double bytes = 0;
  for (const Lines& g : {lines_of_a(p), lines_of_b(p)})
    if (const std::size_t written = bytes_of(g))
      bytes +=
          static_cast<double>(written + static_cast<std::size_t>(matrices_of(*g.operand) * g.lines * g.k) * g.operand->size);
  return bytes;
}

/// Enqueues the pass that packs operands. It is compiled once, in pack.cpp, for all architectures; cuda.hopper, compiled for one, uses
/// it too.
void pack_operands(const Passes& passes, const cuda::Launches& launches);

}  // namespace rigel::backends::tensor
