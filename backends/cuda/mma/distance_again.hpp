// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recomputes Σ_k (x_k − z_k)² by subtraction for outputs whose |x|² + |z|² − 2x·z has cancelled. If a warp's tile has many,
// each is one chain in ascending k, in tiles like cuda.simt's. If it has few, a warp sums each.
#pragma once

#include <rigel/backends/cuda/mma/distance_kernel.hpp>
#include <rigel/backends/cuda/simt/kernel.hpp>

namespace rigel::backends::mma {

/// m × n outputs by 128 threads, with sums of type `Sum`. (With floats, no registers are left to prefetch fragments for any
/// K.)
template <class Sum, int m, int n>
using DirectShape = tile::Shape<16, 8, m / 16, n / 8, 8, m * n * sizeof(Sum) >= 128 * 48 * sizeof(double) ? 2 : 3,
                                (sizeof(Sum) > sizeof(float))>;

/// A tile of outputs of S, by subtraction, in numbers of type `Sum`. `in_vectors`: operands are K-major and aligned, and K
/// is a multiple of the tile's depth.
template <class S, class Sum, class Finish, class Shape, bool in_vectors>
struct DirectTile {
  using Value = typename S::accumulator;
  using Arguments = detail::Arguments<S, Finish>;
  using Direct = l2_squared<typename S::element, Sum>;
  using Steps = simt::Steps<Direct>;
  static constexpr tile::Way way = in_vectors ? tile::Way::along_k : tile::Way::single;
  // Copies start at the steps at which no registers spill.
  using Sums =
      simt::TileSum<Direct, Shape, Steps, way, way, in_vectors ? simt::Schedule{0, 6} : simt::Schedule{1, 6}, std::int32_t>;
  using Exchange = typename Sums::Exchange;
  using Registers = typename Sums::Registers;
  static constexpr int chunk = Sums::SlabA::chunk, bytes = Sums::bytes;  // of shared memory

  /// x = Σ_k (a − b)² for the outputs of this thread; all threads of the block call it.
  __device__ __forceinline__ static void sum(const Arguments& g, const tile::Origin& o, Sum* slabs, Registers& x) {
    // Read again here, so that values derived from it take no registers between tiles.
    const unsigned thread = arch::thread_index();
    tile::Place<Shape> place(static_cast<int>(thread));
    const Direct direct;
    simt::NoTable nothing;
    const Steps step(direct, {}, nothing, 0, 0);
#pragma unroll
    for (int i = 0; i < Shape::outputs_m; ++i)
#pragma unroll
      for (int j = 0; j < Shape::outputs_n; ++j) x[i][j] = Direct::identity();
    if (g.k == 0) return;
    Sum* const staging = slabs + Sums::slabs_size;
    typename Sums::LoaderA a(&g.a.at(o.batch, o.m, 0), g.a.row, g.a.column, g.m - o.m, g.k, staging, thread);
    typename Sums::LoaderB b(&g.b.at(o.batch, 0, o.n), g.b.column, g.b.row, g.n - o.n, g.k,
                             staging + Sums::LoaderA::staging_size, thread);
    typename Sums::Operand of_a[2][Shape::outputs_m], of_b[2][Shape::outputs_n];
    Sums::add(x, a, b, of_a, of_b, g, step, place, slabs);
  }

  /// Stores the outputs of those pieces for whose first output wanted(m, n) is true, and their mirror images. `all`: it is
  /// true for all pieces.
  template <class Wanted>
  __device__ __forceinline__ static void store(const Arguments& g, bool mirrored, const tile::Origin& o, int thread,
                                               Registers& x, Sum* exchange, bool all, const Wanted& wanted) {
    const int last_m = static_cast<int>(std::min<std::int64_t>(g.m - o.m, Shape::m));
    const int last_n = static_cast<int>(std::min<std::int64_t>(g.n - o.n, Shape::n));
    const bool along_n = g.c_strides.column <= g.c_strides.row;
    const bool root = g.finish.template power<Value>() == 0.5;
    const bool plain = (root || g.finish.template is_copy<Value>()) && !g.accumulate && !(mirrored && o.n < o.m + Shape::m);
    const tile::Place<Shape> place(thread);
    const auto c = [&](std::int64_t i, std::int64_t j) { return static_cast<Value*>(g.c) + g.c_offset(o.batch, i, j); };
    // An aligned, row-major C: straight from registers.
    constexpr std::size_t vector_bytes = chunk * sizeof(Value);
    if constexpr (in_vectors)
      if (all && plain && last_m == Shape::m && last_n == Shape::n && g.c_strides.column == 1 &&
          g.c_strides.row % chunk == 0 && reinterpret_cast<std::uintptr_t>(c(o.m, o.n)) % vector_bytes == 0) {
        if (root)
#pragma unroll
          for (int i = 0; i < Shape::outputs_m; ++i)
#pragma unroll
            for (int j = 0; j < Shape::outputs_n; ++j) x[i][j] = root_of(x[i][j]);
        const auto as_it_is = [](Value value, Value) { return value; };
        simt::copy_out<true, chunk, Shape>(x, c(o.m, o.n), g.c_strides.row, place, false, as_it_is);
        if (mirrored) simt::copy_out<false, chunk, Shape>(x, c(o.n, o.m), g.c_strides.row, place, false, as_it_is);
        return;
      }
    Exchange::for_each(x, exchange, place, thread, [&](const auto& piece) __attribute__((always_inline)) {
      if (!wanted(piece.first_m(), piece.first_n())) return;
      if (plain) {
#pragma unroll 1
        for (int both = 0; both <= mirrored; ++both) {
          const std::int64_t m_apart = both ? g.c_strides.column : g.c_strides.row;
          const std::int64_t n_apart = both ? g.c_strides.row : g.c_strides.column;
          piece.for_each(both ? c(o.n, o.m) : c(o.m, o.n), m_apart, n_apart, last_m, last_n, along_n != (both != 0),
                         [&](const Sum& sum, Value& to) {
                           const auto value = static_cast<Value>(sum);
                           to = root ? root_of(value) : value;
                         });
        }
        return;
      }
      piece.for_each(along_n, [&](const Sum& sum, int m, int n) {
        if (m < last_m && n < last_n) store_one(g, mirrored, o.batch, o.m + m, o.n + n, static_cast<Value>(sum));
      });
    });
  }

