// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles on a device. A team computes one tile of C. Two slabs of each operand are in scratch memory: threads load the next one
// into registers while they work on one. Every thread holds a block of outputs in registers. Each output is one chain in
// ascending k, so the bits are the reference's. If K is cut into slices (slices.hpp), each output of a slice is such a chain.
#pragma once

#include <rigel/backends/portable/chain.hpp>
#include <rigel/backends/portable/launch.hpp>
#include <rigel/backends/portable/slices.hpp>
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

/// The next word of a line: `packed` elements along K, of which `left` exist. The others count as zeros. An element that is not
/// packed is converted when it is written to scratch memory.
template <class Element, class Chain>
class WordLoad {
  static constexpr int packed = Chain::packed;

 public:
  using Held = std::conditional_t<packed == 1, Element, typename Chain::Stored>;

  RIGEL_FUNCTION WordLoad(const Element* first, std::int64_t line_stride, std::int64_t k_stride) : k_stride_(k_stride) {
    constexpr auto element = static_cast<std::int64_t>(sizeof(Element));
    whole_ =
        k_stride == 1 &&
        (reinterpret_cast<std::uintptr_t>(first) | static_cast<std::uintptr_t>(line_stride * element)) % sizeof(Held) == 0;
  }
  RIGEL_FUNCTION Held operator()(const Element* at, [[maybe_unused]] int left) const {
    if constexpr (packed == 1) {
      return *at;
    } else {
      Held word = 0;
      if (whole_ && left >= packed) {
        __builtin_memcpy(&word, __builtin_assume_aligned(at, sizeof(Held)), sizeof(Held));
        return word;
      }
#pragma unroll
      for (int e = 0; e < packed; ++e)
        if (e < left) word |= Held{at[e * k_stride_]} << (8 * static_cast<int>(sizeof(Element)) * e);
      return word;
    }
  }

 private:
  std::int64_t k_stride_;
  bool whole_;  // whether a word is one load
};

/// Copies slabs of an operand from memory to scratch memory: `lines` rows of A or columns of B, and Shape::depth words along K.
/// Neighbours among the threads copy neighbours in memory. Lines beyond the last one repeat it, so that ⊗ only sees elements of A
/// and B.
template <class Shape, int lines, class Element, class Chain>
class SlabCopy {
  using Stored = typename Chain::Stored;
  static constexpr int packed = Chain::packed;

 public:
  /// From one word to the next along K in scratch memory. The padding spreads threads that write 8 words of 4 lines over all banks.
  static constexpr int pitch = lines + vector_of<Stored>;
  static constexpr int size = Shape::depth * pitch;

  RIGEL_FUNCTION SlabCopy(const Element* first, std::int64_t line_stride, std::int64_t k_stride, std::int64_t lines_left,
                          int rank)
      : word_(first, line_stride, k_stride), slab_step_(Shape::depth * packed * k_stride) {
    const bool along_k = k_stride < line_stride;
    const int line = along_k ? rank / Shape::depth : rank % lines;
    const int last = lines_left < lines ? static_cast<int>(lines_left) - 1 : lines - 1;
    word_of_slab_ = along_k ? rank % Shape::depth : rank / lines;
    words_apart_ = along_k ? 0 : threads / lines;
    const int lines_apart = along_k ? threads / Shape::depth : 0;
    from_ = first + word_of_slab_ * packed * k_stride;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int at = line + i * lines_apart;
      offset_[i] = (at < last ? at : last) * line_stride + i * words_apart_ * packed * k_stride;
    }
    to_ = word_of_slab_ * pitch + line;
    to_apart_ = words_apart_ * pitch + lines_apart;
  }

  /// Loads this thread's share of the next slab, of which `steps` k exist.
  RIGEL_FUNCTION void load(int steps) {
    if (packed == 1 && steps == Shape::depth) {
#pragma unroll
      for (int i = 0; i < each; ++i) held_[i] = word_(from_ + offset_[i], 1);
    } else {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const int left = steps - (word_of_slab_ + i * words_apart_) * packed;
        if (left > 0) held_[i] = word_(from_ + offset_[i], left);
      }
    }
    from_ += slab_step_;
  }
  /// Writes what load() brought.
  RIGEL_FUNCTION void put(Stored* slab) const {
    using Operand = typename Chain::Operand;
#pragma unroll
    for (int i = 0; i < each; ++i) slab[to_ + i * to_apart_] = static_cast<Stored>(static_cast<Operand>(held_[i]));
  }

 private:
  static constexpr int threads = Shape::threads, each = lines * Shape::depth / threads;
  static_assert(each * threads == lines * Shape::depth && threads % lines == 0 && threads % Shape::depth == 0);

  WordLoad<Element, Chain> word_;
  const Element* from_;
  std::int64_t slab_step_, offset_[each];
  int word_of_slab_, words_apart_, to_, to_apart_;
  typename WordLoad<Element, Chain>::Held held_[each];
};

