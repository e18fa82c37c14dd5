// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "listing.hpp"

#include "guard.hpp"
#include "json.hpp"

#include <rigel/gradient_problem.hpp>
#include <rigel/reduction_problem.hpp>
#include <rigel/solve.hpp>

#include <cstdlib>
#include <cstring>
#include <iterator>

namespace rigel::c {
namespace {

std::string spaces_of(const KernelInfo& info) {
  json::Array list;
  for (const Space space : {Space::serial, Space::openmp, Space::threads, Space::cuda, Space::other})
    if ((info.spaces & bit(space)) != 0) list.add(name(space));
  return list.text();
}

std::string promises_of(const KernelInfo& info) {
  json::Array list;
  for (const Promise one : {Promise::reference_bits, Promise::repeatable, Promise::batch_invariant})
    if (covers(info.promises, one)) list.add(describe(one));
  return list.text();
}

// What contract() needs of A, B and C; other operations state no layouts.
std::string operands_of(const KernelInfo& info, std::string_view operation) {
  json::Object object;
  constexpr const char* names[] = {"A", "B", "C"};
  for (std::size_t i = 0; operation == Contraction::operation && i < std::size(names); ++i)
    object.add_json(
        names[i],
        json::Object().add("layout", name(info.operands[i].layout)).add("alignment", info.operands[i].alignment).text());
  return object.text();
}

// The kernels that came with a call do not name their operation.
std::string json_of(const KernelInfo& info, std::string_view operation) {
  const std::string tile = json::Object().add("m", info.tile.m).add("n", info.tile.n).add("k", info.tile.k).text();
  const std::string accuracy = json::Object()
                                   .add("constant", info.accuracy.constant)
                                   .add("per_term", info.accuracy.per_term)
                                   .add("part", info.accuracy.part)
                                   .text();
  return json::Object()
      .add("name", info.name)
      .add("family", info.family)
      .add("variant", info.variant)
      .add("operation", operation)
      .add("semiring", info.semiring)
      .add("element", name(info.element))
      .add("accumulator", name(info.accumulator))
      .add_json("operands", operands_of(info, operation))
      .add_json("spaces", spaces_of(info))
      .add("min_compute_capability", info.min_compute_capability)
      .add("max_compute_capability", info.max_compute_capability)
      .add_json("tile", tile)
      .add("stages", info.stages)
      .add("threads", info.threads)
      .add("shared_memory", info.shared_memory)
      .add_json("promises", promises_of(info))
      .add("bit_class", bit_class_of(info))
      .add("precision", name(info.precision))
      .add_json("accuracy", accuracy)
      .add("relative_error", info.relative_error)
      .add("truncates", info.truncates)
      .add("accumulates", info.accumulates)
      .add("transposes", info.transposes != Transposes::no)
      .text();
}

template <class Problem>
std::string json_of(const Candidate<Problem>& one) {
  json::Object object;
  object.add("kernel", one.kernel->info.name).add("chosen", one.chosen).add("covers", static_cast<bool>(one.status));
  if (one.status)
    object.add("seconds", one.seconds).add("workspace_bytes", one.workspace.bytes).add("admission", one.admission);
  else
    object.add("reason", one.status.reason);
  return object.add_json("facts", json_of(one.kernel->info, Problem::operation)).text();
}

}  // namespace

template <class Problem>
std::string json_of(const std::string& summary, const std::vector<Candidate<Problem>>& candidates, const char* part) {
  json::Array list;
  for (const auto& one : candidates) list.add_json(json_of(one));
  json::Object object;
  if (part) object.add("part", part);
  return object.add("problem", summary).add_json("candidates", list.text()).text();
}
template std::string json_of(const std::string&, const std::vector<Candidate<Contraction>>&, const char*);
template std::string json_of(const std::string&, const std::vector<Candidate<Gradient>>&, const char*);
template std::string json_of(const std::string&, const std::vector<Candidate<Reduction>>&, const char*);
template std::string json_of(const std::string&, const std::vector<Candidate<Solve>>&, const char*);

char* text_of(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_kernels(const char* name, char** json) {
  return guarded("rigel_kernels", [&] {
    char*& text = result(json, "json");
    json::Array list;
    for (const rigel::KernelInfo& info : rigel::kernels({.name = name ? name : ""}))
      list.add_json(json_of(info, info.operation));
    text = text_of(list.text());
  });
}

void rigel_free(char* text) { std::free(text); }
