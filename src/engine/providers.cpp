// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "providers.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <set>

namespace rigel {
namespace {

struct Entry {
  std::string name;
  Provider provider;
};
using Entries = std::vector<std::shared_ptr<const Entry>>;

// Never destroyed: calls may come from destructors of static objects.
struct Global {
  std::atomic<std::size_t> count = 0;  // of providers, so that calls take no lock without any
  std::shared_mutex mutex;
  Entries entries;
  std::set<KernelOwner> kept;
};
Global& global() {
  static auto* const one = new Global;
  return *one;
}

// A copy, since providers are called without the lock: they may register others, or call Rigel.
Entries entries() {
  Global& all = global();
  if (all.count.load(std::memory_order_acquire) == 0) return {};
  const std::shared_lock lock(all.mutex);
  return all.entries;
}

// While this thread is in a provider, calls that it makes ask none.
thread_local bool is_asking = false;
struct Asking {
  Asking() { is_asking = true; }
  ~Asking() { is_asking = false; }
  Asking(const Asking&) = delete;
};

// Whether names of kernels of this family may match what a call names.
bool may_match(std::string_view family, std::string_view wanted) {
  if (wanted.empty()) return true;
  return !engine::all_parts(wanted, [&](std::string_view part) {
    return part.empty() || !(engine::name_matches(family, part) || engine::name_matches(part, family));
  });
}

std::string in_words(const Contraction& p, const Entry& entry) {
  return std::string(p.function) + ": provider '" + entry.name + '\'';
}

std::vector<KernelOwner> made_by(const Entry& entry, const Contraction& p, const KernelPredicate& wanted) {
  const auto failed = [&](Code code, const std::string& what) {
    throw Error(code, in_words(p, entry) + " failed: " + what);
  };
  const Asking asking;
  try {
    return entry.provider(p, wanted);
  } catch (const Error& e) {
    failed(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    failed(Code::unsupported, e.what());
  } catch (...) {
    failed(Code::unsupported, "an exception that is no std::exception");
  }
  return {};
}

void check(const Kernel<Contraction>* kernel, const Entry& entry, const Contraction& p) {
  if (!kernel) throw Error(Code::invalid_argument, in_words(p, entry) + " yields a null pointer");
  engine::check_kernel(*kernel, in_words(p, entry));
  if (kernel->info.family != entry.name)
    throw Error(Code::invalid_argument, in_words(p, entry) + ": '" + kernel->info.name + "' is of the family '" +
                                            kernel->info.family + "', expected the provider's name");
}

bool is_name_in(std::span<const Kernel<Contraction>* const> list, std::string_view name) {
  return std::ranges::any_of(list, [&](const Kernel<Contraction>* one) { return one->info.name == name; });
}

// Whether a registered kernel of the problem's key, or one that came with the problem, has the name.
bool is_taken(std::string_view name, const Contraction& p) {
  for (const Kernel<Contraction>& one : p.instantiated)
    if (one.info.name == name) return true;
  auto& operation = engine::registry_of<Contraction>();
  const std::shared_lock lock(operation.mutex);
  return is_name_in(operation.registry.find(p.key()), name);
}

}  // namespace

void engine::Provided::ask(const Contraction& p, const KernelPredicate& wanted, std::vector<Offer>* offers) {
  asked_ = true;
  if (is_asking) return;
  std::vector<const Kernel<Contraction>*> seen;
  for (const auto& entry : entries()) {
    if (!may_match(entry->name, p.kernel)) continue;
    std::set<std::string> names;
    const KernelPredicate of_key = [&](const KernelInfo& info) {
      if (!has_key_of(info, p)) return false;
      if (offers) names.insert(info.name);
      return wanted(info);
    };
    for (KernelOwner& one : made_by(*entry, p, of_key)) {
      check(one.get(), *entry, p);
      const KernelInfo& info = one->info;
      if (!has_key_of(info, p)) continue;
      if (offers) names.insert(info.name);
      if (is_name_in(seen, info.name) || is_taken(info.name, p))
        throw Error(Code::duplicate,
                    in_words(p, *entry) + " yields '" + info.name + "', a name that another kernel has already");
      seen.push_back(one.get());
      kernels_.push_back(std::move(one));
    }
    if (offers) offers->push_back({entry->name, {names.begin(), names.end()}});
  }
}

void engine::Provided::keep_only(const Kernel<Contraction>* kernel) {
  std::erase_if(kernels_, [&](const KernelOwner& one) { return one.get() != kernel; });
  kept_.clear();
}

void engine::Provided::keep_for_ever(const Kernel<Contraction>* kernel) const {
  if (kernels_.empty()) return;
  Global& all = global();
  const std::unique_lock lock(all.mutex);
  for (const KernelOwner& one : kernels_)
    if (!kernel || one.get() == kernel) all.kept.insert(one);
}

KernelOwner engine::Provided::owner_of(const Kernel<Contraction>* kernel) const {
  for (const KernelOwner& one : kernels_)
    if (one.get() == kernel) return one;
  return {std::shared_ptr<void>(), kernel};
}

KernelOwner make_kernel(const Kernel<Contraction>& kernel) {
  Kernel<Contraction> complete = engine::completed(kernel, "make_kernel");
  complete.info.operation = Contraction::operation;
  engine::check_kernel(complete, "make_kernel");
  return std::make_shared<const Kernel<Contraction>>(std::move(complete));
}

void register_provider(const std::string& name, Provider provider) {
  const auto refuse = [&](Code code, const std::string& what) {
    throw Error(code, "register_provider: '" + name + "' " + what);
  };
  if (name.empty() || name.find('|') != std::string::npos)
    refuse(Code::invalid_argument, "is no name, expected a family of kernels");
  if (!provider) refuse(Code::invalid_argument, "has no function");
  auto entry = std::make_shared<const Entry>(Entry{name, std::move(provider)});
  Global& all = global();
  const std::unique_lock lock(all.mutex);
  for (const auto& other : all.entries)
    if (other->name == name) refuse(Code::duplicate, "is registered already");
  all.entries.push_back(std::move(entry));
  all.count = all.entries.size();
}

bool unregister_provider(std::string_view name) {
  std::shared_ptr<const Entry> removed;  // its function is destroyed without the lock, unless a call runs it
  Global& all = global();
  const std::unique_lock lock(all.mutex);
  const auto found = std::ranges::find_if(all.entries, [&](const auto& one) { return one->name == name; });
  if (found == all.entries.end()) return false;
  removed = std::move(*found);
  all.entries.erase(found);
  all.count = all.entries.size();
  return true;
}

std::vector<std::string> providers() {
  std::vector<std::string> names;
  for (const auto& entry : entries()) names.push_back(entry->name);
  return names;
}

}  // namespace rigel
