// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.points: weighted sums and log-sum-exp of squared distances with products on tensor cores.
#include <rigel/backends/cuda/reduce/expanded.hpp>

#include <rigel/backends/cuda/reduce/points_call.hpp>
#include <rigel/backends/cuda/reduce/register.hpp>

namespace rigel::backends::points {
namespace {

using E = Expanded;

/// Columns come into memory so many tiles at a time, in `parts`; each part is cut into slices.
struct ExpandedCut {
  std::int32_t parts = 1, part_tiles = 0, slices = 1, slice_tiles = 0;
  std::size_t tiles = 0, states = 0, bytes = 0;  // offsets in the workspace
};

/// Columns of V that kernels have: none, 1 or 4.
int rights_of_kernel(const Reduction& p) {
  const std::int32_t rights = rights_of(p);
  return rights <= 1 ? rights : E::most_rights;
}

std::int64_t units_of(const Reduction& p) { return (p.m + rows_of_block<float> - 1) / rows_of_block<float>; }

/// The cut with so many slices of a part. The parts depend on N and on the limit alone.
template <bool softmax>
ExpandedCut cut_of(const Reduction& p, std::int32_t slices) {
  const std::size_t tile = static_cast<std::size_t>(E::tile_bytes(rights_of_kernel(p))), limit = detail::workspace_limit(p);
  const auto all = static_cast<std::int32_t>((p.n + E::columns - 1) / E::columns);
  ExpandedCut cut;
  const auto most = static_cast<std::int64_t>(std::max<std::size_t>(limit / 2 / tile, 1));
  cut.parts = static_cast<std::int32_t>((all + most - 1) / most);
  cut.part_tiles = (all + cut.parts - 1) / cut.parts;
  cut.slice_tiles = (cut.part_tiles + slices - 1) / slices;
  cut.slices = (cut.part_tiles + cut.slice_tiles - 1) / cut.slice_tiles;
  cut.tiles = detail::aligned(E::numbers * sizeof(float));
  cut.states = cut.tiles + detail::aligned(static_cast<std::size_t>(cut.part_tiles) * tile);
  const std::size_t row = sizeof(double) * static_cast<std::size_t>(state_numbers(softmax, rights_of(p)));
  cut.bytes = cut.states + detail::aligned(static_cast<std::size_t>(units_of(p)) * rows_of_block<float> * row *
                                           static_cast<std::size_t>(cut.parts) * static_cast<std::size_t>(cut.slices));
  return cut;
}

template <bool softmax>
Status expanded_supports(const Kernel<Reduction>&, const Reduction& p) {
  if (p.k <= most_dimensions || p.k > E::numbers)
    return {Decline::extents, "takes K from " + std::to_string(most_dimensions + 1) + " to " + std::to_string(E::numbers)};
  Reduction few = p;  // all else is as in few dimensions
  few.k = most_dimensions;
  if (const Status status = takes<softmax, float>(few); !status) return status;
  if (p.ranges || p.exclude_self)
    return {Decline::other, "leaves out no scores: tiles of columns are prepared for all rows"};
  if (p.batch != 1) return {Decline::batches, "takes single matrices"};
  if (p.n < 1) return {Decline::extents, "takes one column at least"};
  if (form_of(p)->of != Of::square) return {Decline::epilogue, "takes squared distances"};
  if (const std::size_t bytes = cut_of<softmax>(p, 1).bytes, limit = detail::workspace_limit(p); bytes > limit)
    return {Decline::memory, "columns as halves and sums of rows take " + std::to_string(bytes) + " bytes, more than the " +
                                 std::to_string(limit) + " of the workspace's limit"};
  if (E::shared_bytes(E::most_rights) > p.execution.shared_memory)
    return {Decline::memory, "needs " + std::to_string(E::shared_bytes(E::most_rights)) + " bytes of shared memory"};
  return {};
}

template <bool softmax>
double expanded_cost(const Kernel<Reduction>&, const Reduction& p, Plan& plan) {
  double best = std::numeric_limits<double>::infinity();
  const std::int32_t most = covers(p.require, Promise::batch_invariant) ? 1 : 64;
  for (std::int32_t slices = 1; slices <= most; slices += 1 + slices / 4) {
    const ExpandedCut cut = cut_of<softmax>(p, slices);
    if (cut.slices != slices) continue;
    if (slices > 1 && cut.bytes > detail::workspace_limit(p)) break;
    const double seconds = costs::expanded_seconds(p, {.rows = E::rows,
                                                       .columns = E::columns,
                                                       .numbers = E::numbers,
                                                       .parts = cut.parts,
                                                       .slices = cut.slices,
                                                       .slice_tiles = cut.slice_tiles,
                                                       .instructions = (softmax ? 10. : 5.) + rights_of_kernel(p)});
    if (seconds < best) {
      best = seconds;
      plan.keep(cut);
    }
  }
  return best;
}

template <bool softmax>
void expanded_run(const Kernel<Reduction>& kernel, const Reduction& p, const Plan& plan, const Workspace& workspace) {
  const auto cut = plan.get<ExpandedCut>();
  const Form form = *form_of(p);
  auto* const memory = static_cast<unsigned char*>(workspace.data);
  ExpandedCall g = expanded_call_of(call_of(p, form), form.factor, std::abs(form.factor) * (softmax ? log2_e : 1));
  g.given.states = reinterpret_cast<double*>(memory + cut.states);
  g.given.slices = cut.parts * cut.slices;
  auto* const centre = reinterpret_cast<float*>(memory);
  g.centre = centre;
  g.tiles = memory + cut.tiles;
  const cuda::Launches launches(p, kernel.info.name);
  const auto launch = [&](const void* function, std::int64_t blocks, int block, int bytes, auto&... arguments) {
    void* list[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    launches(function, static_cast<unsigned>(blocks), block, bytes, list);
  };
  launch(reinterpret_cast<const void*>(&find_middle<0>), 1, E::numbers, 0, g, centre);
  const auto all = static_cast<std::int32_t>((p.n + E::columns - 1) / E::columns);
  const auto with_rights = [&]<int R>() {
    const auto function = reinterpret_cast<const void*>(&expand_points<R, softmax>);
    static cuda::LaunchFacts facts;
    facts.find(function, E::shared_bytes(R), launches);
    for (std::int32_t part = 0; part < cut.parts; ++part) {
      const std::int32_t first = part * cut.part_tiles;
      g.first_column = std::int64_t{first} * E::columns;
      g.tiles_in_memory = std::min(cut.part_tiles, all - first);
      g.slice_tiles = cut.slice_tiles;
      g.first_slice = part * cut.slices;
      const std::int64_t prepared = std::int64_t{g.tiles_in_memory} * E::columns * 8;
      launch(reinterpret_cast<const void*>(&prepare_columns<R, softmax>), (prepared + 255) / 256, 256, 0, g);
      launch(function, (p.m + E::rows - 1) / E::rows * cut.slices, E::threads, E::shared_bytes(R), g);
    }
  };
  const int rights = rights_of_kernel(p);
  if constexpr (softmax)
    if (rights == 0) with_rights.template operator()<0>();
  if (rights == 1) with_rights.template operator()<1>();
  if (rights > 1) with_rights.template operator()<E::most_rights>();
  launch(reinterpret_cast<const void*>(&join_points<softmax, float>),
         std::int64_t{g.given.units} * (rows_of_block<float> / threads), threads, 0, g.given);
}

template <bool softmax>
Kernel<Reduction> expanded() {
  Kernel<Reduction> k;
  k.info = detail::info_of<l2_squared<float>>("cuda.points", softmax ? "expanded_softmax" : "expanded_weighted", "",
                                              bit(Space::cuda));
  k.info.threads = E::threads;
  k.info.min_compute_capability = 80;
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.precision = Precision::promoted;
  k.info.relative_error = 336 * 0x1p-24;
  k.info.raw_launch = true;
  k.supports = expanded_supports<softmax>;
  k.cost = expanded_cost<softmax>;
  k.workspace = [](const Kernel<Reduction>&, const Reduction&, const Plan& plan) {
    return WorkspaceSize{.bytes = plan.get<ExpandedCut>().bytes};
  };
  k.run = expanded_run<softmax>;
  return k;
}

}  // namespace

void add_expanded(Registry<Reduction>& registry) {
  registry.add(expanded<false>());
  registry.add(expanded<true>());
}

}  // namespace rigel::backends::points
