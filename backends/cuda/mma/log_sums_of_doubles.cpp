// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: log_plus of doubles as products of exponentials. options.precision says whether a call admits them.
#include <rigel/backends/cuda/mma/contract.hpp>
#include <rigel/backends/cuda/mma/log_sums_of_doubles.hpp>
#include <rigel/backends/cuda/mma/register.hpp>
#include <rigel/detail/workspace.hpp>

namespace rigel::backends::mma {
namespace {

/// Elements along K whose products are summed by themselves.
constexpr Decomposition levels{1, 1, 512};

std::int64_t groups_of(std::int64_t lines) { return (lines + LinesOfDoubles::of_block - 1) / LinesOfDoubles::of_block; }

/// Offsets in the workspace, in bytes.
struct Places {
  std::size_t exponentials_a, exponentials_b, lines_a, lines_b, bits, met, count, list, before, end;

  explicit Places(const Contraction& p) {
    detail::WorkspaceLayout layout;
    const std::int64_t a = matrices_of(p.a) * p.m, b = matrices_of(p.b) * p.n, cells = Marks::cells_of(p),
                       pitch = pitch_of(p.k, sizeof(double));
    exponentials_a = layout.add(a * pitch, sizeof(double));
    exponentials_b = layout.add(b * pitch, sizeof(double));
    lines_a = layout.add(a, sizeof(LineOfDoubles));
    lines_b = layout.add(b, sizeof(LineOfDoubles));
    bits = layout.add(cells * Marks::words, sizeof(std::uint32_t));
    met = layout.add(cells, sizeof(std::uint32_t));
    count = layout.add(1, sizeof(std::uint32_t));
    list = layout.add(cells, sizeof(std::uint32_t));
    before = layout.add(p.accumulate ? p.batch * p.m * p.n : 0, sizeof(double));
    end = layout.bytes();
  }
};

WorkspaceSize workspace_of_log_sums(const Kernel<Contraction>&, const Contraction& p, const Plan&) {
  return {.bytes = Places(p).end};
}

Status supports_log_sums(const Contraction& p) {
  if (const Status status = Marks::supports(p); !status) return status;
  if (p.k > std::numeric_limits<std::int32_t>::max() / 4) return {Decline::extents, "K is 2^29 or more"};
  if (matrices_of(p.a) * groups_of(p.m) + matrices_of(p.b) * groups_of(p.n) > max_grid)
    return {Decline::extents, "the operands have too many lines for one launch"};
  const Status status = detail::finish_supports<detail::ProgramFinish>(p);
  return status ? needs_other_residual(p) : status;
}

template <class Shape>
double cost_of_log_sums(const Contraction& p) {
  return costs::log_sums_seconds(
      p, tile_of<Shape>(),
      {.tiles = number_of_tiles<Shape>(p),
       .steps = static_cast<double>(p.k),
       .elements = static_cast<double>(matrices_of(p.a) * p.m + matrices_of(p.b) * p.n) * static_cast<double>(p.k),
       .of_doubles = true});
}

template <class Shape>
void run_log_sums(const KernelInfo& info, const Contraction& p, void* workspace) {
  using S = plus_times<double>;  // LogOfSumOfDoubles returns results
  if (p.batch * p.m * p.n == 0) return;
  const cuda::Launches launches(p, info.name);
  constexpr int bytes = shared_bytes<Shape, double>;
  static cuda::LaunchFacts facts;
  const auto function = reinterpret_cast<const void*>(
      &multiply<S, double, levels, detail::ProgramFinish, Shape, Direction::along_k, Direction::along_k, LogOfSumOfDoubles>);
  facts.find(function, bytes, launches);  // before anything is enqueued
  const Places places(p);
  const auto at = [&]<class T>(T*, std::size_t place) {
    return reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + place);
  };
  constexpr double* numbers = nullptr;
  constexpr LineOfDoubles* lines = nullptr;
  constexpr std::uint32_t* words = nullptr;

