// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launches of gradients of kernel_matvec(), softmax_matvec() and logsumexp() (rigel/detail/matvec_gradient.hpp). All is computed in
// double and rounded once.
#pragma once

#include <rigel/detail/contract_backward_passes.hpp>
#include <rigel/detail/kernel_derivatives.hpp>
#include <rigel/detail/matvec_gradient.hpp>

#include <algorithm>
#include <limits>

namespace rigel::detail {

/// k at a distance or product v.
RIGEL_FUNCTION double kernel_value(KernelFormula formula, double v, const double (&h)[most_hyperparameters]) {
  switch (formula) {
    case KernelFormula::laplace: return Kokkos::exp(-v / h[0]);
    case KernelFormula::gaussian: return Kokkos::exp(-(v / h[0]) * (v / h[0]) / 2);
    case KernelFormula::matern32: {
      const double u = Kokkos::sqrt(3.) * v / h[0], e = Kokkos::exp(-u);
      return e == 0 ? 0 : (1 + u) * e;
    }
    case KernelFormula::matern52: {
      const double u = Kokkos::sqrt(5.) * v / h[0], e = Kokkos::exp(-u);
      return e == 0 ? 0 : (1 + u + u * u / 3) * e;
    }
    case KernelFormula::rational_quadratic: return Kokkos::exp(-h[1] * Kokkos::log1p((v / h[0]) * (v / h[0]) / (2 * h[1])));
    case KernelFormula::polynomial: return Kokkos::pow(h[1] * v + h[2], h[0]);
    case KernelFormula::sigmoid: return Kokkos::tanh(h[0] * v + h[1]);
  }
  return 0;
}

/// The distance of a p-th power.
RIGEL_FUNCTION double root_of(double power, double p) {
  if (p == 0 || p == 1) return power;
  return p == 2 ? Kokkos::sqrt(power) : Kokkos::pow(power, 1 / p);
}

template <class Exec, class T>
void kernel_values(const Exec& exec, const KernelValuesPass& pass) {
  const auto values = strided_in<const T>(pass.values);
  const auto to = strided_in<T>(pass.to);
  const KernelFormula formula = pass.formula;
  const double power = pass.p;
  const HyperparameterValue first = pass.hyperparameters[0], second = pass.hyperparameters[1],
                            third = pass.hyperparameters[2];
  for_each_element(
      exec, "rigel::matvec_gradient/kernels", pass.to,
      KOKKOS_LAMBDA(const std::int64_t l, const std::int64_t m, const std::int64_t n) {
        const double h[most_hyperparameters] = {first.at(l), second.at(l), third.at(l)};
        to.at(l, m, n) = static_cast<T>(kernel_value(formula, root_of(static_cast<double>(values.at(l, m, n)), power), h));
      });
}

/// A team takes a row.
template <class Exec, class T>
struct SoftmaxRows {
  static constexpr int threads = runs_on_host<Exec> ? 1 : 256;
  using Team = typename Kokkos::TeamPolicy<Exec>::member_type;

  Strided<T> values, upstream, scores;
  NumbersOf g, of_rows, of_columns, sums;  // sums: of rows
  HyperparameterValue scale;
  Strided<double> parts;
  std::int64_t batches, rows, columns;
  double p;
  bool is_squared, accumulate;

  void launch(const Exec& exec) const {
    const std::int64_t teams = batches * rows;
    if (teams == 0) return;
    const Kokkos::TeamPolicy<Exec> policy(
        exec, static_cast<int>(std::min<std::int64_t>(teams, std::numeric_limits<int>::max())), threads);
    Kokkos::parallel_for("rigel::matvec_gradient/softmax", by_argument(policy), *this);
  }

  RIGEL_MEMBER void operator()(const Team& team) const {
    for (std::int64_t item = team.league_rank(); item < batches * rows; item += team.league_size()) {
      const std::int64_t l = item / rows;
      take_row(team, l, item - l * rows);
      team.team_barrier();
    }
  }

 private:
  RIGEL_MEMBER static constexpr double none() { return -std::numeric_limits<double>::infinity(); }

  // What a row's scores are made of.
  struct Row {
    double scale, bias, largest = 0, sum = 0;
  };
  RIGEL_MEMBER double value_of(std::int64_t l, std::int64_t m, std::int64_t n) const {
    const auto value = static_cast<double>(values.at(l, m, n));
    return is_squared ? value : root_of(value, p);
  }
  RIGEL_MEMBER double score_of(const Row& row, std::int64_t l, std::int64_t n, double value) const {
    return row.scale * value + row.bias + (of_columns.exists() ? of_columns.at(l, n, 0) : 0);
  }
  // exp(score − largest): of −∞ it is 0, even if all are −∞.
  RIGEL_MEMBER static double exponential(const Row& row, double score) {
    return score == none() ? 0 : Kokkos::exp(score - row.largest);
  }

