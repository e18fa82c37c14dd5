// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.solver.*.small: the kernels of small.hpp for matrices of order up to 128, in four cuts.
#include <rigel/backends/cuda/solver/launches.hpp>
#include <rigel/backends/cuda/solver/register.hpp>
#include <rigel/backends/cuda/solver/small.hpp>

#include <algorithm>

namespace rigel::backends::solver {
namespace {

/// Calls visit(Cut) for the smallest cut that holds n.
template <class Visit>
auto with_cut(std::int64_t n, const Visit& visit) {
  if (n <= 16) return visit(Cut<8, 2>{});
  if (n <= 32) return visit(Cut<16, 2>{});
  if (n <= 64) return visit(Cut<16, 4>{});
  return visit(Cut<16, 8>{});
}

constexpr std::int64_t most = 128;

template <class T>
Status supports(const Kernel<Solve>&, const Solve& p) {
  if (p.n < 1 || p.n > most) return {Decline::extents, "takes n from 1 to " + std::to_string(most)};
  if (p.batch > cuda::max_grid) return {Decline::batches, "takes a block for each system, and a launch that many"};
  const int bytes = with_cut(p.n, [&]<class C>(C) { return C::template shared_bytes<T>(static_cast<int>(p.n)); });
  if (bytes > p.execution.shared_memory)
    return {Decline::memory, "needs " + std::to_string(bytes) + " bytes of shared memory"};
  return {};
}

/// Predicted seconds: a launch, then rounds of blocks, each of which takes so many cycles for each step of the factorisation, and
/// for each unknown of a warp's right sides. Estimates, by the number of barriers and of dependent instructions.
template <class T>
double cost(const Kernel<Solve>&, const Solve& p, Plan&) {
  constexpr double launch = 4e-6, clock = 1.7e9;
  return with_cut(p.n, [&]<class C>(C) {
    const bool lu = p.factorisation == Factorisation::lu, wide = sizeof(T) == 8;
    const auto n = static_cast<double>(p.n);
    const double registers = C::tiles * C::tiles * (wide ? 2 : 1) + 40,
                 resident = std::clamp(65536 / registers / C::threads, 1., 16.);
    const double updates = C::tiles * C::tiles * C::threads / (wide ? 64. : 128.);
    const double step = (lu ? 450 : 180) + updates,
                 sides = std::ceil(static_cast<double>(p.right_sides) / (C::threads / 32));
    const double cycles = n * (p.task == Solve::Task::substitute ? 0 : step) + 2 * n * 70 * sides;
    const double blocks = static_cast<double>(p.batch) / std::max(p.execution.multiprocessors, 1);
    // Blocks that share a multiprocessor hide each other's latency.
    return launch + std::max(std::ceil(blocks / resident) * cycles, blocks * n * updates) / clock;
  });
}

template <class T, Factorisation factorisation>
void run(const Kernel<Solve>& kernel, const Solve& p, const Plan&, const Workspace&) {
  const cuda::CurrentDevice device(p.execution.device);
  with_cut(p.n, [&]<class C>(C) {
    const int bytes = C::template shared_bytes<T>(static_cast<int>(p.n));
    Launches(kernel, p)(solve_small<T, C, factorisation>, p.batch, C::threads, bytes, detail::solve_arguments<T>(p));
  });
}

template <class T, Factorisation factorisation>
Kernel<Solve> kernel() {
  Kernel<Solve> k;
  k.info = detail::solve_info("cuda.solver", "small", factorisation, scalar_of<T>, bit(Space::cuda));
  k.info.min_compute_capability = 80;
  k.info.timed_on = 90;
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.raw_launch = true;
  k.supports = supports<T>;
  k.cost = cost<T>;
  k.run = run<T, factorisation>;
  return k;
}

}  // namespace

void add_small(Registry<Solve>& registry) {
  registry.add(kernel<float, Factorisation::cholesky>());
  registry.add(kernel<double, Factorisation::cholesky>());
  registry.add(kernel<float, Factorisation::lu>());
  registry.add(kernel<double, Factorisation::lu>());
}

}  // namespace rigel::backends::solver
