// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// sinkhorn(): entropic optimal transport between two weighted sets of points, by potentials in the log domain; neither the costs nor the plan
// are stored. (M. Cuturi, Sinkhorn distances, 2013; G. Peyré and M. Cuturi, Computational Optimal Transport, 2019, section 4.4.)
#pragma once

#include <rigel/detail/iteration.hpp>
#include <rigel/dissimilarities.hpp>
#include <rigel/kernel_matvec.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rigel {

/// Options of sinkhorn().
struct SinkhornOptions {
  double epsilon = 0;       // the regularisation, in the units of the costs: > 0
  double tolerance = 1e-6;  // of the plan's marginals: Σ_m |Σ_n P(m,n) − a(m)|, and of columns
  int iterations = 1000;    // at most so many updates of both potentials
  double scaling =
      0.5;  // ε begins at the largest cost and is multiplied by this for each update; 1: it is epsilon throughout
  bool symmetric =
      true;  // both potentials are updated at the same time and averaged with the former ones; false: one after the other
  Promise require = Promise::none;             // as in ReduceOptions
  Precision precision = Precision::automatic;  // the same
  bool may_cancel = false;                     // the same
  std::string_view score_kernel = {};          // the same
  std::size_t workspace_limit = 0;             // the same
  Workspace workspace = {};                    // sinkhorn_workspace_size() bytes; else from Rigel's pool
};

/// What sinkhorn() found.
struct SinkhornResult {
  int iterations = 0;      // updates of both potentials
  double error = 0;        // of the marginals of f's and g's plan: the larger of both sums
  double value = 0;        // Σ a·f + Σ b·g, the dual value of a plan whose marginals are right
  bool converged = false;  // error ≤ tolerance
};

namespace detail {

template <class V>
Operand weights_operand(const V& v, const char* argument) {
  static_assert(Kokkos::is_view_v<V>, "sinkhorn: weights and potentials are Kokkos views");
  static_assert(V::rank() == 1, "sinkhorn: weights and potentials are views of rank 1");
  static_assert(
      std::is_same_v<typename V::non_const_value_type, float> || std::is_same_v<typename V::non_const_value_type, double>,
      "sinkhorn: weights and potentials are of float or double");
  return result_operand<false>(v, Batch::first, argument);
}

// The steps that make exponents of costs C: (h − C)/ε, of a bias of −h.
template <class Bias>
epilogue::Program exponents(const Bias& bias, double epsilon) {
  return epilogue::add_row(bias) | epilogue::scale(-1 / epsilon);
}

// bias(j) = −(potential(j) + ε·log weight(j)); ∞ of no weight, whose exponent is then −∞.
template <class Exec, class Weights, class Potential, class Bias>
void set_bias(const Exec& exec, const Weights& weights, const Potential& potential, double epsilon, const Bias& bias) {
  for_each_index(
      exec, "rigel::sinkhorn/bias", static_cast<std::int64_t>(bias.extent(0)), KOKKOS_LAMBDA(const std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        const auto weight = static_cast<double>(weights(at));
        bias(at) = weight > 0 ? -(static_cast<double>(potential(at)) + epsilon * math::logarithm(weight))
                              : std::numeric_limits<double>::infinity();
      });
}

// What sinkhorn() asks of costs C(m,n) of two sets of points: reductions of their rows, or, with `of_columns`, of their columns. Each makes
// the problem and hands it to `use`, with the pass that prepares rows, or null.
template <class Exec, class X, class Z, class M>
class PointCosts {
 public:
  PointCosts(const Exec& exec, const X& x, const Z& z, const M& metric, const char* function, const SinkhornOptions& options)
      : exec_(exec), x_(x), z_(z), metric_(metric), function_(function), options_(options) {}

