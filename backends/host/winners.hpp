// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The innermost loops of with_argument: vectors of values, and vectors of the k that won, in integers of the values' size. They
// count from the block's first k, so they fit into 16 bits, too.
#pragma once

#include <rigel/backends/host/microkernel.hpp>

namespace rigel::backends::host {

/// A vector of chains of S = with_argument<V>.
template <class Level, class S>
struct Winners {
  using V = of_values_t<S>;
  using Operand = operand_t<S>;
  static constexpr int lanes = Level::vector_bytes / sizeof(Operand);
  using Row = vector<Operand, lanes>;
  using Index = std::conditional_t<sizeof(Operand) == 8, std::int64_t,
                                   std::conditional_t<sizeof(Operand) == 4, std::int32_t, std::int16_t>>;
  using Indices = vector<Index, lanes>;
  // The k of a chain before this block of K, and that of the identity.
  static constexpr Index before = -1, none = -2;

  Row value;
  Indices index;

  /// ⊕ the products of a and b, number k of the block. The first of equal values wins, and NaN against numbers. If `Replaces`, any
  /// product that is as good wins against the identity.
  template <bool Ordered, bool Replaces>
  RIGEL_MEMBER void add(const V& s, Row a, Row b, int k) {
    const Row next = product<Ordered>(s, a, b), best = sum<Ordered>(s, value, next);
    auto keeps = best == value;
    if constexpr (Ordered)
      keeps = ~((best < value) | (best > value));  // also a NaN of the chain before
    else
      keeps = (keeps & (next == next)) | (value != value);
    if constexpr (Replaces) keeps &= ~(__builtin_convertvector(index == none, decltype(keeps)) & (next == value));
    value = math::select(keeps, value, next);
    index = keeps ? index : Indices(static_cast<Index>(k));
  }

 private:
  template <bool Ordered>
  RIGEL_MEMBER static Row product(const V& s, Row a, Row b) {
    if constexpr (Ordered && detail::has_ordered_multiply<V>)
      return s.multiply_if_ordered(a, b);
    else
      return s.multiply(a, b);
  }
  template <bool Ordered>
  RIGEL_MEMBER static Row sum(const V& s, Row x, Row y) {
    if constexpr (Ordered && detail::has_ordered_add<V>)
      return s.add_if_ordered(x, y);
    else
      return s.add(x, y);
  }
};

/// Runs add(k, Replaces) for k = 0, …, steps − 1: `Replaces` until every chain of `x` has had a product that is no worse than the identity.
template <class W, int Rows, int Columns, class Add>
RIGEL_FUNCTION void add_steps(const W (&x)[Rows][Columns], int steps, const Add& add) {
  const auto some_have_none = [&]() __attribute__((always_inline)) {
    auto some = x[0][0].index == W::none;
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int j = 0; j < Columns; ++j) some |= x[i][j].index == W::none;
    return __builtin_reduce_or(some) != 0;
  };
  int k = 0;
  for (; k < steps && some_have_none(); ++k) add.template operator()<true>(k);
  for (; k < steps; ++k) add.template operator()<false>(k);
}

template <class Level, class S>
struct WinnerMicrokernel {
  using W = Winners<Level, S>;
  using Row = typename W::Row;
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;
  static constexpr int lanes = W::lanes;
  static constexpr int rows = Level::registers == 32 ? 6 : 2, few_rows = 1, vectors = 2, columns = vectors * lanes;
  static constexpr bool finishes = false;

