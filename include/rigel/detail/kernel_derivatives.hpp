// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The derivatives of rigel::kernel's kernels, and the pass of kernel_matrix_gradient() that makes weights of distances or
// products:
//
//     W(l,m,n) = G(l,m,n)·k'(d)·d^(1−p)   of distances d = S(l,m,n)^(1/p), of products G(l,m,n)·k'(S(l,m,n)), in place of S
//     Σ_mn G(l,m,n)·∂k/∂θ                 for each hyperparameter θ
//
// All is computed in double, and W is rounded once to its type. A sum runs over parts of a row, each by `lanes` partial sums
// that are joined pairwise, then over these parts by the threads of a team. The order depends on extents and the execution
// space alone.
#pragma once

#include <rigel/detail/call.hpp>
#include <rigel/detail/kernel_matrix_gradient.hpp>

#include <algorithm>
#include <limits>

namespace rigel::detail {

/// The derivatives of k at one distance or product.
struct KernelDerivatives {
  double slope;                     // by the value; of distances over d, but for the Laplace kernel
  double by[most_hyperparameters];  // by each hyperparameter, in the order of the kernel's members
};

/// The factor e, unless it is 0: then its product with what may be infinite is 0, too.
RIGEL_FUNCTION double times_falling(double e, double factor) { return e == 0 ? 0 : e * factor; }

/// `v`: a distance or a product. `h`: the hyperparameters. ([RW] 4.9 and 4.17 to 4.19, [SS] 2.1, differentiated.)
template <KernelFormula formula>
RIGEL_FUNCTION KernelDerivatives derivatives(double v, const double (&h)[most_hyperparameters]) {
  const double r = 1 / h[0];
  if constexpr (formula == KernelFormula::laplace) {
    const double u = v * r, e = Kokkos::exp(-u);
    return {-e * r, {times_falling(e, u * r), 0, 0}};
  } else if constexpr (formula == KernelFormula::gaussian) {
    const double u = v * r, e = Kokkos::exp(-u * u / 2);
    return {-e * r * r, {times_falling(e, u * u * r), 0, 0}};
  } else if constexpr (formula == KernelFormula::matern32) {
    const double u = Kokkos::sqrt(3.) * v * r, e = Kokkos::exp(-u);
    return {-3 * e * r * r, {times_falling(e, u * u * r), 0, 0}};
  } else if constexpr (formula == KernelFormula::matern52) {
    const double u = Kokkos::sqrt(5.) * v * r, e = Kokkos::exp(-u);
    return {times_falling(e, -5 * (1 + u) * r * r / 3), {times_falling(e, u * u * (1 + u) * r / 3), 0, 0}};
  } else if constexpr (formula == KernelFormula::rational_quadratic) {
    const double alpha = h[1], u = v * r, ratio = u * u / (2 * alpha), log = Kokkos::log1p(ratio),
                 e = Kokkos::exp(-(alpha + 1) * log);  // a power of 1 + ratio would lose what that sum rounds away
    return {-e * r * r, {times_falling(e, u * u * r), times_falling(e, ratio - (1 + ratio) * log), 0}};
  } else if constexpr (formula == KernelFormula::polynomial) {
    const double degree = h[0], base = h[1] * v + h[2], slope = degree * Kokkos::pow(base, degree - 1);
    return {slope * h[1], {base == 0 ? 0 : Kokkos::pow(base, degree) * Kokkos::log(base), slope * v, slope}};
  } else {
    static_assert(formula == KernelFormula::sigmoid);
    const double hyperbolic = Kokkos::cosh(h[0] * v + h[1]), slope = 1 / (hyperbolic * hyperbolic);
    return {slope * h[0], {slope * v, slope, 0}};
  }
}

/// Sums for all hyperparameters, and how Kokkos joins them.
struct HyperparameterSums {
  double of[most_hyperparameters] = {};
  RIGEL_MEMBER void add(const HyperparameterSums& other) {
    for (int j = 0; j < most_hyperparameters; ++j) of[j] += other.of[j];
  }
};
class AddHyperparameterSums {
 public:
  using reducer = AddHyperparameterSums;
  using value_type = HyperparameterSums;
  using result_view_type = Kokkos::View<value_type, Kokkos::AnonymousSpace, Kokkos::MemoryUnmanaged>;
  RIGEL_MEMBER explicit AddHyperparameterSums(value_type& sum) : sum_(&sum) {}
  RIGEL_MEMBER void join(value_type& to, const value_type& from) const { to.add(from); }
  RIGEL_MEMBER void init(value_type& sum) const { sum = {}; }
  RIGEL_MEMBER value_type& reference() const { return *sum_; }
  RIGEL_MEMBER result_view_type view() const { return result_view_type(sum_); }
  RIGEL_MEMBER bool references_scalar() const { return true; }

