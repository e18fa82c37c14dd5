// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For few outputs, for matrices so narrow that a tile of registers would stay empty, and for batches of small matrices, on a
// device. A thread computes one output, in ascending k, from slabs of A and B in scratch memory. A team's shape is chosen at run
// time.
#pragma once

#include <rigel/backends/portable/chain.hpp>
#include <rigel/backends/portable/launch.hpp>
#include <rigel/detail/arguments.hpp>

#include <bit>
#include <string>

namespace rigel::backends::portable {

/// The least e with 2^e >= x.
inline int ceil_log2(std::int64_t x) {
  return x <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(x - 1)));
}

/// The shape of a team, as binary logarithms: matrices, outputs along m and n of each, and k in a slab.
struct NarrowShape {
  static constexpr int most_threads = 8, most_depth = 6;
  static constexpr std::int64_t most_bytes = 24 * 1024;  // of scratch memory, so that several teams share a multiprocessor

  int batch = 0, m = 0, n = 0, depth = 0;

  RIGEL_MEMBER int threads() const { return batch + m + n; }
  /// From row to row of a slab, or from column to column. It is odd: neighbouring threads read different banks.
  RIGEL_MEMBER int pitch() const { return (1 << depth) + 1; }
  RIGEL_MEMBER int lines_a() const { return 1 << (batch + m); }
  RIGEL_MEMBER int lines_b() const { return 1 << (batch + n); }
  std::int64_t bytes(std::int64_t of_element) const { return (lines_a() + lines_b()) * pitch() * of_element; }

  std::int64_t tiles_m(const Contraction& p) const { return ((p.m - 1) >> m) + 1; }
  std::int64_t tiles_n(const Contraction& p) const { return ((p.n - 1) >> n) + 1; }
  std::int64_t teams(const Contraction& p) const { return (((p.batch - 1) >> batch) + 1) * tiles_m(p) * tiles_n(p); }
};

/// As square as C allows, then as many matrices as threads are left.
inline NarrowShape narrow_shape(const Contraction& p, std::int64_t bytes_of_element) {
  constexpr int most = NarrowShape::most_threads, square = most / 2;
  const int m = ceil_log2(p.m), n = ceil_log2(p.n);
  NarrowShape shape;
  shape.m = std::min(m, square);
  shape.n = std::min(n, most - shape.m);
  shape.m = std::min(m, most - shape.n);
  shape.batch = std::min(ceil_log2(p.batch), most - shape.m - shape.n);
  while (shape.bytes(bytes_of_element) > NarrowShape::most_bytes && shape.threads() > 0)
    --(shape.batch > 0 ? shape.batch : shape.m > shape.n ? shape.m : shape.n);
  const int longest = std::min(ceil_log2(p.k), NarrowShape::most_depth);
  while (shape.depth < longest) {
    ++shape.depth;
    if (shape.bytes(bytes_of_element) > NarrowShape::most_bytes) {
      --shape.depth;
      break;
    }
  }
  return shape;
}

/// What a team does.
template <class S, class Finish>
struct NarrowWork {
  using Chain = ReferenceChain<S>;
  using Operand = typename Chain::Operand;
  using Stored = typename Chain::Stored;
  using Element = typename S::element;
  static constexpr int alignment = std::max<int>(16, alignof(Stored));

