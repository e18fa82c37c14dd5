// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For few outputs and long K, on a device: a team computes a few outputs, and its threads share K. Thread t takes
// k = t, t + T, … in ascending order, and a tree joins the threads' sums. If that leaves multiprocessors idle, K is cut into
// slices: a first launch has a team for each slice and writes its sums to the workspace, and a second launch joins them by the
// same tree, thread t taking slice t. The order depends on K and on the number of slices alone, so results are repeatable; if ⊕
// is exact, they are the reference's.
#pragma once

#include <rigel/backends/portable/chain.hpp>
#include <rigel/backends/portable/launch.hpp>
#include <rigel/backends/portable/slices.hpp>
#include <rigel/backends/portable/tiles.hpp>
#include <rigel/detail/arguments.hpp>

#include <string>

namespace rigel::backends::portable {

/// Whether parts of K may be summed apart: by the zoo, or if ⊕ is exact.
template <class S>
inline constexpr bool splits_k = in_zoo<S> || is_exact<S>;

struct SplitK {
  static constexpr int threads = 256, resident = 4;  // teams on a multiprocessor

  /// As many slices as fill a device with teams, if they are long enough.
  static Slices cut(std::int64_t k, std::int64_t blocks, std::int64_t multiprocessors) {
    constexpr std::int64_t most = threads, least = 4 * threads;
    return cut_k(k, std::min(resident * multiprocessors / std::max<std::int64_t>(blocks, 1), most), least, threads);
  }
};

/// What a team does in both launches.
template <class S, class Finish>
struct SplitKWork {
  using Chain = ReferenceChain<S>;
  using Operand = typename Chain::Operand;
  using Accumulator = typename S::accumulator;
  static constexpr int rows = SliceBlocks::rows, columns = SliceBlocks::columns, threads = SplitK::threads;
  static constexpr int alignment = std::max<int>(16, alignof(Accumulator));
  static constexpr std::size_t bytes = SliceBlocks::outputs * threads * sizeof(Accumulator);

  detail::Arguments<S, Finish> g;
  SliceBlocks blocks;
  Slices slices;
  Accumulator* of_slices;  // not read if there is one slice
  bool joins;              // whether this is the second launch

  RIGEL_MEMBER std::int64_t pieces() const { return joins ? blocks.count : blocks.count * slices.count; }

  template <class Team>
  RIGEL_FUNCTION void operator()(const Team& team) const {
    auto* const sums = static_cast<Accumulator*>(team.team_scratch(0).get_shmem_aligned(bytes, alignment));
    if (sums == nullptr) return;  // as in tiles.hpp
    // Neighbouring teams take neighbouring blocks of one slice, which share operands.
    for (std::int64_t t = team.league_rank(); t < pieces(); t += team.league_size())
      compute(team, t % blocks.count, t / blocks.count, sums);
  }

 private:
  template <class Team>
  RIGEL_FUNCTION void compute(const Team& team, std::int64_t block, std::int64_t slice, Accumulator* sums) const {
    const int rank = team.team_rank();
    const std::int64_t l = block / blocks.along_n / blocks.along_m;
    const std::int64_t m0 = block / blocks.along_n % blocks.along_m * rows, n0 = block % blocks.along_n * columns;
    const std::int64_t begin = slice * slices.length, end = begin + slices.length < g.k ? begin + slices.length : g.k;
    const S s = g.semiring(l);
    if (joins)
      bring(s, block, rank, sums);
    else
      sum(s, l, m0, n0, {begin, end}, rank, sums);
    team.team_barrier();
    // Threads that have no k are left out: an accumulated C may lie outside the domain in which the identity is one.
    const std::int64_t terms = joins ? slices.count : end - begin;
    const int active = terms < threads ? static_cast<int>(terms) : threads;
    for (int half = threads / 2; half > 0; half /= 2) {
      for (int i = rank; i < SliceBlocks::outputs * half; i += threads) {
        Accumulator* const of_output = sums + i / half * threads;
        const int left = i % half, right = left + half;
        if (right < active) of_output[left] = s.add(of_output[left], of_output[right]);
      }
      team.team_barrier();
    }
    if (rank < SliceBlocks::outputs) {
      const std::int64_t m = m0 + rank / columns, n = n0 + rank % columns;
      const Accumulator x = sums[rank * threads];
      if (slices.count > 1 && !joins)
        of_slices[(slice * blocks.count + block) * SliceBlocks::outputs + rank] = x;
      else if (m < g.m && n < g.n)
        g.store(s, joins && g.accumulate ? s.add(g.start(s, l, m, n), x) : x, l, m, n);
    }
    team.team_barrier();
  }

  /// The slices that this thread takes in the second launch: t, t + T, …
  RIGEL_FUNCTION void bring(const S& s, std::int64_t block, int rank, Accumulator* sums) const {
    if (rank >= slices.count) return;
#pragma unroll
    for (int i = 0; i < SliceBlocks::outputs; ++i) {
      const auto of_slice = [&](std::int64_t slice) {
        return of_slices[(slice * blocks.count + block) * SliceBlocks::outputs + i];
      };
      Accumulator x = of_slice(rank);
      for (std::int64_t slice = rank + threads; slice < slices.count; slice += threads) x = s.add(x, of_slice(slice));
      sums[i * threads + rank] = x;
    }
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
    typename Chain::Sum x[rows][columns];
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j)
        x[i][j] = Chain::start(starts ? g.start(s, l, row(i), column(j)) : Accumulator(S::identity()));
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
        for (int j = 0; j < columns; ++j) x[i][j] = Chain::step(s, x[i][j], a[i], b[j], k);
    }
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) sums[(i * columns + j) * threads + rank] = Chain::result(x[i][j]);
  }
};

template <class S, class Finish, class Exec>
static void launch_split_k(const Exec& exec, const std::string& label, const Contraction& p, Slices slices, void* workspace,
                           bool joins) {
  using Work = SplitKWork<S, Finish>;
  auto* const of_slices = static_cast<typename S::accumulator*>(workspace);
  const Work work{detail::arguments_of<S, Finish>(p), SliceBlocks::of(p), slices, of_slices, joins};
  launch<Kokkos::LaunchBounds<SplitK::threads>>(exec, label, work, work.pieces(), SplitK::threads,
                                                Work::bytes + Work::alignment);
}

/// Launches one team for each block of outputs and slice, and if there are several slices, one for each block to join them.
template <class S, class Finish, class Exec>
static void contract_split_k(const Exec& exec, const std::string& label, const Contraction& p, Slices slices,
                             void* workspace) {
  launch_split_k<S, Finish>(exec, label, p, slices, workspace, false);
  if (slices.count > 1) launch_split_k<S, Finish>(exec, label, p, slices, workspace, true);
}

/// The same with a tile of `Shape` for each team of the first launch. One slice is the kernel `tiles`.
template <class Shape, class Chain, class S, class Finish, class Exec>
static void contract_sliced_tiles(const Exec& exec, const std::string& label, const Contraction& p, Slices slices,
                                  void* workspace) {
  auto* const of_slices = static_cast<typename S::accumulator*>(workspace);
  contract_tiles<Shape, Chain>(exec, label, detail::arguments_of<S, Finish>(p), SliceBlocks::of(p), slices, of_slices);
  if (slices.count > 1) launch_split_k<S, Finish>(exec, label, p, slices, workspace, true);
}

}  // namespace rigel::backends::portable