  /// The same as Microkernel::run.
  template <int Rows, bool Ordered>
  RIGEL_HOST_LOOP static void run(const S& semiring, std::int64_t k0, int steps, const Operand* __restrict__ a,
                                  const Operand* __restrict__ b, const Accumulator* in, std::int64_t in_stride,
                                  Accumulator* out, std::int64_t out_stride) {
    const auto s = semiring.semiring;
    W x[Rows][vectors];
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int j = 0; j < vectors; ++j) {
        x[i][j] = {Row(S::identity().value), W::none};
        if (in)
          for (int lane = 0; lane < lanes; ++lane) {
            const Accumulator& from = in[i * in_stride + j * lanes + lane];
            x[i][j].value[lane] = from.value;
            x[i][j].index[lane] = from.index < 0 ? W::none : W::before;
          }
      }
    add_steps(x, steps, [&]<bool Replaces>(int k) __attribute__((always_inline)) {
      Row row[vectors];
#pragma unroll
      for (int j = 0; j < vectors; ++j) row[j] = load<Row>(b + k * columns + j * lanes);
#pragma unroll
      for (int i = 0; i < Rows; ++i)
#pragma unroll
        for (int j = 0; j < vectors; ++j) x[i][j].template add<Ordered, Replaces>(s, splat<Row>(a[k * rows + i]), row[j], k);
    });
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < vectors; ++j)
        for (int lane = 0; lane < lanes; ++lane) {
          const auto own = x[i][j].index[lane];
          const std::int64_t index = own >= 0                 ? k0 + own
                                     : in && own == W::before ? in[i * in_stride + j * lanes + lane].index
                                                              : -1;
          out[i * out_stride + j * lanes + lane] = {x[i][j].value[lane], index};
        }
  }
};

/// The same as LanewiseLoops (lanewise.hpp).
template <class Level, class S>
struct WinnerLanes {
  using Semiring = S;
  using W = Winners<Level, S>;
  using Row = typename W::Row;
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;
  static constexpr int lanes = W::lanes, rows = Level::registers == 32 ? 2 : 1, columns = 4;

  struct Sums {
    Row value;
    vector<std::int64_t, lanes> index;
  };
  struct Lanes {
    RIGEL_MEMBER static Sums all(const Accumulator& x) { return {Row(x.value), x.index}; }
  };
  template <LanesOf of>
  static constexpr LanesOf known = of;

  template <int Rows, int Columns, bool Ordered, LanesOf of>
  RIGEL_HOST_LOOP static void run(const S& semiring, std::int64_t k0, int steps, Vectors<Operand> a, Vectors<Operand> b,
                                  bool starts, Sums* sums, std::int64_t row_stride, std::int64_t column_stride) {
    const auto s = semiring.semiring;
    W x[Rows][Columns];
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int j = 0; j < Columns; ++j) {
        x[i][j] = {Row(S::identity().value), W::none};
        if (!starts) {
          const Sums from = load<Sums>(sums + i * row_stride + j * column_stride);
          x[i][j].value = from.value;
          x[i][j].index = __builtin_convertvector(from.index < 0, typename W::Indices) + W::before;
        }
      }
    add_steps(x, steps, [&]<bool Replaces>(int t) __attribute__((always_inline)) {
      Row row[Columns];
#pragma unroll
      for (int j = 0; j < Columns; ++j) row[j] = load<Row>(b.first + j * b.line + t * b.step);
#pragma unroll
      for (int i = 0; i < Rows; ++i) {
        const Row own = load<Row>(a.first + i * a.line + t * a.step);
#pragma unroll
        for (int j = 0; j < Columns; ++j) x[i][j].template add<Ordered, Replaces>(s, own, row[j], t);
      }
    });
    using Wide = vector<std::int64_t, lanes>;
    Wide first = k0;
    if constexpr (of == LanesOf::k)
      for (int lane = 0; lane < lanes; ++lane) first[lane] += lane;
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int j = 0; j < Columns; ++j) {
        Sums* const to = sums + i * row_stride + j * column_stride;
        const Wide own = __builtin_convertvector(x[i][j].index, Wide);
        const Wide else_index = starts ? Wide(-1) : load<Sums>(to).index;
        store(to, Sums{x[i][j].value, own >= 0 ? first + own * (of == LanesOf::k ? lanes : 1) : else_index});
      }
  }

  RIGEL_MEMBER static Accumulator get(const Sums& sums, int lane) { return {sums.value[lane], sums.index[lane]}; }
  RIGEL_MEMBER static void put(Sums& sums, int lane, const Accumulator& x) {
    sums.value[lane] = x.value;
    sums.index[lane] = x.index;
  }
  RIGEL_MEMBER static void restore(Sums& sums, const Sums& from, int count) {
    for (int lane = 0; lane < count; ++lane) put(sums, lane, get(from, lane));
  }
  [[gnu::noinline]] static Accumulator joined(const S& s, const Sums& sums) {
    Accumulator x = get(sums, 0);
    for (int lane = 1; lane < lanes; ++lane) x = s.add(x, get(sums, lane));
    return x;
  }
};

}  // namespace rigel::backends::host
