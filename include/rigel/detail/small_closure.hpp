// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// closure() of batches of small graphs in one launch: a team takes one graph and eliminates its blocks K of b vertices as
// rigel/closure.hpp derives, in the same order of operations and with the same roundings as with contract():
//
//     T = D(K,K)*          vertex after vertex
//     W = D(:,K) ⊗ T       chains in ascending k, from identity()
//     D = D ⊕ W ⊗ D(K,:)   chains in ascending k, from D
//
// A block of all vertices has a kernel of its own, of which T = D* is all that there is to do: its threads take fewer registers.
//
// D stays in registers: thread (r, c) of a square of threads has the rows 4r … 4r + 3 of every 4·side, and the columns likewise. Rows
// and columns that other threads need pass through scratch memory, a slab of k-steps at a time, so that a graph of 128 vertices of 4
// bytes takes 41 KB of the 46 that Kokkos offers a team.
#pragma once

#include <rigel/detail/closure_data.hpp>

#include <bit>
#include <utility>

namespace rigel::detail {

/// The closure of graphs of at most side·each vertices, by blocks of at most 4·side; or by one block of all, if `one_block`.
template <class S, int side, int each, bool one_block = false>
struct SmallClosure {
  using Data = ClosureData<S, no_index>;
  using Element = typename S::element;
  using Accumulator = typename S::accumulator;
  using Operand = operand_t<S>;
  static_assert(each % 4 == 0 && (each == 4 || !one_block));
  static constexpr int width = side * each, team_size = side * side, block = 4 * side, groups = each / 4;
  static constexpr int slab = 16;  // k-steps in scratch memory at a time
  // Threads that a multiprocessor is to hold, such that each has registers for D, W and T.
  static constexpr int resident = (one_block ? 1024 : each > 4 ? 512 : 768) / (sizeof(Accumulator) > 4 ? 2 : 1);
  static constexpr int resident_teams = resident < team_size ? 1 : resident / team_size;

  static constexpr std::size_t quad_alignment = !std::has_single_bit(sizeof(Element)) ? alignof(Element)
                                                : sizeof(Element) < 4                 ? 4 * sizeof(Element)
                                                                                      : 16;
  /// Four elements, which a device loads 16 bytes at a time.
  struct alignas(quad_alignment) Quad {
    Element v[4];
  };
  /// The team's scratch memory.
  struct Shared {
    Quad panel[block][width / 4];     // T, or the rows K of D; lines of D on their way from and to memory
    Quad columns[slab][width / 4];    // columns of D or of W, each contiguous
    Quad to[2][side], from[2][side];  // the column and the row of the vertex that is eliminated in T, in two places by turns
  };
  static constexpr std::size_t alignment = alignof(Shared) < 16 ? 16 : alignof(Shared);
  static constexpr int scratch_bytes = static_cast<int>(sizeof(Shared) + alignment);

  /// What a thread keeps in registers.
  struct Thread {
    int rank, row, column;
    Element d[each][each];
    Element t[4][4];               // of T
    Accumulator w[each][4];        // of W
    Accumulator sums[each][each];  // of D ⊕ W ⊗ D(K,:)

    RIGEL_MEMBER int row_of(int r) const { return r / 4 * block + 4 * row + r % 4; }
    RIGEL_MEMBER int column_of(int c) const { return c / 4 * block + 4 * column + c % 4; }
  };

  /// visit(r, c) for all of a thread's elements, unrolled, so that they stay in registers.
  template <int rows, int columns, class Visit>
  RIGEL_MEMBER static void for_each(const Visit& visit) {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int c = 0; c < columns; ++c) visit(r, c);
  }
  /// visit(i) for the constants i from 0 on: loops that a host's compiler would refuse to unroll.
  template <int count, class Visit>
  RIGEL_MEMBER static void unrolled(const Visit& visit) {
    [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
      (visit(std::integral_constant<int, i>()), ...);
    }(std::make_integer_sequence<int, count>());
  }
  RIGEL_MEMBER static Operand operand(Element x) { return static_cast<Operand>(x); }

