// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For batches of small matrices: a block computes several. It brings a box of A and one of B to shared memory in the order of
// global memory, whatever the layouts, batches first or last; there both are k by k, rows of A or columns of B contiguous, as
// operands of ⊗. A thread computes a few neighbouring rows and columns of one matrix. Results go through shared memory, so that
// stores follow the order of C. If K is long, boxes come one after the other; matrices with many rows or columns are cut into
// parts, so that the kernel covers every problem. Each output is one chain in ascending k.
//
// Copies and stores of other blocks on the multiprocessor hide a block's latencies, so nothing is prefetched.
#pragma once

#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/simt/contract.hpp>
#include <rigel/backends/cuda/simt/few.hpp>
#include <rigel/backends/cuda/simt/lanes.hpp>
#include <rigel/backends/cuda/simt/powers.hpp>
#include <rigel/backends/cuda/simt/small_plan.hpp>
#include <rigel/backends/cuda/simt/store.hpp>
#include <rigel/backends/cuda/simt/sweep.hpp>

#include <type_traits>

namespace rigel::backends::simt {

/// The binary logarithm of the numbers that a thread moves at a time to or from global memory: four, but at most 16 bytes.
template <class T> inline constexpr int vector_bits_of = sizeof(T) == 8 ? 1 : 2;

/// What a thread holds, by the sizes of a semiring's types.
template <class S>
struct SmallTypes {
  using Element = typename S::element;
  using Operand = operand_t<S>;
  using Stored = tile::stored_t<Operand>;
  using Accumulator = typename S::accumulator;
  static constexpr int registers = std::max(registers_of<Accumulator>, registers_of<Stored>);
  /// Outputs of a thread along m, and along n.
  static constexpr int outputs = is_transcendental<S>                     ? (sizeof(Operand) > 4 ? 1 : 2)
                                 : registers > 4                          ? 1
                                 : registers > 2                          ? 2
                                 : registers > 1 && tuning<S>.temporaries ? 2
                                                                          : 4;
  /// Values that move together within shared memory.
  static constexpr int chunk = std::min(tile::chunk_of<Stored>, outputs),
                       sum_chunk = std::min(tile::chunk_of<Accumulator>, outputs);
  /// The binary logarithm of the elements of a vector in global memory, if elements can come in vectors: four, or 16 bytes.
  static constexpr int vector_bits = std::is_arithmetic_v<Element> || ShortFloat<Element> ? vector_bits_of<Element> : 0;
  static constexpr bool async = std::is_arithmetic_v<Element> && std::is_same_v<Element, Stored> && sizeof(Element) >= 4;
  /// Of a block, at most; and such blocks on a multiprocessor. Loads through registers need more of them.
  static constexpr int threads = registers > 1 || async ? 512 : ShortFloat<Accumulator> ? 320 : 384;
  static constexpr int blocks = registers > 1 ? 1 : 2;