  // values(m) = max_n C(m,n)
  template <class Vector, class Use>
  auto largest(const Vector& values, const Workspace& workspace, const Use& use) const {
    return reduce(x_, z_, reducer::maximum{}, values, epilogue::Program{}, workspace, use);
  }
  // values(m) = log Σ_n exp(−(bias(n) + C(m,n)) / ε)
  template <class Vector, class Use>
  auto log_sum_exp(bool of_columns, const Vector& bias, double epsilon, const Vector& values, const Workspace& workspace,
                   const Use& use) const {
    const epilogue::Program steps = exponents(bias, epsilon);
    return of_columns ? reduce(z_, x_, reducer::log_sum_exp{}, values, steps, workspace, use)
                      : reduce(x_, z_, reducer::log_sum_exp{}, values, steps, workspace, use);
  }
  // out = V's rows weighted by the softmax of these exponents
  template <class V, class Bias, class Out, class Use>
  auto softmax(const V& v, const Bias& bias, double epsilon, const Out& out, const Workspace& workspace,
               const Use& use) const {
    return reduce(x_, z_, reducer::softmax_weighted<V>{v}, out, exponents(bias, epsilon), workspace, use);
  }

 private:
  template <class From, class To, class R, class Values, class Use>
  auto reduce(const From& from, const To& to, const R& reducer, const Values& values, const epilogue::Program& steps,
              const Workspace& workspace, const Use& use) const {
    return with_points(exec_, from, to, metric_, reducer, values, no_output, steps,
                       {.require = options_.require,
                        .precision = options_.precision,
                        .may_cancel = options_.may_cancel,
                        .score_kernel = options_.score_kernel,
                        .workspace_limit = options_.workspace_limit,
                        .workspace = workspace},
                       function_, use);
  }

  const Exec& exec_;
  const X& x_;
  const Z& z_;
  const M& metric_;
  const char* function_;
  const SinkhornOptions& options_;
};

// One call: its arrays, and its steps.
template <class Exec, class Costs>
class SinkhornCall {
  using Arrays = ArraysAt<Exec>;
  using Vector = typename Arrays::template Vector<double>;

  // One side: weights, potential, bias for the other side's update, the update's result.
  struct Side {
    Vector weights, potential, bias, updated;
    std::int64_t size() const { return static_cast<std::int64_t>(weights.extent(0)); }
  };

 public:
  SinkhornCall(const Exec& exec, const Costs& costs, std::int64_t m, std::int64_t n, const SinkhornOptions& options,
               std::uintptr_t base, std::size_t inner)
      : exec_(exec), costs_(costs), options_(options), arrays_(base) {
    for (const auto& [side, count] : {std::pair(&rows_, m), std::pair(&columns_, n)})
      for (Vector* v : {&side->weights, &side->potential, &side->bias, &side->updated})
        *v = arrays_.template vector<double>(count);
    parts_ = arrays_.template vector<double>(ordered_parts);
    inner_ = arrays_.rest(inner);
  }

  /// Bytes of all arrays, and of what the reductions need in addition.
  std::size_t bytes() const { return arrays_.bytes(); }
  std::size_t inner_bytes() const {
    const auto of = [&](const Side& side, const Side& other) {
      return costs_.log_sum_exp(&side == &columns_, other.bias, 1, side.updated, {}, bytes_of_reduction);
    };
    const std::size_t largest = costs_.largest(rows_.updated, {}, bytes_of_reduction);
    return aligned(std::max({of(rows_, columns_), of(columns_, rows_), largest}));
  }

  template <class A, class B>
  SinkhornResult run(const Call& call, const Operand& of_a, const A& a, const Operand& of_b, const B& b) {
    normalise(call, of_a, a, rows_);
    normalise(call, of_b, b, columns_);
    double epsilon = options_.scaling < 1 ? std::max(options_.epsilon, largest_cost(call)) : options_.epsilon;
    bool is_balanced = false;  // g is what f makes of it at the final ε, so that columns sum up to b
    SinkhornResult result;
    while (true) {
      const bool is_last = result.iterations == options_.iterations;
      if (is_last) epsilon = options_.epsilon;
      const bool takes_both = options_.symmetric || !is_balanced;
      result.error = update(rows_, columns_, epsilon);
      if (takes_both) {
        const double of_columns = update(columns_, rows_, epsilon);
        if (of_columns > result.error || of_columns != of_columns) result.error = of_columns;
      }
      if (epsilon == options_.epsilon) result.converged = result.error <= options_.tolerance;
      if (is_last || result.converged || result.error != result.error) break;
      const double part = options_.symmetric && result.iterations > 0 ? 0.5 : 1;
      take(rows_, part);
      if (!options_.symmetric) update(columns_, rows_, epsilon);
      take(columns_, part);
      is_balanced = !options_.symmetric && epsilon == options_.epsilon;
      ++result.iterations;
      epsilon = std::max(options_.epsilon, epsilon * options_.scaling);
    }
    for (const Side* side : {&rows_, &columns_}) {
      const Vector weights = side->weights, potential = side->potential;
      result.value += sum(
          side->size(), KOKKOS_LAMBDA(const std::int64_t i, std::int64_t) {
            const auto at = static_cast<std::size_t>(i);
            return weights(at) > 0 ? weights(at) * potential(at) : 0.;
          });
    }
    return result;
  }

