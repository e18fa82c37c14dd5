// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The solves to the engine: what is checked before anything runs, and the engine's functions for them.
#include <rigel/solve.hpp>

#include "../engine/overlap.hpp"
#include "../engine/run.hpp"
#include "driver.hpp"
#include "refine.hpp"

#include <rigel/card.hpp>
#include <rigel/detail/checks.hpp>

namespace rigel {
namespace {

using detail::describe_argument;
using detail::refuse;

void require_shape(const Solve& p, const Operand& o, std::int64_t rows, std::int64_t columns) {
  if (o.batches == p.batch && o.rows == rows && o.columns == columns) return;
  refuse(p, describe_argument(o, " is ") + ", expected " + (p.batch != 1 ? std::to_string(p.batch) + 'x' : "") +
                std::to_string(rows) + 'x' + std::to_string(columns));
}

// X may be an input itself if that may be overwritten.
void require_apart(const Solve& p, const Operand& written, const Operand& read, bool may_overwrite, const char* option) {
  if (!detail::overlap(written, read)) return;
  if (detail::same_elements(written, read) && may_overwrite) return;
  refuse(p, describe_argument(written) + " overlaps " + describe_argument(read) +
                ", expected distinct elements, or the same view and options." + option);
}

double bytes_of(const Operand& o) {
  return static_cast<double>(o.batches) * static_cast<double>(o.rows) * static_cast<double>(o.columns) *
         static_cast<double>(o.size);
}

}  // namespace

Status Solve::accepts(const KernelInfo& info) {
  for (const Factorisation f : {Factorisation::cholesky, Factorisation::lu, Factorisation::eigen})
    if (info.semiring == name(f)) return {};
  return {Decline::key, "names no factorisation: expected cholesky, lu or eigen"};
}

void Solve::check() const {
  const Solve& p = *this;
  if (a.rows != a.columns) refuse(p, describe_argument(a, " is ") + ", expected a square matrix");
  require_shape(p, a, n, n);
  if (task == Task::factor) {
    require_shape(p, x, n, n);
  } else {
    require_shape(p, b, n, right_sides);
    require_shape(p, x, n, right_sides);
  }
  const bool can_refine = task == Task::solve && element == Scalar::f32;
  if (refine < 0 || (refine > 0 && !can_refine))
    refuse(p, "options.refine is " + std::to_string(refine) + ", expected " +
                  (can_refine ? "0 or more" : "0: cholesky_solve and lu_solve refine solutions of float"));
  const bool eigen = factorisation == Factorisation::eigen;
  if (eigen) require_shape(p, values, n, 1);
  if (infos.data) require_shape(p, infos, 1, 1);
  if (is_empty() || n == 0) return;
  detail::require_data(p, a);
  if (task == Task::factor || right_sides > 0) detail::require_data(p, x);
  if (task == Task::factor) {
    require_apart(p, x, a, overwrite_a, "overwrite_a");
  } else {
    if (right_sides > 0) detail::require_data(p, b);
    require_apart(p, x, b, overwrite_b, "overwrite_b");
    detail::require_disjoint(p, x, a);
    if (overwrite_a) detail::require_disjoint(p, a, b);
  }
  detail::require_distinct(p, x);
  if (overwrite_a) detail::require_distinct(p, a);
  if (eigen) {
    detail::require_data(p, values);
    for (const Operand* other : {&a, &x}) detail::require_disjoint(p, values, *other);
    detail::require_distinct(p, values);
  }
  detail::require_workspace_apart(p, workspace.data, workspace.bytes, {&a, &b, &x, &values, &infos});
  if (!infos.data) return;
  for (const Operand* other : {&a, &b, &x, &values})
    if (other->data) detail::require_disjoint(p, infos, *other);
  detail::require_distinct(p, infos);
}

double Solve::memory_bytes() const { return bytes_of(a) + bytes_of(b) + bytes_of(x) + bytes_of(values); }

Solve Solve::nominal() const {
  Solve q = *this;
  q.batch = 1;
  if (task != Task::factor) q.right_sides = 1;
  const auto place = [&](Operand& o, std::uintptr_t address, std::int64_t columns) {
    o.data = reinterpret_cast<void*>(address);
    o.batches = 1;
    o.columns = columns;
    o.batch_stride = 0;
    o.row_stride = 1;
    o.column_stride = o.rows;
  };
  place(q.a, 1 << 20, q.a.columns);
  place(q.b, 2 << 20, q.right_sides);
  place(q.x, 3 << 20, task == Task::factor ? n : q.right_sides);
  q.execution = detail::nominal(execution);
  q.execution.concurrency = 8;
  return q;
}

std::string Solve::summary() const {
  std::string text = std::string(name(factorisation)) + ' ' + name(element);
  if (batch != 1) text += ", batch " + std::to_string(batch);
  text += ", " + std::to_string(n) + 'x' + std::to_string(n);
  if (task == Task::factor) return text + (factorisation == Factorisation::eigen ? "" : ", factors");
  text += ", " + std::to_string(right_sides) + (right_sides == 1 ? " right side" : " right sides");
  if (refine > 0) text += ", refined " + std::to_string(refine) + (refine == 1 ? " time" : " times");
  return text + (task == Task::substitute ? ", factored" : "");
}

namespace detail {

void require_solved(const Solve& p, const std::int32_t* infos) {
  for (std::int64_t l = 0; l < p.batch; ++l) {
    if (infos[l] == 0) continue;
    const std::string info = std::to_string(infos[l]);
    std::string text = describe_argument(p.a) + ": ";
    if (p.batch != 1)
      text += "matrix " + std::to_string(l) + " of the batch ";
    else
      text += "the matrix ";
    switch (p.factorisation) {
      case Factorisation::cholesky:
        text += p.task == Solve::Task::substitute
                    ? "has no positive, finite element " + info + " (from 1) on its diagonal, expected a Cholesky factor"
                    : "is not positive definite (leading minor of order " + info + "), expected positive definite matrices";
        break;
      case Factorisation::lu:
        text += "is singular or not finite (pivot " + info + ", from 1), expected nonsingular matrices";
        break;
      case Factorisation::eigen: text += "has no eigenvectors that the iteration found, expected finite elements"; break;
    }
    refuse(p, text);
  }
}

KernelInfo solve_info(std::string_view family, std::string_view variant, Factorisation factorisation, Scalar element,
                      Spaces spaces) {
  KernelInfo info;
  info.family = family;
  info.variant = variant;
  info.semiring = name(factorisation);
  info.element = info.accumulator = element;
  info.spaces = spaces;
  info.accumulates = false;
  info.name = info.family + '.' + info.semiring + '.' + name(element);
  if (!variant.empty()) info.name += '.' + info.variant;
  return info;
}

double solve_operations(const Solve& p) {
  const auto n = static_cast<double>(p.n);
  double each = 0;
  if (p.task != Solve::Task::substitute)
    each += n * n * n *
            (p.factorisation == Factorisation::cholesky ? 1. / 3
             : p.factorisation == Factorisation::lu     ? 2. / 3
                                                        : 9);
  if (p.task != Solve::Task::factor) each += 2 * n * n * static_cast<double>(p.right_sides);
  return static_cast<double>(p.batch) * each;
}

WorkspaceSize workspace_of(const Solve& p) { return engine::workspace_of(p); }

std::span<const Kernel<Solve>> keep(std::vector<Kernel<Solve>> kernels) {
  auto& operation = engine::registry_of<Solve>();
  const std::unique_lock lock(operation.mutex);
  return operation.kept.emplace_back(std::move(kernels));
}

}  // namespace detail

namespace {

/// Whether there is a solution to refine. A problem without right sides still sets the infos.
bool refines(const Solve& p) {
  p.check();
  return p.refine > 0 && !p.is_empty() && p.n > 0 && p.right_sides > 0;
}

}  // namespace

// ---- the engine's functions for this operation -----------------------------------------------------------------------

static_assert(Problem<Solve>);
template class Registry<Solve>;

void register_kernel(const Kernel<Solve>& kernel) { engine::register_kernel(kernel); }
Status supports(const Kernel<Solve>& kernel, const Solve& p) { return engine::supports(kernel, engine::Forms(p), {}); }
double predicted_seconds(const Kernel<Solve>& kernel, const Solve& p) { return engine::predicted_seconds(kernel, p); }
const Kernel<Solve>& select(const Solve& p) { return *engine::choose(engine::Forms(p)).kernel; }
std::vector<Candidate<Solve>> candidates(const Solve& p) { return engine::candidates(engine::Forms(p)); }
std::string explain(const Solve& p) { return engine::explain(p); }
void run(const Solve& p) { refines(p) ? detail::run_refined(p) : engine::run(p); }
void run(const Kernel<Solve>& kernel, const Solve& p) {
  if (!refines(p)) return engine::run(kernel, p);
  Solve named = p;
  named.kernel = kernel.info.name;
  detail::run_refined(named);
}
WorkspaceSize workspace_size(const Solve& p) { return refines(p) ? detail::refined_size(p) : engine::workspace_size(p); }

}  // namespace rigel
