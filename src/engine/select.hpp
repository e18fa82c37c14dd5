// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selection: which kernel a problem gets. The key must match; under batch_invariant the bit class must too; then the least
// predicted time wins.
#pragma once

#include "providers.hpp"

#include <rigel/card.hpp>
#include <rigel/config.hpp>
#include <rigel/cpu.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace rigel::engine {

/// The bandwidth in bytes per second that no call exceeds: of a GPU its memory's, of a host its caches'.
inline double bandwidth(const Execution& e) {
  return e.space == Space::cuda ? card_of(e).memory_bytes_per_second : cpu_of(e).cache_bytes_per_second;
}

/// What explain() says of the device's profile; empty if there is none.
inline std::string_view profile_of(const Execution& e) {
  if (e.space != Space::cuda) return cpu_of(e).profile;
  return e.card ? e.card->profile : "";
}

/// A bound in words: "186 u".
inline std::string units(double bound) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g u", bound);
  return text;
}

/// The registered kernels of a problem's key, as a copy of the list: the engine asks kernels without the registry's lock,
/// because a user's kernel may call Rigel.
template <Problem P>
class Registered {
 public:
  explicit Registered(const P& p) {
    auto& operation = registry_of<P>();
    const std::shared_lock lock(operation.mutex);
    add(operation.registry.find(p.key()));
    if constexpr (has_generic_key<P>)
      if (p.key() != P::generic_key()) add(operation.registry.find(P::generic_key()));
  }
  Registered(const Registered&) = delete;
  std::span<const Kernel<P>* const> list() const { return list_; }

 private:
  void add(std::span<const Kernel<P>* const> found) {
    const std::size_t size = list_.size();
    if (many_.empty() && size + found.size() <= few_.size()) {
      std::copy(found.begin(), found.end(), few_.begin() + size);
      list_ = std::span(few_).first(size + found.size());
    } else {
      if (many_.empty()) many_.assign(list_.begin(), list_.end());
      many_.insert(many_.end(), found.begin(), found.end());
      list_ = many_;
    }
  }

  std::array<const Kernel<P>*, 64> few_;
  std::vector<const Kernel<P>*> many_;
  std::span<const Kernel<P>* const> list_;
};

template <Problem P>
bool is_registered(std::string_view wanted) {
  auto& operation = registry_of<P>();
  const std::shared_lock lock(operation.mutex);
  for (const auto& kernel : operation.registry.all())
    if (name_matches(kernel->info.name, wanted)) return true;
  return false;
}

/// The first reason why a kernel's info rules it out for a problem of its key, or Decline::none. It forms no message, since
/// nobody reads those of most candidates.
template <Problem P>
Decline declined(const KernelInfo& info, const P& p) {
  if (!name_matches(info.name, p.kernel)) return Decline::name;
  if ((info.spaces & bit(p.execution.space)) == 0) return Decline::space;
  if (p.execution.space == Space::cuda && !runs_on(info, p.execution.compute_capability)) return Decline::architecture;
  if (p.execution.space == Space::cuda && info.shared_memory > p.execution.shared_memory) return Decline::memory;
  if (!covers(info.promises, p.require)) return Decline::promises;
  return p.admits(info);
}

/// That reason in words.
template <Problem P>
std::string reason(Decline why, const KernelInfo& info, const P& p) {
  switch (why) {
    case Decline::key: return "another semiring or other element types";
    case Decline::name: return "not the kernel that was asked for";
    case Decline::space: return std::string("does not run on ") + name(p.execution.space);
    case Decline::architecture:
      return "needs compute capability " + std::to_string(info.min_compute_capability) +
             (info.max_compute_capability ? " to " + std::to_string(info.max_compute_capability) : " or newer");
    case Decline::memory: return "needs " + std::to_string(info.shared_memory) + " bytes of shared memory";
    case Decline::promises: return "promises only " + describe(info.promises);
    default: return p.why_not(why, info);
  }
}

/// A problem as kernels get it: the problem itself, or for some kernels the transposed one.
template <Problem P>
class Forms {
 public:
  explicit Forms(const P& p) : problem_(p) {}
  const P& problem() const { return problem_; }
  const P& of(const KernelInfo&) const { return problem_; }

