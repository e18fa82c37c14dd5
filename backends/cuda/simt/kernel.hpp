// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ) on CUDA cores, for any semiring. A block computes one tile of C, a thread a
// block of outputs in registers. Slabs of A and B are prefetched to shared memory. Each output is one chain in ascending k.
#pragma once

#include <rigel/backends/cuda/simt/metrics.hpp>
#include <rigel/backends/cuda/simt/powers.hpp>
#include <rigel/backends/cuda/simt/tile_store.hpp>

namespace rigel::backends::simt {

/// Bytes of static shared memory that a block may take, and whether a tile of S fits.
inline constexpr int most_shared_bytes = 48 * 1024;
template <class S, class Shape>
inline constexpr bool fits_in_shared_memory =
    TileSum<S, Shape, Steps<OnPairs<S>>, tile::Way::single, tile::Way::single>::bytes <= most_shared_bytes;

/// Whether a C that accumulates holds numbers that can be copied to accumulators as they are.
template <class S>
inline constexpr bool copies_accumulators =
    !is_packed<S> && Number<typename S::accumulator> && std::is_same_v<result_t<S>, typename S::accumulator> &&
    (sizeof(typename S::accumulator) == 4 || sizeof(typename S::accumulator) == 8);

template <class S, class Finish, class Shape, class Step, tile::Way WayA, tile::Way WayB>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    contract(const __grid_constant__ detail::Arguments<S, Finish> g, const __grid_constant__ tile::Raster raster,
             const __grid_constant__ typename Step::Parameters parameters) {
  using W = OnPairs<S>;
  using Sum = TileSum<S, Shape, Step, WayA, WayB>;
  using Accumulator = typename Sum::Accumulator;
  using Stored = typename Sum::Stored;
  using Exchange = typename Sum::Exchange;
  using Out = TileStore<S, Finish, Shape, Sum, WayA, WayB>;
  constexpr int bytes = Sum::bytes;
  static_assert(bytes <= most_shared_bytes, "cuda.simt: the semiring's types are too large for a tile in shared memory");
  __shared__ __attribute__((aligned(16))) unsigned char shared[bytes];
  Stored* const slabs = reinterpret_cast<Stored*>(shared);
  Accumulator* const exchange = reinterpret_cast<Accumulator*>(shared);
  __shared__ typename Step::Table table;

  const bool along_n = g.c_strides.column <= g.c_strides.row;
  // Computed again after the loop, so that it takes no registers in between.
  const auto start = Out::origin(raster);
  const int thread = static_cast<int>(threadIdx.x);
  tile::Place<Shape> place(thread);
  const S s = g.semiring(start.batch);
  const W w{s};
  const Step step(w, parameters, table, thread, Shape::threads);

  Accumulator x[Shape::outputs_m][Shape::outputs_n];
  for_each_value(x, [](Accumulator& value, int, int) { value = W::identity(); });
  if constexpr (can_accumulate<S> && !Out::joins_late)
    if (g.accumulate)
      [&]() __attribute__((always_inline)) {
        if constexpr (copies_accumulators<S>)
          if (g.finish.template is_copy<Accumulator>()) {
            const auto* const c = static_cast<const Accumulator*>(g.c) + g.c_offset(start.batch, start.m, start.n);
            // Outputs beyond C start with its last row or column.
            const int last_m = static_cast<int>(std::min<std::int64_t>(g.m - start.m, Shape::m)) - 1,
                      last_n = static_cast<int>(std::min<std::int64_t>(g.n - start.n, Shape::n)) - 1;
            // Places of this branch alone: the loop's would stay in registers in between.
            int own = thread;
            asm volatile("" : "+r"(own));
            Exchange::copy(x, exchange, tile::Place<Shape>(own), own, along_n, [&](int m, int n) {
              return c + std::min(m, last_m) * g.c_strides.row + std::min(n, last_n) * g.c_strides.column;
            });
            return for_each_value(x, [&](Accumulator& value, int, int) { value = rigel::lift(s, value); });
          }
        Exchange::fill(x, exchange, place, thread, along_n, [&](int m, int n) {
          const auto value = [&](int column) {
            const std::int64_t i = start.m + m, j = start.n + column;
            return i < g.m && j < g.n ? g.start(s, start.batch, i, j) : typename S::accumulator(S::identity());
          };
          if constexpr (is_packed<S>)
            return paired<typename S::accumulator>(value(2 * n), value(2 * n + 1));
          else
            return value(n);
        });
      }();

  if (g.k > 0) {
    Stored* const staging = slabs + Sum::slabs_size;
    typename Sum::LoaderA a(&g.a.at(start.batch, start.m, 0), g.a.row, g.a.column, g.m - start.m, g.k, staging, threadIdx.x);
    typename Sum::LoaderB b(&g.b.at(start.batch, 0, start.n), g.b.column, g.b.row, g.n - start.n, g.k,
                            staging + Sum::LoaderA::staging_size, threadIdx.x);
    typename Sum::Operand fragment_a[2][Shape::outputs_m], fragment_b[2][Shape::outputs_n];
    if constexpr (std::is_same_v<Step, PowersOfView<S>>)
      step.choose([&](const auto& chosen) __attribute__((always_inline)) {
        TileSum<S, Shape, std::remove_cvref_t<decltype(chosen)>, WayA, WayB>::add(x, a, b, fragment_a, fragment_b, g, chosen,
                                                                                  place, slabs);
      });
    else
      Sum::add(x, a, b, fragment_a, fragment_b, g, step, place, slabs);
  }

  Out(g, raster, s, place, thread, along_n, shared)(x);
}

}  // namespace rigel::backends::simt
