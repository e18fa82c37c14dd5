// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass that makes square matrices symmetric: D(l,m,n) = D(l,n,m) for n > m. A team copies a tile of the lower triangle through
// scratch memory, so that neighbouring threads read and write neighbours.
#pragma once

#include <rigel/detail/call.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rigel::detail {

/// `Word`: an unsigned integer of the elements' size.
template <class Exec, class Word>
struct Mirror {
  static constexpr int side = runs_on_host<Exec> ? 32 : 64, pitch = side + 1;  // no two of a column lie in one bank
  static constexpr int threads = runs_on_host<Exec> ? 1 : 8, lanes = runs_on_host<Exec> ? 1 : 32;
  using Policy = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<threads * lanes, 2>>;
  using Team = typename Policy::member_type;

  Strided<Word> d;
  std::int64_t batches, n, tiles;  // tiles: along a side
  bool by_rows;                    // elements of a row are neighbours

  RIGEL_MEMBER std::int64_t of_matrix() const { return tiles * (tiles + 1) / 2; }

  void launch(const Exec& exec) const {
    const std::int64_t teams = std::min<std::int64_t>(batches * of_matrix(), std::numeric_limits<int>::max());
    Policy policy(exec, static_cast<int>(teams), threads, lanes);
    Kokkos::parallel_for(
        "rigel::cdist/mirror",
        by_argument(policy.set_scratch_size(0, Kokkos::PerTeam(side * pitch * static_cast<int>(sizeof(Word))))), *this);
  }

  RIGEL_MEMBER void operator()(const Team& team) const {
    auto* const tile = static_cast<Word*>(team.team_shmem().get_shmem(side * pitch * sizeof(Word)));
    const std::int64_t each = of_matrix();
    for (std::int64_t t = team.league_rank(); t < batches * each; t += team.league_size()) {
      // Tile (i, j), j ≤ i, is number i(i + 1)/2 + j.
      const std::int64_t l = t / each, number = t - l * each;
      auto i = static_cast<std::int64_t>((std::sqrt(8. * static_cast<double>(number) + 1) - 1) / 2);
      i += number >= (i + 1) * (i + 2) / 2 ? 1 : number < i * (i + 1) / 2 ? -1 : 0;
      const std::int64_t j = number - i * (i + 1) / 2, row = i * side, column = j * side;
      Word* const from = &d.at(l, row, column);
      Word* const to = &d.at(l, column, row);
      const int rows = static_cast<int>(n - row < side ? n - row : side), last = j < i ? side : 0;
      mirror(team, tile, from, to, [&](int slow, int fast) {
        const int a = by_rows ? slow : fast, b = by_rows ? fast : slow;
        return a < rows && b < a + last;
      });
    }
  }

 private:
  // One tile. Places are (slow, fast): neighbours along `fast` are neighbours in memory, and threads.
  template <class IsWanted>
  RIGEL_MEMBER void mirror(const Team& team, Word* tile, const Word* from, Word* to, const IsWanted& is_wanted) const {
    const std::int64_t slow_step = by_rows ? d.row : d.column, fast_step = by_rows ? d.column : d.row;
    copy(
        team, is_wanted, [&](int slow, int fast) { return from[slow * slow_step + fast * fast_step]; },
        [&](int slow, int fast, Word x) { tile[slow * pitch + fast] = x; });
    team.team_barrier();
    copy(
        team, [&](int slow, int fast) { return is_wanted(fast, slow); },
        [&](int slow, int fast) { return tile[fast * pitch + slow]; },
        [&](int slow, int fast, Word x) { to[slow * slow_step + fast * fast_step] = x; });
    team.team_barrier();
  }

  // write(place, read(place)) for the places of a tile that are wanted. A thread of a device reads some before it writes the first, or it
  // would wait for each.
  template <class IsWanted, class Read, class Write>
  RIGEL_MEMBER static void copy(const Team& team, const IsWanted& is_wanted, const Read& read, const Write& write) {
    if constexpr (runs_on_host<Exec>) {
      for (int slow = 0; slow < side; ++slow)
        for (int fast = 0; fast < side; ++fast)
          if (is_wanted(slow, fast)) write(slow, fast, read(slow, fast));
    } else {
      constexpr int together = side / threads;
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, lanes), [&](int lane) {
#pragma unroll 1
        for (int fast = lane; fast < side; fast += lanes) {
          Word words[together];
#pragma unroll
          for (int t = 0; t < together; ++t) {
            const int slow = team.team_rank() + t * threads;
            words[t] = is_wanted(slow, fast) ? read(slow, fast) : Word{};
          }
#pragma unroll
          for (int t = 0; t < together; ++t) {
            const int slow = team.team_rank() + t * threads;
            if (is_wanted(slow, fast)) write(slow, fast, words[t]);
          }
        }
      });
    }
  }
};

}  // namespace rigel::detail
