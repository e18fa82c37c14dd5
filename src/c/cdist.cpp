// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dissimilarities.hpp"
#include "distances.hpp"
#include "listing.hpp"

#include <rigel/detail/checks.hpp>
#include <rigel/distance.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace rigel::c {
namespace {

// The matrices of a call that decide how its distances are computed, and where.
struct Matrices {
  const char* function;
  const Operand& x;
  const Operand& d;
  Space space;
  bool are_scores = false;  // D stands for scores, whose type gives way to that of the kernels
};

bool is_integer(Scalar type) { return type > Scalar::f64 && type != Scalar::other; }

// Sets the kernels into D of a semiring that the library holds none for.
template <class S, class... Value>
void set_kernels(type_list<Value...>, const Matrices& of, Metric& r) {
  constexpr std::array types = {rigel::scalar_of<Value>...};
  const bool fits = std::find(types.begin(), types.end(), of.d.type) != types.end();
  const Scalar type = of.are_scores && !fits ? types.front() : of.d.type;
  ((type == rigel::scalar_of<Value> ? (void)(r.kernels = compiled_kernels<S, Value>(of.space)) : (void)0), ...);
  r.scores = type;
  if (!r.kernels.empty()) return;
  throw Error(Code::unsupported, detail::describe_argument(of.d, " is ") + " of " + rigel::name(of.d.type) + ", expected " +
                                     listed(types, [](Scalar type) { return rigel::name(type); }) + " for this metric");
}

template <class Element, class M>
Metric resolved_for(const M& metric, const Matrices& of) {
  if constexpr (detail::may_need_double<M, Element>)
    if (detail::needs_double<Element>(metric, of.function, of.x, of.d, is_integer(of.d.type)))
      return resolved_for<Element>(detail::in_double<Element, M>{metric}, of);
  Metric r;
  metric.template with<typename detail::rows_of<Element, M>::type>(
      of.x.columns, [&]<class S>(const S& semiring, epilogue::Program own) {
        static_assert(sizeof(S) <= Semiring::capacity);
        r.semiring.info = &semiring_info<S>();
        std::memcpy(r.semiring.object, &semiring, sizeof semiring);
        r.own = own;
        if constexpr (detail::in_library<S>)
          r.kernels = detail::kernels_in_library<S>();
        else if constexpr (!in_zoo<S>)
          set_kernels<S>(results_of<S>{}, of, r);
      });
  if constexpr (detail::PreparesRows<M>)
    r.pass.emplace(detail::RowPass{.centred = M::preparation.centred,
                                   .squared_length = M::preparation.squared_length,
                                   .sums_to_one = M::preparation.sums_to_one,
                                   .transformed = M::preparation.transformed,
                                   .packed = M::preparation.packed,
                                   .roots = M::preparation.roots,
                                   .widened = M::preparation.widened});
  if constexpr (requires { metric.matrix; }) {
    using Number = typename M::template number<Element>;
    if (metric.matrix.type != rigel::scalar_of<Number>)
      refuse(detail::describe_argument(metric.matrix, " is ") + " of " + rigel::name(metric.matrix.type) + ", expected " +
             rigel::name(rigel::scalar_of<Number>));
    if (r.pass)
      r.pass->factor = metric.matrix;
    else
      r.matrix = metric.matrix;
  }
  return r;
}

// Metrics with a matrix.

struct Mahalanobis {
  static constexpr const char* matrix_name = "the factor, K x R";
  static constexpr Preparation preparation = {.transformed = true};
  template <class Element>
  using row = prepared_row<Element>;
  template <class Element>
  using number = row<Element>;
  Operand matrix;
  template <class Row, class Use>
  auto with(std::int64_t k, const Use& use) const {
    return metric::euclidean{}.template with<Row>(k, use);
  }
};

// The numbers of a matrix of one row, as a C++ metric takes them. Only kernels read them.
template <class Number>
auto view_of(const Operand& matrix) {
  return Kokkos::View<const Number*, Kokkos::LayoutStride, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
      static_cast<const Number*>(matrix.data),
      Kokkos::LayoutStride(static_cast<std::size_t>(matrix.columns), static_cast<std::size_t>(matrix.column_stride)));
}
template <class Number>
using view_of_numbers = decltype(view_of<Number>(std::declval<Operand>()));

