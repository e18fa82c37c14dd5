// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Iterative refinement (J. H. Wilkinson, Rounding Errors in Algebraic Processes, 1963; N. J. Higham, Accuracy and Stability of
// Numerical Algorithms, 2nd ed., chapter 12): x and the rest b − A·x are kept in double, corrections are solutions in float.
// Cholesky's factor is formed once; LU's does not outlive its kernel, so each sweep factorises again.
#include "refine.hpp"

#include "driver.hpp"

#include <rigel/detail/refine.hpp>
#include <rigel/semirings.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <utility>

namespace rigel::detail {
namespace {

constexpr std::uintptr_t nominal_address = workspace_alignment;  // stands in for memory that is aligned as workspaces are

class Refined {
 public:
  explicit Refined(const Solve& p) : p_(p), given_(std::exchange(p_.workspace, {})) {
    p_.refine = 0;
    p_.overwrite_a = false;
    const bool symmetric = p_.factorisation == Factorisation::cholesky;
    pass_.a = p_.a;
    pass_.b = p_.b;
    pass_.x = p_.x;
    pass_.lower = !symmetric || p_.triangle == Triangle::lower;
    pass_.upper = !symmetric || p_.triangle == Triangle::upper;
    launch_ = p_.refinement ? p_.refinement->launch : launch_refinement<compiled_spaces>;
    place(nominal_address);
  }

  WorkspaceSize size() {
    const WorkspaceSize first = workspace_of(first_solve()), next = workspace_of(correction());
    WorkspaceSize all{std::max(first.bytes, next.bytes), std::max(first.host_bytes, next.host_bytes)};
    if (symmetric()) {
      const WorkspaceSize factor = workspace_of(factorisation());
      all = {std::max(all.bytes, factor.bytes), std::max(all.host_bytes, factor.host_bytes)};
    }
    all.bytes = std::max(all.bytes, workspace_of(product()));
    inner_.bytes = all.bytes;
    inner_.host_bytes = all.host_bytes;
    return {own_bytes_ + all.bytes, all.host_bytes};
  }

  void run(int sweeps) {
    const WorkspaceSize needed = size();  // before anything is enqueued: throws if a part has no kernel
    const Kokkos::Profiling::ScopedRegion region("rigel::refine");
    const CallMemory memory(p_.function, p_.execution, given_, needed.bytes, {&p_.a, &p_.b, &p_.x, &p_.infos});
    if (given_.host_data && given_.host_bytes < needed.host_bytes)
      refuse(p_, "the workspace has " + std::to_string(given_.host_bytes) + " bytes in its host part, expected " +
                     std::to_string(needed.host_bytes));
    if (needed.host_bytes > 0 && reinterpret_cast<std::uintptr_t>(given_.host_data) % 64 != 0)
      refuse(p_, "the workspace is not aligned to 64 bytes in its host part");
    const PoolLease host = given_.host_data ? PoolLease() : lease(p_.function, Execution{}, needed.host_bytes);
    inner_.host_data = given_.host_data ? given_.host_data : host.data();
    place(memory.address());
    if (symmetric()) rigel::run(factorisation());
    pass(RefinementPass::Step::negate);
    rigel::run(first_solve());
    pass(RefinementPass::Step::begin);
    for (int sweep = 1; sweep <= sweeps; ++sweep) {
      rigel::run(product());
      pass(RefinementPass::Step::narrow);
      rigel::run(correction());
      pass(sweep < sweeps ? RefinementPass::Step::correct : RefinementPass::Step::finish);
    }
  }

 private:
  bool symmetric() const { return p_.factorisation == Factorisation::cholesky; }

  Solve factorisation() const {
    Solve q = p_;
    q.task = Solve::Task::factor;
    q.x = factor_;
    q.b = Operand{.argument = "B"};
    q.right_sides = 0;
    q.overwrite_b = false;
    q.workspace = inner_;
    return q;
  }
  // Of A itself, or of its factor; a factor that is NaN gives NaN.
  Solve first_solve() const {
    Solve q = p_;
    if (symmetric()) {
      q.task = Solve::Task::substitute;
      q.a = factor_;
      q.infos = Operand{.argument = "info"};
    }
    q.x = pass_.correction;
    q.overwrite_b = false;
    q.workspace = inner_;
    return q;
  }
  Solve correction() const {
    Solve q = first_solve();
    q.b = q.x;
    q.infos = Operand{.argument = "info"};
    q.overwrite_b = true;
    return q;
  }
  // The rest, b before: b − A·x.
  Contraction product() const {
    static const plus_times<double> semiring;
    static const epilogue::Program none;
    Contraction c;
    c.function = p_.function;
    c.execution = p_.execution;
    c.require = p_.require;
    c.workspace = inner_;
    c.semiring = {semiring_name<plus_times<double>>(), semiring_type<plus_times<double>>()};
    c.element = c.accumulator = Scalar::f64;
    c.semiring_object = &semiring;
    c.program = &none;
    c.epilogue_object = &none;
    c.a = pass_.negated;
    c.b = pass_.sum;
    c.c = pass_.rest;
    c.batch = p_.batch;
    c.m = c.k = p_.n;
    c.n = p_.right_sides;
    c.accumulate = true;
    if (p_.refinement) c.instantiated = p_.refinement->products;
    return c;
  }

  void pass(RefinementPass::Step step) {
    pass_.step = step;
    launch_(p_.execution, pass_);
  }

  void place(std::uintptr_t base) {
    const Operand floats{.type = Scalar::f32, .size = sizeof(float), .batches = p_.batch},
        doubles{.type = Scalar::f64, .size = sizeof(double), .batches = p_.batch};
    const std::int64_t n = p_.n, m = p_.right_sides, pitch = (n + 31) / 32 * 32;
    const bool by_rows = p_.a.column_stride <= p_.a.row_stride;
    std::uintptr_t next = base;
    if (symmetric()) next = place_matrices(factor_, next, floats, n, n, n, false);
    next = place_matrices(pass_.negated, next, doubles, n, n, pitch, by_rows);
    next = place_matrices(pass_.correction, next, floats, n, m, n, false);
    next = place_matrices(pass_.sum, next, doubles, n, m, n, false);
    next = place_matrices(pass_.rest, next, doubles, n, m, n, false);
    next = place_matrices(pass_.sizes, next, doubles, 1, m, m, true);
    factor_.argument = "L";
    pass_.correction.argument = "the workspace";
    own_bytes_ = next - base;
    inner_.data = reinterpret_cast<void*>(next);
  }

  Solve p_;
  Workspace given_, inner_;
  LaunchRefinement launch_;
  Operand factor_;
  RefinementPass pass_{};
  std::size_t own_bytes_ = 0;
};

}  // namespace

void run_refined(const Solve& p) { Refined(p).run(p.refine); }

WorkspaceSize refined_size(const Solve& p) { return Refined(p).size(); }

}  // namespace rigel::detail