  /// Calls visit(position in `panel`, line, place in it) for the lines of D, in the order of memory, of which the panel holds group g.
  template <class Visit>
  RIGEL_MEMBER static void for_lines(Shared& s, const Thread& t, int g, const Visit& visit) {
#pragma unroll 4
    for (int e = t.rank; e < block * width; e += team_size) {
      const int line = e / width, place = e % width;
      visit(s.panel[line][place / 4].v[place % 4], g * block + line, place);
    }
  }
  /// Calls visit(quad of `panel`, element by element) for this thread's elements in the group g of lines.
  template <class ThreadOrConst, class Visit>
  RIGEL_MEMBER static void for_quads(Shared& s, ThreadOrConst& t, bool by_rows, int g, const Visit& visit) {
    if (by_rows)
      for_each<4, each>(
          [&](int r, int c) { visit(s.panel[4 * t.row + r][t.column + c / 4 * side].v[c % 4], t.d[4 * g + r][c]); });
    else
      for_each<4, each>(
          [&](int c, int r) { visit(s.panel[4 * t.column + c][t.row + r / 4 * side].v[r % 4], t.d[r][4 * g + c]); });
  }

  /// panel = D(K,:).
  RIGEL_MEMBER static void put_rows(Shared& s, const Thread& t, int k0, int b) {
#pragma unroll
    for (int r = 0; r < each; ++r) {
      const int k = t.row_of(r) - k0;
      if (k < 0 || k >= b) continue;
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        Quad q;
#pragma unroll
        for (int e = 0; e < 4; ++e) q.v[e] = t.d[r][4 * g + e];
        s.panel[k][t.column + g * side] = q;
      }
    }
  }
  /// Row k of `columns` = the column at(·, c) of this thread's rows, if k is one of its rows.
  template <class At>
  RIGEL_MEMBER static void put_column(Shared& s, const Thread& t, int k, const At& at) {
    if (k < 0 || k >= slab) return;
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      Quad q;
#pragma unroll
      for (int e = 0; e < 4; ++e) q.v[e] = at(4 * g + e);
      s.columns[k][t.row + g * side] = q;
    }
  }

  /// The column and the row of the vertex 4·group + k, for the step that eliminates it.
  RIGEL_MEMBER static void publish(Shared& s, const Thread& t, int group, int k) {
    Quad to, from;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      to.v[e] = t.t[e][k];
      from.v[e] = t.t[k][e];
    }
    if (t.column == group) s.to[k % 2][t.row] = to;
    if (t.row == group) s.from[k % 2][t.column] = from;
  }
  RIGEL_MEMBER static void begin_block(const Data& g, Shared& s, Thread& t, int k0, int b) {
    for_each<4, 4>([&](int r, int c) {
      const int i = 4 * t.row + r, j = k0 + 4 * t.column + c;
      t.t[r][c] = i < b && j < k0 + b ? s.panel[i][j / 4].v[j % 4] : g.identity();
    });
    publish(s, t, 0, 0);
  }
  /// Eliminates the vertex 4·group + k in T.
  RIGEL_MEMBER static void eliminate(const Data& g, Shared& s, Thread& t, int group, int k) {
    Quad to = s.to[k % 2][t.row];
    const Quad from = s.from[k % 2][t.column];
    const Element self = s.to[k % 2][group].v[k];
    // NaN, on every path through k. Later products spread it, too, unless the identity absorbs it.
    const bool spreads = (one_block || !Data::nan_absorbs) && self != self;
    if (spreads)
#pragma unroll
      for (int r = 0; r < 4; ++r) to.v[r] = g.join(to.v[r], self);
    for_each<4, 4>([&](int r, int c) {
      const Element joined = g.merge(t.t[r][c], g.join(to.v[r], from.v[c]));
      if ((!(r == k && t.row == group) && !(c == k && t.column == group)) || spreads) t.t[r][c] = joined;
    });
    if (k < 3)
      publish(s, t, group, k + 1);
    else
      publish(s, t, group + 1, 0);
  }

  /// W ⊕= D(:,k) ⊗ T(k,:), for the k-steps of a slab.
  RIGEL_MEMBER static void multiply(const Data& g, const Shared& s, Thread& t, int first, int count) {
    for (int k = 0; k < count; ++k) {
      const Quad right = s.panel[first + k][t.column];
#pragma unroll
      for (int i = 0; i < groups; ++i) {
        const Quad left = s.columns[k][t.row + i * side];
        for_each<4, 4>([&](int r, int c) {
          auto& x = t.w[4 * i + r][c];
          x = step(g.semiring, x, operand(left.v[r]), operand(right.v[c]), first + k);
        });
      }
    }
  }
  /// D ⊕= W(:,k) ⊗ D(k0 + k,:), for the k-steps of a slab.
  RIGEL_MEMBER static void update(const Data& g, const Shared& s, Thread& t, int first, int count) {
    for (int k = 0; k < count; ++k) {
      Quad left[groups], right[groups];
#pragma unroll
      for (int i = 0; i < groups; ++i) {
        left[i] = s.columns[k][t.row + i * side];
        right[i] = s.panel[first + k][t.column + i * side];
      }
      for_each<each, each>([&](int r, int c) {
        auto& x = t.sums[r][c];
        x = step(g.semiring, x, operand(left[r / 4].v[r % 4]), operand(right[c / 4].v[c % 4]), first + k);
      });
    }
  }

  /// D = the graph l. `phase` runs a step of all threads, after which they meet.
  template <class Phase>
  RIGEL_MEMBER static void load(const Phase& phase, const Data& g, Shared& s, std::int64_t l, int n) {
    unrolled<groups>([&](auto group) {
      phase([&](Thread& t) {
        for_lines(s, t, group, [&](Element& x, int line, int place) {
          const bool exists = line < n && place < n;
          x = !exists ? g.identity() : g.normal(g.by_rows ? g.d.at(l, line, place) : g.d.at(l, place, line));
        });
      });
      phase([&](Thread& t) { for_quads(s, t, g.by_rows, group, [](const Element& from, Element& to) { to = from; }); });
    });
  }
  /// The graph l = D.
  template <class Phase>
  RIGEL_MEMBER static void store(const Phase& phase, const Data& g, Shared& s, std::int64_t l, int n) {
    unrolled<groups>([&](auto group) {
      phase([&](Thread& t) { for_quads(s, t, g.by_rows, group, [](Element& to, const Element& from) { to = from; }); });
      phase([&](Thread& t) {
        for_lines(s, t, group, [&](const Element& from, int line, int place) {
          if (line >= n || place >= n) return;
          auto& to = g.by_rows ? g.d.at(l, line, place) : g.d.at(l, place, line);
          to = g.normal(from);
        });
      });
    });
  }

  /// The closure of graph l. `threads`: this thread's part, or on a host, whose teams have one thread, the parts of all threads.
  template <bool on_host, class Team>
  RIGEL_MEMBER static void close(const Team& team, const Data& g, std::int64_t l, int width_of_blocks, Thread* threads) {
    Shared& s = *static_cast<Shared*>(team.team_shmem().get_shmem_aligned(sizeof(Shared), alignment));
    const int n = static_cast<int>(g.n);
    const auto all = [&](const auto& work) {
      for (int i = 0; i < (on_host ? team_size : 1); ++i) work(threads[i]);
    };
    const auto phase = [&](const auto& work) {
      all(work);
      team.team_barrier();
    };

    for (int i = 0; i < (on_host ? team_size : 1); ++i) {
      Thread& t = threads[i];
      t.rank = on_host ? i : team.team_rank();
      // Neighbouring threads have neighbours in memory.
      const int line = t.rank / side, place = t.rank % side;
      t.row = g.by_rows ? line : place;
      t.column = g.by_rows ? place : line;
    }
    load(phase, g, s, l, n);
    all([&](Thread& t) {
      for_each<each, each>([&](int r, int c) {
        if (t.row_of(r) == t.column_of(c)) t.d[r][c] = g.merge(t.d[r][c], g.one());
      });
    });

    for (int k0 = 0; k0 < n; k0 += width_of_blocks) {
      const int b = width_of_blocks < n - k0 ? width_of_blocks : n - k0;
      const auto steps_from = [&](int first) { return slab < b - first ? slab : b - first; };

      if constexpr (one_block) {
        phase([&](Thread& t) {  // which has the same elements of D and of T
          for_each<4, 4>([&](int r, int c) { t.t[r][c] = t.d[r][c]; });
          publish(s, t, 0, 0);
        });
      } else {
        phase([&](Thread& t) { put_rows(s, t, k0, b); });
        phase([&](Thread& t) { begin_block(g, s, t, k0, b); });
      }
      for (int group = 0; 4 * group < b; ++group)
        unrolled<4>([&](auto k) {
          if (4 * group + k >= b) return;
          phase([&](Thread& t) {
            if (g.cycle && t.rank == 0) {
              const Element self = s.to[k % 2][group].v[k];
              if (self == self && g.improves(self, g.one())) Kokkos::atomic_min(g.cycle, l * g.n + k0 + 4 * group + k);
            }
            eliminate(g, s, t, group, k);
          });
        });
      if constexpr (one_block) {
        all([&](Thread& t) { for_each<4, 4>([&](int r, int c) { t.d[r][c] = t.t[r][c]; }); });
        break;
      }

      all([&](Thread& t) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          Quad q;
#pragma unroll
          for (int c = 0; c < 4; ++c) q.v[c] = t.t[r][c];
          s.panel[4 * t.row + r][t.column] = q;
        }
        for_each<each, 4>([&](int r, int c) { t.w[r][c] = S::identity(); });
      });
      for (int first = 0; first < b; first += slab) {
        phase([&](Thread& t) {
#pragma unroll
          for (int c = 0; c < each; ++c) put_column(s, t, t.column_of(c) - k0 - first, [&](int r) { return t.d[r][c]; });
        });
        phase([&](Thread& t) { multiply(g, s, t, first, steps_from(first)); });
      }

      all([&](Thread& t) {
        put_rows(s, t, k0, b);
        for_each<each, each>([&](int r, int c) { t.sums[r][c] = lift(g.semiring, static_cast<result_t<S>>(t.d[r][c])); });
      });
      for (int first = 0; first < b; first += slab) {
        phase([&](Thread& t) {
#pragma unroll
          for (int c = 0; c < 4; ++c)
            put_column(s, t, 4 * t.column + c - first,
                       [&](int r) { return convert<Element>(result(g.semiring, t.w[r][c])); });
        });
        phase([&](Thread& t) { update(g, s, t, first, steps_from(first)); });
      }
      all([&](Thread& t) {
        for_each<each, each>([&](int r, int c) { t.d[r][c] = convert<Element>(result(g.semiring, t.sums[r][c])); });
      });
    }

    store(phase, g, s, l, n);
  }
};

