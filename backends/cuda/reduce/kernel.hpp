// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ⊞_n epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ) on CUDA cores, without scores in global memory. A block owns a tile's rows and a slice of the
// columns. It computes one tile after the other as cuda.simt does; each passes through shared memory in pieces, where the epilogue is
// applied, to an outlet (outlet.hpp). A second launch joins slices, in ascending order.
#pragma once

#include <rigel/backends/cuda/arch/launch.hpp>
#include <rigel/backends/cuda/reduce/extrema.hpp>
#include <rigel/backends/cuda/reduce/lanes.hpp>
#include <rigel/backends/cuda/reduce/lists.hpp>
#include <rigel/backends/cuda/simt/kernel.hpp>

namespace rigel::backends::reduce {

/// The block of threads that runs this code, as outlets see it.
struct DeviceBlock {
  __device__ __forceinline__ int thread() const { return static_cast<int>(arch::thread_index()); }
  __device__ __forceinline__ void sync() const { __syncthreads(); }
  /// A barrier; for how many threads the argument is true.
  __device__ __forceinline__ int count(bool value) const { return __syncthreads_count(value); }
  __device__ __forceinline__ void sync_warp() const { __syncwarp(); }
  __device__ __forceinline__ unsigned ballot(bool value) const { return __ballot_sync(~0u, value); }
  /// Adds 1 to a number in shared memory, and returns what it was.
  __device__ __forceinline__ int add_one(int* number) const { return atomicAdd(number, 1); }
};

/// Scores as an outlet takes them, of a semiring S whose results are its accumulators.
template <class S>
using score_of = typename S::accumulator;
template <class S>
inline constexpr bool has_scores = (std::is_same_v<score_of<S>, float> || std::is_same_v<score_of<S>, double>) &&
                                   std::is_same_v<result_t<S>, score_of<S>> && !simt::is_packed<S>;

/// The outlets of a tile.
template <class S, class Shape, class Exchange>
struct Outlets {
  using T = score_of<S>;
  static constexpr int group_rows = Exchange::rows, groups = Shape::m / Exchange::rows;
  static constexpr int most = Exchange::Groups::of_thread;  // scores of a thread in a piece
  static_assert(Shape::threads % group_rows == 0 && Shape::m % group_rows == 0);
  static_assert(detail::lanes % (Shape::threads / group_rows) == 0, "a lane of a row is a thread's own");

  template <bool largest>
  using Extremum = reduce::Extremum<T, largest, Shape::m, Shape::threads, groups>;
  using Counter = reduce::Counter<T, Shape::m, Shape::threads, groups>;
  using Sum = Lanes<T, detail::LaneSum<T>, Shape::m, Shape::threads>;
  using Exponentials = Lanes<T, detail::LaneExponentials<T>, Shape::m, Shape::threads>;
  using Best = reduce::Best<T, Shape::m, Shape::threads>;

  static constexpr int shared_bytes(Reducer reducer) {
    switch (reducer) {
      case Reducer::minimum:
      case Reducer::maximum: return Extremum<false>::shared_bytes;
      case Reducer::smallest:
      case Reducer::largest: return Best::shared_bytes;
      case Reducer::sum: return Sum::shared_bytes;
      case Reducer::log_sum_exp: return Exponentials::shared_bytes;
      case Reducer::count_below: return Counter::shared_bytes;
      default: return 0;  // takes() declines it
    }
  }
  /// Bytes of a row's state in a slice.
  static constexpr std::size_t state_bytes(Reducer reducer, std::int64_t count) {
    switch (reducer) {
      case Reducer::minimum:
      case Reducer::maximum: return sizeof(Kept<T>);
      case Reducer::smallest:
      case Reducer::largest: return sizeof(typename Best::One) * static_cast<std::size_t>(count);
      case Reducer::count_below: return sizeof(std::int32_t);
      default: return 0;  // of sums, which have no slices
    }
  }

