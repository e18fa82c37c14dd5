// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For few outputs and long K, on a device: a team computes a few outputs, and its threads share K. Thread t takes
// k = t, t + T, … in ascending order, and a tree joins the threads' sums. If that leaves multiprocessors idle, K is cut into
// slices: a first launch has a team for each slice and writes its sums to the workspace, and a second launch joins them by the
// same tree, thread t taking slice t. The order depends on K and on the number of slices alone, so results are repeatable; if ⊕
// is exact, they are the reference's.
#pragma once

#include <rigel/backends/portable/launch.hpp>
#include <rigel/backends/portable/shape.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/detail/workspace.hpp>

#include <string>

namespace rigel::backends::portable {

/// Whether parts of K may be summed apart: by the zoo, or if ⊕ is exact.
template <class S>
inline constexpr bool splits_k = in_zoo<S> || is_exact<S>;

struct SplitK {
  static constexpr int rows = 2, columns = 2, outputs = rows * columns;
  static constexpr int threads = 256;

  static std::int64_t tiles_m(const Contraction& p) { return (p.m + rows - 1) / rows; }
  static std::int64_t tiles_n(const Contraction& p) { return (p.n + columns - 1) / columns; }
  static std::int64_t tiles(const Contraction& p) { return p.batch * tiles_m(p) * tiles_n(p); }
};

/// K in `count` slices of `length` k. The last one may be shorter; none is empty, unless K is 0.
struct Slices {
  std::int64_t count, length;
};

/// As many slices as fill a device with teams, if they are long enough. A thread of the second launch takes at most one.
inline Slices cut_k(std::int64_t k, std::int64_t tiles, std::int64_t multiprocessors) {
  constexpr std::int64_t resident = 4, threads = SplitK::threads, least = 4 * threads;
  const std::int64_t filling = resident * multiprocessors / std::max<std::int64_t>(tiles, 1);
  const std::int64_t most = std::min({filling, k / least, threads});
  if (most < 2) return {1, k};
  const std::int64_t length = (k + most * threads - 1) / (most * threads) * threads;
  return {(k + length - 1) / length, length};
}

/// What a team does in both launches.
template <class S, class Finish>
struct SplitKWork {
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;
  static constexpr int rows = SplitK::rows, columns = SplitK::columns, threads = SplitK::threads;
  static constexpr int alignment = std::max<int>(16, alignof(Accumulator));
  static constexpr std::size_t bytes = SplitK::outputs * threads * sizeof(Accumulator);

  detail::Arguments<S, Finish> g;
  std::int64_t tiles_m, tiles_n, tiles;
  Slices slices;
  Accumulator* of_slices;  // tile by tile, slice by slice; not read if there is one slice
  bool joins;              // whether this is the second launch

  RIGEL_MEMBER std::int64_t pieces() const { return joins ? tiles : tiles * slices.count; }

  template <class Team>
  RIGEL_FUNCTION void operator()(const Team& team) const {
    auto* const sums = static_cast<Accumulator*>(team.team_scratch(0).get_shmem_aligned(bytes, alignment));
    if (sums == nullptr) return;  // as in tiles.hpp
    // Neighbouring teams take neighbouring tiles of one slice, which share operands.
    for (std::int64_t t = team.league_rank(); t < pieces(); t += team.league_size())
      compute(team, t % tiles, t / tiles, sums);
  }

