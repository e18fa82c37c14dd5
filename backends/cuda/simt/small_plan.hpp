// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's side of batches of small matrices: how a problem is divided among blocks, and where boxes lie in shared memory.
#pragma once

#include <rigel/backends/cuda/simt/sweep.hpp>
#include <rigel/contraction.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace rigel::backends::simt {

/// How a problem is divided, by the host. `m`, `n`: outputs of a part, along m and n; `depth`: k in a box.
struct SmallPlan {
  int matrices_bits = 0;  // binary logarithm of the matrices of a block
  int m = 1, n = 1, depth = 1, threads = 32;

  int matrices() const { return 1 << matrices_bits; }
  std::int64_t parts_m(const Product& p) const { return (p.m + m - 1) / m; }
  std::int64_t parts_n(const Product& p) const { return (p.n + n - 1) / n; }
  std::int64_t parts(const Product& p) const { return parts_m(p) * parts_n(p); }
  std::int64_t groups(const Product& p) const { return (p.batch + matrices() - 1) >> matrices_bits; }
};

/// A box in shared memory: matrices `matrix` elements apart, in each of them runs of neighbours `run` elements apart.
struct Pitch {
  int matrix = 0, run = 0;
};

/// The kernel's view of the plan.
struct SmallShape {
  Sweep operand[2], c;  // A and B
  Pitch pitch_a, pitch_b, pitch_c;
  int begin_b;           // of B's box in shared memory, in elements
  unsigned first_group;  // of this launch
  unsigned parts, parts_n;
  int matrices_bits, m, n, depth;
  unsigned threads_n, threads_of_matrix;
};

/// The facts of a semiring's types on which the plan depends; sizes in bytes.
struct SmallFacts {
  int outputs, threads;
  int element, vector_bits, stored, chunk, sum, sum_chunk;
};

/// The pitches of `matrices` runs × `length` elements. From run to run an odd number of chunks, so that writes across runs use
/// all banks; from matrix to matrix as many that eight neighbouring threads, which take neighbouring matrices, read all banks.
inline Pitch pitch_of(int matrices, int runs, int length, int chunk) {
  Pitch p;
  p.run = ((length + chunk - 1) / chunk | 1) * chunk;
  int chunks = runs * p.run / chunk;
  const int apart = std::max(8 / matrices, 1);
  if (matrices > 1)
    while (chunks % (2 * apart) != apart) ++chunks;
  p.matrix = chunks * chunk;
  return p;
}

/// The boxes of a plan in shared memory.
struct SmallBoxes {
  Pitch a, b, c;
  std::int64_t begin_b = 0, bytes = 0;  // begin_b in elements
};
inline SmallBoxes boxes_of(const Contraction& p, const SmallPlan& plan, const SmallFacts& facts) {
  const auto whole = [&](int extent) { return (extent + facts.outputs - 1) / facts.outputs * facts.outputs; };
  const int matrices_a = p.a.batch_stride == 0 ? 1 : plan.matrices(),
            matrices_b = p.b.batch_stride == 0 ? 1 : plan.matrices();
  SmallBoxes boxes;
  boxes.a = pitch_of(matrices_a, plan.depth, whole(plan.m), facts.chunk);
  boxes.b = pitch_of(matrices_b, plan.depth, whole(plan.n), facts.chunk);
  boxes.c = pitch_of(plan.matrices(), whole(plan.m), whole(plan.n), facts.sum_chunk);
  const auto size = [](int matrices, const Pitch& pitch) { return std::int64_t{matrices} * pitch.matrix; };
  constexpr std::int64_t alignment = 16;
  boxes.begin_b = (size(matrices_a, boxes.a) + alignment - 1) / alignment * alignment;
  boxes.bytes =
      std::max((boxes.begin_b + size(matrices_b, boxes.b)) * facts.stored, size(plan.matrices(), boxes.c) * facts.sum);
  if (matrices_a == 1) boxes.a.matrix = 0;
  if (matrices_b == 1) boxes.b.matrix = 0;
  return boxes;
}

inline constexpr std::int64_t small_most_bytes = 48 * 1024;

/// Whether neighbours in memory belong to different matrices.
inline bool is_interleaved(const Operand& o) {
  const std::int64_t batch = std::abs(o.batch_stride);
  return batch != 0 && (o.rows == 1 || batch < std::abs(o.row_stride)) &&
         (o.columns == 1 || batch < std::abs(o.column_stride));
}