struct Seuclidean {
  static constexpr const char* matrix_name = "the variances, 1 x K";
  template <class Element>
  using number = accumulator_for<Element>;
  Operand matrix;
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    using Number = number<Element>;
    return metric::seuclidean<view_of_numbers<Number>>{view_of<Number>(matrix)}.template with<Element>(k, use);
  }
};

struct WeightedMinkowski {
  static constexpr const char* matrix_name = "the weights, 1 x K";
  template <class Element>
  using number = accumulator_for<Element>;
  double p;
  Operand matrix;
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    using Number = number<Element>;
    return metric::weighted_minkowski<view_of_numbers<Number>>{p, view_of<Number>(matrix)}.template with<Element>(k, use);
  }
};

template <class M>
constexpr bool has_matrix = requires(M metric) { metric.matrix; };
template <class M>
constexpr bool has_p = requires(M metric) { metric.p; };
template <class M>
constexpr bool has_epsilon = requires(M metric) { metric.epsilon; };

// The matrix that the caller gives for a metric.
template <class M>
void set_matrix([[maybe_unused]] M& metric, const MetricName& given, const Matrices& of) {
  const std::string name = "metric '" + std::string(given.name) + '\'';
  if constexpr (has_matrix<M>) {
    if (!given.matrix) refuse("args.metric_matrix is NULL, expected " + std::string(M::matrix_name) + ", of " + name);
    metric.matrix = operand_of(given.matrix, "args.metric_matrix");
    const std::int64_t rows = detail::PreparesRows<M> ? of.x.columns : 1;
    const bool fits = metric.matrix.rows == rows && (detail::PreparesRows<M> || metric.matrix.columns == of.x.columns);
    if (!fits || metric.matrix.batches != 1)
      refuse(detail::describe_argument(metric.matrix, " is ") + ", expected " + M::matrix_name + ", to match " +
             detail::describe_argument(of.x));
  } else if (given.matrix) {
    refuse("args.metric_matrix is not NULL, which " + name + " does not take");
  }
}

// The element types of a metric: those that src/c has kernels for, if the library has none.
template <class M>
struct elements {
  using type = std::conditional_t<detail::takes_words<M>, word_elements, number_elements>;
};
template <class Measure>
struct elements<metric::bit_boolean<Measure>> {
  using type = type_list<std::uint32_t>;
};
template <class M>
  requires detail::contains<M, type_list<Seuclidean, WeightedMinkowski, metric::minkowski_with_epsilon, metric::haversine,
                                         metric::canberra, metric::braycurtis, metric::kl_divergence>>
struct elements<M> {
  using type = type_list<float, double>;
};
template <class M>
using elements_of = typename elements<M>::type;

template <class... Element, class M>
Metric resolved(type_list<Element...>, const M& metric, std::string_view name, const Matrices& of) {
  const Scalar element = of.x.type;
  std::optional<Metric> r;
  ((element == rigel::scalar_of<Element> ? (void)(r = resolved_for<Element>(metric, of)) : (void)0), ...);
  if (r) return *std::move(r);
  constexpr std::array types = {rigel::scalar_of<Element>...};
  throw Error(Code::unsupported, "metric '" + std::string(name) + "' of " + rigel::name(element) +
                                     " is not to be had, expected one of " +
                                     listed(types, [](Scalar type) { return rigel::name(type); }));
}

// p of the distances that kernel_matrix_gradient() takes, 0 of products.
std::optional<double> power_of(const metric::manhattan&) { return 1; }
std::optional<double> power_of(const metric::euclidean&) { return 2; }
std::optional<double> power_of(const metric::minkowski<>& metric) { return metric.p; }
std::optional<double> power_of(const metric::inner_product&) { return 0; }
template <class M>
std::optional<double> power_of(const M&) {
  return {};
}