  /// Stores an output and its mirror image; nothing below the diagonal.
  __device__ __forceinline__ static void store_one(const Arguments& g, bool mirrored, std::int64_t l, std::int64_t i,
                                                   std::int64_t j, Value value) {
    if (mirrored && j < i) return;
    const S s = g.semiring(l);
#pragma unroll 1
    for (int both = 0; both <= (mirrored && i != j); ++both) {
      const std::int64_t row = both ? j : i, column = both ? i : j;
      g.store(s, g.accumulate ? s.add(g.start(s, l, row, column), value) : value, l, row, column);
    }
  }

 private:
  __device__ __forceinline__ static Value root_of(Value x) {
    if constexpr (std::is_same_v<Value, float>)
      return simt::rounded_root(x);
    else
      return __builtin_elementwise_sqrt(x);
  }
};

/// How the products' tiles, of `Shape`, are divided into units, with as many columns as 128 threads have registers for, and
/// units into parts.
template <class Sum, class Shape>
struct DirectCut {
  static constexpr int outputs_m = Shape::outputs_m, outputs_n = Shape::outputs_n;  // of a warp of the products
  static constexpr bool in_floats = sizeof(Sum) == sizeof(float);
  static constexpr int units = in_floats ? 1 : Shape::m * Shape::n / (128 * 64) + 1;
  using Unit = DirectShape<Sum, Shape::m, Shape::n / units>;
  using Part = DirectShape<Sum, Unit::m / 2, std::min(Unit::n, 64)>;
  static constexpr int parts_n = Unit::n / Part::n, parts = Unit::m / Part::m * parts_n;
  static_assert(Shape::n % units == 0 && Unit::m % Part::m == 0 && Unit::n % Part::n == 0);
  static_assert(Part::m % outputs_m == 0 && Part::n % outputs_n == 0);
  // With fewer units in the list than this many for every two blocks, units would leave multiprocessors idle.
  static constexpr int least = in_floats ? 1 : 2;

