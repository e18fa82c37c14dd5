// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What closure() does in addition to contract(): the closure of one diagonal block, the panels next to it, and the two passes before
// and after the elimination; and what its driver on operands (src/operations/closure.cpp) gets of them. rigel/closure.hpp derives the
// whole.
#pragma once

#include <rigel/detail/closure_data.hpp>
#include <rigel/detail/small_closure.hpp>

#include <limits>
#include <memory>

namespace rigel {
struct ClosureReport;
}

namespace rigel::detail {

template <class Exec>
auto closure_range(const Exec& exec, std::int64_t items) {
  return by_argument(Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, items));
}

/// Before the elimination: what stands for no path becomes the identity, D(i,i) ← D(i,i) ⊕ one(), and P(i,j) = i where there is an
/// arc from i to another j.
template <class Exec, class S, class Index>
void closure_begin(const Exec& exec, const ClosureData<S, Index>& g) {
  constexpr bool diagonal_alone = !ClosureData<S, Index>::tracks && !KnowsNoPath<S>;
  const std::int64_t items = g.batches * g.n * (diagonal_alone ? 1 : g.n);
  Kokkos::parallel_for(
      "rigel::closure/begin", closure_range(exec, items), KOKKOS_LAMBDA(const std::int64_t e) {
        if (e == 0) *g.cycle = std::numeric_limits<std::int64_t>::max();
        if constexpr (diagonal_alone) {
          auto& d = g.d.at(e / g.n, e % g.n, e % g.n);
          d = g.merge(d, g.one());
        } else {
          const auto [l, i, j] = g.item(e, g.n, g.n);
          auto& d = g.d.at(l, i, j);
          if constexpr (ClosureData<S, Index>::tracks)
            g.p.at(l, i, j) = i == j || g.is_no_path(d) ? static_cast<Index>(-1) : g.predecessor(d, static_cast<Index>(i));
          if constexpr (KnowsNoPath<S>) d = g.normal(d);
          if (i == j) d = g.merge(d, g.one());
        }
      });
}

/// After it, where the semiring knows more than one value for no path: those become the identity again, without a predecessor.
template <class Exec, class S, class Index>
void closure_end(const Exec& exec, const ClosureData<S, Index>& g) {
  Kokkos::parallel_for(
      "rigel::closure/end", closure_range(exec, g.batches * g.n * g.n), KOKKOS_LAMBDA(const std::int64_t e) {
        const auto [l, i, j] = g.item(e, g.n, g.n);
        auto& d = g.d.at(l, i, j);
        if (!g.is_no_path(d)) return;
        d = g.identity();
        if constexpr (ClosureData<S, Index>::tracks) g.p.at(l, i, j) = static_cast<Index>(-1);
      });
}

/// A diagonal block of at most `width` vertices, closed by a team of a device's whose threads keep it in registers: thread
/// (r, c) of a square has every side-th element of every side-th row. The row and the column of the vertex that is
/// eliminated go round in fast memory, in one of two places by turns, so that one barrier a vertex is enough.
template <class S, class Index>
struct ClosureInRegisters {
  using Element = typename S::element;
  static constexpr int width = 64, side = 16, each = width / side, team_size = side * side;
  static constexpr int scratch_bytes = 4 * width * static_cast<int>(sizeof(Element));

  template <class Team>
  RIGEL_MEMBER static void close(const Team& team, const ClosureData<S, Index>& g, std::int64_t l, std::int64_t k0, int b) {
    Element* const shared = static_cast<Element*>(team.team_shmem().get_shmem(scratch_bytes));
    const int row = team.team_rank() / side, column = team.team_rank() % side;
    Element d[each][each];
    // visit(i, j, D(i,j)) for the elements of this thread; the loops are unrolled, so that D stays in registers.
    const auto for_each = [&](const auto& visit) {
#pragma unroll
      for (int r = 0; r < each; ++r)
#pragma unroll
        for (int c = 0; c < each; ++c) visit(row + r * side, column + c * side, d[r][c]);
    };
    const auto to = [&](int k) { return shared + k % 2 * 2 * width; };  // D(:,k)
    const auto from = [&](int k) { return to(k) + width; };             // D(k,:)
    const auto publish = [&](int k) {
      for_each([&](int i, int j, Element x) {
        if (j == k) to(k)[i] = x;
        if (i == k) from(k)[j] = x;
      });
    };

    for_each([&](int i, int j, Element& x) { x = i < b && j < b ? g.d.at(l, k0 + i, k0 + j) : g.identity(); });
    publish(0);
    for (int k = 0; k < b; ++k) {
      team.team_barrier();
      const Element self = to(k)[k];
      if (team.team_rank() == 0 && self == self && g.improves(self, g.one())) Kokkos::atomic_min(g.cycle, l * g.n + k0 + k);
      const bool spreads = self != self;  // NaN, on every path through k
      for_each([&](int i, int j, Element& x) {
        const Element to_k = spreads ? g.join(to(k)[i], self) : to(k)[i];
        const Element joined = g.merge(x, g.join(to_k, from(k)[j]));
        if ((i != k && j != k) || spreads) x = joined;
      });
      publish(k + 1);
    }
    for_each([&](int i, int j, Element x) {
      if (i < b && j < b) (b == g.n ? g.d : g.square).at(l, i, j) = x;
    });
  }
};

