// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The innermost loop on operands of which A and B both come as vectors: each lane is a chain of its own. Lanes are matrices of a
// batch (batches.hpp), or every lanes-th k of one output (slices.hpp). A block of few outputs so wastes no lane, where the block
// of microkernel.hpp would be mostly padding.
#pragma once

#include <rigel/backends/host/fields.hpp>
#include <rigel/backends/host/lanes.hpp>
#include <rigel/backends/host/level.hpp>
#include <rigel/backends/host/powers.hpp>
#include <rigel/backends/host/widened.hpp>
#include <rigel/backends/host/winners.hpp>

namespace rigel::backends::host {

/// Whether ⊗ of vectors reads k, which is one number for all lanes.
template <class S>
inline constexpr bool reads_k_of_vectors = mode_of<S>() == Mode::vectors && !HasStep<S> &&
                                           requires(const S s, operand_t<S> a) { s.multiply(a, a, std::int64_t{}); };

template <class Level, class S>
struct LanewiseLoops {
  using Semiring = S;
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;

  static constexpr Mode mode = mode_of<S>();
  // A transcendental ⊗ is one dependency chain; several registers as one vector are as many chains.
  static constexpr bool grouped = mode == Mode::vectors && (is_transcendental<S> || has_regular_step<Level, S>);
  static constexpr int lanes =
      mode == Mode::numbers ? 1 : (grouped ? 4 : 1) * Level::vector_bytes / static_cast<int>(sizeof(Operand));
  static constexpr bool several = vectors_of_sums<S> > 1;
  static constexpr int rows = grouped ? 1 : several ? 2 : Level::registers == 32 && mode == Mode::vectors ? 4 : 2;
  static constexpr int columns = grouped ? 1 : several ? 2 : 4;

  template <int N, class T = Operand>
  struct row_of {
    using type = vector<T, N>;
  };
  template <class T>
  struct row_of<1, T> {
    using type = T;
  };
  using Row = typename row_of<lanes>::type;
  using Lanes = SumsOf<S, Row>;
  using Sums = typename Lanes::type;

  /// The argument of run_all(): what lanes are matters only to functors that are called lane by lane, since they may read k.
  template <LanesOf of>
  static constexpr LanesOf known = mode == Mode::each_lane ? of : LanesOf::batch;

  /// Continues the chains of Rows × Columns outputs over k = k0, … by `steps` vectors, and stores them in `sums`, of which output
  /// (i, j) is at i·row_stride + j·column_stride. If `starts`, chains begin with the identity, else with `sums`.
  template <int Rows, int Columns, bool Ordered, LanesOf of>
  RIGEL_HOST_LOOP static void run(const S& semiring, std::int64_t k0, int steps, Vectors<Operand> a, Vectors<Operand> b,
                                  bool starts, Sums* sums, std::int64_t row_stride, std::int64_t column_stride) {
    const S s = semiring;
    if constexpr (has_fields<S>)
      return run_fields<Rows, Columns, Ordered, of>(s, k0, steps, a, b, starts, sums, row_stride, column_stride);
    Sums x[Rows][Columns];
    if (starts) {
      const Sums none = Lanes::all(S::identity());
#pragma unroll
      for (int i = 0; i < Rows; ++i)
#pragma unroll
        for (int j = 0; j < Columns; ++j) x[i][j] = none;
    } else {
#pragma unroll
      for (int i = 0; i < Rows; ++i)
#pragma unroll
        for (int j = 0; j < Columns; ++j) x[i][j] = load<Sums>(sums + i * row_stride + j * column_stride);
    }
    for (int t = 0; t < steps; ++t) {
      Row row[Columns];
#pragma unroll
      for (int j = 0; j < Columns; ++j) row[j] = load<Row>(b.first + j * b.line + t * b.step);
#pragma unroll
      for (int i = 0; i < Rows; ++i) {
        const Row own = load<Row>(a.first + i * a.line + t * a.step);
#pragma unroll
        for (int j = 0; j < Columns; ++j) x[i][j] = step<Ordered, of>(s, x[i][j], own, row[j], k0, t);
      }
    }
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int j = 0; j < Columns; ++j) store(sums + i * row_stride + j * column_stride, x[i][j]);
  }