  /// visit(outlet) for a launch's reducer. `state`: as in Rows.
  template <class Visit>
  __device__ __forceinline__ static void visit(const Launch<T>& launch, void* shared, std::int64_t state,
                                               const Visit& visit) {
    using Kept = reduce::Kept<T>;
    switch (launch.reducer) {
      case Reducer::minimum: return visit(Extremum<false>{static_cast<Kept*>(shared)});
      case Reducer::maximum: return visit(Extremum<true>{static_cast<Kept*>(shared)});
      case Reducer::sum: return visit(Sum{static_cast<detail::LaneSum<T>*>(shared)});
      case Reducer::log_sum_exp: return visit(Exponentials{static_cast<detail::LaneExponentials<T>*>(shared)});
      case Reducer::count_below: return visit(Counter{static_cast<std::int32_t*>(shared)});
      default:  // the k best: takes() declines reducers without an outlet. Cases for them would make a table of jumps, and spills.
        return visit(Best(launch.reducer == Reducer::largest, shared,
                          reinterpret_cast<typename Best::One*>(launch.states) + state * launch.count, launch.count));
    }
  }
};

/// Where a block works: its unit's matrix and first row, its slice, and its first row's state.
struct Work {
  std::int64_t l, m;
  unsigned slice;
  std::int64_t state;
};
template <class Shape, class T>
__device__ __forceinline__ Work work_of(const Launch<T>& launch) {
  const unsigned block = arch::block_index(), slice = block / launch.units,
                 unit = launch.first + (block - slice * launch.units), l = unit / launch.row_tiles;
  return {l, std::int64_t{unit - l * launch.row_tiles} * Shape::m, slice, std::int64_t{block} * Shape::m};
}

/// √score, rounded as IEEE 754 requires.
template <class T>
__device__ __forceinline__ T rounded_root(T score) {
  if constexpr (std::is_same_v<T, float>)
    return simt::rounded_root(score);
  else
    return __builtin_elementwise_sqrt(score);
}

/// Applies the epilogue to a thread's scores of a piece, in shared memory, where they stay.
template <class T, class Arguments, class Groups>
__device__ __forceinline__ void apply_epilogue(const Arguments& g, const tile::Origin& origin, const Groups& groups,
                                               int count) {
  const auto& finish = g.finish;
  T* const scores = const_cast<T*>(groups.shared);
  if (finish.program.empty()) return;
  if (finish.program.power() == 0.5) {
#pragma unroll 4
    for (int i = 0; i < count; ++i) scores[i * groups.slot_step] = rounded_root(scores[i * groups.slot_step]);
    return;
  }
  if constexpr (std::is_same_v<T, float>)
    if (finish.is_short) {
      struct Outputs : Groups {
        const tile::Origin& origin;
        __device__ __forceinline__ epilogue::Place place(int group) const {
          const int number = this->first + group;
          return {origin.batch, origin.m + this->m, origin.n + (this->n + number * this->next_n)};
        }
      };
      constexpr int width = Groups::width, together = Groups::together;
      Outputs outputs{{groups}, origin};
      outputs.left = count;
#pragma unroll 1
      while (outputs.choose()) {
        float values[together][width];
        outputs.load(values);
        finish.run_on(values, outputs);
#pragma unroll
        for (int t = 0; t < together; ++t)
#pragma unroll
          for (int v = 0; v < width; ++v)
            if (outputs.exists(t, v)) scores[((outputs.first + t) * width + v) * outputs.slot_step] = values[t][v];
        outputs.advance();
      }
      return;
    }
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    T& score = scores[i * groups.slot_step];
    score = finish.program(score, origin.m + groups.m, origin.n + groups.n + i * groups.apart_n, origin.batch);
  }
}

/// When a slab's copies start and end: as in cuda.simt, but for operands that come element by element, whose loop would spill.
template <class S, class Shape, tile::Way WayA, tile::Way WayB>
constexpr simt::Schedule schedule_of() {
  if (simt::is_light_float<S> && WayA == tile::Way::single) return {1, 6};
  return simt::schedule_of<S, Shape, WayA, WayB>();
}

