// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of the registry that do not depend on the operation.
#include "registry.hpp"

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

namespace engine {

void check_info(const KernelInfo& info, const std::string& who) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::invalid_argument, who + ": '" + info.name + "' " + what);
  };
  if (info.name.empty()) refuse("has no name");
  if (info.family.empty() || !info.name.starts_with(info.family)) refuse("has a name that does not begin with its family");
  if (info.spaces == 0) refuse("runs in no execution space");
  if (info.precision < Precision::accumulator)
    refuse(std::string("has precision ") + name(info.precision) + ", which is for calls");
  if (info.tile.m < 0 || info.tile.n < 0 || info.tile.k < 0 || info.stages < 1) refuse("has a tile or stages out of range");
  if (info.threads < 0 || info.shared_memory < 0) refuse("has threads or shared memory out of range");
  for (const OperandNeeds& needs : info.operands)
    if (needs.alignment < 1) refuse("asks for an alignment below one element");
  if (info.max_compute_capability != 0 && info.max_compute_capability < info.min_compute_capability)
    refuse("covers no compute capability");
}

namespace {

// Calls may come from destructors of static objects and from std::atexit handlers, whenever these were registered. So the
// registries are destroyed after all of them: at the end of the program, or when the shared object with this code is unloaded.
Registries* global = nullptr;
[[gnu::destructor(101)]] void destroy_registries() { delete global; }

}  // namespace

Registries& registries() {
  static std::once_flag filled;
  std::call_once(filled, [] {
    auto all = std::make_unique<Registries>();
    std::apply([](auto&... operation) { (backends::register_all(operation.registry), ...); }, *all);
    global = all.release();
  });
  return *global;
}

}  // namespace engine

std::vector<KernelInfo> kernels(const Filter& filter) {
  std::vector<KernelInfo> list;
  engine::for_each_operation([&](auto& operation) {
    const std::shared_lock lock(operation.mutex);
    for (const auto& kernel : operation.registry.all()) {
      const KernelInfo& info = kernel->info;
      if (!engine::name_matches(info.name, filter.name)) continue;
      if (!filter.operation.empty() && info.operation != filter.operation) continue;
      if (!filter.semiring.empty() && info.semiring != filter.semiring) continue;
      if (filter.element != Scalar::other && info.element != filter.element) continue;
      if (filter.accumulator != Scalar::other && info.accumulator != filter.accumulator) continue;
      if ((info.spaces & filter.spaces) == 0) continue;
      if (filter.compute_capability != 0 && !engine::runs_on(info, filter.compute_capability)) continue;
      list.push_back(info);
    }
  });
  return list;
}

namespace detail {

KernelInfo make_info(std::string_view family, std::string_view variant, std::string_view tile, Spaces spaces,
                     const SemiringInfo& facts) {
  KernelInfo info;
  info.family = family;
  info.variant = variant;
  info.semiring = facts.name;
  info.semiring_type = facts.type;
  info.element = facts.element;
  info.accumulator = facts.accumulator;
  info.spaces = spaces;
  info.facts = &facts;
  set_name(info, tile);
  return info;
}

void set_name(KernelInfo& info, std::string_view tile) {
  info.name = info.family + '.' + info.semiring + '.' + name(info.element);
  if (info.accumulator == Scalar::f16 || info.accumulator == Scalar::bf16)
    info.name += std::string("_") + name(info.accumulator);
  for (const std::string_view part : {std::string_view(info.variant), tile})
    if (!part.empty()) info.name += '.' + std::string(part);
}

void set_variant(KernelInfo& info, std::string_view variant) {
  info.variant = variant;
  set_name(info, {});
}

}  // namespace detail

}  // namespace rigel
