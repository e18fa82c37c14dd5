// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass of cdist() that prepares rows: to(l,i,:) = c / |c| with c = x, or x less its mean, x = from(l,i,:), computed in double
// and rounded once. Rows of zeros, or of one value where the mean is taken off, become NaN, as do rows that are not finite.
//
// A sum over k has `lanes` partial sums, each of every lanes-th k in ascending order, which are joined pairwise; where k is
// long, parts of a row do that apart and are then added in turn. The order depends on K alone, so that a row has the same bits on
// every execution space, in every layout and among any others.
#pragma once

#include <rigel/detail/call.hpp>

#include <algorithm>
#include <limits>

namespace rigel::detail {

/// The rows of one operand.
template <class Element, class Row>
struct RowsToPrepare {
  Strided<const Element> from;
  Strided<Row> to;  // contiguous along k
  std::int64_t batches = 0, rows = 0;
  RIGEL_MEMBER std::int64_t count() const { return batches * rows; }
};

template <class Exec, class Element, class Row>
struct PrepareRows {
  using Policy = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<512, 1>>;
  using Team = typename Policy::member_type;
  static constexpr int lanes = 32;          // threads of a device that share a part of a row
  static constexpr int parts_of_long = 16;  // of a row of more than long_row values, each summed by a thread of the team
  static constexpr int rows_of_team = 8;    // of a device's, where each thread has a row of its own
  static constexpr std::int64_t long_row = 4096;
  // Squares of doubles have to stay between these, else the row is scaled by a power of two first.
  static constexpr double smallest = 0x1p-900, largest = 0x1p1000, enlarging = 0x1p600, reducing = 0x1p-600;

  RowsToPrepare<Element, Row> of[2];
  std::int64_t k;
  bool centred;

  RIGEL_MEMBER int parts() const { return k > long_row ? parts_of_long : 1; }

  void launch(const Exec& exec) const {
    const std::int64_t rows = of[0].count() + of[1].count();
    const auto league = [&](std::int64_t of_team) {
      return static_cast<int>(std::min<std::int64_t>((rows + of_team - 1) / of_team, std::numeric_limits<int>::max()));
    };
    constexpr const char* label = "rigel::cdist/rows";
    if constexpr (runs_on_host<Exec>) {
      Kokkos::parallel_for(label, Policy(exec, league(1), 1, 1), *this);
    } else if (parts() == 1) {
      Kokkos::parallel_for(label, Policy(exec, league(rows_of_team), rows_of_team, lanes), *this);
    } else {
      constexpr int scratch_bytes = parts_of_long * static_cast<int>(sizeof(double));
      Kokkos::parallel_for(
          label, Policy(exec, league(1), parts_of_long, lanes).set_scratch_size(0, Kokkos::PerTeam(scratch_bytes)), *this);
    }
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const bool shares_row = parts() > 1;
    const std::int64_t each = shares_row ? 1 : team.team_size();
    double* const shared =
        static_cast<double*>(team.team_shmem().get_shmem(shares_row ? parts_of_long * sizeof(double) : 0));
    const std::int64_t rows = of[0].count() + of[1].count();
    for (std::int64_t r = team.league_rank() * each + (shares_row ? 0 : team.team_rank()); r < rows;
         r += team.league_size() * each)
      prepare(team, r, shared);
  }

 private:
  RIGEL_MEMBER static double number(Element x) {
    if constexpr (ShortFloat<Element>)
      return static_cast<float>(x);
    else
      return static_cast<double>(x);
  }

  KOKKOS_FUNCTION void prepare(const Team& team, std::int64_t r, double* shared) const {
    const bool second = r >= of[0].count();
    const RowsToPrepare<Element, Row>& g = of[second];
    if (second) r -= of[0].count();
    const Element* const from = &g.from.at(r / g.rows, r % g.rows, 0);
    Row* const to = &g.to.at(r / g.rows, r % g.rows, 0);
    const std::int64_t step = g.from.column;

    double scale = 1, mean = 0, rest = 0, squares = 0;
    const auto value = [&](std::int64_t i) { return math::multiply(number(from[i * step]), scale); };
    const auto value_less_mean = [&](std::int64_t i) { return math::subtract(math::subtract(value(i), mean), rest); };
    for (;;) {
      if (centred) {
        // Differences from the first value: the mean of equal ones is exact. Then what its rounding left of the mean.
        const double first = value(0), length = static_cast<double>(k);
        mean = first + sum(team, shared, [&](std::int64_t i) { return math::subtract(value(i), first); }) / length;
        rest = sum(team, shared, [&](std::int64_t i) { return math::subtract(value(i), mean); }) / length;
      }
      squares = sum(team, shared, [&](std::int64_t i) {
        const double c = value_less_mean(i);
        return math::multiply(c, c);
      });
      if (scale != 1 || (squares >= smallest && squares <= largest)) break;
      scale = squares < smallest ? enlarging : reducing;
      mean = rest = 0;
    }
    const double inverse = 1 / __builtin_elementwise_sqrt(squares);
    const auto store = [&](std::int64_t i) { to[i] = static_cast<Row>(math::multiply(value_less_mean(i), inverse)); };
    if constexpr (runs_on_host<Exec>) {
      for (std::int64_t i = 0; i < k; ++i) store(i);
    } else {
      const std::int64_t part = parts() > 1 ? team.team_rank() : 0, stride = parts() * lanes;
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, lanes), [&](int lane) {
        for (std::int64_t i = part * lanes + lane; i < k; i += stride) store(i);
      });
    }
  }

  // Σ_k term(k) for the row of this thread, or of this team.
  template <class Term>
  KOKKOS_FUNCTION double sum(const Team& team, double* shared, const Term& term) const {
    const int count = parts();
    const std::int64_t stride = count * lanes;
    double total = 0;
    if constexpr (runs_on_host<Exec>) {
      for (int part = 0; part < count; ++part) {
        double partial[lanes] = {};
        for (std::int64_t first = part * lanes; first < k; first += stride) {
          const int width = static_cast<int>(k - first < lanes ? k - first : lanes);
          for (int lane = 0; lane < width; ++lane) partial[lane] = math::add(partial[lane], term(first + lane));
        }
        for (int half = lanes / 2; half > 0; half /= 2)
          for (int lane = 0; lane < half; ++lane) partial[lane] = math::add(partial[lane], partial[lane + half]);
        total = math::add(total, partial[0]);
      }
    } else {
      const std::int64_t part = count > 1 ? team.team_rank() : 0;
      // Kokkos joins lanes pairwise as the loop above does.
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, lanes),
          [&](int lane, double& partial) {
            for (std::int64_t i = part * lanes + lane; i < k; i += stride) partial = math::add(partial, term(i));
          },
          total);
      if (count > 1) {
        Kokkos::single(Kokkos::PerThread(team), [&] { shared[part] = total; });
        team.team_barrier();
        total = 0;
        for (int other = 0; other < count; ++other) total = math::add(total, shared[other]);
        team.team_barrier();
      }
    }
    return total;
  }
};

}  // namespace rigel::detail
