// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A problem of contract() with the kernel that it gets, for calls that are repeated.
#pragma once

#include <rigel/registry.hpp>

#include <memory>

namespace rigel {

/// A problem, the kernel that it gets, and that kernel's plan. Each run() only takes a workspace and launches: it checks, selects and predicts
/// nothing. Elements of the operands may change between runs; what the problem says may not, nor the numbers of its semiring and epilogue, which
/// the plan may rest on.
///
///     const auto problem = rigel::problem_of(exec, semiring, a, b, c);
///     const rigel::Pinned pinned(problem);
///     for (...) pinned.run();
class Pinned {
 public:
  /// The problem outlives the object. Throws as run(problem) does, for want of memory excepted.
  explicit Pinned(const Contraction& problem);
  /// With a kernel of the caller's choice, such as that of a Candidate, which outlives the object. Throws as run(kernel, problem) does.
  Pinned(const Kernel<Contraction>& kernel, const Contraction& problem);
  /// The same with a kernel that lives as long as this object.
  Pinned(std::shared_ptr<const Kernel<Contraction>> kernel, const Contraction& problem);
  ~Pinned();
  Pinned(Pinned&&) noexcept;
  Pinned& operator=(Pinned&&) noexcept;

  /// The kernel; null of an empty problem, which needs none.
  const Kernel<Contraction>* kernel() const;
  /// What run() needs; the problem's `workspace`, or else the pool, has it.
  WorkspaceSize workspace_size() const;
  /// Enqueues the work. Throws as run() of a kernel does if the space cannot launch from here, or for want of a workspace.
  void run() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rigel
