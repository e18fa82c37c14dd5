// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For few outputs and any K: threads read operands straight from global memory, and several share an output's K. Such a call
// takes a launch, the instructions that its blocks must fetch first, and dependent round trips to memory. So the code is
// short, a thread has several k in flight, and nothing is staged.
//
// Thread q of an output's 2^parts takes k = q, q + 2^parts, …. They join their results pairwise within a warp, then warp by
// warp: the result is the same in every run, but sums that round do not have the reference's bits.
#pragma once

#include <rigel/backends/cuda/simt/few.hpp>
#include <rigel/backends/cuda/simt/slices.hpp>

namespace rigel::backends::simt {

/// A block computes 2^columns columns by SplitK<S>::rows rows, with 2^parts threads for each column. `swapped`: the columns
/// are rows of C; the arguments' A is then Bᵀ, their B is Aᵀ.
struct SplitKShape {
  int columns = 0, parts = 0;
  bool k_first = true;  // neighbouring threads take neighbouring k, else neighbouring columns
  bool swapped = false;
  bool flipped = false;                   // the grid's x counts blocks along the columns, else along the rows
  unsigned first_y = 0, first_batch = 0;  // of this launch's blocks

  int threads() const { return columns + parts; }  // of a block, as a binary logarithm
};

/// A thread's registers, and the most threads per block that they allow.
template <class S>
struct SplitK {
  static constexpr int operand = registers_of<typename S::element>, accumulator = registers_of<typename S::accumulator>;
  static constexpr int rows = 2;                                                                // outputs of a thread
  static constexpr int depth = operand > 2 ? 1 : operand == 2 || is_transcendental<S> ? 2 : 4;  // k at a time
  static constexpr int threads = operand > 2 || accumulator > 2 ? 8 : 10;
};

// `shape` comes first: a block that starts reads it and the head of `g` from the same lines of the constant cache.
template <class S, class Finish>
__global__ void __launch_bounds__(1 << SplitK<S>::threads, 1)
    contract_narrow_split_k(const __grid_constant__ SplitKShape shape,
                            const __grid_constant__ detail::Arguments<S, Finish> g) {
  using Accumulator = typename S::accumulator;
  using Operand = operand_t<S>;
  using Element = typename S::element;
  constexpr int rows = SplitK<S>::rows, depth = SplitK<S>::depth;
  extern __shared__ __attribute__((aligned(16))) unsigned char shared[];

  const int thread = static_cast<int>(threadIdx.x);
  const int part_bit = shape.k_first ? 0 : shape.columns, column_bit = shape.k_first ? shape.parts : 0;
  const int part = thread >> part_bit & ((1 << shape.parts) - 1);
  const int column = thread >> column_bit & ((1 << shape.columns) - 1);
  const unsigned y = blockIdx.y + shape.first_y;
  const std::int64_t l = blockIdx.z + shape.first_batch;
  const std::int64_t m0 = std::int64_t{shape.flipped ? y : blockIdx.x} * rows;
  const std::int64_t n0 = std::int64_t{shape.flipped ? blockIdx.x : y} << shape.columns;
  const S s = g.semiring(l);
  Accumulator x[rows];
#pragma unroll
  for (int i = 0; i < rows; ++i) x[i] = S::identity();

  // Beyond the last row, column or k, that one is read again.
  const Element* a[rows];
  a[0] = &g.a.at(l, m0, 0);
#pragma unroll
  for (int i = 1; i < rows; ++i) a[i] = a[i - 1] + (m0 + i < g.m ? g.a.row : 0);
  const Element* const b = &g.b.at(l, 0, n0 + column < g.n ? n0 + column : g.n - 1);
  const auto count = static_cast<unsigned>(g.k);
#pragma unroll 1
  for (unsigned k = static_cast<unsigned>(part); k < count; k += static_cast<unsigned>(depth) << shape.parts) {
    const auto index = [&](int d) { return k + (static_cast<unsigned>(d) << shape.parts); };
    Element values_a[depth][rows], values_b[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      const unsigned at = std::min(index(d), count - 1);
      values_b[d] = b[at * g.b.row];
#pragma unroll
      for (int i = 0; i < rows; ++i) values_a[d][i] = a[i][at * g.a.column];
    }
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      keep(values_b[d]);
#pragma unroll
      for (int i = 0; i < rows; ++i) keep(values_a[d][i]);
    }
    if (static_cast<int>(k) < 0) break;  // never true; ptxas mixes no loads with what follows a branch
#pragma unroll
    for (int d = 0; d < depth; ++d)
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        auto value_a = static_cast<Operand>(values_a[d][i]), value_b = static_cast<Operand>(values_b[d]);
        if constexpr (!is_commutative<S>)
          if (shape.swapped) std::swap(value_a, value_b);
        const Accumulator next = direct_step(s, x[i], value_a, value_b, std::min(index(d), count - 1));
        if (index(d) < count) x[i] = next;
      }
  }

  const int joined = std::max(std::min(shape.parts, 5 - part_bit), 0);  // bits of a part's number within a warp