  using Step = std::conditional_t<sums_powers<S>, AnyPowers<S>,
                                  std::conditional_t<sums_exponentials<S> && sizeof(Operand) == 4, LogSums<S>, Steps<S>>>;
};

/// Brings a box to shared memory; the caller commits and waits for its asynchronous copies.
template <class S>
__device__ __forceinline__ void bring(typename SmallTypes<S>::Stored* to, const typename S::element* from,
                                      const Sweep& sweep, const Present& present) {
  using Types = SmallTypes<S>;
  using Element = typename Types::Element;
  using Operand = typename Types::Operand;
  using Stored = typename Types::Stored;
  const Present sorted = sweep.sorted(present);
  const bool whole = sweep.is_whole(sorted);
  // visit(turn, move) for `turns` moves of this thread, then for its next ones; after(turn) once those are under way.
  const auto for_each = [&]<int turns>(const auto& visit, const auto& after) __attribute__((always_inline)) {
#pragma unroll 1
    for (unsigned first = arch::thread_index(); first < sweep.count; first += turns * blockDim.x) {
#pragma unroll
      for (int turn = 0; turn < turns; ++turn) visit(turn, sweep.move(first + turn * blockDim.x, sorted, whole));
#pragma unroll
      for (int turn = 0; turn < turns; ++turn) after(turn);
    }
  };
  const auto copy = [&]<int bytes>() __attribute__((always_inline)) {
    for_each.template operator()<2>(
        [&](int, const Sweep::Move& m) __attribute__((always_inline)) {
          if (m.exists) arch::copy_async<bytes>(to + m.shared, from + m.global);
        },
        [](int) {});
  };
  // Through registers: `width` elements at a time, `turns` times in flight.
  const auto load = [&]<int width, int turns>() __attribute__((always_inline)) {
    using Vector = tile::Chunk<Element, width>;
    Vector vector[turns];
    int at[turns];
    for_each.template operator()<turns>(
        [&](int turn, const Sweep::Move& m) __attribute__((always_inline)) {
          at[turn] = m.exists ? m.shared : -1;
          if (m.exists) vector[turn] = Vector::load(from + m.global);
        },
        [&](int turn) __attribute__((always_inline)) {
          if (at[turn] < 0) return;
          Stored* const place = to + at[turn];
          constexpr int chunk = std::min(tile::chunk_of<Stored>, width);
          const auto value = [&](int i) __attribute__((always_inline)) {
            return static_cast<Stored>(static_cast<Operand>(vector[turn].value[i]));
          };
          if constexpr (chunk > 1)
            if (sweep.next == 1) {
#pragma unroll
              for (int j = 0; j < width; j += chunk) {
                tile::Chunk<Stored, chunk> values;
#pragma unroll
                for (int i = 0; i < chunk; ++i) values.value[i] = value(j + i);
                values.store(place + j);
              }
              return;
            }
#pragma unroll
          for (int j = 0; j < width; ++j) place[j * sweep.next] = value(j);
        });
  };

  constexpr int width = 1 << Types::vector_bits;
  if constexpr (width > 1) {
    if (sweep.bits > 0) {
      if constexpr (Types::async)
        if (sweep.next == 1) return copy.template operator()<width * sizeof(Element)>();
      return load.template operator()<width, sizeof(Element) < 4 ? 4 : 2>();
    }
  }
  if constexpr (Types::async)
    copy.template operator()<sizeof(Element)>();
  else
    load.template operator()<1, width == 1 ? 1 : 4>();
}

/// The operands of a thread for one k. `left`: neighbours that exist. A user's functor sees the last of them again in place of
/// those that do not; the zoo's takes any bits.
template <class S>
__device__ __forceinline__ void read_operands(operand_t<S> (&to)[SmallTypes<S>::outputs],
                                              const typename SmallTypes<S>::Stored* from, int left) {
  using Types = SmallTypes<S>;
  if constexpr (sees_elements_alone<S>) {
#pragma unroll
    for (int i = 0; i < Types::outputs; ++i) to[i] = static_cast<operand_t<S>>(from[i < left ? i : left - 1]);
  } else {
#pragma unroll
    for (int i = 0; i < Types::outputs; i += Types::chunk) {
      const auto c = tile::Chunk<typename Types::Stored, Types::chunk>::load(from + i);
#pragma unroll
      for (int j = 0; j < Types::chunk; ++j) to[i + j] = static_cast<operand_t<S>>(c.value[j]);
    }
  }
}

/// Adds `count` k of both boxes, the first of which is k0, to the outputs of a thread, whose rows of A and columns of B begin at
/// `a` and `b`; `left_m` and `left_n` of them exist.
template <class S, class Step, int outputs>
__device__ __forceinline__ void add_boxes(typename S::accumulator (&x)[outputs][outputs], const Step& step,
                                          const typename SmallTypes<S>::Stored* a, const typename SmallTypes<S>::Stored* b,
                                          const SmallShape& shape, int left_m, int left_n, std::int64_t k0, int count) {
  using Operand = operand_t<S>;
  const auto take = [&]<int together>(int k) __attribute__((always_inline)) {
    Operand of_a[together][outputs], of_b[together][outputs];
#pragma unroll
    for (int c = 0; c < together; ++c) {
      read_operands<S>(of_a[c], a, left_m);
      read_operands<S>(of_b[c], b, left_n);
      a += shape.pitch_a.run;
      b += shape.pitch_b.run;
    }
#pragma unroll
    for (int i = 0; i < outputs; ++i)
#pragma unroll
      for (int j = 0; j < outputs; ++j)
        if constexpr (Step::chunk > 1) {
          Operand one_a[together], one_b[together];
#pragma unroll
          for (int c = 0; c < together; ++c) one_a[c] = of_a[c][i], one_b[c] = of_b[c][j];
          x[i][j] = step(x[i][j], one_a, one_b);
        } else {
          x[i][j] = step(x[i][j], of_a[0][i], of_b[0][j], k0 + k);
        }
  };
  int k = 0;
  if constexpr (Step::chunk > 1)
#pragma unroll 1
    for (; k + 4 <= count; k += 4) take.template operator()<4>(k);
  constexpr int unroll = is_transcendental<S> || outputs == 1 ? 1 : 2;
#pragma unroll unroll
  for (; k < count; ++k) take.template operator()<1>(k);
}

/// The outputs of a block: how many matrices, rows and columns there are, and which is the first of C.
struct SmallOutputs {
  const SmallShape& shape;
  Present present;
  std::int64_t l, m, n;

