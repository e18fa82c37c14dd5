// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.mma kernels of l2_squared of floats: what they say of themselves, and their three launches.
#pragma once

#include <backends/cuda/mma/contract.hpp>
#include <backends/cuda/mma/distance_again.hpp>

namespace rigel::backends::mma {

/// The bound of a kept output, relative to it: 2·10^-5, in u = 2^-24.
inline constexpr double kept_accuracy = 336;

/// The threshold of the guard. With s = |x|² + |z|² of the centred lines, D the squared distance, all in u:
///   an instruction of 16 products of the upper parts is off by 48 of Σ|x·z|, the two of lower parts by less than 0.2 (see
///   truncating_accuracy()); of a product 8 are lost, 2 with the last bit of each operand and 4 with that of both lower parts;
///   adding up a step, and a level, takes 1 each. 2·Σ|x·z| ≤ s makes this β of s. Norms and their sum: 2 of s. Subtracting the
///   centre: |x| + |z| ≤ √(2s) of the distance, which is 2√(2sD) of D. The last fma: 1 of D.
/// So the error is at most (β + 2)·s + 2.9·√(sD) + D, that is ((β + 5)/threshold + 1)·D where D/s is above the threshold.
inline float guard_threshold(std::int64_t k, int levels) {
  constexpr double instructions = 48.2, lost = 8, others = 5, slack = 1;
  const double steps = std::ceil(static_cast<double>(k) / 16), of_level = 2 * slabs_of_level;
  const double adding = levels > 1 ? std::min(steps, of_level) + std::ceil(steps / of_level) : steps;
  return static_cast<float>((instructions + lost + adding + others + slack) / (kept_accuracy - 2));
}
/// The largest that leaves most outputs of ordinary data alone, whose D/s is near 1.
inline constexpr float largest_threshold = 0.6f;

/// Both operands are the same.
inline bool is_self_distance(const Problem& p) {
  return p.a.data == p.b.data && p.m == p.n && p.a.batches == p.b.batches && p.a.batch_stride == p.b.batch_stride &&
         p.a.row_stride == p.b.column_stride && p.a.column_stride == p.b.row_stride;
}

template <class Shape>
DistanceRaster distance_raster(const Problem& p) {
  DistanceRaster raster{
      {0, static_cast<unsigned>(rows_of<Shape>(p)), static_cast<unsigned>(columns_of<Shape>(p))}, is_self_distance(p), 0};
  raster.in_batch = static_cast<unsigned>(raster.template tiles<Shape::m, Shape::n>());
  return raster;
}
template <class Shape>
std::int64_t tiles_of(const Problem& p) {
  return p.batch * distance_raster<Shape>(p).template tiles<Shape::m, Shape::n>();
}

template <class Shape, int levels>
Status supports_distances(const KernelInfo& info, const Problem& p) {
  using S = l2_squared<float>;
  if (const float threshold = guard_threshold(p.k, levels); threshold > largest_threshold)
    return {Code::unsupported, "K is too large for a bound of 1e-5: distances below " + std::to_string(threshold) +
                                   " of the norms would have to be computed anew"};
  if (constexpr int bytes = distance_shared_bytes<Shape>; shared_memory_of(p.execution.device) < bytes)
    return {Code::unsupported, "needs " + std::to_string(bytes) + " bytes of shared memory"};
  const Status status = supports<S, half, Shape>(info, p);
  if (!status) return status;
  if (rows_of<Shape>(p) * columns_of<Shape>(p) * std::max<std::int64_t>(p.batch, 1) > max_grid / Shape::warps)
    return {Code::unsupported, "C has more than 2^31 - 1 tiles of warps"};
  const auto blocks = [](const Lines& g) {
    return matrices_of(*g.operand) * ((g.lines + prepared_lines - 1) / prepared_lines);
  };
  if (blocks(lines_of_a(p)) + blocks(lines_of_b(p)) > max_grid)
    return {Code::unsupported,
            "the operands have more than 2^31 - 1 groups of " + std::to_string(prepared_lines) + " lines"};
  return {};
}

/// What lies in the workspace, each part aligned to 256 bytes.
struct DistanceMemory {
  std::size_t halves_a = 0, halves_b = 0, lines_a = 0, lines_b = 0, counters = 0, few = 0, many = 0, places = 0, end = 0;
  unsigned counter_count = 0;  // with the marks of all tiles behind the counters
};
template <class Shape>
DistanceMemory distance_memory(const Problem& p) {
  DistanceMemory at;
  const auto place = [&](std::int64_t count, std::size_t size) {
    const std::size_t from = at.end;
    at.end += (static_cast<std::size_t>(count) * size + 255) / 256 * 256;
    return from;
  };
  const std::int64_t of_a = matrices_of(p.a) * p.m, of_b = matrices_of(p.b) * p.n;
  const std::int64_t tiles = tiles_of<Shape>(p), of_warps = tiles * Shape::warps;
  at.halves_a = place(of_a * halves_of(p.k), sizeof(half));
  at.lines_a = place(of_a, sizeof(ScaledLine));
  at.halves_b = at.halves_a, at.lines_b = at.lines_a;
  if (!is_self_distance(p)) {
    at.halves_b = place(of_b * halves_of(p.k), sizeof(half));
    at.lines_b = place(of_b, sizeof(ScaledLine));
  }
  at.counter_count = static_cast<unsigned>(Rejected::counter_count + tiles);
  at.counters = place(at.counter_count, sizeof(unsigned));
  at.few = place(of_warps, sizeof(unsigned));
  at.many = place(tiles, sizeof(unsigned));
  at.places = place(of_warps * (Rejected::most + 1), sizeof(std::uint16_t));
  return at;
}
template <class Shape>
std::size_t distance_workspace(const KernelInfo&, const Problem& p) {
  return distance_memory<Shape>(p).end;
}

template <class Shape, int levels>
void run_distances(const KernelInfo& info, const Problem& p, void* workspace) {
  using S = l2_squared<float>;
  const std::int64_t all_tiles = tiles_of<Shape>(p);
  if (all_tiles == 0) return;
  const cuda::CurrentDevice current(p.execution.device);
  const auto stream = static_cast<cudaStream_t>(p.execution.stream);
  const DistanceMemory at = distance_memory<Shape>(p);
  const auto memory = [&]<class T>(T*, std::size_t from) {
    return reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + from);
  };
  auto arguments = detail::arguments_of<S, detail::ProgramFinish>(p);
  DistanceRaster raster = distance_raster<Shape>(p);
  constexpr int shared_bytes = distance_shared_bytes<Shape>;
  static std::atomic<std::uint64_t> allowed{0};
  const auto function = reinterpret_cast<const void*>(&distances<S, levels, detail::ProgramFinish, Shape>);
  allow_shared_memory(function, shared_bytes, allowed, p.execution.device, info);  // before anything is enqueued

