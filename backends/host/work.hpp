// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work of one thread: it takes tiles of C until none is left. It computes a tile as Goto and van de Geijn do (Anatomy of
// high-performance matrix multiplication, 2008), with packed A in the second-level cache, a panel of packed B in the first,
// and a block of accumulators in registers. Every output is one chain in ascending k, so the bits are the reference's.
#pragma once

#include <rigel/backends/host/batches.hpp>
#include <rigel/backends/host/grouped.hpp>
#include <rigel/backends/host/slices.hpp>

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
  bool into_c, steps_in_c;  // C receives accumulators unchanged; the steps of the epilogue are applied there
  Operand* packed_a;
  Operand* packed_b;
  Accumulator* block;
  Accumulator* sums;
  // Which block of B packed_b holds, and what its values say. The next tile skips packing if it needs the same block.
  std::int64_t packed_batch = -1, packed_k = -1, packed_column = -1;
  Facts<S> facts_b = {};

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
    into_c = steps_in_c = false;
    if constexpr (can_be_in_c) {
      into_c = c_column == 1 && holds_results<Accumulator>(g.finish, g.c);
      steps_in_c = can_take_steps_in_c && into_c && !g.finish.program.empty();
    }
  }

  /// Whether C may receive accumulators unchanged.
  static constexpr bool can_be_in_c =
      is_program_finish<Finish> && std::is_arithmetic_v<Accumulator> && !requires(const S s, Accumulator x) { s.result(x); };
  static constexpr bool can_take_steps_in_c = can_be_in_c && std::is_floating_point_v<Accumulator>;

  RIGEL_MEMBER Place place(std::int64_t l, std::int64_t i, std::int64_t j) const {
    return {l, i, j, l * g.c_strides.batch + i * c_row + j * c_column, c_column, grid.transposed};
  }

  /// A block of K of a tile.
  struct Part {
    std::int64_t l, i0, j0, rows, columns;  // the tile
    std::int64_t k0;
    int steps;
    bool first, last;  // of K
  };

  /// An innermost loop for so many rows. `finish`, if there is one, stores results.
  struct BlockLoop {
    int rows;
    void (*run)(const of_operands_t<S>&, std::int64_t, int, const Operand*, const Operand*, const Accumulator*, std::int64_t,
                Accumulator*, std::int64_t);
    void (*finish)(const of_operands_t<S>&, std::int64_t, int, const Operand*, const Operand*, const Accumulator*,
                   std::int64_t, Operand*);
  };
  template <int Rows, bool Ordered>
  static constexpr BlockLoop loop_of_rows() {
    if constexpr (is_program_finish<Finish> && has_lanes_result<Level, S> && M::finishes)
      return {Rows, &M::template run<Rows, Ordered>, &M::template finish<Rows, Ordered>};
    else
      return {Rows, &M::template run<Rows, Ordered>, nullptr};
  }

  /// Computes all register blocks of a tile over one block of K, from packed operands.
  template <bool Ordered>
  RIGEL_MEMBER void blocks(const S& s, const Part& part) {
    static constexpr BlockLoop loops[] = {loop_of_rows<M::rows, Ordered>(), loop_of_rows<M::few_rows, Ordered>(),
                                          loop_of_rows<1, Ordered>()};
    blocks_by(s, part, loops);
  }
  RIGEL_HOST_OUTER void blocks_by(const S& s, const Part& part, const BlockLoop (&loops)[3]) {
    const std::int64_t blocks_m = (part.rows + M::rows - 1) / M::rows,
                       blocks_n = (part.columns + M::columns - 1) / M::columns;
    // A panel of B stays in the first-level cache while those of A pass. If K is short, the stores of C are what takes time, and
    // rows are written from end to end.
    const bool by_rows = part.steps <= short_steps;
    const std::int64_t outer = by_rows ? blocks_m : blocks_n, inner = by_rows ? blocks_n : blocks_m;
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t q = 0; q < inner; ++q) {
        const std::int64_t i = (by_rows ? o : q) * M::rows, j = (by_rows ? q : o) * M::columns;
        // A block at an edge has fewer rows: as many times `few_rows` as it takes, or one.
        int left = static_cast<int>(part.rows - i < M::rows ? part.rows - i : M::rows);
        for (int r = 0; left > 0;) {
          const BlockLoop& loop = loops[left == 1 ? 2 : M::few_rows > 1 && left < M::rows ? 1 : 0];
          const int rows = left < loop.rows ? left : loop.rows;
          block_of(s, part, i, j, r, rows, loop);
          r += rows;
          left -= rows;
        }
        if constexpr (can_take_steps_in_c)
          if (part.last && steps_in_c && (by_rows || q + 1 == inner))
            apply_up_to(part, by_rows ? i : 0, i + M::rows < part.rows ? i + M::rows : part.rows,
                        j + M::columns < part.columns ? j + M::columns : part.columns);
      }
  }
  static constexpr int short_steps = 32;
  // Steps are applied in C to so many columns at a time, which are long enough for loops and still lie in a cache.
  static constexpr int columns_of_steps = 256;

  /// Applies the steps to rows i, …, i_end − 1 of the tile in C, once the columns before j_end end a part of the tile.
  RIGEL_MEMBER void apply_up_to(const Part& part, std::int64_t i, std::int64_t i_end, std::int64_t j_end) {
    static_assert(columns_of_steps % M::columns == 0);
    if (j_end != part.columns && j_end % columns_of_steps != 0) return;
    const std::int64_t j = (j_end - 1) / columns_of_steps * columns_of_steps;
    const Place at = place(part.l, part.i0 + i, part.j0 + j);
    apply_in_place<Level>(g.finish, static_cast<Accumulator*>(g.c) + at.offset, i_end - i, c_row,
                          static_cast<int>(j_end - j), at);
  }

  /// Rows r, …, r + rows − 1 of the block at (i, j) of the tile, by a loop that computes as many or more.
  RIGEL_MEMBER void block_of(const S& s, const Part& part, std::int64_t i, std::int64_t j, int r, int rows,
                             const BlockLoop& loop) {
    const int columns = static_cast<int>(part.columns - j < M::columns ? part.columns - j : M::columns);
    const std::int64_t m0 = part.i0 + i + r, n0 = part.j0 + j;
    Accumulator* const partial = sums + (i + r) * grid.tile_n + j;
    const Accumulator* in = part.first ? nullptr : partial;
    std::int64_t in_stride = grid.tile_n;
    if (part.first && g.accumulate) {
      start(s, part.l, m0, n0, rows, columns);
      in = block;
      in_stride = M::columns;
    }
    const Operand* const panel_a = packed_a + i * part.steps + r;
    const Operand* const panel_b = packed_b + j * part.steps;
    if constexpr (loop_of_rows<1, false>().finish != nullptr) {
      if (part.last) {
        auto* const values = reinterpret_cast<Operand*>(block);
        loop.finish(as_of_operands(s), part.k0, part.steps, panel_a, panel_b, in, in_stride, values);
        for (int row = 0; row < rows; ++row)
          store_values<Level>(g.finish, values + row * M::columns, columns, g.c, place(part.l, m0 + row, n0));
        return;
      }
    }
    if constexpr (can_be_in_c) {
      if (part.last && into_c) {
        const bool whole = rows == loop.rows && columns == M::columns;
        Accumulator* const c = static_cast<Accumulator*>(g.c) + place(part.l, m0, n0).offset;
        loop.run(as_of_operands(s), part.k0, part.steps, panel_a, panel_b, in, in_stride, whole ? c : block,
                 whole ? c_row : M::columns);
        if (!whole)
          for (int row = 0; row < rows; ++row)
            for (int column = 0; column < columns; ++column) c[row * c_row + column] = block[row * M::columns + column];
        return;
      }
    }
    Accumulator* const out = part.last ? block : partial;
    loop.run(as_of_operands(s), part.k0, part.steps, panel_a, panel_b, in, in_stride, out,
             part.last ? M::columns : grid.tile_n);
    if (part.last)
      for (int row = 0; row < rows; ++row)
        store_row<Level>(s, g.finish, block + row * M::columns, columns, g.c, place(part.l, m0 + row, n0));
  }

  /// Loads the accumulators of a block of outputs from C. Outputs beyond the edge start with the identity.
  RIGEL_MEMBER void start(const S& s, std::int64_t l, std::int64_t i, std::int64_t j, int rows, int columns) {
    for (int e = 0; e < M::rows * M::columns; ++e) block[e] = S::identity();
    for (int r = 0; r < rows; ++r) start_row<Level>(s, g.finish, block + r * M::columns, columns, g.c, place(l, i + r, j));
  }

  RIGEL_MEMBER void tile(std::int64_t t) {
    const std::int64_t tile_i = t % grid.tiles_m, tile_j = t / grid.tiles_m % grid.tiles_n,
                       l = t / grid.tiles_m / grid.tiles_n;
    const std::int64_t i0 = tile_i * grid.tile_m, j0 = tile_j * grid.tile_n;
    const std::int64_t rows = m - i0 < grid.tile_m ? m - i0 : grid.tile_m;
    const std::int64_t columns = n - j0 < grid.tile_n ? n - j0 : grid.tile_n;
    const S s = g.semiring(l);
    for (std::int64_t kb = 0; kb < grid.depth_blocks; ++kb) {
      const std::int64_t k0 = kb * grid.depth;
      const int steps = static_cast<int>(g.k - k0 < grid.depth ? g.k - k0 : grid.depth);
      const Part part{l, i0, j0, rows, columns, k0, steps, kb == 0, kb + 1 == grid.depth_blocks};
      const std::int64_t batch = b.batch == 0 ? 0 : l;
      if (packed_batch != batch || packed_k != k0 || packed_column != j0) {
        pack<Level, M::columns>(b.data + b.offset(l, k0, j0), b.column, b.row, static_cast<int>(columns), steps, packed_b);
        if constexpr (has_shorter_step<Level, S>)
          facts_b = facts_of<Level, S>({packed_b, padded(columns, M::columns) * steps});
        packed_batch = batch;
        packed_k = k0;
        packed_column = j0;
      }
      pack<Level, M::rows>(a.data + a.offset(l, i0, k0), a.row, a.column, static_cast<int>(rows), steps, packed_a);
      if constexpr (has_shorter_step<Level, S>)
        if (takes_shorter_step(s, facts_of<Level, S>({packed_a, padded(rows, M::rows) * steps}), facts_b)) {
          blocks<true>(s, part);
          continue;
        }
      blocks<false>(s, part);
    }
  }

  RIGEL_MEMBER static std::int64_t padded(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit * unit; }
};