 private:
  value_type* sum_;
};

/// W in place of S, and the sums of parts of rows. On a device a part belongs to a thread of a team and its vector lanes.
template <class Exec, class T, KernelFormula formula>
struct WeighKernels {
  static constexpr int threads = runs_on_host<Exec> ? 1 : 8, lanes = runs_on_host<Exec> ? 1 : 32;
  static constexpr std::int64_t width = kernel_weights_width;
  using Policy = Kokkos::TeamPolicy<Exec>;
  using Team = typename Policy::member_type;

  Strided<T> values;
  Strided<const T> left, right;  // G, or G(l,m,n) = left(l,m,0)·right(l,0,n)
  HyperparameterValue hyperparameters[most_hyperparameters] = {};
  Strided<double> parts;  // (l, part, hyperparameter); no data: nobody wants them
  std::int64_t batches, rows, columns, parts_of_row;
  double p, exponent;  // p = 0: products

  void launch(const Exec& exec) const {
    const std::int64_t teams = (batches * rows * parts_of_row + threads - 1) / threads;
    if (teams == 0) return;
    const Policy policy(exec, static_cast<int>(std::min<std::int64_t>(teams, std::numeric_limits<int>::max())), threads,
                        lanes);
    Kokkos::parallel_for("rigel::kernel_matrix_gradient/weights", by_argument(policy), *this);
  }

  RIGEL_MEMBER void operator()(const Team& team) const {
    const std::int64_t of_batch = rows * parts_of_row;
    for (std::int64_t i = std::int64_t{team.league_rank()} * threads + team.team_rank(); i < batches * of_batch;
         i += std::int64_t{team.league_size()} * threads) {
      const std::int64_t l = i / of_batch, part = i - l * of_batch, m = part / parts_of_row,
                         first = (part - m * parts_of_row) * width;
      double h[most_hyperparameters];
      for (int j = 0; j < most_hyperparameters; ++j) h[j] = hyperparameters[j].at(l);
      const int count = static_cast<int>(columns - first < width ? columns - first : width);
      HyperparameterSums sums;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, count), [&](int n, HyperparameterSums& sum) { weigh(l, m, first + n, h, sum); },
          AddHyperparameterSums(sums));
      if (parts.data)
        Kokkos::single(Kokkos::PerThread(team), [&] {
          for (int j = 0; j < most_hyperparameters; ++j) parts.at(l, part, j) = sums.of[j];
        });
    }
  }

 private:
  RIGEL_MEMBER void weigh(std::int64_t l, std::int64_t m, std::int64_t n, const double (&h)[most_hyperparameters],
                          HyperparameterSums& sum) const {
    T& value = values.at(l, m, n);
    double upstream = static_cast<double>(left.at(l, m, n));
    if (right.data) upstream *= static_cast<double>(right.at(l, m, n));
    double v = static_cast<double>(value);
    if (p == 2)
      v = Kokkos::sqrt(v);
    else if (p != 0 && p != 1)
      v = Kokkos::pow(v, 1 / p);
    const KernelDerivatives k = derivatives<formula>(v, h);
    double weight = upstream * k.slope;
    // Differences to this power follow: of points that coincide they are 0.
    if (exponent != 0)
      weight = v == 0 || weight == 0 ? 0
               : exponent == 1       ? weight * v
               : exponent == -1      ? weight / v
                                     : weight * Kokkos::pow(v, exponent);
    // An infinite weight would make NaN of a difference whose power is rounded to 0.
    constexpr auto most = static_cast<double>(std::numeric_limits<T>::max());
    if (p != 0 && upstream - upstream == 0 && Kokkos::abs(weight) > most) weight = weight > 0 ? most : -most;
    value = static_cast<T>(weight);
    for (int j = 0; j < most_hyperparameters; ++j) sum.of[j] += upstream * k.by[j];
  }
};