  const auto prepared = [&](const Lines& g, std::size_t halves, std::size_t lines) {
    const Operand& o = *g.operand;
    return Prepared{static_cast<const float*>(o.data),
                    o.batch_stride,
                    g.line_stride,
                    g.k_stride,
                    matrices_of(o),
                    g.lines,
                    memory(static_cast<half*>(nullptr), halves),
                    memory(static_cast<ScaledLine*>(nullptr), lines)};
  };
  const Prepared a = prepared(lines_of_a(p), at.halves_a, at.lines_a), b = prepared(lines_of_b(p), at.halves_b, at.lines_b);
  unsigned* const counters = memory(static_cast<unsigned*>(nullptr), at.counters);
  {
    const bool b_first = a.matrices > b.matrices;
    const Preparation g{{b_first ? b : a, b_first ? a : b},
                        p.k,
                        static_cast<unsigned>(preparing_blocks(b_first ? b : a)),
                        counters,
                        at.counter_count};
    const std::int64_t blocks = g.blocks_of_first + (raster.mirrored ? 0 : preparing_blocks(g.of[1]));
    prepare<<<static_cast<unsigned>(blocks), 32 * prepared_lines, 0, stream>>>(g);
    cuda::check(cudaGetLastError(), "contract: launch of the pass before " + info.name);
  }

