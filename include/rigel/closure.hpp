// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// closure(): D(l,i,j) ← ⊕ over all paths from i to j of ⊗ along the path: all-pairs shortest, widest, most reliable
// paths, reachability, in place, by blocked elimination over contract().
//
// One block K of b vertices after the other is eliminated. If D(i,j) joins the paths whose inner vertices lie in earlier
// blocks, then those that may also pass through K are
//
//     D ⊕ D(:,K) ⊗ T ⊗ D(K,:),   T = D(K,K)* = 1 ⊕ D(K,K) ⊕ D(K,K)² ⊕ …
//
// since a path is cut, where it enters and leaves K for the first and last time, into a piece before, a walk among K, and
// a piece after. This holds for the block's own rows and columns too: with i in K it joins D(K,:) and D(K,K) ⊗ T ⊗ D(K,:),
// which is T ⊗ D(K,:), by 1 ⊕ D(K,K) ⊗ T = T. So one accumulating contract() over the whole of D does what is usually cut
// into row panel, column panel and remainder. The empty path, D(i,i) ⊕ 1, is joined at the start: ⊕ is idempotent, so
// that paths joined twice do no harm. For each block:
//
//     T = D(K,K)*, R = D(K,:)     one small kernel (detail/closure.hpp)
//     W = D(:,K) ⊗ T              contract, n × b × b
//     D = D ⊕ W ⊗ R               contract, n × n × b
//
// S. Warshall, A theorem on Boolean matrices, 1962; R. W. Floyd, Algorithm 97, 1962; D. J. Lehmann, Algebraic structures
// for transitive closure, 1977; G. Venkataraman, S. Sahni, S. Mukhopadhyaya, A blocked all-pairs shortest-paths
// algorithm, 2003.
#pragma once

#include <rigel/contract.hpp>
#include <rigel/detail/call.hpp>
#include <rigel/detail/closure.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <concepts>
#include <limits>
#include <utility>

namespace rigel {

struct ClosureOptions {
  std::int64_t block = 64;  // vertices eliminated at a time
  bool report = true;       // wait for the result and look for cycles; false: asynchronous, an empty report
  Batch batch = Batch::first;
  Promise require = Promise::none;  // of the contractions
  std::string_view kernel = {};     // of the contractions: a kernel's name or the leading part of it
  Workspace workspace = {};         // closure_workspace_size() bytes; else from Rigel's pool
};

/// What closure() found beside the paths.
struct ClosureReport {
  bool negative_cycle = false;  // some closed walk is better than one(): in min_plus, a cycle of negative weight
  std::int64_t vertex = -1;     // the first vertex that closes such a cycle with vertices before it; it lies on the cycle
  std::int64_t batch = -1;      // its graph
};

/// A semiring with closures: idempotent, with an identity of ⊗, its accumulators numbers.
template <class S>
concept ClosedSemiring =
    Semiring<S> && is_idempotent<S> && MultipliesPairs<S> && std::is_arithmetic_v<typename S::accumulator> && requires {
      { S::one() } -> std::convertible_to<typename S::accumulator>;
    };

namespace detail {

// Everything of one call: checks, workspace, the sequence of launches.
template <class Exec, class S, class Index>
class Closure {
 public:
  using element = typename S::element;
  using Data = ClosureData<S, Index>;

