// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What predicted times need to know of semirings, their tiles and problems in these, as data (costs/simt.hpp).
#pragma once

#include <rigel/backends/cuda/costs/simt.hpp>
#include <rigel/backends/cuda/simt/store.hpp>
#include <rigel/backends/cuda/simt/tiles.hpp>

#include <type_traits>

namespace rigel::backends::simt {

template <class A>
constexpr costs::Sums sums_of() {
  if constexpr (std::is_same_v<A, double>)
    return costs::Sums::f64;
  else if constexpr (std::is_integral_v<A>)
    return sizeof(A) == 8 ? costs::Sums::i64 : costs::Sums::i32;
  else
    return costs::Sums::other;
}

template <class S>
constexpr costs::Semiring facts_of() {
  using Element = typename S::element;
  using Accumulator = typename S::accumulator;
  costs::Semiring s;
  s.work = tuning<S>.work;
  s.sums = sums_of<Accumulator>();
  s.element = static_cast<int>(sizeof(Element));
  s.operand = static_cast<int>(sizeof(operand_t<S>));
  s.accumulator = static_cast<int>(sizeof(Accumulator));
  s.of_integers = std::is_integral_v<operand_t<S>>;
  s.of_doubles = std::is_same_v<operand_t<S>, double>;
  s.is_of_zoo = in_zoo<S>;
  s.computes_floats = computes_floats<S>;
  s.is_light_float = is_light_float<S>;
  s.widens = widens<S>;
  s.is_packed = is_packed<S>;
  s.is_of_float = std::is_same_v<Element, float>;
  s.has_short_sums = ShortFloat<Accumulator>;
  s.is_of_structs = is_of_structs<S>;
  s.is_of_user_structs = is_of_user_structs<S>;
  s.sums_powers = sums_powers<S>;
  s.has_special_powers = has_special_powers<S>;
  s.sums_exponentials = sums_exponentials<S>;
  s.is_transcendental = is_transcendental<S>;
  s.has_square_roots = has_square_roots<S>;
  s.bit_counts = bit_counts_of<S>;
  s.instructions_of_metric = instructions_of_metric<S>;
  s.result = scalar_of<result_t<S>>;
  return s;
}

template <class S>
inline constexpr costs::Semiring semiring_facts = facts_of<S>();

template <class S, class Shape>
constexpr costs::Tile tile_of() {
  costs::Tile t;
  t.role = Shape::role;
  t.m = Shape::m;
  t.n = Shape::n;
  t.blocks = Shape::blocks;
  t.threads = Shape::threads;
  t.outputs = Shape::outputs_m * Shape::outputs_n;
  t.takes_vectors = takes_vectors<S, Shape>;
  return t;
}

template <class S, class Shape>
inline constexpr costs::Tile tile_facts = tile_of<S, Shape>();

}  // namespace rigel::backends::simt