template <class M>
Metric resolve(const MetricName& given, const Matrices& of) {
  M metric{};
  if constexpr (has_p<M>) metric.p = 2;
  for (const rigel_parameter& one : given.parameters) {
    const std::string_view name = one.name;
    if constexpr (has_p<M>)
      if (name == "p") {
        metric.p = one.value;
        continue;
      }
    if constexpr (has_epsilon<M>)
      if (name == "epsilon") {
        metric.epsilon = one.value;
        continue;
      }
    throw Error(Code::not_found, "metric '" + std::string(given.name) + "' has no parameter '" + one.name + "', expected " +
                                     (has_epsilon<M> ? "p or epsilon"
                                      : has_p<M>     ? "p"
                                                     : "none"));
  }
  set_matrix(metric, given, of);
  Metric r = resolved(elements_of<M>{}, metric, given.name, of);
  r.is_product = std::is_base_of_v<metric::inner_product, M>;
  r.is_cosine = std::is_base_of_v<metric::cosine, M>;
  r.is_square = std::is_base_of_v<metric::squared_euclidean, M>;
  r.is_symmetric = !std::is_base_of_v<metric::kl_divergence, M>;
  r.power = power_of(metric);
  return r;
}

struct Named {
  std::string_view name;
  Metric (*resolve)(const MetricName&, const Matrices&);
};

constexpr std::array metrics = {Named{"manhattan", resolve<metric::manhattan>},
                                Named{"euclidean", resolve<metric::euclidean>},
                                Named{"squared_euclidean", resolve<metric::squared_euclidean>},
                                Named{"chebyshev", resolve<metric::chebyshev>},
                                Named{"minkowski", resolve<metric::minkowski<>>},
                                Named{"inner_product", resolve<metric::inner_product>},
                                Named{"cosine", resolve<metric::cosine>},
                                Named{"correlation", resolve<metric::correlation>},
                                Named{"hamming", resolve<metric::hamming>},
                                Named{"bit_hamming", resolve<metric::bit_hamming>},
                                Named{"bit_jaccard", resolve<metric::bit_jaccard>},
                                Named{"mahalanobis", resolve<Mahalanobis>},
                                Named{"seuclidean", resolve<Seuclidean>},
                                Named{"weighted_minkowski", resolve<WeightedMinkowski>},
                                Named{"minkowski_with_epsilon", resolve<metric::minkowski_with_epsilon>},
                                Named{"haversine", resolve<metric::haversine>},
                                Named{"canberra", resolve<metric::canberra>},
                                Named{"braycurtis", resolve<metric::braycurtis>},
                                Named{"hellinger", resolve<metric::hellinger>},
                                Named{"jensenshannon", resolve<metric::jensenshannon>},
                                Named{"kl_divergence", resolve<metric::kl_divergence>},
                                Named{"jaccard", resolve<metric::jaccard>},
                                Named{"dice", resolve<metric::dice>},
                                Named{"rogerstanimoto", resolve<metric::rogerstanimoto>},
                                Named{"russellrao", resolve<metric::russellrao>},
                                Named{"sokalsneath", resolve<metric::sokalsneath>},
                                Named{"yule", resolve<metric::yule>},
                                Named{"bit_dice", resolve<metric::bit_dice>},
                                Named{"bit_rogerstanimoto", resolve<metric::bit_rogerstanimoto>},
                                Named{"bit_russellrao", resolve<metric::bit_russellrao>},
                                Named{"bit_sokalsneath", resolve<metric::bit_sokalsneath>},
                                Named{"bit_yule", resolve<metric::bit_yule>}};

Metric metric_of(const MetricName& given, const Matrices& of) {
  if (given.name)
    for (const Named& one : metrics)
      if (one.name == given.name) return one.resolve(given, of);
  std::array<std::string_view, metrics.size()> names;
  for (std::size_t i = 0; i < metrics.size(); ++i) names[i] = metrics[i].name;
  refuse_name(given.name, "metric", names);
}