  /// visit(move, l, m, n) in the order of C: where an output is in shared memory, and which one it is.
  template <class Visit>
  __device__ __forceinline__ void for_each(const Visit& visit) const {
    const Present sorted = shape.c.sorted(present);
    const bool whole = shape.c.is_whole(sorted);
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < shape.c.count; i += blockDim.x) {
      const auto move = shape.c.move(i, sorted, whole);
      const auto index = [&](int axis) {
        return shape.c.axis[0] == axis ? move.index[0] : shape.c.axis[1] == axis ? move.index[1] : move.index[2];
      };
      if (move.exists) visit(move, l + index(0), m + index(1), n + index(2));
    }
  }
};

/// Puts a thread's results, runs of which are `run` apart, into shared memory. Rows and columns that do not exist have room, too.
template <class S, int outputs>
__device__ __forceinline__ void share(typename S::accumulator* own, const typename S::accumulator (&x)[outputs][outputs],
                                      int run) {
  constexpr int chunk = SmallTypes<S>::sum_chunk;
  using Sums = tile::Chunk<typename S::accumulator, chunk>;
#pragma unroll
  for (int i = 0; i < outputs; ++i)
#pragma unroll
    for (int j = 0; j < outputs; j += chunk)
      if constexpr (Sums::as_word) {
        Sums values;
#pragma unroll
        for (int v = 0; v < chunk; ++v) values.value[v] = x[i][j + v];
        values.store(own + i * run + j);
      } else {
        own[i * run + j] = x[i][j];
      }
}

/// Stores a block's results: in vectors, as they are, or by the epilogue.
template <class S, class Finish>
__device__ __forceinline__ void store_outputs(const detail::Arguments<S, Finish>& g, const SmallOutputs& block, const S& s,
                                              const typename S::accumulator* sums) {
  using Value = typename Store<S, Finish>::Value;
  const Sweep& c = block.shape.c;
  const Store<S, Finish> store(g);
  if constexpr (Number<Value>) {
    constexpr bool copies_vectors = std::is_same_v<Finish, detail::ProgramFinish>;
    Value* const to = static_cast<Value*>(g.c) + g.c_offset(block.l, block.m, block.n);
    const Present sorted = c.sorted(block.present);
    const bool whole = c.is_whole(sorted);
    if constexpr (copies_vectors)
      if (c.bits > 0) {
        constexpr int width = 1 << vector_bits_of<Value>;
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < c.count; i += blockDim.x) {
          const auto move = c.move(i, sorted, whole);
          if (!move.exists) continue;
          tile::Chunk<Value, width> values;
#pragma unroll
          for (int v = 0; v < width; ++v) values.value[v] = rigel::result(s, sums[move.shared + v * c.next]);
          values.store(to + move.global);
        }
        return;
      }
    if (store.is_plain() && !g.semirings) {
#pragma unroll 1
      for (unsigned i = threadIdx.x; i < c.count; i += blockDim.x) {
        const auto move = c.move(i, sorted, whole);
        if (!move.exists) continue;
        store.with_output([&]<Output output>() __attribute__((always_inline)) {
          to[move.global] = store.template plain<output>(s, sums[move.shared]);
        });
      }
      return;
    }
  }
  block.for_each([&](const Sweep::Move& move, std::int64_t at_l, std::int64_t at_m, std::int64_t at_n)
                     __attribute__((always_inline)) { g.store(g.semiring(at_l), sums[move.shared], at_l, at_m, at_n); });
}

