// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "listing.hpp"
#include "reduction.hpp"
#include "semirings.hpp"

#include <rigel/contraction.hpp>

namespace rigel::c {
namespace {

static_assert(RIGEL_MINIMUM == int(Reducer::minimum) + 1 && RIGEL_MAXIMUM == int(Reducer::maximum) + 1 &&
              RIGEL_SMALLEST == int(Reducer::smallest) + 1 && RIGEL_LARGEST == int(Reducer::largest) + 1 &&
              RIGEL_SUM == int(Reducer::sum) + 1 && RIGEL_LOG_SUM_EXP == int(Reducer::log_sum_exp) + 1 &&
              RIGEL_COUNT_BELOW == int(Reducer::count_below) + 1 && RIGEL_ALL_BELOW == int(Reducer::all_below) + 1);

// The type in which the scores of a semiring are kept after an epilogue, as detail::with_score_type() has it.
Scalar score_type(Scalar result, const epilogue::Program& program) {
  switch (result) {
    case Scalar::f16:
    case Scalar::bf16:
    case Scalar::f32: return Scalar::f32;
    case Scalar::f64: return Scalar::f64;
    default: break;
  }
  if (program.size() > program.bit_steps()) return Scalar::f64;
  switch (result) {
    case Scalar::i64:
    case Scalar::u64: return result;
    case Scalar::u32: return Scalar::i64;
    default: return Scalar::i32;
  }
}

// The problem of a call, handed to `use`.
template <class Use>
rigel_code with_problem(const char* function, rigel_handle* handle, const rigel_reduce_args* given, const rigel_matrix* a,
                        const rigel_matrix* b, const Outputs& outputs, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_reduce_args& args = checked(given, "args");
    require_zero(args.reserved, "args");
    require_zero(args.reserved_flags, "args.reserved_flags");
    Reduction p;
    set_reduction(p, h, args.options, args.reduction, 0, args.ranges, outputs, function);
    Contraction scores = problem_of(h, options_of_scores(args.options, args.reduction), function);
    scores.a = operand_of(a, "A");
    scores.b = operand_of(b, "B");
    require_same_type(scores.b, scores.a);
    const Semiring semiring =
        semiring_of(args.semiring, scores.a.type, args.accumulator, parameters_of(args.parameters, args.parameters_count));
    semiring.set_in(scores);
    p.semiring_bytes = semiring.info->size;
    const epilogue::Program program = program_of(args.epilogue, h.execution.space);
    scores.program = &program;
    scores.epilogue_object = &program;
    scores.may_cancel = flag(args.may_cancel, "args.may_cancel");
    const Scalar type = score_type(semiring.info->result, program);
    scores.batch = batches_of(p);
    scores.m = scores.a.rows;
    scores.n = scores.b.columns;
    scores.k = scores.a.columns;
    scores.c = {.type = type, .size = size_of(type), .batches = scores.batch, .rows = scores.m, .columns = scores.n};
    p.set_contraction(std::move(scores));
    use(p);
  });
}

}  // namespace