/// Adds the parts to the totals of a batch, a team each, and stores these after the last block.
template <class Exec>
struct SumHyperparameters {
  static constexpr int threads = runs_on_host<Exec> ? 1 : 128;
  using Policy = Kokkos::TeamPolicy<Exec>;
  using Team = typename Policy::member_type;

  Strided<double> parts, totals;  // totals: (l, 0, hyperparameter)
  Strided<char> results[most_hyperparameters] = {};
  Scalar types[most_hyperparameters] = {};
  std::int64_t batches, count;
  bool first, last, accumulate;

  void launch(const Exec& exec) const {
    const Policy policy(exec, static_cast<int>(std::min<std::int64_t>(batches, std::numeric_limits<int>::max())), threads);
    Kokkos::parallel_for("rigel::kernel_matrix_gradient/sums", by_argument(policy), *this);
  }

  RIGEL_MEMBER void operator()(const Team& team) const {
    for (std::int64_t l = team.league_rank(); l < batches; l += team.league_size()) {
      HyperparameterSums sums;
      Kokkos::parallel_reduce(
          Kokkos::TeamThreadRange(team, count),
          [&](std::int64_t part, HyperparameterSums& sum) {
            for (int j = 0; j < most_hyperparameters; ++j) sum.of[j] += parts.at(l, part, j);
          },
          AddHyperparameterSums(sums));
      Kokkos::single(Kokkos::PerTeam(team), [&] {
        for (int j = 0; j < most_hyperparameters; ++j) {
          double& total = totals.at(l, 0, j);
          total = first ? sums.of[j] : total + sums.of[j];
          if (!last || !results[j].data) continue;
          const std::int64_t place = results[j].offset(l, 0, 0);
          if (types[j] == Scalar::f64)
            store(reinterpret_cast<double*>(results[j].data)[place], total);
          else
            store(reinterpret_cast<float*>(results[j].data)[place], total);
        }
      });
      team.team_barrier();
    }
  }

 private:
  template <class R>
  RIGEL_MEMBER void store(R& result, double total) const {
    result = static_cast<R>(accumulate ? static_cast<double>(result) + total : total);
  }
};

/// Enqueues the pass, if the execution space is one of the list: the ones, with the first block; the weights; the sums.
template <class Spaces, class T, KernelFormula formula>
void launch_kernel_weights(const Execution& execution, const KernelWeightsPass& pass) {
  const Operand& values = pass.values;
  with_instance(Spaces{}, execution, [&]<class Exec>(const Exec& exec) {
    if (pass.first && pass.ones.data) {
      T* const ones = static_cast<T*>(pass.ones.data);
      Kokkos::parallel_for(
          "rigel::kernel_matrix_gradient/ones",
          by_argument(Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, pass.ones.columns)),
          KOKKOS_LAMBDA(const std::int64_t i) { ones[i] = T(1); });
    }
    WeighKernels<Exec, T, formula> weigh{.values = strided_in<T>(values),
                                         .left = strided<T>(pass.left),
                                         .right = strided<T>(pass.right),
                                         .parts = strided_in<double>(pass.parts),
                                         .batches = values.batches,
                                         .rows = values.rows,
                                         .columns = values.columns,
                                         .parts_of_row = (values.columns + kernel_weights_width - 1) / kernel_weights_width,
                                         .p = pass.p,
                                         .exponent = pass.p == 0 ? 0 : (formula == KernelFormula::laplace ? 1 : 2) - pass.p};
    std::copy_n(pass.hyperparameters, most_hyperparameters, weigh.hyperparameters);
    weigh.launch(exec);
    if (!pass.parts.data) return;
    SumHyperparameters<Exec> sum{.parts = strided_in<double>(pass.parts),
                                 .totals = strided_in<double>(pass.totals),
                                 .batches = values.batches,
                                 .count = weigh.rows * weigh.parts_of_row,
                                 .first = pass.first,
                                 .last = pass.last,
                                 .accumulate = pass.accumulate};
    for (int j = 0; j < most_hyperparameters; ++j) {
      sum.results[j] = strided_in<char>(pass.results[j]);
      sum.types[j] = pass.results[j].type;
    }
    sum.launch(exec);
  });
}

}  // namespace rigel::detail