  Closure(const Exec& exec, const S& s, const Operand& d, const Operand& p, const ClosureOptions& options)
      : exec_(exec),
        options_(options),
        block_(std::min(options.block, d.rows)),
        data_{s,  d.batches, d.rows, d.column_stride <= d.row_stride, strided_in<element>(d), strided_in<Index>(p), {}, {},
              {}, {},        nullptr} {
    const auto refuse = [](const std::string& message) { throw Error(Code::invalid_argument, "closure: " + message); };
    if (d.rows != d.columns) refuse("D " + describe(d) + ", expected a square matrix");
    if (Data::tracks && (p.batches != d.batches || p.rows != d.rows || p.columns != d.columns))
      refuse("P " + describe(p) + ", expected " + extents(d) + " as D '" + d.label + "'");
    if (!Data::is_no_path(Data::identity()))
      refuse("is_no_path(identity()) of semiring '" + std::string(semiring_name<S>()) + "' is false, expected true");
    if constexpr (!KnowsNoPath<S> && requires { S::annihilator(); })
      if (typename S::accumulator(S::annihilator()) != typename S::accumulator(S::identity()))
        refuse("annihilator() of semiring '" + std::string(semiring_name<S>()) +
               "' is not its identity(), which then need not absorb; expected them equal, or is_no_path()");
    if (options.block < 1) refuse("options.block is " + std::to_string(options.block) + ", expected at least 1");
    // D overlaps neither P nor itself: the checks of a product of nothing that is written to D.
    Problem product;
    product.batch = d.batches;
    product.m = product.n = d.rows;
    product.a = product.b = p;
    product.c = d;
    product.names = {"closure", "P", "P", "D"};
    if constexpr (Data::tracks)
      product.k = d.rows;
    else
      product.a.rows = product.b.columns = d.rows;
    validate(product);
  }

  /// Bytes of the closure's own arrays, and of the contractions' workspace behind them. With a base: places them.
  std::size_t place(std::uintptr_t base = 0) {
    std::uintptr_t end = base;
    const auto take = [&]<class T>(Strided<T>& m, std::int64_t rows, std::int64_t columns) {
      const bool by_rows = data_.by_rows;
      m = {reinterpret_cast<T*>(end), rows * columns, by_rows ? columns : 1, by_rows ? 1 : rows};
      end += (sizeof(T) * data_.batches * rows * columns + 255) / 256 * 256;
    };
    take(data_.square, block_, block_);
    take(data_.left, data_.n, block_);
    take(data_.right, block_, data_.n);
    if constexpr (Data::tracks) take(data_.right_p, block_, data_.n);
    data_.cycle = reinterpret_cast<std::int64_t*>(end);
    end += 256;
    inner_ = {reinterpret_cast<void*>(end), inner_bytes()};
    return end - base + inner_.bytes;
  }

  ClosureReport run() {
    if (data_.batches == 0 || data_.n == 0) return {};
    const Kokkos::Profiling::ScopedRegion region("rigel::closure");
    const CallMemory memory("closure", execution_of(exec_), options_.workspace, place());
    place(memory.address());

    closure_begin(exec_, data_);
    for (std::int64_t k0 = 0; k0 < data_.n; k0 += block_) {
      const std::int64_t b = std::min(block_, data_.n - k0);
      closure_diagonal(exec_, data_, k0, b);
      if constexpr (Data::tracks) closure_panel(exec_, data_, k0, b);
      contractions(k0, b, [](auto&&... arguments) { contract(arguments...); });
    }
    if constexpr (KnowsNoPath<S>) closure_end(exec_, data_);
    return options_.report ? report() : ClosureReport{};
  }

 private:
  auto view(Strided<element> m, std::int64_t first_column, std::int64_t rows, std::int64_t columns) const {
    m.data += first_column * m.column;
    return batch_of<Exec>(m, data_.batches, rows, columns);
  }

  // The contractions that eliminate block [k0, k0 + b), each handed to `use` with contract()'s arguments.
  template <class Use>
  void contractions(std::int64_t k0, std::int64_t b, const Use& use) const {
    const std::int64_t n = data_.n;
    ContractOptions options{.require = options_.require, .kernel = options_.kernel, .workspace = inner_};
    const auto d = view(data_.d, 0, n, n);
    const auto left = view(data_.left, 0, n, b), right = view(data_.right, 0, b, n);
    if constexpr (Data::tracks) {
      use(exec_, with_argument<S>{data_.semiring}, left, right, d, Improve<S, Index>{data_, k0, b}, options);
    } else {
      use(exec_, data_.semiring, view(data_.d, k0, n, b), view(data_.square, 0, b, b), left, epilogue::Program{}, options);
      options.accumulate = true;
      use(exec_, data_.semiring, left, right, d, epilogue::Program{}, options);
    }
  }