  const std::int64_t pitch = pitch_of(p.k, sizeof(double));
  const auto lines_of = [&](const Lines& g, std::size_t to, std::size_t of_lines) {
    return LinesOfDoubles{static_cast<const double*>(g.operand->data),
                          g.operand->batch_stride,
                          g.line_stride,
                          g.k_stride,
                          g.lines,
                          g.k,
                          pitch,
                          static_cast<unsigned>(groups_of(g.lines)),
                          at(numbers, to),
                          at(lines, of_lines)};
  };
  const LinesOfDoubles a = lines_of(lines_of_a(p), places.exponentials_a, places.lines_a),
                       b = lines_of(lines_of_b(p), places.exponentials_b, places.lines_b);
  const auto blocks_of_a = static_cast<unsigned>(matrices_of(p.a) * a.groups),
             blocks_of_b = static_cast<unsigned>(matrices_of(p.b) * b.groups);
  launches(exponentials_of_doubles, blocks_of_a + blocks_of_b, LinesOfDoubles::threads, 0, a, b, blocks_of_a,
           at(words, places.bits), static_cast<std::int64_t>((places.list - places.bits) / sizeof(std::uint32_t)));

  const auto g = detail::arguments_of<LogPlusOfDoubles, detail::ProgramFinish>(p);
  detail::Arguments<S, detail::ProgramFinish> arguments{g, g.c, g.c_strides, S{}, nullptr, g.finish, false, false};
  LogOfSumOfDoubles result{
      {},
      g,
      a.of_lines,
      b.of_lines,
      matrices_of(p.a) > 1 ? p.m : 0,
      matrices_of(p.b) > 1 ? p.n : 0,
      at(numbers, places.before),
      Marks::in(p, at(words, places.bits), at(words, places.met), at(words, places.list), at(words, places.count))};
  Operands<double> operands{{a.to, matrices_of(p.a) > 1 ? p.m * pitch : 0, pitch},
                            {b.to, matrices_of(p.b) > 1 ? p.n * pitch : 0, pitch},
                            static_cast<int>(pitch)};
  tile::Raster raster{0, static_cast<unsigned>(rows_of<Shape>(p)), static_cast<unsigned>(columns_of<Shape>(p))};
  auto tiles = static_cast<unsigned>(p.batch * raster.rows * raster.columns);
  void* list[] = {&operands, &arguments, &result, &raster, &tiles};
  launch_tiles<Shape>(function, tiles, bytes, list, p, false, launches);

  const auto processors = static_cast<unsigned>(std::max(p.execution.multiprocessors, 1));
  launches(compute_marked_doubles, std::min(2 * static_cast<unsigned>(Marks::cells_of(p)), processors), 256, 0, result);
}

template <class Shape>
Kernel<Contraction> kernel_of_log_sums() {
  // In u. Relative to a sum: those of a level in any order, 2 for each exponential, 2 for what underflow lost. Relative to the largest a
  // and b together: 1 for the sum of the maxima, 2 for the differences from them, 4 for the logarithm, 1 for the result, and five times
  // log K. That is 60 for K up to 160,000, and less than K/4 above; adding levels takes K/512. Direct sums have 64 + K/4.
  constexpr Accuracy accuracy = {levels.promoted + 2 + 2 * 2 + 1 + 2 + 4 + 1 + 60, 0.25};
  Kernel<Contraction> k;
  k.info = info_of_tile<LogPlusOfDoubles, Shape>("cuda.mma", Precision::promoted, 16);
  k.info.shared_memory = shared_bytes<Shape, double>;
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = accuracy;
  k.supports = detail::supports_by<supports_log_sums>;
  k.cost = detail::cost_by<cost_of_log_sums<Shape>>;
  k.workspace = workspace_of_log_sums;
  k.run = detail::run_by<run_log_sums<Shape>>;
  return k;
}

}  // namespace

void add_log_sums_of_doubles(Registry<Contraction>& registry) {
  registry.add(kernel_of_log_sums<Shape<4, 2, 32, 32, 4, 1>>());
  registry.add(kernel_of_log_sums<Shape<2, 2, 32, 32, 3, 2>>());
}

}  // namespace rigel::backends::mma