  /// Whether the warp that computed (m, n) of a tile is marked as having rejected many outputs.
  __device__ __forceinline__ static bool is_marked(unsigned marks, int m, int n) {
    return (marks >> (m / outputs_m * Shape::warps_n + n / outputs_n) & 1) != 0;
  }
  /// How many of the warps that computed a Unit, or a Part, from (m, n) on are marked.
  template <class Piece>
  __device__ __forceinline__ static int marked(unsigned marks, int m, int n) {
    int count = 0;
#pragma unroll
    for (int i = 0; i < Piece::m; i += outputs_m)
#pragma unroll
      for (int j = 0; j < Piece::n; j += outputs_n) count += is_marked(marks, m + i, n + j);
    return count;
  }
};

/// Blocks take units of the listed tiles by a counter, then warps take single outputs. A unit is computed as a whole if that
/// is less work and there are enough units for all multiprocessors, else by parts.
template <class S, class Sum, class Finish, class Shape, bool in_vectors, class Unit = typename DirectCut<Sum, Shape>::Unit>
__global__ void __launch_bounds__(Unit::threads, Unit::blocks)
    compute_rejected(const __grid_constant__ detail::Arguments<S, Finish> g, const __grid_constant__ Rejected rejected,
                     const __grid_constant__ DistanceRaster raster) {
  arch::wait_for_launches_before();
  using Cut = DirectCut<Sum, Shape>;
  using Whole = DirectTile<S, Sum, Finish, Unit, in_vectors>;
  using Part = DirectTile<S, Sum, Finish, typename Cut::Part, in_vectors>;
  using Value = typename S::accumulator;
  constexpr int outputs_m = Cut::outputs_m, outputs_n = Cut::outputs_n;
  // All outputs of an exchange's piece belong to one warp.
  static_assert(outputs_m % Whole::Exchange::rows == 0 && outputs_n % Whole::Exchange::columns == 0 &&
                outputs_m % Part::Exchange::rows == 0 && outputs_n % Part::Exchange::columns == 0);
  constexpr int bytes = Whole::bytes > Part::bytes ? Whole::bytes : Part::bytes;
  __shared__ __attribute__((aligned(16))) unsigned char shared[bytes];
  __shared__ unsigned taken;
  Sum* const slabs = reinterpret_cast<Sum*>(shared);
  // Read when they are needed, so that they take no registers while a tile is summed.
  const auto counter = [&](int which) { return *static_cast<const volatile unsigned*>(rejected.counters + which); };
  if (const unsigned few = counter(0), many = counter(1); few == 0 && many == 0) return;

  const auto items_of_tile = [&]() -> unsigned {
    return 2 * Cut::units * counter(1) < Cut::least * gridDim.x ? Cut::units * Cut::parts : Cut::units;
  };
  const auto origin = [&](unsigned number, int m, int n) {
    tile::Origin o = raster.origin(number, Shape::m, Shape::n);
    o.m += m, o.n += n;
    return o;
  };
  // The first output of a part of a unit.
  const auto part_m = [](int part) { return part / Cut::parts_n * Cut::Part::m; };
  const auto part_n = [](int unit, int part) { return unit * Unit::n + part % Cut::parts_n * Cut::Part::n; };
  // The next item is requested while one is stored.
  const auto next_item = [&] { return threadIdx.x == 0 ? atomicAdd(rejected.counters + 2, 1u) : 0; };
  unsigned next = next_item();
#pragma unroll 1
  for (;;) {
    __syncthreads();  // slabs are no longer read
    if (threadIdx.x == 0) taken = next;
    __syncthreads();
    const unsigned item = taken, items = items_of_tile();
    if (item >= counter(1) * items) break;
    const unsigned number = rejected.many[item / items], marks = rejected.warps[number];
    const bool whole = items == Cut::units;
    const int which = static_cast<int>(item % items), unit = whole ? which : which / Cut::parts;
    int marked = 0;
#pragma unroll
    for (int part = 0; part < Cut::parts; ++part)
      marked += Cut::template marked<typename Cut::Part>(marks, part_m(part), part_n(unit, part)) > 0;
    if (whole && 2 * marked > Cut::parts) {
      typename Whole::Registers x;
      Whole::sum(g, origin(number, 0, unit * Unit::n), slabs, x);
      const unsigned done = *static_cast<const volatile unsigned*>(&taken), tile = rejected.many[done / Cut::units];
      const unsigned of_tile = rejected.warps[tile];
      next = next_item();
      const int first = static_cast<int>(done % Cut::units) * Unit::n;
      constexpr int warps = Unit::m / outputs_m * (Unit::n / outputs_n);
      Whole::store(g, raster.mirrored, origin(tile, 0, first), static_cast<int>(arch::thread_index()), x, slabs,
                   Cut::template marked<Unit>(of_tile, 0, first) == warps,
                   [&](int m, int n) { return Cut::is_marked(of_tile, m, first + n); });
      continue;
    }
    const int begin = whole ? 0 : which % Cut::parts, end = whole ? Cut::parts : begin + 1;
#pragma unroll 1
    for (int part = begin; part < end; ++part) {
      const int m = part_m(part), n = part_n(unit, part);
      if (Cut::template marked<typename Cut::Part>(marks, m, n) == 0) continue;
      const tile::Origin o = origin(number, m, n);
      if (o.m >= g.m || o.n >= g.n) continue;
      typename Part::Registers x;
      __syncthreads();
      Part::sum(g, o, slabs, x);
      Part::store(g, raster.mirrored, o, static_cast<int>(arch::thread_index()), x, slabs, false,
                  [&](int row, int column) { return Cut::is_marked(marks, m + row, n + column); });
    }
    next = next_item();
  }

  rejected.for_each_few(Unit::threads, [&](unsigned number, int place) __attribute__((always_inline)) {
    const tile::Origin o = origin(number / unsigned{Shape::warps}, 0, 0);
    const int warp = static_cast<int>(number % unsigned{Shape::warps}), lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t row = o.m + warp / Shape::warps_n * outputs_m + place / outputs_n;
    const std::int64_t column = o.n + warp % Shape::warps_n * outputs_n + place % outputs_n;
    const auto* x = &g.a.at(o.batch, row, lane);
    const auto* z = &g.b.at(o.batch, lane, column);
    Sum sum = 0;
#pragma unroll 8
    for (std::int64_t k = lane; k < g.k; k += 32, x += 32 * g.a.column, z += 32 * g.b.row)
      sum = Whole::Direct::step(sum, static_cast<Sum>(*x), static_cast<Sum>(*z));
    sum = warp_sum(sum);
    if (lane == 0) Whole::store_one(g, raster.mirrored, o.batch, row, column, static_cast<Value>(sum));
  });
}

}  // namespace rigel::backends::mma