#pragma unroll 1
  for (int bit = part_bit; bit < part_bit + joined; ++bit)
#pragma unroll
    for (int i = 0; i < rows; ++i) x[i] = s.add(x[i], of_lane(x[i], 1 << bit));
  Accumulator* const sums = reinterpret_cast<Accumulator*>(shared);
  if ((part & ((1 << joined) - 1)) == 0)
#pragma unroll
    for (int i = 0; i < rows; ++i) sums[((part >> joined) * rows + i) << shape.columns | column] = x[i];
  __syncthreads();

  const Store<S, Finish> store(g);
  const int outputs = rows << shape.columns, end = outputs << (shape.parts - joined);
#pragma unroll 1
  for (int o = thread; o < outputs; o += static_cast<int>(blockDim.x)) {
    std::int64_t m = m0 + (o >> shape.columns), n = n0 + (o & ((1 << shape.columns) - 1));
    if (m >= g.m || n >= g.n) continue;
    if (shape.swapped) std::swap(m, n);
    Accumulator sum = sums[o];
#pragma unroll 4
    for (int i = o + outputs; i < end; i += outputs) sum = s.add(sum, sums[i]);
    store(s, added_to_c(g, s, sum, l, m, n), l, m, n);
  }
}

/// What determines the choice of a shape and its time, besides the problem: SplitK<S>, and a multiprocessor's seconds per
/// warp for the steps of a round.
struct SplitKCosts {
  int row_bits, depth_bits, most_threads;
  double warp;
};
template <class S>
constexpr SplitKCosts split_k_costs() {
  using K = SplitK<S>;
  constexpr double step = is_transcendental<S> ? 5.5e-9
                          : is_of_structs<S>   ? 2.7e-9 * std::max(K::accumulator / 2, 1)
                          : K::operand > 1     ? 2.7e-9
                                               : 1.95e-9;
  return {std::bit_width(unsigned{K::rows}) - 1, std::bit_width(unsigned{K::depth}) - 1, K::threads,
          step * K::rows * K::depth};
}

/// How many pieces of memory hold k × lines elements. Strides are in pieces.
inline double pieces_of(double k, double k_stride, double lines, double line_stride) {
  const auto hold = [](double extent, double stride, double inner) {
    return std::max({std::min(extent * inner, extent * stride), inner, 1.});
  };
  if (lines == 1 || (k > 1 && k_stride > line_stride)) return hold(k, k_stride, hold(lines, line_stride, 1));
  return hold(lines, line_stride, hold(k, k_stride, 1));
}

/// The rows or columns of an operand, as blocks read them: lines of 128 bytes that warps request from the L1 cache, and sectors of 32 bytes
/// that the L2 cache sends. A block reads each once. If the L1 cache holds the operand, all blocks together do.
struct SplitKReads {
  double lines, sectors, all_lines = std::numeric_limits<double>::infinity(), all_sectors = all_lines;

  SplitKReads(const Contraction& p, bool of_a, std::int64_t count) {
    constexpr double cached_lines = 1500, line = 128, sector = 32;
    const auto number = [](std::int64_t i) { return std::abs(static_cast<double>(i)); };
    const Operand& o = of_a ? p.a : p.b;
    const double k = number(p.k), k_stride = number(of_a ? o.column_stride : o.row_stride),
                 stride = number(of_a ? o.row_stride : o.column_stride), size = static_cast<double>(o.size);
    const auto pieces = [&](std::int64_t across, double bytes) {
      return pieces_of(k, k_stride * size / bytes, number(across), stride * size / bytes);
    };
    const std::int64_t extent = of_a ? p.m : p.n;
    lines = pieces(std::min(count, extent), line);
    sectors = pieces(std::min(count, extent), sector);
    if (p.batch > 1) return;
    if (const double all = pieces(extent, line); all <= cached_lines) all_lines = all, all_sectors = pieces(extent, sector);
  }
};

/// The problem as shapes divide it: rows and columns of C, or columns and rows.
struct SplitKProblem {
  SplitKCosts costs;
  std::int64_t m, n, k;
  double batch, multiprocessors, bytes;
  SplitKReads rows;