  RIGEL_MEMBER void take_row(const Team& team, std::int64_t l, std::int64_t m) const {
    Row row{.scale = scale.at(l), .bias = of_rows.exists() ? of_rows.at(l, m, 0) : 0};
    const auto range = Kokkos::TeamThreadRange(team, columns);
    Kokkos::parallel_reduce(
        range,
        [&](const std::int64_t n, double& largest) {
          const double score = score_of(row, l, n, value_of(l, m, n));
          if (score > largest) largest = score;
        },
        Kokkos::Max<double>(row.largest));
    Kokkos::parallel_reduce(
        range, [&](const std::int64_t n, double& sum) { sum += exponential(row, score_of(row, l, n, value_of(l, m, n))); },
        row.sum);
    const auto probability = [&](std::int64_t n, double value) {
      const double e = exponential(row, score_of(row, l, n, value));
      return e == 0 && row.sum == row.sum ? 0 : e / row.sum;
    };
    double mean = 0;
    if (upstream.data)
      Kokkos::parallel_reduce(
          range,
          [&](const std::int64_t n, double& sum) {
            const double share = probability(n, value_of(l, m, n));
            sum += share == 0 ? 0 : share * static_cast<double>(upstream.at(l, m, n));
          },
          mean);
    const double of_sum = upstream.data ? 0 : g.at(l, m, 0);
    HyperparameterSums sums_of_row;
    Kokkos::parallel_reduce(
        range,
        [&](const std::int64_t n, HyperparameterSums& sum) {
          const double value = value_of(l, m, n), share = probability(n, value);
          const double by_share = upstream.data ? static_cast<double>(upstream.at(l, m, n)) - mean : of_sum;
          const double slope = share == 0 ? 0 : share * by_share;
          values.at(l, m, n) = weight_of(slope * row.scale, value);
          if (upstream.data) upstream.at(l, m, n) = static_cast<T>(share);
          if (scores.data) scores.at(l, m, n) = static_cast<T>(slope);
          sum.of[0] += slope == 0 ? 0 : slope * value;
          sum.of[1] += slope;
        },
        AddHyperparameterSums(sums_of_row));
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      if (parts.data)
        for (int j = 0; j < most_hyperparameters; ++j) parts.at(l, m, j) = j == 0 ? sums_of_row.of[0] : 0;
      if (sums.exists()) sums.set(l, m, 0, sums_of_row.of[1] + (accumulate ? sums.at(l, m, 0) : 0));
    });
  }
  // What is multiplied by the difference of a coordinate to the power p − 1, or by the other point.
  RIGEL_MEMBER T weight_of(double slope, double value) const {
    if (p == 0) return static_cast<T>(slope);
    double weight = slope;
    if (is_squared)
      weight *= 2;
    else if (p != 1)
      weight = value == 0 || slope == 0 ? 0 : p == 2 ? slope / value : slope * Kokkos::pow(value, 1 - p);
    // As in WeighKernels: an infinite weight would make NaN of a difference whose power is rounded to 0.
    constexpr auto most = static_cast<double>(std::numeric_limits<T>::max());
    if (slope - slope == 0 && Kokkos::abs(weight) > most) weight = weight > 0 ? most : -most;
    return static_cast<T>(weight);
  }
};

template <class Exec, class T>
void softmax_rows(const Exec& exec, const SoftmaxPass& pass) {
  SoftmaxRows<Exec, T>{.values = strided_in<T>(pass.values),
                       .upstream = strided_in<T>(pass.upstream),
                       .scores = strided_in<T>(pass.scores),
                       .g = NumbersOf(pass.g),
                       .of_rows = NumbersOf(pass.of_rows),
                       .of_columns = NumbersOf(pass.of_columns),
                       .sums = NumbersOf(pass.rows),
                       .scale = pass.scale,
                       .parts = strided_in<double>(pass.parts),
                       .batches = pass.values.batches,
                       .rows = pass.values.rows,
                       .columns = pass.values.columns,
                       .p = pass.p,
                       .is_squared = pass.is_squared,
                       .accumulate = pass.accumulate}
      .launch(exec);
  if (!pass.parts.data) return;
  SumHyperparameters<Exec> sum{.parts = strided_in<double>(pass.parts),
                               .totals = strided_in<double>(pass.totals),
                               .batches = pass.values.batches,
                               .count = pass.values.rows,
                               .first = pass.first,
                               .last = pass.last,
                               .accumulate = pass.accumulate};
  sum.results[0] = strided_in<char>(pass.result);
  sum.types[0] = pass.result.type;
  sum.launch(exec);
}

/// The launches on the spaces of a list.
template <class Spaces>
MatvecGradientPasses matvec_gradient_passes() {
  return {
      .copy = [](const Execution& e,
                 const CopyPass& pass) { with_instance(Spaces{}, e, [&](const auto& exec) { copy_numbers(exec, pass); }); },
      .kernels =
          [](const Execution& e, Scalar type, const KernelValuesPass& pass) {
            with_instance(Spaces{}, e, [&]<class Exec>(const Exec& exec) {
              with_computed(type, [&]<class T>() { kernel_values<Exec, T>(exec, pass); });
            });
          },
      .softmax =
          [](const Execution& e, Scalar type, const SoftmaxPass& pass) {
            with_instance(Spaces{}, e, [&]<class Exec>(const Exec& exec) {
              with_computed(type, [&]<class T>() { softmax_rows<Exec, T>(exec, pass); });
            });
          }};
}

}  // namespace rigel::detail