void set_reduction(Reduction& p, const rigel_handle& handle, const rigel_options& options, const rigel_reduction& given,
                   std::int32_t chosen, const rigel_ranges* ranges, const Outputs& outputs, const char* function) {
  static_cast<Call&>(p) = call_of(handle, options, function);
  if (ranges) {
    if (ranges->device != handle.execution.device)
      refuse("args.ranges are of device " + std::to_string(ranges->device) + ", expected that of the handle, " +
             std::to_string(handle.execution.device) + " (-1: the host)");
    p.ranges = ranges->ranges.table();
  }
  require_zero(given.reserved, "args.reduction.reserved");
  if (chosen != 0) require_zero(given.reducer, "args.reduction.reducer");
  const std::int32_t reducer = chosen != 0 ? chosen : given.reducer;
  if (chosen == 0 && (reducer < RIGEL_MINIMUM || reducer > RIGEL_ALL_BELOW))
    refuse("args.reduction.reducer is " + std::to_string(reducer) + ", expected 1 (RIGEL_MINIMUM) to 8 (RIGEL_ALL_BELOW)");
  p.reducer = static_cast<Reducer>(reducer - 1);
  const auto is = [&](Reducer one, Reducer other) { return p.reducer == one || p.reducer == other; };
  const auto refuse_member = [&](const char* member, const char* taken_by) {
    refuse("args.reduction." + std::string(member) + ", which " + taken_by + " take, of " + name(p.reducer));
  };
  const bool many = is(Reducer::smallest, Reducer::largest), below = is(Reducer::count_below, Reducer::all_below);
  if (!many && given.k != 0) refuse_member("k is not 0", "smallest and largest");
  if (!below && given.threshold != 0) refuse_member("threshold is not 0", "count_below and all_below");
  if (!below && given.or_equal != 0) refuse_member("or_equal is not 0", "count_below and all_below");
  if (p.reducer != Reducer::all_below && given.offsets) refuse_member("offsets are not NULL", "lists");
  if (many) p.count = given.k;
  p.threshold = given.threshold;
  p.or_equal = flag(given.or_equal, "args.reduction.or_equal");
  p.exclude_self = flag(given.exclude_self, "args.reduction.exclude_self");
  p.workspace_limit = given.workspace_limit;
  if (p.reducer == Reducer::all_below) {
    p.offsets = operand_of(given.offsets, "args.reduction.offsets");
    if (p.offsets.columns != 1 || p.offsets.batches != 1)
      refuse("args.reduction.offsets has " + std::to_string(p.offsets.batches) + " batches and " +
             std::to_string(p.offsets.columns) + " columns, expected one of each");
  }
  if (outputs.values) p.values = operand_of(outputs.values, outputs.values_name);
  if (is_weighted(p.reducer)) {
    p.weights = operand_of(outputs.weights, "V");
    p.count = p.weights.columns;
  }
  if (!outputs.indices) return;
  if (p.reducer > Reducer::largest && p.reducer != Reducer::all_below)
    refuse(std::string(outputs.indices_name) + " is not NULL, and " + name(p.reducer) + " finds no places");
  p.indices = operand_of(outputs.indices, outputs.indices_name);
  for (const Operand* o : {&p.values, &p.indices})
    if (o->size > 0 && p.reducer == Reducer::all_below && o->columns != 1)
      refuse(std::string(o->argument) + " has " + std::to_string(o->columns) +
             " columns, expected one: a row for each result");
}

std::int64_t batches_of(const Reduction& p) {
  const Operand& output = p.values.size > 0 ? p.values : p.indices;
  return output.size > 0 ? output.batches : 1;
}

rigel_options options_of_scores(const rigel_options& options, const rigel_reduction& reduction) {
  rigel_options of_scores = options;
  of_scores.kernel = reduction.score_kernel;
  of_scores.workspace = nullptr;
  of_scores.workspace_bytes = 0;
  return of_scores;
}

}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_reduce(rigel_handle* handle, const rigel_reduce_args* args, const rigel_matrix* a, const rigel_matrix* b,
                        const rigel_matrix* values, const rigel_matrix* indices) {
  return with_problem("rigel_reduce", handle, args, a, b, {values, indices},
                      [](const rigel::Reduction& p) { rigel::run(p); });
}

rigel_code rigel_reduce_workspace_size(rigel_handle* handle, const rigel_reduce_args* args, const rigel_matrix* a,
                                       const rigel_matrix* b, const rigel_matrix* values, const rigel_matrix* indices,
                                       std::size_t* bytes) {
  return with_problem("rigel_reduce_workspace_size", handle, args, a, b, {values, indices},
                      [&](const rigel::Reduction& p) { result(bytes, "bytes") = rigel::workspace_size(p).bytes; });
}

rigel_code rigel_explain_reduce(rigel_handle* handle, const rigel_reduce_args* args, const rigel_matrix* a,
                                const rigel_matrix* b, const rigel_matrix* values, const rigel_matrix* indices,
                                char** json) {
  return with_problem("rigel_explain_reduce", handle, args, a, b, {values, indices}, [&](const rigel::Reduction& p) {
    p.check();
    result(json, "json") = text_of(json_of(p.summary(), rigel::candidates(p)));
  });
}