/// The outputs of a thread.
template <class S, class Shape, class Chain>
struct Block {
  using Operand = typename Chain::Operand;
  using Stored = typename Chain::Stored;
  using Position = typename Shape::Position;
  static constexpr int rows = Shape::outputs_m, columns = Shape::outputs_n;
  static constexpr int width_m = rows % vector_of<Stored> == 0 ? vector_of<Stored> : 1;
  static constexpr int width_n = columns % vector_of<Stored> == 0 ? vector_of<Stored> : 1;

  typename Chain::Sum x[rows][columns];

  /// The row of the tile that is row i of a thread's block, and likewise the column.
  static RIGEL_FUNCTION int row(int thread, int i) {
    return i / width_m * (Shape::threads_m * width_m) + thread * width_m + i % width_m;
  }
  static RIGEL_FUNCTION int column(int thread, int j) {
    return j / width_n * (Shape::threads_n * width_n) + thread * width_n + j % width_n;
  }

  /// One step of each chain: a and b are the words of one k in the slabs.
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
      for (int j = 0; j < columns; ++j) x[i][j] = Chain::step(s, x[i][j], a[i], b[j], k);
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
template <class Shape, class S, class Finish, class Chain>
struct TileWork {
  using Stored = typename Chain::Stored;
  using Accumulator = typename S::accumulator;
  using TeamBlock = Block<S, Shape, Chain>;
  using Position = typename Shape::Position;
  using CopyA = SlabCopy<Shape, Shape::m, typename S::element, Chain>;
  using CopyB = SlabCopy<Shape, Shape::n, typename S::element, Chain>;

  static constexpr int depth = Shape::depth * Chain::packed;  // of a slab, in k
  static constexpr int alignment = std::max<int>({16, alignof(Stored), alignof(Accumulator)});
  static constexpr int slab = (CopyA::size + CopyB::size + 3) / 4 * 4;
  static constexpr int pitch_c = Shape::n + 1;
  static constexpr std::size_t counts_at =
      std::max(2 * slab * sizeof(Stored), Shape::threads_m * pitch_c * sizeof(Accumulator));
  static constexpr std::size_t bytes = counts_at + (Chain::counts_lines ? (Shape::m + Shape::n) * sizeof(std::int32_t) : 0);

  detail::Arguments<S, Finish> g;
  TileOrder order;
  std::int64_t tiles;
  SliceBlocks blocks;
  Slices slices;
  Accumulator* of_slices;  // not written if there is one slice

  RIGEL_MEMBER std::int64_t pieces() const { return tiles * slices.count; }

  template <class Team>
  RIGEL_FUNCTION void operator()(const Team& team) const {
    void* const scratch = team.team_scratch(0).get_shmem_aligned(bytes, alignment);
    // Never; but a pointer that may be null or to scratch memory makes every access to it slow.
    if (scratch == nullptr) return;
    for (std::int64_t t = team.league_rank(); t < pieces(); t += team.league_size())
      compute(team, order.origin(t % tiles, Shape::m, Shape::n), t / tiles, scratch);
  }

 private:
  template <class Team>
  RIGEL_FUNCTION void compute(const Team& team, Origin tile, std::int64_t slice, void* scratch) const {
    const auto at = Shape::position(team.team_rank());
    const S s = g.semiring(tile.batch);
    auto* const outputs = static_cast<Accumulator*>(scratch);
    auto* const counts = reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(scratch) + counts_at);
    const std::int64_t begin = slice * slices.length, end = begin + slices.length < g.k ? begin + slices.length : g.k;
    TeamBlock block;
    start(team, s, tile, outputs, at, block);
    sum(team, s, tile, {begin, end}, static_cast<Stored*>(scratch), counts, at, block);
    store(team, s, tile, slice, outputs, counts, at, block);
  }

  template <class Team>
  RIGEL_FUNCTION void start(const Team& team, const S& s, Origin tile, Accumulator* outputs, Position at,
                            TeamBlock& block) const {
#pragma unroll
    for (int i = 0; i < Shape::outputs_m; ++i)
#pragma unroll
      for (int j = 0; j < Shape::outputs_n; ++j) block.x[i][j] = Chain::start(S::identity());
    if (!g.accumulate || slices.count > 1) return;
#pragma unroll 1
    for (int i = 0; i < Shape::outputs_m; ++i) {
      for_each_output(team.team_rank(), tile, i,
                      [&](int place, std::int64_t m, std::int64_t n) { outputs[place] = g.start(s, tile.batch, m, n); });
      team.team_barrier();
      block.with_row(i, [&](auto& x) {
#pragma unroll
        for (int j = 0; j < Shape::outputs_n; ++j)
          x[j] = Chain::start(outputs[at.row * pitch_c + TeamBlock::column(at.column, j)]);
      });
      team.team_barrier();
    }
  }

