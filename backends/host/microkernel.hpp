// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The innermost loop: the accumulators of a block of `rows` × `columns` outputs stay in registers while k runs over a packed
// panel of A (`rows` values per k) and one of B (`columns` values per k).
#pragma once

#include <rigel/backends/host/lanes.hpp>
#include <rigel/backends/host/level.hpp>

namespace rigel::backends::host {

template <class S>
inline constexpr bool has_ordered_add = requires(const S s, typename S::accumulator x) { s.add_if_ordered(x, x); };
template <class S>
inline constexpr bool has_ordered_multiply = requires(const S s, operand_t<S> a) { s.multiply_if_ordered(a, a); };

/// Whether S has shorter forms of its operations for operands and products that are not NaN. Only semirings of the zoo count. A
/// user's functor that inherits these forms may have another ⊗ or ⊕, and its ⊗ must not see infinities that no operand holds.
/// If minimum() is one instruction, no form is shorter.
template <class S>
inline constexpr bool has_ordered_form = in_zoo<S> && std::is_floating_point_v<operand_t<S>> &&
                                         (has_ordered_add<S> || has_ordered_multiply<S>) && !math::minimum_is_instruction;

/// x ⊕ (a ⊗ b) on numbers or vectors. If Ordered, neither a, b nor a ⊗ b is NaN.
template <bool Ordered, class S, class X, class T>
RIGEL_FUNCTION X step_on(const S& s, const X& x, T a, T b, std::int64_t k) {
  if constexpr (Ordered && has_ordered_multiply<S>)
    return s.add_if_ordered(x, s.multiply_if_ordered(a, b));
  else if constexpr (Ordered)
    return s.add_if_ordered(x, s.multiply(a, b));
  else
    return rigel::step(s, x, a, b, k);
}

/// The microkernel for a block of outputs of semiring S at a level.
template <class Level, class S>
struct Microkernel {
  using R = Registers<Level, S>;
  using Row = typename R::Row;
  using Sums = typename R::Sums;
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;

  // For the zoo, accumulators fill three quarters of the registers; the rest holds a row of B, a value of A and intermediate
  // results. Users' functors may need more of those, so they get smaller blocks.
  static constexpr bool many = Level::registers == 32;
  static constexpr int rows = R::mode == Mode::vectors ? (many ? 12 : 6) : R::mode == Mode::each_lane && many ? 8 : 4;
  static constexpr int vectors = R::mode == Mode::numbers ? 4 : 2;
  static constexpr int columns = vectors * R::lanes;

  /// Continues the chains of `in` (of the identity if `in` is null) over k = k0, …, k0 + steps − 1, and stores them in `out`.
  template <bool Ordered>
  RIGEL_HOST_LOOP static void run(const S& semiring, std::int64_t k0, int steps, const Operand* __restrict__ a,
                                  const Operand* __restrict__ b, const Accumulator* in, std::int64_t in_stride,
                                  Accumulator* out, std::int64_t out_stride) {
    const S s = semiring;
    Sums x[rows][vectors];
    if (in) {
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < vectors; ++j) x[i][j] = load<Sums>(in + i * in_stride + j * R::lanes);
    } else {
      Accumulator identities[R::lanes];
      for (int j = 0; j < R::lanes; ++j) identities[j] = S::identity();
      const Sums identity = load<Sums>(identities);
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < vectors; ++j) x[i][j] = identity;
    }
    for (int k = 0; k < steps; ++k) {
      Row row[vectors];
#pragma unroll
      for (int j = 0; j < vectors; ++j) row[j] = load<Row>(b + k * columns + j * R::lanes);
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < vectors; ++j) x[i][j] = step<Ordered>(s, x[i][j], a[k * rows + i], row[j], k0 + k);
    }
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < vectors; ++j) store(out + i * out_stride + j * R::lanes, x[i][j]);
  }

 private:
  template <bool Ordered>
  RIGEL_MEMBER static Sums step(const S& s, Sums x, Operand a, Row b, std::int64_t k) {
    if constexpr (R::mode == Mode::vectors) {
      return step_on<Ordered>(s, x, splat<Row>(a), b, k);
    } else if constexpr (R::mode == Mode::each_lane) {
      Sums y;
#pragma unroll
      for (int j = 0; j < R::lanes; ++j) y[j] = step_on<Ordered>(s, Accumulator(x[j]), a, Operand(b[j]), k);
      return y;
    } else {
      return step_on<Ordered>(s, x, a, b, k);
    }
  }
};

}  // namespace rigel::backends::host