  template <class F, class G>
  void store(const F& f, const G& g) const {
    store_one(rows_, f);
    store_one(columns_, g);
    exec_.fence("rigel::sinkhorn");
  }

 private:
  template <class Term>
  double sum(std::int64_t count, const Term& term) const {
    return ordered_sums(exec_, "rigel::sinkhorn/sums", count, 1, parts_, term)[0];
  }

  template <class Potential>
  void store_one(const Side& side, const Potential& to) const {
    const Vector from = side.potential;
    for_each_index(
        exec_, "rigel::sinkhorn/potentials", side.size(), KOKKOS_LAMBDA(const std::int64_t i) {
          const auto at = static_cast<std::size_t>(i);
          to(at) = static_cast<typename Potential::value_type>(from(at));
        });
  }

  // The weights as parts of their sum, and potentials of 0.
  template <class Weights>
  void normalise(const Call& call, const Operand& operand, const Weights& given, const Side& side) const {
    const double bad = sum(
        side.size(), KOKKOS_LAMBDA(const std::int64_t i, std::int64_t) {
          const auto weight = static_cast<double>(given(static_cast<std::size_t>(i)));
          return weight >= 0 && weight < std::numeric_limits<double>::infinity() ? 0. : 1.;
        });
    if (bad > 0)
      refuse(call, describe_argument(operand) + " holds " + std::to_string(static_cast<std::int64_t>(bad)) +
                       " numbers that are negative, infinite or NaN, expected weights of 0 or more");
    const double total = sum(
        side.size(), KOKKOS_LAMBDA(const std::int64_t i, std::int64_t) {
          return static_cast<double>(given(static_cast<std::size_t>(i)));
        });
    if (!(total < std::numeric_limits<double>::infinity()))
      refuse(call, describe_argument(operand) + " has an infinite sum, expected a finite one");
    if (!(total > 0)) refuse(call, describe_argument(operand) + " has no weight, expected some above 0");
    const Vector weights = side.weights, potential = side.potential;
    for_each_index(
        exec_, "rigel::sinkhorn/weights", side.size(), KOKKOS_LAMBDA(const std::int64_t i) {
          const auto at = static_cast<std::size_t>(i);
          weights(at) = static_cast<double>(given(at)) / total;
          potential(at) = 0;
        });
  }

  double largest_cost(const Call& call) const {
    costs_.largest(rows_.updated, inner_, run_reduction);
    double largest = 0;
    for (const double cost : to_host(exec_, rows_.updated)) {
      if (!(std::abs(cost) < std::numeric_limits<double>::infinity()))
        refuse(call, "costs are infinite or NaN, expected finite distances of X and Z");
      largest = std::max(largest, cost);
    }
    return largest;
  }

  // updated(i) = −ε·log Σ_j weight(j)·exp((potential(j) − cost(i, j))/ε) over the other side. Returns the error of this side's marginal.
  double update(const Side& side, const Side& other, double epsilon) const {
    set_bias(exec_, other.weights, other.potential, epsilon, other.bias);
    costs_.log_sum_exp(&side == &columns_, other.bias, epsilon, side.updated, inner_, run_reduction);
    const Vector weights = side.weights, potential = side.potential, updated = side.updated;
    return sum(
        side.size(), KOKKOS_LAMBDA(const std::int64_t i, std::int64_t) {
          const auto at = static_cast<std::size_t>(i);
          updated(at) *= -epsilon;
          if (!(weights(at) > 0)) return 0.;
          return weights(at) * math::abs(math::exponential((potential(at) - updated(at)) / epsilon) - 1);
        });
  }

