// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.hpp"

#include <rigel/pinned.hpp>

namespace rigel {

struct Pinned::State {
  engine::Forms<Contraction> forms;
  const Kernel<Contraction>* kernel = nullptr;
  Plan plan = {};
  KernelOwner owner = {};  // of a kernel of the caller's choice

  explicit State(const Contraction& problem) : forms(problem) {}
  const Contraction& form() const { return forms.of(kernel->info); }
};

Pinned::Pinned(const Contraction& problem) : state_(std::make_unique<State>(problem)) {
  problem.check();
  if (problem.is_empty()) return;
  detail::require_launch(problem.function, problem.execution);
  const engine::Choice<Contraction> choice = engine::choose(state_->forms);
  state_->kernel = choice.kernel;
  state_->plan = choice.plan;
  state_->forms.made().keep_only(choice.kernel);
}

Pinned::Pinned(const Kernel<Contraction>& kernel, const Contraction& problem) : state_(std::make_unique<State>(problem)) {
  problem.check();
  if (problem.is_empty()) return;
  engine::require_covers(kernel, state_->forms);
  detail::require_launch(problem.function, problem.execution);
  state_->kernel = &kernel;
  kernel.cost(kernel, state_->form(), state_->plan);
}

namespace {

const Kernel<Contraction>& required(const KernelOwner& kernel) {
  if (!kernel) throw Error(Code::invalid_argument, "Pinned: the kernel is a null pointer, expected one");
  return *kernel;
}

}  // namespace

Pinned::Pinned(std::shared_ptr<const Kernel<Contraction>> kernel, const Contraction& problem)
    : Pinned(required(kernel), problem) {
  state_->owner = std::move(kernel);
}

Pinned::~Pinned() = default;
Pinned::Pinned(Pinned&&) noexcept = default;
Pinned& Pinned::operator=(Pinned&&) noexcept = default;

const Kernel<Contraction>* Pinned::kernel() const { return state_->kernel; }

WorkspaceSize Pinned::workspace_size() const {
  return state_->kernel ? engine::workspace_of(*state_->kernel, state_->form(), state_->plan) : WorkspaceSize{};
}

void Pinned::run() const {
  if (!state_->kernel) return;
  const Contraction& problem = state_->forms.problem();
  detail::require_launch(problem.function, problem.execution);
  engine::launch(*state_->kernel, state_->form(), state_->plan);
}

}  // namespace rigel