template <class S, class Finish>
__global__ void __launch_bounds__(SmallTypes<S>::threads, SmallTypes<S>::blocks)
    contract_small(const __grid_constant__ detail::Arguments<S, Finish> g, const __grid_constant__ SmallShape shape) {
  using Types = SmallTypes<S>;
  using Stored = typename Types::Stored;
  using Accumulator = typename Types::Accumulator;
  using Step = typename Types::Step;
  constexpr int outputs = Types::outputs;
  extern __shared__ __attribute__((aligned(16))) unsigned char shared[];
  Stored* const box_a = reinterpret_cast<Stored*>(shared);
  Stored* const box_b = box_a + shape.begin_b;
  Accumulator* const sums = reinterpret_cast<Accumulator*>(shared);

  // The block's matrices and its part of each of them.
  const unsigned group = shape.parts == 1 ? blockIdx.x : blockIdx.x / shape.parts;
  const unsigned part = blockIdx.x - group * shape.parts;
  const unsigned part_m = shape.parts == 1 ? 0 : part / shape.parts_n, part_n = part - part_m * shape.parts_n;
  const std::int64_t l0 = (std::int64_t{shape.first_group} + group) << shape.matrices_bits;
  const std::int64_t m0 = std::int64_t{part_m} * shape.m, n0 = std::int64_t{part_n} * shape.n;
  const auto left = [](std::int64_t all, std::int64_t first, int most) {
    return all - first < most ? static_cast<int>(all - first) : most;
  };
  const int left_l = left(g.batch, l0, 1 << shape.matrices_bits), left_m = left(g.m, m0, shape.m),
            left_n = left(g.n, n0, shape.n);

  // The thread's matrix, and its outputs there. Neighbouring threads take neighbouring matrices.
  const unsigned in_matrix = threadIdx.x >> shape.matrices_bits, row = in_matrix / shape.threads_n;
  const int l = static_cast<int>(threadIdx.x & ((1u << shape.matrices_bits) - 1));
  const int m = static_cast<int>(row) * outputs, n = static_cast<int>(in_matrix - row * shape.threads_n) * outputs;
  const bool present = in_matrix < shape.threads_of_matrix && l < left_l && m < left_m && n < left_n;
  Accumulator* const own = sums + l * shape.pitch_c.matrix + m * shape.pitch_c.run + n;

  const SmallOutputs block{shape, {left_l, left_m, left_n}, l0, m0, n0};
  Accumulator x[outputs][outputs];
  for_each_value(x, [](Accumulator& value, int, int) { value = S::identity(); });
  if constexpr (can_accumulate<S>)
    if (g.accumulate) {
      block.for_each([&](const Sweep::Move& move, std::int64_t at_l, std::int64_t at_m, std::int64_t at_n) __attribute__((
                         always_inline)) { sums[move.shared] = g.start(g.semiring(at_l), at_l, at_m, at_n); });
      __syncthreads();
      if (present)
#pragma unroll
        for (int i = 0; i < outputs; ++i)
#pragma unroll
          for (int j = 0; j < outputs; ++j)
            if (m + i < left_m && n + j < left_n) x[i][j] = own[i * shape.pitch_c.run + j];
      __syncthreads();
    }

  const S s = g.semiring(present ? l0 + l : l0);
  NoTable none;
  const Step step(s, {}, none, 0, 0);
#pragma unroll 1
  for (std::int64_t k0 = 0; k0 < g.k; k0 += shape.depth) {
    if (k0 > 0) __syncthreads();
    const int left_k = left(g.k, k0, shape.depth);
    // One loop over both operands keeps the code short, and the sweep of only one of them in registers.
#pragma unroll 1
    for (int which = 0; which < 2; ++which)
      bring<S>(box_a + which * shape.begin_b, which == 0 ? &g.a.at(l0, m0, k0) : &g.b.at(l0, k0, n0), shape.operand[which],
               {{left_l, which == 0 ? left_m : left_k, which == 0 ? left_k : left_n}});
    if constexpr (Types::async) {
      arch::commit_copies();
      arch::wait_for_copies<0>();
    }
    __syncthreads();
    if (!present) continue;
    const Stored* a = box_a + l * shape.pitch_a.matrix + m;
    const Stored* b = box_b + l * shape.pitch_b.matrix + n;
    add_boxes<S>(x, step, a, b, shape, left_m - m, left_n - n, k0, left_k);
  }

  __syncthreads();
  if (present) share<S>(own, x, shape.pitch_c.run);
  __syncthreads();

  store_outputs(g, block, s, sums);
}

/// Whether a semiring has this kernel: all but those of very large structs.
template <class S> inline constexpr bool has_small = sizeof(operand_t<S>) <= 64 && sizeof(typename S::accumulator) <= 64;

/// The facts that the plan needs.
template <class S>
constexpr SmallFacts small_facts() {
  using Types = SmallTypes<S>;
  return {Types::outputs,
          Types::threads,
          sizeof(typename S::element),
          Types::vector_bits,
          sizeof(typename Types::Stored),
          tile::chunk_of<typename Types::Stored>,
          sizeof(typename Types::Accumulator),
          Types::sum_chunk};
}

