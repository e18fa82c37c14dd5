// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.points: weighted and softmax-weighted sums of many columns of V.
#include <rigel/backends/cuda/reduce/wide.hpp>

#include <rigel/backends/cuda/reduce/points_call.hpp>
#include <rigel/backends/cuda/reduce/register.hpp>

namespace rigel::backends::points {
namespace {

using E = Expanded;

/// Rows and tiles of columns that are in memory at a time. The latter depend on the limit alone.
struct WideCut {
  std::int64_t rows = 0;
  std::int32_t tiles = 0, all_tiles = 0;
  std::size_t centre = 0, columns = 0, states = 0, bytes = 0;  // offsets in the workspace
};

WideCut cut_of(const Reduction& p) {
  constexpr std::int64_t most_tiles = 512;  // whose products are added in float
  const std::size_t limit = detail::workspace_limit(p);
  WideCut cut;
  cut.all_tiles = static_cast<std::int32_t>((p.n + E::columns - 1) / E::columns);
  const auto fit = static_cast<std::int64_t>(limit / 2 / Wide::tile_bytes);
  cut.tiles = static_cast<std::int32_t>(std::clamp<std::int64_t>(std::min<std::int64_t>(fit, cut.all_tiles), 1, most_tiles));
  const auto most_rows = static_cast<std::int64_t>(limit / 2 / sizeof(WideRow)) / Wide::rows * Wide::rows;
  cut.rows = std::min(p.m, std::max<std::int64_t>(most_rows, Wide::rows));
  cut.centre = detail::aligned(Wide::most_rights * sizeof(unsigned));
  cut.columns = cut.centre + detail::aligned(E::numbers * sizeof(float));
  cut.states = cut.columns + detail::aligned(static_cast<std::size_t>(cut.tiles) * Wide::tile_bytes);
  cut.bytes = cut.states + static_cast<std::size_t>(cut.rows) * sizeof(WideRow);
  return cut;
}

template <bool softmax>
Status wide_supports(const Kernel<Reduction>&, const Reduction& p) {
  if (is_weighted(p.reducer) && (rights_of(p) <= most_rights || rights_of(p) > Wide::most_rights))
    return {Decline::extents,
            "takes " + std::to_string(most_rights + 1) + " to " + std::to_string(Wide::most_rights) + " columns of V"};
  if (!is_weighted(p.reducer)) return {Decline::other, std::string("has no ") + name(p.reducer)};
  if (p.k < 1 || p.k > E::numbers) return {Decline::extents, "takes K from 1 to " + std::to_string(E::numbers)};
  Reduction few = p;  // all else is as in few dimensions and columns of V
  few.k = 1;
  few.count = 1;
  if (const Status status = takes<softmax, float>(few); !status) return status;
  if (p.ranges || p.exclude_self)
    return {Decline::other, "leaves out no scores: tiles of columns are prepared for all rows"};
  if (p.batch != 1) return {Decline::batches, "takes single matrices"};
  if (p.n < 1) return {Decline::extents, "takes one column at least"};
  if (form_of(p)->of != Of::square) return {Decline::epilogue, "takes squared distances"};
  if (Wide::shared_bytes > p.execution.shared_memory)
    return {Decline::memory, "needs " + std::to_string(Wide::shared_bytes) + " bytes of shared memory"};
  return {};
}

double wide_cost(const Kernel<Reduction>&, const Reduction& p, Plan& plan) {
  const WideCut cut = cut_of(p);
  plan.keep(cut);
  return costs::expanded_seconds(p, {.rows = Wide::rows,
                                     .columns = Wide::columns,
                                     .numbers = E::numbers,
                                     .parts = (cut.all_tiles + cut.tiles - 1) / cut.tiles,
                                     .slices = 1,
                                     .slice_tiles = std::min(cut.tiles, cut.all_tiles),
                                     .instructions = 17,
                                     .products = 6,
                                     .resident = 2});
}

template <bool softmax>
void wide_run(const Kernel<Reduction>& kernel, const Reduction& p, const Plan& plan, const Workspace& workspace) {
  const auto cut = plan.get<WideCut>();
  Form form = *form_of(p);
  if (!softmax) form.factor /= log2_e;  // values are exponentials of scores
  auto* const memory = static_cast<unsigned char*>(workspace.data);
  WideCall g{};
  g.expanded = expanded_call_of(call_of(p, form), form.factor, std::abs(form.factor) * log2_e);
  auto* const centre = reinterpret_cast<float*>(memory + cut.centre);
  g.expanded.centre = centre;
  g.expanded.tiles = memory + cut.columns;
  g.largest = reinterpret_cast<unsigned*>(memory);
  g.states = reinterpret_cast<WideRow*>(memory + cut.states);
  const cuda::Launches launches(p, kernel.info.name);
  const auto launch = [&](const void* function, std::int64_t blocks, int block, int bytes, auto&... arguments) {
    void* list[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    launches(function, static_cast<unsigned>(blocks), block, bytes, list);
  };
  const auto function = reinterpret_cast<const void*>(&add_wide<softmax>);
  static cuda::LaunchFacts facts;
  facts.find(function, Wide::shared_bytes, launches);
  launches.check(cudaMemsetAsync(g.largest, 0, Wide::most_rights * sizeof(unsigned), launches.stream()),
                 "cudaMemsetAsync before the launch");
  launch(reinterpret_cast<const void*>(&find_largest<0>), std::clamp<std::int64_t>(p.n / 64, 1, 256), 256, 0, g);
  launch(reinterpret_cast<const void*>(&find_middle<0>), 1, E::numbers, 0, g.expanded, centre);
  for (g.first_row = 0; g.first_row < p.m; g.first_row += cut.rows) {
    g.row_count = std::min(cut.rows, p.m - g.first_row);
    for (std::int32_t first = 0; first < cut.all_tiles; first += cut.tiles) {
      g.expanded.first_column = std::int64_t{first} * E::columns;
      g.expanded.tiles_in_memory = std::min(cut.tiles, cut.all_tiles - first);
      g.is_first = first == 0;
      launch(reinterpret_cast<const void*>(&prepare_wide<softmax>),
             (std::int64_t{g.expanded.tiles_in_memory} * E::columns * 8 + 255) / 256, 256, 0, g);
      launch(function, (g.row_count + Wide::rows - 1) / Wide::rows, Wide::threads, Wide::shared_bytes, g);
    }
    launch(reinterpret_cast<const void*>(&store_wide<softmax>), (g.row_count * Wide::most_rights + 255) / 256, 256, 0, g);
  }
}

template <bool softmax>
Kernel<Reduction> wide() {
  Kernel<Reduction> k;
  k.info =
      detail::info_of<l2_squared<float>>("cuda.points", softmax ? "wide_softmax" : "wide_weighted", "", bit(Space::cuda));
  k.info.threads = Wide::threads;
  k.info.min_compute_capability = 80;
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.precision = Precision::promoted;
  // Of weighted sums more than `automatic` takes: small sums next to a large weight or number lose digits (docs/numerics.md).
  k.info.relative_error = (softmax ? 336 : 996) * 0x1p-24;
  k.info.raw_launch = true;
  k.supports = wide_supports<softmax>;
  k.cost = wide_cost;
  k.workspace = [](const Kernel<Reduction>&, const Reduction&, const Plan& plan) {
    return WorkspaceSize{.bytes = plan.get<WideCut>().bytes};
  };
  k.run = wide_run<softmax>;
  return k;
}

}  // namespace

void add_wide_sums(Registry<Reduction>& registry) {
  registry.add(wide<false>());
  registry.add(wide<true>());
}

}  // namespace rigel::backends::points