  std::size_t inner_bytes() const {
    std::size_t bytes = 0;
    for (std::int64_t k0 = 0; k0 < data_.n; k0 += block_)
      contractions(k0, std::min(block_, data_.n - k0), [&](auto&&... arguments) {
        with_problem(arguments..., [&](const Problem& p) {
          const Kernel& kernel = select(p);
          if (kernel.workspace) bytes = std::max(bytes, kernel.workspace(kernel.info, p));
        });
      });
    return bytes;
  }

  ClosureReport report() const {
    std::int64_t first = 0;
    using Traits = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    Kokkos::deep_copy(exec_, Kokkos::View<std::int64_t, Kokkos::HostSpace, Traits>(&first),
                      Kokkos::View<std::int64_t, typename Exec::memory_space, Traits>(data_.cycle));
    exec_.fence("rigel::closure: report");
    if (first == std::numeric_limits<std::int64_t>::max()) return {};
    return {true, first % data_.n, first / data_.n};
  }

  const Exec& exec_;
  ClosureOptions options_;
  std::int64_t block_;
  Data data_;
  Workspace inner_;
};

// Static checks, then the object that runs the call.
template <class Exec, class S, class DView>
auto closure_of(const Exec& exec, const S& s, const DView& d, const ClosureOptions& options) {
  using Element = typename S::element;
  static_assert(Kokkos::is_execution_space_v<Exec>, "closure: the first argument is a Kokkos execution space instance");
  static_assert(ClosedSemiring<S>, "closure: the second argument is an idempotent semiring with one(), on numbers");
  static_assert(!std::is_integral_v<Element> || std::is_same_v<Element, typename S::accumulator>,
                "closure: integer elements are the semiring's accumulator too: a narrower type has no room for infinity");
  static_assert(
      !std::is_integral_v<Element> || KnowsNoPath<S> || requires { S::annihilator(); },
      "closure: a semiring of integers has to say what no path is: by annihilator() where identity() absorbs, else by "
      "is_no_path(x) (rigel/semiring.hpp). min_times of integers has neither, for its infinity wraps: use float or double");
  static_assert(holds<typename view_t<DView>::non_const_value_type, Element>,
                "closure: D holds the semiring's element type");
  static_assert(!std::is_same_v<typename view_t<DView>::non_const_value_type, bool> || std::is_same_v<Element, bool> ||
                    std::is_same_v<S, or_and<std::uint8_t>>,
                "closure: D of bool is read and written as bytes, which only or_and<std::uint8_t> keeps 0 or 1");
  static_assert(!std::is_const_v<typename view_t<DView>::value_type>, "closure: D is written, its elements cannot be const");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename view_t<DView>::memory_space>::accessible,
                "closure: the execution space cannot access D");
  return Closure<Exec, S, no_index>(exec, s, operand_of(d, options.batch), {}, options);
}
template <class Exec, class S, class DView, class PView>
auto closure_of(const Exec& exec, const S& s, const DView& d, const PView& p, const ClosureOptions& options) {
  using Index = typename view_t<PView>::non_const_value_type;
  static_assert(is_selective<S>, "closure: predecessors need a selective semiring, whose sums are one of their terms");
  static_assert(std::is_integral_v<Index> && std::is_signed_v<Index> && !std::is_const_v<typename view_t<PView>::value_type>,
                "closure: P holds signed integers that can be written");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename view_t<PView>::memory_space>::accessible,
                "closure: the execution space cannot access P");
  closure_of(exec, s, d, options);
  const Operand predecessors = operand_of(p, options.batch);
  if (predecessors.rows - 1 > std::numeric_limits<Index>::max())
    throw Error(Code::invalid_argument, "closure: P '" + predecessors.label + "' holds integers too narrow for " +
                                            std::to_string(predecessors.rows) + " vertices");
  return Closure<Exec, S, Index>(exec, s, operand_of(d, options.batch), predecessors, options);
}