/// The work of one thread: it takes tiles, or slices of them, until none is left.
template <class Worker>
RIGEL_FUNCTION void work_with(Worker& worker, const Grid& grid, void* workspace) {
  auto* const counter = static_cast<std::int64_t*>(workspace);
  for (;;) {
    const std::int64_t t = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
    if (t >= grid.tiles) return;
    worker.tile(t);
  }
}

/// The Work of semiring S at a level.
template <Way way, class Level, class S, class Finish>
RIGEL_HOST_OUTER void work(const void* arguments, const Grid& grid, int worker, void* workspace) {
  char* const shared = static_cast<char*>(workspace);
  char* const scratch = shared + grid.shared + static_cast<std::size_t>(worker) * grid.scratch;
  const auto& g = *static_cast<const detail::Arguments<S, Finish>*>(arguments);
  if constexpr (way == Way::blocks) {
    Worker<Level, S, Finish> w(g, grid, scratch);
    work_with(w, grid, workspace);
  } else if constexpr (way == Way::batches) {
    BatchWorker<Level, S, Finish> w(g, grid, scratch);
    work_with(w, grid, workspace);
  } else {
    SliceWorker<Level, S, Finish> w(g, grid, shared, scratch);
    work_with(w, grid, workspace);
  }
}

/// Whether the ⊕ of S may be taken in another order than that of k: it gives the same, or its rounding is Rigel's to choose.
template <class S>
inline constexpr bool reorders = (is_exact<S> || in_zoo<S>) && !reads_k_of_vectors<S>;

