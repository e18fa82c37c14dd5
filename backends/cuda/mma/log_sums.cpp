// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: log_plus of floats as products of exponentials. options.precision says whether a call admits them.
#include <rigel/backends/cuda/mma/contract.hpp>
#include <rigel/backends/cuda/mma/log_sums_again.hpp>
#include <rigel/backends/cuda/mma/register.hpp>
#include <rigel/detail/workspace.hpp>

namespace rigel::backends::mma {
namespace {

constexpr int threads = Exponentials::threads;

std::int64_t slabs_of(const Product& p) { return (p.k + Exponentials::slab - 1) / Exponentials::slab; }
/// 16-bit numbers in a line of exponentials.
std::int64_t pitch_of_pairs(const Product& p) { return slabs_of(p) * 2 * Exponentials::slab; }
std::int64_t groups_of(const Lines& g) {
  Exponentials e{};
  e.line_stride = g.line_stride, e.k_stride = g.k_stride, e.k = static_cast<int>(g.k);
  return (g.lines + e.lines_of_block() - 1) / e.lines_of_block();
}

/// Offsets in the workspace, in bytes.
struct Places {
  std::size_t exponentials_a, exponentials_b, lines_a, lines_b, bits, met, count, list, before, end;

  explicit Places(const Contraction& p) {
    detail::WorkspaceLayout layout;
    const std::int64_t a = matrices_of(p.a) * p.m, b = matrices_of(p.b) * p.n, cells = Marks::cells_of(p);
    exponentials_a = layout.add(a * pitch_of_pairs(p), sizeof(half));
    exponentials_b = layout.add(b * pitch_of_pairs(p), sizeof(half));
    lines_a = layout.add(a, sizeof(ExponentialLine));
    lines_b = layout.add(b, sizeof(ExponentialLine));
    bits = layout.add(cells * Marks::words, sizeof(std::uint32_t));
    met = layout.add(cells, sizeof(std::uint32_t));
    count = layout.add(1, sizeof(std::uint32_t));
    list = layout.add(cells, sizeof(std::uint32_t));
    before = layout.add(p.accumulate ? p.batch * p.m * p.n : 0, sizeof(float));
    end = layout.bytes();
  }
};

WorkspaceSize workspace_of_log_sums(const Kernel<Contraction>&, const Contraction& p, const Plan&) {
  return {.bytes = Places(p).end};
}

template <class Shape>
Status supports_log_sums(const Contraction& p) {
  if (const Status status = Marks::supports(p); !status) return status;
  if (p.k > std::numeric_limits<std::int32_t>::max() / 4) return {Decline::extents, "K is 2^29 or more"};
  if (matrices_of(p.a) * groups_of(lines_of_a(p)) + matrices_of(p.b) * groups_of(lines_of_b(p)) > max_grid)
    return {Decline::extents, "the operands have too many lines for one launch"};
  const Status status = detail::finish_supports<detail::ProgramFinish>(p);
  return status ? needs_other_residual(p) : status;
}

template <Precision precision, class Shape>
double cost_of_log_sums(const Contraction& p) {
  return costs::log_sums_seconds(
      p, tile_of<Shape>(),
      {.tiles = number_of_tiles<Shape>(p),
       .steps = Exponentials::slab * static_cast<double>(slabs_of(p)),
       .elements = static_cast<double>(matrices_of(p.a) * p.m + matrices_of(p.b) * p.n) * static_cast<double>(p.k),
       .is_promoted = precision == Precision::promoted});
}

template <Decomposition decomposition, class Shape>
void run_log_sums(const KernelInfo& info, const Contraction& p, void* workspace) {
  if (p.batch * p.m * p.n == 0) return;
  const cuda::Launches launches(p, info.name);
  constexpr int bytes = shared_bytes<Shape, float>;
  static cuda::LaunchFacts facts;
  const auto function =
      reinterpret_cast<const void*>(&multiply<plus_times<float>, half, decomposition, detail::ProgramFinish, Shape,
                                              Direction::along_k, Direction::along_k, LogOfSum>);
  facts.find(function, bytes, launches);  // before anything is enqueued
  const Places places(p);
  const auto at = [&]<class T>(T*, std::size_t place) {
    return reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + place);
  };
  constexpr half* numbers = nullptr;
  constexpr ExponentialLine* lines = nullptr;
  constexpr std::uint32_t* words = nullptr;

