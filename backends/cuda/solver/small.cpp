// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.solver.*.small: the kernels of small.hpp for matrices of order up to 128, in four cuts.
#include <rigel/backends/cuda/costs/solver.hpp>
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

template <class T>
double cost(const Kernel<Solve>&, const Solve& p, Plan&) {
  return with_cut(p.n, [&]<class C>(C) { return costs::small_seconds(p, C::tiles, C::threads, sizeof(T) == 8); });
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