 private:
  const P& problem_;
};
/// Of contractions, which have transposed problems, and providers of kernels: what these make lives as long as this.
template <>
class Forms<Contraction> {
 public:
  /// Providers make what may cover the problem, as far as a kernel's facts tell.
  explicit Forms(const Contraction& p) : problem_(p) {}
  /// They make what the caller wants.
  Forms(const Contraction& p, KernelPredicate wanted) : problem_(p), wanted_(std::move(wanted)) {}
  const Contraction& problem() const { return problem_; }
  const Contraction& of(const KernelInfo& info) const {
    if (!problem_.is_transposed_for(info)) return problem_;
    if (!transposed_) transposed_.emplace(problem_);
    return transposed_->problem;
  }
  /// What the providers make, asked when it is first needed.
  const Provided& provided() const {
    if (wanted_)
      provided_.ask(problem_, wanted_);
    else
      provided_.ask(problem_, [this](const KernelInfo& info) { return declined(info, of(info)) == Decline::none; });
    return provided_;
  }
  /// What they have made so far.
  Provided& made() const { return provided_; }

 private:
  const Contraction& problem_;
  KernelPredicate wanted_;
  mutable Provided provided_;
  mutable std::optional<Contraction::Transposed> transposed_;  // formed for the first kernel that gets it
};

/// Calls visit(kernel) for the registered kernels of the problem's key, for those that came with the problem, then for those of providers.
template <Problem P, class Visit>
void for_each_candidate(const Forms<P>& forms, const Visit& visit) {
  const Registered<P> registered(forms.problem());
  for (const Kernel<P>* kernel : registered.list()) visit(*kernel);
  for (const Kernel<P>& kernel : forms.problem().instantiated) visit(kernel);
  if constexpr (requires { forms.provided(); })
    for (const KernelOwner& kernel : forms.provided().kernels()) visit(*kernel);
}

/// Whether a kernel of the problem's key covers the problem, in the kernel's form. Only a kernel's own supports() adds a message.
template <Problem P>
Status status_of(const Kernel<P>& kernel, const P& p) {
  if (const Decline why = declined(kernel.info, p); why != Decline::none) return {why, {}};
  return kernel.supports ? kernel.supports(kernel, p) : Status{};
}

/// The same for any kernel, with a message. `bit_class` is class_for() of the problem.
template <Problem P>
Status supports(const Kernel<P>& kernel, const Forms<P>& forms, std::optional<std::string_view> bit_class) {
  const P& p = forms.of(kernel.info);
  Status status = has_key_of(kernel.info, p) ? status_of(kernel, p) : Status{Decline::key, {}};
  if (!status && status.reason.empty()) status.reason = reason(status.decline, kernel.info, p);
  const std::string_view own = bit_class_of(kernel.info);
  if (status && bit_class && own != *bit_class)
    status = {Decline::bit_class, "bits of class '" + std::string(own) +
                                      (bit_class->empty() ? "', and M would decide which class a batch_invariant call gets"
                                                          : "', batch_invariant calls of this N and K have those of '" +
                                                                std::string(*bit_class) + "'")};
  return status;
}

/// A kernel with its cost and its plan for a problem.
template <Problem P>
struct Choice {
  const Kernel<P>* kernel = nullptr;
  double seconds = std::numeric_limits<double>::infinity();
  Plan plan;
};

/// The kernel with the least predicted time among those of one bit class, or of all, that cover the problem. The earlier one
/// wins a tie.
template <Problem P>
Choice<P> fastest(const Forms<P>& forms, std::optional<std::string_view> bit_class) {
  Choice<P> best;
  for_each_candidate(forms, [&](const Kernel<P>& kernel) {
    if (bit_class && bit_class_of(kernel.info) != *bit_class) return;
    const P& p = forms.of(kernel.info);
    if (!status_of(kernel, p)) return;
    Plan plan;
    const double seconds = kernel.cost(kernel, p, plan);
    if (!best.kernel || seconds < best.seconds) best = {&kernel, seconds, plan};
  });
  return best;
}

