// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel_functions.hpp"
#include "listing.hpp"
#include "reduction.hpp"

#include <rigel/detail/checks.hpp>
#include <rigel/detail/points.hpp>

#include <utility>

namespace rigel::c {
namespace {

// What a function makes of its arguments: the reducer that it chooses and the one for products, which are the larger the nearer rows
// are; 0: the caller's.
struct Choice {
  std::int32_t of_distances = 0, of_products = 0;
  bool takes_kernels = false, takes_epilogues = true, or_equal = false, needs_kernel = false;
};
constexpr Choice callers = {.takes_kernels = true};
constexpr Choice nearest = {RIGEL_SMALLEST, RIGEL_LARGEST, false, false, false};
constexpr Choice assign = {RIGEL_MINIMUM, RIGEL_MAXIMUM, false, false, false};
constexpr Choice counts = {RIGEL_COUNT_BELOW, 0, false, false, true};
constexpr Choice lists = {RIGEL_ALL_BELOW, 0, false, false, true};
constexpr Choice logsumexp = {RIGEL_LOG_SUM_EXP, RIGEL_LOG_SUM_EXP, false, true, false};
constexpr Choice kernel_matvec = {weighted_sum, weighted_sum, true, false, false, true};
constexpr Choice softmax_matvec = {softmax_weighted, softmax_weighted, true, true, false};

const rigel_reduce_distances_args& checked_args(const rigel_reduce_distances_args* given, const Choice& choice,
                                                const char* function) {
  const rigel_reduce_distances_args& args = checked(given, "args");
  require_zero(args.reserved, "args");
  require_zero(args.reserved_flags, "args.reserved_flags");
  const auto refuse_member = [&](const char* what) { refuse(std::string(what) + ", which " + function + " does not take"); };
  if (args.kernel && !choice.takes_kernels) refuse_member("args.kernel is not NULL");
  if (!args.kernel && choice.needs_kernel) refuse("args.kernel is NULL, expected the name of a kernel");
  if (args.epilogue.steps_count != 0 && !choice.takes_epilogues) refuse_member("args.epilogue has steps");
  if (!args.kernel && args.hyperparameters_count != 0)
    refuse("args.hyperparameters_count is " + std::to_string(args.hyperparameters_count) +
           ", expected 0: args.kernel, whose they are, is NULL");
  return args;
}

// The steps that make scores of the sums.
epilogue::Program score_steps(const rigel_reduce_distances_args& args, const Distances& call, Space space) {
  const epilogue::Program last = program_of(args.epilogue, space);
  if (!args.kernel) return epilogue::Program::joined(call.metric.own, last);
  const NamedKernel kernel =
      kernel_of(args.kernel, parameters_of(args.hyperparameters, args.hyperparameters_count, "hyperparameters"));
  return epilogue::Program::joined(steps_of(kernel, call, args.metric), last);
}

// The problem of a call and the pass over its rows, or null, handed to `use`.
template <class Use>
rigel_code with_problem(const char* function, rigel_handle* handle, const rigel_reduce_distances_args* given,
                        const rigel_matrix* x, const rigel_matrix* z, const Outputs& outputs, const Choice& choice,
                        const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_reduce_distances_args& args = checked_args(given, choice, function);
    const Operand of_x = operand_of(x, "X"), of_z = operand_of(z, "Z");
    const std::int64_t batches = outputs.values    ? operand_of(outputs.values, outputs.values_name).batches
                                 : outputs.indices ? operand_of(outputs.indices, outputs.indices_name).batches
                                                   : 1;
    Distances call;
    call.problem = problem_of(h, options_of_scores(args.options, args.reduction), function);
    const MetricName metric{args.metric, parameters_of(args.parameters, args.parameters_count), args.metric_matrix};
    const bool of_doubles = outputs.weights && outputs.weights->type == RIGEL_F64;
    set_scores(call, metric, of_x, of_z, batches, of_doubles);
    set_steps(call, score_steps(args, call, h.execution.space));
    call.problem.may_cancel = flag(args.may_cancel, "args.may_cancel");
    const std::int32_t chosen = call.metric.is_product ? choice.of_products : choice.of_distances;
    if (choice.of_distances != 0 && chosen == 0)
      refuse("metric '" + std::string(args.metric) + "' has products, expected one of distances");
    rigel_reduction reduction = args.reduction;
    if (choice.or_equal) {
      if (flag(reduction.or_equal, "args.reduction.or_equal"))
        refuse("args.reduction.or_equal is 1, expected 0: a radius belongs to its ball");
      reduction.or_equal = 1;
    }
    Reduction p;
    set_reduction(p, h, args.options, reduction, chosen, args.ranges, outputs, function);
    p.set_contraction(call.problem);
    p.semiring_bytes = call.metric.semiring.info->size;
    const Operand& matrix = call.metric.matrix;
    for (const Operand* written : {&p.values, &p.indices})
      if (written->size > 0 && matrix.size > 0) detail::require_disjoint(p, *written, matrix);
    use(h, std::move(p), call.pass());
  });
}

