// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels from outside: this program has sixteen of its own (tiles.hpp), which contract() then uses like Rigel's.
#include "tiles.hpp"

#include <examples/digits/program.hpp>
#include <rigel/rigel.hpp>

#include <Kokkos_Core.hpp>

#include <cstdio>
#include <string>

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Batch = Kokkos::View<double***, Kokkos::LayoutStride, Exec::memory_space>;
using Cells = Kokkos::MDRangePolicy<Exec, Kokkos::Rank<3>>;
constexpr std::int64_t batches = 3, m = 45, n = 70, k = 33;

Cells cells(const Batch& x) {
  const auto extent = [&](int r) { return static_cast<std::int64_t>(x.extent(r)); };
  return Cells({0, 0, 0}, {extent(0), extent(1), extent(2)});
}

// Matrices that are row-major ('r') or column-major ('c'), of numbers that make sums round.
Batch matrices(const char* name, char layout, std::int64_t rows, std::int64_t columns) {
  const auto size = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const std::size_t row = layout == 'r' ? size(columns) : 1, column = layout == 'r' ? 1 : size(rows);
  const Batch all(std::string(name),
                  Kokkos::LayoutStride(size(batches), size(rows * columns), size(rows), row, size(columns), column));
  Kokkos::parallel_for(
      "fill", cells(all), KOKKOS_LAMBDA(std::int64_t l, std::int64_t i, std::int64_t j) {
        all(l, i, j) = 1.0 / static_cast<double>(1 + l + 3 * i + 7 * j);
      });
  return all;
}

// How many outputs differ in their bits.
int different(const Batch& x, const Batch& y) {
  int count = 0;
  Kokkos::parallel_reduce(
      "compare", cells(x),
      KOKKOS_LAMBDA(std::int64_t l, std::int64_t i, std::int64_t j, int& sum) { sum += x(l, i, j) == y(l, i, j) ? 0 : 1; },
      count);
  return count;
}

bool takes_all_layouts(const Exec& exec) {
  bool ok = true;
  for (const char* const layouts : {"rrr", "rrc", "rcr", "rcc", "crr", "crc", "ccr", "ccc"}) {
    const rigel::plus_times<double> s;
    const Batch a = matrices("a", layouts[0], m, k), b = matrices("b", layouts[1], k, n);
    const Batch c = matrices("c", layouts[2], m, n), expected = matrices("expected", 'r', m, n);
    exec.fence();
    rigel::contract(exec, s, a, b, expected, {.kernel = "reference"});
    rigel::contract(exec, s, a, b, c, {.kernel = "tiles"});
    exec.fence();
    const int wrong = different(c, expected);
    std::printf("%s: %d of %zu outputs differ from the reference\n", layouts, wrong, c.size());
    ok = ok && wrong == 0;
  }
  return ok;
}

bool run() {
  const Exec exec;
  const rigel::plus_times<double> s;
  tiles::provide();
  const bool takes_all = takes_all_layouts(exec);

  const Batch a = matrices("a", 'r', m, k), b = matrices("b", 'c', k, n), c = matrices("c", 'r', m, n);
  exec.fence();
  bool refuses = false;
  try {
    rigel::contract(exec, s, a, b, c, rigel::epilogue::relu(), {.kernel = "tiles"});
  } catch (const rigel::Error& e) {
    std::printf("\nWith an epilogue: %s\n", e.what());
    refuses = true;
  }
  bool ok = takes_all && refuses;

  const auto problem = rigel::problem_of(exec, s, a, b, c);
  const auto with_rows = [&](int rows) {
    return rigel::candidates(problem,
                             [=](const rigel::KernelInfo& info) { return info.family == "tiles" && info.tile.m == rows; });
  };
  for (const int rows : {16, 32, 256}) {
    const rigel::Discovery found = with_rows(rows);
    std::printf("Tiles of %d rows: %s\n", rows, found.explanation.c_str());
    ok = ok && found.kernels.size() == (rows == 256 ? 0u : 8u);
  }

  // The best of a choice, chosen once for many calls.
  const rigel::Discovery found = with_rows(32);
  ok = ok && !found.kernels.empty() && found.kernels[0].chosen;
  if (ok) rigel::Pinned(found.kernels[0].owner, problem).run();

  const auto all = rigel::candidates(problem, [](const rigel::KernelInfo& info) { return info.family == "tiles"; });
  for (const rigel::OwnedCandidate& one : all.kernels) {
    const rigel::Verification result = rigel::verify(*one.kernel);
    std::printf("%s: %s on %d problems\n%s", one.kernel->info.name.c_str(), result.ok ? "keeps its promises" : "FAILS",
                result.problems, result.report.c_str());
    ok = ok && result.ok;
  }
  return ok && all.kernels.size() == 16;
}

}  // namespace

int main(int argc, char** argv) {
  return digits::run_program(argc, argv, "outside_kernels: sixteen kernels of the program's own, used by contract()\n",
                             [](const auto&) { return run(); });
}
