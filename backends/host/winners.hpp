// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The innermost loop of with_argument: vectors of values, and vectors of the k that won, in integers of the values' size. They
// count from the block's first k, so they fit into 16 bits, too.
#pragma once

#include <rigel/backends/host/microkernel.hpp>

namespace rigel::backends::host {

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

template <class Level, class S>
struct WinnerMicrokernel {
  using V = of_values_t<S>;
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;
  static constexpr int lanes = Level::vector_bytes / sizeof(Operand);
  using Row = vector<Operand, lanes>;
  using Index = std::conditional_t<sizeof(Operand) == 8, std::int64_t,
                                   std::conditional_t<sizeof(Operand) == 4, std::int32_t, std::int16_t>>;
  using Indices = vector<Index, lanes>;

  static constexpr int rows = Level::registers == 32 ? 6 : 2, few_rows = 1, vectors = 2, columns = vectors * lanes;
  static constexpr bool finishes = false;

  /// The same as Microkernel::run.
  template <int Rows, bool Ordered>
  RIGEL_HOST_LOOP static void run(const S& semiring, std::int64_t k0, int steps, const Operand* __restrict__ a,
                                  const Operand* __restrict__ b, const Accumulator* in, std::int64_t in_stride,
                                  Accumulator* out, std::int64_t out_stride) {
    const V s = semiring.semiring;
    constexpr Index before = -1, none = -2;  // k of the chain before this block of K, and of the identity
    Row x[Rows][vectors];
    Indices winner[Rows][vectors];
    const auto each = [](const auto& f) __attribute__((always_inline)) {
#pragma unroll
      for (int i = 0; i < Rows; ++i)
#pragma unroll
        for (int j = 0; j < vectors; ++j) f(i, j);
    };
    each([&](int i, int j) __attribute__((always_inline)) {
      winner[i][j] = Indices(none);
      x[i][j] = Row(V::identity());
      if (in)
        for (int lane = 0; lane < lanes; ++lane) {
          const Accumulator& from = in[i * in_stride + j * lanes + lane];
          x[i][j][lane] = from.value;
          winner[i][j][lane] = from.index < 0 ? none : before;
        }
    });
    const auto add = [&]<bool Replaces>(int k) __attribute__((always_inline)) {
      Row row[vectors];
#pragma unroll
      for (int j = 0; j < vectors; ++j) row[j] = load<Row>(b + k * columns + j * lanes);
      each([&](int i, int j) __attribute__((always_inline)) {
        const Row next = product<Ordered>(s, a[k * rows + i], row[j]);
        // The first of equal values wins, and NaN against numbers; any product that is as good wins against the identity.
        const Row best = sum<Ordered>(s, x[i][j], next);
        auto keeps = best == x[i][j];
        if constexpr (Ordered)
          keeps = ~((best < x[i][j]) | (best > x[i][j]));  // also a NaN of the chain before
        else
          keeps = (keeps & (next == next)) | (x[i][j] != x[i][j]);
        if constexpr (Replaces)
          keeps &= ~(__builtin_convertvector(winner[i][j] == none, decltype(keeps)) & (next == x[i][j]));
        x[i][j] = math::select(keeps, x[i][j], next);
        winner[i][j] = keeps ? winner[i][j] : Indices(static_cast<Index>(k));
      });
    };
    const auto some_have_none = [&]() __attribute__((always_inline)) {
      auto some = winner[0][0] == none;
      each([&](int i, int j) __attribute__((always_inline)) { some |= winner[i][j] == none; });
      return __builtin_reduce_or(some) != 0;
    };
    int k = 0;
    for (; k < steps && some_have_none(); ++k) add.template operator()<true>(k);
    for (; k < steps; ++k) add.template operator()<false>(k);
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < vectors; ++j)
        for (int lane = 0; lane < lanes; ++lane) {
          const Index own = winner[i][j][lane];
          const std::int64_t index = own >= 0              ? k0 + own
                                     : in && own == before ? in[i * in_stride + j * lanes + lane].index
                                                           : -1;
          out[i * out_stride + j * lanes + lane] = {x[i][j][lane], index};
        }
  }

 private:
  template <bool Ordered>
  RIGEL_MEMBER static Row product(const V& s, Operand a, Row b) {
    if constexpr (Ordered && detail::has_ordered_multiply<V>)
      return s.multiply_if_ordered(splat<Row>(a), b);
    else
      return s.multiply(splat<Row>(a), b);
  }
  template <bool Ordered>
  RIGEL_MEMBER static Row sum(const V& s, Row x, Row y) {
    if constexpr (Ordered && detail::has_ordered_add<V>)
      return s.add_if_ordered(x, y);
    else
      return s.add(x, y);
  }
};

}  // namespace rigel::backends::host
