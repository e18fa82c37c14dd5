// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradients to the engine: what is checked before anything runs, and the engine's functions for them.
#include <rigel/gradient_problem.hpp>

#include "../engine/overlap.hpp"
#include "../engine/run.hpp"
#include "driver.hpp"

#include <rigel/card.hpp>
#include <rigel/detail/checks.hpp>
#include <rigel/detail/gradient.hpp>

namespace rigel {
namespace {

using detail::describe_argument;
using detail::refuse;

/// Out in words: "Out 'grad' 2x16x512x1024".
std::string describe_out(const Gradient& p, const char* verb = " ") {
  std::string text = p.out.argument;
  if (!p.out.label.empty()) text += " '" + p.out.label + '\'';
  text += verb;
  if (p.batch != 1) text += std::to_string(p.batch) + 'x';
  return text + std::to_string(p.outputs) + 'x' + std::to_string(p.n) + 'x' + std::to_string(p.m);
}

void require_shape(const Gradient& p, const Operand& o, std::int64_t rows, std::int64_t columns, const char* names) {
  if (o.rows != rows || o.columns != columns)
    refuse(p, describe_argument(o, " is ") + ", expected " + std::to_string(rows) + 'x' + std::to_string(columns) + " (" +
                  names + ") to match " + describe_out(p));
  if (o.batches != p.batch && o.batches != 1)
    refuse(p, describe_argument(o, " is ") + ", expected " + std::to_string(p.batch) + " batches or one to match " +
                  describe_out(p));
}

/// The matrices of all o of one batch, or of all batches of one o, as an operand with three axes.
Operand all_outputs(const Gradient& p, std::int64_t l) {
  Operand o = p.out;
  o.data = static_cast<std::byte*>(o.data) + l * o.batch_stride * static_cast<std::int64_t>(o.size);
  o.batches = p.outputs;
  o.batch_stride = p.outputs == 1 ? 0 : p.out_stride;
  return o;
}

/// Out as an operand with three axes, if batches and outputs can be counted by one index, or if one of them is 1.
bool as_one(const Gradient& p, Operand& o) {
  o = all_outputs(p, 0);
  if (p.batch == 1) return true;
  if (p.outputs == 1) {
    o = p.out;
    return true;
  }
  o.batches = p.batch * p.outputs;
  if (p.out.batch_stride == p.outputs * p.out_stride) return true;
  o.batch_stride = p.out.batch_stride;
  return p.out_stride == p.batch * p.out.batch_stride;
}

/// Out overlaps neither an input nor itself. With four axes of which no two are one, each batch is looked at, and batches must be
/// apart by more than what one of them spans.
void require_distinct_out(const Gradient& p) {
  const Operand* const inputs[] = {&p.a, &p.b, &p.c, &p.d};
  const auto require_apart = [&](const Operand& out) {
    for (const Operand* input : inputs)
      if (detail::overlap(out, *input))
        refuse(p, describe_out(p) + " overlaps " + describe_argument(*input) + ", expected distinct elements");
    detail::require_workspace_apart(p, p.workspace.data, p.workspace.bytes, {&out});
  };
  const auto refuse_itself = [&] {
    refuse(p, describe_out(p) + " overlaps itself (strides " + std::to_string(p.out.batch_stride) + ", " +
                  std::to_string(p.out_stride) + ", " + std::to_string(p.out.row_stride) + ", " +
                  std::to_string(p.out.column_stride) + "), expected distinct elements");
  };
  Operand one;
  if (as_one(p, one)) {
    require_apart(one);
    if (detail::overlaps_itself(one)) refuse_itself();
    return;
  }
  for (std::int64_t l = 0; l < p.batch; ++l) require_apart(all_outputs(p, l));
  if (detail::overlaps_itself(all_outputs(p, 0))) refuse_itself();
  for (std::int64_t l = 1; l < p.batch; ++l)
    if (detail::overlap(all_outputs(p, 0), all_outputs(p, l))) refuse_itself();
}

double bytes_of(const Operand& o) {
  const double batches = o.batch_stride == 0 ? 1 : static_cast<double>(o.batches);
  return batches * static_cast<double>(o.rows) * static_cast<double>(o.columns) * static_cast<double>(o.size);
}

/// The bound of one chain of fma whose terms are as accurate as those of p = 1 and 2, with which other bounds are compared.
constexpr Accuracy chain = detail::gradient_accuracy<gradient_of::euclidean<float>>();

}  // namespace

Status Gradient::accepts(const KernelInfo& info) {
  if (info.semiring.empty() && !info.semiring_type) return {Decline::key, "names no functor"};
  return {};
}

void Gradient::check() const {
  const Gradient& p = *this;
  require_shape(p, a, k, m, "K x M");
  require_shape(p, b, n, k, "N x K");
  require_shape(p, c, outputs, k, "O x K");
  require_shape(p, d, n, m, "N x M");
  if (is_empty()) return;
  if (!out.data) refuse(p, describe_out(p) + " has no data");
  detail::require_data(p, d);
  if (k > 0)
    for (const Operand* input : {&a, &b, &c}) detail::require_data(p, *input);
  require_distinct_out(p);
  detail::require_workspace_apart(p, workspace.data, workspace.bytes, {&a, &b, &c, &d});
}

Decline Gradient::admits(const KernelInfo& info) const {
  const bool automatic = precision == Precision::automatic;
  const Precision least = automatic ? Precision::exact_products : std::max(precision, Precision::accumulator);
  if (info.precision <= least || (automatic && info.accuracy.of(k) <= chain.of(k))) return Decline::none;
  return Decline::precision;
}

std::string Gradient::why_not(Decline, const KernelInfo& info) const {
  const std::string rounds = std::string("rounds terms: precision ") + name(info.precision) + ", ";
  if (precision != Precision::automatic) return rounds + "the call accepts " + name(precision);
  return rounds + "its bound of " + engine::units(info.accuracy.of(k)) + " is larger than the " +
         engine::units(chain.of(k)) + " of one chain";
}

std::string Gradient::admission(const KernelInfo& info) const {
  return info.precision == Precision::accumulator ? "" : std::string("precision ") + name(info.precision);
}

double Gradient::memory_bytes() const {
  return bytes_of(a) + bytes_of(b) + bytes_of(c) + bytes_of(d) +
         bytes_of(out) * static_cast<double>(outputs) * (accumulate ? 2 : 1);
}

Gradient Gradient::nominal() const {
  Gradient q = *this;
  q.batch = 1;
  q.m = 1024;
  const auto place = [](Operand& o, std::uintptr_t address, std::int64_t rows, std::int64_t columns) {
    o.data = reinterpret_cast<void*>(address);
    o.batches = 1;
    o.rows = rows;
    o.columns = columns;
    o.batch_stride = 0;
    o.row_stride = columns;
    o.column_stride = 1;
  };
  place(q.a, 1 << 20, k, q.m);
  place(q.b, 2 << 20, n, k);
  place(q.c, 3 << 20, outputs, k);
  place(q.d, 4 << 20, n, q.m);
  place(q.out, 5 << 20, n, q.m);
  q.out_stride = n * q.m;
  q.execution = detail::nominal(execution);
  q.execution.concurrency = 8;
  return q;
}

std::string Gradient::summary() const {
  std::string text = std::string(functor.name) + ' ' + name(element);
  if (batch != 1) text += ", batch " + std::to_string(batch);
  return text + ", " + std::to_string(outputs) + 'x' + std::to_string(n) + 'x' + std::to_string(m) + ", k " +
         std::to_string(k) + (may_cancel ? ", may cancel" : "");
}

namespace detail {

std::string listing(const Gradient& p) { return engine::listing(p); }
std::size_t workspace_of(const Gradient& p) { return engine::workspace_of(p).bytes; }

std::span<const Kernel<Gradient>> keep(std::vector<Kernel<Gradient>> kernels) {
  auto& operation = engine::registry_of<Gradient>();
  const std::unique_lock lock(operation.mutex);
  return operation.kept.emplace_back(std::move(kernels));
}

}  // namespace detail

// ---- the engine's functions for this operation -----------------------------------------------------------------------

static_assert(Problem<Gradient>);
template class Registry<Gradient>;

void register_kernel(const Kernel<Gradient>& kernel) { engine::register_kernel(kernel); }
Status supports(const Kernel<Gradient>& kernel, const Gradient& p) { return engine::supports(kernel, engine::Forms(p), {}); }
double predicted_seconds(const Kernel<Gradient>& kernel, const Gradient& p) { return engine::predicted_seconds(kernel, p); }
const Kernel<Gradient>& select(const Gradient& p) { return *engine::choose(engine::Forms(p)).kernel; }
std::vector<Candidate<Gradient>> candidates(const Gradient& p) { return engine::candidates(engine::Forms(p)); }
std::string explain(const Gradient& p) { return engine::explain(p); }
void run(const Gradient& p) { engine::run(p); }
void run(const Kernel<Gradient>& kernel, const Gradient& p) { engine::run(kernel, p); }
WorkspaceSize workspace_size(const Gradient& p) { return engine::workspace_size(p); }

}  // namespace rigel
