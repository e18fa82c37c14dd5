// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.best: which calls of reduce() it takes, and its launch.
#include <rigel/backends/cuda/reduce/best.hpp>

#include <rigel/backends/cuda/costs/best.hpp>
#include <rigel/backends/cuda/reduce/register.hpp>
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/detail/kernel.hpp>

#include <string>

namespace rigel::backends::best {
namespace {

int bytes_of(const Reduction& p) { return Layout::of(static_cast<int>(p.k), static_cast<int>(p.count)).bytes; }

Status supports(const Kernel<Reduction>&, const Reduction& p) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() - columns;
  if (p.reducer != Reducer::smallest) return {Decline::other, std::string("has no ") + name(p.reducer)};
  if (p.count > most_results) return {Decline::extents, "finds the " + std::to_string(most_results) + " smallest at most"};
  if (const Status status = detail::computes_scores(p); !status) return status;
  if (!p.program->empty()) return {Decline::epilogue, "takes scores as they are"};
  if (p.scores.type != Scalar::f32) return {Decline::result, "computes scores of f32"};
  if (p.batch != 1) return {Decline::batches, "takes single matrices"};
  if (p.k < 1 || p.k > most_numbers) return {Decline::extents, "takes K from 1 to " + std::to_string(most_numbers)};
  if (p.n < 1 || p.n > most || p.m > most)
    return {Decline::extents, "takes up to 2^31 - 257 rows, and as many columns, but at least one"};
  if (const int bytes = bytes_of(p); bytes > p.execution.shared_memory)
    return {Decline::memory, "needs " + std::to_string(bytes) + " bytes of shared memory"};
  return {};
}

double cost(const Kernel<Reduction>&, const Reduction& p, Plan&) {
  return costs::seconds(p, {.rows = rows, .columns = columns, .depth = depth});
}

void run(const Kernel<Reduction>& kernel, const Reduction& p, const Plan&, const Workspace&) {
  Call g{};
  g.x = static_cast<const float*>(p.a.data);
  g.z = static_cast<const float*>(p.b.data);
  g.x_row = p.a.row_stride;
  g.x_number = p.a.column_stride;
  g.z_row = p.b.column_stride;
  g.z_number = p.b.row_stride;
  g.m = static_cast<std::int32_t>(p.m);
  g.n = static_cast<std::int32_t>(p.n);
  g.k = static_cast<std::int32_t>(p.k);
  g.count = static_cast<std::int32_t>(p.count);
  g.in_fours = p.k % depth == 0 && g.z_number == 1 && g.z_row % 4 == 0 && reinterpret_cast<std::uintptr_t>(g.z) % 16 == 0;
  g.exclude_self = p.exclude_self;
  g.outputs = detail::ReducedOutputs::of(p);
  const cuda::Launches launches(p, kernel.info.name);
  const auto function = reinterpret_cast<const void*>(&find_best<0>);
  static cuda::LaunchFacts facts;
  const int most_bytes = Layout::of(most_numbers, most_results).bytes;
  facts.find(function, std::min(most_bytes, p.execution.shared_memory), launches);
  void* list[] = {&g};
  launches(function, static_cast<unsigned>((p.m + rows - 1) / rows), threads, bytes_of(p), list);
}

}  // namespace

void add(Registry<Reduction>& registry) {
  Kernel<Reduction> k;
  k.info = detail::info_of<l1<float>>("cuda.best", "", "", bit(Space::cuda));
  k.info.tile = {rows, columns, depth};
  k.info.threads = threads;
  k.info.min_compute_capability = 80;
  k.info.promises = Promise::repeatable | Promise::batch_invariant | Promise::reference_bits;
  k.info.accuracy = detail::chain_accuracy<l1<float>>();
  k.info.raw_launch = true;
  k.supports = supports;
  k.cost = cost;
  k.run = run;
  registry.add(k);
}

}  // namespace rigel::backends::best