  SplitKProblem(const Contraction& p, const SplitKCosts& c, bool swapped)
      : costs(c),
        m(swapped ? p.n : p.m),
        n(swapped ? p.m : p.n),
        k(p.k),
        batch(static_cast<double>(p.batch)),
        multiprocessors(std::max(p.execution.multiprocessors, 1)),
        bytes(batch * static_cast<double>(p.m + p.n) * static_cast<double>(p.k) * static_cast<double>(p.a.size)),
        rows(p, !swapped, 1 << c.row_bits) {}

  /// Times that blocks take to start, to compute, to wait for one round after the other, to request lines and to get their sectors, and that
  /// memory takes. They overlap: the predicted time is the norm of power 4, the longest if it is much longer than the others. This is the
  /// sum of their fourth powers.
  double sum_of_fourth_powers(const SplitKShape& shape, const SplitKReads& columns) const {
    constexpr double bytes_per_second = 4e12, cached_bytes = 4e7;
    const double round = bytes > cached_bytes ? 0.45e-6 : 0.375e-6;
    constexpr double start = 70e-9, start_warp = 18e-9, line = 0.56e-9, sector = 0.75e-9;  // of a multiprocessor
    const double each =
        batch * static_cast<double>(blocks_of(m, costs.row_bits) * blocks_of(n, shape.columns)) / multiprocessors;
    const double most = std::ceil(each);
    const double rounds = k > 0 ? static_cast<double>(blocks_of(k, costs.depth_bits + shape.parts)) : 0;
    const double waves = std::max(each / (1 << std::max(10 - shape.threads(), 0)), 1.0);
    const double warps = std::max(1 << shape.threads(), 32) / 32;
    const double lines = std::min(most * rows.lines, rows.all_lines) + std::min(most * columns.lines, columns.all_lines);
    const double sectors =
        std::min(each * rows.sectors, rows.all_sectors) + std::min(each * columns.sectors, columns.all_sectors);
    double sum = 0;
    for (const double seconds : {each * start, most * warps * (rounds * costs.warp + start_warp),
                                 waves * (rounds + 0.6) * round, lines * line, sectors * sector, bytes / bytes_per_second})
      sum += seconds * seconds * (seconds * seconds);
    return sum;
  }
};

/// The shape of least predicted time, and that time, among shapes whose neighbouring threads read neighbours in memory. Predictions are
/// fitted to 3,400 random problems on an H200 (NOTES.md).
[[gnu::noinline]] inline std::pair<SplitKShape, double> split_k_choice(const Contraction& p, const SplitKCosts& costs) {
  constexpr double launch = 3.5e-6, output = 0.33e-9;  // of a multiprocessor
  const bool a_along_k = p.a.column_stride <= p.a.row_stride || p.m == 1,
             b_along_k = p.b.row_stride <= p.b.column_stride || p.n == 1;
  SplitKShape best;
  double least = std::numeric_limits<double>::infinity();
  for (const bool swapped : {false, true}) {
    SplitKShape shape{.k_first = a_along_k && b_along_k, .swapped = swapped};
    if (!shape.k_first && (swapped ? a_along_k : b_along_k)) continue;
    const SplitKProblem problem(p, costs, swapped);
    for (shape.columns = 0; shape.columns <= std::min(bits_of(problem.n), 5); ++shape.columns) {
      const SplitKReads columns(p, swapped, 1 << shape.columns);
      const auto consider = [&](int parts) {
        shape.parts = parts;
        const double sum = problem.sum_of_fourth_powers(shape, columns);
        if (sum < least) best = shape, least = sum;
      };
      if (shape.k_first) {
        const int most_parts = std::min(costs.most_threads, std::max(bits_of(p.k), 5));
        for (int parts = std::max(5 - shape.columns, 0); parts <= most_parts; ++parts)
          if (shape.columns == std::clamp(7 - parts, 0, std::min(bits_of(problem.n), 5))) consider(parts);
      } else {
        for (const int threads : {5, 7, 8, 10})
          if (const int parts = threads - shape.columns;
              parts >= 0 && threads <= costs.most_threads && (threads == 5 || parts <= bits_of(p.k)))
            consider(parts);
      }
    }
  }
  const std::int64_t along_m = blocks_of(best.swapped ? p.n : p.m, costs.row_bits);
  const std::int64_t along_n = blocks_of(best.swapped ? p.m : p.n, best.columns);
  best.flipped = along_n > along_m;
  const double outputs = static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n);
  return {best, launch + std::sqrt(std::sqrt(least)) + output * outputs / std::max(p.execution.multiprocessors, 1)};
}

