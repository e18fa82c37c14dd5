// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tiles.hpp"

#include <rigel/registry.hpp>
#include <rigel/semirings.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <string>

namespace {

using rigel::Contraction, rigel::Kernel, rigel::Layout;

// The layouts of A, B and C.
using Layouts = std::array<Layout, 3>;

// Element (i, j) of matrix l of an operand, of which one stride is 1.
template <Layout layout>
double& element(const rigel::Operand& o, std::int64_t l, std::int64_t i, std::int64_t j) {
  auto* const data = static_cast<double*>(o.data) + l * o.batch_stride;
  return layout == Layout::row_major ? data[i * o.row_stride + j] : data[i + j * o.column_stride];
}

// How many tiles C has along its rows and its columns.
struct Grid {
  std::int64_t rows, columns;
  Grid(const Contraction& p, int tile) : rows((p.m + tile - 1) / tile), columns((p.n + tile - 1) / tile) {}
};

// The tile × tile outputs whose first is (m0, n0), of matrix l. Each is one chain in ascending k, as in the reference.
template <int tile, Layouts layouts>
void compute_tile(const Contraction& p, std::int64_t l, std::int64_t m0, std::int64_t n0) {
  const rigel::plus_times<double> s;
  const std::int64_t rows = std::min<std::int64_t>(tile, p.m - m0), columns = std::min<std::int64_t>(tile, p.n - n0);
  double sums[tile][tile] = {}, a[tile] = {}, b[tile] = {};
  for (std::int64_t i = 0; p.accumulate && i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) sums[i][j] = element<layouts[2]>(p.c, l, m0 + i, n0 + j);
  for (std::int64_t k = 0; k < p.k; ++k) {
    for (std::int64_t i = 0; i < rows; ++i) a[i] = element<layouts[0]>(p.a, l, m0 + i, k);
    for (std::int64_t j = 0; j < columns; ++j) b[j] = element<layouts[1]>(p.b, l, k, n0 + j);
    for (int i = 0; i < tile; ++i)
      for (int j = 0; j < tile; ++j) sums[i][j] = s.step(sums[i][j], a[i], b[j]);
  }
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) element<layouts[2]>(p.c, l, m0 + i, n0 + j) = sums[i][j];
}

template <class Exec, int tile, Layouts layouts>
void run_on(const std::string& name, const Contraction& p) {
  const Grid grid(p, tile);
  const Exec& exec = *static_cast<const Exec*>(p.execution.instance);
  Kokkos::parallel_for(
      name, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, p.batch * grid.rows * grid.columns),
      [=](std::int64_t i) {  // a copy of p: on some spaces the loop ends after this function does
        const std::int64_t column = i % grid.columns, row = i / grid.columns % grid.rows, l = i / grid.columns / grid.rows;
        compute_tile<tile, layouts>(p, l, row * tile, column * tile);
      });
}

template <int tile, Layouts layouts>
void run(const Kernel<Contraction>& kernel, const Contraction& p, const rigel::Plan&, const rigel::Workspace&) {
  switch (p.execution.space) {
#ifdef KOKKOS_ENABLE_SERIAL
    case rigel::Space::serial: return run_on<Kokkos::Serial, tile, layouts>(kernel.info.name, p);
#endif
#ifdef KOKKOS_ENABLE_OPENMP
    case rigel::Space::openmp: return run_on<Kokkos::OpenMP, tile, layouts>(kernel.info.name, p);
#endif
#ifdef KOKKOS_ENABLE_THREADS
    case rigel::Space::threads: return run_on<Kokkos::Threads, tile, layouts>(kernel.info.name, p);
#endif
    default: return;  // the kernel's info names hosts' spaces only
  }
}

// What the kernel's info does not say already.
rigel::Status supports(const Kernel<Contraction>&, const Contraction& p) {
  if (!p.program || !p.program->empty()) return {rigel::Decline::epilogue, "this kernel has no epilogue"};
  if (p.c.type != rigel::Scalar::f64) return {rigel::Decline::result, std::string("C holds ") + rigel::name(p.c.type)};
  return {};
}

// Whole tiles are computed, at a rate for each thread; a larger one loads less for each step.
template <int tile>
double cost(const Kernel<Contraction>&, const Contraction& p, rigel::Plan&) {
  const Grid grid(p, tile);
  const double steps = static_cast<double>(p.batch * grid.rows * grid.columns) * tile * tile *
                       static_cast<double>(std::max<std::int64_t>(p.k, 1));
  constexpr double steps_per_second = tile == 32 ? 1e9 : 7e8;
  return 1e-6 + steps / (steps_per_second * p.execution.concurrency);
}

template <int tile, Layouts layouts>
void add() {
  using rigel::Promise;
  Kernel<Contraction> k;
  k.info.family = "tiles";
  for (const Layout one : layouts) k.info.variant += one == Layout::row_major ? 'r' : 'c';
  const std::string extent = std::to_string(tile);
  k.info.name = "tiles.plus_times.f64." + k.info.variant + '.' + extent + 'x' + extent;
  k.info.semiring = "plus_times";
  k.info.element = k.info.accumulator = rigel::Scalar::f64;
  for (std::size_t i = 0; i < layouts.size(); ++i) k.info.operands[i].layout = layouts[i];
  k.info.spaces = rigel::host_spaces;
  k.info.tile = {tile, tile, 1};
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = {2, 1};
  k.supports = supports;
  k.cost = cost<tile>;
  k.run = run<tile, layouts>;
  rigel::register_kernel(k);
}

template <int tile, Layout a, Layout b>
void add_layouts_of_c() {
  add<tile, Layouts{a, b, Layout::row_major}>();
  add<tile, Layouts{a, b, Layout::column_major}>();
}
template <int tile>
void add_layouts() {
  add_layouts_of_c<tile, Layout::row_major, Layout::row_major>();
  add_layouts_of_c<tile, Layout::row_major, Layout::column_major>();
  add_layouts_of_c<tile, Layout::column_major, Layout::row_major>();
  add_layouts_of_c<tile, Layout::column_major, Layout::column_major>();
}

}  // namespace

void tiles::register_all() {
  static const bool once = [] {
    add_layouts<16>();
    add_layouts<32>();
    return true;
  }();
  static_cast<void>(once);
}
