// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which kernel a problem gets: an exact key first, then the least predicted time.
#include "select.hpp"

#include "registry.hpp"

#include <cstdio>
#include <limits>

namespace rigel {
namespace {

// The number of rows that batch_invariant selections assume: the choice then does not depend on the problem's own M.
constexpr std::int64_t nominal_rows = 1024;

double predicted_cost(const Kernel& kernel, const Problem& p) {
  if (!covers(p.require, Promise::batch_invariant)) return kernel.cost(kernel.info, p);
  Problem nominal = p;
  nominal.m = nominal_rows;
  return kernel.cost(kernel.info, nominal);
}

// Calls visit(kernel) for the registered kernels of the problem's key, then for those that the caller brought.
template <class Visit>
void for_each_candidate(const Problem& p, const Visit& visit) {
  auto& global = detail::global_registry();
  const std::shared_lock lock(global.mutex);
  for (const Kernel* kernel : global.registry.find(p)) visit(*kernel);
  for (const Kernel& kernel : p.instantiated) visit(kernel);
}

std::string summary(const Problem& p) {
  std::string text = std::string(name(p.operation)) + ' ' + std::string(p.semiring) + ' ' + name(p.element);
  if (p.batch != 1) text += ", batch " + std::to_string(p.batch);
  text +=
      ", " + std::to_string(p.m) + 'x' + std::to_string(p.n) + 'x' + std::to_string(p.k) + " on " + name(p.execution.space);
  if (p.require != Promise::none) text += ", requires " + describe(p.require);
  if (p.precision != Precision::accumulator) text += std::string(", precision ") + name(p.precision);
  if (p.may_cancel) text += ", may cancel";
  if (!p.kernel.empty()) text += ", kernel '" + std::string(p.kernel) + "'";
  return text;
}

bool exists(std::string_view wanted) {
  auto& global = detail::global_registry();
  const std::shared_lock lock(global.mutex);
  for (const auto& kernel : global.registry.all())
    if (detail::name_matches(kernel->info.name, wanted)) return true;
  return false;
}

// The first condition on a kernel's info that a problem does not meet. Without a message, which most candidates of most calls
// would have to write for nobody.
enum class Refusal { none, operation, types, name, space, architecture, promises, accumulate, precision };

Refusal refusal(const KernelInfo& info, const Problem& p) {
  if (info.operation != p.operation || info.semiring != p.semiring) return Refusal::operation;
  if (info.element != p.element || info.accumulator != p.accumulator) return Refusal::types;
  if (!detail::name_matches(info.name, p.kernel)) return Refusal::name;
  if ((info.spaces & bit(p.execution.space)) == 0) return Refusal::space;
  if (p.execution.space == Space::cuda && !detail::runs_on(info, p.execution.compute_capability))
    return Refusal::architecture;
  if (!covers(info.promises, p.require)) return Refusal::promises;
  if (p.accumulate && !info.accumulates) return Refusal::accumulate;
  if (info.precision > p.precision) return Refusal::precision;
  return Refusal::none;
}

std::string reason(Refusal why, const KernelInfo& info, const Problem& p) {
  switch (why) {
    case Refusal::none: break;
    case Refusal::operation: return "another operation or semiring";
    case Refusal::types: return "other element types";
    case Refusal::name: return "not the kernel that was asked for";
    case Refusal::space: return std::string("does not run on ") + name(p.execution.space);
    case Refusal::architecture:
      return "needs compute capability " + std::to_string(info.min_compute_capability) +
             (info.max_compute_capability ? " to " + std::to_string(info.max_compute_capability) : " or newer");
    case Refusal::promises: return "promises only " + describe(info.promises);
    case Refusal::accumulate: return "no value of C can be continued, so accumulate is not defined";
    case Refusal::precision:
      return std::string("rounds terms (precision ") + name(info.precision) + "), which options.precision does not allow";
  }
  return {};
}

}  // namespace

Status supports(const Kernel& kernel, const Problem& p) {
  if (const Refusal why = refusal(kernel.info, p); why != Refusal::none)
    return {Code::unsupported, reason(why, kernel.info, p)};
  return kernel.supports ? kernel.supports(kernel.info, p) : Status{};
}

namespace detail {

const Kernel* choose(const Problem& p) {
  const Kernel* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for_each_candidate(p, [&](const Kernel& kernel) {
    if (refusal(kernel.info, p) != Refusal::none) return;
    if (kernel.supports && !kernel.supports(kernel.info, p)) return;
    const double seconds = predicted_cost(kernel, p);
    if (best && !(seconds < least)) return;
    best = &kernel;
    least = seconds;
  });
  return best;
}

}  // namespace detail

std::string explain(const Problem& p) {
  const Kernel* chosen = detail::choose(p);
  std::string text = summary(p) + ":\n";
  for_each_candidate(p, [&](const Kernel& kernel) {
    text += (&kernel == chosen ? "* " : "  ") + kernel.info.name + ": ";
    if (const Status status = supports(kernel, p)) {
      char time[32];
      std::snprintf(time, sizeof time, "%.3g us", 1e6 * predicted_cost(kernel, p));
      text += std::string(time) + " predicted\n";
    } else {
      text += status.reason + '\n';
    }
  });
  return text;
}

const Kernel& select(const Problem& p) {
  if (const Kernel* kernel = detail::choose(p)) return *kernel;
  bool named = p.kernel.empty() || exists(p.kernel);
  for (const Kernel& kernel : p.instantiated) named = named || detail::name_matches(kernel.info.name, p.kernel);
  if (!named)
    throw Error(Code::not_found, std::string(name(p.operation)) + ": no kernel is named '" + std::string(p.kernel) + "'");
  throw Error(Code::unsupported, "no kernel covers " + explain(p));
}

}  // namespace rigel
