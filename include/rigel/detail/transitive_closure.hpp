// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What transitive_closure() does in addition to contract(), in two kernels for each block K of b vertices, and its driver on operands
// (src/operations/transitive_closure.cpp). rigel/transitive_closure.hpp derives the whole.
#pragma once

#include <rigel/detail/call.hpp>

namespace rigel::detail {

/// The largest block: D(K,K) has to fit into a device's fast memory, 32 KiB.
inline constexpr int max_reachability_block = 512;

/// What the kernels read and write, passed by value. Batch l counts graphs.
template <class Word>
struct ReachabilityData {
  static constexpr int bits = 8 * sizeof(Word);

  std::int64_t batches, n, words;  // ⌈n / bits⌉ words a row
  Strided<Word> d;                 // n × words
  Strided<Word> square;            // b × ⌈b / bits⌉: bit t of row k, packed as in D, is T(t,k): T transposed
  Strided<Word> left;              // n × b: W, all bits of a word equal
  Strided<Word> right;             // b × words: R

  /// Word j of row i of D ∨ 1.
  RIGEL_MEMBER Word arcs(std::int64_t l, std::int64_t i, std::int64_t j) const {
    const Word self = j == i / bits ? static_cast<Word>(Word(1) << i % bits) : Word(0);
    return d.at(l, i, j) | self;
  }
};

/// square = T, transposed, by the threads of one team: row after row is joined to those that have an arc to it. `rows`
/// holds word c of row i at c·b + i, so that neighbouring threads read neighbours. Bits beyond b are copied along unused.
template <class Team, class Word>
RIGEL_FUNCTION void close_block(const Team& team, const ReachabilityData<Word>& g, std::int64_t l, std::int64_t k0, int b,
                                Word* rows) {
  constexpr int bits = ReachabilityData<Word>::bits;
  const int words = (b + bits - 1) / bits, rank = team.team_rank(), size = team.team_size();
  for (int i = rank; i < b; i += size)
    for (int c = 0; c < words; ++c) rows[c * b + i] = g.arcs(l, k0 + i, k0 / bits + c);
  for (int k = 0; k < b; ++k) {
    team.team_barrier();
    for (int i = rank; i < b; i += size)
      if (i != k && (rows[k / bits * b + i] >> k % bits & 1))
        for (int c = 0; c < words; ++c) rows[c * b + i] |= rows[c * b + k];
  }
  team.team_barrier();
  for (int k = rank; k < b; k += size)
    for (int c = 0; c < words; ++c) {
      Word column = 0;
      for (int t = c * bits; t < b && t < (c + 1) * bits; ++t)
        column |= (rows[k / bits * b + t] >> k % bits & 1) << t % bits;
      g.square.at(l, k, c) = column;
    }
}

/// square = T for K = [k0, k0 + b), one team for each batch; meanwhile other teams copy right = (D ∨ 1)(K,:), a row each.
template <class Exec, class Word>
void reachability_diagonal(const Exec& exec, const ReachabilityData<Word>& g, std::int64_t k0, std::int64_t b) {
  constexpr int team_size = runs_on_host<Exec> ? 1 : 128;
  using Policy = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<team_size, 1>>;
  constexpr int max_words = max_reachability_block * max_reachability_block / ReachabilityData<Word>::bits;
  const std::int64_t teams = b + 1;
  const int bytes = runs_on_host<Exec> ? 0 : static_cast<int>(b * ((b + g.bits - 1) / g.bits) * sizeof(Word));
  Kokkos::parallel_for(
      "rigel::transitive_closure/diagonal",
      by_argument(Policy(exec, static_cast<int>(g.batches * teams), team_size).set_scratch_size(0, Kokkos::PerTeam(bytes))),
      KOKKOS_LAMBDA(const typename Policy::member_type& team) {
        const std::int64_t l = team.league_rank() / teams, k = team.league_rank() % teams - 1;
        if (k >= 0) {
          for (std::int64_t j = team.team_rank(); j < g.words; j += team_size) g.right.at(l, k, j) = g.arcs(l, k0 + k, j);
        } else if constexpr (runs_on_host<Exec>) {
          Word rows[max_words];
          close_block(team, g, l, k0, static_cast<int>(b), rows);
        } else {
          close_block(team, g, l, k0, static_cast<int>(b), static_cast<Word*>(team.team_shmem().get_shmem(bytes)));
        }
      });
}

/// left(i,k) = all bits or none: ⋁_t (D ∨ 1)(i,t) ∧ T(t,k), t packed.
template <class Exec, class Word>
void reachability_expand(const Exec& exec, const ReachabilityData<Word>& g, std::int64_t k0, std::int64_t b) {
  constexpr int team_size = runs_on_host<Exec> ? 1 : 128;
  constexpr std::int64_t rows = 16;  // of a team
  using Policy = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<team_size, 1>>;
  const std::int64_t teams = (g.n + rows - 1) / rows, first_word = k0 / g.bits, words = (b + g.bits - 1) / g.bits;
  Kokkos::parallel_for(
      "rigel::transitive_closure/expand", by_argument(Policy(exec, static_cast<int>(g.batches * teams), team_size)),
      KOKKOS_LAMBDA(const typename Policy::member_type& team) {
        const std::int64_t l = team.league_rank() / teams, first = team.league_rank() % teams * rows;
        const std::int64_t last = first + rows < g.n ? first + rows : g.n;
        for (std::int64_t i = first; i < last; ++i)
          for (std::int64_t k = team.team_rank(); k < b; k += team_size) {
            Word common = 0;
            for (std::int64_t c = 0; c < words; ++c) common |= g.arcs(l, i, first_word + c) & g.square.at(l, k, c);
            g.left.at(l, i, k) = common ? static_cast<Word>(~Word(0)) : Word(0);
          }
      });
}

/// D and the driver's arrays: those of ReachabilityData.
struct ReachabilityArrays {
  Operand d, square, left, right;
};

/// Enqueues both kernels for the block [k0, k0 + b).
using EliminateBlock = void (*)(const Execution&, const ReachabilityArrays&, std::int64_t k0, std::int64_t b);

/// The same, if the execution space is one of the list.
template <class Spaces, class Word>
void eliminate_block(const Execution& execution, const ReachabilityArrays& arrays, std::int64_t k0, std::int64_t b) {
  const auto& [d, square, left, right] = arrays;
  const ReachabilityData<Word> data = {d.batches,
                                       d.rows,
                                       d.columns,
                                       strided_in<Word>(d),
                                       strided_in<Word>(square),
                                       strided_in<Word>(left),
                                       strided_in<Word>(right)};
  with_instance(Spaces{}, execution, [&](const auto& exec) {
    reachability_diagonal(exec, data, k0, b);
    reachability_expand(exec, data, k0, b);
  });
}

/// `update`: an accumulating contraction of or_and into D, with the name that messages have for it; the driver sets A and B. `own`: for
/// an execution space that the library is not compiled for; else null.
void run_transitive_closure(Contraction update, std::int64_t block, EliminateBlock own);
std::size_t transitive_closure_bytes(Contraction update, std::int64_t block, EliminateBlock own);

}  // namespace rigel::detail
