// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The innermost loop for transcendental semirings, whose ⊗ is one dependency chain of some forty instructions or more. The functor
// gets a whole block of outputs as one vector of several registers, so the processor can overlap that many chains.
#pragma once

#include <rigel/backends/host/microkernel.hpp>

namespace rigel::backends::host {

template <class Level, class S>
struct GroupedMicrokernel {
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;
  using Row = vector<Operand, Level::vector_bytes / sizeof(Operand)>;

  static constexpr int lanes = sizeof(Row) / sizeof(Operand);
  static constexpr int rows = Level::registers == 32 ? 4 : 2, vectors = 2;
  static constexpr int columns = vectors * lanes;
  using Block = vector<Operand, rows * columns>;
  using Sums = sums_t<S, Block>;

  /// The same as Microkernel::run.
  template <bool Ordered>
  RIGEL_HOST_LOOP static void run(const S& semiring, std::int64_t k0, int steps, const Operand* __restrict__ a,
                                  const Operand* __restrict__ b, const Accumulator* in, std::int64_t in_stride,
                                  Accumulator* out, std::int64_t out_stride) {
    const S s = semiring;
    // The block's accumulators, field by field. Sums is a vector, or a struct of vectors of the operands' type (log_sum).
    constexpr std::size_t bytes_of_field = sizeof(Block);
    constexpr int fields = sizeof(Sums) / bytes_of_field;
    static_assert(sizeof(Accumulator) == fields * sizeof(Operand));
    Operand field[fields][rows][columns];
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        const Accumulator x = in ? in[i * in_stride + j] : Accumulator(S::identity());
        for (int f = 0; f < fields; ++f) field[f][i][j] = reinterpret_cast<const Operand*>(&x)[f];
      }
    Sums x = load<Sums>(&field[0][0][0]);
    for (int k = 0; k < steps; ++k) {
      Row block_a[rows][vectors], block_b[rows][vectors];
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < vectors; ++j) {
          block_a[i][j] = splat<Row>(a[k * rows + i]);
          block_b[i][j] = load<Row>(b + k * columns + j * lanes);
        }
      x = detail::step_on<Ordered>(s, x, load<Block>(block_a), load<Block>(block_b), k0 + k);
    }
    store(&field[0][0][0], x);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        for (int f = 0; f < fields; ++f) reinterpret_cast<Operand*>(out + i * out_stride + j)[f] = field[f][i][j];
  }
};

/// The innermost loop for S. A step of regular numbers is a chain of ten instructions that needs registers of its own.
template <class Level, class S>
using microkernel_for =
    std::conditional_t<(is_transcendental<S> && mode_of<S>() == Mode::vectors) || has_regular_step<Level, S>,
                       GroupedMicrokernel<Level, S>, Microkernel<Level, S>>;

}  // namespace rigel::backends::host
