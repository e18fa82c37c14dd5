// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Few outputs, long K: lanes are every lanes-th k of one output. K is cut into slices, whose ends depend on K alone; the lanes of a
// slice are joined by ⊕, and slices are joined in ascending order. If ⊕ is exact, the bits are the reference's, else they are a
// function of K alone.
#pragma once

#include <rigel/backends/host/finish.hpp>
#include <rigel/backends/host/grid.hpp>
#include <rigel/backends/host/lanewise.hpp>
#include <rigel/backends/host/pack.hpp>

namespace rigel::backends::host {

template <class Level, class S, class Finish>
struct SliceWorker {
  using L = Lanewise<Level, S>;
  using Element = typename S::element;
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;
  using Sums = typename L::Sums;

  const detail::Arguments<S, Finish>& g;
  const Grid& grid;
  Operand *packed_a, *packed_b;
  Sums* sums;            // of two tiles
  Accumulator* block;    // of two tiles and a row
  Accumulator* partial;  // of all slices and outputs of the problem, if workers share the slices of a tile
  int* done;             // how many slices of a tile are

  /// A tile of C.
  struct Tile {
    std::int64_t number, l, i0, j0;
    int rows, columns;
  };

  RIGEL_MEMBER SliceWorker(const detail::Arguments<S, Finish>& arguments, const Grid& cut, char* shared, char* scratch)
      : g(arguments),
        grid(cut),
        packed_a(reinterpret_cast<Operand*>(scratch + cut.a)),
        packed_b(reinterpret_cast<Operand*>(scratch + cut.b)),
        sums(reinterpret_cast<Sums*>(scratch + cut.sums)),
        block(reinterpret_cast<Accumulator*>(scratch + cut.block)),
        partial(reinterpret_cast<Accumulator*>(shared + cut.partial)),
        done(reinterpret_cast<int*>(shared + cut.done)) {}

  RIGEL_MEMBER Tile tile_of(std::int64_t number) const {
    const std::int64_t i0 = number % grid.tiles_m * grid.tile_m, j0 = number / grid.tiles_m % grid.tiles_n * grid.tile_n;
    return {number,
            number / grid.tiles_m / grid.tiles_n,
            i0,
            j0,
            static_cast<int>(g.m - i0 < grid.tile_m ? g.m - i0 : grid.tile_m),
            static_cast<int>(g.n - j0 < grid.tile_n ? g.n - j0 : grid.tile_n)};
  }

  /// Lines of an operand along K as vectors: those in memory, if they are contiguous and of the operands' type, else packed ones.
  RIGEL_MEMBER Vectors<Operand> vectors(const Element* from, std::int64_t line_stride, std::int64_t k_stride, int count,
                                        int steps, Operand* to) const {
    if constexpr (std::is_same_v<Element, Operand>)
      if (k_stride == 1) return {from, line_stride, L::lanes};
    copy_lines<Level>(from, line_stride, k_stride, count, steps, to, grid.depth);
    return {to, grid.depth, L::lanes};
  }

  /// Continues the lanes' chains over k = k0, …, k0 + steps − 1, whole vectors.
  RIGEL_MEMBER void add(const S& s, const Tile& t, std::int64_t k0, int steps, bool starts) {
    const Vectors<Operand> a = vectors(g.a.data + g.a.offset(t.l, t.i0, k0), g.a.row, g.a.column, t.rows, steps, packed_a);
    const Vectors<Operand> b =
        vectors(g.b.data + g.b.offset(t.l, k0, t.j0), g.b.column, g.b.row, t.columns, steps, packed_b);
    const auto run = [&]<bool Ordered>() __attribute__((always_inline)) {
      L::template run_all<Ordered, L::template known<LanesOf::k>>(as_of_operands(s), t.rows, t.columns, k0, steps / L::lanes,
                                                                  a, b, starts, sums, grid.tile_n, 1);
    };
    if constexpr (has_shorter_step<Level, S>) {
      if (takes_shorter_step(s, facts_of<Level, S>({a.first, steps, t.rows, a.line}),
                             facts_of<Level, S>({b.first, steps, t.columns, b.line})))
        return run.template operator()<true>();
    }
    run.template operator()<false>();
  }

