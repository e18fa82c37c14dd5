// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The innermost loop: the accumulators of a block of `rows` × `columns` outputs stay in registers while k runs over a packed
// panel of A (`rows` values per k) and one of B (`columns` values per k).
#pragma once

#include <rigel/backends/host/lanes.hpp>
#include <rigel/backends/host/level.hpp>
#include <rigel/backends/host/powers.hpp>

namespace rigel::backends::host {

/// The microkernel for a block of outputs of semiring S at a level.
template <class Level, class S>
struct Microkernel {
  using R = Registers<Level, S>;
  using Row = typename R::Row;
  using Sums = typename R::Sums;
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;

  using Lanes = SumsOf<S, Row>;

  // For the zoo, accumulators fill three quarters of the registers; the rest holds a row of B, a value of A and intermediate
  // results. Users' functors may need more of those, so they get smaller blocks.
  static constexpr bool many = Level::registers == 32, several = vectors_of_sums<S> > 1;
  static constexpr int rows = several                              ? (many ? 4 : 2)
                              : R::mode == Mode::vectors           ? (many ? 12 : 6)
                              : R::mode == Mode::each_lane && many ? 8
                                                                   : 4;
  static constexpr int few_rows =
      R::mode == Mode::vectors && !several ? rows / 3 : 1;  // of blocks at an edge; there are those of one row, too
  static constexpr int vectors = R::mode == Mode::numbers ? 4 : 2;
  static constexpr int columns = vectors * R::lanes;
  static constexpr bool finishes = false;

  /// Continues the chains of `in` (of the identity if `in` is null) over k = k0, …, k0 + steps − 1, and stores them in `out`: `Rows`
  /// of the `rows` that packed A holds, from a on.
  template <int Rows, bool Ordered>
  RIGEL_HOST_LOOP static void run(const S& semiring, std::int64_t k0, int steps, const Operand* __restrict__ a,
                                  const Operand* __restrict__ b, const Accumulator* in, std::int64_t in_stride,
                                  Accumulator* out, std::int64_t out_stride) {
    const S s = semiring;
    Sums x[Rows][vectors];
    if (in) {
#pragma unroll
      for (int i = 0; i < Rows; ++i)
#pragma unroll
        for (int j = 0; j < vectors; ++j) x[i][j] = Lanes::load(in + i * in_stride + j * R::lanes);
    } else {
      const Sums identity = Lanes::all(S::identity());
#pragma unroll
      for (int i = 0; i < Rows; ++i)
#pragma unroll
        for (int j = 0; j < vectors; ++j) x[i][j] = identity;
    }
    for (int k = 0; k < steps; ++k) {
      Row row[vectors];
#pragma unroll
      for (int j = 0; j < vectors; ++j) row[j] = load<Row>(b + k * columns + j * R::lanes);
#pragma unroll
      for (int i = 0; i < Rows; ++i)
#pragma unroll
        for (int j = 0; j < vectors; ++j) x[i][j] = step<Ordered>(s, x[i][j], a[k * rows + i], row[j], k0 + k);
    }
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int j = 0; j < vectors; ++j) Lanes::store(out + i * out_stride + j * R::lanes, x[i][j]);
  }

 private:
  template <bool Ordered>
  RIGEL_MEMBER static Sums step(const S& s, Sums x, Operand a, Row b, std::int64_t k) {
    if constexpr (R::mode == Mode::vectors) {
      return host::step_on<Ordered>(s, x, splat<Row>(a), b, k);
    } else if constexpr (R::mode == Mode::each_lane) {
      Sums y = x;
#pragma unroll
      for (int j = 0; j < R::lanes; ++j) Lanes::set(y, j, host::step_on<Ordered>(s, Lanes::get(x, j), a, Operand(b[j]), k));
      return y;
    } else {
      return host::step_on<Ordered>(s, x, a, b, k);
    }
  }
};

}  // namespace rigel::backends::host
