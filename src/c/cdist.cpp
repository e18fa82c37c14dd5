// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "listing.hpp"
#include "operands.hpp"
#include "semirings.hpp"

#include <rigel/detail/checks.hpp>
#include <rigel/distance.hpp>

#include <array>
#include <cstring>
#include <optional>

namespace rigel::c {
namespace {

// What a metric makes of a call: its semiring, its last step, and the pass over the rows if it has them prepared.
struct Resolved {
  Semiring semiring;
  epilogue::Program own;
  std::optional<detail::RowPass> pass;
  std::span<const Kernel<Contraction>> kernels;  // that no registry holds
};

// The matrices of a call that decide how its distances are computed.
struct Matrices {
  const char* function;
  const Operand& x;
  const Operand& d;
};

bool is_integer(Scalar type) { return type > Scalar::f64 && type != Scalar::other; }

template <class Element, class M>
Resolved resolved_for(const M& metric, const Matrices& of) {
  if constexpr (detail::may_need_double<M, Element>)
    if (detail::needs_double<Element>(metric, of.function, of.x, of.d, is_integer(of.d.type)))
      return resolved_for<Element>(detail::in_double<Element, M>{metric}, of);
  Resolved r;
  metric.template with<typename detail::rows_of<Element, M>::type>(
      of.x.columns, [&]<class S>(const S& semiring, epilogue::Program own) {
        static_assert(sizeof(S) <= Semiring::capacity);
        r.semiring.info = &semiring_info<S>();
        std::memcpy(r.semiring.object, &semiring, sizeof semiring);
        r.own = own;
        if constexpr (detail::in_library<S>) r.kernels = detail::kernels_in_library<S>();
      });
  if constexpr (detail::PreparesRows<M>)
    r.pass.emplace(detail::RowPass{.centred = M::preparation.centred,
                                   .squared_length = M::preparation.squared_length,
                                   .widened = M::preparation.widened});
  return r;
}

// The element types of a metric.
template <class M>
using elements_of = std::conditional_t<detail::takes_words<M>, word_elements, number_elements>;

template <class... Element, class M>
Resolved resolved(type_list<Element...>, const M& metric, std::string_view name, const Matrices& of) {
  const Scalar element = of.x.type;
  std::optional<Resolved> r;
  ((element == rigel::scalar_of<Element> ? (void)(r = resolved_for<Element>(metric, of)) : (void)0), ...);
  if (r) return *r;
  constexpr std::array types = {rigel::scalar_of<Element>...};
  throw Error(Code::unsupported, "metric '" + std::string(name) + "' of " + rigel::name(element) +
                                     " is not to be had, expected one of " +
                                     listed(types, [](Scalar type) { return rigel::name(type); }));
}

template <class M>
Resolved resolve(std::string_view name, std::span<const rigel_parameter> parameters, const Matrices& of) {
  M metric;
  constexpr bool has_p = std::is_same_v<M, metric::minkowski<>>;
  for (const rigel_parameter& p : parameters) {
    if constexpr (has_p)
      if (std::string_view(p.name) == "p") {
        metric.p = p.value;
        continue;
      }
    throw Error(Code::not_found,
                "metric '" + std::string(name) + "' has no parameter '" + p.name + "', expected " + (has_p ? "p" : "none"));
  }
  return resolved(elements_of<M>{}, metric, name, of);
}

struct Named {
  std::string_view name;
  Resolved (*resolve)(std::string_view, std::span<const rigel_parameter>, const Matrices&);
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
                                Named{"bit_jaccard", resolve<metric::bit_jaccard>}};

Resolved metric_of(const char* name, std::span<const rigel_parameter> parameters, const Matrices& of) {
  if (name)
    for (const Named& one : metrics)
      if (one.name == name) return one.resolve(one.name, parameters, of);
  std::array<std::string_view, metrics.size()> names;
  for (std::size_t i = 0; i < metrics.size(); ++i) names[i] = metrics[i].name;
  refuse_name(name, "metric", names);
}

// The problem of a call and the pass over its rows, or null, handed to `use`.
template <class Use>
rigel_code with_problem(const char* function, rigel_handle* handle, const rigel_cdist_args* given, const rigel_matrix* x,
                        const rigel_matrix* z, const rigel_matrix* d, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_cdist_args& args = checked(given, "args");
    require_zero(args.reserved, "args");
    require_zero(args.reserved_flags, "args.reserved_flags");
    Contraction p = problem_of(h, args.options, function);
    p.a = operand_of(x, "X");
    p.b = operand_of(z, "Z");
    p.c = operand_of(d, "D");
    require_same_type(p.b, p.a);
    std::swap(p.b.rows, p.b.columns);
    std::swap(p.b.row_stride, p.b.column_stride);
    p.b.argument = "transposed Z";
    Resolved metric = metric_of(args.metric, parameters_of(args.parameters, args.parameters_count), {function, p.a, p.c});
    if (flag(args.skip_epilogue, "args.skip_epilogue")) metric.own = {};
    const Scalar value = metric.semiring.info->result;
    if (is_integer(p.c.type) && (!is_integer(value) || !metric.own.empty()))
      throw Error(Code::unsupported, detail::describe_argument(p.c) + " of " + name(p.c.type) +
                                         " cannot hold the floating-point numbers of metric '" + args.metric +
                                         "', expected f16, bf16, f32 or f64" +
                                         (is_integer(value) ? ", or args.skip_epilogue" : ""));
    metric.semiring.set_in(p);
    p.instantiated = metric.kernels;
    const auto program = epilogue::Program::joined(metric.own, program_of(args.epilogue, h.execution.space));
    p.program = &program;
    p.epilogue_object = &program;
    p.may_cancel = flag(args.may_cancel, "args.may_cancel");
    p.batch = p.c.batches;
    p.m = p.c.rows;
    p.n = p.c.columns;
    p.k = p.a.columns;
    use(std::move(p), metric.pass ? &*metric.pass : nullptr);
  });
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;
using rigel::Contraction, rigel::detail::RowPass;

rigel_code rigel_cdist(rigel_handle* handle, const rigel_cdist_args* args, const rigel_matrix* x, const rigel_matrix* z,
                       const rigel_matrix* d) {
  return with_problem("rigel_cdist", handle, args, x, z, d,
                      [](Contraction p, const RowPass* pass) { rigel::detail::run_cdist(std::move(p), pass); });
}

rigel_code rigel_cdist_workspace_size(rigel_handle* handle, const rigel_cdist_args* args, const rigel_matrix* x,
                                      const rigel_matrix* z, const rigel_matrix* d, std::size_t* bytes) {
  return with_problem("rigel_cdist_workspace_size", handle, args, x, z, d, [&](Contraction p, const RowPass* pass) {
    result(bytes, "bytes") = rigel::detail::cdist_bytes(std::move(p), pass);
  });
}

rigel_code rigel_explain_cdist(rigel_handle* handle, const rigel_cdist_args* args, const rigel_matrix* x,
                               const rigel_matrix* z, const rigel_matrix* d, char** json) {
  return with_problem("rigel_explain_cdist", handle, args, x, z, d, [&](Contraction p, const RowPass* pass) {
    const std::string summary = p.summary();
    result(json, "json") = text_of(json_of(summary, rigel::detail::cdist_candidates(std::move(p), pass)));
  });
}
