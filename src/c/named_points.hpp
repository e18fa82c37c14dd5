// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Distances and kernels by name, as iterations over reductions (sinkhorn(), kernel_solve()) ask for them.
#pragma once

#include "kernel_functions.hpp"

#include <rigel/detail/checks.hpp>
#include <rigel/detail/points.hpp>
#include <rigel/detail/reduction_front.hpp>

#include <utility>

namespace rigel::c {

/// A metric by name, a kernel over it or none, and the options of their reductions.
struct NamedPoints {
  Call call;  // function, execution, promises, precision
  MetricName metric;
  const NamedKernel* kernel = nullptr;  // null: distances
  bool may_cancel = false;
  const char* score_kernel = nullptr;
  std::size_t workspace_limit = 0;

  /// What the metric reads when it runs, or nothing.
  Operand of_metric() const { return metric.matrix ? operand_of(metric.matrix, "args.metric_matrix") : Operand{}; }

  /// Hands `use` the reduction of x's rows against z's, and the pass that prepares rows, or null. `weights`: V of weighted reducers.
  template <class Use>
  auto reduce(const Operand& x, const Operand& z, Reducer reducer, const Operand& values, const Operand* weights,
              const epilogue::Program& last, const Workspace& workspace, const Use& use) const {
    Distances scores;
    static_cast<Call&>(scores.problem) = with_kernel(score_kernel, {});
    set_scores(scores, metric, x, z, 1, weights && weights->type == Scalar::f64);
    set_steps(scores, epilogue::Program::joined(steps(scores), last));
    scores.problem.may_cancel = may_cancel;
    Reduction p;
    static_cast<Call&>(p) = with_kernel(nullptr, workspace);
    p.reducer = reducer;
    p.values = values;
    p.workspace_limit = workspace_limit;
    if (weights) {
      p.weights = *weights;
      p.count = weights->columns;
    }
    p.set_contraction(scores.problem);
    p.semiring_bytes = scores.metric.semiring.info->size;
    return use(std::move(p), scores.pass());
  }

  /// Hands `use` the matrix d of x's rows against z's.
  template <class Use>
  auto matrix(const Operand& x, const Operand& z, const Operand& d, const Workspace& workspace, const Use& use) const {
    Distances call_of_matrix;
    static_cast<Call&>(call_of_matrix.problem) = with_kernel(score_kernel, workspace);
    set_distances(call_of_matrix, metric, x, z, d);
    set_steps(call_of_matrix, steps(call_of_matrix));
    call_of_matrix.problem.may_cancel = may_cancel;
    return use(detail::Cdist{call_of_matrix.problem, call_of_matrix.metric.pass});
  }

 private:
  Call with_kernel(const char* name, const Workspace& workspace) const {
    Call c = call;
    c.kernel = name ? name : std::string_view{};
    c.workspace = workspace;
    return c;
  }
  epilogue::Program steps(const Distances& scores) const {
    return kernel ? steps_of(*kernel, scores, metric.name) : scores.metric.own;
  }
};

/// Options of a call whose parts have kernels of their own: options.kernel is NULL.
inline void require_no_kernel(const rigel_options& options) {
  if (options.kernel) refuse("args.options.kernel is not NULL: each part of a call has kernels of its own");
}

/// `given`, or if that is 0 the default.
template <class Number>
Number or_default(Number given, Number otherwise) {
  return given == 0 ? otherwise : given;
}

/// A view of an operand's numbers: of a column, or of a matrix.
template <class T, class Exec>
auto column_of(const Exec&, const Operand& o) {
  return Kokkos::View<T*, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(
      static_cast<T*>(o.data),
      Kokkos::LayoutStride(static_cast<std::size_t>(o.rows), static_cast<std::size_t>(o.row_stride)));
}
template <class T, class Exec>
auto matrix_of(const Exec&, const Operand& o) {
  return Kokkos::View<T**, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(
      static_cast<T*>(o.data),
      Kokkos::LayoutStride(static_cast<std::size_t>(o.rows), static_cast<std::size_t>(o.row_stride),
                           static_cast<std::size_t>(o.columns), static_cast<std::size_t>(o.column_stride)));
}

/// The operand of a single column.
inline Operand column_operand(const rigel_matrix* given, const char* name) {
  const Operand o = operand_of(given, name);
  if (o.columns != 1 || o.batches != 1) refuse(detail::describe_argument(o, " is ") + ", expected a single column");
  return o;
}

}  // namespace rigel::c