  struct Part {
    std::int64_t begin, end;
  };
  template <class Team>
  RIGEL_FUNCTION void sum(const Team& team, const S& s, Origin tile, Part part, Stored* slabs, std::int32_t* counts,
                          Position at, TeamBlock& block) const {
    const int rank = team.team_rank();
    CopyA a(&g.a.at(tile.batch, tile.m, part.begin), g.a.row, g.a.column, g.m - tile.m, rank);
    CopyB b(&g.b.at(tile.batch, part.begin, tile.n), g.b.column, g.b.row, g.n - tile.n, rank);
    const auto steps_from = [&](std::int64_t k) { return static_cast<int>(part.end - k < depth ? part.end - k : depth); };
    const auto load = [&](std::int64_t k) {
      a.load(steps_from(k));
      b.load(steps_from(k));
    };
    const auto put = [&](Stored* to) {
      a.put(to);
      b.put(to + CopyA::size);
    };
    if constexpr (Chain::counts_lines)
      for (int line = rank; line < Shape::m + Shape::n; line += Shape::threads) counts[line] = 0;
    if (part.begin < part.end) {
      load(part.begin);
      put(slabs);
    }
    int buffer = 0;
    for (std::int64_t k0 = part.begin; k0 < part.end; k0 += depth) {
      team.team_barrier();
      const bool more = k0 + depth < part.end;
      if (more) load(k0 + depth);
      const Stored* const from = slabs + buffer * slab;
      const int steps = steps_from(k0);
      const auto add = [&](int word) {
        block.add(s, from + word * CopyA::pitch, from + CopyA::size + word * CopyB::pitch, at, k0 + word * Chain::packed);
      };
      if (steps == depth) {
#pragma unroll 2
        for (int word = 0; word < Shape::depth; ++word) add(word);
      } else {
#pragma unroll 1
        for (int word = 0; word * Chain::packed < steps; ++word) add(word);
      }
      if constexpr (Chain::counts_lines) count_lines(from, steps, counts, rank);
      buffer ^= 1;
      if (more) put(slabs + buffer * slab);
    }
    team.team_barrier();
  }

  /// Counts the bits that are set in the lines of a slab. A thread counts the same lines each time.
  RIGEL_FUNCTION void count_lines(const Stored* from, int steps, std::int32_t* counts, int rank) const {
    const int words = (steps + Chain::packed - 1) / Chain::packed;
#pragma unroll 1
    for (int line = rank; line < Shape::m + Shape::n; line += Shape::threads) {
      const bool of_a = line < Shape::m;
      const Stored* const at = from + (of_a ? line : CopyA::size + line - Shape::m);
      const int pitch = of_a ? CopyA::pitch : CopyB::pitch;
      std::int32_t count = counts[line];
      for (int word = 0; word < words; ++word) count = math::add(count, math::population_count(at[word * pitch]));
      counts[line] = count;
    }
  }

  template <class Team>
  RIGEL_FUNCTION void store(const Team& team, const S& s, Origin tile, std::int64_t slice, Accumulator* outputs,
                            const std::int32_t* counts, Position at, TeamBlock& block) const {
#pragma unroll 1
    for (int i = 0; i < Shape::outputs_m; ++i) {
      block.with_row(i, [&](auto& x) {
#pragma unroll
        for (int j = 0; j < Shape::outputs_n; ++j)
          outputs[at.row * pitch_c + TeamBlock::column(at.column, j)] = Chain::result(x[j]);
      });
      team.team_barrier();
      for_each_output(team.team_rank(), tile, i, [&](int place, std::int64_t m, std::int64_t n) {
        Accumulator x = outputs[place];
        if constexpr (Chain::counts_lines) x = Chain::of_lines(x, counts[m - tile.m], counts[Shape::m + n - tile.n]);
        if (slices.count > 1)
          of_slices[blocks.place(slice, tile.batch, m, n)] = x;
        else
          g.store(s, x, tile.batch, m, n);
      });
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

/// Launches one team for each tile and slice. Sums of several slices go to `of_slices`.
template <class Shape, class Chain, class S, class Finish, class Exec>
static void contract_tiles(const Exec& exec, const std::string& label, const detail::Arguments<S, Finish>& g,
                           SliceBlocks blocks, Slices slices, typename S::accumulator* of_slices) {
  using Work = TileWork<Shape, S, Finish, Chain>;
  const TileOrder order{(g.m + Shape::m - 1) / Shape::m, (g.n + Shape::n - 1) / Shape::n};
  const Work work{g, order, g.batch * order.rows * order.columns, blocks, slices, of_slices};
  launch<Kokkos::LaunchBounds<Shape::threads, Shape::teams>>(exec, label, work, work.pieces(), Shape::threads,
                                                             Work::bytes + Work::alignment);
}

}  // namespace rigel::backends::portable
