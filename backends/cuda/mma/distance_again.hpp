// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Σ_k (x_k − z_k)² anew, by differences, for outputs whose |x|² + |z|² − 2x·z has cancelled, each one chain in ascending k where
// a warp's tile has many of them: by tiles of the products' own size, as cuda.simt has them, or by parts of those. Where it has few,
// by a warp each.
#pragma once

#include <backends/cuda/mma/distance_kernel.hpp>
#include <backends/cuda/simt/kernel.hpp>

namespace rigel::backends::mma {

/// m × n outputs by 128 threads. That of 128 × 128 is cuda.simt's large tile.
template <int m, int n>
using DirectShape = tile::Shape<16, 8, m / 16, n / 8, 8, m * n >= 128 * 128 ? 2 : 3, true>;

/// A tile of outputs by differences. `in_vectors`: operands lie along k, aligned, and K is a multiple of the tile's depth.
template <class S, class Finish, class Shape, bool in_vectors>
struct DirectTile {
  using Value = typename S::accumulator;
  using Arguments = detail::Arguments<S, Finish>;
  static constexpr tile::Way way = in_vectors ? tile::Way::along_k : tile::Way::single;
  using Memory = simt::Slabs<S, Shape, way, way>;
  using SlabA = typename Memory::A;
  using SlabB = typename Memory::B;
  using Exchange = tile::Exchange<Value, Shape, SlabA::chunk>;
  using Registers = typename Exchange::Registers;
  static constexpr int stages = Memory::stages, ahead = stages - 1;
  static constexpr int slab_bytes = (stages * Memory::size + Memory::staging) * static_cast<int>(sizeof(Value));
  static constexpr int exchange_bytes = Exchange::size * static_cast<int>(sizeof(Value));
  static constexpr int bytes = slab_bytes > exchange_bytes ? slab_bytes : exchange_bytes;  // of shared memory

  /// x = Σ_k (a − b)² for the outputs of this thread; all threads of the block call it.
  __device__ __forceinline__ static void sum(const Arguments& g, const tile::Origin& o, Value* slabs, Registers& x) {
    using Operand = operand_t<S>;
    // Copies one by one start where no registers spill.
    constexpr simt::Schedule when = in_vectors ? simt::schedule<S> : simt::Schedule{1, 6};
    // Read anew, so that what follows from it takes no registers from one tile to the next.
    const unsigned thread = arch::thread_index();
    const tile::Place<Shape> place(static_cast<int>(thread));
#pragma unroll
    for (int i = 0; i < Shape::outputs_m; ++i)
#pragma unroll
      for (int j = 0; j < Shape::outputs_n; ++j) x[i][j] = S::identity();
    if (g.k == 0) return;

    Value* const staging = slabs + stages * Memory::size;
    typename Memory::LoaderA a(&g.a.at(o.batch, o.m, 0), g.a.row, g.a.column, g.m - o.m, g.k, staging, thread);
    typename Memory::LoaderB b(&g.b.at(o.batch, 0, o.n), g.b.column, g.b.row, g.n - o.n, g.k,
                               staging + Memory::LoaderA::staging_size, thread);
    const auto slab_a = [&](int stage) { return slabs + stage * Memory::size; };
    const auto slab_b = [&](int stage) { return slabs + stage * Memory::size + SlabA::size; };
    const auto start_copies = [&](int stage, std::int64_t left) __attribute__((always_inline)) {
      a.start(slab_a(stage), left);
      b.start(slab_b(stage), left);
      arch::commit_copies();
    };
    const auto finish = [&](int stage) __attribute__((always_inline)) {
      arch::wait_for_copies<ahead - 1>();
      a.finish(slab_a(stage));
      b.finish(slab_b(stage));
    };
    // Two fragments in turn: one is read while the other is worked on.
    Operand of_a[2][Shape::outputs_m], of_b[2][Shape::outputs_n];
    const auto read = [&](int stage, int k, int turn) __attribute__((always_inline)) {
      SlabA::template read<Shape::threads_m>(slab_a(stage), k, place.m, of_a[turn]);
      SlabB::template read<Shape::threads_n>(slab_b(stage), k, place.n, of_b[turn]);
    };
    const auto add = [&](int turn) __attribute__((always_inline)) {
      simt::step_all([](Value sum, Operand u, Operand v, std::int64_t) { return S::step(sum, u, v); }, x, of_a[turn],
                     of_b[turn], 0);
    };
    const auto next = [](int stage) { return stage + 1 == stages ? 0 : stage + 1; };

#pragma unroll
    for (int stage = 0; stage < ahead; ++stage) start_copies(stage, g.k - stage * Shape::depth);
    finish(0);
    __syncthreads();
    read(0, 0, 0);
    int current = 0, free = ahead;
#pragma unroll 1
    for (int k0 = 0;; k0 += Shape::depth) {
      const int left = static_cast<int>(g.k) - k0;
      if (in_vectors || left >= Shape::depth) {
#pragma unroll
        for (int k = 0; k < Shape::depth; ++k) {
          if (k == when.start) start_copies(free, left - ahead * Shape::depth);
          if (k == when.turn) finish(next(current));
          if (k + 1 < Shape::depth) {
            read(current, k + 1, (k + 1) % 2);
          } else {
            __syncthreads();
            read(next(current), 0, 0);
          }
          add(k % 2);
        }
      } else {
#pragma unroll 1
        for (int k = 0; k < left; ++k) {
          read(current, k, 0);
          add(0);
        }
      }
      if (left <= Shape::depth) break;
      free = current;
      current = next(current);
    }
  }

