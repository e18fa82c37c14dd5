// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clang vectors of a level's width, and how a semiring is applied to them.
#pragma once

#include <rigel/semirings.hpp>

#include <utility>

namespace rigel::backends::host {

template <class T, int Lanes>
using vector = T __attribute__((ext_vector_type(Lanes)));

/// How a semiring is applied to a row of outputs.
enum class Mode {
  vectors,    // the functor takes vectors (takes_lanes)
  each_lane,  // the functor takes numbers and is called for each lane; the compiler vectorises that
  numbers     // one output at a time, if the accumulator is a struct or has another size than the operands
};

/// Whether T can be the lane of a vector.
template <class T>
inline constexpr bool is_lane = std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8;

template <class S>
constexpr Mode mode_of() {
  if constexpr (!is_lane<operand_t<S>>)
    return Mode::numbers;
  else if constexpr (takes_lanes<S>)
    return Mode::vectors;
  else if constexpr (is_lane<typename S::accumulator> && sizeof(typename S::accumulator) == sizeof(operand_t<S>))
    return Mode::each_lane;
  else
    return Mode::numbers;
}

// The accumulators for a vector V of operands: a vector, or a struct of vectors.
template <class S, class V>
struct sums {
  using type = vector<typename S::accumulator, sizeof(V) / sizeof(lane_t<V>)>;
};
template <class S, class V>
  requires requires { typename S::template lanes_accumulator<V>; }
struct sums<S, V> {
  using type = typename S::template lanes_accumulator<V>;
};
template <class S, class V>
using sums_t = typename sums<S, V>::type;

/// The types in which the loops of semiring S run at a level: `Row` is one register of B, and `Sums` are the accumulators for
/// it.
template <class Level, class S>
struct Registers {
  static constexpr Mode mode = mode_of<S>();
  static constexpr int lanes = Level::vector_bytes / sizeof(operand_t<S>);
  using Row = vector<operand_t<S>, lanes>;
  using Sums = sums_t<S, Row>;
};
template <class Level, class S>
  requires(mode_of<S>() == Mode::numbers)
struct Registers<Level, S> {
  static constexpr Mode mode = Mode::numbers;
  static constexpr int lanes = 1;
  using Row = operand_t<S>;
  using Sums = typename S::accumulator;
};

/// Whether S has a shorter step for vectors of regular numbers at a level. S::is_regular() tells, lane by lane, which numbers are regular.
/// S::step() of the same numbers has the same bits, so that a row's bits do not depend on other rows.
template <class Level, class S>
inline constexpr bool has_regular_step =
    requires(const S s, vector<operand_t<S>, Level::vector_bytes / sizeof(operand_t<S>)> x) {
      requires takes_lanes<S>;
      S::is_regular(x);
      s.step_if_regular(x, x, x);
    };

/// A vector (or number) from unaligned memory.
template <class V, class T>
RIGEL_FUNCTION V load(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}
template <class V, class T>
RIGEL_FUNCTION void store(T* p, V v) {
  __builtin_memcpy(p, &v, sizeof(V));
}

/// All lanes equal to x.
template <class V, class T>
RIGEL_FUNCTION V splat(T x) {
  return V(x);
}

// For every pair of rows i and i + Half of a square block, exchanges their off-diagonal parts.
template <int Half, class V, int... J>
RIGEL_FUNCTION void exchange(V* row, std::integer_sequence<int, J...>) {
  constexpr int lanes = sizeof...(J);
  for (int i = 0; i < lanes; ++i) {
    if (i & Half) continue;
    const V upper = row[i], lower = row[i + Half];
    row[i] = __builtin_shufflevector(upper, lower, ((J & Half) ? lanes + J - Half : J)...);
    row[i + Half] = __builtin_shufflevector(upper, lower, ((J & Half) ? lanes + J : J + Half)...);
  }
}
template <int Half, class V, class Index>
RIGEL_FUNCTION void exchange_from(V* row, Index index) {
  if constexpr (Half > 0) {
    exchange<Half>(row, index);
    exchange_from<Half / 2>(row, index);
  }
}

/// Transposes the square block whose rows are the vectors `row`.
template <class V>
RIGEL_FUNCTION void transpose(V* row) {
  constexpr int lanes = sizeof(V) / sizeof(lane_t<V>);
  exchange_from<lanes / 2>(row, std::make_integer_sequence<int, lanes>{});
}

}  // namespace rigel::backends::host
