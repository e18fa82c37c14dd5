// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles on a host. A team is one thread. It packs a panel of A and one of B into scratch memory, and continues the chains of one
// block of outputs at a time, which the compiler keeps in vector registers. Each output is one chain in ascending k, so the bits
// are the reference's.
#pragma once

#include <rigel/backends/portable/chain.hpp>
#include <rigel/backends/portable/launch.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/detail/ordered.hpp>

#include <string>

namespace rigel::backends::portable {

/// What a thread does.
template <class S, class Finish>
struct HostWork {
  using Chain = ReferenceChain<S>;
  using Semiring = typename Chain::Semiring;
  using Cut = HostShape<Semiring>;
  using Operand = typename Chain::Operand;
  using Sum = typename Chain::Sum;
  static constexpr int rows = Cut::rows, columns = Cut::columns, depth = Cut::depth, alignment = 64;
  static constexpr std::size_t panel_a = Cut::m * depth * sizeof(Operand), panel_b = Cut::n * depth * sizeof(Operand);
  static constexpr std::size_t sums = Cut::m * Cut::n * sizeof(Sum);
  static constexpr std::size_t bytes = panel_a + panel_b + sums + 3 * alignment;

  detail::Arguments<S, Finish> g;
  std::int64_t tiles_m, tiles_n, tiles;

  template <class Team>
  RIGEL_FUNCTION void operator()(const Team& team) const {
    const auto& scratch = team.team_scratch(0);
    auto* const a = static_cast<Operand*>(scratch.get_shmem_aligned(panel_a, alignment));
    auto* const b = static_cast<Operand*>(scratch.get_shmem_aligned(panel_b, alignment));
    auto* const x = static_cast<Sum*>(scratch.get_shmem_aligned(sums, alignment));
    for (std::int64_t t = team.league_rank(); t < tiles; t += team.league_size())
      compute(t / tiles_n / tiles_m, t / tiles_n % tiles_m * Cut::m, t % tiles_n * Cut::n, a, b, x);
  }

 private:
  RIGEL_FUNCTION void compute(std::int64_t l, std::int64_t m0, std::int64_t n0, Operand* a, Operand* b, Sum* x) const {
    const S s = g.semiring(l);
    const int m = static_cast<int>(g.m - m0 < Cut::m ? g.m - m0 : Cut::m);
    const int n = static_cast<int>(g.n - n0 < Cut::n ? g.n - n0 : Cut::n);
    for (int i = 0; i < Cut::m; ++i)
      for (int j = 0; j < Cut::n; ++j)
        x[i * Cut::n + j] =
            Chain::start(i < m && j < n ? g.start(s, l, m0 + i, n0 + j) : typename S::accumulator(S::identity()));
    for (std::int64_t k0 = 0; k0 < g.k; k0 += depth) {
      const int steps = static_cast<int>(g.k - k0 < depth ? g.k - k0 : depth);
      pack<rows, Cut::m>(a, &g.a.at(l, m0, k0), g.a.row, g.a.column, m, steps);
      pack<columns, Cut::n>(b, &g.b.at(l, k0, n0), g.b.column, g.b.row, n, steps);
      const auto& continues = Chain::semiring(s);
      if constexpr (detail::has_ordered_form<Semiring>)
        if (detail::products_are_ordered(continues, specials_of(a, padded<rows>(m) * steps),
                                         specials_of(b, padded<columns>(n) * steps))) {
          add_all<true>(continues, a, b, x, m, n, steps, k0);
          continue;
        }
      add_all<false>(continues, a, b, x, m, n, steps, k0);
    }
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) g.store(s, Chain::result(x[i * Cut::n + j]), l, m0 + i, n0 + j);
  }

  /// Packs `steps` k of a panel's lines, `width` lines of one k side by side. Lines beyond the last one repeat it, so that ⊗ only
  /// sees elements of A and B.
  template <int width, int lines, class Element>
  RIGEL_FUNCTION static void pack(Operand* to, const Element* from, std::int64_t line_stride, std::int64_t k_stride,
                                  int count, int steps) {
    for (int line = 0; line < lines && line / width * width < count; ++line) {
      const Element* const source = from + (line < count ? line : count - 1) * line_stride;
      Operand* const target = to + line / width * width * steps + line % width;
      for (int k = 0; k < steps; ++k) target[k * width] = static_cast<Operand>(source[k * k_stride]);
    }
  }

  template <int width>
  RIGEL_FUNCTION static int padded(int lines) {
    return (lines + width - 1) / width * width;
  }

  RIGEL_FUNCTION static detail::Specials specials_of(const Operand* values, int count) {
    int nan = 0, infinite = 0, negative_infinite = 0;
    for (int i = 0; i < count; ++i) {
      nan |= values[i] != values[i];
      infinite |= values[i] == infinity<Operand>();
      negative_infinite |= values[i] == -infinity<Operand>();
    }
    return {nan != 0, infinite != 0, negative_infinite != 0};
  }

  /// Continues the chains of all blocks of a tile.
  template <bool ordered>
  RIGEL_FUNCTION static void add_all(const Semiring& s, const Operand* a, const Operand* b, Sum* x, int m, int n, int steps,
                                     std::int64_t k0) {
    for (int j = 0; j < n; j += columns)
      for (int i = 0; i < m; i += rows) add<ordered>(s, a + i * steps, b + j * steps, x + i * Cut::n + j, steps, k0);
  }

  /// Continues the chains of a block of outputs.
  template <bool ordered>
  RIGEL_FUNCTION static void add(const Semiring& s, const Operand* a, const Operand* b, Sum* outputs, int steps,
                                 std::int64_t k0) {
    Sum x[rows][columns];
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) x[i][j] = outputs[i * Cut::n + j];
    for (int k = 0; k < steps; ++k) {
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < columns; ++j)
          x[i][j] = detail::step_on<ordered>(s, x[i][j], a[k * rows + i], b[k * columns + j], k0 + k);
    }
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) outputs[i * Cut::n + j] = x[i][j];
  }
};

/// Launches one thread for each tile.
template <class S, class Finish, class Exec>
static void contract_on_host(const Exec& exec, const std::string& label, const detail::Arguments<S, Finish>& g) {
  using Work = HostWork<S, Finish>;
  using Cut = typename Work::Cut;
  const std::int64_t tiles_m = (g.m + Cut::m - 1) / Cut::m, tiles_n = (g.n + Cut::n - 1) / Cut::n;
  const Work work{g, tiles_m, tiles_n, g.batch * tiles_m * tiles_n};
  launch<Kokkos::LaunchBounds<>>(exec, label, work, work.tiles, 1, Work::bytes);
}

}  // namespace rigel::backends::portable
