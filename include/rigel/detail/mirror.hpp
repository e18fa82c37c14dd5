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
  // Of a tile. On a device finding a tile's place takes as long as moving 32 × 32 elements.
  static constexpr int side = runs_on_host<Exec> ? 32 : 64, pitch = side + 1;  // no two of a column lie in one bank
  static constexpr int threads = runs_on_host<Exec> ? 1 : 8, lanes = runs_on_host<Exec> ? 1 : 32;
  using Policy = Kokkos::TeamPolicy<Exec>;
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
      const std::int64_t row = i * side, column = (number - i * (i + 1) / 2) * side;
      for_each_place(team, [&](int a, int b) {
        if (row + a < n && column + b < row + a) tile[a * pitch + b] = d.at(l, row + a, column + b);
      });
      team.team_barrier();
      for_each_place(team, [&](int b, int a) {
        if (row + a < n && column + b < row + a) d.at(l, column + b, row + a) = tile[a * pitch + b];
      });
      team.team_barrier();
    }
  }

 private:
  // use(place along rows, place along columns) for all places of a tile, neighbouring threads at neighbours in memory.
  template <class Use>
  RIGEL_MEMBER void for_each_place(const Team& team, const Use& use) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, side), [&](int slow) {
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, side),
                           [&](int fast) { by_rows ? use(slow, fast) : use(fast, slow); });
    });
  }
};

}  // namespace rigel::detail
