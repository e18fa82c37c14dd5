// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clang vectors of a level's width, and how a semiring is applied to them.
#pragma once

#include <rigel/semirings.hpp>

#include <type_traits>
#include <utility>

namespace rigel::backends::host {

template <class T, int Lanes>
using vector = T __attribute__((ext_vector_type(Lanes)));

/// How a semiring is applied to a row of outputs.
enum class Mode {
  vectors,    // the functor takes vectors (takes_lanes)
  each_lane,  // the functor takes numbers and is called for each lane; the compiler vectorises that
  numbers     // one output at a time, if the accumulator is no number, or struct of numbers, of the operands' size
};

/// Whether T can be the lane of a vector.
template <class T>
inline constexpr bool is_lane = std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8;

/// Converts to any number of so many bytes.
template <std::size_t Bytes>
struct number_of {
  template <class T>
    requires(std::is_arithmetic_v<T> && sizeof(T) == Bytes)
  operator T() const;
};
template <class A, std::size_t Bytes, std::size_t... I>
constexpr bool holds_numbers(std::index_sequence<I...>) {
  return requires { A{(static_cast<void>(I), number_of<Bytes>{})...}; };
}

/// The number of fields of S's accumulator that are of the operands' size: 1 for such a number, 2 to 4 for a struct of such numbers,
/// else 0.
template <class S>
constexpr int fields_of() {
  using A = typename S::accumulator;
  constexpr std::size_t bytes = sizeof(operand_t<S>), count = sizeof(A) / bytes;
  if constexpr (is_lane<A>) {
    return sizeof(A) == bytes ? 1 : 0;
  } else if constexpr (std::is_aggregate_v<A> && std::is_trivially_copyable_v<A> && sizeof(A) % bytes == 0 && 2 <= count &&
                       count <= 4) {
    return holds_numbers<A, bytes>(std::make_index_sequence<count>{}) ? static_cast<int>(count) : 0;
  } else {
    return 0;
  }
}

template <class S>
constexpr Mode mode_of() {
  if constexpr (!is_lane<operand_t<S>>)
    return Mode::numbers;
  else if constexpr (takes_lanes<S>)
    return Mode::vectors;
  else
    return fields_of<S>() > 0 ? Mode::each_lane : Mode::numbers;
}

template <class S>
struct winner {
  static constexpr bool takes_lanes = false;
  using values = S;
};
template <class S>
struct winner<with_argument<S>> {
  static constexpr bool takes_lanes =
      mode_of<S>() == Mode::vectors && std::is_same_v<typename S::accumulator, operand_t<S>> && sizeof(operand_t<S>) >= 2;
  using values = std::conditional_t<takes_lanes, S, with_argument<S>>;
};

/// Whether S is with_argument of a semiring whose values are vectors here.
template <class S>
inline constexpr bool is_winner = winner<S>::takes_lanes;
/// The semiring of the values of such an S; else S.
template <class S>
using of_values_t = typename winner<S>::values;
template <class S>
RIGEL_FUNCTION const of_values_t<S>& of_values(const S& s) {
  if constexpr (is_winner<S>)
    return s.semiring;
  else
    return s;
}

/// The accumulators for a row of operands: a number or struct for one lane, a vector, or, field by field, several vectors. Row is a
/// vector or, for one lane, a number.
template <class S, class Row>
struct SumsOf {
  using Accumulator = typename S::accumulator;
  using Operand = operand_t<S>;
  static constexpr int lanes = sizeof(Row) / sizeof(Operand);
  static constexpr bool one = std::is_same_v<Row, Operand>;

  template <class V, int F>
  struct Fields {
    V field[F];
  };
  template <class V>
  static auto type_of() {
    if constexpr (one)
      return std::type_identity<Accumulator>{};
    else if constexpr (requires { typename S::template lanes_accumulator<V>; })
      return std::type_identity<typename S::template lanes_accumulator<V>>{};
    else if constexpr (is_lane<Accumulator>)
      return std::type_identity<vector<Accumulator, lanes>>{};
    else
      return std::type_identity<Fields<V, fields_of<S>()>>{};
  }
  using type = typename decltype(type_of<Row>())::type;
  static constexpr int fields = [] {
    if constexpr (one || is_lane<Accumulator>)
      return 1;
    else
      return static_cast<int>(sizeof(Accumulator) / sizeof(Operand));
  }();
  static_assert(fields == 1 || (sizeof(type) == fields * sizeof(Row) && sizeof(Accumulator) == fields * sizeof(Operand)));

