// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a problem: checks it, selects a kernel, gets a workspace, launches, and reports to Kokkos Tools.
#pragma once

#include "select.hpp"

#include <rigel/detail/execution.hpp>
#include <rigel/detail/pool.hpp>
#include <rigel/detail/workspace.hpp>

#include <Kokkos_Core.hpp>

namespace rigel::engine {

/// A profiling region with the kernel's name. Around a raw launch it also reports the kernel itself.
class Report {
 public:
  Report(const char* operation, const KernelInfo& info, const Execution& execution)
      : on_(Kokkos::Tools::profileLibraryLoaded()), raw_(info.raw_launch) {
    if (!on_) return;
    const std::string label = std::string("rigel::") + operation;
    Kokkos::Profiling::pushRegion(label + '[' + info.name + ']');
    if (raw_) Kokkos::Tools::beginParallelFor(label + '/' + info.name, device_id(execution), &id_);
  }
  ~Report() {
    if (!on_) return;
    if (raw_) Kokkos::Tools::endParallelFor(id_);
    Kokkos::Profiling::popRegion();
  }
  Report(const Report&) = delete;

 private:
  static std::uint32_t device_id([[maybe_unused]] const Execution& execution) {
#ifdef KOKKOS_ENABLE_CUDA
    if (execution.space == Space::cuda)
      return Kokkos::Tools::Experimental::device_id(*static_cast<const Kokkos::Cuda*>(execution.instance));
#endif
    return Kokkos::Tools::Experimental::device_id_root<Kokkos::DefaultHostExecutionSpace>();
  }
  bool on_, raw_;
  std::uint64_t id_ = 0;
};

/// The caller's workspace, which must be large enough and aligned; if there is none, a lease from the pool.
class CallWorkspace {
 public:
  CallWorkspace(const Call& call, const KernelInfo& info, WorkspaceSize size) : given_(call.workspace) {
    const auto refuse = [&](const std::string& what) {
      throw Error(Code::invalid_argument, std::string(call.function) + ": the workspace " + what);
    };
    const auto misaligned = [](const void* data, std::uintptr_t to) {
      return data && reinterpret_cast<std::uintptr_t>(data) % to != 0;
    };
    if (given_.data == nullptr) {
      leased_ = detail::lease(call.function, call.execution, size.bytes);
      given_.data = leased_.data();
      given_.bytes = size.bytes;
    } else if (size.bytes > 0 && misaligned(given_.data, detail::workspace_alignment)) {
      refuse("is not aligned to 256 bytes, as kernel '" + info.name + "' needs it");
    } else if (given_.bytes < size.bytes) {
      refuse("has " + std::to_string(given_.bytes) + " bytes, kernel '" + info.name + "' needs " +
             std::to_string(size.bytes));
    }
    if (size.host_bytes == 0) return;
    if (given_.host_data == nullptr) {
      host_leased_ = detail::lease(call.function, Execution{.space = Space::serial}, size.host_bytes);
      given_.host_data = host_leased_.data();
      given_.host_bytes = size.host_bytes;
    } else if (misaligned(given_.host_data, 64)) {
      refuse("is not aligned to 64 bytes in its host part");
    } else if (given_.host_bytes < size.host_bytes) {
      refuse("has " + std::to_string(given_.host_bytes) + " bytes in its host part, kernel '" + info.name + "' needs " +
             std::to_string(size.host_bytes));
    }
  }
  const Workspace& get() const { return given_; }

 private:
  Workspace given_;
  detail::PoolLease leased_, host_leased_;
};

/// Runs a kernel on a problem in its form.
template <Problem P>
void launch(const Kernel<P>& kernel, const P& p, const Plan& plan) {
  const CallWorkspace workspace(p, kernel.info, workspace_of(kernel, p, plan));
  const Report report(P::operation, kernel.info, p.execution);
  kernel.run(kernel, p, plan, workspace.get());
}

template <Problem P>
void run(const P& p) {
  p.check();
  if (p.is_empty()) return;
  detail::require_launch(p.function, p.execution);
  const Forms<P> forms(p);
  const Choice<P> choice = choose(forms);
  launch(*choice.kernel, forms.of(choice.kernel->info), choice.plan);
}

/// Throws Error(unsupported) with the reason if a kernel of the caller's choice does not cover a problem.
template <Problem P>
void require_covers(const Kernel<P>& kernel, const Forms<P>& forms) {
  const P& p = forms.problem();
  if (const Status status = supports(kernel, forms, class_for(forms)); !status)
    throw Error(
        Code::unsupported,
        std::string(p.function) + ": kernel '" + kernel.info.name + "' does not cover " + summary(p) + ": " + status.reason,
        status.decline);
}

template <Problem P>
void run(const Kernel<P>& kernel, const P& p) {
  p.check();
  if (p.is_empty()) return;
  const Forms<P> forms(p);
  require_covers(kernel, forms);
  detail::require_launch(p.function, p.execution);
  const P& form = forms.of(kernel.info);
  Plan plan;
  kernel.cost(kernel, form, plan);
  launch(kernel, form, plan);
}

template <Problem P>
WorkspaceSize workspace_size(const P& p) {
  p.check();
  if (p.is_empty()) return {};
  return workspace_of(p);
}

}  // namespace rigel::engine
