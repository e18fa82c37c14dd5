// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work of one thread: it takes tiles of C until none is left. It computes a tile as Goto and van de Geijn do (Anatomy of
// high-performance matrix multiplication, 2008), with packed A in the second-level cache, a panel of packed B in the first,
// and a block of accumulators in registers. Every output is one chain in ascending k, so the bits are the reference's.
#pragma once

#include <rigel/backends/host/finish.hpp>
#include <rigel/backends/host/grid.hpp>
#include <rigel/backends/host/grouped.hpp>
#include <rigel/backends/host/pack.hpp>
#include <rigel/backends/host/widened.hpp>

namespace rigel::backends::host {

/// One worker's view of a problem: the Arguments, with A and B exchanged if the loops compute the transpose.
template <class Level, class S, class Finish>
struct Worker {
  using M = microkernel_for<Level, S>;
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;
  using Element = typename S::element;

  const detail::Arguments<S, Finish>& g;
  const Grid& grid;
  detail::Strided<const Element> a, b;  // a: rows of the loops × k, b: k × columns of the loops
  std::int64_t m, n, c_row, c_column;
  Operand* packed_a;
  Operand* packed_b;
  Accumulator* block;
  Accumulator* sums;
  // Which block of B packed_b holds, and its special values. The next tile skips packing if it needs the same block.
  std::int64_t packed_batch = -1, packed_k = -1, packed_column = -1;
  detail::Specials specials_b = {};
  bool regular_b = false;

  RIGEL_MEMBER Worker(const detail::Arguments<S, Finish>& arguments, const Grid& cut, char* scratch)
      : g(arguments),
        grid(cut),
        packed_a(reinterpret_cast<Operand*>(scratch + cut.a)),
        packed_b(reinterpret_cast<Operand*>(scratch + cut.b)),
        block(reinterpret_cast<Accumulator*>(scratch + cut.block)),
        sums(reinterpret_cast<Accumulator*>(scratch + cut.sums)) {
    const auto flipped = [](const auto& x) __attribute__((always_inline)) {
      auto y = x;
      y.row = x.column;
      y.column = x.row;
      return y;
    };
    const bool t = grid.transposed;
    a = t ? flipped(g.b) : g.a;
    b = t ? flipped(g.a) : g.b;
    m = t ? g.n : g.m;
    n = t ? g.m : g.n;
    c_row = t ? g.c_strides.column : g.c_strides.row;
    c_column = t ? g.c_strides.row : g.c_strides.column;
  }

  RIGEL_MEMBER Place place(std::int64_t l, std::int64_t i, std::int64_t j) const {
    return {l, i, j, l * g.c_strides.batch + i * c_row + j * c_column, c_column, grid.transposed};
  }

  /// Computes all register blocks of a tile over one block of K, from packed operands.
  template <bool Ordered>
  RIGEL_MEMBER void blocks(const S& s, std::int64_t l, std::int64_t i0, std::int64_t j0, std::int64_t tile_rows,
                           std::int64_t tile_columns, std::int64_t k0, int steps, bool first, bool last) {
    const bool continues = first && g.accumulate;
    const bool direct = copies() && c_column == 1;
    for (std::int64_t j = 0; j < tile_columns; j += M::columns)
      for (std::int64_t i = 0; i < tile_rows; i += M::rows) {
        const int rows = static_cast<int>(tile_rows - i < M::rows ? tile_rows - i : M::rows);
        const int columns = static_cast<int>(tile_columns - j < M::columns ? tile_columns - j : M::columns);
        const bool whole = rows == M::rows && columns == M::columns;
        Accumulator* const partial = sums + i * grid.tile_n + j;
        const Accumulator* in = first ? nullptr : partial;
        std::int64_t in_stride = grid.tile_n;
        if (continues) {
          start(s, l, i0 + i, j0 + j, rows, columns);
          in = block;
          in_stride = M::columns;
        }
        Accumulator* out = partial;
        std::int64_t out_stride = grid.tile_n;
        if (last) {
          const bool into_c = direct && whole;
          out = into_c ? static_cast<Accumulator*>(g.c) + place(l, i0 + i, j0 + j).offset : block;
          out_stride = into_c ? c_row : M::columns;
        }
        M::template run<Ordered>(s, k0, steps, packed_a + i * steps, packed_b + j * steps, in, in_stride, out, out_stride);
        if (out == block)
          for (int r = 0; r < rows; ++r)
            store_row<Level, M::columns>(s, g.finish, block + r * M::columns, columns, g.c, place(l, i0 + i + r, j0 + j));
      }
  }

