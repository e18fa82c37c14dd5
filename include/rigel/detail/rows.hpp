// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass of cdist() that prepares rows: to(l,i,:) = c·√(s / Σ_k c_k²) with c = x, or x less its mean, x = from(l,i,:), s the
// squared length that rows are to have; or to(l,i,:) = x / Σ_k x_k; in double, rounded once. Rows of zeros, or of one value where the
// mean is taken off, become NaN, as do rows that are not finite; −∞ rows whose sum is to be 1 and is not positive. Of these, negative
// numbers stay negative.
//
// A sum over k has `lanes` partial sums, each of every lanes-th k in ascending order, which are joined pairwise; where k is
// long, `parts` of a row do that apart and are then added in turn. The order depends on K alone, so that a row has the same bits
// on every execution space, in every layout and among any others.
#pragma once

#include <rigel/detail/cdist.hpp>
#include <rigel/detail/packed_rows.hpp>
#include <rigel/detail/root_rows.hpp>
#include <rigel/detail/transformed_rows.hpp>
#include <rigel/detail/wide_difference.hpp>
#include <rigel/detail/widened_rows.hpp>

#include <algorithm>
#include <limits>

namespace rigel::detail {

template <class Element, class Row>
struct Preparing {
  RowsToPrepare<Element, Row> of[2];
  std::int64_t k;
  bool centred;
  double squared_length;
  bool sums_to_one;
};

/// The kernel. On a device a row belongs to a thread of a team and its vector lanes, or, cut into parts, to all threads of a team.
template <class Exec, class Element, class Row, int parts>
struct PrepareRows {
  static constexpr int threads = parts > 1 ? parts : 8, lanes = 32;
  // Of a multiprocessor; more would leave too few registers.
  static constexpr int teams_at_once = parts > 1 ? 1 : sizeof(Element) == 8 ? 2 : 3;
  using Policy = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<threads * lanes, teams_at_once>>;
  using Team = typename Policy::member_type;
  static constexpr int together = 4;  // numbers that a lane reads at a time
  // Sums of doubles or of their squares have to stay between these, else the row is scaled by a power of two first.
  static constexpr double smallest = 0x1p-900, largest = 0x1p1000, enlarging = 0x1p600, reducing = 0x1p-600;

  Preparing<Element, Row> p;

  void launch(const Exec& exec) const {
    const std::int64_t rows = p.of[0].count() + p.of[1].count(), of_team = runs_on_host<Exec> || parts > 1 ? 1 : threads;
    const int league =
        static_cast<int>(std::min<std::int64_t>((rows + of_team - 1) / of_team, std::numeric_limits<int>::max()));
    constexpr int scratch_bytes = parts > 1 ? parts * static_cast<int>(sizeof(double)) : 0;
    Policy policy(exec, league, runs_on_host<Exec> ? 1 : threads, runs_on_host<Exec> ? 1 : lanes);
    Kokkos::parallel_for("rigel::cdist/rows", by_argument(policy.set_scratch_size(0, Kokkos::PerTeam(scratch_bytes))),
                         *this);
  }

  RIGEL_MEMBER void operator()(const Team& team) const {
    double* const shared = parts > 1 ? static_cast<double*>(team.team_shmem().get_shmem(parts * sizeof(double))) : nullptr;
    const std::int64_t rows = p.of[0].count() + p.of[1].count(), of_team = parts > 1 ? 1 : team.team_size();
    for (std::int64_t r = team.league_rank() * of_team + (parts > 1 ? 0 : team.team_rank()); r < rows;
         r += team.league_size() * of_team)
      prepare(team, r, shared);
  }

 private:
  /// A row less its mean, as it is read and scaled.
  struct Reader {
    const Element* from;
    std::int64_t step;
    double scale, mean, rest;
    Element origin;  // of int64, of which double need not hold the numbers themselves
    RIGEL_MEMBER double scaled(Element x) const {
      if constexpr (std::is_same_v<Element, std::int64_t>)
        return math::multiply(wide_difference(x, origin), scale);
      else
        return math::multiply(row_number(x), scale);
    }
    RIGEL_MEMBER double operator()(Element x) const { return math::subtract(math::subtract(scaled(x), mean), rest); }
  };