/// The bit class that batch_invariant allows, if the problem requires it: the class of the fastest kernel for the nominal
/// problem. If no kernel covers the nominal problem, it is the only class that covers the problem itself. If there is no such
/// class or M would decide among several, it is empty, which no kernel's class is.
template <Problem P>
std::optional<std::string_view> class_for(const Forms<P>& forms) {
  const P& p = forms.problem();
  if (!covers(p.require, Promise::batch_invariant)) return {};
  const P nominal = p.nominal();
  const Forms<P> of_nominal(nominal);
  if (const Kernel<P>* kernel = fastest(of_nominal, {}).kernel) {
    if constexpr (requires { forms.provided(); }) forms.made().keep(of_nominal.made(), kernel);
    return bit_class_of(kernel->info);
  }
  std::optional<std::string_view> only;
  for_each_candidate(forms, [&](const Kernel<P>& kernel) {
    if (!status_of(kernel, forms.of(kernel.info))) return;
    const std::string_view one = bit_class_of(kernel.info);
    only = !only || *only == one ? one : "";
  });
  return only.value_or("");
}

template <Problem P>
double at_least_memory(double seconds, const P& p) {
  return std::max(seconds, p.memory_bytes() / bandwidth(p.execution));
}

template <Problem P>
double predicted_seconds(const Kernel<P>& kernel, const P& p) {
  const Forms<P> forms(p);
  Plan plan;
  return at_least_memory(kernel.cost(kernel, forms.of(kernel.info), plan), p);
}

/// What a kernel needs for a problem in its form.
template <Problem P>
WorkspaceSize workspace_of(const Kernel<P>& kernel, const P& p, const Plan& plan) {
  return kernel.workspace ? kernel.workspace(kernel, p, plan) : WorkspaceSize{};
}
/// The same for a problem as the caller gave it.
template <Problem P>
WorkspaceSize workspace_of(const Kernel<P>& kernel, const P& problem) {
  const Forms<P> forms(problem);
  const P& p = forms.of(kernel.info);
  Plan plan;
  kernel.cost(kernel, p, plan);
  return workspace_of(kernel, p, plan);
}

/// A kernel's answer to a problem.
template <Problem P>
Candidate<P> candidate_of(const Kernel<P>& kernel, const Forms<P>& forms, std::optional<std::string_view> bit_class) {
  Candidate<P> one{.kernel = &kernel, .status = supports(kernel, forms, bit_class)};
  if (!one.status) return one;
  const P& p = forms.of(kernel.info);
  Plan plan;
  one.seconds = at_least_memory(kernel.cost(kernel, p, plan), p);
  one.workspace = workspace_of(kernel, p, plan);
  one.admission = p.admission(kernel.info);
  return one;
}

/// All candidates, those of providers whatever their facts are.
template <Problem P>
Forms<P> all_forms(const P& problem) {
  if constexpr (requires(const Forms<P>& forms) { forms.provided(); })
    return Forms<P>(problem, [](const KernelInfo&) { return true; });
  else
    return Forms<P>(problem);
}

template <Problem P>
std::vector<Candidate<P>> candidates(const Forms<P>& forms) {
  const std::optional<std::string_view> bit_class = class_for(forms);
  const Kernel<P>* const chosen = fastest(forms, bit_class).kernel;
  std::vector<Candidate<P>> list;
  for_each_candidate(forms, [&](const Kernel<P>& kernel) {
    list.push_back(candidate_of(kernel, forms, bit_class));
    list.back().chosen = &kernel == chosen;
  });
  return list;
}

/// Whose rates a predicted time on this GPU borrows, in words; empty if its own.
template <Problem P>
std::string borrowed_rates(const KernelInfo& info, const P& p) {
  if (p.execution.space != Space::cuda || info.timed_on == 0 || info.timed_on == p.execution.compute_capability) return {};
  return " from measurements on sm_" + std::to_string(info.timed_on);
}

/// A time with three digits, as in "1.5 us" or "160 ms".
inline std::string duration(double seconds) {
  const auto [scale, unit] = seconds < 999.5e-6 ? std::pair{1e6, "us"}
                             : seconds < 0.9995 ? std::pair{1e3, "ms"}
                                                : std::pair{1., "s"};
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", scale * seconds, unit);
  return text;
}