  /// The accumulator of a lane of sums in memory.
  RIGEL_MEMBER static Accumulator get(const Sums& sums, int lane) {
    Accumulator x;
    const std::size_t at = static_cast<std::size_t>(lane) * lane_bytes;
    for (std::size_t f = 0; f < fields; ++f)
      __builtin_memcpy(bytes(x) + f * lane_bytes, bytes(sums) + f * field_bytes + at, lane_bytes);
    return x;
  }
  RIGEL_MEMBER static void put(Sums& sums, int lane, const Accumulator& x) {
    const std::size_t at = static_cast<std::size_t>(lane) * lane_bytes;
    for (std::size_t f = 0; f < fields; ++f)
      __builtin_memcpy(bytes(sums) + f * field_bytes + at, bytes(x) + f * lane_bytes, lane_bytes);
  }
  /// Lanes 0, …, count − 1 of `sums` become those of `from`.
  RIGEL_MEMBER static void restore(Sums& sums, const Sums& from, int count) {
    for (std::size_t f = 0; f < fields; ++f)
      __builtin_memcpy(bytes(sums) + f * field_bytes, bytes(from) + f * field_bytes,
                       static_cast<std::size_t>(count) * lane_bytes);
  }

  /// The ⊕ of all lanes, in an order that depends on nothing.
  [[gnu::noinline]] static Accumulator joined(const S& s, const Sums& sums) { return joined_of<lanes>(s, sums); }

 private:
  static constexpr std::size_t fields = Lanes::fields, field_bytes = sizeof(Sums) / fields, lane_bytes = field_bytes / lanes;
  static_assert(lane_bytes * fields == sizeof(Accumulator));
  template <class T>
  RIGEL_MEMBER static char* bytes(T& x) {
    return reinterpret_cast<char*>(&x);
  }
  template <class T>
  RIGEL_MEMBER static const char* bytes(const T& x) {
    return reinterpret_cast<const char*>(&x);
  }

  // By halves, in vectors if ⊕ takes these accumulators as vectors.
  template <int N>
  RIGEL_MEMBER static Accumulator joined_of(const S& s, const typename SumsOf<S, typename row_of<N>::type>::type& x) {
    using All = SumsOf<S, typename row_of<N>::type>;
    if constexpr (N == 1) {
      return x;
    } else if constexpr (N == 2) {
      return s.add(All::get(x, 0), All::get(x, 1));
    } else {
      using Half = SumsOf<S, typename row_of<N / 2>::type>;
      if constexpr (mode == Mode::vectors && requires(typename Half::type y) { s.add(y, y); }) {
        return joined_of<N / 2>(s, s.add(half_of<Half, 0>(x), half_of<Half, N / 2>(x)));
      } else {
        Accumulator own[N];
#pragma clang loop unroll(disable) vectorize(disable)
        for (int lane = 0; lane < N; ++lane) own[lane] = All::get(x, lane);
#pragma clang loop unroll(disable)
        for (int half = N / 2; half > 0; half /= 2)
#pragma clang loop unroll(disable) vectorize(disable)
          for (int lane = 0; lane < half; ++lane) own[lane] = s.add(own[lane], own[lane + half]);
        return own[0];
      }
    }
  }
  // The lanes first, …, of sums.
  template <class Half, int first, class All>
  RIGEL_MEMBER static typename Half::type half_of(const All& x) {
    const auto part = []<class V>(const V& v) __attribute__((always_inline)) {
      return [&]<int... J>(std::integer_sequence<int, J...>) __attribute__((always_inline)) {
        return __builtin_shufflevector(v, v, (first + J)...);
      }(std::make_integer_sequence<int, Half::lanes>{});
    };
    if constexpr (Half::fields == 1) {
      return part(x);
    } else {
      const auto all = __builtin_bit_cast(typename Half::template Parts<typename row_of<2 * Half::lanes>::type>, x);
      typename Half::template Parts<typename row_of<Half::lanes>::type> halves;
      for (int f = 0; f < Half::fields; ++f) halves.part[f] = part(all.part[f]);
      return __builtin_bit_cast(typename Half::type, halves);
    }
  }

