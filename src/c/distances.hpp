// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metrics by name, and the contraction that a call of distances is: of cdist() and of kernel matrices.
#pragma once

#include "operands.hpp"
#include "semirings.hpp"

#include <rigel/detail/cdist.hpp>

#include <optional>

namespace rigel::c {

/// A metric as a caller names it.
struct MetricName {
  const char* name;
  std::span<const rigel_parameter> parameters;
  const rigel_matrix* matrix = nullptr;  // what it reads when it runs
};

/// What a metric makes of a call: its semiring, its last step, and the pass over the rows if it has them prepared.
struct Metric {
  Semiring semiring;
  epilogue::Program own;
  std::optional<detail::RowPass> pass;
  std::span<const Kernel<Contraction>> kernels;  // that no registry holds
  Operand matrix = {};                           // that the semiring points to
  Scalar scores = Scalar::other;                 // the type that `kernels` write in place of D's, of scores
  // What a kernel is one of (rigel/kernel_matrix.hpp).
  bool is_product = false, is_cosine = false, is_square = false;
  bool is_symmetric = true;
  std::optional<double> power;  // p of distances that have derivatives, 0 of products
};

/// A call: a contraction, and what it points to.
struct Distances {
  Metric metric;
  epilogue::Program steps;
  Contraction problem;

  Distances() = default;
  Distances(const Distances&) = delete;
  Distances& operator=(const Distances&) = delete;
  const detail::RowPass* pass() const { return metric.pass ? &*metric.pass : nullptr; }
};

/// Sets the matrices of call.problem, which is as problem_of() returns it, its extents and its metric. Throws Error(not_found) for names
/// that it does not know, and Error(unsupported) for elements that the metric does not take.
void set_distances(Distances& call, const MetricName& metric, const Operand& x, const Operand& z, const Operand& d);

/// The same for distances that are reduced and never stored, of `batches` matrices, in the type that scores have: `in_double`, f64 of floats,
/// too.
void set_scores(Distances& call, const MetricName& metric, const Operand& x, const Operand& z, std::int64_t batches,
                bool in_double = false);

/// Sets the steps that make D of the sums.
void set_steps(Distances& call, const epilogue::Program& steps);

}  // namespace rigel::c