template <class S, class Shape, class Step, tile::Way WayA, tile::Way WayB>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    reduce_tiles(const __grid_constant__ detail::Arguments<S, detail::ProgramFinish> g,
                 const __grid_constant__ Launch<score_of<S>> launch,
                 const __grid_constant__ typename Step::Parameters parameters) {
  static_assert(has_scores<S>);
  using Sum = simt::TileSum<S, Shape, Step, WayA, WayB, schedule_of<S, Shape, WayA, WayB>(), std::int32_t>;
  using Exchange = typename Sum::Exchange;
  using T = score_of<S>;
  using All = Outlets<S, Shape, Exchange>;
  extern __shared__ __attribute__((aligned(16))) unsigned char shared[];
  auto* const slabs = reinterpret_cast<typename Sum::Stored*>(shared);
  auto* const exchange = reinterpret_cast<T*>(shared);
  void* const of_outlet = shared + (Sum::bytes + 15) / 16 * 16;
  __shared__ typename Step::Table table;
  const DeviceBlock block;
  const Step step(g.one_semiring, parameters, table, block.thread(), Shape::threads);

  // Found once, and read when it is needed: registers are scarce.
  __shared__ Work in_shared;
  if (threadIdx.x == 0) in_shared = work_of<Shape>(launch);
  __syncthreads();
  const auto own_work = [&]() __attribute__((always_inline)) {
    const volatile Work& work = in_shared;
    return Work{work.l, work.m, work.slice, work.state};
  };
  const auto with_outlet = [&](const auto& use) __attribute__((always_inline)) {
    const Work work = own_work();
    All::visit(launch, of_outlet, work.state, [&](const auto& outlet) __attribute__((always_inline)) { use(outlet, work); });
  };

  with_outlet([&](const auto& outlet, const Work&) __attribute__((always_inline)) { outlet.begin(block); });

  // Tiles that are left, each thread's own: registers are scarce. What follows from it and from places is computed again.
  __shared__ int tiles_left[Shape::threads];
  const auto left = [&]()->volatile int& { return tiles_left[block.thread()]; };
  const auto end = [&](unsigned slice) {
    const auto all = static_cast<int>(static_cast<std::uint64_t>(g.n + Shape::n - 1) / Shape::n);
    return std::min(static_cast<int>(slice + 1) * launch.slice_tiles, all);
  };
  {
    const unsigned slice = own_work().slice;
    left() = end(slice) - static_cast<int>(slice) * launch.slice_tiles;
  }
#pragma unroll 1
  for (; left() > 0; left() = left() - 1) {
    T x[Shape::outputs_m][Shape::outputs_n];
#pragma unroll
    for (int i = 0; i < Shape::outputs_m; ++i)
#pragma unroll
      for (int j = 0; j < Shape::outputs_n; ++j) x[i][j] = S::identity();
    if (g.k > 0) {
      const unsigned thread = arch::thread_index();
      tile::Place<Shape> place(static_cast<int>(thread));
      const Work work = own_work();
      const std::int64_t n = std::int64_t{end(work.slice) - left()} * Shape::n;
      auto* const staging = slabs + Sum::slabs_size;
      typename Sum::LoaderA a(&g.a.at(work.l, work.m, 0), g.a.row, g.a.column, g.m - work.m, g.k, staging, thread);
      typename Sum::LoaderB b(&g.b.at(work.l, 0, n), g.b.column, g.b.row, g.n - n, g.k, staging + Sum::LoaderA::staging_size,
                              thread);
      typename Sum::Operand fragment_a[2][Shape::outputs_m], fragment_b[2][Shape::outputs_n];
      Sum::add(x, a, b, fragment_a, fragment_b, g, step, place, slabs);
    }
    const int thread = block.thread();
    Exchange::for_each(x, exchange, tile::Place<Shape>(thread), thread,
                       [&](const auto& piece) __attribute__((always_inline)) {
                         const typename Exchange::CutGroups groups{piece.groups(false)};
                         const Work work = own_work();
                         const tile::Origin origin{work.l, work.m, std::int64_t{end(work.slice) - left()} * Shape::n};
                         const int last_m = static_cast<int>(std::min<std::int64_t>(g.m - origin.m, Shape::m)),
                                   last_n = static_cast<int>(std::min<std::int64_t>(g.n - origin.n, Shape::n));
                         const int count = piece.count_of(groups.m, groups.n, last_m, last_n, false);
                         apply_epilogue<T>(g, origin, groups, count);
                         const Part<T, All::most> part{.first = groups.shared,
                                                       .apart = groups.slot_step,
                                                       .count = count,
                                                       .group = groups.m / All::group_rows,
                                                       .row = groups.m,
                                                       .n = static_cast<std::int32_t>(origin.n + groups.n),
                                                       .step = groups.apart_n,
                                                       .self = launch.exclude_self ? origin.m + groups.m : -1};
                         All::visit(launch, of_outlet, work.state, [&](const auto& outlet) __attribute__((always_inline)) {
                           if constexpr (requires { outlet.take(block, part, launch.below); })
                             outlet.take(block, part, launch.below);
                           else
                             outlet.take(block, part);
                         });
                       });
    __syncthreads();  // the next tile's slabs take the memory of the exchange
  }

  with_outlet([&](const auto& outlet, const Work& work) __attribute__((always_inline)) {
    const Rows at{work.l, work.m, static_cast<int>(std::min<std::int64_t>(g.m - work.m, Shape::m)), work.state};
    if constexpr (requires { outlet.end(block, launch, at, All::group_rows); })
      outlet.end(block, launch, at, All::group_rows);
    else
      outlet.end(block, launch, at);
  });
}

