// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the kernels of closure() read and write, and the operations of its semiring on elements.
#pragma once

#include <rigel/detail/absorbing.hpp>
#include <rigel/detail/call.hpp>

namespace rigel::detail {

/// Whether a semiring says itself what stands for no path.
template <class S>
concept KnowsNoPath = requires(typename S::accumulator x) {
  { S::is_no_path(x) } -> std::convertible_to<bool>;
};

/// The semiring that closure() computes in: S itself, if it says of its identity() that it absorbs, or what stands for no path.
template <class S>
using closed_t = std::conditional_t<KnowsNoPath<S> || std::is_final_v<S> || requires { S::annihilator(); }, S, Absorbing<S>>;

/// In place of an index type where no predecessors are kept.
struct no_index {};

/// What the kernels of one closure read and write, passed by value. Batch l counts graphs, b is the width of a block.
template <class S, class Index>
struct ClosureData {
  using element = typename S::element;
  using accumulator = typename S::accumulator;
  static constexpr bool tracks = !std::is_same_v<Index, no_index>;
  /// Whether NaN wins against every operand of ⊗. A user's identity() may absorb it.
  static constexpr bool nan_absorbs = in_zoo<S>;

  S semiring;
  std::int64_t batches, n;
  bool by_rows;             // D's rows are contiguous, or at least more so than its columns
  Strided<element> d;       // n × n
  Strided<Index> p;         // n × n predecessors
  Strided<element> square;  // b × b: the closed diagonal block; with predecessors, its multipliers
  Strided<element> left;    // n × b
  Strided<element> right;   // b × n
  Strided<Index> right_p;   // b × n
  std::int64_t* cycle;      // l·n + v for the first vertex v that is better than one(), else the largest number

  RIGEL_MEMBER element merge(element x, element y) const {
    return convert<element>(semiring.add(static_cast<accumulator>(x), static_cast<accumulator>(y)));
  }
  /// Paths joined: rounded to the element type, as everything that is stored.
  RIGEL_MEMBER element join(element x, element y) const {
    using Operand = operand_t<S>;
    return convert<element>(semiring.multiply(static_cast<Operand>(x), static_cast<Operand>(y)));
  }
  /// Whether x replaces y: a strict improvement, or the first NaN.
  RIGEL_MEMBER bool improves(element x, element y) const {
    const auto u = static_cast<accumulator>(x), v = static_cast<accumulator>(y);
    return v == v && !(semiring.add(u, v) == v);
  }
  RIGEL_MEMBER static element one() { return convert<element>(accumulator(S::one())); }
  RIGEL_MEMBER static element identity() { return convert<element>(accumulator(S::identity())); }

  /// No path: the identity, and whatever else the semiring takes for it.
  RIGEL_MEMBER static bool is_no_path(element x) {
    if constexpr (KnowsNoPath<S>)
      return S::is_no_path(static_cast<accumulator>(x));
    else
      return static_cast<accumulator>(x) == static_cast<accumulator>(identity());
  }

  /// The identity in place of anything else that stands for no path. Operations take no other than that.
  RIGEL_MEMBER static element normal(element x) {
    if constexpr (KnowsNoPath<S>)
      return is_no_path(x) ? identity() : x;
    else
      return x;
  }
  /// The predecessor that goes with a path: none with NaN, of which no path is the best one.
  RIGEL_MEMBER static Index predecessor(element path, Index vertex) {
    return path == path ? vertex : static_cast<Index>(-1);
  }

  /// Item e of a batch of matrices of the given extents, in the order of D's memory.
  struct Item {
    std::int64_t l, i, j;
  };
  RIGEL_MEMBER Item item(std::int64_t e, std::int64_t rows, std::int64_t columns) const {
    const std::int64_t inner = by_rows ? columns : rows, l = e / (rows * columns), r = e % (rows * columns);
    return by_rows ? Item{l, r / inner, r % inner} : Item{l, r % inner, r / inner};
  }
};

}  // namespace rigel::detail