/// The slices of S, if it has them.
template <class Level, class S, class Finish>
constexpr Work slices_of() {
  if constexpr (reorders<S>)
    return &work<Way::slices, Level, S, Finish>;
  else
    return nullptr;
}

/// Pairs per cycle and thread if a step on a vector takes a cycle (Cpu::vectors()), by the operands' size. A transcendental ⊗ takes several
/// times as long, functors that are called lane by lane or number by number do, and so does the search for the k that won, and an fma that
/// is no instruction.
template <class Level, class S>
constexpr double pairs_of() {
  constexpr double vectors = static_cast<double>(Level::vector_bytes) / sizeof(operand_t<S>);
  constexpr bool calls_fma =
      !Level::has_fma && HasStep<S> && std::is_floating_point_v<typename S::accumulator> && !is_exact<S>;
  switch (mode_of<S>()) {
    case Mode::vectors: return vectors / (is_transcendental<S> ? 4 : calls_fma ? 32 : 1);
    case Mode::each_lane: return vectors / 2;
    default: return is_winner<S> ? vectors / 3 : 0.5;
  }
}
template <class Level, class S>
inline constexpr int bytes_of_vectors =
    mode_of<S>() == Mode::vectors || mode_of<S>() == Mode::each_lane || is_winner<S> ? Level::vector_bytes : 0;

/// Cycles of a lane that is joined: by calls, one after the other; those of with_argument compare a value and its k.
template <class S>
inline constexpr double cycles_of_joined = is_winner<S> ? 20 : 3;

/// The Loop of semiring S at a level: of S as it is, and of what computes S.
template <class Level, class S, class Finish>
inline constexpr Loop loop_as_is = {
    {&work<Way::blocks, Level, S, Finish>, &work<Way::batches, Level, S, Finish>, slices_of<Level, S, Finish>()},
    {microkernel_for<Level, S>::rows, microkernel_for<Level, S>::columns, Lanewise<Level, S>::lanes, sizeof(operand_t<S>),
     sizeof(typename S::accumulator), sizeof(typename Lanewise<Level, S>::Sums), sizeof(row_t<S>), is_commutative<S>,
     Level::has_half, bytes_of_vectors<Level, S>, pairs_of<Level, S>(), cycles_of_joined<S>}};
template <class Level, class S, class Finish>
inline constexpr const Loop& loop = loop_as_is<Level, computed_t<S>, Finish>;

}  // namespace rigel::backends::host
