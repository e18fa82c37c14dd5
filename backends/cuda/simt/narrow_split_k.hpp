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

#include <bit>

namespace rigel::backends::simt {

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

template <class S>
constexpr costs::SplitKThreads split_k_threads() {
  return {std::bit_width(unsigned{SplitK<S>::rows}) - 1, SplitK<S>::depth, SplitK<S>::threads};
}

inline Status split_k_fits(const Product& p) {
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
  const auto [shape, seconds] = costs::split_k_choice(p, semiring_facts<S>, split_k_threads<S>());
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
  const cuda::Launches launches(p, info.name);
  const auto launch = [&](std::int64_t l, std::int64_t batches, std::int64_t first, std::int64_t count) {
    shape.first_batch = static_cast<unsigned>(l);
    shape.first_y = static_cast<unsigned>(first);
    const dim3 grid(static_cast<unsigned>(x), static_cast<unsigned>(count), static_cast<unsigned>(batches));
    launches(contract_narrow_split_k<S, Finish>, grid, 1 << shape.threads(), bytes, shape, arguments);
  };
  cuda::for_each_launch(p.batch, cuda::max_grid_yz, [&](std::int64_t l, std::int64_t batches) {
    cuda::for_each_launch(y, cuda::max_grid_yz,
                          [&](std::int64_t first, std::int64_t count) { launch(l, batches, first, count); });
  });
}

template <class S, class Finish>
Kernel<Contraction> narrow_split_k_kernel() {
  Kernel<Contraction> k = kernel<S, Finish, SmallTile<S>>();
  set_slices<S>(k.info, "narrow_split_k");
  k.info.tile = {SplitK<S>::rows, 16, SplitK<S>::depth << 5};  // one of its shapes
  k.info.stages = 1;
  k.info.threads = k.info.shared_memory = 0;
  set_direct_steps<S>(k.info);
  k.info.accumulates = k.info.accumulates && detail::exact_counts<S> == 0;
  k.supports = [](const Kernel<Contraction>&, const Contraction& p) {
    for (const Status& status : {split_k_fits(p), detail::counts_exactly<S>(p)})
      if (!status) return status;
    return detail::finish_supports<Finish>(p);
  };
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
    const auto [found, seconds] = split_k_plan<S, Finish>(p);
    plan.keep(found);
    return seconds;
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace&) {
    split_k_run<S, Finish>(kernel.info, p, plan.get<SplitKPlan>());
  };
  return k;
}

}  // namespace rigel::backends::simt