/// How many threads join slices, and how many rows a block of them joins: the k best of one, or one result of each warp's.
inline constexpr int join_threads = 128;
constexpr int rows_of_join(bool many) { return many ? 1 : join_threads / 32; }

/// Joins the slices of a launch's rows, of which each unit has `rows_of_unit`.
template <class T>
__global__ void __launch_bounds__(join_threads, 1)
    join_slices(const __grid_constant__ Launch<T> launch, const int rows_of_unit) {
  constexpr int threads = join_threads;
  using Best = BestOfBlock<T, 1, threads>;
  constexpr int bytes = std::max(Best::shared_bytes(most_best), threads * static_cast<int>(sizeof(Kept<T>)));
  __shared__ __attribute__((aligned(16))) unsigned char shared[bytes];
  const DeviceBlock block;
  const bool many = launch.reducer == Reducer::smallest || launch.reducer == Reducer::largest;
  const unsigned of_block = many ? 1 : threads / 32, blocks = static_cast<unsigned>(rows_of_unit) / of_block,
                 in_launch = blockIdx.x / blocks,
                 row = (blockIdx.x - in_launch * blocks) * of_block + (many ? 0 : threadIdx.x / 32),
                 unit = launch.first + in_launch, l = unit / launch.row_tiles;
  const std::int64_t state = std::int64_t{in_launch} * rows_of_unit + row, apart = std::int64_t{launch.units} * rows_of_unit,
                     m = std::int64_t{unit - l * launch.row_tiles} * rows_of_unit + row;
  if (m >= launch.rows) return;
  arch::wait_for_launches_before();
  switch (launch.reducer) {
    case Reducer::minimum:
      return Extremum<T, false, 1, threads, 1>::join(block, launch, state, apart, l, m, reinterpret_cast<Kept<T>*>(shared));
    case Reducer::maximum:
      return Extremum<T, true, 1, threads, 1>::join(block, launch, state, apart, l, m, reinterpret_cast<Kept<T>*>(shared));
    case Reducer::count_below:
      return Counter<T, 1, threads, 1>::join(block, launch, state, apart, l, m, reinterpret_cast<std::int32_t*>(shared));
    default: return Best::join(block, launch, state, apart, l, m, shared);
  }
}

}  // namespace rigel::backends::reduce
