// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes before and after a library's routines. Blocks of 256 threads take 16 × 16 elements at a time, whatever the strides.
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/solver/passes.hpp>

#include <algorithm>

namespace rigel::backends::solver {
namespace {

constexpr int threads = 256;
constexpr std::int64_t blocks_of_system = 64;

/// Calls visit(i) for the elements of a system, shared by its blocks.
template <class Visit>
__device__ __forceinline__ void each(std::int64_t count, std::int64_t blocks, const Visit& visit) {
  for (std::int64_t i = blockIdx.x % blocks * threads + threadIdx.x; i < count; i += blocks * threads) visit(i);
}

template <class T>
__global__ void __launch_bounds__(threads, 1) pack_systems(const __grid_constant__ detail::SolveArguments<T> g,
                                                           const __grid_constant__ Packed<T> to, std::int64_t blocks) {
  const std::int64_t l = blockIdx.x / blocks, n = g.n, m = g.m;
  T* const f = to.factors + l * n * n;
  T* const y = to.sides + l * n * m;
  const bool all = g.factorisation == Factorisation::lu;
  each(n * n, blocks, [&](std::int64_t i) {
    const std::int64_t row = i % n, column = i / n;
    f[i] = all || row >= column ? g.a.at(l, row, column) : T(0);
  });
  if (g.task != Solve::Task::factor) each(n * m, blocks, [&](std::int64_t i) { y[i] = g.b.at(l, i % n, i / n); });
  if (blockIdx.x % blocks != 0 || threadIdx.x != 0) return;
  to.infos[l] = 0;
  to.of_factors[l] = f;
  to.of_sides[l] = y;
}

template <class T>
__global__ void __launch_bounds__(threads, 1) unpack_systems(const __grid_constant__ detail::SolveArguments<T> g,
                                                             const __grid_constant__ Packed<T> from, std::int64_t blocks) {
  const std::int64_t l = blockIdx.x / blocks, n = g.n, m = g.m;
  const T* const f = from.factors + l * n * n;
  const T* const y = from.sides + l * n * m;
  const T* const w = from.values + l * n;
  const bool eigen = g.factorisation == Factorisation::eigen;
  // The first pivot that cannot be divided by, among all threads.
  __shared__ int first;
  if (threadIdx.x == 0) first = from.infos[l] > 0 ? from.infos[l] : static_cast<int>(n) + 1;
  __syncthreads();
  for (std::int64_t k = threadIdx.x; k < n; k += threads) {
    const bool good = eigen ? w[k] - w[k] == 0 : detail::is_pivot(g.factorisation, f[k * n + k]);
    if (!good) atomicMin(&first, static_cast<int>(k) + 1);
  }
  __syncthreads();
  const bool failed = first <= n;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  if (g.task == Solve::Task::factor)
    each(n * n, blocks, [&](std::int64_t i) {
      const std::int64_t row = i % n, column = i / n;
      g.x.at(l, row, column) = failed ? nan : eigen || row >= column ? f[i] : T(0);
    });
  else
    each(n * m, blocks, [&](std::int64_t i) { g.x.at(l, i % n, i / n) = failed ? nan : y[i]; });
  if (eigen) each(n, blocks, [&](std::int64_t i) { g.values.at(l, i, 0) = failed ? nan : w[i]; });
  if (g.infos.data && blockIdx.x % blocks == 0 && threadIdx.x == 0) g.infos.at(l, 0, 0) = failed ? eigen ? 1 : first : 0;
}

template <class T>
std::int64_t blocks_for(const detail::SolveArguments<T>& g) {
  return std::clamp<std::int64_t>(g.n * std::max(g.n, g.m) / (4 * threads), 1, blocks_of_system);
}

}  // namespace

template <class T>
void pack(const detail::SolveArguments<T>& g, const Packed<T>& packed, cudaStream_t stream) {
  const std::int64_t blocks = blocks_for(g);
  pack_systems<T><<<static_cast<unsigned>(g.batch * blocks), threads, 0, stream>>>(g, packed, blocks);
  cuda::check(cudaGetLastError(), "solve: launch of the pass that packs systems");
}

template <class T>
void unpack(const detail::SolveArguments<T>& g, const Packed<T>& packed, cudaStream_t stream) {
  const std::int64_t blocks = blocks_for(g);
  unpack_systems<T><<<static_cast<unsigned>(g.batch * blocks), threads, 0, stream>>>(g, packed, blocks);
  cuda::check(cudaGetLastError(), "solve: launch of the pass that stores solutions");
}

template void pack(const detail::SolveArguments<float>&, const Packed<float>&, cudaStream_t);
template void pack(const detail::SolveArguments<double>&, const Packed<double>&, cudaStream_t);
template void unpack(const detail::SolveArguments<float>&, const Packed<float>&, cudaStream_t);
template void unpack(const detail::SolveArguments<double>&, const Packed<double>&, cudaStream_t);

}  // namespace rigel::backends::solver