  detail::Arguments<S, Finish> g;
  NarrowShape shape;
  std::int64_t tiles_m, tiles_n, teams;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.bytes(sizeof(Stored))); }

  template <class Team>
  RIGEL_FUNCTION void operator()(const Team& team) const {
    void* const scratch = team.team_scratch(0).get_shmem_aligned(
        static_cast<int>((shape.lines_a() + shape.lines_b()) * shape.pitch() * static_cast<int>(sizeof(Stored))), alignment);
    if (scratch == nullptr) return;  // as in tiles.hpp
    auto* const a = static_cast<Stored*>(scratch);
    Stored* const b = a + shape.lines_a() * shape.pitch();
    for (std::int64_t t = team.league_rank(); t < teams; t += team.league_size()) {
      const std::int64_t n0 = t % tiles_n << shape.n, m0 = t / tiles_n % tiles_m << shape.m;
      compute(team, {t / tiles_n / tiles_m << shape.batch, m0, n0}, a, b);
    }
  }

 private:
  struct Origin {
    std::int64_t batch, m, n;
  };

  template <class Team>
  RIGEL_FUNCTION void compute(const Team& team, Origin at, Stored* slab_a, Stored* slab_b) const {
    const int rank = team.team_rank(), threads = 1 << shape.threads();
    const int column = rank & ((1 << shape.n) - 1), row = rank >> shape.n & ((1 << shape.m) - 1);
    const int matrix = rank >> (shape.n + shape.m);
    const std::int64_t l = at.batch + matrix, m = at.m + row, n = at.n + column;
    const bool exists = l < g.batch && m < g.m && n < g.n;
    const S s = g.semiring(l < g.batch ? l : g.batch - 1);
    auto x = Chain::start(exists ? g.start(s, l, m, n) : typename S::accumulator(S::identity()));
    const Stored* const a = slab_a + ((matrix << shape.m) + row) * shape.pitch();
    const Stored* const b = slab_b + ((matrix << shape.n) + column) * shape.pitch();
    for (std::int64_t k0 = 0; k0 < g.k; k0 += 1 << shape.depth) {
      const int steps = static_cast<int>(g.k - k0 < (1 << shape.depth) ? g.k - k0 : 1 << shape.depth);
      team.team_barrier();
      bring(slab_a, g.a.data + k0 * g.a.column, {g.a.batch, g.a.row, g.a.column}, at.batch, at.m, g.m, shape.m, steps, rank,
            threads);
      bring(slab_b, g.b.data + k0 * g.b.row, {g.b.batch, g.b.column, g.b.row}, at.batch, at.n, g.n, shape.n, steps, rank,
            threads);
      team.team_barrier();
#pragma unroll 4
      for (int k = 0; k < steps; ++k) x = Chain::step(s, x, static_cast<Operand>(a[k]), static_cast<Operand>(b[k]), k0 + k);
    }
    if (exists) g.store(s, Chain::result(x), l, m, n);
  }

  struct Strides {
    std::int64_t batch, line, k;
  };
  /// Copies `steps` k of 2^lines rows of A, or columns of B, of each of the team's matrices. Neighbouring threads take neighbours
  /// in memory. Lines beyond the last one repeat it.
  RIGEL_FUNCTION void bring(Stored* slab, const Element* from, Strides strides, std::int64_t l0, std::int64_t line0,
                            std::int64_t all_lines, int lines, int steps, int rank, int threads) const {
    const bool along_k = strides.k < strides.line;
    const int all = shape.batch + lines;
    for (int i = rank; i < 1 << (all + shape.depth); i += threads) {
      const int line = along_k ? i >> shape.depth : i & ((1 << all) - 1);
      const int k = along_k ? i & ((1 << shape.depth) - 1) : i >> all;
      if (k >= steps) continue;
      const std::int64_t l = l0 + (line >> lines), in_matrix = line0 + (line & ((1 << lines) - 1));
      const std::int64_t offset = (l < g.batch ? l : g.batch - 1) * strides.batch +
                                  (in_matrix < all_lines ? in_matrix : all_lines - 1) * strides.line + k * strides.k;
      slab[line * shape.pitch() + k] = static_cast<Stored>(static_cast<Operand>(from[offset]));
    }
  }
};

/// Launches one team for each block of outputs.
template <class S, class Finish, class Exec>
static void contract_narrow(const Exec& exec, const std::string& label, const Contraction& p, NarrowShape shape) {
  using Work = NarrowWork<S, Finish>;
  const Work work{detail::arguments_of<S, Finish>(p), shape, shape.tiles_m(p), shape.tiles_n(p), shape.teams(p)};
  launch<Kokkos::LaunchBounds<1 << NarrowShape::most_threads>>(exec, label, work, work.teams, 1 << shape.threads(),
                                                               work.bytes() + Work::alignment);
}

}  // namespace rigel::backends::portable