/// The diagonal block K = [k0, k0 + b) of every batch, closed by one team each; meanwhile other teams copy a panel.
///   without predecessors   square = D(K,K)*, right = D(K,:); D ← D* in place if K is all vertices
///   with them              D(K,K) ← D(K,K)* in place, with P; square(i,k) = D(i,k) as it was when vertex k was
///                          eliminated; left = D(:,K), but for the rows K, which are not used
/// Vertices in ascending order, each an outer product (R. W. Floyd, Algorithm 97: Shortest path, 1962). Where D(k,k) is NaN, paths pass
/// through it: D(i,k) ⊗ D(k,k) ⊗ D(k,j), for i = k and j = k, too. Whether a thread reads a row or a column of k before or after
/// another one has written it, then makes no difference: NaN joins to NaN either way, and what is no path stays so.
template <class Exec, class S, class Index>
void closure_diagonal(const Exec& exec, const ClosureData<S, Index>& g, std::int64_t k0, std::int64_t b) {
  constexpr bool tracks = ClosureData<S, Index>::tracks, in_registers = !runs_on_host<Exec> && !tracks;
  using Registers = ClosureInRegisters<S, Index>;
  // One team closes a block; where it does in memory, it has as many threads as a team can have. On a host that is one.
  constexpr int team_size = runs_on_host<Exec> ? 1 : in_registers ? Registers::team_size : 1024;
  constexpr int lanes = runs_on_host<Exec> ? 1 : 32;
  // Elements that a team copies: enough to be worth a team.
  constexpr std::int64_t chunk = runs_on_host<Exec> ? 1 << 14 : 4 * team_size;
  using Policy = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<team_size, 1>>;

  const bool in_place = tracks || b == g.n;
  const std::int64_t panel = b == g.n ? 0 : g.batches * g.n * b;
  const std::int64_t league = g.batches + (panel + chunk - 1) / chunk;
  const auto scratch = Kokkos::PerTeam(in_registers ? Registers::scratch_bytes : 0);
  Kokkos::parallel_for(
      "rigel::closure/diagonal", by_argument(Policy(exec, static_cast<int>(league), team_size).set_scratch_size(0, scratch)),
      KOKKOS_LAMBDA(const typename Policy::member_type& team) {
        const int rank = team.team_rank();
        if (team.league_rank() >= g.batches) {
          const std::int64_t first = (team.league_rank() - g.batches) * chunk;
          const std::int64_t last = first + chunk < panel ? first + chunk : panel;
          for (std::int64_t e = first + rank; e < last; e += team_size) {
            if constexpr (tracks) {
              const auto [l, i, k] = g.item(e, g.n, b);
              g.left.at(l, i, k) = i >= k0 && i < k0 + b ? g.identity() : g.d.at(l, i, k0 + k);
            } else {
              const auto [l, k, j] = g.item(e, b, g.n);
              g.right.at(l, k, j) = g.d.at(l, k0 + k, j);
            }
          }
          return;
        }

        const std::int64_t l = team.league_rank();
        if constexpr (in_registers)
          if (b <= Registers::width) return Registers::close(team, g, l, k0, static_cast<int>(b));
        const int row = rank / lanes, lane = rank % lanes;
        constexpr int rows = team_size / lanes;
        using Element = typename S::element;
        const Strided<Element> block = in_place ? Strided<Element>{&g.d.at(l, k0, k0), 0, g.d.row, g.d.column}
                                                : Strided<Element>{&g.square.at(l, 0, 0), 0, g.square.row, g.square.column};
        if (!in_place)
          for (std::int64_t i = row; i < b; i += rows)
            for (std::int64_t j = lane; j < b; j += lanes) block.at(0, i, j) = g.d.at(l, k0 + i, k0 + j);
        for (std::int64_t k = 0; k < b; ++k) {
          team.team_barrier();
          const auto self = block.at(0, k, k);
          if (rank == 0 && self == self && g.improves(self, g.one())) Kokkos::atomic_min(g.cycle, l * g.n + k0 + k);
          const bool spreads = self != self;
          for (std::int64_t i = row; i < b; i += rows) {
            const auto to_k = spreads ? g.join(block.at(0, i, k), self) : block.at(0, i, k);
            if constexpr (tracks)
              if (lane == 0) g.square.at(l, i, k) = to_k;
            if (i == k && !spreads) continue;
            for (std::int64_t j = lane; j < b; j += lanes) {
              if (j == k && !spreads) continue;
              const auto through_k = g.join(to_k, block.at(0, k, j));
              auto& d = block.at(0, i, j);
              if constexpr (!tracks) {
                d = g.merge(d, through_k);
              } else if (g.improves(through_k, d)) {
                d = through_k;
                g.p.at(l, k0 + i, k0 + j) = g.predecessor(through_k, g.p.at(l, k0 + k, k0 + j));
              }
            }
          }
        }
      });
}

