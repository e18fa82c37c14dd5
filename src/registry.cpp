// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one registry of the process: filled by the backends when it is first asked, then by users.
#include "registry.hpp"

#include <rigel/detail/keep.hpp>
#include <rigel/detail/kernel.hpp>

#include <mutex>

namespace rigel {

std::string describe(Promise promise) {
  std::string text;
  const auto add = [&](Promise one, const char* word) {
    if (covers(promise, one)) text += (text.empty() ? "" : "|") + std::string(word);
  };
  add(Promise::reference_bits, "reference_bits");
  add(Promise::repeatable, "repeatable");
  add(Promise::batch_invariant, "batch_invariant");
  return text.empty() ? "none" : text;
}

std::string_view bit_class_of(const KernelInfo& info) {
  if (covers(info.promises, Promise::reference_bits)) return "reference";
  return info.bit_class.empty() ? info.name : info.bit_class;
}

Registry::Key Registry::key_of(SemiringId semiring, Operation operation, Scalar element, Scalar accumulator) {
  return {semiring.type, semiring.type ? std::string_view() : semiring.name, operation, element, accumulator};
}

void Registry::add(const Kernel& kernel) {
  const KernelInfo& info = kernel.info;
  const auto refuse = [&](const char* what) {
    throw Error(Code::invalid_argument, "register_kernel: '" + info.name + "' " + what);
  };
  if (info.name.empty()) refuse("has no name");
  if (info.family.empty() || !info.name.starts_with(info.family)) refuse("has a name that does not begin with its family");
  if (info.semiring.empty()) refuse("names no semiring");
  if (!kernel.run) refuse("has no run function");
  if (!kernel.cost) refuse("has no cost function");
  if (info.spaces == 0) refuse("runs in no execution space");
  if (info.tile.m < 0 || info.tile.n < 0 || info.tile.k < 0 || info.stages < 1) refuse("has a tile or stages out of range");
  if (info.max_compute_capability != 0 && info.max_compute_capability < info.min_compute_capability)
    refuse("covers no compute capability");
  for (const auto& other : kernels_)
    if (other->info.name == info.name)
      throw Error(Code::duplicate, "register_kernel: a kernel named '" + info.name + "' is registered already");
  kernels_.push_back(std::make_unique<const Kernel>(kernel));
  const KernelInfo& kept = kernels_.back()->info;
  by_key_[key_of(semiring_of(kept), kept.operation, kept.element, kept.accumulator)].push_back(kernels_.back().get());
}

std::span<const Kernel* const> Registry::find(SemiringId semiring, Operation operation, Scalar element,
                                              Scalar accumulator) const {
  const auto found = by_key_.find(key_of(semiring, operation, element, accumulator));
  if (found == by_key_.end()) return {};
  return found->second;
}

namespace detail {

KernelInfo make_info(std::string_view family, std::string_view tile, Spaces spaces, std::string_view semiring,
                     Scalar element, Scalar accumulator, const void* sample) {
  KernelInfo info;
  info.family = family;
  info.semiring = semiring;
  info.element = element;
  info.accumulator = accumulator;
  info.spaces = spaces;
  info.sample = sample;
  info.name = info.family + '.' + info.semiring + '.' + name(element);
  if (accumulator == Scalar::f16 || accumulator == Scalar::bf16) info.name += std::string("_") + name(accumulator);
  if (!tile.empty()) info.name += '.' + std::string(tile);
  return info;
}

namespace {

// Calls may come from destructors of static objects and from handlers of std::atexit, whenever these were registered. So it
// goes after all of them: at the end of the program, or when the shared object that holds this code is unloaded.
GlobalRegistry* global = nullptr;
[[gnu::destructor(101)]] void destroy_registry() { delete global; }

}  // namespace

GlobalRegistry& global_registry() {
  static std::once_flag filled;
  std::call_once(filled, [] {
    auto registry = std::make_unique<GlobalRegistry>();
    backends::register_all(registry->registry);
    global = registry.release();
  });
  return *global;
}

std::span<const Kernel> keep(std::vector<Kernel> kernels) {
  auto& global = global_registry();
  const std::unique_lock lock(global.mutex);
  return global.kept.emplace_back(std::move(kernels));
}

}  // namespace detail

void register_kernel(const Kernel& kernel) {
  auto& global = detail::global_registry();
  const std::unique_lock lock(global.mutex);
  // Rigel's own semirings all have kernels of the backends by now.
  const KernelInfo& info = kernel.info;
  if (!info.semiring.empty() && !info.semiring_type &&
      global.registry.find(semiring_of(info), info.operation, info.element, info.accumulator).empty())
    throw Error(Code::invalid_argument,
                "register_kernel: '" + info.name + "' names the semiring '" + info.semiring + "' with elements of " +
                    name(info.element) + " and accumulators of " + name(info.accumulator) +
                    ", which is none of Rigel's own; expected semiring_type<S>() as its semiring_type");
  global.registry.add(kernel);
}

std::vector<KernelInfo> kernels(const Filter& filter) {
  auto& global = detail::global_registry();
  const std::shared_lock lock(global.mutex);
  std::vector<KernelInfo> list;
  for (const auto& kernel : global.registry.all()) {
    const KernelInfo& info = kernel->info;
    if (!detail::name_matches(info.name, filter.name)) continue;
    if (!filter.semiring.empty() && info.semiring != filter.semiring) continue;
    if (filter.element != Scalar::other && info.element != filter.element) continue;
    if (filter.accumulator != Scalar::other && info.accumulator != filter.accumulator) continue;
    if ((info.spaces & filter.spaces) == 0) continue;
    if (filter.compute_capability != 0 && !detail::runs_on(info, filter.compute_capability)) continue;
    list.push_back(info);
  }
  return list;
}

}  // namespace rigel
