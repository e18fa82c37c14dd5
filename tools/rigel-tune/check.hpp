// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forced problems: all kernels of random problems are timed on Kokkos's default space, and what the table's rates and the measured ones
// would have chosen is compared with the fastest.
#pragma once

#include <bench/runner.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace tune {

/// How good choices are.
struct Quality {
  std::vector<double> losses;  // seconds of the chosen kernel over those of the fastest
  double within(double limit) const {
    return static_cast<double>(std::ranges::count_if(losses, [=](double loss) { return loss <= limit; })) /
           static_cast<double>(losses.size());
  }
  double geometric_mean() const {
    double sum = 0;
    for (const double loss : losses) sum += std::log(loss);
    return std::exp(sum / static_cast<double>(losses.size()));
  }
};

struct Check {
  Quality table, profile;
};

/// The loss of the kernel that a card (or a host's Card) makes the cheapest of the timed ones.
inline double loss_on(const rigel::Card& card, rigel::Contraction p, const bench::Outcome& outcome) {
  p.execution.card = &card;
  double least = INFINITY, seconds = 0;
  for (const auto& candidate : rigel::candidates(p)) {
    const auto row = std::ranges::find(outcome.rows, candidate.kernel, &bench::Row::kernel);
    if (row == outcome.rows.end() || row->seconds <= 0 || !candidate.status || candidate.seconds >= least) continue;
    least = candidate.seconds;
    seconds = row->seconds;
  }
  return seconds / outcome.rows[outcome.best].seconds;
}

inline Check check(const rigel::Card& table, const rigel::Card& tuned, double seconds, std::uint64_t seed) {
  const bench::Exec exec;
  bench::Runner runner(exec);
  bench::Pool pool;
  const std::vector<bench::Subject> zoo = bench::zoo();
  const auto deadline =
      bench::Clock::now() + std::chrono::duration_cast<bench::Clock::duration>(std::chrono::duration<double>(seconds));
  Check check;
  for (std::uint64_t i = 0; bench::Clock::now() < deadline; ++i) {
    bench::Spec spec = bench::Draw(seed, i).problem(zoo);
    spec.precision = rigel::Precision::automatic;
    spec.require = rigel::Promise::none;
    const auto outcome = runner.run(spec, bench::Which::all, "", deadline);
    if (!outcome) break;
    if (!outcome->is_complete()) continue;
    const bench::Instance instance(exec, spec, pool);
    check.table.losses.push_back(loss_on(table, instance.problem(), *outcome));
    check.profile.losses.push_back(loss_on(tuned, instance.problem(), *outcome));
  }
  return check;
}

}  // namespace tune