/// With predecessors, after closure_diagonal(): the rows K = [k0, k0 + b) of D and P in all other columns, closed by the
/// same eliminations with the multipliers that it left in `square`; then right = D(K,:), right_p = P(K,:).
template <class Exec, class S, class Index>
void closure_panel(const Exec& exec, const ClosureData<S, Index>& g, std::int64_t k0, std::int64_t b) {
  // Columns of a work item: a vector or two where columns lie side by side on a host.
  const std::int64_t width = runs_on_host<Exec> && g.by_rows ? 32 : 1;
  const std::int64_t chunks = (g.n + width - 1) / width;
  Kokkos::parallel_for(
      "rigel::closure/panel", closure_range(exec, g.batches * chunks), KOKKOS_LAMBDA(const std::int64_t e) {
        const std::int64_t l = e / chunks, first = e % chunks * width;
        const std::int64_t last = first + width < g.n ? first + width : g.n;
        const auto is_closed = [&](std::int64_t j) { return j >= k0 && j < k0 + b; };
        for (std::int64_t k = 0; k < b; ++k)
          for (std::int64_t i = 0; i < b; ++i) {
            const auto to_k = g.square.at(l, i, k);
            if (i == k && to_k == to_k) continue;
            for (std::int64_t j = first; j < last; ++j) {
              if (is_closed(j)) continue;
              const auto through_k = g.join(to_k, g.d.at(l, k0 + k, j));
              auto& d = g.d.at(l, k0 + i, j);
              if (!g.improves(through_k, d)) continue;
              d = through_k;
              g.p.at(l, k0 + i, j) = g.predecessor(through_k, g.p.at(l, k0 + k, j));
            }
          }
        for (std::int64_t i = 0; i < b; ++i)
          for (std::int64_t j = first; j < last; ++j) {
            g.right.at(l, i, j) = g.d.at(l, k0 + i, j);
            g.right_p.at(l, i, j) = g.p.at(l, k0 + i, j);
          }
      });
}

/// The epilogue of the update with predecessors: D(m,n) and P(m,n) change on a strict improvement only. Rows K are
/// closed already.
template <class S, class Index>
struct Improve {
  ClosureData<S, Index> g;
  std::int64_t k0, b;
  RIGEL_MEMBER typename S::element operator()(const argument<typename S::accumulator>& x, std::int64_t m, std::int64_t n,
                                              std::int64_t l) const {
    const auto old = g.d.at(l, m, n);
    const auto found = convert<typename S::element>(x.value);
    if ((m >= k0 && m < k0 + b) || !g.improves(found, old)) return old;
    g.p.at(l, m, n) = g.predecessor(found, g.right_p.at(l, x.index, n));
    return found;
  }
};

/// D, P and the driver's arrays, which ClosureData describes, and the semiring.
struct ClosureArrays {
  const void* semiring = nullptr;
  bool by_rows = true;
  Operand d = {}, p = {}, square = {}, left = {}, right = {}, right_p = {};
  std::int64_t* cycle = nullptr;
};