 private:
  template <class Team>
  RIGEL_FUNCTION void compute(const Team& team, std::int64_t tile, std::int64_t slice, Accumulator* sums) const {
    const int rank = team.team_rank();
    const std::int64_t l = tile / tiles_n / tiles_m, m0 = tile / tiles_n % tiles_m * rows, n0 = tile % tiles_n * columns;
    const std::int64_t begin = slice * slices.length, end = begin + slices.length < g.k ? begin + slices.length : g.k;
    const S s = g.semiring(l);
    if (joins)
      bring(tile, rank, sums);
    else
      sum(s, l, m0, n0, {begin, end}, rank, sums);
    team.team_barrier();
    // Threads that have no k are left out: an accumulated C may lie outside the domain in which the identity is one.
    const std::int64_t terms = joins ? slices.count : end - begin;
    const int active = terms < threads ? static_cast<int>(terms) : threads;
    for (int half = threads / 2; half > 0; half /= 2) {
      for (int i = rank; i < SplitK::outputs * half; i += threads) {
        Accumulator* const of_output = sums + i / half * threads;
        const int left = i % half, right = left + half;
        if (right < active) of_output[left] = s.add(of_output[left], of_output[right]);
      }
      team.team_barrier();
    }
    if (rank < SplitK::outputs) {
      const std::int64_t m = m0 + rank / columns, n = n0 + rank % columns;
      const Accumulator x = sums[rank * threads];
      if (slices.count > 1 && !joins)
        of_slices[(tile * slices.count + slice) * SplitK::outputs + rank] = x;
      else if (m < g.m && n < g.n)
        g.store(s, joins && g.accumulate ? s.add(g.start(s, l, m, n), x) : x, l, m, n);
    }
    team.team_barrier();
  }

  /// The slice that this thread takes in the second launch.
  RIGEL_FUNCTION void bring(std::int64_t tile, int rank, Accumulator* sums) const {
    if (rank >= slices.count) return;
#pragma unroll
    for (int i = 0; i < SplitK::outputs; ++i)
      sums[i * threads + rank] = of_slices[(tile * slices.count + rank) * SplitK::outputs + i];
  }

  struct Part {
    std::int64_t begin, end;
  };
  /// This thread's share of a slice. If there is only one, its first chain starts with C in calls that accumulate. Rows and columns
  /// beyond the last one repeat it.
  RIGEL_FUNCTION void sum(const S& s, std::int64_t l, std::int64_t m0, std::int64_t n0, Part part, int rank,
                          Accumulator* sums) const {
    const bool starts = rank == 0 && slices.count == 1;
    const auto row = [&](int i) { return m0 + i < g.m ? m0 + i : g.m - 1; };
    const auto column = [&](int j) { return n0 + j < g.n ? n0 + j : g.n - 1; };
    Accumulator x[rows][columns];
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) x[i][j] = starts ? g.start(s, l, row(i), column(j)) : Accumulator(S::identity());
#pragma unroll 4
    for (std::int64_t k = part.begin + rank; k < part.end; k += threads) {
      Operand a[rows], b[columns];
#pragma unroll
      for (int i = 0; i < rows; ++i) a[i] = static_cast<Operand>(g.a.at(l, row(i), k));
#pragma unroll
      for (int j = 0; j < columns; ++j) b[j] = static_cast<Operand>(g.b.at(l, k, column(j)));
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < columns; ++j) x[i][j] = step(s, x[i][j], a[i], b[j], k);
    }
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) sums[(i * columns + j) * threads + rank] = x[i][j];
  }
};

/// Bytes of the sums of all slices, which one slice does not write.
template <class S>
std::size_t split_k_workspace(const Contraction& p, Slices slices) {
  detail::WorkspaceLayout layout;
  if (slices.count > 1) layout.add(SplitK::tiles(p) * slices.count * SplitK::outputs, sizeof(typename S::accumulator));
  return layout.bytes();
}

/// Launches one team for each block of outputs and slice, and if there are several slices, one for each block to join them.
template <class S, class Finish, class Exec>
static void contract_split_k(const Exec& exec, const std::string& label, const Contraction& p, Slices slices,
                             void* workspace) {
  using Work = SplitKWork<S, Finish>;
  const int launches = slices.count > 1 ? 2 : 1;
  for (int i = 0; i < launches; ++i) {
    const Work work{detail::arguments_of<S, Finish>(p),
                    SplitK::tiles_m(p),
                    SplitK::tiles_n(p),
                    SplitK::tiles(p),
                    slices,
                    static_cast<typename S::accumulator*>(workspace),
                    i == 1};
    launch<Kokkos::LaunchBounds<SplitK::threads>>(exec, label, work, work.pieces(), SplitK::threads,
                                                  Work::bytes + Work::alignment);
  }
}

}  // namespace rigel::backends::portable