  /// The fields of one accumulator, or of a row's.
  template <class T>
  struct Parts {
    T part[fields];
  };

  /// The accumulator of a lane.
  RIGEL_MEMBER static Accumulator get(const type& x, int lane) {
    if constexpr (one) {
      return x;
    } else if constexpr (fields == 1) {
      return x[lane];
    } else {
      const auto rows = __builtin_bit_cast(Parts<Row>, x);
      Parts<Operand> own;
      for (int f = 0; f < fields; ++f) own.part[f] = rows.part[f][lane];
      return __builtin_bit_cast(Accumulator, own);
    }
  }
  RIGEL_MEMBER static void set(type& x, int lane, const Accumulator& to) {
    if constexpr (one) {
      x = to;
    } else if constexpr (fields == 1) {
      x[lane] = to;
    } else {
      auto rows = __builtin_bit_cast(Parts<Row>, x);
      const auto own = __builtin_bit_cast(Parts<Operand>, to);
      for (int f = 0; f < fields; ++f) rows.part[f][lane] = own.part[f];
      x = __builtin_bit_cast(type, rows);
    }
  }
  RIGEL_MEMBER static type all(const Accumulator& from) {
    if constexpr (one) {
      return from;
    } else if constexpr (fields == 1) {
      return type(from);
    } else {
      const auto own = __builtin_bit_cast(Parts<Operand>, from);
      Parts<Row> rows;
      for (int f = 0; f < fields; ++f) rows.part[f] = Row(own.part[f]);
      return __builtin_bit_cast(type, rows);
    }
  }
  /// Those of neighbouring outputs.
  RIGEL_MEMBER static type load(const Accumulator* from) {
    if constexpr (fields == 1) {
      type x;
      __builtin_memcpy(&x, from, sizeof x);
      return x;
    } else {
      Operand parts[fields][lanes];
      for (int lane = 0; lane < lanes; ++lane) {
        const auto own = __builtin_bit_cast(Parts<Operand>, from[lane]);
        for (int f = 0; f < fields; ++f) parts[f][lane] = own.part[f];
      }
      type x;
      __builtin_memcpy(&x, parts, sizeof x);
      return x;
    }
  }
  RIGEL_MEMBER static void store(Accumulator* to, const type& x) {
    if constexpr (fields == 1) {
      __builtin_memcpy(to, &x, sizeof x);
    } else {
      Operand parts[fields][lanes];
      __builtin_memcpy(parts, &x, sizeof x);
      for (int lane = 0; lane < lanes; ++lane) {
        Parts<Operand> own;
        for (int f = 0; f < fields; ++f) own.part[f] = parts[f][lane];
        to[lane] = __builtin_bit_cast(Accumulator, own);
      }
    }
  }
};
template <class S, class V>
using sums_t = typename SumsOf<S, V>::type;

/// The vectors that are the accumulators for a row of operands, if S takes vectors.
template <class S>
inline constexpr int vectors_of_sums = 1;
template <class S>
  requires(mode_of<S>() == Mode::vectors && !is_lane<typename S::accumulator>)
inline constexpr int vectors_of_sums<S> = static_cast<int>(sizeof(typename S::accumulator) / sizeof(operand_t<S>));

/// Vectors of one operand: that of line i (a row of A, a column of B) and step t is at first + i·line + t·step, in elements.
template <class T>
struct Vectors {
  const T* first;
  std::int64_t line, step;
};

/// What the lanes of a vector are.
enum class LanesOf { batch, k };

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

/// Whether that step may round otherwise than the definition of S, which S::rounds_otherwise says.
template <class Level, class S>
inline constexpr bool rounds_regular_step = has_regular_step<Level, S>;
template <class Level, class S>
  requires has_regular_step<Level, S> &&
               requires { S::template rounds_otherwise<vector<operand_t<S>, Level::vector_bytes / sizeof(operand_t<S>)>>; }
inline constexpr bool rounds_regular_step<Level, S> =
    S::template rounds_otherwise<vector<operand_t<S>, Level::vector_bytes / sizeof(operand_t<S>)>>;

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
