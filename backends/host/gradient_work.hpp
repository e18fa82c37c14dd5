// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host loop of contract_gradient() at one level, without Kokkos. A worker takes every `workers`-th item: one vector of
// neighbouring m, and a range of n. It packs A for these m and C for all o once. Then, for each n, a block of o stays in registers
// while k ascends: multiply() runs once for all of the block.
#pragma once

#include <rigel/backends/host/level.hpp>
#include <rigel/detail/gradient.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>

namespace rigel::backends::host {

/// How a problem is cut.
struct GradientGrid {
  std::int64_t rows_per_item, items_n, items_m, items;
  int workers;
  std::size_t packed_a, packed_c;  // bytes of a worker's scratch memory
  std::size_t scratch() const { return packed_a + packed_c; }
};

/// The shapes of a compiled loop: neighbouring m in a vector, o in a block.
struct GradientGeometry {
  int lanes, outputs;
  std::size_t accumulator_bytes;
};

struct GradientLoop {
  void (*work)(const void* arguments, const GradientGrid& grid, int worker, void* scratch);
  GradientGeometry geometry;
};

/// Cuts a problem for a loop: enough items that every worker gets several, if there are as many rows.
inline GradientGrid gradient_grid(const Gradient& p, const GradientGeometry& geometry) {
  const auto ceil = [](std::int64_t x, std::int64_t y) { return (x + y - 1) / y; };
  GradientGrid grid{};
  grid.items_m = ceil(p.m, geometry.lanes);
  const std::int64_t wanted =
      ceil(std::int64_t{4} * p.execution.concurrency, std::max<std::int64_t>(1, p.batch * grid.items_m));
  grid.rows_per_item = std::max<std::int64_t>(1, ceil(p.n, std::max<std::int64_t>(1, wanted)));
  grid.items_n = ceil(p.n, grid.rows_per_item);
  grid.items = p.batch * grid.items_m * grid.items_n;
  grid.workers = static_cast<int>(std::min<std::int64_t>(p.execution.concurrency, grid.items));
  const auto k = static_cast<std::size_t>(p.k);
  const auto outputs = static_cast<std::size_t>(ceil(p.outputs, geometry.outputs) * geometry.outputs);
  grid.packed_a = detail::aligned(k * static_cast<std::size_t>(geometry.lanes) * geometry.accumulator_bytes);
  grid.packed_c = detail::aligned(k * outputs * geometry.accumulator_bytes);
  return grid;
}

/// operation(values…) on vectors, lane by lane if the functor takes only numbers.
template <class A, class V, class Operation>
__attribute__((always_inline)) inline V on_lanes(const Operation& operation, V x, V y, V z) {
  if constexpr (requires {
                  { operation(x, y, z) } -> std::same_as<V>;
                }) {
    return operation(x, y, z);
  } else {
    V result{};
    for (std::size_t i = 0; i < sizeof(V) / sizeof(A); ++i) result[i] = static_cast<A>(operation(A(x[i]), A(y[i]), A(z[i])));
    return result;
  }
}

template <class Level, class G>
class GradientWorker {
  using A = typename G::accumulator;
  static constexpr int lanes = Level::vector_bytes / static_cast<int>(sizeof(A));
  static constexpr int block = Level::registers / 2;
  using V = A __attribute__((ext_vector_type(lanes)));

 public:
  static constexpr GradientGeometry geometry = {lanes, block, sizeof(A)};

  RIGEL_HOST_LOOP static void work(const void* arguments, const GradientGrid& grid, int worker, void* scratch) {
    const auto& g = *static_cast<const detail::GradientArguments<G>*>(arguments);
    V* const packed_a = static_cast<V*>(scratch);
    A* const packed_c = reinterpret_cast<A*>(static_cast<std::byte*>(scratch) + grid.packed_a);
    for (std::int64_t item = worker; item < grid.items; item += grid.workers) {
      const std::int64_t l = item / grid.items_n / grid.items_m, m = item / grid.items_n % grid.items_m * lanes;
      const std::int64_t begin = item % grid.items_n * grid.rows_per_item;
      const std::int64_t end = begin + grid.rows_per_item < g.n ? begin + grid.rows_per_item : g.n;
      const int columns = static_cast<int>(g.m - m < lanes ? g.m - m : lanes);
      const G functor = detail::functor_at(g.functor, l);
      for (std::int64_t k = 0; k < g.k; ++k)
        for (int j = 0; j < lanes; ++j) packed_a[k][j] = static_cast<A>(g.a.at(l, k, m + (j < columns ? j : 0)));
      for (std::int64_t first = 0; first < g.outputs; first += block) {
        const std::int64_t outputs = g.outputs - first < block ? g.outputs - first : block;
        A* const to = packed_c + first * g.k;
        for (std::int64_t k = 0; k < g.k; ++k)
          for (int o = 0; o < block; ++o) to[k * block + o] = static_cast<A>(g.c.at(l, first + (o < outputs ? o : 0), k));
      }
      for (std::int64_t n = begin; n < end; ++n)
        for (std::int64_t first = 0; first < g.outputs; first += block)
          row(g, functor, packed_a, packed_c + first * g.k, l, first, n, m, columns);
    }
  }

 private:
  __attribute__((always_inline)) static V splat(A x) {
    const V v = x;
    return v;
  }

  // The outputs of one n, `columns` neighbouring m and a block of o.
  __attribute__((always_inline)) static void row(const detail::GradientArguments<G>& g, const G& functor, const V* a,
                                                 const A* c, std::int64_t l, std::int64_t first, std::int64_t n,
                                                 std::int64_t m, int columns) {
    const auto multiply = [&](auto d, auto b, auto weight) __attribute__((always_inline))
      requires requires { functor.multiply(d, b, weight); }
    { return functor.multiply(d, b, weight); };
    const auto accumulate = [&](auto x, auto coefficient, auto value) __attribute__((always_inline))
      requires requires { functor.accumulate(x, coefficient, value); }
    { return functor.accumulate(x, coefficient, value); };
    const int outputs = static_cast<int>(g.outputs - first < block ? g.outputs - first : block);
    V d{}, sums[block];
    for (int j = 0; j < lanes; ++j) d[j] = static_cast<A>(g.d.at(l, n, m + (j < columns ? j : 0)));
    for (int o = 0; o < block; ++o) sums[o] = splat(static_cast<A>(functor.identity()));
    if (g.accumulate)
      for (int o = 0; o < outputs; ++o)
        for (int j = 0; j < columns; ++j) sums[o][j] = g.out_at(l, first + o, n, m + j);
    for (std::int64_t k = 0; k < g.k; ++k) {
      const V value = on_lanes<A>(multiply, d, splat(static_cast<A>(g.b.at(l, n, k))), a[k]);
#pragma clang loop unroll(full)
      for (int o = 0; o < block; ++o) sums[o] = on_lanes<A>(accumulate, sums[o], splat(c[k * block + o]), value);
    }
    for (int o = 0; o < outputs; ++o)
      for (int j = 0; j < columns; ++j) g.store(functor, A(sums[o][j]), l, first + o, n, m + j);
  }
};

template <class Level, class G>
inline constexpr GradientLoop gradient_loop = {GradientWorker<Level, G>::work, GradientWorker<Level, G>::geometry};

/// The loop of one of Rigel's functors, compiled for its level.
template <class Level, class G>
const GradientLoop& compiled_gradient_loop();

}  // namespace rigel::backends::host
