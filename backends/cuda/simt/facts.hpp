// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What predicted times need to know of semirings, their tiles and problems in these, as data (costs/simt.hpp).
#pragma once

#include <rigel/backends/cuda/costs/simt.hpp>
#include <rigel/backends/cuda/simt/store.hpp>
#include <rigel/backends/cuda/simt/tiles.hpp>

#include <type_traits>

namespace rigel::backends::simt {

template <class S>
inline constexpr costs::Work work_of = costs::Work::other;
template <class E, class A>
inline constexpr costs::Work work_of<plus_times<E, A>> = costs::Work::plus_times;
template <class E, class A>
inline constexpr costs::Work work_of<min_plus<E, A>> = costs::Work::min_plus;
template <class E, class A>
inline constexpr costs::Work work_of<max_plus<E, A>> = costs::Work::min_plus;
template <class E, class A>
inline constexpr costs::Work work_of<max_min<E, A>> = costs::Work::max_min;
template <class E, class A>
inline constexpr costs::Work work_of<min_max<E, A>> = costs::Work::max_min;
template <class E, class A>
inline constexpr costs::Work work_of<max_times<E, A>> = costs::Work::max_times;
template <class E, class A>
inline constexpr costs::Work work_of<min_times<E, A>> = costs::Work::max_times;
template <class E, class A>
inline constexpr costs::Work work_of<l1<E, A>> = costs::Work::l1;
template <class E, class A>
inline constexpr costs::Work work_of<l2_squared<E, A>> = costs::Work::l2_squared;
template <class E, class A>
inline constexpr costs::Work work_of<linf<E, A>> = costs::Work::linf;
template <class E, class A>
inline constexpr costs::Work work_of<hamming<E, A>> = costs::Work::hamming;

template <class A>
constexpr costs::Sums sums_of() {
  if constexpr (std::is_same_v<A, double>)
    return costs::Sums::f64;
  else if constexpr (std::is_integral_v<A>)
    return sizeof(A) == 8 ? costs::Sums::i64 : costs::Sums::i32;
  else
    return costs::Sums::other;
}

/// Whether ⊕ of a semiring compares values and arguments, which takes some ten instructions.
template <class S>
inline constexpr bool adds_arguments = false;
template <class S>
inline constexpr bool adds_arguments<with_argument<S>> = true;

template <class S>
constexpr costs::Semiring facts_of() {
  using Element = typename S::element;
  using Accumulator = typename S::accumulator;
  costs::Semiring s;
  s.work = work_of<S>;
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
  s.adds_arguments = adds_arguments<S>;
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
constexpr costs::Role role_of() {
  if constexpr (is_whole_powers_tile<S, Shape>)
    return costs::Role::whole_powers;
  else if constexpr (computes_floats<S> && std::is_same_v<Shape, WideTile>)
    return costs::Role::wide;
  else if constexpr (std::is_same_v<Shape, SmallTile<S>>)
    return costs::Role::small;
  else if constexpr (std::is_same_v<Shape, LargeTile<S>>)
    return costs::Role::large;
  else
    return costs::Role::other;
}
template <class S, class Shape>
constexpr costs::Tile tile_of() {
  costs::Tile t;
  t.role = role_of<S, Shape>();
  t.is_small =
      std::is_same_v<Shape, SmallTile<S>> || std::is_same_v<Shape, SmallTile<l1<float>>>;  // the latter: of words.hpp
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