template <class V>
inline constexpr bool is_matrix_argument = Kokkos::is_view_v<view_t<V>>;

}  // namespace detail

/// D ← D*: D(l,i,j) = ⊕ over the paths from i to j in graph l, the empty path from i to i included.
///
/// exec      any execution space instance
/// s         a closed semiring; D(l,i,j) holds the arc from i to j, identity() where there is none
/// d         view of rank 2 (n × n) or 3 (with a batch of graphs) of any layout, or a transposed() one, of the semiring's
///           elements; or_and<std::uint8_t> takes bool, too
/// returns   whether a cycle is better than one() (min_plus: of negative weight), found while eliminating; D is then
///           unspecified. This waits for the result; with options.report = false nothing waits and nothing is reported.
/// Sums are rounded to D's element type wherever they are stored (16-bit floats: once for each block that a path crosses).
/// Every kernel gives the same values for the same options.block; another block may associate, hence round, otherwise.
/// No path is what equals identity(), exactly, if the semiring has no is_no_path(). Then ⊗ has to leave identity() as it is:
/// semirings of integers say so by an annihilator() that equals identity(), or do not compile.
/// Integers of min_plus and max_plus have is_no_path(): weights of paths stay within ± infinity()/4; pairs without a path end as
/// exactly ± infinity(), negative arcs notwithstanding.
/// NaN spreads to every path through it.
/// Throws Error(invalid_argument) for a D that is not square, for an annihilator() other than identity() without is_no_path(),
/// and as contract() does; D is then as it was.
template <class Exec, class S, class DView>
ClosureReport closure(const Exec& exec, const S& s, const DView& d, const ClosureOptions& options = {}) {
  return detail::closure_of(exec, s, d, options).run();
}

/// The same for a selective semiring, with the predecessors: P(l,i,j) is the vertex before j on an optimal path from i
/// to j, −1 where i = j or there is no path. P is written only; signed integers, extents of D, any layout.
///
/// Following P(i,·) from j leads to i, whatever ties there are, cycles of weight one() among them, and however sums round,
/// as long as no arc is better than one() (min_plus: no negative weight). With such arcs it does if sums are exact
/// (integers, or floats that hold them). The reason: P(i,j) changes only when D(i,j) strictly improves, and then to the
/// predecessor in a row that is final for this step; of equally good rows the one of the smallest vertex is taken. Say the
/// predecessors of row i formed a cycle after a step. Along it D(i,·) never improves, so it is constant, x. No vertex of
/// the cycle kept its value in this step next to one that improved to x, for it would have been worse before. So all
/// improved; the row that gave b's predecessor a is one of the best for a too, so the smallest best vertex never grows
/// from b to a, and round the cycle it is the same for all. But then the cycle was in that row already.
/// For this the block's own rows are eliminated vertex by vertex, not by a product, which could tie in another order.
template <class Exec, class S, class DView, class PView>
  requires detail::is_matrix_argument<PView>
ClosureReport closure(const Exec& exec, const S& s, const DView& d, const PView& p, const ClosureOptions& options = {}) {
  return detail::closure_of(exec, s, d, p, options).run();
}

/// Bytes of workspace that the same call of closure() needs, in memory of the execution space, aligned to 256.
template <class Exec, class S, class DView>
std::size_t closure_workspace_size(const Exec& exec, const S& s, const DView& d, const ClosureOptions& options = {}) {
  return detail::closure_of(exec, s, d, options).place();
}
template <class Exec, class S, class DView, class PView>
  requires detail::is_matrix_argument<PView>
std::size_t closure_workspace_size(const Exec& exec, const S& s, const DView& d, const PView& p,
                                   const ClosureOptions& options = {}) {
  return detail::closure_of(exec, s, d, p, options).place();
}

}  // namespace rigel