  // Moves the potential to the update, or half of the way.
  void take(const Side& side, double part) const {
    const Vector potential = side.potential, updated = side.updated;
    for_each_index(
        exec_, "rigel::sinkhorn/update", side.size(), KOKKOS_LAMBDA(const std::int64_t i) {
          const auto at = static_cast<std::size_t>(i);
          potential(at) = part == 1 ? updated(at) : potential(at) + part * (updated(at) - potential(at));
        });
  }

  const Exec& exec_;
  const Costs& costs_;
  const SinkhornOptions& options_;
  Arrays arrays_;
  Side rows_, columns_;
  Vector parts_;
  Workspace inner_;
};

inline Call sinkhorn_call(const Execution& execution, const char* function, const SinkhornOptions& options) {
  Call call;
  call.function = function;
  call.execution = execution;
  call.workspace = options.workspace;
  if (!(options.epsilon > 0 && options.epsilon < std::numeric_limits<double>::infinity()))
    refuse(call, "options.epsilon is " + std::to_string(options.epsilon) + ", expected a finite number above 0");
  if (!(options.scaling > 0 && options.scaling <= 1))
    refuse(call, "options.scaling is " + std::to_string(options.scaling) + ", expected a number above 0, and 1 at most");
  if (!(options.tolerance >= 0))
    refuse(call, "options.tolerance is " + std::to_string(options.tolerance) + ", expected 0 or more");
  if (options.iterations < 0)
    refuse(call, "options.iterations is " + std::to_string(options.iterations) + ", expected 0 or more");
  return call;
}

// The matrices of a call: points, weights, potentials.
struct SinkhornOperands {
  Operand x, z, a, b, f, g;
  Operand of_metric = {};  // what the metric reads when it runs, if it is known
  void check(const Call& call) const {
    for (const Operand* o : {&x, &z})
      if (o->batches != 1) refuse(call, describe_argument(*o, " is ") + ", expected a single matrix");
    for (const auto& [o, points] : {std::pair(&a, &x), std::pair(&f, &x), std::pair(&b, &z), std::pair(&g, &z)}) {
      require_extent(call, *o, "numbers", o->rows, points->rows, *points, "the rows of ");
      if (o->rows > 0) require_data(call, *o);
    }
    for (const Operand* written : {&f, &g}) {
      require_distinct(call, *written);
      for (const Operand* read : {&x, &z, &a, &b}) require_disjoint(call, *written, *read);
      if (of_metric.size > 0) require_disjoint(call, *written, of_metric);
    }
    require_disjoint(call, f, g);
  }
};

// A checked call.
template <class Exec, class Costs, class A, class B, class F, class G>
SinkhornResult run_sinkhorn(const Exec& exec, const Call& call, const Costs& costs, const SinkhornOperands& operands,
                            const A& a, const B& b, const F& f, const G& g, const SinkhornOptions& options) {
  require_waiting(call);
  const auto at = [&](std::uintptr_t base, std::size_t inner) {
    return SinkhornCall<Exec, Costs>(exec, costs, operands.a.rows, operands.b.rows, options, base, inner);
  };
  const auto nominal = at(nominal_workspace, 0);
  const std::size_t inner = nominal.inner_bytes();
  const CallMemory memory(
      call.function, call.execution, call.workspace, nominal.bytes() + inner,
      {&operands.x, &operands.z, &operands.a, &operands.b, &operands.f, &operands.g, &operands.of_metric});
  auto placed = at(memory.address(), inner);
  const SinkhornResult result = placed.run(call, operands.a, a, operands.b, b);
  placed.store(f, g);
  return result;
}
template <class Exec, class Costs>
std::size_t sinkhorn_bytes(const Exec& exec, const Costs& costs, std::int64_t m, std::int64_t n,
                           const SinkhornOptions& options) {
  const SinkhornCall<Exec, Costs> call(exec, costs, m, n, options, nominal_workspace, 0);
  return call.bytes() + call.inner_bytes();
}

template <class M>
constexpr void check_symmetric() {
  static_assert(!std::is_base_of_v<metric::kl_divergence, M>,
                "sinkhorn: the metric is symmetric, which kl_divergence is not");
}

}  // namespace detail