/// What a closure does between contractions, in one semiring on one execution space.
struct ClosureSteps {
  /// Before the first block.
  void (*begin)(const Execution&, const ClosureArrays&) = nullptr;
  /// Of the block [k0, k0 + b): its diagonal block, and its panels.
  void (*eliminate)(const Execution&, const ClosureArrays&, std::int64_t k0, std::int64_t b) = nullptr;
  /// With predecessors, else null: makes the epilogue of that block's contraction, an Improve, in place of the last one.
  void (*aim)(void* epilogue, const ClosureArrays&, std::int64_t k0, std::int64_t b) = nullptr;
  /// After the last block; may be null.
  void (*end)(const Execution&, const ClosureArrays&) = nullptr;
  /// Waits for *cycle.
  std::int64_t (*cycle)(const Execution&, const ClosureArrays&) = nullptr;
  /// Without predecessors, else null: all of these steps and the contractions in one launch, for graphs of at most small_vertices
  /// vertices by blocks of at most small_block. It sets *cycle unless that is null.
  void (*small)(const Execution&, const ClosureArrays&, std::int64_t block) = nullptr;
  std::int64_t small_vertices = 0, small_block = 0;
  bool small_is_default = false;  // where it covers a call whose options name no kernel
};

/// These steps, on operands.
template <class Exec, class S, class Index>
struct ClosureLaunches {
  using Data = ClosureData<S, Index>;

  static Data data_of(const ClosureArrays& g) {
    using Element = typename S::element;
    return {*static_cast<const S*>(g.semiring),
            g.d.batches,
            g.d.rows,
            g.by_rows,
            strided_in<Element>(g.d),
            strided_in<Index>(g.p),
            strided_in<Element>(g.square),
            strided_in<Element>(g.left),
            strided_in<Element>(g.right),
            strided_in<Index>(g.right_p),
            g.cycle};
  }
  static void begin(const Execution& execution, const ClosureArrays& g) {
    closure_begin(instance<Exec>(execution), data_of(g));
  }
  static void eliminate(const Execution& execution, const ClosureArrays& g, std::int64_t k0, std::int64_t b) {
    const Data data = data_of(g);
    closure_diagonal(instance<Exec>(execution), data, k0, b);
    if constexpr (Data::tracks)
      if (b < data.n) closure_panel(instance<Exec>(execution), data, k0, b);
  }
  static void aim(void* epilogue, const ClosureArrays& g, std::int64_t k0, std::int64_t b) {
    std::construct_at(static_cast<Improve<S, Index>*>(epilogue), Improve<S, Index>{data_of(g), k0, b});
  }
  static void end(const Execution& execution, const ClosureArrays& g) { closure_end(instance<Exec>(execution), data_of(g)); }
  static std::int64_t cycle(const Execution& execution, const ClosureArrays& g) {
    std::int64_t first = 0;
    const Exec& exec = instance<Exec>(execution);
    Kokkos::deep_copy(exec, Kokkos::View<std::int64_t, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(&first), cycle_of(g));
    exec.fence("rigel::closure: report");
    return first;
  }
  static void small(const Execution& execution, const ClosureArrays& g, std::int64_t block) {
    const Exec& exec = instance<Exec>(execution);
    if (g.cycle) Kokkos::deep_copy(exec, cycle_of(g), std::numeric_limits<std::int64_t>::max());
    SmallClosures<S>::launch(exec, data_of(g), block);
  }

  static ClosureSteps steps() {
    ClosureSteps all{.begin = begin, .eliminate = eliminate, .cycle = cycle};
    if constexpr (Data::tracks) all.aim = aim;
    if constexpr (KnowsNoPath<S>) all.end = end;
    if constexpr (!Data::tracks) {
      all.small = small;
      all.small_vertices = SmallClosures<S>::vertices;
      all.small_block = SmallClosures<S>::block;
      all.small_is_default = !runs_on_host<Exec>;
    }
    return all;
  }

 private:
  static auto cycle_of(const ClosureArrays& g) {
    return Kokkos::View<std::int64_t, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(g.cycle);
  }
};

/// The name of the one launch for small graphs.
inline constexpr std::string_view small_closure = "closure.small";

/// One call. The driver checks D and P, and sets the operands of the contractions.
struct ClosureCall {
  Contraction update = {};  // of the semiring into D's elements; it accumulates, unless predecessors are kept
  ClosureArrays arrays = {};
  ClosureSteps steps = {};
  void* epilogue = nullptr;  // what steps.aim makes
  std::int64_t block = 1;
  bool report = true;
  std::string_view kernel = {};     // small_closure, or of the contractions
  std::string_view semiring = {};   // its name for messages
  bool identity_is_no_path = true;  // as is_no_path() has it
  bool identity_absorbs = true;     // as annihilator() has it
};

ClosureReport run_closure(ClosureCall call);
std::size_t closure_bytes(ClosureCall call);

}  // namespace rigel::detail
