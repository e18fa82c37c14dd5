// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which kernel a problem gets: an exact key first, under batch_invariant a bit class, then the least predicted time.
#include "select.hpp"

#include "registry.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <optional>

namespace rigel {
namespace {

// The problem that stands for all of the same N, K, types, options and architecture: one matrix of as many rows, contiguous and
// aligned, A and B along K, on a card of as many multiprocessors. Its addresses are never read.
Problem nominal_form(const Problem& p) {
  constexpr std::int64_t rows = 1024;
  constexpr int multiprocessors = 132, threads = 8;
  const auto place = [](Operand& o, std::uintptr_t address, std::int64_t of_rows, std::int64_t columns, bool by_rows) {
    o.data = reinterpret_cast<void*>(address);
    o.batches = 1;
    o.rows = of_rows;
    o.columns = columns;
    o.batch_stride = 0;
    o.row_stride = by_rows ? columns : 1;
    o.column_stride = by_rows ? 1 : of_rows;
  };
  Problem q = p;
  q.batch = 1;
  q.m = rows;
  q.indices = nullptr;
  place(q.a, 1 << 20, rows, p.k, true);
  place(q.b, 2 << 20, p.k, p.n, false);
  place(q.c, 3 << 20, rows, p.n, true);
  if (p.execution.space == Space::cuda) q.execution.multiprocessors = multiprocessors;
  q.execution.concurrency = threads;
  return q;
}

// What memory delivers at most, in bytes a second: data sheets of the fastest card of an architecture; of hosts what none exceeds.
double bandwidth(const Execution& e) {
  if (e.space != Space::cuda) return 1e12;
  switch (e.compute_capability) {
    case 80: return 2.04e12;
    case 86: return 0.94e12;
    case 87: return 0.2e12;
    case 89: return 1.01e12;
    case 90: return 4.8e12;
    case 120: return 1.8e12;
    default: return 8e12;
  }
}

// Each element read once, or written.
double memory_seconds(const Problem& p) {
  const auto bytes = [](const Operand& o) {
    const auto distinct = [](std::int64_t extent, std::int64_t stride) {
      return static_cast<double>(stride == 0 ? std::min<std::int64_t>(extent, 1) : extent);
    };
    return distinct(o.batches, o.batch_stride) * distinct(o.rows, o.row_stride) * distinct(o.columns, o.column_stride) *
           static_cast<double>(o.size);
  };
  return (bytes(p.a) + bytes(p.b) + bytes(p.c)) / bandwidth(p.execution);
}

// The registered kernels of a problem's key. Copied, since kernels are asked without the registry's lock: a user's may call Rigel.
class Registered {
 public:
  explicit Registered(const Problem& p) {
    auto& global = detail::global_registry();
    const std::shared_lock lock(global.mutex);
    const auto found = global.registry.find(p.semiring, p.operation, p.element, p.accumulator);
    if (found.size() > few_.size()) {
      many_.assign(found.begin(), found.end());
      list_ = many_;
    } else {
      std::copy(found.begin(), found.end(), few_.begin());
      list_ = std::span(few_).first(found.size());
    }
  }
  Registered(const Registered&) = delete;
  std::span<const Kernel* const> list() const { return list_; }

 private:
  std::array<const Kernel*, 64> few_;
  std::vector<const Kernel*> many_;
  std::span<const Kernel* const> list_;
};

// Calls visit(kernel) for the registered kernels of the problem's key, then for those that the caller brought.
template <class Visit>
void for_each_candidate(const Problem& p, const Visit& visit) {
  const Registered registered(p);
  for (const Kernel* kernel : registered.list()) visit(*kernel);
  for (const Kernel& kernel : p.instantiated) visit(kernel);
}

std::string summary(const Problem& p) {
  std::string text = std::string(name(p.operation)) + ' ' + std::string(p.semiring.name) + ' ' + name(p.element);
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
  if (info.operation != p.operation || !(semiring_of(info) == p.semiring)) return Refusal::operation;
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

// The supported kernel with the least predicted time among those of one bit class, or of all.
const Kernel* fastest(const Problem& p, std::optional<std::string_view> bit_class) {
  const Kernel* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for_each_candidate(p, [&](const Kernel& kernel) {
    if (refusal(kernel.info, p) != Refusal::none) return;
    if (bit_class && bit_class_of(kernel.info) != *bit_class) return;
    if (kernel.supports && !kernel.supports(kernel.info, p)) return;
    const double seconds = kernel.cost(kernel.info, p);
    if (best && !(seconds < least)) return;
    best = &kernel;
    least = seconds;
  });
  return best;
}

// The bit class that batch_invariant allows, if it is required: that of the nominal form's fastest kernel. If none covers that, the
// only class that covers the problem itself; empty, which is no kernel's, if there is none or a choice that M would decide.
std::optional<std::string_view> class_for(const Problem& p) {
  if (!covers(p.require, Promise::batch_invariant)) return {};
  if (const Kernel* kernel = fastest(nominal_form(p), {})) return bit_class_of(kernel->info);
  std::optional<std::string_view> only;
  for_each_candidate(p, [&](const Kernel& kernel) {
    if (refusal(kernel.info, p) != Refusal::none || (kernel.supports && !kernel.supports(kernel.info, p))) return;
    const std::string_view one = bit_class_of(kernel.info);
    only = !only || *only == one ? one : "";
  });
  return only.value_or("");
}

}  // namespace

Status supports(const Kernel& kernel, const Problem& p) {
  if (const Refusal why = refusal(kernel.info, p); why != Refusal::none)
    return {Code::unsupported, reason(why, kernel.info, p)};
  return kernel.supports ? kernel.supports(kernel.info, p) : Status{};
}

double predicted_seconds(const Kernel& kernel, const Problem& p) {
  return std::max(kernel.cost(kernel.info, p), memory_seconds(p));
}

namespace detail {

const Kernel* choose(const Problem& p) { return fastest(p, class_for(p)); }

}  // namespace detail

std::string explain(const Problem& p) {
  const std::optional<std::string_view> bit_class = class_for(p);
  const Kernel* chosen = fastest(p, bit_class);
  std::string text = summary(p) + ":\n";
  for_each_candidate(p, [&](const Kernel& kernel) {
    text += (&kernel == chosen ? "* " : "  ") + kernel.info.name + ": ";
    if (const Status status = supports(kernel, p); !status) {
      text += status.reason + '\n';
    } else if (bit_class && bit_class_of(kernel.info) != *bit_class) {
      text += "bits of class '" + std::string(bit_class_of(kernel.info)) +
              (bit_class->empty() ? "', and M would decide which class a batch_invariant call gets\n"
                                  : "', batch_invariant calls of this N and K have those of '" + std::string(*bit_class) + "'\n");
    } else {
      char time[32];
      std::snprintf(time, sizeof time, "%.3g us", 1e6 * predicted_seconds(kernel, p));
      text += std::string(time) + " predicted\n";
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