/// Bytes of workspace that the same call of sinkhorn() needs.
template <class Exec, class X, class Z, class A, class B, class M, class F, class G>
std::size_t sinkhorn_workspace_size(const Exec& exec, const X& x, const Z& z, const A& a, const B& b, const M& metric,
                                    const F&, const G&, const SinkhornOptions& options) {
  return detail::sinkhorn_bytes(exec, detail::PointCosts(exec, x, z, metric, "sinkhorn", options),
                                static_cast<std::int64_t>(a.extent(0)), static_cast<std::int64_t>(b.extent(0)), options);
}

/// Potentials of the transport plan between points X of weights a and points Z of weights b that has the least cost plus ε times its relative
/// entropy, with C(m,n) = metric(X(m,:), Z(n,:)) and a, b divided by their sums:
///
///     P(m,n) = a(m)·b(n)·exp((f(m) + g(n) − C(m,n)) / ε),      Σ_n P(m,n) = a(m),      Σ_m P(m,n) = b(n)
///
/// by updates f(m) ← −ε·log Σ_n b(n)·exp((g(n) − C(m,n))/ε), and likewise g, each of which is a logsumexp(): costs are computed again for each.
///
/// exec, x, z, metric   as in cdist(): x is M × K, z is N × K, a single matrix each; metric is symmetric, such as squared_euclidean
/// a, b      M and N weights of float or double: 0 or more, not all 0. Points of no weight have potentials, too.
/// f, g      M and N numbers of float or double. They overlap neither each other nor what is read.
/// options   epsilon > 0. Updates begin at the largest cost as ε, which options.scaling multiplies from one to the next, down to epsilon.
///           With options.symmetric (the default) both updates start from the same potentials, and the mean with these is taken: X and Z
///           exchanged give g and f exchanged. Without it one follows the other, which takes fewer of them.
/// The result's error is that of the plan of f and g: the larger of Σ_m |Σ_n P(m,n) − a(m)| and Σ_n |Σ_m P(m,n) − b(n)|. The updates stop
/// when it is at most options.tolerance at epsilon, or after options.iterations. Scores are in float if x holds floats: exponents, and so
/// the marginals, are then off by about 2^-24·(C + |g|)/ε, and tolerances below that are not met.
/// It waits for the space in each update, and refuses a stream that is being captured. Sums have one order on every space.
/// Throws Error(invalid_argument) if extents do not fit, weights are negative, infinite, NaN or all 0, or an option is out of its range; and as
/// logsumexp() does.
template <class Exec, class X, class Z, class A, class B, class M, class F, class G>
SinkhornResult sinkhorn(const Exec& exec, const X& x, const Z& z, const A& a, const B& b, const M& metric, const F& f,
                        const G& g, const SinkhornOptions& options) {
  detail::check_symmetric<M>();
  const Call call = detail::sinkhorn_call(detail::execution_of(exec), "sinkhorn", options);
  const detail::SinkhornOperands operands{detail::operand_of(x, Batch::first, "X"), detail::operand_of(z, Batch::first, "Z"),
                                          detail::weights_operand(a, "a"),          detail::weights_operand(b, "b"),
                                          detail::weights_operand(f, "f"),          detail::weights_operand(g, "g")};
  operands.check(call);
  return detail::run_sinkhorn(exec, call, detail::PointCosts(exec, x, z, metric, "sinkhorn", options), operands, a, b, f, g,
                              options);
}

