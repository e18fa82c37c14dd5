// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Iterative refinement of solutions in float (src/operations/refine.cpp): what its passes compute between factorisation,
// substitutions and products, and their kernel. For each system and right side,
//
//     negate   N = −A in double, all of it
//     begin    x = first solution, rest = b
//     narrow   rest in float, for the substitution
//     correct  x += correction, if that is less than half of the one before (at first: of x), else never again; rest = b
//     finish   the same, then X = x in float
//
// Sizes of corrections are sums of magnitudes in double, in one order for each execution space.
#pragma once

#include <rigel/detail/call.hpp>
#include <rigel/solve.hpp>

#include <algorithm>
#include <limits>

namespace rigel::detail {

struct RefinementPass {
  enum class Step : std::uint8_t { negate, begin, narrow, correct, finish };
  Step step;
  Operand a, negated;        // float; double
  bool lower, upper;         // the triangles of A that are read
  Operand b, x, correction;  // of float; `correction` is the first solution, the rest in float, and the correction in turn
  Operand sum, rest, sizes;  // of double: x, b − A·x, and 1 × right sides of sizes
};
using LaunchRefinement = void (*)(const Execution&, const RefinementPass&);

/// What a call on an execution space needs for which the library is not compiled: the passes, and kernels of
/// plus_times<double>.
struct Refinement {
  LaunchRefinement launch;
  std::span<const Kernel<Contraction>> products;
};

/// N = −A, of a symmetric A from one triangle. Neighbouring work items write neighbours.
struct NegateMatrix {
  Strided<const float> a;
  Strided<double> negated;
  std::int64_t n;
  bool lower, upper, by_rows;
  RIGEL_MEMBER void operator()(std::int64_t item) const {
    const std::int64_t of_all = item / n, fast = item - of_all * n, l = of_all / n, slow = of_all - l * n,
                       i = by_rows ? slow : fast, j = by_rows ? fast : slow;
    const bool mirrored = i >= j ? !lower : !upper;
    negated.at(l, i, j) = -static_cast<double>(mirrored ? a.at(l, j, i) : a.at(l, i, j));
  }
};

/// The other steps: a team for each column.
template <class Exec>
struct RefineColumns {
  using Step = RefinementPass::Step;
  using Policy = Kokkos::TeamPolicy<Exec>;
  using Team = typename Policy::member_type;

  Step step;
  std::int64_t batches, n, m;
  Strided<const float> b;
  Strided<float> x, correction;
  Strided<double> sum, rest, sizes;

  void launch(const Exec& exec) const {
    const std::int64_t teams = std::min<std::int64_t>(batches * m, std::numeric_limits<int>::max());
    Kokkos::parallel_for("rigel::solve/refine",
                         by_argument(Policy(exec, static_cast<int>(teams), runs_on_host<Exec> ? 1 : 128)), *this);
  }

  RIGEL_MEMBER void operator()(const Team& team) const {
    for (std::int64_t t = team.league_rank(); t < batches * m; t += team.league_size()) {
      const std::int64_t l = t / m, j = t - l * m;
      if (step == Step::narrow) {
        each(team, [&](std::int64_t i) { correction.at(l, i, j) = static_cast<float>(rest.at(l, i, j)); });
        continue;
      }
      double size = 0;
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, n),
          [&](std::int64_t i, double& part) { part += Kokkos::abs(static_cast<double>(correction.at(l, i, j))); }, size);
      const double before = sizes.at(l, 0, j);
      const bool begins = step == Step::begin, applies = begins || size < before / 2;
      team.team_barrier();
      Kokkos::single(Kokkos::PerTeam(team), [&] { sizes.at(l, 0, j) = applies ? size : 0; });
      each(team, [&](std::int64_t i) {
        const auto one = static_cast<double>(correction.at(l, i, j));
        double& value = sum.at(l, i, j);
        if (applies) value = begins ? one : value + one;
        if (step == Step::finish)
          x.at(l, i, j) = static_cast<float>(value);
        else
          rest.at(l, i, j) = static_cast<double>(b.at(l, i, j));
      });
      team.team_barrier();
    }
  }

 private:
  template <class Use>
  RIGEL_MEMBER void each(const Team& team, const Use& use) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), use);
  }
};

/// Enqueues a pass, if the execution space is one of the list.
template <class Spaces>
void launch_refinement(const Execution& execution, const RefinementPass& pass) {
  with_instance(Spaces{}, execution, [&]<class Exec>(const Exec& exec) {
    if (pass.step == RefinementPass::Step::negate) {
      const NegateMatrix negate{.a = strided<float>(pass.a),
                                .negated = strided_in<double>(pass.negated),
                                .n = pass.a.rows,
                                .lower = pass.lower,
                                .upper = pass.upper,
                                .by_rows = pass.negated.column_stride <= pass.negated.row_stride};
      const std::int64_t items = pass.a.batches * negate.n * negate.n;
      Kokkos::parallel_for("rigel::solve/negate",
                           by_argument(Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, items)), negate);
      return;
    }
    RefineColumns<Exec>{.step = pass.step,
                        .batches = pass.sum.batches,
                        .n = pass.sum.rows,
                        .m = pass.sum.columns,
                        .b = strided<float>(pass.b),
                        .x = strided_in<float>(pass.x),
                        .correction = strided_in<float>(pass.correction),
                        .sum = strided_in<double>(pass.sum),
                        .rest = strided_in<double>(pass.rest),
                        .sizes = strided_in<double>(pass.sizes)}
        .launch(exec);
  });
}

}  // namespace rigel::detail
