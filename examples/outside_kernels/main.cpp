// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels from outside: this program registers sixteen of its own (tiles.hpp), which contract() then uses like Rigel's.
#include "tiles.hpp"

#include <examples/digits/program.hpp>
#include <rigel/rigel.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Batch = Kokkos::View<double***, Kokkos::LayoutStride, Exec::memory_space>;
constexpr std::int64_t batches = 3, m = 45, n = 70, k = 33;

// Matrices that are row-major ('r') or column-major ('c'), of numbers that make sums round.
Batch matrices(const char* name, char layout, std::int64_t rows, std::int64_t columns) {
  const auto size = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const std::size_t row = layout == 'r' ? size(columns) : 1, column = layout == 'r' ? 1 : size(rows);
  const Batch all(std::string(name),
                  Kokkos::LayoutStride(size(batches), size(rows * columns), size(rows), row, size(columns), column));
  for (std::size_t l = 0; l < all.extent(0); ++l)
    for (std::size_t i = 0; i < all.extent(1); ++i)
      for (std::size_t j = 0; j < all.extent(2); ++j) all(l, i, j) = 1.0 / static_cast<double>(1 + l + 3 * i + 7 * j);
  return all;
}

// How many outputs differ in their bits.
int different(const Batch& x, const Batch& y) {
  int count = 0;
  for (std::size_t l = 0; l < x.extent(0); ++l)
    for (std::size_t i = 0; i < x.extent(1); ++i)
      for (std::size_t j = 0; j < x.extent(2); ++j) count += x(l, i, j) == y(l, i, j) ? 0 : 1;
  return count;
}

// The kernels of this program whose tiles have so many rows.
std::vector<rigel::KernelInfo> with_rows(int rows) {
  std::vector<rigel::KernelInfo> all = rigel::kernels({.name = "tiles"});
  std::erase_if(all, [&](const rigel::KernelInfo& info) { return info.tile.m != rows; });
  return all;
}

bool run() {
  const Exec exec;
  const rigel::plus_times<double> s;
  bool ok = true;
  tiles::register_all();

  for (const char* const layouts : {"rrr", "rrc", "rcr", "rcc", "crr", "crc", "ccr", "ccc"}) {
    const Batch a = matrices("a", layouts[0], m, k), b = matrices("b", layouts[1], k, n);
    const Batch c = matrices("c", layouts[2], m, n), expected = matrices("expected", 'r', m, n);
    rigel::contract(exec, s, a, b, expected, {.kernel = "reference"});
    rigel::contract(exec, s, a, b, c, {.kernel = "tiles"});
    exec.fence();
    const int wrong = different(c, expected);
    std::printf("%s: %d of %zu outputs differ from the reference\n", layouts, wrong, c.size());
    ok = ok && wrong == 0;
  }

  const Batch a = matrices("a", 'r', m, k), b = matrices("b", 'c', k, n), c = matrices("c", 'r', m, n);
  std::printf("\nCandidates:\n%s\n", rigel::explain(exec, s, a, b, c, {}, {.kernel = "tiles"}).c_str());
  try {
    rigel::contract(exec, s, a, b, c, rigel::epilogue::relu(), {.kernel = "tiles"});
    ok = false;
  } catch (const rigel::Error& e) {
    std::printf("With an epilogue: %s\n", e.what());
  }

  for (const int rows : {16, 32, 256}) {
    const auto found = with_rows(rows);
    std::printf("%zu kernels have tiles of %d rows%s\n", found.size(), rows,
                found.empty() ? ": none of this program's sixteen" : "");
    ok = ok && found.size() == (rows == 256 ? 0u : 8u);
  }
  for (const rigel::KernelInfo& info : rigel::kernels({.name = "tiles"})) {
    const rigel::Verification result = rigel::verify(info.name);
    std::printf("%s: %s on %d problems\n%s", info.name.c_str(), result.ok ? "keeps its promises" : "FAILS", result.problems,
                result.report.c_str());
    ok = ok && result.ok;
  }
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  return digits::run_program(argc, argv, "outside_kernels: sixteen kernels of the program's own, used by contract()\n",
                             [](const auto&) { return run(); });
}