namespace detail {

// The operands of a call.
struct BarycentreOperands {
  Operand x, z, b, g, v, out;
  Operand of_metric = {};
  void check(const Call& call) const {
    for (const Operand* o : {&b, &g}) {
      require_extent(call, *o, "numbers", o->rows, z.rows, z, "the rows of ");
      if (o->rows > 0) require_data(call, *o);
    }
    for (const Operand* read : {&b, &g, &of_metric})
      if (read->size > 0) require_disjoint(call, out, *read);
  }
};

// A checked call: it makes the bias of b and g, and softmax(bias, workspace, use) is the reduction of it.
template <class Exec, class B, class G, class Softmax>
void run_barycentre(const Exec& exec, const Call& call, const BarycentreOperands& operands, const B& b, const G& g,
                    double epsilon, const Softmax& softmax) {
  ArraysAt<Exec> nominal(nominal_workspace);
  const std::size_t inner = softmax(nominal.template vector<double>(operands.b.rows), Workspace{}, bytes_of_reduction);
  const CallMemory memory(
      call.function, call.execution, call.workspace, nominal.bytes() + inner,
      {&operands.x, &operands.z, &operands.b, &operands.g, &operands.v, &operands.out, &operands.of_metric});
  ArraysAt<Exec> arrays(memory.address());
  const auto bias = arrays.template vector<double>(operands.b.rows);
  set_bias(exec, b, g, epsilon, bias);
  softmax(bias, arrays.rest(inner), run_reduction);
}
template <class Exec, class Softmax>
std::size_t barycentre_bytes(std::int64_t columns, const Softmax& softmax) {
  ArraysAt<Exec> nominal(nominal_workspace);
  const auto bias = nominal.template vector<double>(columns);
  return nominal.bytes() + softmax(bias, Workspace{}, bytes_of_reduction);
}

template <class Exec, class X, class Z, class B, class G, class V, class M, class Out, class Use>
auto with_barycentre(const Exec& exec, const X& x, const Z& z, const B& b, const G& g, const V& v, const M& metric,
                     const Out& out, const SinkhornOptions& options, const Use& use) {
  constexpr bool many = view_t<Out>::rank() == 2;
  const Call call = sinkhorn_call(execution_of(exec), "sinkhorn_barycentre", options);
  const BarycentreOperands operands{operand_of(x, Batch::first, "X"),
                                    operand_of(z, Batch::first, "Z"),
                                    weights_operand(b, "b"),
                                    weights_operand(g, "g"),
                                    result_operand<many>(v, Batch::first, "V"),
                                    result_operand<many>(out, Batch::first, "out")};
  operands.check(call);
  const PointCosts costs(exec, x, z, metric, call.function, options);
  return use(call, operands, [&](const auto& bias, const Workspace& workspace, const auto& use_points) {
    return costs.softmax(v, bias, options.epsilon, out, workspace, use_points);
  });
}

}  // namespace detail

/// The barycentre of V's rows for each row of X by a plan of sinkhorn(): where its points go to, if V is Z,
///
///     out(m,d) = Σ_n P(m,n)·V(n,d) / Σ_n P(m,n)
///
/// exec, x, z, b, g, metric, options   those of sinkhorn(), and what it returned as g
/// v, out    N × D and M × D, or of rank 1, as in softmax_matvec()
/// It is a call of softmax_matvec(), asynchronously on `exec`, and throws as that does.
template <class Exec, class X, class Z, class B, class G, class V, class M, class Out>
void sinkhorn_barycentre(const Exec& exec, const X& x, const Z& z, const B& b, const G& g, const V& v, const M& metric,
                         const Out& out, const SinkhornOptions& options) {
  detail::with_barycentre(exec, x, z, b, g, v, metric, out, options,
                          [&](const Call& call, const detail::BarycentreOperands& operands, const auto& softmax) {
                            detail::run_barycentre(exec, call, operands, b, g, options.epsilon, softmax);
                          });
}
/// Bytes of workspace that the same call of sinkhorn_barycentre() needs.
template <class Exec, class X, class Z, class B, class G, class V, class M, class Out>
std::size_t sinkhorn_barycentre_workspace_size(const Exec& exec, const X& x, const Z& z, const B& b, const G& g, const V& v,
                                               const M& metric, const Out& out, const SinkhornOptions& options) {
  return detail::with_barycentre(exec, x, z, b, g, v, metric, out, options,
                                 [](const Call&, const detail::BarycentreOperands& operands, const auto& softmax) {
                                   return detail::barycentre_bytes<Exec>(operands.b.rows, softmax);
                                 });
}

}  // namespace rigel
