// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registries of the process, one for each operation. The backends fill all of them at the first use of one; users add to
// them.
#pragma once

#include <rigel/gradient_problem.hpp>
#include <rigel/reduction_problem.hpp>
#include <rigel/registry.hpp>
#include <rigel/solve.hpp>

#include <list>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <vector>

namespace rigel {

namespace backends {
/// Fills a registry from every backend of this build. CMake generates it. A further operation adds an overload.
void register_all(Registry<Contraction>& registry);
void register_all(Registry<Solve>& registry);
void register_all(Registry<Gradient>& registry);
void register_all(Registry<Reduction>& registry);
}  // namespace backends

namespace engine {

/// The registry of one operation, with its lock.
template <Problem P>
struct OperationRegistry {
  using problem = P;
  std::shared_mutex mutex;
  Registry<P> registry;
  std::list<std::vector<Kernel<P>>> kept;  // the kernels of keep()
};

/// The registries of all operations. This is the only list of operations.
using Registries = std::tuple<OperationRegistry<Contraction>, OperationRegistry<Solve>, OperationRegistry<Gradient>,
                              OperationRegistry<Reduction>>;

Registries& registries();

template <Problem P>
OperationRegistry<P>& registry_of() {
  return std::get<OperationRegistry<P>>(registries());
}

/// Calls visit(OperationRegistry<P>&) for every operation.
template <class Visit>
void for_each_operation(const Visit& visit) {
  std::apply([&](auto&... operation) { (visit(operation), ...); }, registries());
}

/// Whether visit(part) is true of all parts of a list, which are separated by '|'.
template <class Visit>
bool all_parts(std::string_view list, const Visit& visit) {
  while (true) {
    const std::size_t bar = list.find('|');
    if (!visit(list.substr(0, bar))) return false;
    if (bar == std::string_view::npos) return true;
    list.remove_prefix(bar + 1);
  }
}

/// Whether `wanted` is the name or its leading part up to a '.', or lists such parts, separated by '|'. An empty `wanted` matches all
/// names, an empty part of a list none.
inline bool name_matches(std::string_view name, std::string_view wanted) {
  if (wanted.empty()) return true;
  return !all_parts(wanted, [&](std::string_view part) {
    const bool matches = !part.empty() && name.starts_with(part) && (name.size() == part.size() || name[part.size()] == '.');
    return !matches;
  });
}

/// Whether the kernel's GPU code covers a compute capability.
inline bool runs_on(const KernelInfo& info, int compute_capability) {
  return compute_capability >= info.min_compute_capability &&
         (info.max_compute_capability == 0 || compute_capability <= info.max_compute_capability);
}

/// Whether an operation has kernels that serve every key, P::generic_key().
template <class P>
inline constexpr bool has_generic_key = requires { P::generic_key(); };

/// Whether a kernel's key is the problem's, or the generic one.
template <Problem P>
bool has_key_of(const KernelInfo& info, const P& p) {
  const typename P::Key key = P::key_of(info);
  if constexpr (has_generic_key<P>)
    if (key == P::generic_key()) return true;
  return key == p.key();
}

/// Throws Error(invalid_argument) if a kernel's info is inconsistent, whatever its operation. The message begins with `who`.
void check_info(const KernelInfo& info, const std::string& who);

/// The same for a whole kernel.
template <Problem P>
void check_kernel(const Kernel<P>& kernel, const std::string& who) {
  check_info(kernel.info, who);
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::invalid_argument, who + ": '" + kernel.info.name + "' " + what);
  };
  if (!kernel.run) refuse("has no run function");
  if (!kernel.cost) refuse("has no cost function");
  if (const Status status = P::accepts(kernel.info); !status) refuse(status.reason);
}

/// The kernel of that name, or null. Its address does not change.
template <Problem P>
const Kernel<P>* find_kernel(std::string_view name) {
  auto& operation = registry_of<P>();
  const std::shared_lock lock(operation.mutex);
  for (const auto& kernel : operation.registry.all())
    if (kernel->info.name == name) return kernel.get();
  return nullptr;
}

/// The kernel with its semiring's facts, if it brings none. Throws Error(invalid_argument) if it names a semiring that is unknown. The registry
/// is locked.
template <Problem P>
Kernel<P> completed_in(const Registry<P>& registry, const Kernel<P>& kernel, const std::string& who) {
  // The backends have registered kernels for all of Rigel's own semirings by now.
  const KernelInfo& info = kernel.info;
  const auto others = registry.find(P::key_of(info));
  if (!info.semiring.empty() && !info.semiring_type && !has_generic_key<P> && others.empty())
    throw Error(Code::invalid_argument,
                who + ": '" + info.name + "' names the semiring '" + info.semiring + "' with elements of " +
                    name(info.element) + " and accumulators of " + name(info.accumulator) +
                    ", which is none of Rigel's own; expected semiring_type<S>() as its semiring_type");
  Kernel<P> complete = kernel;
  for (const Kernel<P>* other : others)
    if (!complete.info.facts) complete.info.facts = other->info.facts;
  return complete;
}
template <Problem P>
Kernel<P> completed(const Kernel<P>& kernel, const std::string& who) {
  auto& operation = registry_of<P>();
  const std::shared_lock lock(operation.mutex);
  return completed_in(operation.registry, kernel, who);
}

/// register_kernel() for one operation.
template <Problem P>
void register_kernel(const Kernel<P>& kernel) {
  auto& operation = registry_of<P>();
  const std::unique_lock lock(operation.mutex);
  operation.registry.add(completed_in(operation.registry, kernel, "register_kernel"));
}

}  // namespace engine

template <class P>
void Registry<P>::add(const Kernel<P>& kernel) {
  engine::check_kernel(kernel, "register_kernel");
  for (const auto& other : kernels_)
    if (other->info.name == kernel.info.name)
      throw Error(Code::duplicate, "register_kernel: a kernel named '" + kernel.info.name + "' is registered already");
  auto kept = std::make_unique<Kernel<P>>(kernel);
  kept->info.operation = P::operation;
  kernels_.push_back(std::move(kept));
  by_key_[P::key_of(kernels_.back()->info)].push_back(kernels_.back().get());
}

template <class P>
std::span<const Kernel<P>* const> Registry<P>::find(const typename P::Key& key) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return {};
  return found->second;
}

}  // namespace rigel
