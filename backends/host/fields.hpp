// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The innermost loop for functors whose accumulator is a struct of numbers: one array for each field, and a loop over the columns
// that the compiler vectorises if it can.
#pragma once

#include <rigel/backends/host/lanes.hpp>
#include <rigel/backends/host/level.hpp>
#include <rigel/detail/ordered.hpp>

namespace rigel::backends::host {

/// Whether S's accumulators are computed field by field.
template <class S>
inline constexpr bool has_fields = mode_of<S>() == Mode::each_lane && fields_of<S>() > 1;

/// The accumulators of a row of outputs, field by field.
template <class S, int Columns>
struct FieldRows {
  using Accumulator = typename S::accumulator;
  using Operand = operand_t<S>;
  static constexpr int fields = fields_of<S>();
  struct Parts {
    Operand part[fields];
  };
  Operand field[fields][Columns];

  RIGEL_MEMBER Accumulator get(int j) const {
    Parts own;
    for (int f = 0; f < fields; ++f) own.part[f] = field[f][j];
    return __builtin_bit_cast(Accumulator, own);
  }
  RIGEL_MEMBER void set(int j, const Accumulator& x) {
    const auto own = __builtin_bit_cast(Parts, x);
    for (int f = 0; f < fields; ++f) field[f][j] = own.part[f];
  }
};

template <class Level, class S>
struct FieldsMicrokernel {
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;
  static constexpr int columns = 2 * Level::vector_bytes / static_cast<int>(sizeof(Operand));
  static constexpr int rows = fields_of<S>() == 2 ? 2 : 1, few_rows = 1;
  static constexpr bool finishes = false;

  /// The same as Microkernel::run.
  template <int Rows, bool Ordered>
  RIGEL_HOST_LOOP static void run(const S& semiring, std::int64_t k0, int steps, const Operand* __restrict__ a,
                                  const Operand* __restrict__ b, const Accumulator* in, std::int64_t in_stride,
                                  Accumulator* out, std::int64_t out_stride) {
    const S s = semiring;
    FieldRows<S, columns> x[Rows];
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < columns; ++j) x[i].set(j, in ? in[i * in_stride + j] : Accumulator(S::identity()));
    for (int k = 0; k < steps; ++k)
#pragma unroll
      for (int i = 0; i < Rows; ++i) {
        const Operand own = a[k * rows + i];
        const Operand* const row = b + k * columns;
        for (int j = 0; j < columns; ++j) x[i].set(j, detail::step_on<Ordered>(s, x[i].get(j), own, row[j], k0 + k));
      }
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < columns; ++j) out[i * out_stride + j] = x[i].get(j);
  }
};

}  // namespace rigel::backends::host
