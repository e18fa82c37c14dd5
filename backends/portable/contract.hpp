// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiled contraction in pure Kokkos, for any execution space. A team computes one tile of C; scratch memory holds the slabs of
// A and B, and every thread holds a block of outputs in registers. Each output is one chain in ascending k, so the bits are the
// reference's.
#pragma once

#include <rigel/detail/arguments.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/kernel.hpp>

#include <algorithm>

namespace rigel::backends::portable {

/// The threads of a team along M and N, the outputs of a thread along each, and the depth of a slab. On a host a team is one
/// thread. The slabs of both operands take at most 32 KB of scratch memory, if an operand has at most 256 bytes.
template <bool on_host, class Operand>
struct ShapeOn {
  static constexpr int threads = on_host ? 1 : 16;
  static constexpr int outputs = on_host ? 8 : 4;
  static constexpr int tile = threads * outputs;
  static constexpr int most = 32 * 1024 / (2 * tile * static_cast<int>(sizeof(Operand)));
  static constexpr int depth = most < 1 ? 1 : most < 16 ? most : 16;
};
template <class Exec, class Operand>
using Shape = ShapeOn<Kokkos::SpaceAccessibility<Exec, Kokkos::HostSpace>::accessible, Operand>;

template <class S, class Finish, class Exec>
void contract(const Exec& exec, const std::string& label, const detail::Arguments<S, Finish>& g) {
  using Policy = Kokkos::TeamPolicy<Exec>;
  using Operand = operand_t<S>;
  using Cut = Shape<Exec, Operand>;
  constexpr int threads = Cut::threads, outputs = Cut::outputs, tile = Cut::tile, depth = Cut::depth;
  constexpr int team_size = threads * threads, k_apart = team_size < tile ? 1 : team_size / tile;
  static_assert(team_size == 1 || team_size % tile == 0);
  constexpr std::int64_t max_league = 1 << 30;
  const std::int64_t tiles_m = (g.m + tile - 1) / tile, tiles_n = (g.n + tile - 1) / tile;
  const std::int64_t tiles = g.batch * tiles_m * tiles_n;
  const int league = static_cast<int>(tiles < max_league ? tiles : max_league);
  auto policy = Policy(exec, league, team_size)
                    .set_scratch_size(0, Kokkos::PerTeam(2 * tile * depth * sizeof(Operand) + 2 * alignof(Operand)));
  const auto tiles_of_team = KOKKOS_LAMBDA(const typename Policy::member_type& team) {
    auto* const slab_a =
        static_cast<Operand*>(team.team_scratch(0).get_shmem_aligned(tile * depth * sizeof(Operand), alignof(Operand)));
    auto* const slab_b =
        static_cast<Operand*>(team.team_scratch(0).get_shmem_aligned(tile * depth * sizeof(Operand), alignof(Operand)));
    const int rank = team.team_rank(), row = rank / threads, column = rank % threads;

    for (std::int64_t t = team.league_rank(); t < tiles; t += team.league_size()) {
      const std::int64_t n0 = t % tiles_n * tile, m0 = t / tiles_n % tiles_m * tile, l = t / tiles_n / tiles_m;
      const S s = g.semiring(l);
      typename S::accumulator x[outputs][outputs];
      for (int i = 0; i < outputs; ++i)
        for (int j = 0; j < outputs; ++j) {
          const std::int64_t m = m0 + row + i * threads, n = n0 + column + j * threads;
          x[i][j] = m < g.m && n < g.n ? g.start(s, l, m, n) : typename S::accumulator(S::identity());
        }
      for (std::int64_t k0 = 0; k0 < g.k; k0 += depth) {
        const int steps = static_cast<int>(g.k - k0 < depth ? g.k - k0 : depth);
        team.team_barrier();
        for (int k = rank / tile; k < steps; k += k_apart)
          for (int i = rank % tile; i < tile; i += team_size) {
            // Rows and columns beyond the last one repeat it, so that ⊗ only sees elements of A and B.
            slab_a[k * tile + i] = static_cast<Operand>(g.a.at(l, m0 + i < g.m ? m0 + i : g.m - 1, k0 + k));
            slab_b[k * tile + i] = static_cast<Operand>(g.b.at(l, k0 + k, n0 + i < g.n ? n0 + i : g.n - 1));
          }
        team.team_barrier();
        for (int k = 0; k < steps; ++k)
          for (int i = 0; i < outputs; ++i)
            for (int j = 0; j < outputs; ++j)
              x[i][j] =
                  step(s, x[i][j], slab_a[k * tile + row + i * threads], slab_b[k * tile + column + j * threads], k0 + k);
      }
      for (int i = 0; i < outputs; ++i)
        for (int j = 0; j < outputs; ++j) {
          const std::int64_t m = m0 + row + i * threads, n = n0 + column + j * threads;
          if (m < g.m && n < g.n) g.store(s, x[i][j], l, m, n);
        }
      team.team_barrier();
    }
  };
  Kokkos::parallel_for(label, policy, tiles_of_team);
}

/// Predicted seconds on a GPU, with constants measured on an H200: a launch through Kokkos, and the k-steps of the
/// multiprocessor with the most tiles. Partial tiles take as long as full ones.
template <class S>
double device_seconds(const Contraction& p) {
  constexpr double launch = 1.56e-5, fill_and_store = 2.4e-6;
  constexpr double step = 5.6e-7 + (sizeof(operand_t<S>) > 4 ? 3.4e-7 : 0);  // per k and tile
  constexpr double powers = 4.5e-6, exponentials = 1.9e-6;                   // in double
  constexpr double in_double = std::is_arithmetic_v<typename S::accumulator> ? powers : exponentials;
  constexpr double transcendental = !is_transcendental<S> ? 0 : sizeof(operand_t<S>) > 4 ? in_double : 8.6e-7;
  constexpr std::int64_t tile = ShapeOn<false, operand_t<S>>::tile;
  const std::int64_t tiles = p.batch * ((p.m + tile - 1) / tile) * ((p.n + tile - 1) / tile);
  const double each = std::max(static_cast<double>(tiles) / std::max(p.execution.multiprocessors, 1), 1.0);
  return launch + each * (static_cast<double>(p.k) * (step + transcendental) + fill_and_store);
}

/// The portable kernel for one semiring, on the spaces of the list.
template <class S, class Finish, class Spaces>
Kernel<Contraction> kernel() {
  Kernel<Contraction> k;
  k.info = detail::info_of<S>("portable", {}, {}, detail::bits_of(Spaces{}));
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = detail::chain_accuracy<S>();
  k.supports = detail::supports_by<detail::finish_supports<Finish>>;
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) {
    return p.execution.space == Space::cuda ? device_seconds<S>(p) : detail::host_seconds(p, 5e8);
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
    detail::with_instance(Spaces{}, p.execution, [&](const auto& exec) {
      contract(exec, detail::label_of(kernel.info), detail::arguments_of<S, Finish>(p));
    });
  };
  return k;
}

}  // namespace rigel::backends::portable