/// The problem and its requirements on the kernel, in words.
template <Problem P>
std::string summary(const P& p) {
  std::string text = std::string(p.function) + ' ' + p.summary() + " on " + name(p.execution.space);
  if (p.require != Promise::none) text += ", requires " + describe(p.require);
  if (p.precision != Precision::automatic) text += std::string(", precision ") + name(p.precision);
  if (!p.kernel.empty()) text += ", kernel '" + std::string(p.kernel) + "'";
  return text;
}

/// The problem with the profile that its predicted times take.
template <Problem P>
std::string heading(const P& p) {
  const std::string_view profile = profile_of(p.execution);
  return summary(p) + (profile.empty() ? "" : " (" + std::string(profile) + ')');
}

/// A line of a candidate; '*' marks the chosen one.
template <Problem P>
std::string line_of(const Candidate<P>& one, const P& p) {
  const std::string text = (one.chosen ? "* " : "  ") + one.kernel->info.name + ": ";
  if (!one.status) return text + one.status.reason + '\n';
  return text + duration(one.seconds) + " predicted" + borrowed_rates(one.kernel->info, p) +
         (one.admission.empty() ? "" : "; " + one.admission) + '\n';
}

/// The problem and its candidates, a line each.
template <Problem P>
std::string listing(const P& p) {
  std::string text = heading(p) + ":\n";
  const Forms<P> forms = all_forms(p);
  for (const Candidate<P>& one : candidates(forms)) text += line_of(one, p);
  return text;
}

/// What names do not say by themselves, a line or nothing.
template <Problem P>
std::string legend(const P& p) {
  if ((bit(p.execution.space) & host_spaces) == 0) return {};
  return "(names of host kernels end with their instructions: v2, v3, v4 of x86-64, neon, sve256, sve512 of AArch64, or "
         "native, those that the file with the functor is compiled for)\n";
}

template <Problem P>
std::string explain(const P& p) {
  return listing(p) + legend(p);
}

/// The families that a call can name, in words.
template <Problem P>
std::string families(const P& p) {
  std::string text;
  std::vector<std::string_view> known;
  P unnamed = p;
  unnamed.kernel = {};
  const Forms<P> forms = all_forms(unnamed);
  for_each_candidate(forms, [&](const Kernel<P>& kernel) {
    const std::string_view family = kernel.info.family;
    if (std::ranges::find(known, family) != known.end()) return;
    known.push_back(family);
    text += (text.empty() ? "" : ", ") + std::string(family);
  });
#if !RIGEL_BACKEND_CUDA_SIMT
  text += "; this build has no CUDA";
#endif
  return text;
}

/// The chosen kernel and its plan; throws if there is none.
template <Problem P>
Choice<P> choose(const Forms<P>& forms) {
  const P& p = forms.problem();
  const std::optional<std::string_view> bit_class = class_for(forms);
  if (Choice<P> choice = fastest(forms, bit_class); choice.kernel) return choice;
  const Forms<P> all = all_forms(p);
  bool named = p.kernel.empty() || is_registered<P>(p.kernel);
  if (!named)
    for_each_candidate(all, [&](const Kernel<P>& kernel) { named = named || name_matches(kernel.info.name, p.kernel); });
  if (!named)
    throw Error(Code::not_found, std::string(p.function) + ": no kernel is named '" + std::string(p.kernel) +
                                     "', expected a kernel's name or its leading part, as in " + families(p));
  Decline only = !p.kernel.empty() && find_kernel<P>(p.kernel) ? Decline::key : Decline::none;
  for_each_candidate(all, [&](const Kernel<P>& kernel) {
    if (!p.kernel.empty() && kernel.info.name == p.kernel) only = supports(kernel, forms, bit_class).decline;
  });
  throw Error(Code::unsupported, "no kernel covers " + listing(p), only);
}

/// The scratch memory of the chosen kernel.
template <Problem P>
WorkspaceSize workspace_of(const P& problem) {
  const Forms<P> forms(problem);
  const Choice<P> choice = choose(forms);
  return workspace_of(*choice.kernel, forms.of(choice.kernel->info), choice.plan);
}

}  // namespace rigel::engine
