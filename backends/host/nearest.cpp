// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on hosts: which problems, their cut and predicted time, the centre and scale of the filter, and the launches.
#include <rigel/backends/host/nearest.hpp>
#include <rigel/cpu.hpp>
#include <rigel/detail/execution.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

namespace rigel::backends::host::nearest {

namespace {

double of(std::int64_t x) { return static_cast<double>(x); }
std::int64_t up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

// Offsets in the workspace.
struct Layout {
  std::size_t centre, limits, states, scores, places, best, panels, special, scratch, of_worker, bytes;

  Layout(const Reduction& p, const Geometry& geometry, const Cut& cut) {
    const std::int64_t rows = up(cut.group, geometry.rows), k = p.k;
    detail::WorkspaceLayout layout;
    centre = layout.add(k, sizeof(double));
    limits = layout.add(rows, sizeof(float));
    states = layout.add(rows, sizeof(Row));
    scores = layout.add(rows * cut.capacity, sizeof(float));
    places = layout.add(rows * cut.capacity, sizeof(std::int32_t));
    best = layout.add(rows * p.count, sizeof(detail::Found<double>));
    panels = layout.add(up(cut.part, geometry.columns) * (k + 1), sizeof(float));
    special = layout.add(cut.part, sizeof(std::int32_t));
    of_worker = detail::aligned(scratch_bytes(cut.block_rows, k));
    scratch = layout.add(cut.workers, of_worker);
    bytes = layout.bytes();
  }
};

std::size_t bytes_of(const Reduction& p, const Geometry& geometry, const Cut& cut) { return Layout(p, geometry, cut).bytes; }

}  // namespace

Cut cut_of(const Reduction& p, const Geometry& geometry) {
  // Packed rows of a block stay in a second-level cache, and each thread gets several blocks.
  constexpr std::int64_t block_bytes = 96 << 10, most_rows = 384, blocks_of_thread = 4, least_listed = 32;
  const std::int64_t m = p.m, n = p.n, threads = std::max(1, p.execution.concurrency);
  const std::int64_t fit = block_bytes / (p.k * static_cast<std::int64_t>(sizeof(float)));
  const std::int64_t share = up((m + threads * blocks_of_thread - 1) / (threads * blocks_of_thread), geometry.rows);
  const std::int64_t rows =
      std::max<std::int64_t>(geometry.rows, std::min({fit, most_rows, share}) / geometry.rows * geometry.rows);
  Cut cut{.group = m,
          .part = n,
          .block_rows = static_cast<int>(rows),
          .capacity = static_cast<int>(std::max(least_listed, up(p.count * 5 / 2, 16))),
          .workers = static_cast<int>(std::min(threads, std::max<std::int64_t>(1, (m + rows - 1) / rows)))};
  // Halves what takes more of the workspace until it fits.
  const std::size_t limit = detail::workspace_limit(p);
  const auto of_rows = [&] { return bytes_of(p, geometry, {cut.group, 0, cut.block_rows, cut.capacity, cut.workers}); };
  const auto of_columns = [&] { return bytes_of(p, geometry, {0, cut.part, cut.block_rows, cut.capacity, cut.workers}); };
  while (bytes_of(p, geometry, cut) > limit) {
    const bool has_rows = cut.group > rows * cut.workers, has_columns = cut.part > geometry.columns;
    if (has_rows && (!has_columns || of_rows() >= of_columns()))
      cut.group = std::max(rows * cut.workers, up(cut.group / 2, rows));
    else if (has_columns)
      cut.part = up(cut.part / 2, geometry.columns);
    else
      break;
  }
  return cut;
}

WorkspaceSize workspace_of(const Reduction& p, const Geometry& geometry, const Cut& cut) {
  return {.bytes = bytes_of(p, geometry, cut)};
}

Status supports(const Reduction& p, const Geometry& geometry) {
  const Product& s = p;
  if (p.reducer != Reducer::minimum && p.reducer != Reducer::smallest) return {Decline::other, "finds the smallest only"};
  if (p.count > most_results) return {Decline::extents, "finds the " + std::to_string(most_results) + " smallest at most"};
  if (const Status status = detail::computes_scores(p); !status) return status;
  const bool root = s.program->size() == 1 && s.program->begins_with_root();
  if (!(s.program->empty() || root)) return {Decline::epilogue, "takes scores as they are, or their square roots"};
  if (p.scores.type != s.accumulator) return {Decline::result, "takes scores of the accumulator's type"};
  if (s.batch != 1) return {Decline::batches, "takes single matrices"};
  if (s.k < 1 || s.k > most_numbers) return {Decline::extents, "takes K from 1 to " + std::to_string(most_numbers)};
  if (s.n < 1 || s.n > (std::int64_t{1} << 31) - 1) return {Decline::extents, "takes N from 1 to 2^31 - 1"};
  const std::size_t limit = detail::workspace_limit(p), bytes = bytes_of(p, geometry, cut_of(p, geometry));
  if (bytes > limit)
    return {Decline::memory,
            "needs " + std::to_string(bytes) + " bytes of workspace, more than the limit of " + std::to_string(limit)};
  return {};
}

double seconds_of(const Reduction& p, const Cut& cut, int vector_bytes) {
  // Cycles of a thread: for a score beyond its products, for a number that is packed, for a row and each of its results beyond the
  // products of its exact distances.
  constexpr double of_score = 0.2, of_packed = 4, of_row = 1600, of_result = 150, of_chain = 1.5, least_results = 4;
  const Cpu& cpu = cpu_of(p.execution);
  const double m = of(p.m), n = of(p.n), k = of(p.k), count = of(p.count);
  const double groups = std::ceil(m / of(cut.group)), parts = std::ceil(n / of(cut.part));
  const double scores = m * n * (k / cpu.products(vector_bytes) + of_score);
  const double packing = of_packed * k * (n * groups + m * parts);
  const double rows = m * (of_row + of_result * count + of_chain * (count + least_results) * k);
  return groups * parts * 2 * cpu.launch_seconds + cpu.seconds((scores + packing + rows) / cut.workers);
}

namespace {

template <class Element>
double number_at(const Search& g, std::int64_t n, int k) {
  return static_cast<double>(
      static_cast<chain_t<Element>>(static_cast<const Element*>(g.z)[n * g.of_z.row + k * g.of_z.column]));
}

// The median of what it is given, which it sorts; `none` of nothing.
double median(std::vector<double>& values, double none) {
  if (values.empty()) return none;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The centre: medians of a few columns; and the scale, which makes most coordinates of others somewhat less than 1.
template <class Element>
double place_centre(const Search& g, double* centre) {
  constexpr std::int64_t of_centre = 15, of_scale = 64;
  constexpr int most_exponent = 480;
  std::vector<double> values;
  for (int k = 0; k < g.k; ++k) {
    values.clear();
    for (std::int64_t i = 0; i < std::min(of_centre, g.n); ++i)
      if (const double z = number_at<Element>(g, i * g.n / std::min(of_centre, g.n), k); std::isfinite(z))
        values.push_back(z);
    centre[k] = median(values, 0);
  }
  values.clear();
  for (std::int64_t i = 0; i < std::min(of_scale, g.n); ++i) {
    double largest = 0;
    for (int k = 0; k < g.k; ++k)
      largest = std::max(largest, std::abs(number_at<Element>(g, i * g.n / std::min(of_scale, g.n), k) - centre[k]));
    if (largest > 0 && std::isfinite(largest)) values.push_back(largest);
  }
  const int exponent = std::ilogb(median(values, 0.5)) + 1;
  return std::ldexp(1., -std::clamp(exponent, -most_exponent, most_exponent));
}

}  // namespace

template <class Element>
void run(const Reduction& p, const std::string& label, const Loop& loop, const Cut& cut, void* workspace) {
  const Product& s = p;
  const Layout at(p, loop.geometry, cut);
  auto* const memory = static_cast<std::byte*>(workspace);
  auto* const centre = reinterpret_cast<double*>(memory + at.centre);
  Search g{};
  g.x = s.a.data;
  g.z = s.b.data;
  g.of_x = {nullptr, 0, s.a.row_stride, s.a.column_stride};
  g.of_z = {nullptr, 0, s.b.column_stride, s.b.row_stride};
  g.m = s.m;
  g.n = s.n;
  g.k = static_cast<int>(s.k);
  g.count = static_cast<int>(p.count);
  g.minimum = p.reducer == Reducer::minimum;
  g.root = !s.program->empty();
  g.exclude_self = p.exclude_self;
  g.outputs = detail::ReducedOutputs::of(p);
  g.scale = place_centre<Element>(g, centre);
  g.centre = centre;
  g.panels = reinterpret_cast<float*>(memory + at.panels);
  g.special = reinterpret_cast<std::int32_t*>(memory + at.special);
  g.block_rows = cut.block_rows;
  g.capacity = cut.capacity;
  g.limits = reinterpret_cast<float*>(memory + at.limits);
  g.states = reinterpret_cast<Row*>(memory + at.states);
  g.scores = reinterpret_cast<float*>(memory + at.scores);
  g.places = reinterpret_cast<std::int32_t*>(memory + at.places);
  g.best = memory + at.best;

  detail::with_instance(detail::compiled_host_spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Static>, Kokkos::IndexType<int>>;
    // Workers take items until none is left. A host launch is complete when Kokkos returns from it, so the pointers stay valid.
    const auto launch = [&](std::int64_t items, const auto& work) {
      std::atomic<std::int64_t> next = 0;
      Kokkos::parallel_for(label, Policy(exec, 0, cut.workers, Kokkos::ChunkSize(1)),
                           [&work, items, taken = &next](const int worker) {
                             for (std::int64_t i = (*taken)++; i < items; i = (*taken)++) work(i, worker);
                           });
    };
    for (g.first_row = 0; g.first_row < g.m; g.first_row += cut.group) {
      g.rows = std::min(cut.group, g.m - g.first_row);
      for (g.first_column = 0; g.first_column < g.n; g.first_column += cut.part) {
        g.columns = std::min(cut.part, g.n - g.first_column);
        g.is_first = g.first_column == 0;
        g.is_last = g.first_column + g.columns >= g.n;
        const std::int64_t width = loop.geometry.columns;
        if (g.first_row == 0 || cut.part < g.n) {  // else all panels are there
          launch((g.columns + width - 1) / width, [&](std::int64_t panel, int) { loop.pack(g, panel); });
          g.specials = 0;
          for (std::int64_t n = 0; n < g.columns; ++n)
            if (g.panels[n / width * g.panel_floats(static_cast<int>(width)) + n % width] >= absent)
              g.special[g.specials++] = static_cast<std::int32_t>(g.first_column + n);
        }
        launch((g.rows + g.block_rows - 1) / g.block_rows, [&](std::int64_t block, int worker) {
          loop.search(g, block, memory + at.scratch + static_cast<std::size_t>(worker) * at.of_worker);
        });
      }
    }
  });
}

template void run<float>(const Reduction&, const std::string&, const Loop&, const Cut&, void*);
template void run<double>(const Reduction&, const std::string&, const Loop&, const Cut&, void*);
template void run<half>(const Reduction&, const std::string&, const Loop&, const Cut&, void*);
template void run<bfloat16>(const Reduction&, const std::string&, const Loop&, const Cut&, void*);

}  // namespace rigel::backends::host::nearest