/// As many matrices that 128 threads have outputs, but enough blocks for the card; more if memory interleaves matrices, so that
/// a block reads whole sectors. K at once if the boxes are small enough for eight blocks on a multiprocessor; of more than 64 rows or
/// columns, only so many that a box has 32 k, since a K-major operand would be read in shorter pieces.
[[gnu::noinline]] inline SmallPlan small_plan(const Contraction& p, const SmallFacts& facts) {
  constexpr std::int64_t most = 256, wanted = 128, warp = 32, bytes = 28 * 1024, sectors = 64;  // threads; bytes
  const std::int64_t o = facts.outputs;
  const auto over = [](std::int64_t x, std::int64_t y) { return (x + y - 1) / y; };
  constexpr std::int64_t deep = 32, always = 64;
  const std::int64_t lines = bytes / (facts.stored * std::clamp<std::int64_t>(p.k, 1, deep));
  // Threads along m or n, for an extent and the lines of the other one.
  const auto threads = [&](std::int64_t extent, std::int64_t others) {
    return over(std::clamp<std::int64_t>(extent, 1, std::max(lines - others, always)), o);
  };
  std::int64_t threads_m = std::min<std::int64_t>(over(std::max<std::int64_t>(p.m, 1), o), 16);
  const std::int64_t threads_n = std::min(threads(p.n, std::min(p.m, threads_m * o)), most / threads_m);
  threads_m = std::min(threads(p.m, std::min(p.n, threads_n * o)), most / threads_n);
  // Parts of equal size, of whole vectors if there are several.
  const auto part = [&](std::int64_t extent, std::int64_t threads) {
    if (extent <= threads * o) return static_cast<int>(std::max<std::int64_t>(extent, 1));
    const std::int64_t parts = over(extent, threads * o), granule = std::min<std::int64_t>(16, threads * o);
    return static_cast<int>(std::min(over(over(extent, parts), granule) * granule, threads * o));
  };
  SmallPlan plan;
  plan.m = part(p.m, threads_m);
  plan.n = part(p.n, threads_n);
  const std::int64_t of_matrix = over(plan.m, o) * over(plan.n, o);
  const std::int64_t multiprocessors = std::max(p.execution.multiprocessors, 1);
  const auto floor_bits = [](std::int64_t x) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(x))) - 1; };
  const bool interleaved = is_interleaved(p.a) || is_interleaved(p.b) || is_interleaved(p.c);
  const std::int64_t together = interleaved ? std::max<std::int64_t>(sectors / facts.element, 8) : 1;
  const std::int64_t enough = std::max(p.batch * plan.parts(p) / multiprocessors, std::min<std::int64_t>(together, 8));
  const std::int64_t matrices = std::min(
      {std::max(wanted / of_matrix, together), facts.threads / of_matrix, enough, std::max<std::int64_t>(p.batch, 1)});
  plan.matrices_bits = floor_bits(std::max<std::int64_t>(matrices, 1));
  const std::int64_t k = std::max<std::int64_t>(p.k, 1);
  plan.depth = static_cast<int>(std::min<std::int64_t>(k, bytes));
  const auto boxes = [&] { return boxes_of(p, plan, facts); };
  const auto runs = [&](const SmallBoxes& b) {  // bytes of a k-step
    const auto matrices_of = [&](const Operand& one) { return one.batch_stride == 0 ? 1 : plan.matrices(); };
    return (std::int64_t{matrices_of(p.a)} * b.a.run + std::int64_t{matrices_of(p.b)} * b.b.run) * facts.stored;
  };
  while (plan.matrices_bits > 0) {
    const SmallBoxes b = boxes();
    const bool too_large = std::int64_t{plan.matrices()} * b.c.matrix * facts.sum > small_most_bytes || runs(b) > bytes;
    if (!too_large && (interleaved || b.bytes <= bytes || plan.matrices() * of_matrix <= warp)) break;
    --plan.matrices_bits;
  }
  if (const SmallBoxes b = boxes(); b.bytes > bytes) {
    const std::int64_t deepest = std::max<std::int64_t>(bytes / runs(b), 1), granule = std::int64_t{1} << facts.vector_bits;
    const std::int64_t even = over(k, over(k, deepest));
    plan.depth = static_cast<int>(std::min(k, deepest >= granule ? over(even, granule) * granule : even));
  }
  plan.threads = static_cast<int>(std::max(over(plan.matrices() * of_matrix, warp) * warp, wanted));
  return plan;
}

/// What a launch needs in addition to the arguments.
[[gnu::noinline]] inline SmallShape small_shape(const Contraction& p, const SmallPlan& plan, const SmallFacts& facts,
                                                int vector_bits_of_c) {
  const SmallBoxes boxes = boxes_of(p, plan, facts);
  const auto batch = [&](const Operand& o, const Pitch& pitch) {
    return BoxAxis{p.batch, o.batch_stride == 0 ? 1 : plan.matrices(), o.batch_stride, pitch.matrix};
  };
  const auto over = [&](int extent) { return static_cast<unsigned>((extent + facts.outputs - 1) / facts.outputs); };
  SmallShape s;
  s.operand[0] =
      sweep_of({{batch(p.a, boxes.a), {p.m, plan.m, p.a.row_stride, 1}, {p.k, plan.depth, p.a.column_stride, boxes.a.run}}},
               p.a.data, static_cast<int>(p.a.size), facts.vector_bits);
  s.operand[1] =
      sweep_of({{batch(p.b, boxes.b), {p.k, plan.depth, p.b.row_stride, boxes.b.run}, {p.n, plan.n, p.b.column_stride, 1}}},
               p.b.data, static_cast<int>(p.b.size), facts.vector_bits);
  s.c = sweep_of({{{p.batch, plan.matrices(), p.c.batch_stride, boxes.c.matrix},
                   {p.m, plan.m, p.c.row_stride, boxes.c.run},
                   {p.n, plan.n, p.c.column_stride, 1}}},
                 p.c.data, static_cast<int>(p.c.size), vector_bits_of_c);
  s.pitch_a = boxes.a;
  s.pitch_b = boxes.b;
  s.pitch_c = boxes.c;
  s.begin_b = static_cast<int>(boxes.begin_b);
  s.first_group = 0;
  s.parts = static_cast<unsigned>(plan.parts(p));
  s.parts_n = static_cast<unsigned>(plan.parts_n(p));
  s.matrices_bits = plan.matrices_bits;
  s.m = plan.m;
  s.n = plan.n;
  s.depth = plan.depth;
  s.threads_n = over(plan.n);
  s.threads_of_matrix = over(plan.m) * s.threads_n;
  return s;
}

}  // namespace rigel::backends::simt