/// Whether C receives results as they are, so that it can take them in vectors.
template <class S, class Finish>
int small_vector_bits_of_c(const Contraction& p) {
  if constexpr (std::is_same_v<Finish, detail::ProgramFinish> && Number<result_t<S>>)
    if (p.program->empty() && p.c.type == scalar_of<result_t<S>> && !p.semiring_in_view && !p.accumulate)
      return vector_bits_of<result_t<S>>;
  return 0;
}

template <class S, class Finish>
Status small_supports(const Contraction& p) {
  const SmallPlan plan = small_plan(p, small_facts<S>());
  if (p.m > max_grid || p.n > max_grid || plan.parts_m(p) * plan.parts_n(p) > max_grid || plan.groups(p) > max_grid)
    return {Decline::extents, "a matrix of C, or the batch, has more than 2^31 - 1 parts"};
  const auto near = [&](const Operand& o, int rows, int columns) {
    return is_near(
        {{{p.batch, plan.matrices(), o.batch_stride, 0}, {0, rows, o.row_stride, 0}, {0, columns, o.column_stride, 0}}});
  };
  if (!near(p.a, plan.m, plan.depth) || !near(p.b, plan.depth, plan.n) || !near(p.c, plan.m, plan.n))
    return {Decline::layout, "elements that a block needs lie 2^31 or more elements apart"};
  return detail::finish_supports<Finish>(p);
}

template <class S, class Finish>
double small_cost(const Kernel<Contraction>&, const Contraction& p, Plan& kept) {
  constexpr SmallFacts facts = small_facts<S>();
  const SmallPlan plan = small_plan(p, facts);
  kept.keep(plan);
  const SmallShape shape = small_shape(p, plan, facts, small_vector_bits_of_c<S, Finish>(p));
  return costs::small_seconds(p, semiring_facts<S>, tile_facts<S, SmallTile<S>>,
                              {.blocks = static_cast<double>(plan.groups(p)) * static_cast<double>(plan.parts(p)),
                               .matrices = plan.matrices(),
                               .threads_of_matrix = shape.threads_of_matrix,
                               .depth = plan.depth,
                               .threads = plan.threads,
                               .bytes = boxes_of(p, plan, facts).bytes,
                               .copies = static_cast<double>(shape.operand[0].count + shape.operand[1].count),
                               .stores = static_cast<double>(shape.c.count),
                               .c_in_vectors = shape.c.bits > 0,
                               .copies_are_async = SmallTypes<S>::async,
                               .outputs = facts.outputs});
}

template <class S, class Finish>
void small_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& kept, const Workspace&) {
  constexpr SmallFacts facts = small_facts<S>();
  const auto plan = kept.get<SmallPlan>();
  SmallShape shape = small_shape(p, plan, facts, small_vector_bits_of_c<S, Finish>(p));
  const detail::Arguments<S, Finish> arguments = detail::arguments_of<S, Finish>(p);
  const auto bytes = static_cast<std::size_t>(boxes_of(p, plan, facts).bytes);
  const cuda::Launches launches(p, kernel.info.name);
  cuda::for_each_launch(plan.groups(p), max_grid / shape.parts, [&](std::int64_t first, std::int64_t count) {
    shape.first_group = static_cast<unsigned>(first);
    launches(contract_small<S, Finish>, static_cast<unsigned>(count * shape.parts), plan.threads, bytes, arguments, shape);
  });
}

/// Its facts, whatever becomes of outputs.
template <class S>
KernelInfo small_info() {
  constexpr int most = 16 * SmallTypes<S>::outputs;
  KernelInfo info = tile_info<S, SmallTile<S>>();
  detail::set_variant(info, "small");
  info.tile = {most, most, 64};  // the largest part if C is square, and K at once in 4 bytes
  info.stages = 1;
  info.threads = 256;  // for the largest part
  info.shared_memory = static_cast<int>(small_most_bytes);
  if constexpr (tiles_differ<S>) set_own_bits(info);
  if constexpr (sums_exponentials<S>) info.accuracy = {10, 6};  // in double as the semiring defines it
  return info;
}

template <class S, class Finish>
Kernel<Contraction> small_kernel() {
  Kernel<Contraction> k;
  k.info = small_info<S>();
  k.supports = detail::supports_by<small_supports<S, Finish>>;
  k.cost = small_cost<S, Finish>;
  k.run = small_run<S, Finish>;
  return k;
}

}  // namespace rigel::backends::simt