constexpr auto run = [](const rigel_handle&, Reduction p, const detail::RowPass* pass) {
  detail::run_points(std::move(p), pass);
};

// Stores the bytes of workspace that a call needs.
auto store_bytes(std::size_t* bytes) {
  return [=](const rigel_handle&, Reduction p, const detail::RowPass* pass) {
    result(bytes, "bytes") = detail::points_bytes(std::move(p), pass);
  };
}

// Stores the candidates of a call.
auto store_candidates(char** json) {
  return [=](const rigel_handle&, Reduction p, const detail::RowPass* pass) {
    const std::string summary = p.summary();
    result(json, "json") = text_of(json_of(summary, detail::points_candidates(std::move(p), pass)));
  };
}

// Where weighted reductions put their results.
Outputs weighted(const rigel_matrix* v, const rigel_matrix* out) {
  return {.values = out, .indices = nullptr, .values_name = "out", .weights = v};
}

// Adds up the numbers of a column of int64, from the second one on.
struct Scan {
  std::int64_t* offsets;
  std::int64_t stride;
  KOKKOS_FUNCTION void operator()(std::int64_t m, std::int64_t& sum, bool is_final) const {
    sum += m == 0 ? 0 : offsets[m * stride];
    if (is_final) offsets[m * stride] = sum;
  }
};

void scan(const rigel_handle& handle, const Operand& offsets) {
  with_instance(handle, [&](const auto& exec) {
    using Policy = Kokkos::RangePolicy<std::decay_t<decltype(exec)>, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_scan("rigel::reduce_distances/radius_offsets", detail::by_argument(Policy(exec, 0, offsets.rows)),
                          Scan{static_cast<std::int64_t*>(offsets.data), offsets.row_stride});
  });
}