  /// The outputs of those pieces for which wanted(m, n), of their first output, is true, to C and to their mirrored places; `all`:
  /// it is true for all of them.
  template <class Wanted>
  __device__ __forceinline__ static void store(const Arguments& g, bool mirrored, const tile::Origin& o, int thread,
                                               Registers& x, Value* exchange, bool all, const Wanted& wanted) {
    const int last_m = static_cast<int>(std::min<std::int64_t>(g.m - o.m, Shape::m));
    const int last_n = static_cast<int>(std::min<std::int64_t>(g.n - o.n, Shape::n));
    const bool along_n = g.c_strides.column <= g.c_strides.row;
    const bool root = g.finish.template power<Value>() == 0.5;
    const bool plain = (root || g.finish.template is_copy<Value>()) && !g.accumulate && !(mirrored && o.n < o.m + Shape::m);
    const tile::Place<Shape> place(thread);
    const auto c = [&](std::int64_t i, std::int64_t j) { return static_cast<Value*>(g.c) + g.c_offset(o.batch, i, j); };
    // C by rows, aligned: straight from registers.
    constexpr std::size_t vector_bytes = SlabA::chunk * sizeof(Value);
    if (in_vectors && all && plain && last_m == Shape::m && last_n == Shape::n && g.c_strides.column == 1 &&
        g.c_strides.row % SlabA::chunk == 0 && reinterpret_cast<std::uintptr_t>(c(o.m, o.n)) % vector_bytes == 0) {
      if (root)
#pragma unroll
        for (int i = 0; i < Shape::outputs_m; ++i)
#pragma unroll
          for (int j = 0; j < Shape::outputs_n; ++j) x[i][j] = simt::rounded_root(x[i][j]);
      const auto as_it_is = [](Value value, Value) { return value; };
      simt::copy_out<true, SlabA::chunk, Shape>(x, c(o.m, o.n), g.c_strides.row, place, false, as_it_is);
      if (mirrored) simt::copy_out<false, SlabA::chunk, Shape>(x, c(o.n, o.m), g.c_strides.row, place, false, as_it_is);
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
                         [&](const Value& value, Value& to) { to = root ? simt::rounded_root(value) : value; });
        }
        return;
      }
      piece.for_each(along_n, [&](const Value& value, int m, int n) {
        if (m < last_m && n < last_n) store_one(g, mirrored, o.batch, o.m + m, o.n + n, value);
      });
    });
  }

  /// An output, and its mirrored one; none below the diagonal.
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
};