  /// Loads the accumulators of a block of outputs from C. Outputs beyond the edge start with the identity.
  RIGEL_MEMBER void start(const S& s, std::int64_t l, std::int64_t i, std::int64_t j, int rows, int columns) {
    for (int e = 0; e < M::rows * M::columns; ++e) block[e] = S::identity();
    for (int r = 0; r < rows; ++r)
      start_row<Level, M::columns>(s, g.finish, block + r * M::columns, columns, g.c, place(l, i + r, j));
  }

  /// Whether C receives accumulators unchanged.
  RIGEL_MEMBER bool copies() const {
    if constexpr (std::is_arithmetic_v<Accumulator> && !requires(const S s, Accumulator x) { s.result(x); })
      return g.finish.template is_copy<Accumulator>();
    else
      return false;
  }

  RIGEL_MEMBER void tile(std::int64_t t) {
    const std::int64_t tile_i = t % grid.tiles_m, tile_j = t / grid.tiles_m % grid.tiles_n,
                       l = t / grid.tiles_m / grid.tiles_n;
    const std::int64_t i0 = tile_i * grid.tile_m, j0 = tile_j * grid.tile_n;
    const std::int64_t rows = m - i0 < grid.tile_m ? m - i0 : grid.tile_m;
    const std::int64_t columns = n - j0 < grid.tile_n ? n - j0 : grid.tile_n;
    const S s = g.semiring(l);
    for (int kb = 0; kb < grid.depth_blocks; ++kb) {
      const std::int64_t k0 = std::int64_t(kb) * grid.depth;
      const int steps = static_cast<int>(g.k - k0 < grid.depth ? g.k - k0 : grid.depth);
      const bool first = kb == 0, last = kb + 1 == grid.depth_blocks;
      const std::int64_t batch = b.batch == 0 ? 0 : l;
      if (packed_batch != batch || packed_k != k0 || packed_column != j0) {
        pack<Level, M::columns>(b.data + b.offset(l, k0, j0), b.column, b.row, static_cast<int>(columns), steps, packed_b);
        if constexpr (detail::has_ordered_form<S>)
          specials_b = specials_of<Level>(packed_b, padded(columns, M::columns) * steps);
        if constexpr (has_regular_step<Level, S>)
          regular_b = are_regular<Level, S>(packed_b, padded(columns, M::columns) * steps);
        packed_batch = batch;
        packed_k = k0;
        packed_column = j0;
      }
      pack<Level, M::rows>(a.data + a.offset(l, i0, k0), a.row, a.column, static_cast<int>(rows), steps, packed_a);
      if constexpr (detail::has_ordered_form<S>) {
        const detail::Specials specials_a = specials_of<Level>(packed_a, padded(rows, M::rows) * steps);
        if (detail::products_are_ordered(s, specials_a, specials_b)) {
          blocks<true>(s, l, i0, j0, rows, columns, k0, steps, first, last);
          continue;
        }
      }
      if constexpr (has_regular_step<Level, S>)
        if (regular_b && are_regular<Level, S>(packed_a, padded(rows, M::rows) * steps)) {
          blocks<true>(s, l, i0, j0, rows, columns, k0, steps, first, last);
          continue;
        }
      blocks<false>(s, l, i0, j0, rows, columns, k0, steps, first, last);
    }
  }

  RIGEL_MEMBER static std::int64_t padded(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit * unit; }
};

/// The Work of semiring S at a level.
template <class Level, class S, class Finish>
void work(const void* arguments, const Grid& grid, int worker, void* workspace) {
  auto* const counter = static_cast<std::int64_t*>(workspace);
  char* const scratch =
      static_cast<char*>(workspace) + Grid::counter_bytes + static_cast<std::size_t>(worker) * grid.scratch;
  Worker<Level, S, Finish> w(*static_cast<const detail::Arguments<S, Finish>*>(arguments), grid, scratch);
  for (;;) {
    const std::int64_t t = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
    if (t >= grid.tiles) return;
    w.tile(t);
  }
}

/// The Loop of semiring S at a level: of S as it is, and of what computes S.
template <class Level, class S, class Finish>
inline constexpr Loop loop_as_is = {&work<Level, S, Finish>,
                                    {microkernel_for<Level, S>::rows, microkernel_for<Level, S>::columns,
                                     sizeof(operand_t<S>), sizeof(typename S::accumulator), is_commutative<S>}};
template <class Level, class S, class Finish>
inline constexpr const Loop& loop = loop_as_is<Level, computed_t<S>, Finish>;

}  // namespace rigel::backends::host