// The places of the counts in the offsets, and the offsets themselves.
struct Offsets {
  Operand all;
  rigel_matrix counts;
};
Offsets offsets_of(const rigel_matrix* given, const rigel_matrix* x) {
  const Operand all = operand_of(given, "offsets"), of_x = operand_of(x, "X");
  if (all.type != Scalar::i64 || all.rows != of_x.rows + 1 || all.columns != 1 || all.batches != 1)
    refuse(detail::describe_argument(all, " is ") + " of " + name(all.type) + ", expected " + std::to_string(of_x.rows + 1) +
           "x1 of i64, one more row than X has");
  if (!all.data) refuse("offsets.data is NULL");
  if (all.row_stride == 0 && all.rows > 1) refuse("offsets.row_stride is 0, expected distinct elements");
  rigel_matrix counts = *given;
  counts.rows = all.rows - 1;
  counts.data = static_cast<std::int64_t*>(all.data) + all.row_stride;
  return {all, counts};
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;
using rigel::Reduction, rigel::detail::RowPass;

rigel_code rigel_reduce_distances(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                  const rigel_matrix* z, const rigel_matrix* values, const rigel_matrix* indices) {
  return with_problem("rigel_reduce_distances", handle, args, x, z, {values, indices}, callers, run);
}

rigel_code rigel_reduce_distances_workspace_size(rigel_handle* handle, const rigel_reduce_distances_args* args,
                                                 const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* values,
                                                 const rigel_matrix* indices, std::size_t* bytes) {
  return with_problem("rigel_reduce_distances_workspace_size", handle, args, x, z, {values, indices}, callers,
                      store_bytes(bytes));
}

rigel_code rigel_explain_reduce_distances(rigel_handle* handle, const rigel_reduce_distances_args* args,
                                          const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* values,
                                          const rigel_matrix* indices, char** json) {
  return with_problem("rigel_explain_reduce_distances", handle, args, x, z, {values, indices}, callers,
                      store_candidates(json));
}

rigel_code rigel_nearest(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                         const rigel_matrix* z, const rigel_matrix* indices, const rigel_matrix* distances) {
  return with_problem("rigel_nearest", handle, args, x, z, {distances, indices, "distances"}, nearest, run);
}

rigel_code rigel_assign(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                        const rigel_matrix* z, const rigel_matrix* indices, const rigel_matrix* distances) {
  return with_problem("rigel_assign", handle, args, x, z, {distances, indices, "distances"}, assign, run);
}

rigel_code rigel_radius_offsets(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                const rigel_matrix* z, const rigel_matrix* offsets) {
  constexpr const char* function = "rigel_radius_offsets";
  Offsets of;
  const rigel_code code = guarded(function, [&] { of = offsets_of(offsets, x); });
  if (code != RIGEL_OK) return code;
  return with_problem(function, handle, args, x, z, {&of.counts, nullptr, "offsets"}, counts,
                      [&](const rigel_handle& h, Reduction p, const RowPass* pass) {
                        rigel::detail::run_offsets(std::move(p), pass);
                        scan(h, of.all);
                      });
}

rigel_code rigel_radius_neighbors(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                  const rigel_matrix* z, const rigel_matrix* indices, const rigel_matrix* distances) {
  return with_problem("rigel_radius_neighbors", handle, args, x, z, {distances, indices, "distances"}, lists, run);
}

rigel_code rigel_logsumexp(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                           const rigel_matrix* z, const rigel_matrix* values) {
  return with_problem("rigel_logsumexp", handle, args, x, z, {values, nullptr}, logsumexp, run);
}

rigel_code rigel_kernel_matvec(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                               const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* out) {
  return with_problem("rigel_kernel_matvec", handle, args, x, z, weighted(v, out), kernel_matvec, run);
}
rigel_code rigel_kernel_matvec_workspace_size(rigel_handle* handle, const rigel_reduce_distances_args* args,
                                              const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* v,
                                              const rigel_matrix* out, std::size_t* bytes) {
  return with_problem("rigel_kernel_matvec_workspace_size", handle, args, x, z, weighted(v, out), kernel_matvec,
                      store_bytes(bytes));
}
rigel_code rigel_explain_kernel_matvec(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                       const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* out, char** json) {
  return with_problem("rigel_explain_kernel_matvec", handle, args, x, z, weighted(v, out), kernel_matvec,
                      store_candidates(json));
}

rigel_code rigel_softmax_matvec(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* out) {
  return with_problem("rigel_softmax_matvec", handle, args, x, z, weighted(v, out), softmax_matvec, run);
}
rigel_code rigel_softmax_matvec_workspace_size(rigel_handle* handle, const rigel_reduce_distances_args* args,
                                               const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* v,
                                               const rigel_matrix* out, std::size_t* bytes) {
  return with_problem("rigel_softmax_matvec_workspace_size", handle, args, x, z, weighted(v, out), softmax_matvec,
                      store_bytes(bytes));
}
rigel_code rigel_explain_softmax_matvec(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                        const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* out, char** json) {
  return with_problem("rigel_explain_softmax_matvec", handle, args, x, z, weighted(v, out), softmax_matvec,
                      store_candidates(json));
}
