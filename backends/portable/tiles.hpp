// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles on a device. A team computes one tile of C. Two slabs of each operand are in scratch memory: threads load the next one
// into registers while they work on one. Every thread holds a block of outputs in registers. Each output is one chain in
// ascending k, so the bits are the reference's.
#pragma once

#include <rigel/backends/portable/launch.hpp>
#include <rigel/backends/portable/shape.hpp>
#include <rigel/detail/arguments.hpp>

#include <string>

namespace rigel::backends::portable {

/// Where a tile starts.
struct Origin {
  std::int64_t batch, m, n;
};

/// The order in which teams take tiles: batch by batch, in groups of 8 rows of tiles, column by column within a group. Teams
/// that run at the same time then share rows of A and columns of B in the cache.
struct TileOrder {
  std::int64_t rows, columns;

  RIGEL_MEMBER Origin origin(std::int64_t t, int tile_m, int tile_n) const {
    constexpr std::int64_t group = 8;
    const std::int64_t l = t / (rows * columns), in_batch = t - l * (rows * columns);
    const std::int64_t top = in_batch / (group * columns) * group, in_group = in_batch - top * columns;
    const std::int64_t height = rows - top < group ? rows - top : group;
    return {l, (top + in_group % height) * tile_m, in_group / height * tile_n};
  }
};

/// Copies slabs of an operand from memory to scratch memory: `lines` rows of A or columns of B, and Shape::depth k. Neighbours
/// among the threads copy neighbours in memory. Lines beyond the last one repeat it, so that ⊗ only sees elements of A and B.
template <class Shape, int lines, class Element, class Stored>
class SlabCopy {
 public:
  /// From k to k + 1 in scratch memory. The padding spreads threads that write 8 k of 4 lines over all banks.
  static constexpr int pitch = lines + vector_of<Stored>;
  static constexpr int size = Shape::depth * pitch;

  RIGEL_FUNCTION SlabCopy(const Element* first, std::int64_t line_stride, std::int64_t k_stride, std::int64_t lines_left,
                          int rank)
      : slab_step_(Shape::depth * k_stride) {
    const bool along_k = k_stride < line_stride;
    const int line = along_k ? rank / Shape::depth : rank % lines;
    const int last = lines_left < lines ? static_cast<int>(lines_left) - 1 : lines - 1;
    k_ = along_k ? rank % Shape::depth : rank / lines;
    k_apart_ = along_k ? 0 : threads / lines;
    const int lines_apart = along_k ? threads / Shape::depth : 0;
    from_ = first + k_ * k_stride;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int at = line + i * lines_apart;
      offset_[i] = (at < last ? at : last) * line_stride + i * k_apart_ * k_stride;
    }
    to_ = k_ * pitch + line;
    to_apart_ = k_apart_ * pitch + lines_apart;
  }

  /// Loads this thread's share of the next slab, of which `steps` k exist.
  RIGEL_FUNCTION void load(int steps) {
    if (steps == Shape::depth) {
#pragma unroll
      for (int i = 0; i < each; ++i) held_[i] = from_[offset_[i]];
    } else {
#pragma unroll
      for (int i = 0; i < each; ++i)
        if (k_ + i * k_apart_ < steps) held_[i] = from_[offset_[i]];
    }
    from_ += slab_step_;
  }
  /// Writes what load() brought.
  RIGEL_FUNCTION void put(Stored* slab) const {
    using Operand = std::conditional_t<std::is_integral_v<Stored> && sizeof(Element) < 4, Element, Stored>;
#pragma unroll
    for (int i = 0; i < each; ++i) slab[to_ + i * to_apart_] = static_cast<Stored>(static_cast<Operand>(held_[i]));
  }

 private:
  static constexpr int threads = Shape::threads, each = lines * Shape::depth / threads;
  static_assert(each * threads == lines * Shape::depth && threads % lines == 0 && threads % Shape::depth == 0);

  const Element* from_;
  std::int64_t slab_step_, offset_[each];
  int k_, k_apart_, to_, to_apart_;
  Element held_[each];
};

/// How a thread continues a chain: as the reference does.
struct ReferenceStep {
  template <class S>
  static RIGEL_FUNCTION auto apply(const S& s, const typename S::accumulator& x, const operand_t<S>& a,
                                   const operand_t<S>& b, std::int64_t k) {
    return step(s, x, a, b, k);
  }
};

/// Powers of floats by math::power_approximately(), a tenth of the instructions of the platform's power on GPUs that have a
/// special-function unit which Rigel knows.
struct PowerStep {
  template <class S>
  static RIGEL_FUNCTION float apply(const S& s, float x, float a, float b, std::int64_t) {
    return math::add(x, math::power_approximately(math::abs(math::subtract(a, b)), s.p));
  }
};