inline Status split_k_fits(const Contraction& p) {
  if (p.k > max_grid) return {Decline::extents, "K is above 2^31 - 1"};
  if (p.m > max_grid || p.n > max_grid) return {Decline::extents, "a matrix of C has more than 2^31 - 1 rows or columns"};
  return {};
}

/// How a problem runs: by the kernel of few.hpp, or in a shape.
struct SplitKPlan {
  bool few = false;
  SplitKShape shape = {};
};

/// The plan of a problem, and its predicted time.
template <class S, class Finish>
std::pair<SplitKPlan, double> split_k_plan(const Contraction& p) {
  if constexpr (has_few<S, Finish>)
    if (const double seconds = few_seconds<S>(p); seconds > 0) return {{.few = true}, seconds};
  const auto [shape, seconds] = split_k_choice(p, split_k_costs<S>());
  return {{.shape = shape}, seconds};
}

template <class S, class Finish>
void split_k_run(const KernelInfo& info, const Contraction& p, const SplitKPlan& plan) {
  if (p.m == 0 || p.n == 0) return;
  if constexpr (has_few<S, Finish>)
    if (plan.few) return few_run<S>(info, p);
  auto arguments = detail::arguments_of<S, Finish>(p);
  SplitKShape shape = plan.shape;
  if (shape.swapped) exchange_operands(arguments);
  constexpr int rows = SplitK<S>::rows;
  std::int64_t x = (arguments.m + rows - 1) / rows, y = blocks_of(arguments.n, shape.columns);
  if (shape.flipped) std::swap(x, y);
  const int joined = std::clamp(5 - (shape.k_first ? 0 : shape.columns), 0, shape.parts);
  const std::size_t bytes = sizeof(typename S::accumulator) * rows << (shape.columns + shape.parts - joined);
  const cuda::CurrentDevice current(p.execution.device);
  const auto launch = [&](std::int64_t l, std::int64_t batches, std::int64_t first, std::int64_t count) {
    shape.first_batch = static_cast<unsigned>(l);
    shape.first_y = static_cast<unsigned>(first);
    const dim3 grid(static_cast<unsigned>(x), static_cast<unsigned>(count), static_cast<unsigned>(batches));
    contract_narrow_split_k<S, Finish>
        <<<grid, 1 << shape.threads(), bytes, static_cast<cudaStream_t>(p.execution.stream)>>>(shape, arguments);
    cuda::check_launch(cudaGetLastError(), info.name);
  };
  cuda::for_each_launch(p.batch, cuda::max_grid_yz, [&](std::int64_t l, std::int64_t batches) {
    cuda::for_each_launch(y, cuda::max_grid_yz,
                          [&](std::int64_t first, std::int64_t count) { launch(l, batches, first, count); });
  });
}

template <class S, class Finish>
Kernel<Contraction> narrow_split_k_kernel() {
  Kernel<Contraction> k = kernel<S, Finish, SmallTile<S>>();
  detail::set_variant(k.info, "narrow_split_k");
  k.info.tile = {SplitK<S>::rows, 16, SplitK<S>::depth << 5};  // one of its shapes
  k.info.stages = 1;
  k.info.threads = k.info.shared_memory = 0;
  if constexpr (has_special_powers<S>)
    k.info.accuracy = {42, 1};  // for p ≤ 8: power_by_parts(), and a difference's rounding p times
  else if constexpr (is_transcendental<S>)
    k.info.accuracy = {10, 6};  // as the semiring defines it, unlike the tiles
  // If ⊕ is exact, several threads per output do not change bits. Tiles compute powers and exponentials of floats
  // differently.
  if constexpr (!is_exact<S> || sums_powers<S> || sums_exponentials<S>) {
    k.info.promises = Promise::repeatable;
    k.info.bit_class.clear();
  }
  k.info.accumulates = k.info.accumulates && detail::exact_counts<S> == 0;
  k.supports = [](const Kernel<Contraction>&, const Contraction& p) {
    for (const Status& status : {split_k_fits(p), detail::counts_exactly<S>(p)})
      if (!status) return status;
    return detail::finish_supports<Finish>(p);
  };
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
    const auto [found, seconds] = split_k_plan<S, Finish>(p);
    plan.keep(found);
    constexpr double long_code = sums_exponentials<S> ? 1e-6 : 0;
    return found.few ? seconds : seconds + long_code;
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace&) {
    split_k_run<S, Finish>(kernel.info, p, plan.get<SplitKPlan>());
  };
  return k;
}

}  // namespace rigel::backends::simt