/// Blocks go from tile to tile of the list, then warps from output to output. The list has the products' tiles, of Shape::m ×
/// Shape::n, of which a warp had outputs_m × outputs_n: computed as a whole where that is less work, and there are enough of them
/// for all multiprocessors, else by parts.
template <class S, class Finish, class Shape, int outputs_m, int outputs_n, bool in_vectors>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    compute_rejected(const __grid_constant__ detail::Arguments<S, Finish> g, const __grid_constant__ Rejected rejected,
                     const __grid_constant__ DistanceRaster raster) {
  constexpr int warps_n = Shape::n / outputs_n, warps = Shape::m / outputs_m * warps_n;
  constexpr int part_m = 64, part_n = 64, parts_n = Shape::n / part_n, parts = Shape::m / part_m * parts_n;
  static_assert(Shape::m % part_m == 0 && Shape::n % part_n == 0 && part_m % outputs_m == 0 && part_n % outputs_n == 0);
  using Whole = DirectTile<S, Finish, Shape, in_vectors>;
  using Part = DirectTile<S, Finish, DirectShape<part_m, part_n>, in_vectors>;
  using Value = typename S::accumulator;
  // A piece of an exchange is of one warp's outputs.
  static_assert(outputs_m % Whole::Exchange::rows == 0 && outputs_n % Whole::Exchange::columns == 0 &&
                outputs_m % Part::Exchange::rows == 0 && outputs_n % Part::Exchange::columns == 0);
  constexpr int bytes = Whole::bytes > Part::bytes ? Whole::bytes : Part::bytes;
  __shared__ __attribute__((aligned(16))) unsigned char shared[bytes];
  __shared__ unsigned taken;
  Value* const slabs = reinterpret_cast<Value*>(shared);
  // Read where they are needed, so that they take no registers while a tile is summed.
  const auto counter = [&](int which) { return *static_cast<const volatile unsigned*>(rejected.counters + which); };
  if (const unsigned few = counter(0), many = counter(1); few == 0 && many == 0) return;

  const auto origin = [&](unsigned number) { return raster.origin(number, Shape::m, Shape::n); };
  // Whether the warp that had (m, n) of a tile is marked, of those that have rejected many outputs.
  const auto is_marked = [](unsigned marks, int m, int n) {
    return (marks >> (m / outputs_m * warps_n + n / outputs_n) & 1) != 0;
  };
  const auto part_is_marked = [&](unsigned marks, int part) {
    bool marked = false;
#pragma unroll
    for (int m = 0; m < part_m; m += outputs_m)
#pragma unroll
      for (int n = 0; n < part_n; n += outputs_n)
        marked = marked || is_marked(marks, part / parts_n * part_m + m, part % parts_n * part_n + n);
    return marked;
  };
  const auto items_of_tile = [&] { return 2 * counter(1) < gridDim.x ? unsigned{parts} : 1; };
#pragma unroll 1
  for (;;) {
    __syncthreads();  // slabs are read no more
    if (threadIdx.x == 0) taken = atomicAdd(rejected.counters + 2, 1u);
    __syncthreads();
    const unsigned item = taken, items = items_of_tile();
    if (item >= counter(1) * items) break;
    const unsigned number = rejected.many[item / items], marks = rejected.warps[number];
    int marked = 0;
#pragma unroll
    for (int part = 0; part < parts; ++part) marked += part_is_marked(marks, part);
    if (items == 1 && 2 * marked > parts) {
      typename Whole::Registers x;
      Whole::sum(g, origin(number), slabs, x);
      const unsigned tile = rejected.many[*static_cast<const volatile unsigned*>(&taken)], of_tile = rejected.warps[tile];
      Whole::store(g, raster.mirrored, origin(tile), static_cast<int>(arch::thread_index()), x, slabs,
                   of_tile == (1u << warps) - 1, [&](int m, int n) { return is_marked(of_tile, m, n); });
      continue;
    }
    const int first = items == 1 ? 0 : static_cast<int>(item % items), last = items == 1 ? parts : first + 1;
#pragma unroll 1
    for (int part = first; part < last; ++part) {
      if (!part_is_marked(marks, part)) continue;
      const int m = part / parts_n * part_m, n = part % parts_n * part_n;
      tile::Origin o = origin(number);
      o.m += m, o.n += n;
      if (o.m >= g.m || o.n >= g.n) continue;
      typename Part::Registers x;
      __syncthreads();
      Part::sum(g, o, slabs, x);
      Part::store(g, raster.mirrored, o, static_cast<int>(arch::thread_index()), x, slabs, false,
                  [&](int row, int column) { return is_marked(marks, m + row, n + column); });
    }
  }

  constexpr unsigned warps_of_block = Shape::threads / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint64_t last = std::uint64_t{counter(0)} * Rejected::most;
#pragma unroll 1
  for (std::uint64_t i = blockIdx.x * warps_of_block + threadIdx.x / 32; i < last; i += gridDim.x * warps_of_block) {
    const unsigned number = rejected.few[i / Rejected::most];
    const std::uint16_t* const places = rejected.places_of(number);
    const auto which = static_cast<unsigned>(i % Rejected::most);
    if (which >= places[0]) continue;
    const tile::Origin o = origin(number / unsigned{warps});
    const int warp = static_cast<int>(number % unsigned{warps}), place = places[1 + which];
    const std::int64_t row = o.m + warp / warps_n * outputs_m + place / outputs_n;
    const std::int64_t column = o.n + warp % warps_n * outputs_n + place % outputs_n;
    const auto* x = &g.a.at(o.batch, row, lane);
    const auto* z = &g.b.at(o.batch, lane, column);
    Value sum = 0;
#pragma unroll 8
    for (std::int64_t k = lane; k < g.k; k += 32, x += 32 * g.a.column, z += 32 * g.b.row) sum = S::step(sum, *x, *z);
    sum = warp_sum(sum);
    if (lane == 0) Whole::store_one(g, raster.mirrored, o.batch, row, column, sum);
  }
}

}  // namespace rigel::backends::mma
