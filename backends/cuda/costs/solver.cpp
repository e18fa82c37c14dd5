// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/costs/solver.hpp>

#include <rigel/backends/cuda/fitted/sm_90.hpp>
#include <rigel/card.hpp>
#include <rigel/detail/solve.hpp>

#include <algorithm>
#include <cmath>

namespace rigel::backends::solver::costs {
namespace {

namespace fit = cuda::fitted::sm_90::solver;

double systems_of_one(const Solve& p) { return static_cast<double>(p.batch) / std::max(p.execution.multiprocessors, 1); }

// A pass before and one after.
double passes_seconds(const Card& card, double cycles) {
  return card.launch_seconds + card.next_launch_seconds + cycles / card.clock;
}

// Seconds of a factorisation's operations on all multiprocessors.
double operations_seconds(const Solve& p, double share, double per_cycle) {
  const Card& card = card_of(p.execution);
  return detail::solve_operations(p) / (share * per_cycle * card.multiprocessors * card.clock);
}

}  // namespace

// A launch, then rounds of blocks, each of which takes so many cycles for each step of the factorisation, and for each unknown of a warp's
// right sides. Estimates, by the number of barriers and of dependent instructions.
double small_seconds(const Solve& p, int tiles, int threads, bool wide) {
  constexpr double lu_step = 450, cholesky_step = 180, unknown = 70;  // cycles
  constexpr double own_registers = 40, most_resident = 16;
  const Card& card = card_of(p.execution);
  const bool lu = p.factorisation == Factorisation::lu;
  const auto n = static_cast<double>(p.n);
  const int warps = threads / 32;
  const double registers = tiles * tiles * (wide ? 2 : 1) + own_registers,
               resident = std::clamp(card.registers / registers / threads, 1., most_resident);
  const double updates = tiles * tiles * threads / (wide ? card.double_lanes : card.float_lanes);
  const double step = (lu ? lu_step : cholesky_step) + updates,
               sides = std::ceil(static_cast<double>(p.right_sides) / warps);
  const double cycles = n * (p.task == Solve::Task::substitute ? 0 : step) + 2 * n * unknown * sides;
  const double blocks = systems_of_one(p);
  // Blocks that share a multiprocessor hide each other's latency.
  return card.launch_seconds + fit::small_prologue / card.clock +
         std::max(std::ceil(blocks / resident) * cycles, blocks * n * updates) / (fit::clock * card.clock);
}

// Two passes, for each block of the diagonal the latencies of its kernels, and the operations.
double cholesky_seconds(const Solve& p, double blocks, bool has_right_sides, bool wide) {
  const Card& card = card_of(p.execution);
  const bool substitutes = p.task == Solve::Task::substitute;
  const double waves = std::ceil(systems_of_one(p));
  const double diagonal = substitutes ? 0 : waves * (wide ? fit::diagonal_f64 : fit::diagonal_f32) + fit::diagonal_launches;
  const double sides = !has_right_sides ? 0 : substitutes ? fit::substituted : fit::solved;
  return passes_seconds(card, fit::passes + blocks * (diagonal + sides)) +
         (wide ? operations_seconds(p, fit::cholesky_f64, card.tensor_double_products)
               : operations_seconds(p, fit::cholesky_f32, card.tensor_products));
}

// Two passes, for each panel the latencies of its kernels, for each block of U two more, and the operations.
double lu_seconds(const Solve& p, double panels, double blocks, bool wide) {
  constexpr double wide_row = 1.5;
  const Card& card = card_of(p.execution);
  const double waves = std::ceil(systems_of_one(p)), rows = static_cast<double>(p.n) * (wide ? wide_row : 1);
  const double cycles = waves * panels * (fit::panel + fit::panel_row * rows) + panels * fit::panel_launches +
                        (p.right_sides > 0 ? blocks * fit::upper_block : 0);
  return passes_seconds(card, fit::passes + cycles) + (wide ? operations_seconds(p, fit::lu_f64, card.tensor_double_products)
                                                            : operations_seconds(p, fit::lu_f32, card.tensor_products));
}

// A launch, then for each stage two barriers and the elements that a multiprocessor moves. Measured on an H100: twice what these take
// alone.
double jacobi_seconds(const Solve& p, int bytes, bool has_vectors_in_shared_memory) {
  constexpr double over = 2, barriers = 700;  // the latter: cycles
  const Card& card = card_of(p.execution);
  const auto n = static_cast<double>(p.n);
  const double sweeps = bytes == 8 ? 10 : 8, rounds = std::ceil(systems_of_one(p));
  const double moved = n * n / 8 * (has_vectors_in_shared_memory ? 1 : 3) * bytes / 4;
  return card.launch_seconds + fit::jacobi_prologue / card.clock +
         over * rounds * sweeps * n * (barriers + moved) / (fit::clock * card.clock);
}

namespace {

// Of eigenvectors by the batched routine, in cycles.
double batched_eigen_cycles(double n, double systems, bool wide) {
  const double one = n <= 128   ? fit::eigen_begin + (wide ? fit::eigen_unknown_f64 : fit::eigen_unknown_f32) * n
                     : n <= 256 ? (wide ? fit::eigen_middle_f64 : fit::eigen_middle_f32 * n)
                                : fit::eigen_large + (wide ? fit::eigen_large_f64 : fit::eigen_large_f32) * n;
  return one + (wide ? fit::eigen_cube_f64 : fit::eigen_cube_f32) * systems * n * n * n;
}

}  // namespace

// Estimates: two passes, and for each system the latencies of its panels and its operations. A batched routine runs the systems next to
// each other, at a lower rate.
double library_seconds(const Solve& p, bool batched, int streams, bool wide) {
  const Card& card = card_of(p.execution);
  const bool eigen = p.factorisation == Factorisation::eigen;
  const auto n = static_cast<double>(p.n), systems = static_cast<double>(p.batch);
  if (batched && eigen) return passes_seconds(card, fit::library_passes + batched_eigen_cycles(n, systems, wide));
  const double column = eigen                                  ? fit::eigen_column
                        : p.factorisation == Factorisation::lu ? fit::lu_column
                                                               : fit::cholesky_column;
  const double cycles = batched ? fit::batch_begin + column * n : systems / streams * (fit::system_begin + column * n);
  const double share = (eigen ? fit::eigen_operations : fit::operations) * (batched ? fit::batched : 1);
  return passes_seconds(card, fit::library_passes + cycles) +
         operations_seconds(p, share, wide ? card.double_lanes : card.float_lanes);
}

}  // namespace rigel::backends::solver::costs