  const std::int64_t pitch = halves_of(p.k);
  const auto source = [&](const Prepared& o) { return Source<half>{o.halves, o.matrices > 1 ? o.lines * pitch : 0, pitch}; };
  const auto batch_lines = [](const Prepared& o) { return o.matrices > 1 ? o.lines : 0; };
  Operands<half> operands{source(a), source(b), static_cast<int>(pitch)};
  Guard guard{a.line, b.line, batch_lines(a), batch_lines(b), guard_threshold(p.k, levels)};
  Rejected rejected{counters, memory(static_cast<unsigned*>(nullptr), at.few),
                    memory(static_cast<unsigned*>(nullptr), at.many), counters + Rejected::counter_count,
                    memory(static_cast<std::uint16_t*>(nullptr), at.places)};
  auto tiles = static_cast<unsigned>(all_tiles);
  const auto multiprocessors = static_cast<unsigned>(std::max(p.execution.multiprocessors, 1));
  {
    void* list[] = {&operands, &arguments, &guard, &rejected, &raster, &tiles};
    launch_tiles<Shape>(function, tiles, shared_bytes, list, p, info);
  }
  using Direct = DirectShape<float, Shape::m, Shape::n>;
  const auto compute_rest = [&]<bool in_vectors>() {
    compute_rejected<S, detail::ProgramFinish, Direct, Shape::outputs_m, Shape::outputs_n, in_vectors>
        <<<multiprocessors * Direct::blocks, Direct::threads, 0, stream>>>(arguments, rejected, raster);
  };
  const auto in_vectors = [](const Lines& g) { return way_of(g, false) == Way::along_k && g.k % Direct::depth == 0; };
  if (in_vectors(lines_of_a(p)) && in_vectors(lines_of_b(p)))
    compute_rest.template operator()<true>();
  else
    compute_rest.template operator()<false>();
  cuda::check(cudaGetLastError(), "contract: launch of the outputs that cancel in " + info.name);
}

/// Three launches and the pass; then as in cost(). `rate`: pairs that a multiprocessor finishes in a second when it is full, and
/// `output`: seconds that an output takes of it, as measured on sm_90.
template <class Shape, int levels>
double distance_cost(const KernelInfo&, const Problem& p) {
  constexpr double launches = 12e-6, fill = 1.5e-6, output = 1e-10, pass_bytes_per_second = 2e12;
  constexpr double rate = levels > 1 ? 4.0e11 : 4.8e11;
  const double tiles = static_cast<double>(tiles_of<Shape>(p));
  const double each = std::ceil(tiles / std::max(p.execution.multiprocessors, 1));
  const double busy = std::min(1.0, 0.5 + 0.5 * each / Shape::blocks);
  const double k = static_cast<double>(halves_of(p.k)) / 2;
  const double lines = static_cast<double>(matrices_of(p.a) * p.m + (is_self_distance(p) ? 0 : matrices_of(p.b) * p.n));
  const double outputs = each * Shape::m * Shape::n * (is_self_distance(p) ? 2 : 1);
  return launches + 8 * lines * k / pass_bytes_per_second + each * Shape::m * Shape::n * k / (rate * busy) +
         outputs * output + std::ceil(each / Shape::blocks) * fill;
}

template <class Shape, int levels>
Kernel distance_kernel() {
  using S = l2_squared<float>;
  constexpr Precision precision = Precision::promoted;
  constexpr int depth = halves_together;
  Kernel k;
  k.info = info_of_tile<S, Shape>("cuda.mma", precision, depth);
  k.info.promises = Promise::repeatable;
  k.info.accuracy = {kept_accuracy, 1};  // of those computed anew: one chain
  k.supports = supports_distances<Shape, levels>;
  k.cost = distance_cost<Shape, levels>;
  k.workspace = distance_workspace<Shape>;
  k.run = run_distances<Shape, levels>;
  return k;
}

}  // namespace rigel::backends::mma
