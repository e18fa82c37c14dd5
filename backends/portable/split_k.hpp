// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For few outputs and long K, on a device: a team computes a few outputs, and its threads share K. Thread t takes
// k = t, t + T, … in ascending order, and a tree joins the threads' sums. The order depends on K alone, so results are
// repeatable; if ⊕ is exact, they are the reference's.
#pragma once

#include <rigel/backends/portable/launch.hpp>
#include <rigel/backends/portable/shape.hpp>
#include <rigel/detail/arguments.hpp>

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
};

/// What a team does.
template <class S, class Finish>
struct SplitKWork {
  using Operand = operand_t<S>;
  using Accumulator = typename S::accumulator;
  static constexpr int rows = SplitK::rows, columns = SplitK::columns, threads = SplitK::threads;
  static constexpr int alignment = std::max<int>(16, alignof(Accumulator));
  static constexpr std::size_t bytes = SplitK::outputs * threads * sizeof(Accumulator);

  detail::Arguments<S, Finish> g;
  std::int64_t tiles_m, tiles_n, teams;

  template <class Team>
  RIGEL_FUNCTION void operator()(const Team& team) const {
    auto* const sums = static_cast<Accumulator*>(team.team_scratch(0).get_shmem_aligned(bytes, alignment));
    if (sums == nullptr) return;  // as in tiles.hpp
    for (std::int64_t t = team.league_rank(); t < teams; t += team.league_size())
      compute(team, t / tiles_n / tiles_m, t / tiles_n % tiles_m * rows, t % tiles_n * columns, sums);
  }

 private:
  template <class Team>
  RIGEL_FUNCTION void compute(const Team& team, std::int64_t l, std::int64_t m0, std::int64_t n0, Accumulator* sums) const {
    const int rank = team.team_rank();
    const S s = g.semiring(l);
    sum(s, l, m0, n0, rank, sums);
    team.team_barrier();
    // Threads that have no k are left out: an accumulated C may lie outside the domain in which the identity is one.
    const int active = g.k < threads ? static_cast<int>(g.k) : threads;
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
      if (m < g.m && n < g.n) g.store(s, sums[rank * threads], l, m, n);
    }
    team.team_barrier();
  }

  /// This thread's share of K. Rows and columns beyond the last one repeat it.
  RIGEL_FUNCTION void sum(const S& s, std::int64_t l, std::int64_t m0, std::int64_t n0, int rank, Accumulator* sums) const {
    const auto row = [&](int i) { return m0 + i < g.m ? m0 + i : g.m - 1; };
    const auto column = [&](int j) { return n0 + j < g.n ? n0 + j : g.n - 1; };
    Accumulator x[rows][columns];
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) x[i][j] = rank == 0 ? g.start(s, l, row(i), column(j)) : Accumulator(S::identity());
#pragma unroll 4
    for (std::int64_t k = rank; k < g.k; k += threads) {
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

/// Launches one team for each block of outputs.
template <class S, class Finish, class Exec>
static void contract_split_k(const Exec& exec, const std::string& label, const Contraction& p) {
  using Work = SplitKWork<S, Finish>;
  const std::int64_t tiles_m = SplitK::tiles_m(p), tiles_n = SplitK::tiles_n(p);
  const Work work{detail::arguments_of<S, Finish>(p), tiles_m, tiles_n, p.batch * tiles_m * tiles_n};
  launch<Kokkos::LaunchBounds<SplitK::threads>>(exec, label, work, work.teams, SplitK::threads,
                                                Work::bytes + Work::alignment);
}

}  // namespace rigel::backends::portable
