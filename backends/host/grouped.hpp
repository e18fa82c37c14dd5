// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The innermost loop for transcendental semirings, whose ⊗ is one dependency chain of some forty instructions or more. The functor
// gets a whole block of outputs as one vector of several registers, so the processor can overlap that many chains.
#pragma once

#include <rigel/backends/host/fields.hpp>
#include <rigel/backends/host/widened.hpp>
#include <rigel/backends/host/winners.hpp>

namespace rigel::backends::host {

template <class Level, class S>
struct GroupedMicrokernel {
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;
  using Row = vector<Operand, Level::vector_bytes / sizeof(Operand)>;

  static constexpr int lanes = sizeof(Row) / sizeof(Operand);
  static constexpr int rows = Level::registers == 32 ? 4 : 2, few_rows = 1, vectors = 2;
  static constexpr int columns = vectors * lanes;
  static constexpr bool finishes = true;  // it has finish()

  /// The same as Microkernel::run.
  template <int Rows, bool Ordered>
  RIGEL_HOST_LOOP static void run(const S& semiring, std::int64_t k0, int steps, const Operand* __restrict__ a,
                                  const Operand* __restrict__ b, const Accumulator* in, std::int64_t in_stride,
                                  Accumulator* out, std::int64_t out_stride) {
    using Lanes = SumsOf<S, vector<Operand, Rows * columns>>;
    const auto x = chains<Rows, Ordered>(semiring, k0, steps, a, b, in, in_stride);
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < columns; ++j) out[i * out_stride + j] = Lanes::get(x, i * columns + j);
  }

  /// The same for the ends of chains: stores the results.
  template <int Rows, bool Ordered>
  RIGEL_HOST_LOOP static void finish(const S& semiring, std::int64_t k0, int steps, const Operand* __restrict__ a,
                                     const Operand* __restrict__ b, const Accumulator* in, std::int64_t in_stride,
                                     Operand* out) {
    store(out, semiring.result(chains<Rows, Ordered>(semiring, k0, steps, a, b, in, in_stride)));
  }

 private:
  template <int Rows, bool Ordered>
  RIGEL_MEMBER static auto chains(const S& semiring, std::int64_t k0, int steps, const Operand* a, const Operand* b,
                                  const Accumulator* in, std::int64_t in_stride) {
    using Block = vector<Operand, Rows * columns>;
    using Lanes = SumsOf<S, Block>;
    const S s = semiring;
    auto x = Lanes::all(S::identity());
    if (in)
      for (int i = 0; i < Rows; ++i)
        for (int j = 0; j < columns; ++j) Lanes::set(x, i * columns + j, in[i * in_stride + j]);
    for (int k = 0; k < steps; ++k) {
      Row block_a[Rows][vectors], block_b[Rows][vectors];
#pragma unroll
      for (int i = 0; i < Rows; ++i)
#pragma unroll
        for (int j = 0; j < vectors; ++j) {
          block_a[i][j] = splat<Row>(a[k * rows + i]);
          block_b[i][j] = load<Row>(b + k * columns + j * lanes);
        }
      x = host::step_on<Ordered>(s, x, load<Block>(block_a), load<Block>(block_b), k0 + k);
    }
    return x;
  }
};

template <class Level, class S>
constexpr auto loop_of() {
  if constexpr (is_winner<S>)
    return std::type_identity<WinnerMicrokernel<Level, S>>{};
  else if constexpr (has_fields<S>)
    return std::type_identity<FieldsMicrokernel<Level, S>>{};
  else if constexpr ((is_transcendental<S> && mode_of<S>() == Mode::vectors) || has_regular_step<Level, S>)
    return std::type_identity<GroupedMicrokernel<Level, S>>{};
  else
    return std::type_identity<Microkernel<Level, S>>{};
}
/// The innermost loop for S. A step of regular numbers is a chain of ten instructions that needs registers of its own.
template <class Level, class S>
using microkernel_for = typename decltype(loop_of<Level, of_operands_t<S>>())::type;

}  // namespace rigel::backends::host