  // run() as in fields.hpp.
  template <int Rows, int Columns, bool Ordered, LanesOf of>
  RIGEL_MEMBER static void run_fields(const S& s, std::int64_t k0, int steps, Vectors<Operand> a, Vectors<Operand> b,
                                      bool starts, Sums* sums, std::int64_t row_stride, std::int64_t column_stride) {
    FieldRows<S, lanes> x[Rows][Columns];
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Columns; ++j) {
        const Sums from = starts ? Lanes::all(S::identity()) : load<Sums>(sums + i * row_stride + j * column_stride);
        __builtin_memcpy(&x[i][j], &from, sizeof from);
      }
    for (int t = 0; t < steps; ++t)
#pragma unroll
      for (int i = 0; i < Rows; ++i)
#pragma unroll
        for (int j = 0; j < Columns; ++j) {
          const Operand *const own = a.first + i * a.line + t * a.step, *const other = b.first + j * b.line + t * b.step;
          for (int lane = 0; lane < lanes; ++lane)
            x[i][j].set(lane, host::step_on<Ordered>(s, x[i][j].get(lane), own[lane], other[lane],
                                                     of == LanesOf::k ? k0 + t * lanes + lane : k0 + t));
        }
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Columns; ++j) __builtin_memcpy(sums + i * row_stride + j * column_stride, &x[i][j], sizeof(Sums));
  }

  template <bool Ordered, LanesOf of>
  RIGEL_MEMBER static Sums step(const S& s, const Sums& x, Row a, Row b, std::int64_t k0, std::int64_t t) {
    if constexpr (mode == Mode::each_lane) {
      Sums y = x;
#pragma unroll
      for (int j = 0; j < lanes; ++j)
        Lanes::set(y, j,
                   host::step_on<Ordered>(s, Lanes::get(x, j), Operand(a[j]), Operand(b[j]),
                                          of == LanesOf::k ? k0 + t * lanes + j : k0 + t));
      return y;
    } else {
      return host::step_on<Ordered>(s, x, a, b, k0 + t);
    }
  }
};

/// The same for blocks of any extents.
template <class Loops>
struct InBlocks : Loops {
  using Loops::columns, Loops::rows;
  using typename Loops::Operand, typename Loops::Sums;

  /// run() for a block of m × n outputs.
  template <bool Ordered, LanesOf of>
  RIGEL_HOST_OUTER static void run_all(const typename Loops::Semiring& s, int m, int n, std::int64_t k0, int steps,
                                       Vectors<Operand> a, Vectors<Operand> b, bool starts, Sums* sums,
                                       std::int64_t row_stride, std::int64_t column_stride) {
    const auto part = [&]<int Rows, int Columns>(int i, int j) __attribute__((always_inline)) {
      Loops::template run<Rows, Columns, Ordered, of>(s, k0, steps, {a.first + i * a.line, a.line, a.step},
                                                      {b.first + j * b.line, b.line, b.step}, starts,
                                                      sums + i * row_stride + j * column_stride, row_stride, column_stride);
    };
    const auto line = [&]<int Rows>(int i) __attribute__((always_inline)) {
      int j = 0;
      for (; j + columns <= n; j += columns) part.template operator()<Rows, columns>(i, j);
      if constexpr (columns > 1)
        for (; j < n; ++j) part.template operator()<Rows, 1>(i, j);
    };
    int i = 0;
    for (; i + rows <= m; i += rows) line.template operator()<rows>(i);
    if constexpr (rows > 1)
      for (; i < m; ++i) line.template operator()<1>(i);
  }
};

template <class Level, class S>
constexpr auto lanewise_of() {
  if constexpr (is_winner<S>)
    return std::type_identity<WinnerLanes<Level, S>>{};
  else
    return std::type_identity<LanewiseLoops<Level, S>>{};
}
template <class Level, class S>
using Lanewise = InBlocks<typename decltype(lanewise_of<Level, of_operands_t<S>>())::type>;

}  // namespace rigel::backends::host