  /// The sums of a tile over slice number `slice`, in `to`: row after row, grid.tile_n apart.
  RIGEL_HOST_OUTER void slice_of(const S& s, const Tile& t, int slice, Accumulator* to) {
    const std::int64_t begin = slice * grid.slice, end = g.k - begin < grid.slice ? g.k : begin + grid.slice;
    const std::int64_t whole = begin + (end - begin) / L::lanes * L::lanes;
    if (whole == begin) return numbers_of(s, t, begin, end, to);
    for (std::int64_t k = begin; k < whole; k += grid.depth)
      add(s, t, k, static_cast<int>(whole - k < grid.depth ? whole - k : grid.depth), k == begin);
    if (whole < end) add_last(s, t, end - L::lanes, static_cast<int>(whole - (end - L::lanes)));
    for (int i = 0; i < t.rows; ++i)
      for (int j = 0; j < t.columns; ++j) to[i * grid.tile_n + j] = L::joined(as_of_operands(s), sums[i * grid.tile_n + j]);
  }

  /// Continues the chains by the vector of k = k0, …, but for its first `had` lanes, whose k they have had.
  RIGEL_HOST_OUTER void add_last(const S& s, const Tile& t, std::int64_t k0, int had) {
    Sums* const before = sums + grid.tile_m * grid.tile_n;
    for (int i = 0; i < t.rows; ++i)
      for (int j = 0; j < t.columns; ++j) before[i * grid.tile_n + j] = sums[i * grid.tile_n + j];
    add(s, t, k0, L::lanes, false);
    for (int i = 0; i < t.rows; ++i)
      for (int j = 0; j < t.columns; ++j) L::restore(sums[i * grid.tile_n + j], before[i * grid.tile_n + j], had);
  }

  /// The sums of a tile over fewer k than lanes.
  RIGEL_HOST_OUTER void numbers_of(const S& s, const Tile& t, std::int64_t begin, std::int64_t end, Accumulator* to) {
    for (int i = 0; i < t.rows; ++i)
      for (int j = 0; j < t.columns; ++j) {
        Accumulator x = S::identity();
        for (std::int64_t k = begin; k < end; ++k)
          x = rigel::step(s, x, static_cast<Operand>(g.a.at(t.l, t.i0 + i, k)),
                          static_cast<Operand>(g.b.at(t.l, k, t.j0 + j)), k);
        to[i * grid.tile_n + j] = x;
      }
  }

  RIGEL_HOST_OUTER void store(const S& s, const Tile& t, const Accumulator* x) {
    for (int i = 0; i < t.rows; ++i) {
      const Place at{t.l, t.i0 + i, t.j0, g.c_offset(t.l, t.i0 + i, t.j0), g.c_strides.column, false};
      Accumulator* const row = block + 2 * grid.tile_m * grid.tile_n;
      for (int j = 0; j < t.columns; ++j) row[j] = x[i * grid.tile_n + j];
      if (g.accumulate) {
        start_row<Level>(s, g.finish, row, t.columns, g.c, at);
        if (g.k > 0)  // linf's identity is one for distances, not for all numbers
          for (int j = 0; j < t.columns; ++j) row[j] = s.add(row[j], x[i * grid.tile_n + j]);
      }
      store_row<Level>(s, g.finish, row, t.columns, g.c, at);
    }
  }

  RIGEL_HOST_OUTER void join(const S& s, const Tile& t, Accumulator* x, const Accumulator* y) const {
    for (int i = 0; i < t.rows; ++i)
      for (int j = 0; j < t.columns; ++j) x[i * grid.tile_n + j] = s.add(x[i * grid.tile_n + j], y[i * grid.tile_n + j]);
  }

  RIGEL_MEMBER void tile(std::int64_t number) {
    const std::int64_t outputs = grid.tile_m * grid.tile_n;
    if (!grid.shares_slices) {
      const Tile t = tile_of(number);
      const S s = g.semiring(t.l);
      Accumulator *const x = block, *const y = block + outputs;
      slice_of(s, t, 0, x);
      for (int i = 1; i < grid.slices; ++i) {
        slice_of(s, t, i, y);
        join(s, t, x, y);
      }
      return store(s, t, x);
    }
    const Tile t = tile_of(number / grid.slices);
    const S s = g.semiring(t.l);
    Accumulator* const own = partial + t.number * grid.slices * outputs;
    slice_of(s, t, static_cast<int>(number % grid.slices), own + number % grid.slices * outputs);
    // Whoever ends the last slice joins all.
    if (__atomic_add_fetch(done + t.number, 1, __ATOMIC_ACQ_REL) < grid.slices) return;
    for (int i = 1; i < grid.slices; ++i) join(s, t, own, own + i * outputs);
    store(s, t, own);
  }
};

}  // namespace rigel::backends::host