/// The outputs of a thread.
template <class S, class Shape, class Step>
struct Block {
  using Operand = operand_t<S>;
  using Stored = word_of<Operand>;
  using Accumulator = typename S::accumulator;
  using Position = typename Shape::Position;
  static constexpr int rows = Shape::outputs_m, columns = Shape::outputs_n;
  static constexpr int width_m = rows % vector_of<Stored> == 0 ? vector_of<Stored> : 1;
  static constexpr int width_n = columns % vector_of<Stored> == 0 ? vector_of<Stored> : 1;

  Accumulator x[rows][columns];

  /// The row of the tile that is row i of a thread's block, and likewise the column.
  static RIGEL_FUNCTION int row(int thread, int i) {
    return i / width_m * (Shape::threads_m * width_m) + thread * width_m + i % width_m;
  }
  static RIGEL_FUNCTION int column(int thread, int j) {
    return j / width_n * (Shape::threads_n * width_n) + thread * width_n + j % width_n;
  }

  /// One step of each chain: a and b are row k of the slabs.
  RIGEL_FUNCTION void add(const S& s, const Stored* slab_a, const Stored* slab_b, Position at, std::int64_t k) {
    Operand a[rows], b[columns];
#pragma unroll
    for (int i = 0; i < rows; i += width_m) {
      const auto read = *reinterpret_cast<const Vector<Stored, width_m>*>(slab_a + row(at.row, i));
#pragma unroll
      for (int e = 0; e < width_m; ++e) a[i + e] = static_cast<Operand>(read.at[e]);
    }
#pragma unroll
    for (int j = 0; j < columns; j += width_n) {
      const auto read = *reinterpret_cast<const Vector<Stored, width_n>*>(slab_b + column(at.column, j));
#pragma unroll
      for (int e = 0; e < width_n; ++e) b[j + e] = static_cast<Operand>(read.at[e]);
    }
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) x[i][j] = Step::apply(s, x[i][j], a[i], b[j], k);
  }

  /// visit(x[i]) for a row that is known at run time only: x stays in registers.
  template <class Visit>
  RIGEL_FUNCTION void with_row(int i, const Visit& visit) {
#pragma unroll
    for (int each = 0; each < rows; ++each)
      if (each == i) visit(x[each]);
  }
};

/// What a team does. C passes through scratch memory by one row of all blocks at a time, so that threads which are neighbours
/// write neighbours of C, and the code of the epilogue stands here once.
template <class Shape, class S, class Finish, class Step>
struct TileWork {
  using Operand = operand_t<S>;
  using Stored = word_of<Operand>;
  using Accumulator = typename S::accumulator;
  using TeamBlock = Block<S, Shape, Step>;
  using CopyA = SlabCopy<Shape, Shape::m, typename S::element, Stored>;
  using CopyB = SlabCopy<Shape, Shape::n, typename S::element, Stored>;

  static constexpr int depth = Shape::depth, alignment = std::max<int>({16, alignof(Stored), alignof(Accumulator)});
  static constexpr int slabs = (CopyA::size + CopyB::size + 3) / 4 * 4;
  static constexpr int pitch_c = Shape::n + 1;
  static constexpr std::size_t bytes =
      std::max(2 * slabs * sizeof(Stored), Shape::threads_m * pitch_c * sizeof(Accumulator));

  detail::Arguments<S, Finish> g;
  TileOrder order;
  std::int64_t tiles;

  template <class Team>
  RIGEL_FUNCTION void operator()(const Team& team) const {
    void* const scratch = team.team_scratch(0).get_shmem_aligned(bytes, alignment);
    // Never; but a pointer that may be null or to scratch memory makes every access to it slow.
    if (scratch == nullptr) return;
    for (std::int64_t t = team.league_rank(); t < tiles; t += team.league_size())
      compute(team, order.origin(t, Shape::m, Shape::n), scratch);
  }

 private:
  template <class Team>
  RIGEL_FUNCTION void compute(const Team& team, Origin tile, void* scratch) const {
    const auto at = Shape::position(team.team_rank());
    const S s = g.semiring(tile.batch);
    TeamBlock block;
    start(team, s, tile, static_cast<Accumulator*>(scratch), at, block);
    sum(team, s, tile, static_cast<Stored*>(scratch), at, block);
    store(team, s, tile, static_cast<Accumulator*>(scratch), at, block);
  }