/// One team for each graph; *cycle is set, or null.
///
/// Of internal linkage, as are then Kokkos's functions for this functor: Clang inlines those that are called once, however long they
/// are. Otherwise threads would call the kernel as a function, and spill.
template <class Graphs, class Exec>
static void launch_small_closure(const Exec& exec, const typename Graphs::Data& g, int width_of_blocks) {
  constexpr bool on_host = runs_on_host<Exec>;
  using Policy = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<Graphs::team_size, Graphs::resident_teams>>;
  Policy policy(exec, static_cast<int>(g.batches), on_host ? 1 : Graphs::team_size);
  const auto scratch = Kokkos::PerTeam(Graphs::scratch_bytes);
  Kokkos::parallel_for(
      "rigel::closure/small", by_argument(policy.set_scratch_size(0, scratch)),
      KOKKOS_LAMBDA(const typename Policy::member_type& team) {
        typename Graphs::Thread threads[on_host ? Graphs::team_size : 1];
        Graphs::template close<on_host>(team, g, team.league_rank(), width_of_blocks, threads);
      });
}

/// The graphs that one launch closes, of a semiring with this element.
template <class S>
struct SmallClosures {
  static constexpr int scratch_limit = 46 << 10;  // bytes; of the 48 KiB that Kokkos gives a team it keeps some
  /// The most vertices, and the most that are eliminated at a time.
  static constexpr std::int64_t vertices = SmallClosure<S, 16, 8>::scratch_bytes <= scratch_limit   ? 128
                                           : SmallClosure<S, 16, 4>::scratch_bytes <= scratch_limit ? 64
                                           : SmallClosure<S, 8, 4>::scratch_bytes <= scratch_limit  ? 32
                                                                                                    : 0;
  static constexpr std::int64_t block = 64;

  template <class Exec>
  static void launch(const Exec& exec, const ClosureData<S, no_index>& g, std::int64_t block_width) {
    const int b = static_cast<int>(block_width);
    const bool one_block = b >= g.n;
    if constexpr (vertices >= 32)
      if (one_block && g.n <= 32) return launch_small_closure<SmallClosure<S, 8, 4, true>>(exec, g, b);
    if constexpr (vertices >= 64)
      if (one_block) return launch_small_closure<SmallClosure<S, 16, 4, true>>(exec, g, b);
    if constexpr (vertices >= 32)
      launch_small_closure<SmallClosure<S, vertices == 32 ? 8 : 16, vertices == 128 ? 8 : 4>>(exec, g, b);
  }
};

}  // namespace rigel::detail
