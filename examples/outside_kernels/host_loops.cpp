// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops on hosts: a work item computes a tile.
#include "loops.hpp"

#include <rigel/semirings.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <string>

namespace {

using rigel::Contraction, rigel::Kernel, rigel::Layout;

// Element (i, j) of matrix l of an operand, of which one stride is 1.
template <Layout layout>
double& element(const rigel::Operand& o, std::int64_t l, std::int64_t i, std::int64_t j) {
  auto* const data = static_cast<double*>(o.data) + l * o.batch_stride;
  return layout == Layout::row_major ? data[i * o.row_stride + j] : data[i + j * o.column_stride];
}

template <int tile, Layout of_a, Layout of_b, Layout of_c>
struct Loops {
  // The outputs whose first is (m0, n0), of matrix l. Each is one chain in ascending k, as in the reference.
  static void compute(const Contraction& p, std::int64_t l, std::int64_t m0, std::int64_t n0) {
    const rigel::plus_times<double> s;
    const std::int64_t rows = std::min<std::int64_t>(tile, p.m - m0), columns = std::min<std::int64_t>(tile, p.n - n0);
    double sums[tile][tile] = {}, a[tile] = {}, b[tile] = {};
    for (std::int64_t i = 0; p.accumulate && i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) sums[i][j] = element<of_c>(p.c, l, m0 + i, n0 + j);
    for (std::int64_t k = 0; k < p.k; ++k) {
      for (std::int64_t i = 0; i < rows; ++i) a[i] = element<of_a>(p.a, l, m0 + i, k);
      for (std::int64_t j = 0; j < columns; ++j) b[j] = element<of_b>(p.b, l, k, n0 + j);
      for (int i = 0; i < tile; ++i)
        for (int j = 0; j < tile; ++j) sums[i][j] = s.step(sums[i][j], a[i], b[j]);
    }
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) element<of_c>(p.c, l, m0 + i, n0 + j) = sums[i][j];
  }

  template <class Exec>
  static void run_on(const std::string& name, const Contraction& p) {
    const Exec& exec = *static_cast<const Exec*>(p.execution.instance);
    const std::int64_t rows = (p.m + tile - 1) / tile, columns = (p.n + tile - 1) / tile;
    Kokkos::parallel_for(name, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, p.batch * rows * columns),
                         [=](std::int64_t i) {  // a copy of p: on some spaces the loop ends after this function does
                           compute(p, i / columns / rows, i / columns % rows * tile, i % columns * tile);
                         });
  }

  static void run(const Kernel<Contraction>& kernel, const Contraction& p, const rigel::Plan&, const rigel::Workspace&) {
    switch (p.execution.space) {
#ifdef KOKKOS_ENABLE_SERIAL
      case rigel::Space::serial: return run_on<Kokkos::Serial>(kernel.info.name, p);
#endif
#ifdef KOKKOS_ENABLE_OPENMP
      case rigel::Space::openmp: return run_on<Kokkos::OpenMP>(kernel.info.name, p);
#endif
#ifdef KOKKOS_ENABLE_THREADS
      case rigel::Space::threads: return run_on<Kokkos::Threads>(kernel.info.name, p);
#endif
      default: return;  // the kernel's info names hosts' spaces only
    }
  }
};

}  // namespace

tiles::Run tiles::loop(int tile, const Layouts& layouts) {
  return tile == 16 ? loop_of<Loops, 16>(layouts) : loop_of<Loops, 32>(layouts);
}

rigel::Spaces tiles::spaces() { return rigel::host_spaces; }

// A larger tile loads less for each step.
double tiles::steps_per_second(int tile, const rigel::Execution& execution) {
  return (tile == 32 ? 1e9 : 7e8) * execution.concurrency;
}