  template <class Team>
  RIGEL_FUNCTION void start(const Team& team, const S& s, Origin tile, Accumulator* outputs, typename Shape::Position at,
                            TeamBlock& block) const {
#pragma unroll
    for (int i = 0; i < Shape::outputs_m; ++i)
#pragma unroll
      for (int j = 0; j < Shape::outputs_n; ++j) block.x[i][j] = S::identity();
    if (!g.accumulate) return;
#pragma unroll 1
    for (int i = 0; i < Shape::outputs_m; ++i) {
      for_each_output(team.team_rank(), tile, i,
                      [&](int place, std::int64_t m, std::int64_t n) { outputs[place] = g.start(s, tile.batch, m, n); });
      team.team_barrier();
      block.with_row(i, [&](auto& x) {
#pragma unroll
        for (int j = 0; j < Shape::outputs_n; ++j) x[j] = outputs[at.row * pitch_c + TeamBlock::column(at.column, j)];
      });
      team.team_barrier();
    }
  }

  template <class Team>
  RIGEL_FUNCTION void sum(const Team& team, const S& s, Origin tile, Stored* slab, typename Shape::Position at,
                          TeamBlock& block) const {
    const int rank = team.team_rank();
    CopyA a(&g.a.at(tile.batch, tile.m, 0), g.a.row, g.a.column, g.m - tile.m, rank);
    CopyB b(&g.b.at(tile.batch, 0, tile.n), g.b.column, g.b.row, g.n - tile.n, rank);
    const auto steps_from = [&](std::int64_t k) { return static_cast<int>(g.k - k < depth ? g.k - k : depth); };
    const auto load = [&](std::int64_t k) {
      a.load(steps_from(k));
      b.load(steps_from(k));
    };
    const auto put = [&](Stored* to) {
      a.put(to);
      b.put(to + CopyA::size);
    };
    if (g.k > 0) {
      load(0);
      put(slab);
    }
    int buffer = 0;
    for (std::int64_t k0 = 0; k0 < g.k; k0 += depth) {
      team.team_barrier();
      const bool more = k0 + depth < g.k;
      if (more) load(k0 + depth);
      const Stored* const from = slab + buffer * slabs;
      const int steps = steps_from(k0);
      const auto add = [&](int k) {
        block.add(s, from + k * CopyA::pitch, from + CopyA::size + k * CopyB::pitch, at, k0 + k);
      };
      if (steps == depth) {
#pragma unroll 2
        for (int k = 0; k < depth; ++k) add(k);
      } else {
#pragma unroll 1
        for (int k = 0; k < steps; ++k) add(k);
      }
      buffer ^= 1;
      if (more) put(slab + buffer * slabs);
    }
    team.team_barrier();
  }

  template <class Team>
  RIGEL_FUNCTION void store(const Team& team, const S& s, Origin tile, Accumulator* outputs, typename Shape::Position at,
                            TeamBlock& block) const {
#pragma unroll 1
    for (int i = 0; i < Shape::outputs_m; ++i) {
      block.with_row(i, [&](auto& x) {
#pragma unroll
        for (int j = 0; j < Shape::outputs_n; ++j) outputs[at.row * pitch_c + TeamBlock::column(at.column, j)] = x[j];
      });
      team.team_barrier();
      for_each_output(team.team_rank(), tile, i,
                      [&](int place, std::int64_t m, std::int64_t n) { g.store(s, outputs[place], tile.batch, m, n); });
      team.team_barrier();
    }
  }

  /// visit(place in scratch memory, m, n) for this thread's share of row i of all blocks. Neighbours take neighbours in C.
  template <class Visit>
  RIGEL_FUNCTION void for_each_output(int rank, Origin tile, int i, const Visit& visit) const {
    const bool by_rows = g.c_strides.row >= g.c_strides.column;
#pragma unroll 1
    for (int o = rank; o < Shape::threads_m * Shape::n; o += Shape::threads) {
      const int row = by_rows ? o / Shape::n : o % Shape::threads_m;
      const int column = by_rows ? o % Shape::n : o / Shape::threads_m;
      const std::int64_t m = tile.m + TeamBlock::row(row, i), n = tile.n + column;
      if (m < g.m && n < g.n) visit(row * pitch_c + column, m, n);
    }
  }
};

/// Launches one team for each tile.
template <class Shape, class Step, class S, class Finish, class Exec>
static void contract_tiles(const Exec& exec, const std::string& label, const detail::Arguments<S, Finish>& g) {
  using Work = TileWork<Shape, S, Finish, Step>;
  const TileOrder order{(g.m + Shape::m - 1) / Shape::m, (g.n + Shape::n - 1) / Shape::n};
  const Work work{g, order, g.batch * order.rows * order.columns};
  launch<Kokkos::LaunchBounds<Shape::threads, Shape::teams>>(exec, label, work, work.tiles, Shape::threads,
                                                             Work::bytes + Work::alignment);
}

}  // namespace rigel::backends::portable
