// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The smallest calls, which narrow_split_k launches in place of its own kernel: few outputs, short K, operands that 32 bits
// index, a plain C. These calls are latency-bound: after the launch they wait in turn for instructions (fetched in lines of
// 128 bytes), parameters and operands. So the kernel has a hundred instructions, laid out in the order in which they run;
// the host computes what all threads have in common; and each thread requests all of its operands before it waits for one.
//
// Each of an output's threads takes every 2^parts-th k. They join their results pairwise within a warp, then warp by warp:
// the result is the same in every run, but sums that round do not have the reference's bits.
#pragma once

#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/backends/cuda/simt/contract.hpp>
#include <rigel/backends/cuda/simt/lanes.hpp>

#include <cmath>
#include <limits>

namespace rigel::backends::simt {

/// A block computes 2^outputs outputs, neighbours along n and then along m, with 2^parts threads each.
struct FewShape {
  int outputs = 0, parts = 0, rounds = 1;  // rounds: k per thread
  bool k_first = true;                     // neighbouring threads take neighbouring k, else neighbouring outputs

  int threads() const { return outputs + parts; }  // of a block, as a binary logarithm
};

/// The kernel's arguments, in the order in which it needs them. If N is 1, a is B and b is A.
template <class S>
struct FewArguments {
  using Element = typename S::element;
  unsigned low_mask, low_bits;  // of a thread's number: the part if k_first, else the output
  unsigned k_first, outputs_bits;
  unsigned outputs;    // M·N
  unsigned n, over_n;  // N; ⌈2^32 / N⌉ for o / N by a product, or 0 if N is 1
  int k, parts;
  const Element *a, *b;
  int a_row, b_column, a_column, b_row;  // strides, in elements
  S semiring;
  unsigned first_lane, end_lane;  // the bits of a lane's number that select the part within a warp
  unsigned warps;                 // that share an output
  unsigned sums_mask, sums_bits;  // if there are several: the lanes that hold a warp's sums, and how many bits select them
  int c_row, c_column;
  result_t<S>* c;
  float exponent;  // of the power that C receives; 0 if it receives outputs as they are
};

/// `single`: a thread has at most one k and reads it directly. Otherwise its elements are copied to slots of its own in
/// shared memory, a pair per thread and round, so that a short loop requests all of them before the first arrives.
template <class S, bool single>
__global__ void __launch_bounds__(1024) contract_few(const __grid_constant__ FewArguments<S> g) {
  using Accumulator = typename S::accumulator;
  using Operand = operand_t<S>;
  using Element = typename S::element;
  extern __shared__ __attribute__((aligned(16))) unsigned char shared[];

  const unsigned thread = threadIdx.x, low = thread & g.low_mask, high = thread >> g.low_bits;
  const int part = static_cast<int>(g.k_first ? low : high);
  const unsigned o = (blockIdx.x << g.outputs_bits) + (g.k_first ? high : low);
  const bool present = o < g.outputs;
  // Threads without an output repeat the first one.
  const unsigned output = present ? o : 0, row = __umulhi(output, g.over_n);
  const int m = static_cast<int>(row), n = static_cast<int>(output - row * g.n);
  const Element *const a = g.a + m * g.a_row, *const b = g.b + n * g.b_column;
  Accumulator x = S::identity();
  const auto take = [&](Element element_a, Element element_b, int k) {
    x = direct_step(g.semiring, x, static_cast<Operand>(element_a), static_cast<Operand>(element_b), k);
  };
  if constexpr (single) {
    if (part < g.k) take(a[part * g.a_column], b[part * g.b_row], part);
  } else {
    Element* const pairs = reinterpret_cast<Element*>(shared) + thread;
    const int threads = static_cast<int>(blockDim.x);
    Element* at = pairs;
#pragma unroll 1
    for (int k = part; k < g.k; k += g.parts, at += 2 * threads) {
      arch::copy_async<sizeof(Element)>(at, a + k * g.a_column);
      arch::copy_async<sizeof(Element)>(at + threads, b + k * g.b_row);
    }
    arch::commit_copies();
    arch::wait_for_copies<0>();
    at = pairs;
#pragma unroll 1
    for (int k = part; k < g.k; k += g.parts, at += 2 * threads) take(at[0], at[threads], k);
  }

#pragma unroll 1
  for (unsigned lane = g.first_lane; lane < g.end_lane; lane *= 2) x = g.semiring.add(x, of_lane(x, static_cast<int>(lane)));
  if (g.warps > 1) {
    __syncthreads();  // all pairs have been read
    Accumulator* const sums = reinterpret_cast<Accumulator*>(shared) + (thread / 32 << g.sums_bits | (thread & g.sums_mask));
    if ((thread & 31) <= g.sums_mask) *sums = x;
    __syncthreads();
    if (part == 0)
#pragma unroll 1
      for (unsigned warp = 1; warp < g.warps; ++warp) x = g.semiring.add(x, sums[warp << g.sums_bits]);
  }
  if (part != 0 || !present) return;
  auto value = rigel::result(g.semiring, x);
  if constexpr (has_square_roots<S>) {
    if (g.exponent != 0) value = rounded_root(value);
  } else if constexpr (has_roots<S>) {
    if (g.exponent != 0) value = math::power_by_parts(value, g.exponent);
  }
  g.c[m * g.c_row + n * g.c_column] = value;
}

/// Whether a semiring has this kernel: commutative, of the zoo, with elements that asynchronous copies can move.
template <class S, class Finish>
inline constexpr bool has_few =
    std::is_same_v<Finish, detail::ProgramFinish> && in_zoo<S> && is_commutative<S> &&
    (sizeof(typename S::element) == 4 || sizeof(typename S::element) == 8) && Number<result_t<S>>;

inline bool reads_along_k(const Product& p) {
  return (p.a.column_stride <= p.a.row_stride || p.m == 1) && (p.b.row_stride <= p.b.column_stride || p.n == 1);
}

/// The shape for a problem's extents and layout. K is at most 2048, or 256 if an operand is not K-major, so a block needs at
/// most 32 KB for pairs.
[[gnu::noinline]] inline FewShape few_shape(const Product& p) {
  constexpr int round_bits = 3, threads = 7, lane_bits = 5, sector = 3;  // 2^3 neighbours of 4 bytes are a sector of memory
  FewShape shape;
  shape.k_first = reads_along_k(p);
  shape.parts = std::max(bits_of(blocks_of(p.k, round_bits)), shape.k_first ? std::min(bits_of(p.k), lane_bits) : 0);
  shape.rounds = static_cast<int>(blocks_of(p.k, shape.parts));
  shape.outputs = std::max(threads - shape.parts, 0);
  if (!shape.k_first && shape.parts > 0) shape.outputs = std::clamp(shape.outputs, sector, lane_bits);
  shape.outputs = std::max(std::min(shape.outputs, bits_of(p.m * p.n)), lane_bits - shape.parts);
  return shape;
}

/// Whether a problem qualifies: one matrix, C takes outputs as they are or a distance's root, and 32 bits index everything.
template <class S>
bool is_few(const Contraction& p) {
  constexpr std::int64_t most_outputs = 65535, most_along = 2048, most_across = 256, most_rounds_alone = 4,
                         least_parted = 32, most_stride = std::numeric_limits<std::int32_t>::max();
  if (p.batch != 1 || p.m > most_outputs || p.n > most_outputs || p.m * p.n > most_outputs) return false;
  // If operands are not K-major, several rounds of a single thread per output cost more than they save (measured at K = 8).
  const bool along = reads_along_k(p);
  if (p.k < 1 || p.k > (along ? most_along : most_across)) return false;
  if (!along && p.k > most_rounds_alone && p.k < least_parted) return false;
  if (p.accumulate || p.semiring_in_view || !p.program || p.c.type != scalar_of<result_t<S>>) return false;
  if (!p.program->empty()) {
    const double exponent = p.program->power();
    const bool is_root = has_square_roots<S>
                             ? exponent == 0.5
                             : has_roots<S> && static_cast<float>(exponent) > 0 && exponent < 1 && exponent != 0.5;
    if (!is_root) return false;
  }
  const auto is_near = [](const Operand& o) {
    const auto span = [](std::int64_t stride, std::int64_t extent) {
      return stride > -most_stride && stride < most_stride ? std::abs(stride) * (extent - 1) : most_stride;
    };
    return span(o.row_stride, o.rows) + span(o.column_stride, o.columns) < most_stride;
  };
  return is_near(p.a) && is_near(p.b) && is_near(p.c);
}

/// The predicted seconds of a problem that qualifies, else 0.
template <class S>
double few_seconds(const Contraction& p) {
  if (!is_few<S>(p)) return 0;
  const FewShape shape = few_shape(p);
  return costs::few_seconds(p, semiring_facts<S>, shape.parts, shape.rounds);
}

template <class S>
void few_run(const KernelInfo& info, const Contraction& p) {
  using Element = typename S::element;
  const FewShape shape = few_shape(p);
  const bool swapped = p.n == 1;
  const Lines a = swapped ? lines_of_b(p) : lines_of_a(p), b = swapped ? lines_of_a(p) : lines_of_b(p);
  const auto int32 = [](std::int64_t stride) { return static_cast<int>(stride); };
  const auto outputs = static_cast<unsigned>(p.m * p.n), n = static_cast<unsigned>(b.lines);
  const int low = shape.k_first ? shape.parts : shape.outputs, part_bit = shape.k_first ? 0 : shape.outputs;
  const int joined = std::clamp(5 - part_bit, 0, shape.parts);  // bits of a part's number within a warp
  const int sums_bits = shape.k_first ? 0 : shape.outputs;
  const unsigned warps = 1u << (shape.parts - joined);
  const FewArguments<S> g{
      .low_mask = (1u << low) - 1,
      .low_bits = static_cast<unsigned>(low),
      .k_first = shape.k_first,
      .outputs_bits = static_cast<unsigned>(shape.outputs),
      .outputs = outputs,
      .n = n,
      .over_n = n == 1 ? 0 : static_cast<unsigned>(((std::uint64_t{1} << 32) + n - 1) / n),
      .k = int32(p.k),
      .parts = 1 << shape.parts,
      .a = static_cast<const Element*>(a.operand->data),
      .b = static_cast<const Element*>(b.operand->data),
      .a_row = int32(a.line_stride),
      .b_column = int32(b.line_stride),
      .a_column = int32(a.k_stride),
      .b_row = int32(b.k_stride),
      .semiring = *static_cast<const S*>(p.semiring_object),
      .first_lane = 1u << part_bit,
      .end_lane = 1u << (part_bit + joined),
      .warps = warps,
      .sums_mask = (1u << sums_bits) - 1,
      .sums_bits = static_cast<unsigned>(sums_bits),
      .c_row = int32(swapped ? p.c.column_stride : p.c.row_stride),
      .c_column = int32(swapped ? p.c.row_stride : p.c.column_stride),
      .c = static_cast<result_t<S>*>(p.c.data),
      .exponent = static_cast<float>(p.program->power()),
  };
  const bool single = shape.rounds == 1;
  std::size_t bytes = single ? 0 : shape.rounds * (2 * sizeof(Element) << shape.threads());
  if (warps > 1) bytes = std::max(bytes, sizeof(typename S::accumulator) << (shape.threads() - 5 + sums_bits));
  cuda::Launches(p, info.name)(single ? &contract_few<S, true> : &contract_few<S, false>,
                               static_cast<unsigned>(blocks_of(outputs, shape.outputs)), 1 << shape.threads(), bytes, g);
}

}  // namespace rigel::backends::simt