  RIGEL_MEMBER void prepare(const Team& team, std::int64_t r, double* shared) const {
    const RowsToPrepare<Element, Row> g = operand_of(p.of, r);
    Row* const to = &g.to.at(r / g.rows, r % g.rows, 0);
    Reader row{&g.from.at(r / g.rows, r % g.rows, 0), g.from.column, 1, 0, 0, Element{}};
    if (p.centred) row.origin = *row.from;

    double whole = 0;  // Σ_k c_k², or Σ_k x_k
    for (;;) {
      enum { mean, rest_of_mean, length };
      // Differences from the first number: the mean of equal ones is exact. Then what its rounding left of the mean.
      row.mean = p.centred ? row.scaled(*row.from) : 0;
      row.rest = 0;
      for (int pass = p.centred ? mean : length; pass <= length; ++pass) {
        const double total = sum(team, shared, row, pass == length && !p.sums_to_one),
                     share = total / static_cast<double>(p.k);
        if (pass == mean) row.mean += share;
        if (pass == rest_of_mean) row.rest = share;
        if (pass == length) whole = total;
      }
      if (row.scale != 1 || (whole >= smallest && whole <= largest)) break;
      row.scale = whole < smallest ? enlarging : reducing;
    }
    const double factor = 1 / (p.sums_to_one ? whole : __builtin_elementwise_sqrt(whole / p.squared_length));
    const bool has_no_sum = p.sums_to_one && whole <= 0;
    const auto prepared = [&](Element x) {
      const auto share = static_cast<Row>(math::multiply(row(x), factor));
      if (!p.sums_to_one) return share;
      if (has_no_sum) return -infinity<Row>();
      return share == 0 && row_number(x) < 0 ? -std::numeric_limits<Row>::denorm_min() : share;
    };
    if constexpr (runs_on_host<Exec>) {
      for (std::int64_t i = 0; i < p.k; ++i) to[i] = prepared(row.from[i * row.step]);
    } else {
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, lanes), [&](int lane) {
        Row* next = to + first_of(team, lane);
        for_each(team, row, lane, [&](Element x) {
          *next = prepared(x);
          next += parts * lanes;
        });
      });
    }
  }

  RIGEL_MEMBER static int first_of(const Team& team, int lane) { return (parts > 1 ? team.team_rank() * lanes : 0) + lane; }

  // visit(number) for a lane's share of a row. Some are read before the first is used, or each would be waited for.
  template <class Visit>
  RIGEL_MEMBER void for_each(const Team& team, const Reader& row, int lane, const Visit& visit) const {
    constexpr int stride = parts * lanes;
    const int first = first_of(team, lane);
    const std::int64_t step = stride * row.step;
    const Element* from = row.from + first * row.step;
    for (int left = static_cast<int>((p.k - first + stride - 1) / stride); left > 0; left -= together) {
      Element read[together];
#pragma unroll
      for (int t = 0; t < together; ++t, from += step)
        if (t < left) read[t] = *from;
#pragma unroll
      for (int t = 0; t < together; ++t)
        if (t < left) visit(read[t]);
    }
  }

  // Σ_k c_k, or of their squares, for the row of this thread, or of this team.
  RIGEL_MEMBER double sum(const Team& team, [[maybe_unused]] double* shared, const Reader& row, bool of_squares) const {
    const auto term = [&](Element x) {
      const double c = row(x);
      return of_squares ? math::multiply(c, c) : c;
    };
    double total = 0;
    if constexpr (runs_on_host<Exec>) {
      for (int part = 0; part < parts; ++part) {
        double partial[lanes] = {};
        for (std::int64_t first = part * lanes; first < p.k; first += parts * lanes) {
          const int width = static_cast<int>(p.k - first < lanes ? p.k - first : lanes);
          for (int lane = 0; lane < width; ++lane)
            partial[lane] = math::add(partial[lane], term(row.from[(first + lane) * row.step]));
        }
        for (int half = lanes / 2; half > 0; half /= 2)
          for (int lane = 0; lane < half; ++lane) partial[lane] = math::add(partial[lane], partial[lane + half]);
        total = math::add(total, partial[0]);
      }
    } else {
      // Kokkos joins lanes pairwise as the loop above does.
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, lanes),
          [&](int lane, double& partial) {
            for_each(team, row, lane, [&](Element x) { partial = math::add(partial, term(x)); });
          },
          total);
      if constexpr (parts > 1) {
        Kokkos::single(Kokkos::PerThread(team), [&] { shared[team.team_rank()] = total; });
        team.team_barrier();
        total = 0;
        for (int part = 0; part < parts; ++part) total = math::add(total, shared[part]);
        team.team_barrier();
      }
    }
    return total;
  }
};

/// Enqueues the pass.
template <class Exec, class Element, class Row>
void prepare_rows(const Exec& exec, const Preparing<Element, Row>& p) {
  constexpr std::int64_t long_row = 2048;
  if (p.k > long_row)
    PrepareRows<Exec, Element, Row, 16>{p}.launch(exec);
  else
    PrepareRows<Exec, Element, Row, 1>{p}.launch(exec);
}

/// The same on operands, if the execution space is one of the list.
template <class Spaces, class Element, class Row>
void launch_rows(const Execution& execution, const RowPass& pass) {
  const auto rows = [](const Operand& from, const Operand& to) {
    return RowsToPrepare<Element, Row>{strided<Element>(from), strided_in<Row>(to), to.batches, to.rows};
  };
  if constexpr (std::is_same_v<Row, std::uint32_t>) {
    with_instance(Spaces{}, execution, [&]<class Exec>(const Exec& exec) {
      PackRows<Exec, Element>{{rows(pass.from[0], pass.to[0]), rows(pass.from[1], pass.to[1])}, pass.from[0].columns}.launch(
          exec);
    });
  } else {
    const Preparing<Element, Row> p = {{rows(pass.from[0], pass.to[0]), rows(pass.from[1], pass.to[1])},
                                       pass.to[0].columns,
                                       pass.centred,
                                       pass.squared_length,
                                       pass.sums_to_one};
    with_instance(Spaces{}, execution, [&]<class Exec>(const Exec& exec) {
      if constexpr (std::is_same_v<Row, double>)
        if (pass.widened) return WidenRows<Exec, Element>{{p.of[0], p.of[1]}, p.k}.launch(exec);
      if (pass.roots)
        RootRows<Exec, Element, Row>{{p.of[0], p.of[1]}, p.k}.launch(exec);
      else if (pass.transformed)
        transform_rows(exec, p.of, strided<Row>(pass.factor), pass.factor.rows, pass.factor.columns);
      else
        prepare_rows(exec, p);
    });
  }
}

}  // namespace rigel::detail
