// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() to the engine: what is checked before anything runs, and the engine's functions for it.
#include <rigel/reduction_problem.hpp>

#include "../engine/overlap.hpp"
#include "../engine/run.hpp"
#include "driver.hpp"

#include <rigel/detail/checks.hpp>
#include <rigel/detail/parts.hpp>
#include <rigel/semiring_info.hpp>

namespace rigel {
namespace {

using detail::describe_argument;
using detail::refuse;

bool is_integer(Scalar type) { return type > Scalar::f64 && type != Scalar::other; }

// The number of bits of an integer type that hold the digits of positive numbers.
int digits_of(Scalar type) {
  const int bits = 8 * static_cast<int>(size_of(type));
  return type == Scalar::u8 || type == Scalar::u32 || type == Scalar::u64 ? bits : bits - 1;
}
bool holds_number(Scalar integer, std::int64_t number) {
  const int digits = digits_of(integer);
  return digits >= 63 || number >> digits == 0;
}
// Whether a type holds all integers up to a number. A floating-point type does up to 2^p, where p is its precision in bits.
bool holds_count(Scalar type, std::int64_t number) {
  switch (type) {
    case Scalar::bf16: return number <= std::int64_t{1} << 8;
    case Scalar::f16: return number <= std::int64_t{1} << 11;
    case Scalar::f32: return number <= std::int64_t{1} << 24;
    case Scalar::f64: return number <= std::int64_t{1} << 53;
    default: return holds_number(type, number);
  }
}

// What an output and all that it must match have in common.
void check_output(const Reduction& p, const Operand& o) {
  detail::require_extent(p, o, "rows", o.rows, p.m, p.a);
  if (o.columns != p.count)
    refuse(p, describe_argument(o, " is ") + ", expected " + std::to_string(p.count) + " columns" +
                  (is_weighted(p.reducer) ? " to match " + describe_argument(p.weights)
                                          : ", one for each of the " + std::to_string(p.count) + ' ' +
                                                (p.reducer == Reducer::histogram ? "bins" : name(p.reducer))));
  if (o.batches != p.batch)
    refuse(p, describe_argument(o, " is ") + ", expected " + std::to_string(p.batch) + " batches to match " +
                  describe_argument(p.scores));
}

// The results of all rows, one after the other, and where each row's begin.
void check_lists(const Reduction& p) {
  if (p.batch != 1)
    refuse(p, std::string("all_below lists the scores of one matrix, ") + describe_argument(p.scores, " have ") +
                  ", expected one batch");
  for (const Operand* written : {&p.values, &p.indices})
    if (written->size > 0 && written->batches != 1)
      refuse(p, describe_argument(*written, " is ") + ", expected one batch: all_below lists the scores of one matrix");
  if (p.offsets.rows != p.m + 1)
    refuse(p, describe_argument(p.offsets, " is ") + ", expected " + std::to_string(p.m + 1) + " rows, one more than " +
                  describe_argument(p.a));
  if (p.offsets.type != Scalar::i64)
    refuse(p, describe_argument(p.offsets) + " of " + name(p.offsets.type) + ", expected i64");
  if (p.values.size > 0 && p.indices.size > 0 && p.values.rows != p.indices.rows)
    refuse(p, describe_argument(p.values, " is ") + ", expected as many rows as " + describe_argument(p.indices));
  if (p.is_empty()) return;
  detail::require_data(p, p.offsets);
  for (const Operand* written : {&p.values, &p.indices})
    if (written->size > 0) detail::require_disjoint(p, *written, p.offsets);
}

// The ends of a histogram's bins.
void check_edges(const Reduction& p) {
  if (p.count < 1 || p.count > Reduction::most)
    refuse(p, describe_argument(p.edges, " is ") + ", expected 2 to " + std::to_string(Reduction::most + 1) + " rows");
  if (p.edges.rows != p.count + 1 || p.edges.type != Scalar::f64)
    refuse(p, describe_argument(p.edges, " is ") + " of " + name(p.edges.type) + ", expected " +
                  std::to_string(p.count + 1) + " numbers of f64");
  if (p.is_empty()) return;
  detail::require_data(p, p.edges);
  for (const Operand* written : {&p.values, &p.indices})
    if (written->size > 0) detail::require_disjoint(p, *written, p.edges);
}

// The matrix whose rows scores weight.
void check_weights(const Reduction& p) {
  const Operand& v = p.weights;
  if (v.columns < 1 || v.columns > Reduction::most_columns)
    refuse(p, describe_argument(v, " is ") + ", expected 1 to " + std::to_string(Reduction::most_columns) + " columns");
  detail::require_extent(p, v, "rows", v.rows, p.n, p.scores, "the columns of ");
  detail::require_batches(p, v, p.scores);
  if (v.type > Scalar::f64) refuse(p, describe_argument(v) + " of " + name(v.type) + ", expected f16, bf16, f32 or f64");
  const Scalar type = p.scores.type;
  if (type != Scalar::f64 && (type != Scalar::f32 || v.type == Scalar::f64))
    refuse(p, std::string("the scores are of ") + name(type) + " and V of " + name(v.type) +
                  ", expected scores of f64, or of f32 if V is no f64");
  if (p.is_empty() || p.n == 0) return;
  detail::require_data(p, v);
  for (const Operand* written : {&p.values, &p.indices})
    if (written->size > 0) detail::require_disjoint(p, *written, v);
}

void check_values(const Reduction& p) {
  const bool integers =
      p.reducer == Reducer::monoid ? p.whole_results : is_integer(p.scores.type) && p.reducer != Reducer::log_sum_exp;
  if (p.reducer == Reducer::count_below || p.reducer == Reducer::histogram) {
    if (!holds_count(p.values.type, p.n))
      refuse(p, describe_argument(p.values) + " of " + name(p.values.type) +
                    ", expected numbers that hold counts up to N = " + std::to_string(p.n));
  } else if (is_integer(p.values.type) && !integers) {
    refuse(p, describe_argument(p.values) + " of " + name(p.values.type) +
                  ", expected f16, bf16, f32 or f64: the results are floating-point numbers");
  }
}

void check_indices(const Reduction& p) {
  if (p.indices.type != Scalar::i32 && p.indices.type != Scalar::i64)
    refuse(p, describe_argument(p.indices) + " of " + name(p.indices.type) + ", expected i32 or i64");
  if (!holds_number(p.indices.type, p.n - 1) && p.n > 0)
    refuse(p, describe_argument(p.indices) + " of i32, expected i64, which holds N - 1 = " + std::to_string(p.n - 1));
}

// An output overlaps neither operand, and not itself.
void require_apart(const Reduction& p, const Operand& written) {
  if (written.rows == 0) return;
  detail::require_data(p, written);
  for (const Operand* read : {&p.a, &p.b})
    if (p.n > 0 && p.k > 0) detail::require_disjoint(p, written, *read);
  detail::require_distinct(p, written);
}

double bytes_of(const Operand& o) {
  const auto distinct = [](std::int64_t extent, std::int64_t stride) {
    return static_cast<double>(stride == 0 ? std::min<std::int64_t>(extent, 1) : extent);
  };
  return distinct(o.batches, o.batch_stride) * distinct(o.rows, o.row_stride) * distinct(o.columns, o.column_stride) *
         static_cast<double>(o.size);
}

}  // namespace

Contraction Reduction::contraction() const {
  Contraction q;
  static_cast<Product&>(q) = *this;
  q.kernel = score_kernel;
  q.workspace = {};
  q.c = scores;
  q.instantiated = score_kernels;
  return q;
}
void Reduction::set_contraction(Contraction q) {
  Call call = *this;
  call.execution = q.execution;
  scores = std::move(q.c);
  scores.argument = "the scores";
  score_kernel = q.kernel;
  score_kernels = q.instantiated;
  static_cast<Product&>(*this) = std::move(q);
  static_cast<Call&>(*this) = call;
}

Reduction::Key Reduction::key() const {
  return {semiring.type, semiring.type ? std::string_view() : semiring.name, element, accumulator};
}
Reduction::Key Reduction::key_of(const KernelInfo& info) {
  return {info.semiring_type, info.semiring_type ? std::string_view() : std::string_view(info.semiring), info.element,
          info.accumulator};
}

void Reduction::check_sources(const epilogue::Program& steps) const {
  const Reduction& p = *this;
  contraction().check_sources(steps);
  if (is_empty() || n == 0) return;
  steps.for_each_source([&](const epilogue::Source& source) {
    const Operand read{.data = const_cast<void*>(source.data),
                       .type = source.type,
                       .size = size_of(source.type),
                       .batches = source.batches,
                       .rows = source.rows,
                       .columns = source.columns,
                       .batch_stride = source.batch_stride,
                       .row_stride = source.row_stride,
                       .column_stride = source.column_stride,
                       .argument = source.argument};
    for (const Operand* written : {&values, &indices})
      if (written->size > 0 && detail::overlap(*written, read))
        refuse(p, describe_argument(*written) + " overlaps the view of " + source.argument +
                      ", which the epilogue reads, expected distinct elements");
  });
}

void Reduction::check() const {
  const Reduction& p = *this;
  detail::check_product(contraction());
  if (is_weighted(reducer))
    check_weights(p);
  else if (reducer == Reducer::histogram)
    check_edges(p);
  else if (count < 1 || count > most)
    refuse(p, std::string(name(reducer)) + "'s k is " + std::to_string(count) + ", expected 1 to " + std::to_string(most));
  if (exclude_self && m != n)
    refuse(p, "options.exclude_self leaves out n = m of " + describe_argument(scores) +
                  ", expected as many rows as columns, of a set with itself");
  if (ranges && (ranges->m != m || ranges->n != n))
    refuse(p, "options.ranges are of " + std::to_string(ranges->m) + 'x' + std::to_string(ranges->n) + " scores, expected " +
                  describe_argument(scores));
  const bool wants_values = values.size > 0, wants_indices = indices.size > 0;
  if (!wants_values && !wants_indices) refuse(p, "no results are wanted, expected values or indices");
  const bool lists = reducer == Reducer::all_below;
  if (lists) check_lists(p);
  if (wants_values) {
    if (!lists) check_output(p, values);
    check_values(p);
  }
  if (wants_indices) {
    if (!lists) check_output(p, indices);
    check_indices(p);
  }
  if (is_empty()) return;
  if (wants_values) require_apart(p, values);
  if (wants_indices) require_apart(p, indices);
  if (wants_values && wants_indices) detail::require_disjoint(p, values, indices);
  detail::require_workspace_apart(p, workspace.data, workspace.bytes,
                                  {&values, &indices, &offsets, &weights, &edges, &a, &b});
  if (program) check_sources(*program);
}

Decline Reduction::admits(const KernelInfo& info) const {
  if (info.precision <= std::max(precision, Precision::accumulator)) return Decline::none;
  const bool is_guarded = info.relative_error > 0 && info.relative_error <= detail::largest_relative_error;
  return precision == Precision::automatic && is_guarded ? Decline::none : Decline::precision;
}
std::string Reduction::why_not(Decline, const KernelInfo& info) const {
  return std::string("rounds terms (precision ") + rigel::name(info.precision) + "), which options.precision does not allow";
}
std::string Reduction::admission(const KernelInfo& info) const {
  return info.precision == Precision::accumulator ? "" : std::string("precision ") + rigel::name(info.precision);
}

double Reduction::memory_bytes() const {
  return bytes_of(a) + bytes_of(b) + bytes_of(values) + bytes_of(indices) + bytes_of(weights);
}

Reduction Reduction::nominal() const {
  Reduction q = *this;
  q.set_contraction(contraction().nominal());
  q.exclude_self = false;  // M is not N
  if (ranges) q.ranges = ranges->nominal.get();
  const auto place = [&](Operand& o, std::uintptr_t address) {
    o.data = reinterpret_cast<void*>(address);
    o.batches = 1;
    o.rows = reducer == Reducer::all_below ? o.rows : q.m;
    o.columns = count;
    o.batch_stride = 0;
    o.row_stride = count;
    o.column_stride = 1;
  };
  if (values.size > 0) place(q.values, 4 << 20);
  if (indices.size > 0) place(q.indices, 5 << 20);
  if (is_weighted(reducer)) {
    place(q.weights, 6 << 20);
    q.weights.rows = q.n;
  }
  return q;
}

std::string Reduction::summary() const {
  const bool keeps_many = reducer == Reducer::smallest || reducer == Reducer::largest;
  return (keeps_many ? std::to_string(count) + ' ' : "") + rigel::name(reducer) + " of " + contraction().summary() +
         (is_weighted(reducer) ? ", " + std::to_string(count) + " columns of " + rigel::name(weights.type) : "") +
         (reducer == Reducer::histogram ? ", " + std::to_string(count) + " bins" : "") +
         (exclude_self ? ", self excluded" : "") + (ranges ? ", " + std::to_string(ranges->pairs) + " pairs in ranges" : "");
}

// ---- the engine's functions for this operation -----------------------------------------------------------------------

static_assert(Problem<Reduction>);
template class Registry<Reduction>;

void register_kernel(const Kernel<Reduction>& kernel) {
  const KernelInfo& info = kernel.info;
  if (!info.semiring.empty() && !info.semiring_type) {
    auto& contractions = engine::registry_of<Contraction>();
    const std::shared_lock lock(contractions.mutex);
    if (contractions.registry.find(Contraction::key_of(info)).empty())
      throw Error(Code::invalid_argument,
                  "register_kernel: '" + info.name + "' names the semiring '" + info.semiring + "' with elements of " +
                      name(info.element) + " and accumulators of " + name(info.accumulator) +
                      ", which is none of Rigel's own; expected semiring_type<S>() as its semiring_type");
  }
  engine::register_kernel(kernel);
}
Status supports(const Kernel<Reduction>& kernel, const Reduction& p) {
  return engine::supports(kernel, engine::Forms(p), {});
}
double predicted_seconds(const Kernel<Reduction>& kernel, const Reduction& p) {
  return engine::predicted_seconds(kernel, p);
}
const Kernel<Reduction>& select(const Reduction& p) { return *engine::choose(engine::Forms(p)).kernel; }
std::vector<Candidate<Reduction>> candidates(const Reduction& p) { return engine::candidates(engine::Forms(p)); }
std::string explain(const Reduction& p) { return engine::explain(p); }
void run(const Reduction& p) { engine::run(p); }
void run(const Kernel<Reduction>& kernel, const Reduction& p) { engine::run(kernel, p); }
WorkspaceSize workspace_size(const Reduction& p) { return engine::workspace_size(p); }

namespace detail {

std::span<const Kernel<Reduction>> keep(std::vector<Kernel<Reduction>> kernels) {
  auto& operation = engine::registry_of<Reduction>();
  const std::unique_lock lock(operation.mutex);
  return operation.kept.emplace_back(std::move(kernels));
}

}  // namespace detail

}  // namespace rigel