  const std::int64_t pitch = pitch_of_pairs(p);
  const auto exponentials_of = [&](const Lines& g, std::size_t to, std::size_t of_lines) {
    const Operand& o = *g.operand;
    Exponentials e{static_cast<const float*>(o.data),
                   o.batch_stride,
                   g.line_stride,
                   g.k_stride,
                   g.lines,
                   pitch,
                   static_cast<int>(p.k),
                   static_cast<unsigned>(groups_of(g)),
                   0,
                   at(numbers, to),
                   at(lines, of_lines)};
    e.count = 1 / e.unit();
    return e;
  };
  ExponentialsOfBoth both{exponentials_of(lines_of_a(p), places.exponentials_a, places.lines_a),
                          exponentials_of(lines_of_b(p), places.exponentials_b, places.lines_b), 0, at(words, places.bits),
                          static_cast<std::int64_t>((places.list - places.bits) / sizeof(std::uint32_t))};
  both.blocks_of_a = static_cast<unsigned>(matrices_of(p.a) * both.a.groups);
  const auto blocks = both.blocks_of_a + static_cast<unsigned>(matrices_of(p.b) * both.b.groups);
  launches(exponentials<threads>, blocks, threads, 0, both);

  const auto g = detail::arguments_of<LogPlus, detail::ProgramFinish>(p);
  // LogOfSum returns results, so the store is that of a semiring whose accumulator is a number.
  using S = plus_times<float>;
  detail::Arguments<S, detail::ProgramFinish> arguments{g, g.c, g.c_strides, S{}, nullptr, g.finish, false, false};
  const bool split = info.precision == Precision::split;
  constexpr float most = 16;
  LogOfSum result{
      {},
      g,
      both.a.of_lines,
      both.b.of_lines,
      matrices_of(p.a) > 1 ? p.m : 0,
      matrices_of(p.b) > 1 ? p.n : 0,
      split ? std::numeric_limits<float>::infinity() : most,
      at(static_cast<float*>(nullptr), places.before),
      Marks::in(p, at(words, places.bits), at(words, places.met), at(words, places.list), at(words, places.count))};
  Operands<half> operands{{both.a.to, matrices_of(p.a) > 1 ? p.m * pitch : 0, pitch},
                          {both.b.to, matrices_of(p.b) > 1 ? p.n * pitch : 0, pitch},
                          static_cast<int>(pitch)};
  tile::Raster raster{0, static_cast<unsigned>(rows_of<Shape>(p)), static_cast<unsigned>(columns_of<Shape>(p))};
  auto tiles = static_cast<unsigned>(p.batch * raster.rows * raster.columns);
  void* list[] = {&operands, &arguments, &result, &raster, &tiles};
  const auto processors = static_cast<unsigned>(std::max(p.execution.multiprocessors, 1));
  launch_tiles<Shape>(function, tiles, bytes, list, p, false, launches);  // starting early made calls longer

  const auto cells = static_cast<unsigned>(Marks::cells_of(p));
  launches(compute_marked<threads>, std::min(cells, 2 * processors), threads, 0, result);
}

/// In u. Relative to a sum: the instruction sums pairs over all of K, or over a slab if promoted. Marked outputs are
/// recomputed from floats in two parts, summed over a slab, which weighs more than a slab of pairs. Either kind of parts
/// loses at most 28, and exponentials are within 4 each. Adding slabs takes K/32; direct sums take a sum and a weight for
/// every 8 terms. Relative to the largest a and b together: 1 for the sum of the maxima, 4.5 for the differences from them,
/// 4 for the logarithm, 1 for the result.
constexpr Accuracy accuracy_of_log_sums(Precision precision) {
  constexpr double parts = 28, functions = 2 * 4, exponents = 1 + 4.5 + 4 + 1, of_weight = 4;
  constexpr double of_slab = Exponentials::slab * truncating_accuracy(8, 3).per_term;
  constexpr double of_chunk = (1 + of_weight) / DirectSum::chunk, of_pairs = truncating_accuracy(16).per_term;
  return {of_slab + 2 + parts + functions + exponents, precision == Precision::split ? of_pairs : of_chunk};
}

template <Precision precision, class Shape>
Kernel<Contraction> kernel_of_log_sums() {
  constexpr Decomposition decomposition = precision == Precision::split ? pairs : promoted_pairs;
  Kernel<Contraction> k;
  k.info = info_of_tile<LogPlus, Shape>("cuda.mma", precision, Exponentials::slab);
  k.info.shared_memory = shared_bytes<Shape, float>;
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = accuracy_of_log_sums(precision);
  k.supports = detail::supports_by<supports_log_sums<Shape>>;
  k.cost = detail::cost_by<cost_of_log_sums<precision, Shape>>;
  k.workspace = workspace_of_log_sums;
  k.run = detail::run_by<run_log_sums<decomposition, Shape>>;
  return k;
}

template <Precision precision>
void add_kernels(Registry<Contraction>& registry) {
  registry.add(kernel_of_log_sums<precision, Shape<2, 2, 64, 32, 3, 2>>());
  registry.add(kernel_of_log_sums<precision, Shape<2, 2, 32, 32, 3, 3>>());
}

}  // namespace

void add_log_sums(Registry<Contraction>& registry) {
  add_kernels<Precision::promoted>(registry);
  add_kernels<Precision::split>(registry);
}

}  // namespace rigel::backends::mma
