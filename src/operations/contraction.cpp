// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract() to the engine: what is checked before anything runs, what the call's options admit, and the engine's functions for it.
#include "../engine/overlap.hpp"
#include "../engine/run.hpp"
#include "chosen.hpp"
#include "driver.hpp"

#include <rigel/card.hpp>
#include <rigel/detail/checks.hpp>
#include <rigel/detail/keep.hpp>
#include <rigel/detail/parts.hpp>
#include <rigel/semiring_info.hpp>

namespace rigel {
namespace {

bool is_integer(Scalar type) { return type > Scalar::f64 && type != Scalar::other; }

// Compiled kernels write floating-point numbers if the results are such. What an epilogue makes of integers may also be rounded to
// i8, u8 and i32.
void require_held(const Contraction& p) {
  if (!p.program) return;
  for (int i = 0; i < p.program->size(); ++i)
    if ((*p.program)[i].kind == epilogue::Kind::parity && (i > 0 || !is_integer(p.accumulator)))
      detail::refuse(
          p, "the epilogue's step " + std::to_string(i + 1) + " is parity(), expected as the first one, of integers");
  const bool of_integers = is_integer(p.accumulator), integers = of_integers && p.program->size() == p.program->bit_steps();
  const bool rounds = of_integers && (p.c.type == Scalar::i8 || p.c.type == Scalar::u8 || p.c.type == Scalar::i32);
  if (p.instantiated.empty() && is_integer(p.c.type) && !integers && !rounds)
    throw Error(
        Code::unsupported,
        std::string(p.function) + ": " + detail::describe_argument(p.c) + " of " + name(p.c.type) +
            ", expected f16, bf16, f32 or f64 for results that are floating-point numbers, as those of integers are "
            "behind an epilogue of the closed set, but for one any_bit() or parity(); or i8, u8 or i32, to which these "
            "are rounded");
}

void require_indices_fit(const Contraction& p) {
  const Operand& i = *p.indices;
  if (i.batches != p.batch || i.rows != p.m || i.columns != p.n)
    detail::refuse(p, detail::describe_argument(i, " is ") + ", expected the extents of " + detail::describe_argument(p.c));
  const int value_bits = 8 * static_cast<int>(i.size) - 1;
  if (value_bits < 63 && (p.k - 1) >> value_bits > 0)
    detail::refuse(p, detail::describe_argument(i) + " of integers of " + std::to_string(8 * i.size) +
                          " bits, expected such that hold K - 1 = " + std::to_string(p.k - 1));
}

bool has_layout(const Operand& o, const OperandNeeds& needs) {
  const bool by_rows = o.column_stride == 1 || o.columns <= 1, by_columns = o.row_stride == 1 || o.rows <= 1;
  const bool fits = needs.layout == Layout::any          ? true
                    : needs.layout == Layout::contiguous ? by_rows || by_columns
                    : needs.layout == Layout::row_major  ? by_rows
                                                         : by_columns;
  if (!fits || needs.alignment == 1) return fits;
  // One row or one column has both layouts: the one that is asked for counts.
  const bool rows = needs.layout == Layout::row_major || (needs.layout != Layout::column_major && by_rows);
  const auto aligned = [&](std::int64_t count) { return count % needs.alignment == 0; };
  const auto apart = [&](std::int64_t extent, std::int64_t stride) { return extent <= 1 || aligned(stride); };
  return reinterpret_cast<std::uintptr_t>(o.data) % (o.size * static_cast<std::size_t>(needs.alignment)) == 0 &&
         apart(o.batches, o.batch_stride) && (rows ? apart(o.rows, o.row_stride) : apart(o.columns, o.column_stride)) &&
         aligned(rows ? o.columns : o.rows);
}

// The a-priori bound of one chain of additions (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1),
// two roundings in the product.
constexpr Accuracy chain = {2, 1};

// Whether the semiring's own sums round so, as far as is known: minima, for example, do not.
bool sums_round(const KernelInfo& info) { return info.facts && !info.facts->exact && !info.facts->selective; }

enum class Admission { no, as_defined, by_option, by_bound, by_relative_error };

// Whether options.precision admits a kernel, and by which rule.
Admission admission_of(const KernelInfo& info, const Contraction& p) {
  if (info.precision == Precision::accumulator)
    return info.truncates && p.precision == Precision::rounded ? Admission::no : Admission::as_defined;
  if (p.precision != Precision::automatic) return info.precision <= p.precision ? Admission::by_option : Admission::no;
  if (sums_round(info) && info.accuracy.of(p.k) <= chain.of(p.k) && info.accuracy.of(p.k) > 0) return Admission::by_bound;
  // What C held before may cancel with a result.
  if (p.accumulator == Scalar::f32 && !p.accumulate && info.relative_error > 0 &&
      info.relative_error <= detail::largest_relative_error)
    return Admission::by_relative_error;
  return Admission::no;
}

std::string rounding_of(const KernelInfo& info) {
  return std::string("rounds terms (precision ") + name(info.precision) + ')';
}

}  // namespace

Contraction::Key Contraction::key() const {
  return {semiring.type, semiring.type ? std::string_view() : semiring.name, element, accumulator};
}
Contraction::Key Contraction::key_of(const KernelInfo& info) {
  return {info.semiring_type, info.semiring_type ? std::string_view() : info.semiring, info.element, info.accumulator};
}
Status Contraction::accepts(const KernelInfo& info) {
  if (info.semiring.empty()) return {Decline::key, "names no semiring"};
  if (info.transposes != Transposes::no && !(info.facts && info.facts->commutative))
    return {Decline::key, "transposes, but its semiring does not say that it commutes"};
  return {};
}

void detail::check_product(const Contraction& p) {
  require_extent(p, p.b, "rows", p.b.rows, p.k, p.a);
  require_extent(p, p.c, "rows", p.c.rows, p.a.rows, p.a);
  require_extent(p, p.c, "columns", p.c.columns, p.b.columns, p.b);
  require_batches(p, p.a, p.c);
  require_batches(p, p.b, p.c);
  require_held(p);
  if (p.indices) require_indices_fit(p);
  if (p.program) p.check_sources(*p.program);
  if (p.is_empty() || p.k == 0) return;
  require_data(p, p.a);
  require_data(p, p.b);
}

void Contraction::check() const {
  const Contraction& p = *this;
  detail::check_product(p);
  if (is_empty()) return;
  detail::require_data(p, c);
  detail::require_disjoint(p, c, a);
  detail::require_disjoint(p, c, b);
  detail::require_distinct(p, c);
  detail::require_workspace_apart(p, workspace.data, workspace.bytes, {&a, &b, &c, indices});
  if (!indices) return;
  detail::require_data(p, *indices);
  for (const Operand* other : {&a, &b, &c}) detail::require_disjoint(p, *indices, *other);
  detail::require_distinct(p, *indices);
}

void Contraction::check_sources(const epilogue::Program& steps) const {
  const Contraction& p = *this;
  for (int i = 0; i < steps.size(); ++i)
    for (const int from : {int{steps[i].x_from}, int{steps[i].y_from}}) {
      if (from < 0) continue;
      const epilogue::Source& source = steps.source(from);
      Operand o{.data = const_cast<void*>(source.data),
                .type = source.type,
                .size = size_of(source.type),
                .batches = source.batches,
                .rows = source.rows,
                .columns = source.columns,
                .batch_stride = source.batch_stride,
                .row_stride = source.row_stride,
                .column_stride = source.column_stride,
                .argument = source.argument};
      const std::string step =
          std::string("the view of ") + source.argument + ", step " + std::to_string(i + 1) + " of the epilogue, ";
      const auto text = [](std::int64_t l, std::int64_t m, std::int64_t n) {
        return std::to_string(l) + " x " + std::to_string(m) + " x " + std::to_string(n);
      };
      const auto fits = [](std::int64_t extent, std::int64_t of_c) { return extent == 1 || extent == of_c; };
      if (!fits(o.batches, batch) || !fits(o.rows, m) || !fits(o.columns, n))
        detail::refuse(p, step + "has extents " + text(o.batches, o.rows, o.columns) +
                              " (batches, rows, columns), expected " +
                              text(o.batches == 1 ? 1 : batch, o.rows == 1 ? 1 : m, o.columns == 1 ? 1 : n) + " to match " +
                              detail::describe_argument(c));
      if (is_empty()) continue;
      if (!o.data) detail::refuse(p, step + "has no data");
      if ((source.spaces & bit(execution.space)) == 0)
        detail::refuse(p, step + "is not in memory that the execution space " + name(execution.space) + " can access");
      if (detail::overlap(c, o) && !detail::same_elements(c, o))
        detail::refuse(p,
                       step + "overlaps " + detail::describe_argument(c) + ", expected distinct elements, or the same view");
      if (indices && detail::overlap(*indices, o))
        detail::refuse(p, step + "overlaps " + detail::describe_argument(*indices) + ", expected distinct elements");
    }
}

Decline Contraction::admits(const KernelInfo& info) const {
  if (accumulate && !info.accumulates) return Decline::accumulate;
  if (admission_of(info, *this) == Admission::no) return Decline::precision;
  const Operand* const operands[] = {&a, &b, &c};
  for (std::size_t i = 0; i < std::size(operands); ++i)
    if (!has_layout(*operands[i], info.operands[i])) return Decline::layout;
  return Decline::none;
}

std::string Contraction::why_not(Decline why, const KernelInfo& info) const {
  switch (why) {
    case Decline::accumulate: return "no value of C can be continued, so accumulate is not defined";
    case Decline::precision:
      if (info.precision == Precision::accumulator) return "truncates sums, which options.precision rounded does not allow";
      if (precision != Precision::automatic) return rounding_of(info) + ", which options.precision does not allow";
      if (!sums_round(info) || info.accuracy.of(k) <= chain.of(k))
        return rounding_of(info) +
               ", and no bound shows that one chain rounds as much, so options.precision automatic does not allow it";
      return rounding_of(info) + ", and its bound of " + engine::units(info.accuracy.of(k)) + " is above the " +
             engine::units(chain.of(k)) + " of one chain, so options.precision automatic does not allow it";
    case Decline::layout: {
      const Operand* const operands[] = {&a, &b, &c};
      for (std::size_t i = 0; i < std::size(operands); ++i) {
        const OperandNeeds needs = info.operands[i];
        if (!has_layout(*operands[i], needs))
          return std::string("needs ") + (of_transpose ? "the transpose of " : "") + operands[i]->argument + " of layout " +
                 name(needs.layout) +
                 (needs.alignment > 1
                      ? ", its address and extents multiples of " + std::to_string(needs.alignment) + " elements"
                      : "");
      }
      return {};
    }
    default: return {};
  }
}

std::string Contraction::admission(const KernelInfo& info) const {
  switch (admission_of(info, *this)) {
    case Admission::by_option: return rounding_of(info) + ", as options.precision allows";
    case Admission::by_bound:
      return rounding_of(info) + ", but its bound of " + engine::units(info.accuracy.of(k)) + " is no larger than the " +
             engine::units(chain.of(k)) + " of one chain";
    case Admission::by_relative_error: {
      char text[32];
      std::snprintf(text, sizeof text, "%.2g", info.relative_error);
      return rounding_of(info) + ", but each result is within " + text + " of itself, or as one chain" +
             (may_cancel ? ", unless it cancels, as options.may_cancel allows" : "");
    }
    default: return {};
  }
}

double Contraction::memory_bytes() const {
  const auto bytes = [](const Operand& o) {
    const auto distinct = [](std::int64_t extent, std::int64_t stride) {
      return static_cast<double>(stride == 0 ? std::min<std::int64_t>(extent, 1) : extent);
    };
    return distinct(o.batches, o.batch_stride) * distinct(o.rows, o.row_stride) * distinct(o.columns, o.column_stride) *
           static_cast<double>(o.size);
  };
  return bytes(a) + bytes(b) + bytes(c) * (accumulate ? 2 : 1);
}

Contraction Contraction::nominal() const {
  constexpr std::int64_t rows = 1024;
  constexpr int threads = 8;
  const auto place = [](Operand& o, std::uintptr_t address, std::int64_t of_rows, std::int64_t columns, bool by_rows) {
    o.data = reinterpret_cast<void*>(address);
    o.batches = 1;
    o.rows = of_rows;
    o.columns = columns;
    o.batch_stride = 0;
    o.row_stride = by_rows ? columns : 1;
    o.column_stride = by_rows ? 1 : of_rows;
  };
  Contraction q = *this;
  q.batch = 1;
  q.m = rows;
  q.indices = nullptr;
  q.of_one_row = true;
  place(q.a, 1 << 20, rows, k, true);
  place(q.b, 2 << 20, k, n, false);
  place(q.c, 3 << 20, rows, n, true);
  q.execution = detail::nominal(execution);
  q.execution.concurrency = threads;
  return q;
}

bool Contraction::is_transposed_for(const KernelInfo& info) const {
  // Nothing here depends on M, unlike the layout of a new C of one row.
  if (c.row_stride != 1 || c.column_stride <= 1 || of_transpose) return false;
  return info.transposes == Transposes::with_same_bits ||
         (info.transposes == Transposes::with_other_bits && !covers(require, Promise::batch_invariant));
}

Contraction::Transposed::Transposed(const Contraction& p)
    : program(p.program ? p.program->transposed() : epilogue::Program{}), problem(p) {
  std::swap(problem.a, problem.b);
  std::swap(problem.m, problem.n);
  std::swap(problem.first.row, problem.first.column);
  for (Operand* o : {&problem.a, &problem.b, &problem.c}) *o = detail::transpose(*o);
  if (p.program) problem.program = &program;
  problem.of_transpose = true;
}

std::string Contraction::summary() const {
  std::string text = std::string(semiring.name) + ' ' + name(element);
  if (batch != 1) text += ", batch " + std::to_string(batch);
  text += ", " + std::to_string(m) + 'x' + std::to_string(n) + 'x' + std::to_string(k);
  return text + (may_cancel ? ", may cancel" : "");
}

// ---- the engine's functions for this operation -----------------------------------------------------------------------

static_assert(Problem<Contraction>);
template class Registry<Contraction>;

void register_kernel(const Kernel<Contraction>& kernel) { engine::register_kernel(kernel); }
Status supports(const Kernel<Contraction>& kernel, const Contraction& p) {
  return engine::supports(kernel, engine::Forms(p), {});
}
double predicted_seconds(const Kernel<Contraction>& kernel, const Contraction& p) {
  return engine::predicted_seconds(kernel, p);
}
const Kernel<Contraction>& select(const Contraction& p) {
  const engine::Forms<Contraction> forms(p);
  const Kernel<Contraction>& kernel = *engine::choose(forms).kernel;
  forms.made().keep_for_ever(&kernel);
  return kernel;
}
std::vector<Candidate<Contraction>> candidates(const Contraction& p) {
  const engine::Forms<Contraction> forms = engine::all_forms(p);
  std::vector<Candidate<Contraction>> list = engine::candidates(forms);
  forms.made().keep_for_ever();
  return list;
}
std::string explain(const Contraction& p) { return engine::explain(p); }
void run(const Contraction& p) { engine::run(p); }
void run(const Kernel<Contraction>& kernel, const Contraction& p) { engine::run(kernel, p); }
WorkspaceSize workspace_size(const Contraction& p) { return engine::workspace_size(p); }

namespace detail {

std::string listing(const Contraction& p) { return engine::listing(p); }
std::string legend(const Contraction& p) { return engine::legend(p); }

std::size_t workspace_of(const Contraction& p) { return engine::workspace_of(p).bytes; }
std::size_t workspace_of(const Kernel<Contraction>& kernel, const Contraction& p) {
  return engine::workspace_of(kernel, p).bytes;
}

Chosen choose(const Contraction& p) {
  if (p.is_empty()) return {};
  const engine::Forms<Contraction> forms(p);
  const engine::Choice<Contraction> choice = engine::choose(forms);
  return {.kernel = forms.made().owner_of(choice.kernel),
          .plan = choice.plan,
          .bytes = engine::workspace_of(*choice.kernel, forms.of(choice.kernel->info), choice.plan).bytes};
}
void run(const Chosen& chosen, const Contraction& p) {
  p.check();
  if (!chosen.kernel) return;
  require_launch(p.function, p.execution);
  const engine::Forms<Contraction> forms(p);
  engine::launch(*chosen.kernel, forms.of(chosen.kernel->info), chosen.plan);
}

PartNeeds needs_of_part(const Contraction& part) {
  try {
    const engine::Forms<Contraction> forms(part);
    const engine::Choice<Contraction> choice = engine::choose(forms);
    const Contraction& form = forms.of(choice.kernel->info);
    return {.status = {},
            .seconds = engine::at_least_memory(choice.seconds, form),
            .bytes = engine::workspace_of(*choice.kernel, form, choice.plan).bytes};
  } catch (const Error& e) {
    return {.status = {Decline::other, e.what()}};
  }
}

void run_part(const Contraction& part) {
  if (part.is_empty()) return;
  const engine::Forms<Contraction> forms(part);
  const auto bytes = [&](const Kernel<Contraction>& kernel, const Plan& plan) {
    return engine::workspace_of(kernel, forms.of(kernel.info), plan).bytes;
  };
  engine::Choice<Contraction> choice = engine::choose(forms);
  if (bytes(*choice.kernel, choice.plan) > part.workspace.bytes) {
    const auto bit_class = engine::class_for(forms);
    engine::Choice<Contraction> fitting;
    engine::for_each_candidate(forms, [&](const Kernel<Contraction>& kernel) {
      if (!engine::supports(kernel, forms, bit_class)) return;
      Plan plan;
      const double seconds = kernel.cost(kernel, forms.of(kernel.info), plan);
      if (seconds < fitting.seconds && bytes(kernel, plan) <= part.workspace.bytes) fitting = {&kernel, seconds, plan};
    });
    if (fitting.kernel) choice = fitting;  // else launch() says what lacks
  }
  engine::launch(*choice.kernel, forms.of(choice.kernel->info), choice.plan);
}

std::span<const Kernel<Contraction>> keep(std::vector<Kernel<Contraction>> kernels) {
  auto& operation = engine::registry_of<Contraction>();
  const std::unique_lock lock(operation.mutex);
  return operation.kept.emplace_back(std::move(kernels));
}

}  // namespace detail

}  // namespace rigel
