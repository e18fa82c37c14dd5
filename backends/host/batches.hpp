// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batches of small matrices: a worker takes as many matrices as a vector has lanes, and interleaves their elements, so that lane
// after lane belongs to one matrix. Every output is one chain in ascending k, so the bits are those of work.hpp.
#pragma once

#include <rigel/backends/host/finish.hpp>
#include <rigel/backends/host/grid.hpp>
#include <rigel/backends/host/lanewise.hpp>
#include <rigel/backends/host/pack.hpp>

namespace rigel::backends::host {

/// Where element (i, j) of an interleaved matrix is, in vectors: at i·row + j·column.
struct Interleaved {
  std::int64_t row, column;
};

template <class Level, class S, class Finish>
struct BatchWorker {
  using L = Lanewise<Level, S>;
  using Operand = operand_t<S>;
  using Sums = typename L::Sums;
  using Value = row_t<S>;
  static constexpr int lanes = L::lanes;
  // Accumulators of a line that are copied at once.
  static constexpr int chunk = sizeof(typename S::accumulator) <= 64 ? most_values : 1;

  const detail::Arguments<S, Finish>& g;
  const Grid& grid;
  Operand *packed_a, *packed_b;
  Sums* sums;
  Value* values;
  // Output (i, j) is element `line·length + position` of a matrix, lines being rows of C, or columns if C is contiguous along M.
  const bool by_columns;
  const std::int64_t lines, length;
  const std::int64_t line_stride, stride;  // of C
  bool has_packed = false;                 // a matrix that serves the whole batch is packed once

  RIGEL_MEMBER BatchWorker(const detail::Arguments<S, Finish>& arguments, const Grid& cut, char* scratch)
      : g(arguments),
        grid(cut),
        packed_a(reinterpret_cast<Operand*>(scratch + cut.a)),
        packed_b(reinterpret_cast<Operand*>(scratch + cut.b)),
        sums(reinterpret_cast<Sums*>(scratch + cut.sums)),
        values(reinterpret_cast<Value*>(scratch + cut.block)),
        by_columns(cut.transposed),
        lines(by_columns ? g.n : g.m),
        length(by_columns ? g.m : g.n),
        line_stride(by_columns ? g.c_strides.column : g.c_strides.row),
        stride(by_columns ? g.c_strides.row : g.c_strides.column) {}

  RIGEL_MEMBER Place place(std::int64_t l, std::int64_t line, std::int64_t position) const {
    return {l, line, position, l * g.c_strides.batch + line * line_stride + position * stride, stride, by_columns};
  }

  /// Interleaves an operand of `rows` × `columns`. Its vectors lie in memory as the elements do.
  template <class T>
  RIGEL_MEMBER Interleaved packed(const detail::Strided<const T>& o, std::int64_t rows, std::int64_t columns, std::int64_t l,
                                  int matrices, Operand* to) const {
    const bool along_rows = o.column == 1 || o.row != 1;
    const std::int64_t inner = along_rows ? columns : rows, outer = along_rows ? rows : columns;
    const std::int64_t inner_stride = along_rows ? o.column : o.row, outer_stride = along_rows ? o.row : o.column;
    if (!has_packed || o.batch != 0)
      interleave<Level, lanes>(o.data + l * o.batch, o.batch, matrices, outer, outer_stride, inner, inner_stride, to);
    return along_rows ? Interleaved{inner, 1} : Interleaved{1, inner};
  }

  RIGEL_MEMBER void tile(std::int64_t group) {
    const std::int64_t l = group * lanes;
    const int matrices = static_cast<int>(g.batch - l < lanes ? g.batch - l : lanes);
    const S s = g.semiring(l);
    const Interleaved of_a = packed(g.a, g.m, g.k, l, matrices, packed_a),
                      of_b = packed(g.b, g.k, g.n, l, matrices, packed_b);
    has_packed = true;
    if (g.accumulate) start(s, l, matrices);
    const Vectors<Operand> a{packed_a, of_a.row * lanes, of_a.column * lanes},
        b{packed_b, of_b.column * lanes, of_b.row * lanes};
    const auto run = [&]<bool Ordered>() __attribute__((always_inline)) {
      L::template run_all<Ordered, LanesOf::batch>(as_of_operands(s), static_cast<int>(g.m), static_cast<int>(g.n), 0,
                                                   static_cast<int>(g.k), a, b, !g.accumulate, sums, by_columns ? 1 : g.n,
                                                   by_columns ? g.m : 1);
    };
    if constexpr (has_shorter_step<Level, S>) {
      if (takes_shorter_step(s, facts_of<Level, S>({packed_a, g.m * g.k * lanes}),
                             facts_of<Level, S>({packed_b, g.k * g.n * lanes})))
        run.template operator()<true>();
      else
        run.template operator()<false>();
    } else {
      run.template operator()<false>();
    }
    finish(s, l, matrices);
  }

  /// use(lane, line, j, count) for parts of lines: `count` neighbours from j on. A part of all lanes stays in the first-level cache.
  template <class Use>
  RIGEL_MEMBER void for_each_part(int matrices, const Use& use) const {
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t j = 0; j < length; j += chunk)
        for (int lane = 0; lane < matrices; ++lane)
          use(lane, line, j, static_cast<int>(length - j < chunk ? length - j : chunk));
  }

  /// Loads the accumulators from C.
  RIGEL_HOST_OUTER void start(const S& s, std::int64_t l, int matrices) {
    typename S::accumulator x[chunk];
    for (std::int64_t e = 0; e < lines * length; ++e) sums[e] = L::Lanes::all(S::identity());
    for_each_part(matrices, [&](int lane, std::int64_t line, std::int64_t j, int count) __attribute__((always_inline)) {
      start_row<Level>(s, g.finish, x, count, g.c, place(l + lane, line, j));
      for (int i = 0; i < count; ++i) L::put(sums[line * length + j + i], lane, x[i]);
    });
  }

  /// The results of `count` sums, in their place.
  RIGEL_MEMBER Value* make_results(const S& s, std::int64_t count) {
    using Accumulator = typename S::accumulator;
    static_assert(sizeof(Value) <= sizeof(Accumulator));
    auto* const to = reinterpret_cast<Value*>(sums);
    if constexpr (!std::is_same_v<Value, Accumulator> || requires(Accumulator x) { s.result(x); })
      for (std::int64_t e = 0; e < count; ++e) {
        if constexpr (has_lanes_result<Level, S>) {
          host::store(to + e * lanes, s.result(load<Sums>(sums + e)));
        } else {
          Value v[lanes];
          for (int lane = 0; lane < lanes; ++lane) v[lane] = rigel::result(s, L::get(sums[e], lane));
          __builtin_memcpy(to + e * lanes, v, sizeof v);
        }
      }
    return to;
  }

  RIGEL_MEMBER void finish(const S& s, std::int64_t l, int matrices) {
    if constexpr (is_program_finish<Finish>) {
      store_batch<Level>(
          g.finish, make_results(s, lines * length), values, g.c,
          {l, lanes, matrices, lines, length, g.c_strides.batch, line_stride, stride, by_columns, grid.steps_differ});
    } else {
      typename S::accumulator x[chunk];
      for_each_part(matrices, [&](int lane, std::int64_t line, std::int64_t j, int count) __attribute__((always_inline)) {
        for (int i = 0; i < count; ++i) x[i] = L::get(sums[line * length + j + i], lane);
        store_row<Level>(s, g.finish, x, count, g.c, place(l + lane, line, j));
      });
    }
  }
};

}  // namespace rigel::backends::host