// The call, handed to `use`.
template <class Use>
rigel_code with_problem(const char* function, rigel_handle* handle, const rigel_cdist_args* given, const rigel_matrix* x,
                        const rigel_matrix* z, const rigel_matrix* d, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_cdist_args& args = checked(given, "args");
    require_zero(args.reserved, "args");
    require_zero(args.reserved_flags, "args.reserved_flags");
    Distances call;
    Contraction& p = call.problem = problem_of(h, args.options, function);
    const MetricName name{args.metric, parameters_of(args.parameters, args.parameters_count), args.metric_matrix};
    set_distances(call, name, operand_of(x, "X"), operand_of(z, "Z"), operand_of(d, "D"));
    epilogue::Program own = call.metric.own;
    if (flag(args.skip_epilogue, "args.skip_epilogue")) own = {};
    const Scalar value = call.metric.semiring.info->result;
    if (is_integer(p.c.type) && (!is_integer(value) || !own.empty()))
      throw Error(Code::unsupported, detail::describe_argument(p.c) + " of " + rigel::name(p.c.type) +
                                         " cannot hold the floating-point numbers of metric '" + args.metric +
                                         "', expected f16, bf16, f32 or f64" +
                                         (is_integer(value) ? ", or args.skip_epilogue" : ""));
    set_steps(call, epilogue::Program::joined(own, program_of(args.epilogue, h.execution.space)));
    p.may_cancel = flag(args.may_cancel, "args.may_cancel");
    use(detail::Cdist{std::move(p), call.metric.pass});
  });
}

}  // namespace

namespace {

void set_matrices(Distances& call, const MetricName& metric, const Operand& x, const Operand& z, const Operand& d,
                  bool are_scores) {
  Contraction& p = call.problem;
  p.a = x;
  p.b = z;
  p.c = d;
  require_same_type(p.b, p.a);
  std::swap(p.b.rows, p.b.columns);
  std::swap(p.b.row_stride, p.b.column_stride);
  p.b.argument = "transposed Z";
  call.metric = metric_of(metric, {p.function, p.a, p.c, p.execution.space, are_scores});
  call.metric.semiring.set_in(p);
  p.instantiated = call.metric.kernels;
  const Operand& matrix = call.metric.matrix;
  if (matrix.columns > 0) {
    detail::require_data(p, matrix);
    detail::require_disjoint(p, p.c, matrix);
  }
  p.batch = p.c.batches;
  p.m = p.c.rows;
  p.n = p.c.columns;
  p.k = p.a.columns;
}

}  // namespace

void set_distances(Distances& call, const MetricName& metric, const Operand& x, const Operand& z, const Operand& d) {
  set_matrices(call, metric, x, z, d, false);
}

void set_scores(Distances& call, const MetricName& metric, const Operand& x, const Operand& z, std::int64_t batches,
                bool in_double) {
  const auto scores = [&](Scalar type) {
    return Operand{.type = type,
                   .size = size_of(type),
                   .batches = batches,
                   .rows = x.rows,
                   .columns = z.rows,
                   .argument = "the scores"};
  };
  const bool of_floats = x.type == Scalar::f16 || x.type == Scalar::bf16 || x.type == Scalar::f32;
  set_matrices(call, metric, x, z, scores(of_floats && !in_double ? Scalar::f32 : Scalar::f64), true);
  if (call.metric.scores != Scalar::other) call.problem.c = scores(call.metric.scores);
}

void set_steps(Distances& call, const epilogue::Program& steps) {
  call.steps = steps;
  call.problem.program = &call.steps;
  call.problem.epilogue_object = &call.steps;
}

}  // namespace rigel::c

using namespace rigel::c;
using rigel::detail::Cdist;

rigel_code rigel_cdist(rigel_handle* handle, const rigel_cdist_args* args, const rigel_matrix* x, const rigel_matrix* z,
                       const rigel_matrix* d) {
  return with_problem("rigel_cdist", handle, args, x, z, d, [](Cdist call) { rigel::detail::run_cdist(std::move(call)); });
}

rigel_code rigel_cdist_workspace_size(rigel_handle* handle, const rigel_cdist_args* args, const rigel_matrix* x,
                                      const rigel_matrix* z, const rigel_matrix* d, std::size_t* bytes) {
  return with_problem("rigel_cdist_workspace_size", handle, args, x, z, d,
                      [&](Cdist call) { result(bytes, "bytes") = rigel::detail::cdist_bytes(std::move(call)); });
}

rigel_code rigel_explain_cdist(rigel_handle* handle, const rigel_cdist_args* args, const rigel_matrix* x,
                               const rigel_matrix* z, const rigel_matrix* d, char** json) {
  return with_problem("rigel_explain_cdist", handle, args, x, z, d, [&](Cdist call) {
    const std::string summary = call.distances.summary();
    result(json, "json") = text_of(json_of(summary, rigel::detail::cdist_candidates(std::move(call))));
  });
}
